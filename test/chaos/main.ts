/** `npm run chaos`: hurts servers in the ways that are named, and counts what was lost by it. `--help` lists them. */
import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import type { Rig, Totals } from '../rig/rig.ts'
import { alerts, clusterAlerts, treeAlerts } from './alerts.ts'
import { clusterApprovals, treeApprovals } from './approval-steps.ts'
import { approvals } from './approvals.ts'
import { cluster, failovers, natsCuts } from './cluster.ts'
import { clusterHistory } from './cluster-history.ts'
import { clusterCommands, commands } from './commands.ts'
import { cuts } from './cuts.ts'
import { damage } from './damage.ts'
import { diskFull } from './disk-full.ts'
import { drains } from './drains.ts'
import { elections } from './elections.ts'
import { executes } from './executes.ts'
import { guesses } from './guesses.ts'
import { history } from './history.ts'
import { hostile } from './hostile.ts'
import { ioErrors } from './io-errors.ts'
import { kills } from './kills.ts'
import { marks } from './marks.ts'
import { neighbours } from './neighbours.ts'
import { powerCut } from './power-cut.ts'
import { timeouts } from './timeouts.ts'
import { tree } from './tree.ts'

const EVERY_BYTE = 1000

interface Entry {
  readonly rig: Rig
  /** What is counted, and how many make the short form. */
  readonly of: string
  readonly short: number
}

const RIGS: Readonly<Record<string, Entry>> = {
  kills: { rig: kills, of: 'SIGKILLs at random moments and named points', short: 50 },
  'io-errors': { rig: ioErrors, of: 'injected I/O errors', short: 16 },
  full: { rig: diskFull, of: 'times the disk is filled and freed', short: 3 },
  cuts: {
    rig: (options) => cuts({ ...options, step: options.count < EVERY_BYTE ? 7 : 1 }),
    of: `connections cut or reset, at every byte from ${EVERY_BYTE} on, else at every seventh`,
    short: 400,
  },
  damage: { rig: damage, of: 'files damaged', short: 300 },
  power: { rig: powerCut, of: 'states that a power cut could leave', short: 300 },
  hostile: { rig: hostile, of: 'half-open connections, beside all other hostile peers', short: 500 },
  neighbours: { rig: neighbours, of: 'seconds that a hostile tenant spends on each of its deeds', short: 2 },
  guesses: { rig: guesses, of: 'guesses at a password, from one address and from 500', short: 4_000 },
  executes: { rig: executes, of: 'SIGKILLs around EXECUTEs with idempotency keys', short: 12 },
  approvals: { rig: approvals, of: 'SIGKILLs around EXECUTEs that wait for approval, and their approvals', short: 12 },
  'cluster-approvals': {
    rig: clusterApprovals,
    of: 'ends of leaders at each step of such EXECUTEs in a cluster',
    short: 9,
  },
  'tree-approvals': {
    rig: treeApprovals,
    of: 'ends of a server, of the one below it that runs such EXECUTEs, and of both, at each of these steps',
    short: 9,
  },
  marks: { rig: marks, of: 'SIGKILLs while requests publish values', short: 12 },
  history: { rig: history, of: 'SIGKILLs of a server that records its history, above all while it merges', short: 12 },
  alerts: {
    rig: alerts,
    of: 'SIGKILLs of a server that evaluates rules, of the receiver of its notifications, and of both',
    short: 12,
  },
  'tree-alerts': {
    rig: treeAlerts,
    of: 'SIGKILLs of a server that evaluates rules, of the one above that tells of its alerts, and of both',
    short: 4,
  },
  drains: { rig: drains, of: 'SIGKILLs of a server with a drain, and of its destinations', short: 3 },
  tree: {
    rig: tree,
    of: 'SIGKILLs in a tree of three servers whose connections are cut and whose disks become full',
    short: 4,
  },
  cluster: {
    rig: cluster,
    of: 'faults in a cluster of three machines: killed, frozen, cut off, without power, full, with a wrong clock, handed over',
    short: 8,
  },
  'cluster-history': {
    rig: clusterHistory,
    of: 'ends of leaders, killed or handed over, of a cluster that records its history',
    short: 3,
  },
  'cluster-alerts': {
    rig: clusterAlerts,
    of: 'the same in a cluster, where the node that leads is killed, or hands over',
    short: 3,
  },
  failovers: {
    rig: failovers,
    of: 'ends of leaders in such a cluster with the usual lease: how long nobody is served',
    short: 3,
  },
  'nats-cuts': {
    rig: natsCuts,
    of: 'leaders cut off with the nats-server of their machine, and what each nats-server then has of the log',
    short: 3,
  },
  elections: {
    rig: elections,
    of: 'ends of the nats-server that leads the log: how long NATS needs alone, and how much longer a consumer waits',
    short: 1,
  },
  timeouts: { rig: timeouts, of: 'programs that run over their time', short: 100 },
  commands: { rig: commands, of: 'random sequences of commands against a model', short: 2000 },
  'cluster-commands': {
    rig: clusterCommands,
    of: 'the same over the log of a cluster, where each crash is a takeover',
    short: 5,
  },
}

