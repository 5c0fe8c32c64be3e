import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ChunkEncoder, decodeChunk, MAX_SAMPLES } from '../../../../storage/history/codec/chunk.ts'
import { DamagedPage, VarintReader, VarintWriter } from '../../../../storage/history/codec/varints.ts'
import { isStaleMarker, STALE_HIGH, STALE_LOW, wordsOf } from '../../../../storage/history/codec/words.ts'
import { newColumns } from '../../../../storage/history/run-cursor.ts'
import { times } from '../../../support/long.ts'
import { doubles } from '../../../support/odd-numbers.ts'
import { Random } from '../../../support/random.ts'

const BASE_MS = Date.UTC(2026, 7, 31)

/** A stale marker, or a number; markers have to be written by words. */
type Value = number | 'stale'

function columnOf(values: readonly Value[]): Float64Array {
  const column = new Float64Array(values.length)
  const words = wordsOf(column)
  for (const [index, value] of values.entries()) {
    if (value !== 'stale') column[index] = value
    else {
      words[2 * index] = STALE_LOW
      words[2 * index + 1] = STALE_HIGH
    }
  }
  return column
}

function regular(length: number, stepMs = 15_000): Float64Array {
  return Float64Array.from({ length }, (_, index) => BASE_MS + 1 + index * stepMs)
}

function encode(at: Float64Array, values: Float64Array): Uint8Array {
  const writer = new VarintWriter(16)
  new ChunkEncoder().encode(writer, BASE_MS, { times: at, values: [values] }, at.length)
  return writer.written.slice()
}

/** Encodes and decodes, compares all bits, and returns the bytes. */
function expectSame(at: Float64Array, values: Float64Array): number {
  const bytes = encode(at, values)
  const columns = newColumns(1, at.length)
  const reader = new VarintReader(bytes)
  decodeChunk(reader, BASE_MS, columns, 0, at.length)
  expect(reader.at).toBe(bytes.length)
  expect(columns.times).toEqual(at)
  expect(wordsOf(columns.values[0]!)).toEqual(wordsOf(values))
  return bytes.length
}

/** Encodes values at even times. */
const sizeOf = (values: readonly Value[]): number => expectSame(regular(values.length), columnOf(values))

