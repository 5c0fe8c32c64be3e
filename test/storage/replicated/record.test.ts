import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import {
  BatchEncoder,
  decodeRecord,
  type EpochRecord,
  encodeEpoch,
  RECORD_FORMAT,
  recordHash,
} from '../../../storage/replicated/record.ts'
import { type Batch, SETTLED_WIDTH } from '../../../storage/store.ts'
import { batch } from '../../contracts/store-batch.ts'
import { hex, join, toHex } from '../../support/bytes.ts'
import { Random } from '../../support/random.ts'

// Put together by hand from docs/protocol/replicated-log.md. Numbers are what struct.pack('<d', n) of Python gives: 1 is
// 000000000000f03f, 5 is 0000000000001440; counts and lengths are struct.pack('<I', n).
const PREVIOUS = hex('11'.repeat(32))
const EPOCH_HEX = `
  01 01 ${'11'.repeat(32)}                            format, epoch, hash of the record before
  0000000000001c40                                    epoch 7
  02000000 6e31                                       node n1
  00008056febc7842                                    wall 1,700,000,000,000
  ${'22'.repeat(32)} 01000000 67                      secret, generation g
  01 000000000000f03f 0000000000001840 0000000000407f40 ${'33'.repeat(32)}   base: log 1, epoch 6, sequence 500, hash`
const BATCH_HEX = `
  01 02 ${'11'.repeat(32)}                            format, batch, hash of the record before
  0000000000000840 000000000000f83f 00008056febc7842  number 3, age 1.5, wall 1,700,000,000,000
  01                                                  reserves
  02000000                                            two blocks: id, channel, lane, first, values,
  0000000000002040 0000000000001440 0000000000000000 000000000000f03f 000000000000f03f   8 5 0 1 1
  0000000000000000 0000000000001040                   offset, which is always 0, and length 4
  000000000000f03f 0000000000000040 0000000000000840 0000000000004440   stamp 1, from 2, to 3, metric 40
  0000000000002240 0000000000001440 0000000000000000 0000000000000040 0000000000000040   9 5 0 2 2
  0000000000000000 0000000000000840                   offset 0, length 3
  000000000000f03f 0000000000000040 0000000000000840 0000000000004440   stamp 1, from 2, to 3, metric 40
  01000000 0000000000002040 0000000000000000 000000000000f03f   settled: block 8, offset 0, length 1
  01000000 0000000000001c40 0000000000000000 0000000000003e40   moved: block 7, lane 0, first 30
  01000000 0000000000001040                           removed: 4
  01000000 0000000000001440 000000000000f03f 0000000000000840   channels: 5 1 3
  0000000000005940 0000000000000040 000000000000f03f 0000000000000000   100 2 1 0
  0000000000000000 0000000000000000 0000000000000000 0000000000000000 0000000000000000 0000000000000000 0000000000000000
  01000000 0000000000002440 0000000000001440 0000000000000000   gaps: 10 5 0
  0000000000000840 0000000000004440 0000000000001840 0000000000000040 0000000000000840 000000000000f03f   3 40 6 2 3 1
  02000000 0000000000000040 0000000000000840          gaps removed: 2 3
  01000000 01000000 02000000 a3038d94                 grown: row 1, from 2 bytes; zlib.crc32(b'\\xc1\\xc2\\xc3')
  01000000 10 01000000 78                             one change: fence x
  deadbeef c3 01                                      frames of 8, the new frame of 9, bitmap of 8`

/** The bytes of a fixture: of each line what stands before three spaces, or before words. */
const bytesOf = (fixture: string): Uint8Array => hex(fixture.replaceAll(/^ *((?:(?:[0-9a-f]{2})+ ?)*).*$/gm, '$1'))

const EPOCH: EpochRecord = {
  kind: 'epoch',
  previous: PREVIOUS,
  epoch: 7,
  node: 'n1',
  wall: 1_700_000_000_000,
  origin: { secret: hex('22'.repeat(32)), generation: 'g' },
  base: { log: 1, epoch: 6, sequence: 500, hash: hex('33'.repeat(32)) },
}

const block = { channel: 5, stamp: 1, from: 2, to: 3, metric: 40 }
const BATCH = batch(3, {
  blocks: [
    { ...block, id: 8, first: 1, values: 1, frames: hex('deadbeef') },
    { ...block, id: 9, first: 2, values: 2, frames: hex('c1c2c3') },
  ],
  settled: [[8, hex('01')]],
  moved: [[7, 0, 30]],
  removed: [4],
  channels: [[5, 1, 3, 100, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0]],
  gaps: [[10, 5, 0, 3, 40, 6, 2, 3, 1]],
  gapsRemoved: [2, 3],
  changes: [{ put: 'fence', row: { sensor: 'x' } }],
  reserves: true,
  age: 1.5,
  wall: 1_700_000_000_000,
})

