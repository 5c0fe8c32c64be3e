/** Samples in columns, as the history takes them. They grow, and are used again and again. */
import { STALE_NAN } from '../../../protocol/prometheus/stale-marker.ts'
import type { HistoryBatch } from '../../../storage/history/store.ts'

const FIRST_CAPACITY = 1_024

const STALE_BITS = (BigInt(STALE_NAN.high) << 32n) | BigInt(STALE_NAN.low)

export class SampleColumns implements Pick<HistoryBatch, 'series' | 'times' | 'values' | 'length'> {
  series = new Uint32Array(FIRST_CAPACITY)
  times = new Float64Array(FIRST_CAPACITY)
  values = new Float64Array(FIRST_CAPACITY)
  length = 0
  #bits = new BigUint64Array(this.values.buffer)

  /** `series`: its reference in the history. */
  add(series: number, timeMs: number, value: number): void {
    const at = this.#next(series, timeMs)
    this.values[at] = value
  }

  /** The series has ended. An ordinary assignment may lose which NaN it is. */
  addStale(series: number, timeMs: number): void {
    const at = this.#next(series, timeMs)
    this.#bits[at] = STALE_BITS
  }

  clear(): void {
    this.length = 0
  }

  #next(series: number, timeMs: number): number {
    if (this.length === this.series.length) this.#grow()
    const at = this.length++
    this.series[at] = series
    this.times[at] = timeMs
    return at
  }

  #grow(): void {
    const capacity = 2 * this.length
    const [series, bits] = [new Uint32Array(capacity), new BigUint64Array(capacity)]
    const times = new Float64Array(capacity)
    series.set(this.series)
    times.set(this.times)
    // As integers, so that each NaN stays the one that it is.
    bits.set(this.#bits)
    this.series = series
    this.times = times
    this.#bits = bits
    this.values = new Float64Array(bits.buffer)
  }
}

export class ColumnsByTenant extends Map<string, SampleColumns> {
  /** Those of a tenant, made when they are needed first. */
  of(tenant: string): SampleColumns {
    let columns = this.get(tenant)
    if (columns === undefined) {
      columns = new SampleColumns()
      this.set(tenant, columns)
    }
    return columns
  }
}
