/**
 * Which two readings a CPU percentage lies between. A reader with a key (a series that is polled) gets the time since
 * its own previous reading, whatever others read in between; its first reading, and any without a key (QUERY), goes
 * back to a sample that somebody took 1 to 60 s ago, else to the start of the host.
 */
import { AT_BOOT, type CpuPercent, type CpuSample, type CpuTimes, percentBetween } from './cpu.ts'

/** Times count in steps of 10 ms: over less than a second the percentages would be mostly rounding. */
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
  /** Two samples at least 1 s apart: one of them is old enough at any moment, if anybody reads at all. */
  #newer: Taken | undefined
  #older: Taken | undefined

  /**
   * The percentages of one CPU, or of all together (`cpu` undefined), in `sample`, taken at `atMs` of a clock that
   * never goes back. While the counters stand still (or were set back) the key's last percentages hold.
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

  /** The series of this key is not read any more. */
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