const epochBytes = bytesOf(EPOCH_HEX)
const batchBytes = bytesOf(BATCH_HEX)
/** What the database has of block 9. */
const stored = (id: number) => (id === 9 ? hex('c1c2') : undefined)
const none = () => undefined

/** An encoder after the record in which block 9 had its first frames. */
function encoderWithBlock9(): BatchEncoder {
  const encoder = new BatchEncoder()
  encoder.encode(batch(2, { blocks: [{ ...block, id: 9, first: 2, values: 1, frames: hex('c1c2') }] }), PREVIOUS)
  encoder.appended()
  return encoder
}

function decodedBatch(bytes: Uint8Array, frames: (id: number) => Uint8Array | undefined = none): Batch {
  const record = decodeRecord(bytes, frames)
  if (record.kind !== 'batch') throw new Error(`it is an ${record.kind}`)
  return record.batch
}

/** A batch with only the bytes of its data that count. */
const comparable = (of: Batch) => ({ ...of, data: toHex(new Uint8Array(of.data, 0, of.dataLength)) })

const refused = (code: string, offset?: number) =>
  expect.objectContaining({ name: 'RecordError', code, ...(offset !== undefined && { offset }) })

describe('an epoch', () => {
  test('is what the document says', () => {
    expect(toHex(encodeEpoch(EPOCH))).toBe(toHex(epochBytes))
    expect(decodeRecord(epochBytes, none)).toEqual(EPOCH)
  })

  test('has no base if a node can follow from the log alone', () => {
    const bytes = join(epochBytes.subarray(0, 93), hex('00'))
    expect(toHex(encodeEpoch({ ...EPOCH, base: undefined }))).toBe(toHex(bytes))
    expect(decodeRecord(bytes, none)).toEqual({ ...EPOCH, base: undefined })
  })

  test('is refused if no reader would take it', () => {
    const { origin } = EPOCH
    const short = hex('22'.repeat(31))
    for (const wrong of [
      { previous: short },
      { epoch: 1.5 },
      { epoch: -1 },
      { wall: Number.NaN },
      { origin: { ...origin, secret: short } },
    ])
      expect(() => encodeEpoch({ ...EPOCH, ...wrong })).toThrow(refused('MALFORMED'))
    const message = /^31 bytes where 32 belong$/
    expect(() => encodeEpoch({ ...EPOCH, origin: { ...origin, secret: short } })).toThrow(message)
  })
})

describe('a batch', () => {
  test('is what the document says', () => {
    expect(toHex(encoderWithBlock9().encode(BATCH, PREVIOUS))).toBe(toHex(batchBytes))
    expect(decodeRecord(batchBytes, stored)).toMatchObject({ kind: 'batch', previous: PREVIOUS })
    expect(comparable(decodedBatch(batchBytes, stored))).toEqual(comparable(BATCH))
  })

  test('has memory of its own, aligned, wherever the bytes of the record are', () => {
    const room = Buffer.concat([Buffer.alloc(3), batchBytes])
    const read = decodedBatch(room.subarray(3), stored)
    room.fill(0)
    expect(comparable(read)).toEqual(comparable(BATCH))
    expect(read.data).toBeInstanceOf(ArrayBuffer)
    expect(read.data.byteLength).toBe(read.dataLength)
    const { blocks, moved, settled, removed, channels, gaps, gapsRemoved } = read
    const memory = [blocks, moved, settled, removed, channels, gaps, gapsRemoved].map(({ buffer }) => buffer)
    expect(new Set(memory).size).toBe(7)
  })

  test('may be empty', () => {
    const bytes = new BatchEncoder().encode(batch(1), PREVIOUS)
    expect(comparable(decodedBatch(bytes))).toEqual(comparable(batch(1)))
  })

  test('keeps frames and bitmaps of any size and order, and leaves out bytes that no row has', () => {
    const random = new Random(1)
    const some = (length: number) => Uint8Array.from({ length }, () => random.below(256))
    for (let round = 0; round < 50; round++) {
      const ids = Array.from({ length: random.below(20) }, (_, index) => index + 1)
      const blocks = ids.map((id) => ({ id, frames: some(random.below(3) * random.below(3000)) }))
      const settled = ids.map((id) => [id, some(random.below(9))] as const)
      const full = batch(round, { blocks, settled, reserves: random.below(2) === 1 })
      const read = decodedBatch(new BatchEncoder().encode(full, PREVIOUS))
      expect(comparable(read)).toEqual(comparable(full))
      // The bitmap that is first in `data` is left out, so others begin elsewhere.
      const fewer = { ...full, settled: full.settled.slice(SETTLED_WIDTH) }
      const left = decodedBatch(new BatchEncoder().encode(fewer, PREVIOUS))
      const bits = (of: Batch) => toHex(new Uint8Array(of.data, of.settled.at(-2), of.settled.at(-1)))
      if (left.settled.length > 0) expect(bits(left)).toBe(bits(full))
      expect(left.dataLength).toBe(full.dataLength - (full.settled[2] ?? 0))
    }
  })

  test('is refused if its rows are none, or point outside of its data', () => {
    const encode = (part: Partial<Batch>) => () => new BatchEncoder().encode({ ...BATCH, ...part }, PREVIOUS)
    expect(encode({ gaps: new Float64Array(8) })).toThrow('8 numbers are no rows of 9')
    expect(encode({ blocks: BATCH.blocks.with(6, 9) })).toThrow('blocks of batch 3: block 8 is outside of the data')
    expect(encode({ blocks: BATCH.blocks.with(6, 1.5) })).toThrow(refused('MALFORMED'))
    expect(encode({ blocks: BATCH.blocks.slice(0, 12) })).toThrow(refused('MALFORMED'))
    expect(encode({ settled: BATCH.settled.with(1, -1) })).toThrow('settled of batch 3: block 8')
    expect(encode({ number: 0.5 })).toThrow('0.5 is not a whole number')
    const hash = hex('11'.repeat(33))
    expect(() => new BatchEncoder().encode(BATCH, hash)).toThrow('33 bytes where 32 belong')
  })
})

