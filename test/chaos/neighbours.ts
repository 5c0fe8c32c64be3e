/**
 * A hostile tenant does its worst, one deed after the other, beside a tenant that has to be served as if it were alone. Each
 * deed meets a server of its own, with the default limits, and is done twice: from a network of the hostile tenant's own,
 * which is a network namespace, and from the network of the good one. Then the server is killed and started again, and has to
 * remember what it has promised.
 */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { setTimeout } from 'node:timers/promises'
import type { RigOptions, Totals } from '../rig/rig.ts'
import { canMount } from '../rig/small-disk.ts'
import { compiled } from '../support/compiled.ts'
import { type DeedName, type DeedTally, deeds, type HostileJob, SCRAM_GUESSERS } from './neighbours/deeds.ts'
import type { GoodTenant, Stretch } from './neighbours/good-tenant.ts'
import { Namespace } from './neighbours/namespace.ts'
import { allInRounds } from './neighbours/rounds.ts'
import { ALICE, BOB, EVE, Stage } from './neighbours/stage.ts'

type Network = 'own' | 'same'

export interface NeighboursOptions extends RigOptions {
  /** All unless given, and then each costly body and readers of `/metrics` in rounds. */
  readonly only?: readonly DeedName[]
  readonly networks?: readonly Network[]
  /** Metrics that the feed of the hostile tenant has. */
  readonly metrics?: number
}

const METRICS = 50_000
const MOST_QUIET_MS = 1_000
/** After the hostile tenant is gone: the server may still be at its work. */
const AFTERMATH_MS = 500
/** Before its time the hostile tenant logs in, and after it, it may still wait for an answer. */
const GRACE_MS = 90_000

/** The promises. The machine may be slow: a stop is too long if it is so beside what there was without the neighbour, too. */
const LONGEST_STOP_MS = 1_000
const TIMES_QUIET = 20
const MOST_GROWTH_MIB = 256
/** Of the promises that name it: NOP above quiet, and what the server computes in a turn meanwhile. */
const CLOSE_MS = 20
/** Of one name, from all networks from which it never succeeded, in each minute of the clock. */
const GUESSES_A_MINUTE = 20
const RECORDS_A_MINUTE = 1_000

interface Circumstances {
  /** The feed of the hostile tenant has its metrics, and goes on. */
  readonly feed?: true
  /** Only over loopback, where a token is taken without TLS. */
  readonly loopback?: true
  /** Less than of the others. */
  readonly mostGrowthMiB?: number
  /** A small disk, which only root can mount. */
  readonly smallDisk?: true
  /** Less would prove nothing. */
  readonly leastSeconds?: number
  /** Whether NOP stays as close to quiet as no other program keeps it from. */
  readonly isClose?: true
  /** What else was promised and is broken, in words. */
  readonly judge?: (stage: Stage, tally: DeedTally, seconds: number) => Promise<readonly string[]>
}

const CIRCUMSTANCES: Readonly<Record<DeedName, Circumstances>> = {
  lists: { feed: true },
  unread: { feed: true },
  patterns: {},
  bindings: { judge: async (stage) => stage.hiddenChannels() },
  gets: { feed: true },
  subscribers: {},
  passwords: {},
  proofs: {
    async judge(_stage, { done }, seconds) {
      const most = GUESSES_A_MINUTE * (Math.ceil(seconds / 60) + 1) + SCRAM_GUESSERS
      return done > most ? [`${done} guesses at one name got a challenge`] : []
    },
  },
  connections: {},
  requests: {},
  fragments: {},
  bodies: { loopback: true, mostGrowthMiB: 200 },
  scrapes: { feed: true, loopback: true, mostGrowthMiB: 200, leastSeconds: 4 },
  // As much as any other: 96 MiB that all queries hold, up to 64 MiB of columns that V8 has not collected yet, and what the heaps
  // grow by until they are.
  queries: { feed: true, loopback: true, leastSeconds: 4, isClose: true },
  records: {
    async judge(stage, _tally, seconds) {
      const records = await stage.newRecords()
      const most = RECORDS_A_MINUTE * Math.ceil(seconds / 60)
      return records > most ? [`${records} records in the audit log`] : []
    },
  },
  disk: {
    smallDisk: true,
    leastSeconds: 8,
    async judge(stage, { deletedAfterMs }) {
      const broken = (deletedAfterMs ?? -1) < 0 ? ['the deletion of channels was not answered'] : []
      return (await stage.hasRoom()) ? broken : [...broken, 'the disk does not come back']
    },
  },
}

