/**
 * The history, and with `--peers` Debian's Prometheus and VictoriaMetrics beside it, in the same run: what storing a sample costs in
 * CPU time and bytes, a steady feed, memory, catching up with what waited, and starts. Everything is written by remote write, with
 * the same requests for all. Debian: `apt-get install prometheus victoria-metrics prometheus-node-exporter`.
 */
import { setTimeout } from 'node:timers/promises'
import { median, tableOf } from '../rig/figures.ts'
import { optionsIn } from '../rig/options.ts'
import { cpuSecondsOf, memoryMiB } from '../rig/process-costs.ts'
import { bytesPerActiveSeries, growthByDeadSeries, makeHistory } from './history/kept.ts'
import { counters, gauges, lanesOf, type Span, scrapes, type Workload } from './history/samples.ts'
import { type HistoryTaker, peers, RecordingServer, write } from './history/takers.ts'

const LANES = 4
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const STARTS = 3

interface Sizes {
  readonly series: number
  /** How far the samples go back, a whole number of hours. */
  readonly hours: number
  /** Seconds between samples. */
  readonly step: number
  /** Series of the steady feed, a sample a second each, and how long it lasts. */
  readonly active: number
  readonly seconds: number
  /** Seconds until a server that does nothing counts as at rest: V8 gives back what the start needed after some ninety. */
  readonly calm: number
  /** Series that are active, that are not any more, and those of so many days that a server is started with. */
  readonly alive: number
  readonly dead: number
  readonly many: number
  readonly days: number
  readonly peers: boolean
}

type Figures = Record<string, string | number>

export async function benchHistory(argv: string[]): Promise<object> {
  const sizes: Sizes = optionsIn(argv, {
    series: 1_000,
    hours: 24,
    step: 15,
    active: 25_000,
    seconds: 20,
    calm: 120,
    alive: 50_000,
    dead: 1_000_000,
    many: 10_000,
    days: 30,
    peers: false,
  })
  const figures: Figures = {}
  const { series } = sizes
  const scraped = await scrapes()
  for (const workload of [() => counters(series), () => gauges(series), () => scraped(series)]) {
    Object.assign(figures, await storing(workload, sizes))
  }
  Object.assign(figures, await steady(sizes), await catchingUp(sizes), await starting(sizes), await atRest(sizes))
  Object.assign(figures, inMemory(sizes))
  const rows = Object.entries(figures).map(([name, figure]) => [name, String(figure)])
  console.log(tableOf(['what', ''], rows))
  return figures
}

/** The days before today, whose files are made as soon as something is merged. */
function spanOf({ hours, step }: Sizes): Span {
  const endMs = Math.floor(Date.now() / DAY_MS) * DAY_MS
  return { startMs: endMs - hours * HOUR_MS, stepMs: step * 1_000, samples: Math.floor((hours * 3_600) / step) }
}

/** A new server of each kind; without a history too, if what that costs is to be seen. */
async function takersOf({ peers: withPeers }: Sizes, { withoutHistory = false } = {}): Promise<HistoryTaker[]> {
  const own = [new RecordingServer(), ...(withoutHistory ? [RecordingServer.withoutHistory()] : [])]
  for (const server of own) await server.start()
  return [...own, ...(withPeers ? await peers() : [])]
}

/** All samples of a time as fast as they are taken: CPU, memory, and what the files have when all is merged. */
async function storing(begin: () => Workload, sizes: Sizes): Promise<Figures> {
  const span = spanOf(sizes)
  const samples = span.samples * sizes.series
  const figures: Figures = {}
  for (const taker of await takersOf(sizes)) {
    // The same samples for each.
    const workload = begin()
    const name = `${workload.name}, ${taker.name}`
    try {
      const [cpu, started] = [cpuSecondsOf(taker.pid), performance.now()]
      await write([taker], lanesOf(workload, span, LANES))
      await taker.taken()
      const seconds = (performance.now() - started) / 1_000
      figures[`${name}: samples/s`] = Math.round(samples / seconds)
      figures[`${name}: CPU s per million, written`] = perMillion(cpuSecondsOf(taker.pid) - cpu, samples)
      figures[`${name}: peak RSS, MiB`] = memoryMiB(taker.pid, 'VmHWM')
      await taker.stored(samples)
      const { bytes, cpu: cpuOfMerging } = await taker.merged()
      if (cpuOfMerging > 0) figures[`${name}: CPU s per million, merged afterwards`] = perMillion(cpuOfMerging, samples)
      figures[`${name}: bytes per sample`] = (bytes / samples).toFixed(2)
    } finally {
      await taker.remove()
    }
  }
  return figures
}