const options = {
  help: { type: 'boolean' },
  seed: { type: 'string' },
  ...Object.fromEntries(Object.keys(RIGS).map((name) => [name, { type: 'string' } as const])),
} as const
const given: Readonly<Record<string, string | boolean | undefined>> = parseArgs({ options }).values

if (given['help'] === true) {
  console.log('npm run chaos -- [--RIG COUNT ...] [--seed SEED]\n\nWithout any RIG the short form of all. Rigs:\n')
  for (const [name, { of, short }] of Object.entries(RIGS)) {
    console.log(`  --${name.padEnd(10)} COUNT   ${of} (short form: ${short})`)
  }
  console.log('\n  --seed       SEED    makes a run again; printed by every run')
} else {
  process.exitCode = await runAll()
}

async function runAll(): Promise<number> {
  const seed = given['seed'] === undefined ? randomInt(2 ** 31) : wholeNumber('seed', given['seed'])
  console.log(`seed ${seed}`)
  const named = Object.keys(RIGS).filter((name) => given[name] !== undefined)
  let code = 0
  for (const [name, { rig, short }] of Object.entries(RIGS)) {
    if (named.length > 0 && !named.includes(name)) continue
    const count = named.length > 0 ? wholeNumber(name, given[name]) : short
    if (!(await runOne(name, rig, seed, count))) code = 1
  }
  return code
}

async function runOne(name: string, rig: Rig, seed: number, count: number): Promise<boolean> {
  const started = performance.now()
  const seconds = (): number => Math.round((performance.now() - started) / 100) / 10
  try {
    const totals = await rig({ seed, count, say: (line) => console.log(`  ${name}: ${line}`) })
    print(name, totals)
    console.log(JSON.stringify({ rig: name, seed, count, seconds: seconds(), ...totals }))
    return (totals['broken'] ?? 0) === 0
  } catch (error) {
    console.error(error)
    console.log(JSON.stringify({ rig: name, seed, count, seconds: seconds(), failed: String(error) }))
    return false
  }
}

function print(name: string, totals: Totals): void {
  console.log(`\n${name}`)
  const width = Math.max(...Object.keys(totals).map((key) => key.length))
  for (const [key, value] of Object.entries(totals))
    console.log(`  ${key.padEnd(width)}  ${String(value).padStart(10)}`)
  console.log()
}

function wholeNumber(name: string, text: unknown): number {
  if (typeof text === 'string' && /^[0-9]{1,9}$/.test(text)) return Number(text)
  console.error(`--${name} takes a whole number, not ${JSON.stringify(text)}`)
  process.exit(2)
}
