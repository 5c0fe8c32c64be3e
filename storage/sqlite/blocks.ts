/**
 * The tables of blocks: rows of frames, bitmaps of their settled values, and the ids of damaged rows.
 *
 * A row has two checksums in one number. The frame checksum covers id, channel, number of values and frames, so it also detects
 * a row under a wrong id. The place checksum covers all other columns: it can be checked without reading the frames, and a
 * release renews it without touching them. Blocks of format 1 have no place checksum until they are released.
 */
import { crc32 } from 'node:zlib'
import type { Database, Statement } from 'better-sqlite3'
import { type Batch, BLOCK_WIDTH, MOVE_WIDTH, SETTLED_WIDTH } from '../store.ts'
import { RowSum } from './damage/checksum.ts'
import { IS_KEPT, inOrder, type Ordered } from './damage/order.ts'
import { codeOf, isUnreadable } from './errors.ts'

/** The columns of the place checksum, in this order. */
const PLACE = 'id, channel, lane, first, count, stamp, "from", "to", metric'
const PLACE_WIDTH = 9
/** The frame checksum is the low 32 bits; above it are 20 bits of the place checksum and one bit that marks its presence. */
const PLACE_AT = 2 ** 32
const PLACE_BITS = 2 ** 20

export const BLOCK_ORDER: Ordered = { table: 'block', place: 'first', width: BLOCK_WIDTH }

export interface BlocksFound {
  /** BLOCK_WIDTH numbers each, ascending by channel, lane, first, id. */
  readonly blocks: Float64Array
  /** Ids of blocks whose place does not match its checksum. */
  readonly damaged: readonly number[]
}
export interface SettledFound {
  readonly sound: ReadonlyMap<number, Uint8Array>
  /** Ids of blocks whose bitmap does not match its checksum. */
  readonly damaged: readonly number[]
}

export class BlockTables {
  readonly #database: Database
  readonly #put: Statement<unknown[]>
  readonly #move: Statement<unknown[]>
  readonly #settle: Statement<unknown[]>
  readonly #remove: Statement<unknown[]>
  readonly #removeSettled: Statement<unknown[]>
  readonly #ofChannel: Statement<unknown[], number>
  readonly #get: Statement<unknown[], unknown[]>
  readonly #place: Statement<unknown[], number[]>
  readonly #setAside: Statement<unknown[]>
  /** Ids of rows set aside, which are no longer served, moved or deleted. */
  readonly #damaged: Set<number>
  /** Blocks with lower ids may be of format 1. */
  readonly #placedFrom: number
  readonly #headSum = new RowSum(3)
  readonly #placeSum = new RowSum(PLACE_WIDTH)
  readonly #settledSum = new RowSum(1)

  constructor(database: Database) {
    this.#database = database
    this.#put = database.prepare('insert or replace into block values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)')
    this.#move = database.prepare('update block set lane = ?, first = ?, checksum = ? where id = ?')
    this.#settle = database.prepare('insert or replace into settled select id, ?, ? from block where id = ?')
    this.#remove = database.prepare('delete from block where id = ?')
    this.#removeSettled = database.prepare('delete from settled where block = ?')
    this.#ofChannel = database.prepare<unknown[], number>('select id from block where channel = ?').pluck()
    this.#get = database.prepare<unknown[], unknown[]>(`select ${PLACE}, checksum, data from block where id = ?`).raw()
    this.#place = database.prepare<unknown[], number[]>(`select ${PLACE}, checksum from block where id = ?`).raw()
    this.#setAside = database.prepare('insert or ignore into damaged values (?, ?)')
    this.#placedFrom = database.prepare<unknown[], number>('select placed_from from meta').pluck().get() ?? 0
    this.#damaged = new Set(database.prepare<unknown[], number>('select id from damaged').pluck().all())
  }

  /** How many blocks are set aside because they are damaged. */
  get setAsideCount(): number {
    return this.#damaged.size
  }

