/**
 * /proc/stat: CPU times, boot time, runnable threads; and percentages between two readings of the times.
 * The times count ticks (usually 1/100 s) since boot. `user` and `nice` already contain the time of guests, so the
 * guest columns after `steal` are not part of the total. `idle` and `iowait` can run backwards by a tick.
 */
import { uint32, uint53, uint64, words } from './numbers.ts'

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