/** `count`: the seconds that each deed takes. */
export async function neighbours(options: NeighboursOptions): Promise<Totals> {
  const { say, only = Object.keys(deeds) as DeedName[], networks = ['own', 'same'], metrics = METRICS } = options
  const made = networks.includes('own') ? Namespace.make() : 'not asked for'
  const namespace = typeof made === 'string' ? undefined : made
  if (typeof made === 'string' && networks.includes('own')) {
    say(`the hostile tenant has no network of its own: ${made}`)
  }
  const sums = new Sums()
  try {
    for (const deed of only) {
      for (const network of networks) {
        if (network === 'own' && (namespace === undefined || CIRCUMSTANCES[deed].loopback)) continue
        if (CIRCUMSTANCES[deed].smallDisk && !canMount()) {
          say(`${deed}: left out, since a small disk is mounted by root on Linux only`)
          continue
        }
        const place = CIRCUMSTANCES[deed].loopback ? undefined : namespace
        const run = await oneDeed(options, deed, network, place)
        sums.add(run, network)
        for (const line of linesOf(run, deed, network)) say(line)
      }
    }
    if (options.only !== undefined) return sums.totals()
    const rows = await allInRounds(metrics, say)
    return { ...sums.totals(), ...rows, broken: sums.totals().broken + rows.broken }
  } finally {
    namespace?.remove()
  }
}

interface Run {
  readonly quiet: Stretch
  readonly beside: Stretch
  readonly tally: DeedTally
  readonly good: GoodTenant
  readonly rssBeforeMiB: number
  readonly rssMostMiB: number
  /** How long the server has computed without a pause, beside the hostile tenant: without what others did on the machine. */
  readonly longestStepMs: number
  /** The most CPU time of a turn of its event loop, beside the hostile tenant. */
  readonly mostOfTurnMs: number
  readonly broken: readonly string[]
}

async function oneDeed(
  { count, metrics = METRICS }: NeighboursOptions,
  deed: DeedName,
  network: Network,
  namespace: Namespace | undefined,
): Promise<Run> {
  const circumstances = CIRCUMSTANCES[deed]
  const seconds = Math.max(count, circumstances.leastSeconds ?? 0)
  const stage = await Stage.open(namespace, circumstances.smallDisk === true)
  try {
    const { good } = stage
    if (circumstances.feed) await stage.fillFeed(metrics)
    const quiet = await good.measure(setTimeout(Math.min(MOST_QUIET_MS, count * 500)))
    await stage.markRecords()
    const rssBeforeMiB = stage.rssMiB('VmRSS')
    stage.forgetPeak()
    await stage.longestStepMs()
    await stage.mostOfTurnMs()
    const addresses = network === 'own' ? namespace?.far : [namespace?.near ?? '127.0.0.1']
    const job: HostileJob = {
      ...EVE,
      deed,
      seconds,
      reach: stage.reach,
      addresses: addresses ?? [],
      // A name that is guessed at from the very network of its owner cannot stay open there.
      victim: (network === 'own' ? BOB : ALICE).user,
      tokens: circumstances.loopback ? await stage.tokens() : [],
    }
    const hostile = new HostileTenant(job, namespace)
    const stopFeed = circumstances.feed ? stage.feedOn() : () => {}
    const leastFree = stage.watchDisk()
    const beside = await good.measure(hostile.tally.finally(() => setTimeout(AFTERMATH_MS)))
    stopFeed()
    const leastFreeMiB = leastFree()
    const tally = { ...(await hostile.tally), ...(circumstances.smallDisk ? { leastFreeMiB } : {}) }
    const rssMostMiB = stage.rssMiB('VmHWM')
    const longestStepMs = stage.isAlive ? await stage.longestStepMs() : 0
    const mostOfTurnMs = stage.isAlive ? await stage.mostOfTurnMs() : 0
    const broken = [...((await circumstances.judge?.(stage, tally, seconds)) ?? [])]
    if (stage.isAlive) {
      await good.hold()
      await good.comeBack(await stage.restart())
    }
    broken.push(...stage.ended, ...brokenPromises(good, quiet, beside))
    const grownMiB = rssMostMiB - rssBeforeMiB
    if (grownMiB > (circumstances.mostGrowthMiB ?? MOST_GROWTH_MIB)) broken.push(`the server grew by ${grownMiB} MiB`)
    // Others may have the cores; then its own turns have not been so long.
    const aboveMs = Math.min(beside.nop.p99Ms - quiet.nop.p99Ms, mostOfTurnMs)
    if (circumstances.isClose && aboveMs > CLOSE_MS) broken.push(`p99 of NOP is more than ${CLOSE_MS} ms above quiet`)
    if (Object.values(tally).every((count) => count <= 0)) broken.push('the hostile tenant did nothing')
    return { quiet, beside, tally, good, rssBeforeMiB, rssMostMiB, longestStepMs, mostOfTurnMs, broken }
  } finally {
    await stage.close()
  }
}

