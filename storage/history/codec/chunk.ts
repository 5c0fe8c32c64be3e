/**
 * A chunk: samples of one series, or its rollups, ascending by time. Times are stored as the differences of their differences, with runs of zeros
 * as their length: a series that is measured at even intervals costs a few bytes for all of them.
 */

import { decodeValues, MAX_ENCODED_BYTES, ValueEncoder, writeZeros } from './values.ts'
import { DamagedPage, type VarintReader, type VarintWriter } from './varints.ts'

/** The most samples of a chunk. */
export const MAX_SAMPLES = 2048
/** Times are stored as their distance from one that the page knows, in milliseconds. */
const MAX_DISTANCE = 2 ** 40
/** The most bytes that a time takes. */
const MAX_TIME_BYTES = 8

/** Times and what belongs to each of them: the values of samples, or what rollups have of a window. */
export interface ChunkColumns {
  readonly times: Float64Array
  readonly values: readonly Float64Array[]
}

export class ChunkEncoder {
  readonly #values = new ValueEncoder(MAX_SAMPLES)

  /** Writes the first `length` rows, from one to MAX_SAMPLES; none is before `baseMs`. */
  encode(writer: VarintWriter, baseMs: number, { times, values }: ChunkColumns, length: number): void {
    writer.ensure(length * (MAX_TIME_BYTES + values.length * MAX_ENCODED_BYTES) + 64 * values.length)
    encodeTimes(writer, baseMs, times, length)
    for (const column of values) this.#values.encode(writer, column, length)
  }
}

function encodeTimes(writer: VarintWriter, baseMs: number, times: Float64Array, length: number): void {
  writer.varint(times[0]! - baseMs)
  let difference = 0
  let zeros = 0
  for (let index = 1; index < length; index++) {
    const next = times[index]! - times[index - 1]!
    const change = next - difference
    difference = next
    if (change === 0) {
      zeros++
      continue
    }
    if (zeros > 0) writeZeros(writer, zeros)
    zeros = 0
    writer.signed(change)
  }
  if (zeros > 0) writeZeros(writer, zeros)
}

/** Reads `length` times into `times` from `at` on; they are ascending. Throws DamagedPage. */
function decodeTimes(reader: VarintReader, baseMs: number, times: Float64Array, at: number, length: number): void {
  const end = at + length
  let time = baseMs + reader.upTo(MAX_DISTANCE, 'is the distance of a time')
  let difference = 0
  times[at++] = time
  while (at < end) {
    const change = reader.signed()
    const zeros = change === 0 ? reader.upTo(end - at - 1, 'equal intervals') : 0
    difference += change
    if (!(difference > 0 && difference < MAX_DISTANCE)) throw new DamagedPage('times do not ascend')
    for (const stop = at + zeros + 1; at < stop; at++) {
      time += difference
      times[at] = time
    }
  }
}

/** Reads a chunk of `length` rows into the columns from `at` on. Throws DamagedPage. */
export function decodeChunk(
  reader: VarintReader,
  baseMs: number,
  into: ChunkColumns,
  at: number,
  length: number,
): void {
  decodeTimes(reader, baseMs, into.times, at, length)
  for (const column of into.values) decodeValues(reader, column, at, length)
}