describe('a chunk', () => {
  const random = new Random(1)
  const many = Array.from({ length: 1440 }, (_, index) => index)

  it.each<[what: string, values: readonly Value[], bytesAtMost: number]>([
    ['a constant', many.map(() => 42), 20],
    ['a counter that grows evenly', many.map((index) => 1e9 + 15 * index), 32],
    ['a counter that grows by up to 63', counter(() => random.below(64)), 1440 + 900],
    ['a counter that grows by up to 1,000', counter(() => random.below(1000)), 2 * 1440 + 20],
    ['decimals of two places', many.map(() => Math.round(random.next() * 400) / 100), 2 * 1440 + 20],
    ['seconds of a processor', counter(() => random.below(1500)).map((value) => value / 100), 2 * 1440 + 30],
    ['a counter that began again', many.map((index) => (index % 700) * 3), 40],
    ['zeros of both signs', [0, -0, 0, -0, 0, 0, 0, -0], 100],
    ['a gauge with stale markers', many.map((index) => (index % 100 === 99 ? 'stale' : 7)), 90],
    ['nothing but stale markers', many.map(() => 'stale'), 8 * 1440 + 20],
    ['one stale marker', ['stale'], 16],
    ['a single number', [0.1], 12],
  ])('gives back %s, in few bytes', (_, values, bytesAtMost) => {
    expect(sizeOf(values)).toBeLessThanOrEqual(bytesAtMost)
  })

  function counter(step: () => number): number[] {
    let sum = 0
    return many.map(() => (sum += step()))
  }

  it.each([
    ['what needs all bits', many.map(() => random.next())],
    ['numbers near the bounds of whole numbers', [2 ** 49, 2 ** 49 - 1, -(2 ** 49), 2 ** 53, 2 ** 53 + 2, 1, 0]],
    ['alternating huge numbers', many.map((index) => (index % 2 === 0 ? 1 : -1) * (2 ** 49 - 1 - index))],
    ['huge, tiny and none', [1e300, -1e300, 5e-324, Number.MAX_VALUE, Number.NaN, Infinity, -Infinity, -0, 0]],
    ['decimals that cannot be told from others', [0.1 + 0.2, 0.3, 1.1 * 3, 3.3, 1e-7, 123456.7, 1e21, 1e22]],
    ['other numbers that are none', [Number.NaN, 1, 2, 3, 4, 5, 6, 7, 8, 9, Infinity, 10]],
  ])('gives back %s', (_, values) => {
    sizeOf(values)
  })

  it('keeps every bit of numbers that are none', () => {
    const values = columnOf([1, 2, 3, 4, 5, 6, 7, 8, 9])
    const words = wordsOf(values)
    words.set([0xdeadbeef, 0xfff80001], 2)
    words.set([STALE_LOW, STALE_HIGH], 10)
    expectSame(regular(9), values)
    expect(isStaleMarker(words, 5)).toBe(true)
    expect(isStaleMarker(words, 1)).toBe(false)
  })

  it('gives back times at any distance', () => {
    const at = Float64Array.from([1, 2, 3, 4, 1000, 2000, 3000, 86_400_000, 31 * 86_400_000], (ms) => BASE_MS + ms)
    expectSame(at, columnOf([1, 2, 3, 4, 5, 6, 7, 8, 9]))
  })

  it('gives back whatever is put in', () => {
    const value = fc.oneof(
      { weight: 3, arbitrary: fc.integer({ min: -5000, max: 5000 }).map((cents) => cents / 100) },
      { weight: 1, arbitrary: doubles },
      { weight: 1, arbitrary: fc.constant<Value>('stale') },
    )
    const sample = fc.tuple(fc.oneof(fc.constant(1000), fc.integer({ min: 1, max: 100_000 })), value)
    fc.assert(
      fc.property(fc.array(sample, { minLength: 1, maxLength: 200 }), (samples) => {
        let time = BASE_MS
        const at = Float64Array.from(samples, ([step]) => (time += step))
        expectSame(at, columnOf(samples.map(([, one]) => one)))
      }),
      { numRuns: times({ short: 300, long: 5_000 }) },
    )
  })

  it('takes as many samples as it may have', () => {
    sizeOf(Array.from({ length: MAX_SAMPLES }, () => random.next() * 1e9))
  })
})

describe('bytes that are no chunk', () => {
  const whole = [
    encode(
      regular(300),
      columnOf(Array.from({ length: 300 }, (_, index) => (index % 50 === 0 ? 'stale' : index * 1.5))),
    ),
    encode(regular(300), columnOf(Array.from({ length: 300 }, (_, index) => Math.sqrt(index)))),
    encode(regular(300), columnOf(Array.from({ length: 300 }, () => 5))),
  ]

  const columns = newColumns(1, MAX_SAMPLES)

  /** Decodes into columns of a length that is known, and expects nothing but the named error. */
  function decode(bytes: Uint8Array, length: number): boolean {
    try {
      decodeChunk(new VarintReader(bytes), BASE_MS, columns, 0, length)
      expect(
        columns.times.subarray(0, length).findIndex((time, row) => row > 0 && !(time > columns.times[row - 1]!)),
      ).toBe(-1)
      return true
    } catch (error) {
      expect(error).toBeInstanceOf(DamagedPage)
      return false
    }
  }

  it('are noticed wherever they are cut', () => {
    for (const bytes of whole) {
      expect(decode(bytes, 300)).toBe(true)
      for (let end = 0; end < bytes.length; end++) expect(decode(bytes.subarray(0, end), 300)).toBe(false)
    }
  })

  it('end with the named error, or with other samples', () => {
    const random = new Random(2)
    for (let round = 0; round < times({ short: 1000, long: 20_000 }); round++) {
      const bytes = random.pick(whole).slice()
      for (let count = 1 + random.below(3); count > 0; count--) bytes[random.below(bytes.length)] = random.below(256)
      decode(bytes, random.pick([1, 299, 300, 301, MAX_SAMPLES]))
      decode(
        Uint8Array.from({ length: random.below(40) }, () => random.below(256)),
        1 + random.below(MAX_SAMPLES),
      )
    }
  })
})