function brokenPromises(good: GoodTenant, quiet: Stretch, beside: Stretch): string[] {
  const broken = [...good.wrong]
  for (const command of ['nop', 'query'] as const) {
    const { worstMs } = beside[command]
    const longest = Math.max(LONGEST_STOP_MS, TIMES_QUIET * quiet[command].worstMs)
    if (worstMs > longest) broken.push(`a ${command.toUpperCase()} took ${ms(worstMs)}`)
  }
  if (beside.logins === 0) broken.push('nobody logged in')
  broken.push(...beside.loginsFailed.map((reason) => `a login failed by ${reason}`))
  if (good.lost !== 0) broken.push(`${good.lost} of ${good.sent} values were lost`)
  if (good.dropped > 0) broken.push(`${good.dropped} of ${good.sent} values were dropped`)
  if (good.unanswered > 0) broken.push(`${good.unanswered} COMMITs were not answered`)
  if (good.reused > 0) broken.push(`${good.reused} transaction ids were used twice`)
  return broken
}

function linesOf(
  { quiet, beside, tally, good, rssBeforeMiB, rssMostMiB, longestStepMs, mostOfTurnMs, broken }: Run,
  deed: string,
  network: Network,
): string[] {
  const compared = (command: 'nop' | 'query'): string => {
    const { p99Ms, worstMs } = beside[command]
    const slower = (p99Ms / quiet[command].p99Ms).toFixed(1)
    return `${command.toUpperCase()} p99 ${ms(p99Ms)}, ${slower} times the quiet ${ms(quiet[command].p99Ms)}, longest ${ms(worstMs)}`
  }
  const did = Object.entries(tally).map(([what, count]) => `${what} ${count}`)
  return [
    `${deed}, ${network} network: ${compared('nop')}; ${compared('query')}; ` +
      `${beside.logins} logins; ${good.committed} values committed, ` +
      `longest ${ms(good.commitWorstMs)}; longest step of the server ${ms(longestStepMs)}, most CPU of a turn ${ms(mostOfTurnMs)}; RSS ${rssBeforeMiB} to ${rssMostMiB} MiB; the neighbour: ${did.join(', ')}`,
    ...[...new Set(broken)].map((promise) => {
      const times = broken.filter((other) => other === promise).length
      return `  broken: ${promise}${times > 1 ? `, ${times} times` : ''}`
    }),
  ]
}

function ms(value: number): string {
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`
}

class Sums {
  readonly #sums = { lost: 0, unexpected: 0, reused: 0, broken: 0, ownNetwork: 0, sameNetwork: 0 }
  readonly #served = {
    logins: 0,
    values: 0,
    nopP99Ms: 0,
    timesQuiet: 0,
    longestStopMs: 0,
    queryP99Ms: 0,
    longestQueryMs: 0,
    longestCommitMs: 0,
    grownMiB: 0,
  }

  add({ good, broken, beside, quiet, rssBeforeMiB, rssMostMiB }: Run, network: Network): void {
    const [sums, served] = [this.#sums, this.#served]
    sums.lost += Math.abs(good.lost) + good.dropped
    sums.unexpected += good.wrong.length
    sums.reused += good.reused
    sums.broken += broken.length
    sums[`${network}Network`]++
    served.logins += beside.logins
    served.values += good.committed
    served.nopP99Ms = Math.max(served.nopP99Ms, Math.round(beside.nop.p99Ms))
    served.timesQuiet = Math.max(served.timesQuiet, Math.round(beside.nop.p99Ms / quiet.nop.p99Ms))
    served.longestStopMs = Math.max(served.longestStopMs, Math.round(beside.nop.worstMs))
    served.queryP99Ms = Math.max(served.queryP99Ms, Math.round(beside.query.p99Ms))
    served.longestQueryMs = Math.max(served.longestQueryMs, Math.round(beside.query.worstMs))
    served.longestCommitMs = Math.max(served.longestCommitMs, Math.round(good.commitWorstMs))
    served.grownMiB = Math.max(served.grownMiB, rssMostMiB - rssBeforeMiB)
  }

  totals(): Totals & { readonly broken: number } {
    return { ...this.#sums, ...this.#served }
  }
}

/** The process that hurts, in its network. */
class HostileTenant {
  readonly tally: Promise<DeedTally>

  constructor(job: HostileJob, namespace: Namespace | undefined) {
    const script = compiled('test/chaos/neighbours/bad-neighbour.ts')
    const [program, words] = namespace?.command(process.execPath, script) ?? [process.execPath, [script]]
    const child = spawn(program, words, { stdio: 'pipe' })
    child.stdin.end(JSON.stringify(job))
    this.tally = tallyOf(child, job.seconds * 1_000 + GRACE_MS)
  }
}

/** One that waits for an answer for too long is ended; what it did is not known then. */
async function tallyOf(child: ChildProcessWithoutNullStreams, mostMs: number): Promise<DeedTally> {
  const timer = globalThis.setTimeout(() => child.kill('SIGKILL'), mostMs)
  const [out, errors] = await Promise.all([text(child.stdout), text(child.stderr)])
  clearTimeout(timer)
  if (out === '' && errors !== '') throw new Error(`the hostile tenant failed: ${errors}`)
  return out === '' ? { done: 0, refused: 0, ended: 1 } : JSON.parse(out)
}
