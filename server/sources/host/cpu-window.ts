/**
 * The two readings that a CPU percentage covers. For a reader with a key (a polled series) these are its own previous reading
 * and this one, whatever others read in between. The first reading of a key, and any reading without a key (QUERY), covers
 * the time since a sample that somebody took 1 to 60 s ago or, without one, since the start of the host.
 */
import { AT_BOOT, type CpuPercent, type CpuSample, type CpuTimes, percentBetween } from './cpu.ts'

/** Times count in steps of 10 ms: over less than a second, percentages would mostly be rounding errors. */
const SHORTEST_MS = 1_000
const LONGEST_MS = 60_000

interface Taken {
  readonly sample: CpuSample
  readonly atMs: number
}

interface Previous {
  readonly times: CpuTimes
  readonly percent: CpuPercent | undefined
}

export class CpuWindows {
  readonly #previous = new Map<string, Map<number | undefined, Previous>>()
  /** Two samples at least 1 s apart: as long as anybody reads, one of them is always old enough. */
  #newer: Taken | undefined
  #older: Taken | undefined

  /**
   * The percentages of one CPU, or of all together if `cpu` is undefined, in `sample`, which was taken at `atMs` of a
   * monotonic clock. While the counters do not advance (or were set back), the last percentages of the key are returned.
   */
  percent(sample: CpuSample, cpu: number | undefined, atMs: number, key?: string): CpuPercent | undefined {
    const times = timesOf(sample, cpu)
    const base = this.#base(cpu, atMs)
    if (this.#newer === undefined || atMs - this.#newer.atMs >= SHORTEST_MS) {
      this.#older = this.#newer
      this.#newer = { sample, atMs }
    }
    if (times === undefined) return undefined
    const first = () => (base && percentBetween(base, times)) ?? percentBetween(AT_BOOT, times)
    if (key === undefined) return first()

    let ofKey = this.#previous.get(key)
    if (ofKey === undefined) {
      ofKey = new Map()
      this.#previous.set(key, ofKey)
    }
    const previous = ofKey.get(cpu)
    const percent = previous ? (percentBetween(previous.times, times) ?? previous.percent) : first()
    ofKey.set(cpu, { times, percent })
    return percent
  }

  /** Removes the state of a key whose series is not read any more. */
  forget(key: string): void {
    this.#previous.delete(key)
  }

  #base(cpu: number | undefined, atMs: number): CpuTimes | undefined {
    for (const taken of [this.#newer, this.#older]) {
      const age = taken ? atMs - taken.atMs : 0
      if (taken && age >= SHORTEST_MS && age < LONGEST_MS) return timesOf(taken.sample, cpu)
    }
    return undefined
  }
}

function timesOf(sample: CpuSample, cpu: number | undefined): CpuTimes | undefined {
  return cpu === undefined ? sample.all : sample.each.get(cpu)
}
