/**
 * The values of a chunk. Most measurements are decimals of a few places: then the whole numbers without the point are stored, as
 * differences or as differences of differences, whichever is shorter, with runs of zeros as their length. What is no decimal is
 * XORed with the value before it, in planes of one byte each, of which deflate makes more than of the values one by one.
 *
 *     decimals   places | 8 if differences of differences | 16 if there are exceptions
 *                exceptions: their number, then of each the distance to the last one, and what it is
 *                the first number, then the differences; a 0 is followed by the length of the run less one
 *     planes     32, then the highest bytes of all values, the next ones ...
 */
import { DamagedPage, type VarintReader, type VarintWriter } from './varints.ts'
import { STALE_HIGH, STALE_LOW, wordsOf } from './words.ts'

/** Places of decimals: 1 to 10^7. */
const POWERS = Float64Array.from([1, 10, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7])
const PLACES = 7
const SECOND = 8
const HAS_EXCEPTIONS = 16
const PLANES = 32
/** Below it the differences of differences are whole numbers that a varint takes. */
const MAX_MANTISSA = 2 ** 49
/** With more of them planes are shorter. */
const VALUES_PER_EXCEPTION = 8

/** Of an exception: a stale marker, or any other value, whose eight bytes follow. */
const STALE = 0
const OTHER = 1

/** The most bytes that a value takes: an exception with its distance. */
export const MAX_ENCODED_BYTES = 18

/** The mantissas of one chunk at a time. */
export class ValueEncoder {
  readonly #mantissas: Float64Array
  readonly #exceptions: Int32Array
  #exceptionCount = 0
  #count = 0

  constructor(maxValues: number) {
    this.#mantissas = new Float64Array(maxValues)
    this.#exceptions = new Int32Array(Math.ceil(maxValues / VALUES_PER_EXCEPTION) + 1)
  }

  /** Needs room for MAX_ENCODED_BYTES of each value and 16 more. */
  encode(writer: VarintWriter, values: Float64Array, length: number): void {
    const places = this.#decimals(values, length)
    if (places < 0) planes(writer, values, length)
    else this.#write(writer, places, values)
  }

