/**
 * How near a benchmark comes to the limit: the least that any server in this language has to do with the same bytes (limit/), or
 * for gmetric an empty socket, and for the client library a consumer that only walks frames. Both run in turn. `npm run bench --
 * NAME --limit` is for one, `npm run bench -- limit` for all: `--pairs` (3) each, `--only` some, `--scale 0.1` with fewer values.
 */
import { loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import pc from 'picocolors'
import { type Column, formatTable } from '../../cli/output.ts'
import { othersIn } from './against.ts'
import { benchBacklog, limitOfBacklog } from './backlog.ts'
import { benchClient, limitOfClient } from './client.ts'
import { benchDurable, limitOfDurable } from './durable.ts'
import { benchFanOut, limitOfFanOut } from './fan-out.ts'
import { benchGmetric, limitOfGmetric } from './gmetric.ts'
import { benchQuery, limitOfQuery } from './query.ts'
import { type Figures, type Ratios, ratiosOf, type Spread, spreadsOf } from './ratios.ts'

interface Limited {
  readonly bench: (args: string[]) => Promise<object>
  /** `measured`: figures of the server with the same options. */
  readonly limit: (args: string[], measured: Figures) => Promise<Figures>
}

const limited: Readonly<Record<string, Limited>> = {
  backlog: { bench: benchBacklog, limit: limitOfBacklog },
  client: { bench: benchClient, limit: limitOfClient },
  durable: { bench: benchDurable, limit: limitOfDurable },
  'fan-out': { bench: benchFanOut, limit: limitOfFanOut },
  gmetric: { bench: async (args) => benchGmetric([...args, '--alone']), limit: limitOfGmetric },
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
    options: ['--rates', '100000'],
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

/** What `--limit` and `--pairs` ask for; undefined if there is no `--limit`. */
export function limitIn(args: string[]): Beside | undefined {
  const options = { limit: { type: 'boolean' }, pairs: { type: 'string' } } as const
  const { values, tokens } = parseArgs({ args, options, strict: false, tokens: true })
  if (values['limit'] !== true) return undefined
  return { pairs: pairsOf(values['pairs'] ?? '3'), options: othersIn(args, tokens, ['limit', 'pairs']) }
}

function pairsOf(given: unknown): number {
  const pairs = Number(given)
  if (!(Number.isInteger(pairs) && pairs >= 1)) throw new Error(`--pairs ${given}: at least 1 is needed`)
  return pairs
}

/** Runs the benchmark `name` and its limit in turn, every second pair in reverse order. Gives the figures of the last pair, and the ratios. */
export async function besideLimit(name: string, { pairs, options }: Beside) {
  const entry = limited[name]
  if (entry === undefined) throw new Error(`${name} has no limit; these have: ${Object.keys(limited).join(', ')}`)
  const all: Ratios[] = []
  const bench = async (): Promise<Figures> => ({ ...(await entry.bench(options)) })
  let ours = await bench()
  let limit = await entry.limit(options, ours)
  const judge = (): void => {
    const ratios = ratiosOf(ours, limit)
    all.push(ratios)
    const shown = Object.entries(ratios).map(([figure, ratio]) => `${figure} ${ratio.toFixed(3)}`)
    console.log(`${name} by its limit, pair ${all.length}: ${shown.join(', ')}; load ${loadavg()[0]?.toFixed(1)}`)
  }
  judge()
  while (all.length < pairs) {
    if (all.length % 2 === 1) {
      limit = await entry.limit(options, ours)
      ours = await bench()
    } else {
      ours = await bench()
      limit = await entry.limit(options, ours)
    }
    judge()
  }
  return { ...ours, limit, pairs, ofLimit: spreadsOf(all) }
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
    const { ofLimit, limit, ...ours } = await besideLimit(name, { pairs: pairsOf(given.pairs), options: run })
    const load = loadavg()[0]?.toFixed(1) ?? ''
    const figuresOf = (all: Figures): string[] => [rate, cost].map((figure) => String(all[figure]))
    const workload = [name, ...run].join(' ')
    results.push({ workload, ofLimit, aim, judged, load })
    const aims = judged === 'rate' ? [String(aim), ''] : ['', String(aim)]
    const ratios = [rate, cost].flatMap((figure, index) => [spread(ofLimit[figure]), aims[index] ?? ''])
    rows.push([workload, ...figuresOf(ours), ...figuresOf(limit), ...ratios, load])
  }
  const head = ['', 'per second', 'CPU s/m', 'limit', 'CPU s/m', 'of limit', 'aim', 'by CPU', 'aim', 'load']
  const columns = head.map((title, index): Column => ({ head: title, align: index === 0 ? 'left' : 'right' }))
  console.log(formatTable(columns, rows, pc.createColors(false)))
  return { date: new Date().toISOString().slice(0, 10), pairs: given.pairs, results }
}

function spread(of: Spread | undefined): string {
  if (of === undefined) return '-'
  return `${of.median.toFixed(2)} (${of.least.toFixed(2)} to ${of.most.toFixed(2)})`
}
