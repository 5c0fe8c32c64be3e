/**
 * The history of the node that leads: what changes it is in the log first, on a majority of the machines, and then here. So whoever
 * leads next has everything that was reported as stored. One record is under way; what comes meanwhile goes into the next.
 */
import type { LogPlace } from '../../replicated/place.ts'
import type { History } from '../history.ts'
import { compileMatchers } from '../resolve.ts'
import type {
  HistoryBatch,
  HistoryFamily,
  HistoryLimits,
  HistoryPosition,
  HistoryQuery,
  HistorySeries,
  HistoryStore,
} from '../store.ts'
import type { HistoryLog } from './history-log.ts'
import type { AppendOperation, HistoryOperation } from './record.ts'
import { ReferenceTexts } from './series-texts.ts'

/** What is to be done here when it is in the log. */
type Deed =
  | { readonly kind: 'append'; readonly batch: HistoryBatch }
  /** `series`: how many it was, when it is done. */
  | { readonly kind: 'drop'; readonly query: Pick<HistoryQuery, 'tenant' | 'matchers'>; series: number }

interface Entry {
  readonly operation: HistoryOperation
  /** Undefined: it is done already. */
  readonly deed: Deed | undefined
  /** About how long it is in the record. */
  readonly bytes: number
}

interface RecordUnderWay {
  deeds: Deed[]
  /** Undefined: it is not in the log yet. */
  place: LogPlace | undefined
}

/** A record takes no more than this, unless one operation alone is longer: what tenants have at once may be more than a log takes. */
const MAX_RECORD_BYTES = 4 << 20
const SAMPLE_BYTES = 20

export interface LoggedHistoryParts {
  readonly history: History
  readonly log: Pick<HistoryLog, 'append'>
  /** Milliseconds since 1970. */
  readonly wallMs: () => number
  /** A record is in the log: `commit` goes on. */
  readonly logged: () => void
  /** It cannot be: another node leads, or the log is closed. Nothing is stored any more. */
  readonly failed: (error: Error) => void
}

export class LoggedHistory implements HistoryStore {
  readonly #history: History
  readonly #parts: LoggedHistoryParts
  readonly #texts = new ReferenceTexts()
  /** Of the next records. */
  #entries: Entry[] = []
  /** With everything appended, of tenants of the next record and of the one under way. */
  readonly #positions = new Map<string, HistoryPosition>()
  /** What is left to be done of the record that is in the log, or under way, and where the history is then. */
  #record: RecordUnderWay | undefined
  #dropping: ReturnType<HistoryStore['drop']> | undefined
  #isClosed = false

  constructor(parts: LoggedHistoryParts) {
    this.#parts = parts
    this.#history = parts.history
  }

  /** Whether `commit` can do nothing before `logged` is called. */
  get isWaiting(): boolean {
    return this.#record !== undefined && this.#record.place === undefined
  }

  seriesOf(series: HistorySeries): number | undefined {
    const reference = this.#history.seriesOf(series)
    if (reference !== undefined) this.#texts.add(reference, series)
    return reference
  }

  nativeOf(series: Pick<HistorySeries, 'tenant' | 'name' | 'labels'>): string | undefined {
    return this.#history.nativeOf(series)
  }

  describe(...[tenant, metric]: Parameters<HistoryStore['describe']>): void {
    this.#history.describe(tenant, metric)
    this.#add({ kind: 'describe', tenant, metric })
  }

  families(...asked: Parameters<HistoryStore['families']>): ReturnType<HistoryStore['families']> {
    return this.#history.families(...asked)
  }

  familiesOf(tenant: string, native: string): readonly HistoryFamily[] {
    return this.#history.familiesOf(tenant, native)
  }

  positionOf(tenant: string): HistoryPosition | undefined {
    return this.#positions.get(tenant) ?? this.#history.positionOf(tenant)
  }