/** A sample a second of each series, as of now. */
async function steady(sizes: Sizes): Promise<Figures> {
  const { active, seconds } = sizes
  const figures: Figures = {}
  for (const taker of await takersOf(sizes, { withoutHistory: true })) {
    const name = `steady, ${taker.name}`
    const workload = counters(active)
    try {
      const second = (): Promise<void> => {
        return write([taker], lanesOf(workload, { startMs: Date.now(), stepMs: 1_000, samples: 1 }, LANES))
      }
      // Series are new, and code is not compiled yet.
      await second()
      await second()
      await taker.taken()
      const [cpu, started] = [cpuSecondsOf(taker.pid), performance.now()]
      for (let at = 0; at < seconds; at++) {
        await setTimeout(Math.max(0, started + at * 1_000 - performance.now()))
        await second()
      }
      await taker.taken()
      figures[`${name}: CPU s per million`] = perMillion(cpuSecondsOf(taker.pid) - cpu, active * seconds)
      figures[`${name}: RSS, MiB`] = memoryMiB(taker.pid)
    } finally {
      await taker.remove()
    }
  }
  return figures
}

/** What waited in the channel while nothing could be stored, taken after a restart; and starts with and without a history. */
async function catchingUp(sizes: Sizes): Promise<Figures> {
  const span = spanOf(sizes)
  const workload = counters(sizes.series)
  const samples = span.samples * sizes.series
  const server = new RecordingServer()
  const without = RecordingServer.withoutHistory()
  try {
    server.block()
    await server.start()
    await write([server], lanesOf(workload, span, LANES))
    await server.end()
    server.unblock()
    await server.start()
    const [cpu, started] = [cpuSecondsOf(server.pid), performance.now()]
    await server.taken()
    const seconds = (performance.now() - started) / 1_000
    const cost = perMillion(cpuSecondsOf(server.pid) - cpu, samples)
    await server.stored(samples)
    await without.start()
    return {
      'catching up: samples/s': Math.round(samples / seconds),
      'catching up: CPU s per million': cost,
      'start with these samples: s': await secondsToStart(server),
      'start without a history: s': await secondsToStart(without),
    }
  } finally {
    await server.remove()
    await without.remove()
  }
}

/** With days of many series. */
async function starting({ days, many }: Sizes): Promise<Figures> {
  const server = new RecordingServer()
  try {
    makeHistory(server.newHistory(), days, many)
    await server.start()
    return { [`start with ${days} days of ${many} series: s`]: await secondsToStart(server) }
  } finally {
    await server.remove()
  }
}

async function secondsToStart(server: RecordingServer): Promise<string> {
  const times: number[] = []
  for (let at = 0; at < STARTS; at++) {
    await server.end()
    times.push(await server.start())
  }
  return median(times).toFixed(2)
}

function inMemory({ alive, dead }: Sizes): Figures {
  return {
    'memory per active series, bytes': Math.round(bytesPerActiveSeries(alive)),
    [`heap after ${dead} series that have ended, MiB more`]: growthByDeadSeries(dead).toFixed(1),
  }
}

/** RSS of servers that nothing is written to, all at once. */
async function atRest(sizes: Sizes): Promise<Figures> {
  const takers = await takersOf(sizes, { withoutHistory: true })
  // A history of the host itself, as every server has one by itself.
  const usual = new RecordingServer('cinnabar, as it is by itself', '')
  await usual.start()
  takers.unshift(usual)
  try {
    await setTimeout(sizes.calm * 1_000)
    return Object.fromEntries(takers.map(({ name, pid }) => [`at rest, ${name}: RSS, MiB`, memoryMiB(pid)]))
  } finally {
    for (const taker of takers) await taker.remove()
  }
}

function perMillion(cpu: number, samples: number): string {
  return ((cpu * 1e6) / samples).toFixed(3)
}
