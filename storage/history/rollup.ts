/**
 * Rollups of one series: samples are added in order, and each window that has some becomes a row. Numbers are compared and added as
 * Prometheus does it: a value that is not a number is the least and the greatest only if there is no other.
 */
import type { ChunkColumns } from './codec/chunk.ts'
import { isStaleMarker, wordsOf } from './codec/words.ts'
import { windowEnd } from './periods.ts'

/** Columns of a rollup after its end: min, max, sum, count, first, the distance of its time from the end, last, its distance, resets. */
export const ROLLUP_COLUMNS = 9

export class RollupBuilder {
  readonly columns: ChunkColumns
  length = 0
  #end = 0
  #min = 0
  #max = 0
  #sum = 0
  /** What the sum has lost by rounding (Kahan, Neumaier). */
  #rest = 0
  #count = 0
  #first = 0
  #firstTime = 0
  #last = 0
  #lastTime = 0
  #resets = 0

  /** `windows`: the most that are added between two `clear`. */
  constructor(windows: number) {
    const column = (): Float64Array => new Float64Array(windows)
    this.columns = { times: column(), values: Array.from({ length: ROLLUP_COLUMNS }, column) }
  }

  /** Adds samples of the series; each is later than those before. */
  add(times: Float64Array, values: Float64Array, length: number): void {
    const words = wordsOf(values)
    for (let index = 0; index < length; index++) {
      const time = times[index]!
      if (time > this.#end) {
        this.#close()
        this.#end = windowEnd(time)
      }
      if (!isStaleMarker(words, index)) this.#take(time, values[index]!)
    }
  }

  /** Ends the last window. The columns are valid until `clear`. */
  finish(): void {
    this.#close()
    this.#end = 0
  }

  clear(): void {
    this.length = 0
  }

  #take(time: number, value: number): void {
    if (this.#count === 0) {
      this.#first = value
      this.#firstTime = time
      this.#min = value
      this.#max = value
      this.#sum = 0
      this.#rest = 0
      this.#resets = 0
    } else {
      if (value < this.#last) this.#resets += this.#last
      if (value < this.#min || Number.isNaN(this.#min)) this.#min = value
      if (value > this.#max || Number.isNaN(this.#max)) this.#max = value
    }
    this.#count++
    this.#last = value
    this.#lastTime = time
    const sum = this.#sum + value
    if (Number.isFinite(sum)) {
      this.#rest += Math.abs(this.#sum) >= Math.abs(value) ? this.#sum - sum + value : value - sum + this.#sum
    } else this.#rest = 0
    this.#sum = sum
  }

  #close(): void {
    if (this.#count === 0) return
    const row = [
      this.#min,
      this.#max,
      this.#sum + this.#rest,
      this.#count,
      this.#first,
      this.#end - this.#firstTime,
      this.#last,
      this.#end - this.#lastTime,
      this.#resets,
    ]
    this.columns.times[this.length] = this.#end
    for (const [column, value] of row.entries()) this.columns.values[column]![this.length] = value
    this.length++
    this.#count = 0
  }
}
