import { describe, expect, test } from 'vitest'
import { BlockGrowth } from '../../../storage/replicated/growth.ts'
import { BatchEncoder, decodeRecord } from '../../../storage/replicated/record.ts'
import { BLOCK_WIDTH, SMALL_BLOCK_BYTES } from '../../../storage/store.ts'
import { batch, frames, type TestBatch } from '../../contracts/store-batch.ts'
import { join, toHex } from '../../support/bytes.ts'

const PREVIOUS = new Uint8Array(32)

/** A log and what a follower has stored of it. */
class Replica {
  readonly encoder: BatchEncoder
  readonly growth: BlockGrowth
  readonly stored = new Map<number, Uint8Array>()
  /** How many blocks were asked for, in all records. */
  asked = 0
  #number = 0

  constructor(max?: number) {
    this.growth = new BlockGrowth(max)
    this.encoder = new BatchEncoder(this.growth)
  }

  encode(parts: TestBatch): Uint8Array {
    return this.encoder.encode(batch(++this.#number, parts), PREVIOUS)
  }

  /** Appends a batch to the log and applies it; returns the size of its record. */
  append(parts: TestBatch): number {
    const bytes = this.encode(parts)
    this.encoder.appended()
    this.apply(bytes)
    return bytes.length
  }

  apply(bytes: Uint8Array): void {
    const record = decodeRecord(bytes, (id) => {
      this.asked++
      return this.stored.get(id)
    })
    if (record.kind !== 'batch') throw new Error(`it is an ${record.kind}`)
    const { blocks, data, removed } = record.batch
    for (let at = 0; at < blocks.length; at += BLOCK_WIDTH)
      this.stored.set(blocks[at]!, new Uint8Array(data, blocks[at + 5], blocks[at + 6]))
    for (const id of removed) this.stored.delete(id)
  }
}

const grown = (id: number, bytes: Uint8Array): TestBatch => ({ blocks: [{ id, frames: bytes }] })
const refused = (code: string) => expect.objectContaining({ name: 'RecordError', code })
/** What a record of a grown block has more than another: row, base and checksum. */
const GROWN = 12

describe('a block that has grown', () => {
  const [first, second, third] = [frames(1, 100), frames(2, 60), frames(3, 2000)]

  test('is in the record with its new frames only, until it grows no more', () => {
    const replica = new Replica()
    const alone = replica.append(grown(7, first)) - first.length
    expect(replica.append(grown(7, join(first, second)))).toBe(alone + GROWN + second.length)
    expect(replica.append(grown(7, join(first, second, third)))).toBe(alone + GROWN + third.length)
    expect(replica.growth.remembered).toBe(0)
    const all = join(first, second, third)
    expect(toHex(replica.stored.get(7)!)).toBe(toHex(all))
    expect(replica.append(grown(7, join(all, first)))).toBe(alone + all.length + first.length)
    expect(replica.asked).toBe(2)
  })

  test('may be one of many', () => {
    const replica = new Replica()
    const some = (round: number) =>
      Array.from({ length: 50 }, (_, id) => ({ id, frames: frames(id, (id % 3) * 10 + round * (id % 4)) }))
    for (let round = 0; round < 5; round++) {
      replica.append({ blocks: some(round), settled: [[1, frames(9, 3)]] })
      for (const { id, frames: bytes } of some(round)) expect(replica.stored.get(id)).toEqual(bytes)
    }
    expect(replica.asked).toBeGreaterThan(100)
  })

  test('is whole in the record if the log has other frames, or more', () => {
    const replica = new Replica()
    replica.append(grown(7, first))
    const numbered = first.with(12, first[12]! + 1)
    replica.append(grown(7, join(numbered, second)))
    expect(toHex(replica.stored.get(7)!)).toBe(toHex(join(numbered, second)))
    replica.append(grown(7, numbered))
    expect(toHex(replica.stored.get(7)!)).toBe(toHex(numbered))
    expect(replica.asked).toBe(0)
  })

  test('is stored again as it was, without a frame in the record', () => {
    const replica = new Replica()
    replica.append(grown(7, first))
    replica.append(grown(7, first))
    expect(toHex(replica.stored.get(7)!)).toBe(toHex(first))
    expect(replica.asked).toBe(1)
  })

  test('relies only on what is in the log', () => {
    const replica = new Replica()
    replica.encode(grown(7, first))
    replica.apply(replica.encode(grown(7, join(first, second))))
    expect(replica.asked).toBe(0)
    replica.encoder.appended()
    replica.encoder.reset()
    replica.append(grown(7, join(first, second, first)))
    expect(replica.asked).toBe(0)
    expect(toHex(replica.stored.get(7)!)).toBe(toHex(join(first, second, first)))
  })

  test('is forgotten when it is removed', () => {
    const replica = new Replica()
    replica.append(grown(7, first))
    replica.append({ removed: [7, 8] })
    expect(replica.growth.remembered).toBe(0)
    replica.append({ ...grown(7, first), removed: [7] })
    expect(replica.growth.remembered).toBe(0)
  })

  test('at the size from which blocks grow no more is not remembered', () => {
    const replica = new Replica()
    replica.append(grown(7, frames(1, SMALL_BLOCK_BYTES - 1)))
    replica.append(grown(8, frames(1, SMALL_BLOCK_BYTES)))
    replica.append(grown(9, frames(1, 0)))
    expect(replica.growth.remembered).toBe(1)
  })

  test('that has not grown for the longest time is forgotten when there are too many', () => {
    const replica = new Replica(3)
    for (const id of [1, 2, 3]) replica.append(grown(id, first))
    replica.append(grown(1, join(first, second)))
    replica.append(grown(4, first))
    expect([replica.growth.remembered, replica.growth.forgotten]).toEqual([3, 1])
    replica.asked = 0
    replica.append(grown(2, join(first, second)))
    expect(replica.asked).toBe(0)
    replica.append(grown(1, join(first, second, first)))
    expect(replica.asked).toBe(1)
    expect(toHex(replica.stored.get(2)!)).toBe(toHex(join(first, second)))
  })
})

describe('a follower', () => {
  const [first, second] = [frames(1, 100), frames(2, 60)]

  /** A replica that has block 7, and the record in which it grows. */
  function ready(): { replica: Replica; record: Uint8Array } {
    const replica = new Replica()
    replica.append(grown(7, first))
    return { replica, record: replica.encode(grown(7, join(first, second))) }
  }

  test('may apply a record again', () => {
    const { replica, record } = ready()
    replica.apply(record)
    replica.apply(record)
    expect(toHex(replica.stored.get(7)!)).toBe(toHex(join(first, second)))
  })

  test('refuses a record without the frames before', () => {
    const { replica, record } = ready()
    replica.stored.delete(7)
    const message = 'block 7 has grown from 100 bytes, which are not stored here'
    expect(() => replica.apply(record)).toThrow(refused('NO_BASE'))
    expect(() => replica.apply(record)).toThrow(message)
  })

  test('refuses a record if its frames are fewer, or others', () => {
    const { replica, record } = ready()
    replica.stored.set(7, first.subarray(1))
    expect(() => replica.apply(record)).toThrow('but only 99 are stored here')
    replica.stored.set(7, first.with(99, first[99]! ^ 1))
    expect(() => replica.apply(record)).toThrow('but those stored here are others')
    expect(() => replica.apply(record)).toThrow(refused('NO_BASE'))
  })

  test('refuses a base that no encoder writes, before it asks for frames', () => {
    const { replica, record } = ready()
    replica.asked = 0
    // The last 12 bytes before the number of changes and the new frames.
    const at = record.length - second.length - 4 - GROWN
    const view = new DataView(record.buffer, record.byteOffset)
    expect([view.getUint32(at, true), view.getUint32(at + 4, true)]).toEqual([0, 100])
    for (const base of [0, 161, SMALL_BLOCK_BYTES, 2 ** 32 - 1]) {
      view.setUint32(at + 4, base, true)
      expect(() => replica.apply(record)).toThrow(`a block of 160 bytes cannot have grown from ${base}`)
    }
    view.setUint32(at + 4, 100, true)
    for (const row of [1, 2 ** 32 - 1]) {
      view.setUint32(at, row, true)
      expect(() => replica.apply(record)).toThrow(`a grown block is in row ${row}`)
    }
    expect(replica.asked).toBe(0)
  })
})
