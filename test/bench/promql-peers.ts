/**
 * `npm run bench -- promql --peers`: the same queries by HTTP to a Cinnabar with a history, to Prometheus and to VictoriaMetrics, which
 * all store the same samples, in the same run: how long each takes, and the CPU time of its server. Debian:
 * `apt-get install prometheus victoria-metrics`.
 */
import { median, tableOf } from '../rig/figures.ts'
import { cpuSecondsOf } from '../rig/process-costs.ts'
import { counters, lanesOf, type Span } from './history/samples.ts'
import { type HistoryTaker, peers, RecordingServer, write } from './history/takers.ts'

const LANES = 4
const DAY_MS = 86_400_000
const HOUR_S = 3_600
const STEP_S = 60
/** Two samples in each rollup. */
const LONG_STEP_MS = 150_000
const METRIC = 'bench_requests_total'

export interface PeerSizes {
  readonly series: number
  readonly hours: number
  /** Seconds between samples. */
  readonly step: number
  readonly runs: number
  /** How far back the samples go that are read by the hour, and of how many series they are. */
  readonly days: number
  readonly long: number
}

type Path = 'query' | 'query_range'
/** Seconds since 1970, and seconds between two steps. */
type Times = { readonly start: number; readonly end: number; readonly step: number }
type Asked = readonly [path: Path, query: string]

/** One series, the rate of all, and a mix as of a dashboard and its alerts. */
const ROWS: Readonly<Record<string, (hours: number) => readonly Asked[]>> = {
  'one series, raw': (hours) => [['query', `${METRIC}{instance="host0:9100"}[${hours}h]`]],
  'sum of rates': () => [['query_range', `sum by (job) (rate(${METRIC}[5m]))`]],
  mix: () => [
    ['query', `sum(${METRIC})`],
    ['query', `topk(5, rate(${METRIC}[5m]))`],
    ['query', `histogram_quantile(0.9, sum by (le) (${METRIC}))`],
    ['query', `max_over_time(${METRIC}[1h])`],
    ['query', `count({__name__=~"bench_.+"} offset 1h)`],
    ['query_range', `avg by (job) (${METRIC})`],
    ['query_range', `${METRIC} / on (instance, job) ${METRIC}`],
    ['query_range', `quantile(0.9, increase(${METRIC}[10m]))`],
    ['query_range', `sum(rate(${METRIC}[5m])) > bool 10`],
    ['query_range', `max_over_time(sum(rate(${METRIC}[5m]))[30m:1m])`],
  ],
}

export async function benchPromqlPeers(sizes: PeerSizes): Promise<object> {
  const figures = { ...(await ofADay(sizes)), ...(await ofMonths(sizes)) }
  console.log(
    tableOf(
      ['what', ''],
      Object.entries(figures).map(([name, figure]) => [name, String(figure)]),
    ),
  )
  return figures
}

async function ofADay({ series, hours, step, runs }: PeerSizes): Promise<Record<string, number>> {
  const end = Math.floor(Date.now() / DAY_MS) * DAY_MS
  const span: Span = {
    startMs: end - hours * 3_600_000,
    stepMs: step * 1_000,
    samples: Math.floor((hours * 3_600) / step),
  }
  const times = { start: span.startMs / 1_000, end: end / 1_000, step: STEP_S }
  const figures: Record<string, number> = {}
  await withTakers(async (takers) => {
    await fill(takers, series, span)
    for (const [row, queriesOf] of Object.entries(ROWS)) {
      const queries = queriesOf(hours)
      // A sum of many queries needs no median, and what they read was read before.
      const repeats = queries.length > 1 ? { runs: 1, isFirst: false } : { runs, isFirst: true }
      for (const taker of takers) {
        const costs = await costsOf(taker, queries, times, repeats)
        Object.assign(figures, named(row, taker, costs))
      }
    }
  })
  return figures
}

/** By the hour: Cinnabar reads rollups, of days that are merged. */
async function ofMonths({ days, long }: PeerSizes): Promise<Record<string, number>> {
  const end = Math.floor(Date.now() / DAY_MS) * DAY_MS
  const span: Span = { startMs: end - days * DAY_MS, stepMs: LONG_STEP_MS, samples: (days * DAY_MS) / LONG_STEP_MS }
  const times = { start: span.startMs / 1_000 + HOUR_S, end: end / 1_000, step: HOUR_S }
  const figures: Record<string, number> = {}
  await withTakers(async (takers, own) => {
    await fill(takers, long, span)
    await own.merged()
    await own.start()
    for (const taker of takers) {
      // It takes Prometheus ten seconds.
      const repeats = { runs: 1, isFirst: true }
      const costs = await costsOf(taker, [['query_range', `avg_over_time(${METRIC}[1h])`]], times, repeats)
      Object.assign(figures, named('by the hour', taker, costs))
    }
  })
  return figures
}

/** All three at once: they get the same requests at the same time, and are asked one after the other. */
async function withTakers(
  act: (takers: readonly HistoryTaker[], own: RecordingServer) => Promise<void>,
): Promise<void> {
  const own = new RecordingServer()
  const takers: HistoryTaker[] = [own]
  try {
    await own.start()
    takers.push(...(await peers()))
    await act(takers, own)
  } finally {
    for (const taker of takers) await taker.remove()
  }
}

async function fill(takers: readonly HistoryTaker[], series: number, span: Span): Promise<void> {
  await write(takers, lanesOf(counters(series), span, LANES))
  for (const taker of takers) {
    await taker.taken()
    await taker.stored(span.samples * series)
  }
}

function named(row: string, { name }: HistoryTaker, { ms, cpuSeconds }: Costs): Record<string, number> {
  return { [`${row}, ${name}: ms`]: Number(ms.toFixed(1)), [`${row}, ${name}: CPU s`]: Number(cpuSeconds.toFixed(3)) }
}

interface Costs {
  readonly ms: number
  readonly cpuSeconds: number
}

/** `isFirst`: what is asked reads from the disk and compiles first, which is not counted. */
interface Repeats {
  readonly runs: number
  readonly isFirst: boolean
}

/** The median of runs. */
async function costsOf(
  taker: HistoryTaker,
  queries: readonly Asked[],
  times: Times,
  { runs, isFirst }: Repeats,
): Promise<Costs> {
  const all: Costs[] = []
  for (let run = isFirst ? 0 : 1; run <= runs; run++) {
    const [cpu, started] = [cpuSecondsOf(taker.pid), performance.now()]
    for (const [path, query] of queries) await ask(taker, path, query, times)
    all.push({ ms: performance.now() - started, cpuSeconds: cpuSecondsOf(taker.pid) - cpu })
  }
  const counted = all.slice(-runs)
  return { ms: median(counted.map(({ ms }) => ms)), cpuSeconds: median(counted.map(({ cpuSeconds }) => cpuSeconds)) }
}

async function ask(
  { name, url, headers }: HistoryTaker,
  path: Path,
  query: string,
  { start, end, step }: Times,
): Promise<void> {
  // VictoriaMetrics would answer what it was asked before from a cache.
  const form = new URLSearchParams({ query, timeout: '60s', nocache: '1' })
  if (path === 'query') form.set('time', String(end))
  else for (const [key, at] of Object.entries({ start, end, step })) form.set(key, String(at))
  const answer = await fetch(`${url}/api/v1/${path}`, { method: 'POST', headers, body: form })
  const text = await answer.text()
  if (!answer.ok) throw new Error(`${name} answers ${query} with ${answer.status}: ${text.slice(0, 300)}`)
}