  /** Finds the places with which all values are whole numbers, but for a few exceptions; -1 if there are none. */
  #decimals(values: Float64Array, length: number): number {
    let places = 0
    for (let index = 0; index < length; index++) {
      const value = values[index]!
      while (!isWhole(value, POWERS[places]!)) {
        if (isException(value)) break
        if (++places > PLACES) return -1
      }
    }
    return this.#take(values, length, places) ? places : -1
  }

  /** Makes mantissas. It fails if there are too many exceptions, or values that need more places are too large for these. */
  #take(values: Float64Array, length: number, places: number): boolean {
    const power = POWERS[places]!
    const most = Math.floor(length / VALUES_PER_EXCEPTION) + 1
    let exceptions = 0
    let count = 0
    for (let index = 0; index < length; index++) {
      const value = values[index]!
      if (isWhole(value, power)) this.#mantissas[count++] = Math.round(value * power)
      else if (!isException(value) || exceptions === most) return false
      else this.#exceptions[exceptions++] = index
    }
    this.#exceptionCount = exceptions
    this.#count = count
    return true
  }

  #write(writer: VarintWriter, places: number, values: Float64Array): void {
    const mantissas = this.#mantissas
    const count = this.#count
    const second = isSecondShorter(mantissas, count)
    writer.byte(places | (second ? SECOND : 0) | (this.#exceptionCount > 0 ? HAS_EXCEPTIONS : 0))
    if (this.#exceptionCount > 0) this.#writeExceptions(writer, values)
    if (count === 0) return
    writer.signed(mantissas[0]!)
    let last = mantissas[0]!
    let lastDifference = 0
    let zeros = 0
    for (let index = 1; index < count; index++) {
      const difference = mantissas[index]! - last
      last = mantissas[index]!
      const written = second ? difference - lastDifference : difference
      lastDifference = difference
      if (written === 0) {
        zeros++
        continue
      }
      if (zeros > 0) writeZeros(writer, zeros)
      zeros = 0
      writer.signed(written)
    }
    if (zeros > 0) writeZeros(writer, zeros)
  }

  #writeExceptions(writer: VarintWriter, values: Float64Array): void {
    const words = wordsOf(values)
    writer.varint(this.#exceptionCount)
    let last = 0
    for (let number = 0; number < this.#exceptionCount; number++) {
      const index = this.#exceptions[number]!
      writer.varint(index - last)
      last = index
      const low = words[2 * index]!
      const high = words[2 * index + 1]!
      if (high === STALE_HIGH && low === STALE_LOW) {
        writer.byte(STALE)
        continue
      }
      writer.byte(OTHER)
      for (let shift = 0; shift < 32; shift += 8) writer.byte((low >>> shift) & 255)
      for (let shift = 0; shift < 32; shift += 8) writer.byte((high >>> shift) & 255)
    }
  }
}

/** What no number of places makes whole: NaN, infinities, negative zero. */
function isException(value: number): boolean {
  return value - value !== 0 || (value === 0 && 1 / value < 0)
}

function isWhole(value: number, power: number): boolean {
  const mantissa = Math.round(value * power)
  if (!(mantissa < MAX_MANTISSA && mantissa > -MAX_MANTISSA) || mantissa / power !== value) return false
  return mantissa !== 0 || 1 / value > 0
}

export function writeZeros(writer: VarintWriter, zeros: number): void {
  writer.byte(0)
  writer.varint(zeros - 1)
}

/** About how many bytes a difference takes, apart from runs. */
function bytesOf(difference: number): number {
  if (difference === 0) return 0
  const size = Math.abs(difference)
  if (size < 64) return 1
  if (size < 8192) return 2
  return size < 1048576 ? 3 : 5
}

function isSecondShorter(mantissas: Float64Array, count: number): boolean {
  let first = 0
  let second = 0
  let last = mantissas[0]!
  let lastDifference = 0
  for (let index = 1; index < count; index++) {
    const difference = mantissas[index]! - last
    last = mantissas[index]!
    first += bytesOf(difference)
    second += bytesOf(difference - lastDifference)
    lastDifference = difference
  }
  return second < first
}

function planes(writer: VarintWriter, values: Float64Array, length: number): void {
  writer.byte(PLANES)
  const words = wordsOf(values)
  const { bytes, length: at } = writer
  let lastLow = 0
  let lastHigh = 0
  for (let index = 0; index < length; index++) {
    const low = words[2 * index]!
    const high = words[2 * index + 1]!
    const lowBits = low ^ lastLow
    const highBits = high ^ lastHigh
    lastLow = low
    lastHigh = high
    let plane = at + index
    for (let shift = 24; shift >= 0; shift -= 8, plane += length) bytes[plane] = highBits >>> shift
    for (let shift = 24; shift >= 0; shift -= 8, plane += length) bytes[plane] = lowBits >>> shift
  }
  writer.length = at + 8 * length
}

/** Reads `length` values into `values` from `at` on. Throws DamagedPage. */
export function decodeValues(reader: VarintReader, values: Float64Array, at: number, length: number): void {
  const mode = reader.byte()
  if (mode === PLANES) decodePlanes(reader.bytes, reader.skip(8 * length), values, at, length)
  else if (mode < PLANES) decodeDecimals(reader, mode, values, at, length)
  else throw new DamagedPage(`values of an unknown kind, ${mode}`)
}

function decodePlanes(bytes: Uint8Array, start: number, values: Float64Array, at: number, length: number): void {
  const words = wordsOf(values)
  let low = 0
  let high = 0
  for (let index = 0; index < length; index++) {
    let plane = start + index
    for (let shift = 24; shift >= 0; shift -= 8, plane += length) high ^= bytes[plane]! << shift
    for (let shift = 24; shift >= 0; shift -= 8, plane += length) low ^= bytes[plane]! << shift
    words[2 * (at + index)] = low
    words[2 * (at + index) + 1] = high
  }
}

function decodeDecimals(reader: VarintReader, mode: number, values: Float64Array, at: number, length: number): void {
  if ((mode & HAS_EXCEPTIONS) === 0) {
    decodeMantissas(reader, mode, values, at, length)
    return
  }
  const exceptions = readExceptions(reader, length)
  decodeMantissas(reader, mode, values, at, length - exceptions.length / 3)
  place(exceptions, values, at, length)
}

/** Of each exception its index and its two words, the lower one first. */
function readExceptions(reader: VarintReader, length: number): Uint32Array {
  const count = reader.upTo(length, 'exceptions')
  const exceptions = new Uint32Array(3 * count)
  let index = 0
  for (let at = 0; at < exceptions.length; at += 3) {
    index += reader.varint()
    if (index >= length || (at > 0 && index === exceptions[at - 3])) throw new DamagedPage('an exception has no place')
    exceptions[at] = index
    exceptions[at + 1] = STALE_LOW
    exceptions[at + 2] = STALE_HIGH
    if (reader.byte() === STALE) continue
    exceptions[at + 1] = readWord(reader)
    exceptions[at + 2] = readWord(reader)
  }
  return exceptions
}

function readWord(reader: VarintReader): number {
  return reader.byte() | (reader.byte() << 8) | (reader.byte() << 16) | (reader.byte() << 24)
}

/** Moves the values apart, from the last one on, and puts the exceptions between them. */
function place(exceptions: Uint32Array, values: Float64Array, at: number, length: number): void {
  const words = wordsOf(values)
  let next = exceptions.length - 3
  let from = at + length - exceptions.length / 3
  for (let index = length - 1; next >= 0; index--) {
    if (exceptions[next] !== index) {
      values[at + index] = values[--from]!
      continue
    }
    words[2 * (at + index)] = exceptions[next + 1]!
    words[2 * (at + index) + 1] = exceptions[next + 2]!
    next -= 3
  }
}

/** Where a query spends most of its time: the numbers of one and two bytes, which most are, are read right here. */
function decodeMantissas(reader: VarintReader, mode: number, values: Float64Array, at: number, count: number): void {
  const power = POWERS[mode & PLACES]!
  const second = (mode & SECOND) !== 0
  if (count === 0) return
  const { bytes } = reader
  const lastPair = reader.end - 2
  const end = at + count
  let mantissa = reader.signed()
  let difference = 0
  let next = reader.at
  values[at++] = mantissa / power
  while (at < end) {
    let written = 0
    const low = next <= lastPair ? bytes[next]! : 128
    const high = next <= lastPair ? bytes[next + 1]! : 128
    if (low < 128) {
      written = (low >>> 1) ^ -(low & 1)
      next++
    } else if (high < 128) {
      const zigzag = (low & 127) | (high << 7)
      written = (zigzag >>> 1) ^ -(zigzag & 1)
      next += 2
    } else {
      reader.at = next
      written = reader.signed()
      next = reader.at
    }
    if (written === 0) {
      reader.at = next
      const zeros = reader.upTo(end - at - 1, 'equal differences') + 1
      next = reader.at
      if (second && difference !== 0) {
        for (const stop = at + zeros; at < stop; at++) {
          mantissa += difference
          values[at] = mantissa / power
        }
      } else {
        values.fill(mantissa / power, at, at + zeros)
        at += zeros
      }
      continue
    }
    difference = second ? difference + written : written
    mantissa += difference
    values[at++] = mantissa / power
  }
  reader.at = next
}
