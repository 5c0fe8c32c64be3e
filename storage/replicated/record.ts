/**
 * Records of the replicated log: an epoch, with which a node begins to lead, or a batch. docs/protocol/replicated-log.md has every
 * byte. Nothing in them depends on the version of Node, and equal batches give equal bytes. Offsets into `data` are in no record:
 * frames and bitmaps stand in the order of their rows.
 */
import { createHash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import {
  type Batch,
  BLOCK_WIDTH,
  CHANNEL_WIDTH,
  GAP_WIDTH,
  MOVE_WIDTH,
  SETTLED_WIDTH,
  SMALL_BLOCK_BYTES,
} from '../store.ts'
import { decodeChanges, encodeChanges } from './changes.ts'
import {
  double,
  flag,
  hash32,
  object,
  orNothing,
  RecordError,
  type RecordField,
  RecordReader,
  RecordWriter,
  text,
  whole,
} from './codec.ts'
import { BLOCK_LENGTH, BLOCK_OFFSET, BlockGrowth, type GrownBlock } from './growth.ts'
import type { LogPlace } from './place.ts'

export { RecordError } from './codec.ts'

/** The first byte of each record. It changes with every change of the layout, other than another tag of a change. */
export const RECORD_FORMAT = 1

/** A node begins to lead. */
export interface EpochRecord {
  readonly kind: 'epoch'
  /** SHA-256 of the record before; 32 zero bytes in the first. */
  readonly previous: Uint8Array
  readonly epoch: number
  /** The name of the node. */
  readonly node: string
  /** ms since 1970 */
  readonly wall: number
  /** What all databases of the cluster share; the secret has 32 bytes. */
  readonly origin: { readonly secret: Uint8Array; readonly generation: string }
  /**
   * The place of the database that this log was founded with; undefined if that database was empty: then a new node can follow
   * from the log alone.
   */
  readonly base: LogPlace | undefined
}

export interface BatchRecord {
  readonly kind: 'batch'
  /** SHA-256 of the record before. */
  readonly previous: Uint8Array
  readonly batch: Batch
}

export type LogRecord = EpochRecord | BatchRecord

const EPOCH = 1
const BATCH = 2

const epochFields = object<Omit<EpochRecord, 'kind' | 'previous'>>({
  epoch: whole,
  node: text,
  wall: double,
  origin: object({ secret: hash32, generation: text }),
  base: orNothing(object<LogPlace>({ log: whole, epoch: whole, sequence: whole, hash: hash32 })),
})
const batchFields = object<Pick<Batch, 'number' | 'age' | 'wall' | 'reserves'>>({
  number: whole,
  age: double,
  wall: double,
  reserves: flag,
})
const blocksField = rowsOf(BLOCK_WIDTH)
const settledField = rowsOf(SETTLED_WIDTH)
const rowsFields = object<Pick<Batch, 'moved' | 'removed' | 'channels' | 'gaps' | 'gapsRemoved'>>({
  moved: rowsOf(MOVE_WIDTH),
  removed: rowsOf(1),
  channels: rowsOf(CHANNEL_WIDTH),
  gaps: rowsOf(GAP_WIDTH),
  gapsRemoved: rowsOf(1),
})

const SETTLED_OFFSET = 1
const SETTLED_LENGTH = 2
/** More than the fields of a batch need that have a fixed length. */
const HEAD_BYTES = 128
/** A row of a grown block: its row in `blocks`, base and checksum, 32 bits each. */
const GROWN_BYTES = 12

/** SHA-256 of a whole record, by which the next one names it. */
export function recordHash(bytes: Uint8Array): Uint8Array {
  return Uint8Array.from(createHash('sha256').update(bytes).digest())
}

/** Throws RecordError if a hash or the secret has another length than 32 bytes, or a number is none. */
export function encodeEpoch(record: EpochRecord): Uint8Array {
  const writer = begin(EPOCH, record.previous)
  epochFields.write(writer, record)
  return writer.bytes()
}

/** Makes records of batches. It remembers which blocks the log has, as long as one node is the only one that appends. */
export class BatchEncoder {
  readonly #growth: BlockGrowth

  /** `growth` is what it remembers of the log. */
  constructor(growth = new BlockGrowth()) {
    this.#growth = growth
  }

  /**
   * The record of a batch. `previous` is the hash of the record before. Throws RecordError if the batch has changes that belong to
   * one node, or rows that no store could take.
   */
  encode(batch: Batch, previous: Uint8Array): Uint8Array {
    const { blocks, settled } = batch
    const size = checkedBytes(batch, 'blocks') + checkedBytes(batch, 'settled')
    const grown = this.#growth.find(batch)
    const changes = encodeChanges(batch.changes)
    const writer = begin(
      BATCH,
      previous,
      HEAD_BYTES + rowBytes(batch) + grown.length * GROWN_BYTES + changes.length + size,
    )
    batchFields.write(writer, batch)
    blocksField.write(writer, withoutOffsets(blocks, BLOCK_WIDTH, BLOCK_OFFSET))
    settledField.write(writer, withoutOffsets(settled, SETTLED_WIDTH, SETTLED_OFFSET))
    rowsFields.write(writer, batch)
    writeGrown(writer, grown)
    writer.raw(changes)
    writeData(writer, batch, grown)
    return writer.bytes()
  }

  /** The record that was encoded last is in the log. Without this, the next record does not rely on it. */
  appended(): void {
    this.#growth.appended()
  }

  /** After a takeover or a failure: the next records rely on nothing before them. */
  reset(): void {
    this.#growth.reset()
  }
}

/**
 * Reads a record. `stored` gives the stored frames of a block; it is called for blocks of which the record has only the frames
 * that are new. Throws RecordError: TOO_NEW for what a newer version has written, NO_BASE if the stored frames are missing or do
 * not fit, MALFORMED for everything else.
 */
export function decodeRecord(bytes: Uint8Array, stored: (block: number) => Uint8Array | undefined): LogRecord {
  const reader = new RecordReader(bytes)
  const format = reader.uint8()
  if (format !== RECORD_FORMAT)
    throw new RecordError('TOO_NEW', `the record has format ${format}, this version reads ${RECORD_FORMAT}`, 0)
  const kind = reader.uint8()
  const previous = hash32.read(reader)
  if (kind === BATCH) return { kind: 'batch', previous, batch: readBatch(reader, stored) }
  if (kind !== EPOCH) throw new RecordError('TOO_NEW', `this version knows no kind ${kind} of records`, 1)
  const epoch = epochFields.read(reader)
  if (reader.remaining > 0)
    throw new RecordError('MALFORMED', `${reader.remaining} bytes follow the last field`, reader.offset)
  return { kind: 'epoch', previous, ...epoch }
}

function begin(kind: number, previous: Uint8Array, capacity?: number): RecordWriter {
  const writer = new RecordWriter(capacity)
  writer.uint8(RECORD_FORMAT)
  writer.uint8(kind)
  hash32.write(writer, previous)
  return writer
}

/** Rows of `width` numbers: how many, then all of them. */
function rowsOf(width: number): RecordField<Float64Array> {
  return {
    write(writer, numbers) {
      const count = numbers.length / width
      if (!Number.isInteger(count))
        throw new RecordError('MALFORMED', `${numbers.length} numbers are no rows of ${width}`)
      writer.uint32(count)
      writer.doubles(numbers)
    },
    read: (reader) => reader.doubles(reader.uint32() * width),
  }
}

function rowBytes(batch: Batch): number {
  const { blocks, moved, settled, removed, channels, gaps, gapsRemoved } = batch
  return [blocks, moved, settled, removed, channels, gaps, gapsRemoved].reduce((sum, rows) => sum + rows.byteLength, 0)
}

function withoutOffsets(rows: Float64Array, width: number, column: number): Float64Array {
  const copy = rows.slice()
  for (let at = column; at < copy.length; at += width) copy[at] = 0
  return copy
}

/** The bytes that rows have in `data`, where each has to have its own. */
function checkedBytes(batch: Batch, name: 'blocks' | 'settled'): number {
  const rows = batch[name]
  const [width, column] = name === 'blocks' ? [BLOCK_WIDTH, BLOCK_OFFSET] : [SETTLED_WIDTH, SETTLED_OFFSET]
  let sum = 0
  for (let at = 0; at < rows.length; at += width) {
    const [offset, length] = [rows[at + column]!, rows[at + column + 1]!]
    const isInside = Number.isInteger(offset) && Number.isInteger(length) && offset >= 0 && length >= 0
    if (!isInside || offset + length > batch.dataLength)
      throw new RecordError('MALFORMED', `${name} of batch ${batch.number}: block ${rows[at]} is outside of the data`)
    sum += length
  }
  return sum
}

function writeGrown(writer: RecordWriter, grown: readonly GrownBlock[]): void {
  writer.uint32(grown.length)
  for (const { row, base, checksum } of grown) {
    writer.uint32(row)
    writer.uint32(base)
    writer.uint32(checksum)
  }
}

/** Frames, those of grown blocks without what the log has, then bitmaps. What is adjacent in `data` is copied at once. */
function writeData(writer: RecordWriter, { blocks, settled, data }: Batch, grown: readonly GrownBlock[]): void {
  let [from, to] = [0, 0]
  const add = (offset: number, length: number): void => {
    if (offset !== to) {
      writer.raw(new Uint8Array(data, from, to - from))
      from = offset
    }
    to = offset + length
  }
  let next = 0
  for (let at = 0, row = 0; at < blocks.length; at += BLOCK_WIDTH, row++) {
    const base = grown[next]?.row === row ? grown[next++]!.base : 0
    add(blocks[at + BLOCK_OFFSET]! + base, blocks[at + BLOCK_LENGTH]! - base)
  }
  for (let at = 0; at < settled.length; at += SETTLED_WIDTH)
    add(settled[at + SETTLED_OFFSET]!, settled[at + SETTLED_LENGTH]!)
  writer.raw(new Uint8Array(data, from, to - from))
}

function readBatch(reader: RecordReader, stored: (block: number) => Uint8Array | undefined): Batch {
  const head = batchFields.read(reader)
  const blocks = blocksField.read(reader)
  const settled = settledField.read(reader)
  const rows = rowsFields.read(reader)
  const grownAt = reader.offset + 4
  const grown = readGrown(reader, blocks)
  const changes = decodeChanges(reader)
  const frameBytes = lay(blocks, BLOCK_WIDTH, BLOCK_OFFSET, 0)
  const dataLength = lay(settled, SETTLED_WIDTH, SETTLED_OFFSET, frameBytes)
  const carried = dataLength - grown.reduce((sum, { base }) => sum + base, 0)
  if (carried !== reader.remaining) {
    const found = `${carried} bytes of frames and bitmaps expected, ${reader.remaining} left`
    throw new RecordError('MALFORMED', found, reader.offset)
  }
  const data = new Uint8Array(dataLength)
  let filled = 0
  for (const [index, growth] of grown.entries()) {
    const at = growth.row * BLOCK_WIDTH
    const [id, begin, length] = [blocks[at]!, blocks[at + BLOCK_OFFSET]!, blocks[at + BLOCK_LENGTH]!]
    data.set(reader.view(begin - filled), filled)
    filled = begin + length
    const frames = data.subarray(begin, filled)
    const old = stored(id)
    if (old !== undefined) frames.set(old.subarray(0, growth.base))
    frames.set(reader.view(length - growth.base), growth.base)
    checkGrown(id, growth, old, frames, grownAt + index * GROWN_BYTES)
  }
  data.set(reader.view(reader.remaining), filled)
  return { ...head, ...rows, blocks, settled, changes, data: data.buffer, dataLength }
}

/** The bound of their base is what keeps a small record from filling the memory. */
function readGrown(reader: RecordReader, blocks: Float64Array): GrownBlock[] {
  const count = reader.uint32()
  const grown: GrownBlock[] = []
  let row = -1
  while (grown.length < count) {
    const at = reader.offset
    const found = { row: reader.uint32(), base: reader.uint32(), checksum: reader.uint32() }
    const length = blocks[found.row * BLOCK_WIDTH + BLOCK_LENGTH]
    if (length === undefined || found.row <= row)
      throw new RecordError('MALFORMED', `a grown block is in row ${found.row}, after row ${row}`, at)
    if (found.base === 0 || found.base >= SMALL_BLOCK_BYTES || !(found.base <= length))
      throw new RecordError('MALFORMED', `a block of ${length} bytes cannot have grown from ${found.base}`, at)
    row = found.row
    grown.push(found)
  }
  return grown
}

/**
 * Gives each row its offset, in order from `offset` on; returns where the last one ends. Each length is checked: those of a few
 * rows could otherwise make up for each other.
 */
function lay(rows: Float64Array, width: number, column: number, offset: number): number {
  for (let at = 0; at < rows.length; at += width) {
    const length = rows[at + column + 1]!
    if (!Number.isSafeInteger(length) || length < 0)
      throw new RecordError('MALFORMED', `block ${rows[at]} has ${length} bytes`)
    rows[at + column] = offset
    offset += length
  }
  return offset
}

function checkGrown(
  id: number,
  { base, checksum }: GrownBlock,
  old: Uint8Array | undefined,
  frames: Uint8Array,
  at: number,
): void {
  const refuse = (why: string): never => {
    throw new RecordError('NO_BASE', `block ${id} has grown from ${base} bytes, ${why}`, at)
  }
  if (old === undefined) refuse('which are not stored here')
  else if (old.length < base) refuse(`but only ${old.length} are stored here`)
  else if (crc32(frames) !== checksum) refuse('but those stored here are others')
}
