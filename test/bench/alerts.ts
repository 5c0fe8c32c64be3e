/**
 * `npm run bench -- alerts`: rules over the series of a history: what evaluating them costs, and how long a NOP takes meanwhile.
 * `--peers`: beside Prometheus, and vmalert with VictoriaMetrics, over the same samples, with the same rule file, at the same time.
 * Debian: `apt-get install prometheus victoria-metrics`.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { isThere } from '../chaos/drains.ts'
import { percentile, tableOf } from '../rig/figures.ts'
import { optionsIn } from '../rig/options.ts'
import { until } from '../rig/patience.ts'
import { cpuSecondsOf } from '../rig/process-costs.ts'
import { StackProgram, tokenOfPublisher } from '../rig/prometheus-stack.ts'
import { command } from '../support/bytes.ts'
import { Child } from '../support/child.ts'
import { decoded, type Json } from '../support/records.ts'
import { ServerProcess } from '../support/server-process.ts'
import { lanesOf, type Span, type Workload } from './history/samples.ts'
import { type WriteTaker, write } from './history/takers.ts'
import { TurnMeter } from './turn-meter.ts'

const METRIC = 'bench_level'
const LANES = 4
/** As far back as `rate` looks, and some more. */
const [STEP_MS, SAMPLES] = [60_000, 8]
const RULES_PER_GROUP = 100
/** Between two NOPs. */
const NOP_MS = 5
const NO_PATIENCE = { looks: Number.POSITIVE_INFINITY, everyMs: 200 }

interface Sizes {
  readonly rules: number
  readonly series: number
  readonly interval: number
}

interface Evaluator extends WriteTaker {
  /** Of all its processes. */
  cpuSeconds(): number
  /** Rules that it has evaluated. */
  evaluations(): Promise<number>
  remove(): Promise<void>
}

export async function benchAlerts(argv: string[]): Promise<object> {
  const { peers, seconds, ...sizes } = optionsIn(argv, {
    peers: false,
    rules: 10_000,
    series: 100_000,
    interval: 60,
    seconds: 120,
  })
  const directory = mkdtempSync(join(tmpdir(), 'cinnabar-bench-alerts-'))
  const evaluators: Evaluator[] = []
  try {
    const rules = join(directory, 'bench.yml')
    writeFileSync(rules, ruleFile(sizes))
    const own = await OwnServer.start(rules)
    evaluators.push(own)
    if (peers) evaluators.push(...(await startPeers(rules)))
    await write(evaluators, lanesOf(workload(sizes), span(), LANES))
    // A round in which everything is new: caches, and the alerts that there are.
    await round(evaluators, sizes)
    const figures = await costs(evaluators, seconds)
    for (const peer of evaluators.splice(1)) await peer.remove()
    Object.assign(figures, await own.nops(sizes.interval))
    console.log(
      tableOf(
        ['what', ''],
        Object.entries(figures).map(([name, figure]) => [name, String(figure)]),
      ),
    )
    return figures
  } finally {
    for (const one of evaluators) await one.remove()
    rmSync(directory, { recursive: true, force: true })
  }
}

/** Every other rule looks at rates; each has the same number of series, and a hundredth of all is above its limit. */
function ruleFile({ rules, series, interval }: Sizes): string {
  const texts: string[] = ['groups:']
  for (let rule = 0; rule < rules; rule++) {
    if (rule % RULES_PER_GROUP === 0)
      texts.push(`  - name: g${rule / RULES_PER_GROUP}`, `    interval: ${interval}s`, '    rules:')
    const selected = `${METRIC}{rule="${rule}"}`
    const expr = rule % 2 === 0 ? `${selected} > 98` : `sum by (rule) (rate(${selected}[5m])) > ${series}`
    texts.push(
      `      - alert: A${rule}`,
      `        expr: ${expr}`,
      `        for: 2m`,
      '        labels: { severity: page }',
    )
  }
  return `${texts.join('\n')}\n`
}

function workload({ rules, series }: Sizes): Workload {
  const identities = Array.from({ length: series }, (_, at) => {
    const labels = [
      ['instance', `host${at}:9100`],
      ['rule', String(at % rules)],
    ] as const
    return { name: METRIC, labels }
  })
  return { name: 'levels', series: identities, next: (at) => (at * 7_919) % 100 }
}

/** Up to now: everything is read back as long as the figures are taken. */
function span(): Span {
  return { startMs: Date.now() - (SAMPLES - 1) * STEP_MS, stepMs: STEP_MS, samples: SAMPLES }
}

async function round(evaluators: readonly Evaluator[], { rules }: Sizes): Promise<void> {
  const before = await Promise.all(evaluators.map((one) => one.evaluations()))
  for (const [at, one] of evaluators.entries())
    await until(
      `${one.name} evaluates`,
      async () => (await one.evaluations()) >= (before[at] ?? 0) + rules,
      NO_PATIENCE,
    )
}

