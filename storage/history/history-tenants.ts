/** The tenants with what of them is in memory. Their numbers are never given twice. */
import type { Database, Statement } from 'better-sqlite3'
import { ActiveSeries } from './active-series.ts'
import { Head } from './head.ts'
import { dayOf } from './periods.ts'
import type { HistoryBatch, HistoryLoss, HistoryPosition } from './store.ts'

interface TenantRow {
  readonly id: number
  readonly name: string
  readonly generation: string | null
  readonly channel: number | null
  readonly transaction: number | null
  readonly takenMs: number | null
  readonly committed: number | null
  readonly goneMs: number | null
}

/** Losses of one tenant that are stored; further ones are added to the last. */
const MAX_LOSSES = 10_000
const DAMAGED = 'damaged in the history'
const REMOVED_AT_ONCE = 1_000
const TERMS_AT_ONCE = 100

export class HistoryTenant {
  readonly id: number
  readonly name: string
  readonly active = new ActiveSeries()
  readonly head = new Head()
  /** With everything that was appended. */
  position: HistoryPosition | undefined
  /** Whether the tenant, or its position, is not stored yet. */
  isChanged: boolean
  /** Whether there is a row of it. */
  isStored: boolean
  /** The end of the last day that went and left its rollups. */
  goneMs: number
  /** How many series count in its quota. */
  seriesCount = 0
  /** Losses that are not stored yet. */
  losses: HistoryLoss[] = []

  constructor({ id, name, goneMs }: Pick<TenantRow, 'id' | 'name' | 'goneMs'>, isNew: boolean) {
    this.id = id
    this.name = name
    this.goneMs = goneMs ?? 0
    this.isChanged = isNew
    this.isStored = !isNew
  }

  /**
   * Samples up to here went with their days: what comes for these days would take the place of what was made of them, and is too old.
   * A day that goes on has nothing to replace, whatever the clock was when others went.
   */
  goneAt(nowMs: number): number {
    return Math.min(this.goneMs, dayOf(nowMs))
  }

  /** How far its channel was taken with a batch, and what is missing before. */
  take({ position, losses }: Pick<HistoryBatch, 'position' | 'losses'>): void {
    if (position !== undefined) {
      this.position = position
      this.isChanged = true
    }
    if (losses.length > 0) this.losses = [...this.losses, ...losses]
  }

  /** Samples of these times are damaged. */
  lose({ fromMs, toMs, samples }: { readonly fromMs: number; readonly toMs: number; readonly samples: number }): void {
    this.losses.push({ native: '', fromMs, toMs, count: samples, reason: DAMAGED })
  }
}

export class HistoryTenants {
  readonly #byName = new Map<string, HistoryTenant>()
  readonly #put: Statement
  readonly #gone: Statement
  readonly #remove: Statement
  readonly #leave: Statement
  readonly #leaving: Statement<unknown[], number>
  readonly #left: Statement
  readonly #putLoss: Statement
  readonly #lossCount: Statement<unknown[], number>
  readonly #widenLoss: Statement
  readonly #oldLosses: Statement
  readonly #rows: readonly Statement[]
  #nextId: number

