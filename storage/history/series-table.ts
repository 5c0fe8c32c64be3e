/**
 * The index of series in fresh.db. A series that is new gets its number and its place at once, and its rows with the next commit:
 * until that is durable it is only here. Each of its names and labels is a term, which leads to all series that have it.
 */
import type { Database, Statement } from 'better-sqlite3'
import { identityHash, identityOf } from './active-series.ts'
import { placeOf } from './codec/page.ts'
import type { FamilyTable } from './family-table.ts'
import { NameChanges } from './name-changes.ts'
import type { HistoryLabels, HistorySeries } from './store.ts'

/** The label of both names of a series. */
export const NAME_TERM_LABEL = '__name__'
/** More names do not fit into a place. */
const MAX_NAMES = 2 ** 21
const MAX_SERIES = 2 ** 32
const REMOVED_AT_ONCE = 256

export interface SeriesRow {
  readonly id: number
  readonly name: number
  readonly text: string
  readonly labels: string
  readonly native: string
  readonly last_ms: number
}

const NOTHING = { births: new Map<string, Birth>(), updates: 0 }

interface Birth {
  readonly tenant: number
  readonly id: number
  readonly name: number
  readonly series: HistorySeries
  readonly labels: string
  readonly lastMs: number
}

/** A series that is stored is in use on a later day. */
interface Update {
  readonly tenant: number
  readonly id: number
  readonly lastMs: number
}

/** Of a column that nothing reads: what a metric is, its families say. */
const KIND = 'unknown'

export interface FoundSeries {
  readonly place: number
  /** Of the metric that has it. */
  readonly native: string
  /** Whether it counts in the quota already. */
  readonly isCounted: boolean
}

/** Without the plus SQLite would go through all series of the tenant, as it has seen no statistics. */
export const FIND_SERIES =
  'select series.id, name, text, labels, native, last_ms from series join name on name.id = series.name ' +
  'where hash = ? and +series.tenant = ?'

export class SeriesTable {
  readonly #families: Pick<FamilyTable, 'remove'>
  readonly #find: Statement<unknown[], SeriesRow>
  readonly #putSeries: Statement
  readonly #touch: Statement
  readonly #findName: Statement<unknown[], number>
  readonly #putName: Statement
  readonly #findTerm: Statement<unknown[], number>
  readonly #putTerm: Statement
  readonly #putPosting: Statement
  readonly #count: Statement<unknown[], number>
  readonly #nameOfSeries: Statement<unknown[], number>
  readonly #seriesOfId: Statement<unknown[], SeriesRow>
  readonly #unused: Statement<unknown[], SeriesRow>
  readonly #removeSeries: Statement
  readonly #removePosting: Statement
  readonly #hasPosting: Statement<unknown[], number>
  readonly #removeTerm: Statement
  readonly #removeName: Statement
  /** Which names have series that came or went. */
  readonly changes = new NameChanges()
  #nextSeries: number
  #nextName: number
  /** By tenant and identity. */
  readonly #births = new Map<string, Birth>()
  #updates: Update[] = []
  /** What the transaction under way stores: births by their keys, and how many updates. */
  #storing: { readonly births: ReadonlyMap<string, Birth>; readonly updates: number } = NOTHING
  /** Numbers of names that are not stored yet, by tenant and text. */
  #names = new Map<string, number>()