  /**
   * Stores the blocks of a batch inside the caller's transaction, which has removed those that go. Returns the highest id, or 0
   * without blocks.
   */
  store(batch: Batch): number {
    const highest = this.#putAll(batch, new Set(batch.removed))
    const { moved, settled } = batch
    for (let at = 0; at < moved.length; at += MOVE_WIDTH) this.#moveTo(moved[at]!, moved[at + 1]!, moved[at + 2]!)
    for (let at = 0; at < settled.length; at += SETTLED_WIDTH) {
      const id = settled[at]!
      const bits = Buffer.from(batch.data, settled[at + 1], settled[at + 2])
      if (!this.#damaged.has(id)) this.#settle.run(bits, this.#settledChecksum(id, bits), id)
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
      const [stamp, from, to, metric] = [blocks[at + 7]!, blocks[at + 8]!, blocks[at + 9]!, blocks[at + 10]!]
      const [lane, first] = [blocks[at + 2]!, blocks[at + 3]!]
      const place = [id, channel, lane, first, count, stamp, from, to, metric]
      const checksum = this.#framesChecksum(place, frames) + this.#placeChecksum(place)
      this.#put.run(id, channel, lane, first, count, stamp, from, to, metric, checksum, frames)
    }
    return highest
  }

  /** A damaged row keeps its checksum, so that the damage is still detected. */
  #moveTo(id: number, lane: number, first: number): void {
    if (this.#damaged.has(id)) return
    const row = this.#place.get(id)
    if (row === undefined || !this.#isPlaced(row)) return
    const checksum = (row[PLACE_WIDTH]! % PLACE_AT) + this.#placeChecksum(row.with(2, lane).with(3, first))
    this.#move.run(lane, first, checksum, id)
  }

  /** Up to `rows` blocks of a channel. Those set aside stay in their table and do not count. */
  ofChannel(channel: number, rows: number): number[] {
    const ids: number[] = []
    if (rows <= 0) return ids
    for (const id of this.#ofChannel.iterate(channel)) {
      if (this.#damaged.has(id)) continue
      ids.push(id)
      if (ids.length >= rows) break
    }
    return ids
  }

  /** Removes a block inside the caller's transaction. */
  remove(id: number): void {
    if (!this.#damaged.has(id)) this.#remove.run(id)
    this.#removeSettled.run(id)
  }

  /** Removes up to `rows` blocks of a channel inside the caller's transaction; returns how many. */
  removeOfChannel(channel: number, rows: number): number {
    const ids = this.ofChannel(channel, rows)
    for (const id of ids) {
      // Only a damaged index names a block that is not in its table. It would be found again for ever.
      if (this.#remove.run(id).changes === 0) this.#giveUp(id, 'index')
      this.#removeSettled.run(id)
    }
    return ids.length
  }

  /** The frames of a block; `undefined` if it is missing or damaged, and then set aside. Called outside a transaction. */
  read(id: number): Uint8Array | undefined {
    if (this.#damaged.has(id)) return undefined
    try {
      const row = this.#get.get(id)
      if (row === undefined) return undefined
      const frames = row.at(-1)
      if (frames instanceof Uint8Array && this.#isSound(row as number[], frames)) return frames
      this.#giveUp(id, 'checksum')
    } catch (error) {
      if (!isUnreadable(error)) throw error
      this.#giveUp(id, codeOf(error))
    }
    return undefined
  }

  /**
   * Sets a row aside. It stays in its table for examination: if a page number in it is damaged, deleting the row would free
   * pages of other blocks.
   */
  #giveUp(id: number, reason: string): void {
    this.#damaged.add(id)
    try {
      this.#removeSettled.run(id)
      this.#setAside.run(id, reason)
    } catch (error) {
      // Those tables are damaged as well: the damage is found again at the next start.
      if (!isUnreadable(error)) throw error
    }
  }

  /** Sets aside blocks whose place is damaged. */
  setAside(ids: readonly number[]): void {
    for (const id of ids) this.#giveUp(id, 'checksum')
  }

  /** Sets blocks aside in memory only, if nothing can be written. */
  neglect(ids: readonly number[]): void {
    for (const id of ids) this.#damaged.add(id)
  }

  /** Rewrites all bitmaps, since one under a wrong block id cannot be found to delete it. */
  replaceSettled(settled: ReadonlyMap<number, Uint8Array>): void {
    this.#database.exec('delete from settled')
    for (const [id, bits] of settled) this.#settle.run(bits, this.#settledChecksum(id, bits), id)
  }

  /** Sets aside the damaged ones of these blocks, so that touching them no longer fails. Called outside a transaction. */
  examine(ids: Iterable<number>): void {
    for (const id of ids) this.read(id)
  }

  /** The ids of blocks that a batch would overwrite or move. Those that it removes can be marked instead. */
  touchedBy(batch: Batch): number[] {
    const ids: number[] = []
    for (let at = 0; at < batch.blocks.length; at += BLOCK_WIDTH) ids.push(batch.blocks[at]!)
    for (let at = 0; at < batch.moved.length; at += MOVE_WIDTH) ids.push(batch.moved[at]!)
    return ids
  }

  /** All blocks that are kept, without their frames: SQLite finds the length of `data` without reading it. */
  directory(): BlocksFound {
    const rows = this.#database.prepare<unknown[], number[]>(`
      select ${PLACE}, checksum, length(data) from block not indexed where ${IS_KEPT}`)
    const total = this.#database.prepare<unknown[], number>('select count(*) from block not indexed').pluck().get() ?? 0
    const blocks = new Float64Array(total * BLOCK_WIDTH)
    const damaged: number[] = []
    let at = 0
    for (const row of rows.raw().iterate()) {
      const [id, channel, lane, first, count, stamp, from, to, metric, , length] = row
      if (this.#isPlaced(row)) {
        blocks.set([id!, channel!, lane!, first!, count!, 0, length!, stamp!, from!, to!, metric!], at)
        at += BLOCK_WIDTH
      } else damaged.push(id!)
    }
    return { blocks: inOrder(blocks.subarray(0, at), BLOCK_ORDER), damaged }
  }

  settled(): SettledFound {
    const rows = this.#database.prepare<unknown[], [number, Uint8Array, number]>('select * from settled')
    const sound = new Map<number, Uint8Array>()
    const damaged: number[] = []
    for (const [id, bits, checksum] of rows.raw().iterate()) {
      if (bits instanceof Uint8Array && checksum === this.#settledChecksum(id, bits)) sound.set(id, bits)
      else damaged.push(id)
    }
    return { sound, damaged }
  }

  /** Checks a row of the columns PLACE and the checksum. */
  #isPlaced(row: readonly number[]): boolean {
    const checksum = row[PLACE_WIDTH]!
    const place = checksum - (checksum % PLACE_AT)
    if (place === 0 && row[0]! < this.#placedFrom) return Number.isInteger(checksum)
    return place === this.#placeChecksum(row)
  }

  #isSound(row: readonly number[], frames: Uint8Array): boolean {
    return this.#isPlaced(row) && row[PLACE_WIDTH]! % PLACE_AT === this.#framesChecksum(row, frames)
  }

  #placeChecksum(place: readonly number[]): number {
    return ((this.#placeSum.of(place) % PLACE_BITS) + PLACE_BITS) * PLACE_AT
  }

  #framesChecksum(place: readonly number[], frames: Uint8Array): number {
    return continued(this.#headSum.of([place[0]!, place[1]!, place[4]!]), frames)
  }

  #settledChecksum(id: number, bits: Uint8Array): number {
    return continued(this.#settledSum.of([id]), bits)
  }
}

function continued(sum: number, bytes: Uint8Array): number {
  // zlib returns 0 for no bytes, whatever `sum` is.
  return bytes.length === 0 ? sum : crc32(bytes, sum)
}