  constructor(database: Database) {
    this.#put = database.prepare(
      'insert or replace into tenant (id, name, generation, channel, transaction_id, taken_ms, committed, gone_ms) ' +
        'values (?, ?, ?, ?, ?, ?, ?, ?)',
    )
    this.#gone = database.prepare('update tenant set gone_ms = max(coalesce(gone_ms, 0), ?) where id = ?')
    this.#remove = database.prepare('delete from tenant where id = ?')
    this.#leave = database.prepare('insert or ignore into leaving values (?)')
    this.#leaving = database.prepare<unknown[], number>('select tenant from leaving').pluck()
    this.#left = database.prepare('delete from leaving where tenant = ?')
    this.#putLoss = database.prepare('insert into loss values (null, ?, ?, ?, ?, ?, ?)')
    this.#lossCount = database.prepare<unknown[], number>('select count(*) from loss where tenant = ?').pluck()
    this.#widenLoss = database.prepare(
      "update loss set native = case native when @native then native else '' end, from_ms = min(from_ms, @fromMs), " +
        'to_ms = max(to_ms, @toMs), count = count + @count where id = (select max(id) from loss where tenant = @tenant)',
    )
    this.#oldLosses = database.prepare('delete from loss where to_ms < ?')
    const some = (table: string): Statement =>
      database.prepare(
        `delete from ${table} where rowid in (select rowid from ${table} where tenant = ? limit ${REMOVED_AT_ONCE})`,
      )
    const terms = `select id from term where tenant = ? order by label, text limit ${TERMS_AT_ONCE}`
    this.#rows = [
      database.prepare(
        `delete from posting where (term, series) in (select term, series from posting where term in (${terms}) limit ${REMOVED_AT_ONCE})`,
      ),
      database.prepare(`delete from term where id in (${terms})`),
      ...['series', 'name', 'loss', 'columns', 'dropped', 'family'].map(some),
    ]
    const rows = database
      .prepare<unknown[], TenantRow>(
        'select id, name, generation, channel, transaction_id as "transaction", taken_ms as "takenMs", committed, gone_ms as "goneMs" ' +
          'from tenant',
      )
      .all()
    for (const row of rows) {
      const tenant = new HistoryTenant(row, false)
      const { generation, channel, transaction, takenMs, committed } = row
      if (generation !== null && channel !== null && transaction !== null && takenMs !== null) {
        tenant.position = { generation, channel, transaction, takenMs, committed: committed ?? undefined }
      }
      this.#byName.set(row.name, tenant)
    }
    this.#nextId = 1 + Math.max(0, ...rows.map(({ id }) => id), ...this.#leaving.all())
  }

  get all(): Iterable<HistoryTenant> {
    return this.#byName.values()
  }

  find(name: string): HistoryTenant | undefined {
    return this.#byName.get(name)
  }

  /** Samples that wait for the next commit. */
  get pending(): number {
    let pending = 0
    for (const { head } of this.#byName.values()) pending += head.pending
    return pending
  }

  /** Samples that are in no page yet. */
  get samplesInHeads(): number {
    let samples = 0
    for (const { head } of this.#byName.values()) samples += head.samples
    return samples
  }

  /** The tenant of this name, which may be new: it is stored with the next commit. */
  of(name: string): HistoryTenant {
    const known = this.#byName.get(name)
    if (known !== undefined) return known
    const tenant = new HistoryTenant({ id: this.#nextId++, name, goneMs: null }, true)
    this.#byName.set(name, tenant)
    return tenant
  }

  /** Stores tenants that are new, without their positions, in the transaction of the caller: series belong to them. */
  storeNew(): void {
    for (const { id, name, isStored } of this.#byName.values()) {
      if (!isStored) this.#put.run(id, name, null, null, null, null, null, null)
    }
  }

  /** The transaction of `storeNew` is durable. */
  storedNew(): void {
    for (const tenant of this.#byName.values()) tenant.isStored = true
  }

  /** Stores what has changed, in the transaction of the caller. */
  store(): void {
    for (const tenant of this.#byName.values()) {
      if (tenant.isChanged) {
        const { generation = null, channel = null, transaction = null, takenMs = null } = tenant.position ?? {}
        const { committed = null } = tenant.position ?? {}
        const { id, name, goneMs } = tenant
        this.#put.run(id, name, generation, channel, transaction, takenMs, committed, goneMs)
      }
      if (tenant.losses.length > 0) this.#storeLosses(tenant.id, tenant.losses)
    }
  }

  /** The transaction of `store` is durable. */
  stored(): void {
    for (const tenant of this.#byName.values()) {
      tenant.isChanged = false
      tenant.isStored = true
      if (tenant.losses.length > 0) tenant.losses = []
    }
  }

  #storeLosses(tenant: number, losses: readonly HistoryLoss[]): void {
    let room = MAX_LOSSES - (this.#lossCount.get(tenant) ?? 0)
    for (const { native, fromMs, toMs, count, reason } of losses) {
      if (room > 0) this.#putLoss.run(tenant, native, fromMs, toMs, count, reason)
      else this.#widenLoss.run({ tenant, native, fromMs, toMs, count })
      room--
    }
  }

  /** Forgets losses that ended before this, in the transaction of the caller. */
  removeLosses(beforeMs: number): void {
    this.#oldLosses.run(beforeMs)
  }

  /** The samples of a day of some tenants go, in the transaction of the caller. */
  daysGo(tenants: Iterable<number>, endMs: number): void {
    for (const id of tenants) this.#gone.run(endMs, id)
  }

  /** The transaction of `daysGo` is durable. */
  daysGone(tenants: ReadonlySet<number>, endMs: number): void {
    for (const tenant of this.#byName.values()) {
      if (tenants.has(tenant.id)) tenant.goneMs = Math.max(tenant.goneMs, endMs)
    }
  }

  /** Removes a tenant, in the transaction of the caller; its rows go by `clear`. */
  remove(tenant: HistoryTenant): void {
    this.#remove.run(tenant.id)
    this.#leave.run(tenant.id)
  }

  /** The transaction of `remove` is durable. */
  removed(tenant: HistoryTenant): void {
    this.#byName.delete(tenant.name)
  }

  /** Whether `clear` has something to do. */
  get hasLeaving(): boolean {
    return this.#leaving.get() !== undefined
  }

  /** Whether something waits to be stored. */
  get isChanged(): boolean {
    for (const { isChanged, losses, head } of this.#byName.values())
      if (isChanged || losses.length > 0 || head.pending > 0) return true
    return false
  }

  /** Removes some rows of tenants that were removed, in the transaction of the caller. Returns whether there may be more. */
  clear(): boolean {
    const [tenant] = this.#leaving.all()
    if (tenant === undefined) return false
    // Terms go after all that leads from them.
    for (const statement of this.#rows) if (statement.run(tenant).changes > 0) return true
    this.#left.run(tenant)
    return true
  }
}
