/**
 * How near a benchmark comes to the limit: the least that any server in this language has to do with the same bytes (limit/), or
 * for gmetric an empty socket, and for the client library a consumer that only walks frames. Both run in turn. A benchmark that
 * has a limit prints its ratio to it beside its rates, of `--pairs` (1) runs; `npm run bench -- limit` measures all of them:
 * `--pairs` (3) each, `--only` some, `--scale 0.1` with fewer values.
 */
import { loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import pc from 'picocolors'
import { type Column, formatTable } from '../../cli/output.ts'
import { othersIn, pairsOf } from './against.ts'
import { benchBacklog, limitOfBacklog } from './backlog.ts'
import { benchClient, limitOfClient } from './client.ts'
import { benchDurable, limitOfDurable } from './durable.ts'
import { benchFanOut, limitOfFanOut } from './fan-out.ts'
import { benchGmetric, limitOfGmetric } from './gmetric.ts'
import { benchQuery, limitOfQuery } from './query.ts'
import { type Figures, type Ratios, ratiosOf, type Spread, shownSpread, spreadsOf } from './ratios.ts'

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
  readonly ratios: Readonly<Record<string, Spread>>
}

/** Runs the benchmark `name` and its limit in turn, every second pair in reverse order. */
export async function besideLimit(name: string, { pairs, options }: Beside): Promise<OfLimit> {
  const entry = limited[name]
  if (entry === undefined) throw new Error(`${name} has no limit; these have: ${Object.keys(limited).join(', ')}`)
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
    console.log(`${name} by its limit, pair ${all.length}: ${shown.join(', ')}; load ${loadavg()[0]?.toFixed(1)}`)
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
  const text = (value: string) => ({ type: 'string', default: value }) as const
  const { values: given } = parseArgs({
    args: argv,
    options: { pairs: text('3'), only: text(''), scale: text('1') },
  })
  const names = given.only === '' ? Object.keys(limited) : given.only.split(',')
  const rows: string[][] = []
  const results: object[] = []
  for (const { name, options, size, rate, cost, aim, judged } of workloads) {
    if (!names.includes(name)) continue
    const amount = Math.max(1, size[1] * Number(given.scale))
    const run = [...options, `--${size[0]}`, String(amount)]
    const { measured, limit, ratios } = await besideLimit(name, { pairs: pairsOf(given.pairs), options: run })
    const load = loadavg()[0]?.toFixed(1) ?? ''
    const figuresOf = (all: Figures): string[] => [rate, cost].map((figure) => String(all[figure]))
    const workload = [name, ...run].join(' ')
    results.push({ workload, ofLimit: ratios, aim, judged, load })
    const aims = judged === 'rate' ? [String(aim), ''] : ['', String(aim)]
    const shown = [rate, cost].flatMap((figure, index) => [
      ratios[figure] === undefined ? '-' : shownSpread(ratios[figure]),
      aims[index] ?? '',
    ])
    rows.push([workload, ...figuresOf(measured), ...figuresOf(limit), ...shown, load])
  }
  const head = ['', 'per second', 'CPU s/m', 'limit', 'CPU s/m', 'of limit', 'aim', 'by CPU', 'aim', 'load']
  const columns = head.map((title, index): Column => ({ head: title, align: index === 0 ? 'left' : 'right' }))
  console.log(formatTable(columns, rows, pc.createColors(false)))
  return { date: new Date().toISOString().slice(0, 10), pairs: given.pairs, results }
}