describe('a record', () => {
  const fixtures: [string, Uint8Array][] = [
    ['epoch', epochBytes],
    ['batch', batchBytes],
  ]

  test('has a hash of all its bytes', () => {
    // SHA-256 of "abc", from FIPS 180-2.
    const abc = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'
    expect(toHex(recordHash(hex('616263')))).toBe(abc)
    expect(toHex(recordHash(batchBytes))).toBe(createHash('sha256').update(batchBytes).digest('hex'))
  })

  test('of another format or kind is too new', () => {
    expect(RECORD_FORMAT).toBe(1)
    const other = (at: number, value: number) => () => decodeRecord(batchBytes.with(at, value), stored)
    expect(other(0, 2)).toThrow('the record has format 2, this version reads 1 (byte 0 of the record)')
    expect(other(0, 0)).toThrow(refused('TOO_NEW', 0))
    expect(other(1, 3)).toThrow(refused('TOO_NEW', 1))
  })

  test.each(fixtures)('that is cut is refused: %s', (_, bytes) => {
    for (let length = 0; length < bytes.length; length++)
      expect(() => decodeRecord(bytes.subarray(0, length), stored), `${length} bytes`).toThrow(refused('MALFORMED'))
    expect(() => decodeRecord(join(bytes, hex('00')), stored)).toThrow(refused('MALFORMED'))
  })

  test.each(fixtures)('with any bit flipped decodes or is refused: %s', (_, bytes) => {
    let refusals = 0
    for (let bit = 0; bit < bytes.length * 8; bit++)
      if (isRefused(bytes.with(bit >> 3, bytes[bit >> 3]! ^ (1 << (bit & 7))))) refusals++
    // Those of the format and the kind, at least, and the lengths.
    expect(refusals).toBeGreaterThan(16 + 32)
  })

  test('of random bytes is refused', () => {
    const random = new Random(2)
    for (let round = 0; round < 3_000; round++) {
      const bytes = Uint8Array.from({ length: 2 + random.below(300) }, () => random.below(256))
      // Without a right beginning it would not come far.
      const [head, kind] = [hex('01'), Uint8Array.of(1 + random.below(2))]
      expect(isRefused(bytes)).toBe(true)
      isRefused(join(head, kind, bytes))
      isRefused(join(batchBytes.subarray(0, random.below(batchBytes.length)), bytes))
    }
  })

  test('that promises more than it has takes no memory', () => {
    // Counts of 2^32 - 1 rows, and a block of 2^52 bytes.
    for (const at of [59, 239]) expect(isRefused(join(batchBytes.subarray(0, at), hex('ffffffff')))).toBe(true)
    const length = 63 + 6 * 8
    const bytes = join(batchBytes.subarray(0, length), hex('0000000000003043'), batchBytes.subarray(length + 8))
    expect(() => decodeRecord(bytes, stored)).toThrow('bytes of frames and bitmaps expected, 6 left')
  })

  /** Whether it is refused as it has to be; every other error fails the test. */
  function isRefused(bytes: Uint8Array): boolean {
    try {
      decodeRecord(bytes, stored)
      return false
    } catch (error) {
      expect(error).toMatchObject({ name: 'RecordError' })
      return true
    }
  }
})
