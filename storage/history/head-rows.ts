/** The rows of fresh.db with the samples of commits that are in no page yet: what the heads of tenants have, and a crash leaves. */
import { crc32 } from 'node:zlib'
import type { Database, Statement } from 'better-sqlite3'
import { blockBytes, decodeBlock, encodeBlock, rangeOfTimes, type StoredBlock } from './head.ts'
import type { HistoryTenant } from './history-tenants.ts'

interface ColumnsRow {
  readonly id: number
  readonly tenant: number
  readonly fromMs: number
  readonly toMs: number
  readonly samples: number
  readonly checksum: number
  readonly data: Uint8Array
}

/** A row whose samples cannot be read. */
export type UnreadableRow = Pick<ColumnsRow, 'fromMs' | 'toMs' | 'samples'>

export class HeadRows {
  readonly #put: Statement
  readonly #remove: Statement
  readonly #all: Statement<unknown[], ColumnsRow>

  constructor(database: Database) {
    this.#put = database.prepare('insert into columns values (null, ?, ?, ?, ?, ?, ?)')
    this.#remove = database.prepare('delete from columns where tenant = ? and id <= ?')
    this.#all = database.prepare<unknown[], ColumnsRow>(
      'select id, tenant, from_ms as fromMs, to_ms as toMs, samples, checksum, data from columns order by id',
    )
  }

  /** Stores what waits in the head of a tenant, in the transaction of the caller. */
  put({ id, head }: HistoryTenant): StoredBlock {
    const block = head.copyPending()
    const data = encodeBlock(block)
    const { fromMs, toMs } = rangeOfTimes(block)
    const { lastInsertRowid } = this.#put.run(id, fromMs, toMs, block.series.length, crc32(data), data)
    return { ...block, row: Number(lastInsertRowid), fromMs, toMs }
  }

  /** Removes the rows of a tenant up to one, in the transaction of the caller. */
  remove(tenant: number, last: number): void {
    this.#remove.run(tenant, last)
  }

  /** Gives each tenant its rows, and `damaged` those that are not as they were written. */
  load(
    tenants: Iterable<HistoryTenant>,
    nowMs: number,
    damaged: (tenant: HistoryTenant, row: UnreadableRow) => void,
  ): void {
    const byId = new Map<number, HistoryTenant>()
    for (const tenant of tenants) byId.set(tenant.id, tenant)
    for (const row of this.#all.iterate()) {
      const tenant = byId.get(row.tenant)
      if (tenant === undefined) continue
      const { id, data, samples, checksum } = row
      if (crc32(data) === checksum && data.length === blockBytes(samples)) {
        const block = decodeBlock(data, samples)
        tenant.head.add({ ...block, ...rangeOfTimes(block), row: id }, nowMs)
      } else damaged(tenant, row)
    }
  }
}
