/**
 * How near a benchmark comes to the limit: the least that any server in this language has to do with the same bytes (limit/), or
 * for gmetric an empty socket, and for the client library a consumer that only walks frames. Both run in turn. A benchmark that
 * has a limit prints its ratio to it beside its rates, of `--pairs` (1) runs; `npm run bench -- limit` measures all of them:
 * `--pairs` (3) each, `--only` some, `--scale 0.1` with fewer values. With `--against COMMIT` it measures each of them against
 * that commit instead.
 */
import { loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import { tableOf } from '../rig/figures.ts'
import { optionsIn } from '../rig/options.ts'
import { type Comparison, othersIn, pairsOf, withCommit } from './against.ts'
import { benchBacklog, limitOfBacklog } from './backlog.ts'
import { benchClient, limitOfClient } from './client.ts'
import { benchDurable, limitOfDurable } from './durable.ts'
import { benchFanOut, limitOfFanOut } from './fan-out.ts'
import { benchGmetric, limitOfGmetric } from './gmetric.ts'
import { benchQuery, limitOfQuery } from './query.ts'
import { type Figures, type Ratios, ratiosOf, type Spreads, shownSpread, spreadsOf } from './ratios.ts'

interface Limited {
  readonly bench: (args: string[]) => Promise<object>
  /** `measured`: figures of the server with the same options. Undefined if there is no limit with these. */
  readonly limit: (args: string[], measured: Figures) => Promise<Figures | undefined>
}

const limited: Readonly<Record<string, Limited>> = {
  backlog: { bench: benchBacklog, limit: limitOfBacklog },
  client: { bench: benchClient, limit: limitOfClient },
  durable: { bench: benchDurable, limit: limitOfDurable },
  'fan-out': { bench: benchFanOut, limit: limitOfFanOut },
  gmetric: { bench: benchGmetric, limit: limitOfGmetric },
  query: { bench: benchQuery, limit: limitOfQuery },
}

/** A line of the table of all. */
interface Workload {
  readonly name: string
  readonly options: readonly string[]
  /** The option that says how much is done, and how much. */
  readonly size: readonly [option: string, amount: number]
  readonly rate: string
  readonly cost: string
  /** Of the limit; what it is a part of. */
  readonly aim: number
  readonly judged: 'rate' | 'cost'
}

/** Which of the workloads, and how much of each. */
const CHOICE = { only: '', scale: 1 } as const

const VALUES = ['valuesPerSecond', 'cpuPerMillion'] as const
const workloads: readonly Workload[] = [
  { name: 'durable', options: [], size: ['values', 3e6], ...figures(...VALUES), aim: 0.8, judged: 'rate' },
  { name: 'durable', options: ['--write-all'], size: ['values', 2e6], ...figures(...VALUES), aim: 0.8, judged: 'rate' },
  { name: 'fan-out', options: [], size: ['values', 8e6], ...figures(...VALUES), aim: 0.7, judged: 'rate' },
  {
    name: 'query',
    options: ['--only', 'pushed', '--alone', '100'],
    size: ['queries', 5e5],
    ...figures('pushedPerSecond', 'pushedCpuPerMillion'),
    aim: 0.6,
    judged: 'rate',
  },
  {
    name: 'query',
    options: ['--only', 'measured', '--alone', '100'],
    size: ['queries', 5e5],
    ...figures('measuredPerSecond', 'measuredCpuPerMillion'),
    aim: 0.6,
    judged: 'rate',
  },
  {
    name: 'gmetric',
    options: ['--alone', '--rates', '100000'],
    size: ['seconds', 4],
    ...figures('at 100000: takenPerSecond', 'at 100000: cpuPerMillion'),
    aim: 0.85,
    judged: 'cost',
  },
  {
    name: 'backlog',
    options: [],
    size: ['values', 4e6],
    ...figures('drainedPerSecond', 'drainCpuPerMillion'),
    aim: 0.8,
    judged: 'rate',
  },
  {
    name: 'client',
    options: ['--taking', 'handler'],
    size: ['values', 2e6],
    ...figures('handler values/s', 'handler CPU s/million'),
    aim: 0.6,
    judged: 'rate',
  },
]

function figures(rate: string, cost: string): { readonly rate: string; readonly cost: string } {
  return { rate, cost }
}

export interface Beside {
  readonly pairs: number
  readonly options: string[]
}

/** What `--pairs` asks for; undefined if the benchmark `name` has no limit. */
export function besideIn(name: string, args: string[]): Beside | undefined {
  if (limited[name] === undefined) return undefined
  const options = { pairs: { type: 'string' } } as const
  const { values, tokens } = parseArgs({ args, options, strict: false, tokens: true })
  return { pairs: pairsOf(values['pairs'] ?? '1'), options: othersIn(args, tokens, ['pairs']) }
}

/** A benchmark and its limit. */
export interface OfLimit {
  /** Of the benchmark, in the last pair. */
  readonly measured: Figures
  /** Of its limit, in the last pair; empty if there is none with these options. */
  readonly limit: Figures
  readonly ratios: Spreads
}

/** Runs the benchmark `name` and its limit in turn, every second pair in reverse order. */
export async function besideLimit(name: string, { pairs, options }: Beside): Promise<OfLimit> {
  const entry = limited[name]
  if (entry === undefined) throw new Error(withoutLimit(name))
  const bench = async (): Promise<Figures> => ({ ...(await entry.bench(options)) })
  let measured: Figures = {}
  let limit: Figures | undefined
  const all: Ratios[] = []
  while (all.length < pairs) {
    const isReversed = all.length % 2 === 1
    if (!isReversed) measured = await bench()
    limit = await entry.limit(options, measured)
    if (limit === undefined) {
      console.log(`${name} has no limit with these options`)
      break
    }
    if (isReversed) measured = await bench()
    const ratios = ratiosOf(measured, limit)
    all.push(ratios)
    const shown = Object.entries(ratios).map(([figure, ratio]) => `${figure} ${ratio.toFixed(3)}`)
    console.log(`${name} by its limit, pair ${all.length}: ${shown.join(', ')}; load ${loadNow()}`)
  }
  return { measured, limit: limit ?? {}, ratios: spreadsOf(all) }
}

/** The figures of a benchmark, with its ratios to the limit. */
export async function benchBesideLimit(name: string, beside: Beside): Promise<Figures> {
  const { measured, limit, ratios } = await besideLimit(name, beside)
  return { ...measured, limit, pairs: beside.pairs, ofLimit: ratios }
}

/** The table of all. */
export async function benchLimit(argv: string[]): Promise<object> {
  const given = optionsIn(argv, { ...CHOICE, pairs: '3' })
  const rows: string[][] = []
  const results: object[] = []
  for (const { name, run, workload, rate, cost, aim, judged } of chosen(given)) {
    const { measured, limit, ratios } = await besideLimit(name, { pairs: pairsOf(given.pairs), options: run })
    const load = loadNow()
    const figuresOf = (all: Figures): string[] => [rate, cost].map((figure) => String(all[figure]))
    results.push({ workload, ofLimit: ratios, aim, judged, load })
    const aims = judged === 'rate' ? [String(aim), ''] : ['', String(aim)]
    const shown = [rate, cost].flatMap((figure, index) => [shownRatio(ratios, figure), aims[index] ?? ''])
    rows.push([workload, ...figuresOf(measured), ...figuresOf(limit), ...shown, load])
  }
  const head = ['', 'per second', 'CPU s/m', 'limit', 'CPU s/m', 'of limit', 'aim', 'by CPU', 'aim', 'load']
  console.log(tableOf(head, rows))
  return { date: new Date().toISOString().slice(0, 10), pairs: given.pairs, results }
}

/** Each workload of the table on this tree and on another commit. `built`: builds that commit. */
export async function limitAgainst({ commit, pairs, options }: Comparison, built = withCommit): Promise<object> {
  // The build takes long: what is wrong with the options is said before.
  const chosenOnes = chosen(optionsIn([...options], CHOICE))
  const rows: string[][] = []
  const results: object[] = []
  await built(commit, async (inPairs) => {
    for (const { name, run, workload, rate, cost } of chosenOnes) {
      console.log(workload)
      const ratios = await inPairs(name, run, pairs)
      const load = loadNow()
      results.push({ workload, ratios, load })
      rows.push([workload, shownRatio(ratios, rate, 3), shownRatio(ratios, cost, 3), load])
    }
  })
  console.log(tableOf(['', 'per second', 'by CPU', 'load'], rows))
  return { against: commit, pairs, results }
}

interface Chosen extends Workload {
  /** The options, with how much is done. */
  readonly run: string[]
  /** As it is shown. */
  readonly workload: string
}

function chosen({ only, scale }: { readonly only: string; readonly scale: number }): Chosen[] {
  const names = only === '' ? Object.keys(limited) : only.split(',')
  const unknown = names.find((name) => limited[name] === undefined)
  if (unknown !== undefined) throw new Error(withoutLimit(unknown))
  return workloads
    .filter(({ name }) => names.includes(name))
    .map((workload) => {
      const [option, amount] = workload.size
      const run = [...workload.options, `--${option}`, String(Math.max(1, amount * scale))]
      return { ...workload, run, workload: [workload.name, ...run].join(' ') }
    })
}

function withoutLimit(name: string): string {
  return `${name} has no limit; these have: ${Object.keys(limited).join(', ')}`
}

function shownRatio(ratios: Spreads, figure: string, digits?: number): string {
  return ratios[figure] === undefined ? '-' : shownSpread(ratios[figure], digits)
}

function loadNow(): string {
  return loadavg()[0]?.toFixed(1) ?? ''
}