  append({ tenant, position, series, times, values, length, losses }: HistoryBatch): number {
    const columns = { series: series.slice(0, length), times: times.slice(0, length), values: values.slice(0, length) }
    const indices = new Uint32Array(length)
    const texts = new Map<number, { readonly text: string; readonly index: number }>()
    const oldestMs = this.#history.oldestOf(tenant)
    let [taken, bytes] = [0, SAMPLE_BYTES * length]
    for (const [at, reference] of columns.series.entries()) {
      let known = texts.get(reference)
      if (known === undefined) {
        known = { text: this.#textOf(tenant, reference), index: texts.size }
        texts.set(reference, known)
        bytes += known.text.length
      }
      indices[at] = known.index
      if ((columns.times[at] as number) >= oldestMs) taken++
    }
    const operation: AppendOperation = {
      kind: 'append',
      tenant,
      position,
      losses,
      texts: Array.from(texts.values(), ({ text }) => text),
      ...columns,
      series: indices,
    }
    this.#add(operation, { kind: 'append', batch: { tenant, position, ...columns, length, losses } }, bytes)
    if (position !== undefined) this.#positions.set(tenant, position)
    return taken
  }

  get uncommitted(): number {
    const waiting = [...this.#entries.map(({ deed }) => deed), ...(this.#record?.deeds ?? [])]
    const lengths = waiting.map((deed) => (deed?.kind === 'append' ? deed.batch.length : 0))
    return this.#history.uncommitted + lengths.reduce((sum, length) => sum + length, 0)
  }

  commit(): boolean {
    if (this.#record === undefined) {
      if (this.#entries.length === 0) return this.#history.commit()
      this.#begin()
      return false
    }
    const { deeds, place } = this.#record
    if (place === undefined) return false
    if (deeds.length > 0) {
      if (!this.#do(deeds[0] as Deed)) return false
      deeds.shift()
      // It is done with the last.
      if (deeds.length > 0) return false
    }
    this.#history.log.moveTo(place)
    if (!this.#history.commit()) return false
    this.#record = undefined
    if (this.#entries.length > 0) return false
    this.#positions.clear()
    return true
  }

  #add(operation: HistoryOperation, deed?: Deed, bytes = 0): void {
    this.#entries.push({ operation, deed, bytes })
  }

  /** Appends a record with what was done since the last. */
  #begin(): void {
    let [count, bytes] = [0, 0]
    for (const entry of this.#entries) {
      bytes += entry.bytes
      if (count > 0 && bytes > MAX_RECORD_BYTES) break
      count++
    }
    const entries = this.#entries.splice(0, count)
    const record: RecordUnderWay = { deeds: entries.flatMap(({ deed }) => deed ?? []), place: undefined }
    this.#record = record
    this.#texts.age(this.#parts.wallMs())
    this.#parts.log.append(entries.map(({ operation }) => operation)).then(
      (place) => {
        record.place = place
        if (!this.#isClosed) this.#parts.logged()
      },
      (error: Error) => {
        if (!this.#isClosed) this.#parts.failed(error)
      },
    )
  }

  /** Returns whether it is done. */
  #do(deed: Deed): boolean {
    if (deed.kind === 'append') {
      this.#history.append(deed.batch)
      return true
    }
    try {
      this.#dropping ??= this.#history.drop(deed.query)
      const step = this.#dropping.next()
      if (step.done !== true) return false
      this.#dropping = undefined
      deed.series = step.value
      return true
    } catch (error) {
      // It is tried again from its beginning.
      this.#dropping = undefined
      throw error
    }
  }

  /** Whoever says that a series has ended may have asked for it long ago. Throws if it is not stored either. */
  #textOf(tenant: string, reference: number): string {
    const text = this.#texts.of(reference)
    if (text !== undefined) return text
    const series = this.#history.described(tenant, reference)
    if (series === undefined)
      throw new Error(`the history has a sample of series ${reference}, and nobody has asked for that`)
    return this.#texts.add(reference, series)
  }

  *drop(query: Pick<HistoryQuery, 'tenant' | 'matchers'>): Generator<undefined, number, void> {
    // What is wrong with an expression is so before it is in the log.
    compileMatchers(query.matchers)
    const deed: Deed = { kind: 'drop', query, series: 0 }
    this.#add({ kind: 'drop', ...query }, deed)
    while (!this.commit()) yield
    return deed.series
  }

  /** At once: whoever leads next finds out by itself that the tenant is gone. */
  removeTenant(tenant: string): void {
    this.#history.removeTenant(tenant)
    this.#positions.delete(tenant)
    this.#leaveUndone(tenant)
    this.#add({ kind: 'remove', tenant })
  }

  /** What waits of a tenant would begin it anew here, although it is before its end in the log. */
  #leaveUndone(tenant: string): void {
    const isOf = (deed: Deed): boolean => (deed.kind === 'append' ? deed.batch : deed.query).tenant === tenant
    this.#entries = this.#entries.map((entry) =>
      entry.deed !== undefined && isOf(entry.deed) ? { ...entry, deed: undefined } : entry,
    )
    const { deeds = [] } = this.#record ?? {}
    if (this.#dropping !== undefined && deeds[0] !== undefined && isOf(deeds[0])) {
      this.#dropping.return(0)
      this.#dropping = undefined
    }
    if (this.#record !== undefined) this.#record.deeds = deeds.filter((deed) => !isOf(deed))
  }

  following(...asked: Parameters<HistoryStore['following']>): ReturnType<HistoryStore['following']> {
    return this.#history.following(...asked)
  }

  select(...asked: Parameters<HistoryStore['select']>): ReturnType<HistoryStore['select']> {
    return this.#history.select(...asked)
  }

  selectRollups(...asked: Parameters<HistoryStore['selectRollups']>): ReturnType<HistoryStore['selectRollups']> {
    return this.#history.selectRollups(...asked)
  }

  series(...asked: Parameters<HistoryStore['series']>): ReturnType<HistoryStore['series']> {
    return this.#history.series(...asked)
  }

  losses(...asked: Parameters<HistoryStore['losses']>): ReturnType<HistoryStore['losses']> {
    return this.#history.losses(...asked)
  }

  work(budgetMs: number): boolean {
    return this.#history.work(budgetMs)
  }

  limit(limits: HistoryLimits): void {
    this.#history.limit(limits)
  }

  figures(): ReturnType<HistoryStore['figures']> {
    return this.#history.figures()
  }

  backUp(...asked: Parameters<HistoryStore['backUp']>): ReturnType<HistoryStore['backUp']> {
    return this.#history.backUp(...asked)
  }

  /** What is not in the log is left to whoever leads next; what is, is applied when this node follows. */
  close(): void {
    this.#isClosed = true
    this.#dropping?.return(0)
    this.#history.close()
  }
}
