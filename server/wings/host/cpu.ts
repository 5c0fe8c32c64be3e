/**
 * /proc/stat: CPU times, boot time, runnable threads; and percentages between two readings of the times.
 * The times count ticks (usually 1/100 s) since boot. `user` and `nice` already contain the time of guests, so the
 * guest columns after `steal` are not part of the total. `idle` and `iowait` can run backwards by a tick.
 */
import { uint32, uint53, uint64, words } from './proc.ts'

/** In the order of the columns; old kernels have only the first four. */
const CPU_FIELDS = ['user', 'nice', 'system', 'idle', 'iowait', 'irq', 'softirq', 'steal'] as const
type CpuField = (typeof CPU_FIELDS)[number]

/** Times in any unit, as long as it is the same for all fields; undefined if this kernel does not count a field. */
export type CpuTimes = Readonly<Record<CpuField, number | undefined>>
export type CpuPercent = Readonly<Record<CpuField, number | undefined>>

export interface CpuSample {
  /** All CPUs together. */
  readonly all: CpuTimes | undefined
  /** Times by CPU number; CPUs that are switched off are missing. */
  readonly each: ReadonlyMap<number, CpuTimes>
}

export interface Stat {
  readonly cpu: CpuSample
  /** Seconds since 1970. */
  readonly bootTime: bigint | undefined
  /** Threads that run or wait for a CPU. */
  readonly running: number | undefined
}

export function parseStat(text: string): Stat {
  let all: CpuTimes | undefined
  let bootTime: bigint | undefined
  let running: number | undefined
  const each = new Map<number, CpuTimes>()
  for (const line of text.split('\n')) {
    // The interrupt lines are tens of KiB long on large hosts: only the lines that are needed are split.
    if (line.startsWith('cpu')) {
      const [label, ...times] = words(line)
      const cpu = uint32(label?.slice(3))
      if (label === 'cpu') all = cpuTimes(times)
      else if (cpu !== undefined) each.set(cpu, cpuTimes(times))
    } else if (line.startsWith('btime ')) bootTime = uint64(words(line)[1])
    else if (line.startsWith('procs_running ')) running = uint32(words(line)[1])
  }
  return { cpu: { all, each }, bootTime, running }
}

/** The share of each field in the time between two readings; undefined if no time passed, or it ran backwards. */
export function percentBetween(before: CpuTimes, after: CpuTimes): CpuPercent | undefined {
  if (totalTime(after) <= totalTime(before)) return undefined
  let total = 0
  for (const field of CPU_FIELDS) total += growth(before, after, field) ?? 0
  return cpuRecord((field) => {
    const grown = growth(before, after, field)
    return grown === undefined ? undefined : (grown / total) * 100
  })
}

/** The times of a CPU when the host started. */
export const AT_BOOT: CpuTimes = cpuRecord(() => 0)

function cpuTimes(columns: readonly string[]): CpuTimes {
  return cpuRecord((_, column) => uint53(columns[column]))
}

function cpuRecord<T>(value: (field: CpuField, column: number) => T): Readonly<Record<CpuField, T>> {
  return {
    user: value('user', 0),
    nice: value('nice', 1),
    system: value('system', 2),
    idle: value('idle', 3),
    iowait: value('iowait', 4),
    irq: value('irq', 5),
    softirq: value('softirq', 6),
    steal: value('steal', 7),
  }
}

function growth(before: CpuTimes, after: CpuTimes, field: CpuField): number | undefined {
  const now = after[field]
  return now === undefined ? undefined : Math.max(0, now - (before[field] ?? 0))
}

function totalTime(times: CpuTimes): number {
  let total = 0
  for (const field of CPU_FIELDS) total += times[field] ?? 0
  return total
}

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

/**
 * The two readings that a CPU percentage covers. For a reader with a key (a polled series) these are its own previous reading
 * and this one, whatever others read in between. The first reading of a key, and any reading without a key (QUERY), covers
 * the time since a sample that somebody took 1 to 60 s ago or, without one, since the start of the host.
 */
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
