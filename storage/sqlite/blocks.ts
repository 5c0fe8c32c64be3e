/**
 * The blocks: rows of frames, which values of them are settled, and what had to be set aside.
 *
 * The checksum is over id, channel, number of values and frames, so a row served under a wrong id is noticed too. Lane
 * and first transaction id are not in it: a release changes them without touching the frames.
 */
import { crc32 } from 'node:zlib'
import type { Database, Statement } from 'better-sqlite3'
import { type Batch, BLOCK_WIDTH, MOVE_WIDTH, SETTLED_WIDTH } from '../store.ts'
import { codeOf, isUnreadable } from './errors.ts'

interface StoredBlock {
  readonly channel: number
  readonly count: number
  readonly checksum: number
  readonly data: Uint8Array
}

export interface Directory {
  /** BLOCK_WIDTH numbers each, ascending by channel, lane, first, id. */
  readonly blocks: Float64Array
  readonly settled: ReadonlyMap<number, Uint8Array>
}

export class Blocks {
  readonly #database: Database
  readonly #put: Statement<unknown[]>
  readonly #move: Statement<unknown[]>
  readonly #settle: Statement<unknown[]>
  readonly #remove: Statement<unknown[]>
  readonly #removeSettled: Statement<unknown[]>
  readonly #ofChannel: Statement<unknown[], number>
  readonly #get: Statement<unknown[], StoredBlock>
  readonly #setAside: Statement<unknown[]>
  /** Set aside: not served, moved or deleted any more. */
  readonly #damaged: Set<number>
  readonly #head = new DataView(new ArrayBuffer(24))

  constructor(database: Database) {
    this.#database = database
    this.#put = database.prepare('insert or replace into block values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)')
    this.#move = database.prepare('update block set lane = ?, first = ? where id = ?')
    this.#settle = database.prepare('insert or replace into settled select id, ? from block where id = ?')
    this.#remove = database.prepare('delete from block where id = ?')
    this.#removeSettled = database.prepare('delete from settled where block = ?')
    this.#ofChannel = database.prepare<unknown[], number>('select id from block where channel = ?').pluck()
    this.#get = database.prepare('select channel, count, checksum, data from block where id = ?')
    this.#setAside = database.prepare('insert or ignore into damaged values (?, ?)')
    this.#damaged = new Set(database.prepare<unknown[], number>('select id from damaged').pluck().all())
  }

  /** The part of a batch about blocks, inside the caller's transaction. Returns the highest id, 0 without blocks. */
  store(batch: Batch): number {
    const gone = new Set(batch.removed)
    // First of all: what they free is room for what follows.
    for (const id of batch.removed) this.#delete(id)
    const highest = this.#putAll(batch, gone)
    const { moved, settled } = batch
    for (let at = 0; at < moved.length; at += MOVE_WIDTH) {
      if (!this.#damaged.has(moved[at]!)) this.#move.run(moved[at + 1], moved[at + 2], moved[at])
    }
    for (let at = 0; at < settled.length; at += SETTLED_WIDTH) {
      const bits = Buffer.from(batch.data, settled[at + 1], settled[at + 2])
      if (!this.#damaged.has(settled[at]!)) this.#settle.run(bits, settled[at])
    }
    return highest
  }

  #putAll({ blocks, data }: Batch, gone: ReadonlySet<number>): number {
    let highest = 0
    for (let at = 0; at < blocks.length; at += BLOCK_WIDTH) {
      const id = blocks[at]!
      if (id > highest) highest = id
      if (gone.has(id) || this.#damaged.has(id)) continue
      const channel = blocks[at + 1]!
      const count = blocks[at + 4]!
      const frames = Buffer.from(data, blocks[at + 5], blocks[at + 6])
      const checksum = this.#checksum(id, channel, count, frames)
      const lane = blocks[at + 2]
      const first = blocks[at + 3]
      const [stamp, from, to, metric] = [blocks[at + 7], blocks[at + 8], blocks[at + 9], blocks[at + 10]]
      this.#put.run(id, channel, lane, first, count, stamp, from, to, metric, checksum, frames)
    }
    return highest
  }

  removeChannel(channel: number): void {
    for (const id of this.#ofChannel.all(channel)) this.#delete(id)
  }

  #delete(id: number): void {
    if (!this.#damaged.has(id)) this.#remove.run(id)
    this.#removeSettled.run(id)
  }

  /** The frames of a block; `undefined` if it is not there or damaged: then it is set aside. Outside a transaction. */
  read(id: number): Uint8Array | undefined {
    if (this.#damaged.has(id)) return undefined
    try {
      const row = this.#get.get(id)
      if (row === undefined) return undefined
      if (row.checksum === this.#checksum(id, row.channel, row.count, row.data)) return row.data
      this.#giveUp(id, 'checksum')
    } catch (error) {
      if (!isUnreadable(error)) throw error
      this.#giveUp(id, codeOf(error))
    }
    return undefined
  }

  /**
   * The row stays where it is, for whoever wants to look at it: if what was damaged is a page number, deleting the row
   * would free pages of other blocks.
   */
  #giveUp(id: number, reason: string): void {
    this.#damaged.add(id)
    this.#removeSettled.run(id)
    this.#setAside.run(id, reason)
  }

  /** Sets aside what of these blocks is damaged, so that touching them no longer fails. Outside a transaction. */
  examine(ids: Iterable<number>): void {
    for (const id of ids) this.read(id)
  }

  /** The ids that a batch would overwrite, move or delete. */
  touchedBy(batch: Batch): number[] {
    const ids = [...batch.removed]
    for (let at = 0; at < batch.blocks.length; at += BLOCK_WIDTH) ids.push(batch.blocks[at]!)
    for (let at = 0; at < batch.moved.length; at += MOVE_WIDTH) ids.push(batch.moved[at]!)
    for (const change of batch.changes) {
      if ('remove' in change && change.remove === 'channel') ids.push(...this.#ofChannel.all(change.id))
    }
    return ids
  }

  /** All blocks, without their frames: SQLite finds the length of `data` without reading it. */
  directory(): Directory {
    const total = this.#database.prepare<unknown[], number>('select count(*) from block').pluck().get() ?? 0
    const blocks = new Float64Array(total * BLOCK_WIDTH)
    const rows = this.#database.prepare<unknown[], number[]>(`
      select id, channel, lane, first, count, 0, length(data), stamp, "from", "to", metric from block
      where id not in (select id from damaged) order by channel, lane, first, id`)
    let at = 0
    for (const row of rows.raw().iterate()) {
      blocks.set(row, at)
      at += BLOCK_WIDTH
    }
    const settled = this.#database.prepare<unknown[], [number, Buffer]>('select block, bits from settled').raw()
    return { blocks: blocks.slice(0, at), settled: new Map(settled.all()) }
  }

  #checksum(id: number, channel: number, count: number, frames: Uint8Array): number {
    this.#head.setFloat64(0, id)
    this.#head.setFloat64(8, channel)
    this.#head.setFloat64(16, count)
    const head = crc32(this.#head)
    // Of no bytes zlib makes 0, whatever went before.
    return frames.length === 0 ? head : crc32(frames, head)
  }
}