async function costs(evaluators: readonly Evaluator[], seconds: number): Promise<Record<string, number>> {
  const look = async () =>
    Promise.all(evaluators.map(async (one) => ({ cpu: one.cpuSeconds(), evaluations: await one.evaluations() })))
  const before = await look()
  await setTimeout(seconds * 1_000)
  const after = await look()
  const figures: Record<string, number> = {}
  for (const [at, { name }] of evaluators.entries()) {
    const [from, to] = [before[at]!, after[at]!]
    const count = to.evaluations - from.evaluations
    figures[`${name}: rules evaluated`] = count
    figures[`${name}: CPU ms per 1000 rules`] = Math.round(((to.cpu - from.cpu) * 1e6) / Math.max(1, count))
  }
  return figures
}

class OwnServer implements Evaluator {
  readonly name = 'cinnabar'
  readonly headers: Readonly<Record<string, string>>
  readonly #server: ServerProcess
  readonly #meter: TurnMeter

  private constructor(server: ServerProcess, meter: TurnMeter, token: string) {
    this.#server = server
    this.#meter = meter
    this.headers = { authorization: `Bearer ${token}` }
  }

  static async start(rules: string): Promise<OwnServer> {
    const meter = new TurnMeter()
    const server = new ServerProcess(
      `[log]\nlevel = "error"\n[channels]\nmax_bytes = 4294967296\n[quota]\nqueued_bytes = 0\nseries = 1000000\n` +
        `[history]\nmetrics = ["prometheus.*", "rules.*"]\nresolution = "0"\n[alerts]\nbuiltin = false\nrules = [${JSON.stringify(rules)}]\n`,
      { preload: meter.preload },
    )
    await server.start()
    const seat = await server.seat()
    const token = await tokenOfPublisher(seat, 'prometheus.*')
    seat.peer.destroy()
    return new OwnServer(server, meter, token)
  }

  get url(): string {
    return `http://127.0.0.1:${this.#server.httpPort}`
  }

  cpuSeconds(): number {
    return cpuSecondsOf(this.#server.pid)
  }

  async evaluations(): Promise<number> {
    const seat = await this.#server.seat()
    const [figures] = decoded(await seat.query('producer.alerts')) as Json[]
    seat.peer.destroy()
    return Number(figures?.evaluations ?? 0)
  }

  /** How long NOPs take for an interval, one after the other, and turns of the server, while it does nothing but evaluate. */
  async nops(seconds: number): Promise<Record<string, number>> {
    const seat = await this.#server.seat()
    const times: number[] = []
    this.#meter.start()
    for (const end = performance.now() + seconds * 1_000; performance.now() < end; ) {
      const started = performance.now()
      await seat.ok((seq) => command.nop(seq))
      times.push(performance.now() - started)
      await setTimeout(NOP_MS)
    }
    seat.peer.destroy()
    const { longestMs, longestCpuMs, waitedMs } = await this.#meter.end()
    const rounded = (ms: number): number => Number(ms.toFixed(2))
    const share = (of: number): number => rounded(percentile(times, of))
    return {
      'NOP p50, ms': share(0.5),
      'NOP p99, ms': share(0.99),
      'NOP longest, ms': share(1),
      'turn longest, ms': rounded(longestMs),
      'turn longest, ms on a core': rounded(longestCpuMs),
      'waited for a core, ms': rounded(waitedMs),
    }
  }

  async remove(): Promise<void> {
    await this.#server.end('SIGTERM')
    await this.#server.remove()
    this.#meter.remove()
  }
}

async function startPeers(rules: string): Promise<Evaluator[]> {
  const prometheus = await StackProgram.prometheus(`rule_files: [${JSON.stringify(rules)}]\n`)
  await prometheus.start()
  const peers: Evaluator[] = [
    {
      name: 'prometheus',
      url: prometheus.url,
      headers: {},
      cpuSeconds: () => cpuSecondsOf(prometheus.pid),
      evaluations: () => counted(prometheus.url, /^prometheus_rule_evaluations_total\{.*\} (\S+)$/gm),
      remove: () => prometheus.remove(),
    },
  ]
  if (isThere('vmalert')) peers.push(await startVmalert(rules))
  return peers
}

async function startVmalert(rules: string): Promise<Evaluator> {
  const victoria = await StackProgram.victoriaMetrics()
  await victoria.start()
  const { url } = victoria
  const port = Number(new URL(url).port) + 1
  const child = new Child('vmalert', [
    `-rule=${rules}`,
    `-datasource.url=${url}`,
    `-remoteWrite.url=${url}`,
    '-notifier.url=http://127.0.0.1:9',
    `-httpListenAddr=127.0.0.1:${port}`,
  ])
  return {
    name: 'vmalert and victoria-metrics',
    url,
    headers: {},
    cpuSeconds: () => cpuSecondsOf(child.pid) + cpuSecondsOf(victoria.pid),
    evaluations: () => counted(`http://127.0.0.1:${port}`, /^vmalert_execution_total (\S+)$/gm),
    async remove() {
      await child.end('SIGKILL')
      await victoria.remove()
    },
  }
}

async function counted(url: string, pattern: RegExp): Promise<number> {
  const text = await fetch(`${url}/metrics`).then(
    (answer) => answer.text(),
    () => '',
  )
  return [...text.matchAll(pattern)].reduce((sum, [, count]) => sum + Number(count), 0)
}