  constructor(database: Database, families: Pick<FamilyTable, 'remove'>) {
    this.#families = families
    const next = (table: string): number =>
      database.prepare<unknown[], number>(`select coalesce(max(id), 0) + 1 from ${table}`).pluck().get() ?? 1
    this.#find = database.prepare<unknown[], SeriesRow>(FIND_SERIES)
    this.#putSeries = database.prepare('insert into series values (?, ?, ?, ?, ?, ?, ?, ?)')
    this.#touch = database.prepare('update series set last_ms = ? where id = ? and last_ms < ?')
    this.#findName = database.prepare<unknown[], number>('select id from name where tenant = ? and text = ?').pluck()
    this.#putName = database.prepare('insert or ignore into name values (?, ?, ?)')
    this.#findTerm = database
      .prepare<unknown[], number>('select id from term where tenant = ? and label = ? and text = ?')
      .pluck()
    this.#putTerm = database.prepare('insert into term (tenant, label, text) values (?, ?, ?)')
    this.#putPosting = database.prepare('insert or ignore into posting values (?, ?)')
    this.#count = database
      .prepare<unknown[], number>('select count(*) from series where tenant = ? and last_ms >= ?')
      .pluck()
    this.#nameOfSeries = database
      .prepare<unknown[], number>('select name from series where id = ? and tenant = ?')
      .pluck()
    this.#seriesOfId = database.prepare<unknown[], SeriesRow>(
      'select series.id, name, text, labels, native, last_ms from series join name on name.id = series.name ' +
        'where series.id = ? and series.tenant = ?',
    )
    this.#unused = database.prepare<unknown[], SeriesRow>(
      'select series.id, name, text, labels, native, last_ms from series join name on name.id = series.name ' +
        `where series.tenant = ? and last_ms < ? order by last_ms limit ${REMOVED_AT_ONCE}`,
    )
    this.#removeSeries = database.prepare('delete from series where id = ?')
    this.#removePosting = database.prepare('delete from posting where term = ? and series = ?')
    this.#hasPosting = database.prepare<unknown[], number>('select series from posting where term = ? limit 1').pluck()
    this.#removeTerm = database.prepare('delete from term where id = ?')
    this.#removeName = database.prepare('delete from name where tenant = ? and text = ?')
    this.#nextSeries = next('series')
    this.#nextName = next('name')
  }

  /** How many series of a tenant had samples on a day or later. */
  count(tenant: number, sinceMs: number): number {
    let births = 0
    for (const birth of this.#births.values()) if (birth.tenant === tenant) births++
    return (this.#count.get(tenant, sinceMs) ?? 0) + births
  }

  /**
   * The series of this identity; undefined if there is none. `dayMs`: it is in use on this day; `countedMs`: series that were in use
   * on this day or later count.
   */
  find(
    tenant: number,
    series: HistorySeries,
    { dayMs, countedMs }: { readonly dayMs: number; readonly countedMs: number },
  ): FoundSeries | undefined {
    const labels = JSON.stringify(series.labels)
    const identity = identityOf(series.name, labels)
    const birth = this.#births.get(`${tenant} ${identity}`)
    if (birth !== undefined) {
      return { place: placeOf(birth.name, birth.id), native: birth.series.native, isCounted: true }
    }
    const rows = this.#find.all(identityHash(identity), tenant)
    const row = rows.find(({ text, labels: stored }) => text === series.name && stored === labels)
    if (row === undefined) return undefined
    const { id, native, last_ms: lastMs } = row
    if (native === series.native && lastMs < dayMs) this.#updates.push({ tenant, id, lastMs: dayMs })
    return { place: placeOf(row.name, id), native, isCounted: lastMs >= countedMs }
  }

  /** The native name of the metric that has an identity; undefined if none has. */
  nativeOf(tenant: number, { name, labels: list }: Pick<HistorySeries, 'name' | 'labels'>): string | undefined {
    const labels = JSON.stringify(list)
    const identity = identityOf(name, labels)
    const birth = this.#births.get(`${tenant} ${identity}`)
    if (birth !== undefined) return birth.series.native
    const rows = this.#find.all(identityHash(identity), tenant)
    return rows.find(({ text, labels: stored }) => text === name && stored === labels)?.native
  }

  /** Adds a series that is not stored, and gives its place; undefined if there are too many to number. */
  add(tenant: number, series: HistorySeries, dayMs: number): number | undefined {
    const name = this.#nameOf(tenant, series.name)
    if (name >= MAX_NAMES || this.#nextSeries >= MAX_SERIES) return undefined
    const id = this.#nextSeries++
    const labels = JSON.stringify(series.labels)
    const birth = { tenant, id, name, series, labels, lastMs: dayMs }
    this.#births.set(`${tenant} ${identityOf(series.name, labels)}`, birth)
    return placeOf(name, id)
  }

  #nameOf(tenant: number, text: string): number {
    const key = nameKey(tenant, text)
    const known = this.#names.get(key) ?? this.#findName.get(tenant, text)
    if (known !== undefined) return known
    if (this.#nextName < MAX_NAMES) this.#names.set(key, this.#nextName)
    return this.#nextName < MAX_NAMES ? this.#nextName++ : MAX_NAMES
  }

  /** How many series are new, or are to be stored again. */
  get waiting(): number {
    return this.#births.size + this.#updates.length
  }

  /** Stores some of them, in the transaction of the caller. */
  store(most: number): void {
    const births = new Map<string, Birth>()
    for (const [key, birth] of this.#births) {
      if (births.size === most) break
      births.set(key, birth)
      this.#storeBirth(birth)
    }
    const updates = this.#updates.slice(0, most)
    for (const { id, lastMs } of updates) this.#touch.run(lastMs, id, lastMs)
    this.#storing = { births, updates: updates.length }
  }

  #storeBirth({ tenant, id, name, series, labels, lastMs }: Birth): void {
    if (this.#names.has(nameKey(tenant, series.name))) this.#putName.run(name, tenant, series.name)
    const hash = identityHash(identityOf(series.name, labels))
    this.#putSeries.run(id, tenant, name, hash, KIND, lastMs, series.native, labels)
    this.#post(tenant, id, NAME_TERM_LABEL, series.name)
    if (series.native !== series.name) this.#post(tenant, id, NAME_TERM_LABEL, series.native)
    for (const text of [series.name, series.native]) this.changes.note(tenant, text)
    for (const [label, text] of series.labels) this.#post(tenant, id, label, text)
  }

  /** The transaction of `store` is durable. */
  stored(): void {
    const { births, updates } = this.#storing
    for (const [key, { tenant, series }] of births) {
      this.#births.delete(key)
      this.#names.delete(nameKey(tenant, series.name))
    }
    this.#updates.splice(0, updates)
    this.#storing = NOTHING
  }

  /** What is new of a tenant is not stored any more. */
  forget(tenant: number): void {
    for (const [key, birth] of this.#births) if (birth.tenant === tenant) this.#births.delete(key)
    this.#updates = this.#updates.filter((update) => update.tenant !== tenant)
    for (const key of this.#names.keys()) if (key.startsWith(`${tenant} `)) this.#names.delete(key)
  }

  /** These series have samples on this day, in the transaction of the caller. */
  touch(series: readonly number[], dayMs: number): void {
    for (const id of series) this.#touch.run(dayMs, id, dayMs)
  }

  /** The place of a series by its number; undefined if it is none of this tenant. */
  placeOf(tenant: number, series: number): number | undefined {
    const name = this.#nameOfSeries.get(series, tenant)
    return name === undefined ? undefined : placeOf(name, series)
  }

  /** What a number of a tenant stands for; undefined if it is none, or is not stored yet. */
  described(tenant: { readonly id: number; readonly name: string }, series: number): HistorySeries | undefined {
    const row = this.#seriesOfId.get(series, tenant.id)
    if (row === undefined) return undefined
    return { tenant: tenant.name, name: row.text, labels: labelsOf(row.labels), native: row.native }
  }

  /** Whether something waits to be stored. */
  get isChanged(): boolean {
    return this.#births.size > 0 || this.#updates.length > 0
  }

  /**
   * Removes some series of a tenant that had no samples since `beforeMs`, in the transaction of the caller. Those in use stay, and
   * count as such on `dayMs`. Returns whether there may be more.
   */
  removeUnused(
    tenant: number,
    { beforeMs, dayMs }: { readonly beforeMs: number; readonly dayMs: number },
    isActive: (series: number) => boolean,
  ): boolean {
    const unused = this.#unused.all(tenant, beforeMs)
    const changed = new Set(this.#updates.map((update) => update.id))
    for (const { id, text, native, labels } of unused) {
      if (isActive(id) || changed.has(id)) {
        this.#touch.run(dayMs, id, dayMs)
        continue
      }
      this.#unpost(tenant, id, NAME_TERM_LABEL, text)
      if (native !== text) this.#unpost(tenant, id, NAME_TERM_LABEL, native)
      for (const [label, value] of labelsOf(labels)) this.#unpost(tenant, id, label, value)
      this.#removeSeries.run(id)
      for (const one of [text, native]) this.changes.note(tenant, one)
    }
    return unused.length > 0
  }

  /** Whether a series that is not stored yet has this name. */
  #isBorn(tenant: number, name: string): boolean {
    for (const birth of this.#births.values()) if (birth.tenant === tenant && birth.series.name === name) return true
    return false
  }

  #post(tenant: number, series: number, label: string, text: string): void {
    let term = this.#findTerm.get(tenant, label, text)
    if (term === undefined) term = Number(this.#putTerm.run(tenant, label, text).lastInsertRowid)
    this.#putPosting.run(term, series)
  }

  /** A term that leads nowhere any more goes too, and so does the name that it is, with what was said of it. */
  #unpost(tenant: number, series: number, label: string, text: string): void {
    const term = this.#findTerm.get(tenant, label, text)
    if (term === undefined) return
    this.#removePosting.run(term, series)
    if (this.#hasPosting.get(term) !== undefined) return
    this.#removeTerm.run(term)
    if (label === NAME_TERM_LABEL) this.#families.remove(tenant, text)
    if (label === NAME_TERM_LABEL && !this.#isBorn(tenant, text)) this.#removeName.run(tenant, text)
  }
}

function nameKey(tenant: number, name: string): string {
  return `${tenant} ${name}`
}

/** The label of a metric whose name and labels are those of another one; that of GET /metrics. */
export const OTHER_NAME_LABEL = 'cinnabar_name'

/** A series as it is if another metric has its name and labels. */
export function besides(series: HistorySeries): HistorySeries {
  let label = OTHER_NAME_LABEL
  while (series.labels.some(([name]) => name === label)) label += '_'
  const labels = [...series.labels, [label, series.native] as const]
  return { ...series, labels: labels.toSorted(([a], [b]) => (a < b ? -1 : 1)) }
}

/** The labels of a row. */
export function labelsOf(row: string): HistoryLabels {
  return JSON.parse(row) as HistoryLabels
}
