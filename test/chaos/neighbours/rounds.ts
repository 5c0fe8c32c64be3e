/**
 * What each costly body, and hundreds of readers of `/metrics` at once, cost the server and another tenant: ten rounds of each
 * against a server of its own, and before each round a quiet stretch, since the machine may be slower at one time than at another.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import { median, percentile } from '../../rig/figures.ts'
import { compiled } from '../../support/compiled.ts'
import { costlyBodies } from './bodies.ts'
import { Stage } from './stage.ts'

/** How often the server gave each status. */
export type RoundTally = Readonly<Record<string, number>>

export interface RoundsJob {
  readonly port: number
  readonly token: string
  /** Requests at once. */
  readonly places: number
  /** The name of a costly body; undefined for reading `/metrics`. */
  readonly shape: string | undefined
}

export interface RoundsOptions {
  readonly shape: string | undefined
  readonly mayPublish: boolean
  /** Metrics that are read. */
  readonly metrics: number
  readonly rounds: number
}

const ROUNDS = 10
const POSTERS = 6
const READERS = 300
const QUIET_MS = 300
/** Until what is left of the rounds is gone. */
const PATIENCE_MS = 10_000
const LOOK_MS = 500

/** The promises. */
const MOST_NOP_MS = 20
const MOST_GROWTH_MIB = 200
/** Between the earlier rounds and the later ones. */
const MOST_STEADY_MIB = 32
/** Code, and the series that were published. */
const MOST_HEAP_MIB = 16

/** One row. */
export interface RoundsRun {
  readonly name: string
  readonly nop: Delays
  readonly quiet: Delays
  readonly rssBeforeMiB: number
  /** The most of each round. */
  readonly rssMiB: readonly number[]
  readonly heapBeforeMiB: number
  readonly heapAfterMiB: number
  /** The server's own longest step of a round, in the middle of all rounds. */
  readonly stepMs: number
  readonly answers: RoundTally
  readonly broken: readonly string[]
}

interface Delays {
  readonly p99Ms: number
  /** The longest of a round, in the middle of all rounds: one stop of the machine does not change it. */
  readonly longestMs: number
  readonly worstMs: number
}

/** All rows, and of their figures the worst. */
export async function allInRounds(metrics: number, say: (line: string) => void) {
  const totals = { rows: 0, broken: 0, roundsNopAboveMs: 0, roundsStepMs: 0, roundsGrownMiB: 0 }
  for (const shape of [...costlyBodies().map(({ name }) => name), undefined]) {
    for (const mayPublish of shape === undefined ? [false] : [true, false]) {
      const run = await inRounds({ shape, mayPublish, metrics, rounds: ROUNDS })
      for (const line of linesOf(run)) say(line)
      const { nop, quiet, stepMs, rssMiB, rssBeforeMiB, broken } = run
      totals.rows++
      totals.broken += broken.length
      totals.roundsNopAboveMs = Math.max(totals.roundsNopAboveMs, Math.round(nop.longestMs - quiet.longestMs))
      totals.roundsStepMs = Math.max(totals.roundsStepMs, Math.round(stepMs))
      totals.roundsGrownMiB = Math.max(totals.roundsGrownMiB, Math.max(...rssMiB) - rssBeforeMiB)
    }
  }
  return totals
}

export async function inRounds({ shape, mayPublish, metrics, rounds }: RoundsOptions): Promise<RoundsRun> {
  const stage = await Stage.open(undefined, false)
  const [publisher, reader] = (await stage.tokens()) as [string, string]
  if (shape === undefined) await stage.fillFeed(metrics)
  const job: RoundsJob = {
    port: stage.reach.http,
    token: mayPublish ? publisher : reader,
    places: shape === undefined ? READERS : POSTERS,
    shape,
  }
  const hostile = fork(compiled('test/chaos/neighbours/bad-rounds.ts'))
  const gone = once(hostile, 'exit').then(([code]) => {
    throw new Error(`the hostile tenant has ended with exit code ${code}`)
  })
  // In the end it is killed.
  gone.catch(() => {})
  const answer = (): Promise<unknown[]> => Promise.race([once(hostile, 'message'), gone])
  try {
    const isReady = answer()
    hostile.send(job)
    await isReady
    const heapBeforeMiB = await stage.heapMiB()
    await setTimeout(QUIET_MS)
    const rssBeforeMiB = stage.rssMiB('VmRSS')
    const [quiet, beside]: [number[][], number[][]] = [[], []]
    const [rssMiB, stepsMs]: [number[], number[]] = [[], []]
    const answers: Record<string, number> = {}
    for (let round = 0; round < rounds; round++) {
      quiet.push(await stage.good.nops(setTimeout(QUIET_MS)))
      // Each round begins after a collection: how much of the garbage of all before it is still there says nothing of this one.
      await stage.heapMiB()
      stage.forgetPeak()
      await stage.longestStepMs()
      const ended = answer() as Promise<[RoundTally]>
      hostile.send('go')
      beside.push(await stage.good.nops(ended))
      stepsMs.push(await stage.longestStepMs())
      rssMiB.push(stage.rssMiB('VmHWM'))
      for (const [status, count] of Object.entries((await ended)[0])) answers[status] = (answers[status] ?? 0) + count
    }
    const heapAfterMiB = await heapBack(stage, heapBeforeMiB)
    const what = shape === undefined ? `${READERS} readers of ${metrics} metrics` : shape
    const run = {
      name: shape === undefined ? what : `${what}, ${mayPublish ? 'may publish' : 'may not publish'}`,
      nop: delaysOf(beside),
      quiet: delaysOf(quiet),
      rssBeforeMiB,
      rssMiB,
      heapBeforeMiB,
      heapAfterMiB,
      stepMs: median(stepsMs),
      answers,
    }
    return { ...run, broken: [...stage.ended, ...stage.good.wrong, ...brokenFigures(run)] }
  } finally {
    hostile.kill('SIGKILL')
    await stage.close()
  }
}

/** Waits until the heap is as it was: what is left of refused bodies is still read for a while. */
async function heapBack(stage: Stage, heapBeforeMiB: number): Promise<number> {
  const end = performance.now() + PATIENCE_MS
  for (;;) {
    const heapMiB = await stage.heapMiB()
    if (heapMiB - heapBeforeMiB <= MOST_HEAP_MIB || performance.now() >= end) return heapMiB
    await setTimeout(LOOK_MS)
  }
}

function brokenFigures(run: Omit<RoundsRun, 'broken'>): string[] {
  const { nop, quiet, rssBeforeMiB, rssMiB, heapBeforeMiB, heapAfterMiB, stepMs } = run
  const broken: string[] = []
  for (const [what, of] of [
    ['p99 of NOP', 'p99Ms'],
    ['the longest NOP of a round', 'longestMs'],
  ] as const) {
    // Other programs, and the hostile tenant itself, may have the cores; then its own steps have not been so long.
    if (Math.min(nop[of] - quiet[of], stepMs) > MOST_NOP_MS)
      broken.push(`${what} is ${ms(nop[of])}, and ${ms(quiet[of])} when quiet`)
  }
  const grownMiB = Math.max(...rssMiB) - rssBeforeMiB
  if (grownMiB > MOST_GROWTH_MIB) broken.push(`the server grew by ${grownMiB} MiB`)
  // The heap, and what malloc keeps of it, are as large as the work needs after some rounds only.
  if (rssMiB.length >= ROUNDS && steadyMiB(rssMiB) > MOST_STEADY_MIB)
    broken.push(`the rounds took more and more memory: ${rssMiB.join(', ')} MiB`)
  const keptMiB = heapAfterMiB - heapBeforeMiB
  if (keptMiB > MOST_HEAP_MIB) broken.push(`${Math.round(keptMiB)} MiB are kept after a collection`)
  return broken
}

/** How much more the later rounds took than the earlier ones, in the middle of each. The first of all fills pools and loads code. */
function steadyMiB([_first, ...rssMiB]: readonly number[]): number {
  const half = rssMiB.length >> 1
  return median(rssMiB.slice(half)) - median(rssMiB.slice(0, half))
}

function delaysOf(rounds: readonly (readonly number[])[]): Delays {
  const all = rounds.flat()
  const longest = rounds.map((delays) => Math.max(0, ...delays))
  return { p99Ms: percentile(all, 0.99), longestMs: median(longest), worstMs: Math.max(...longest) }
}

/** Its line, and what is broken below it. */
export function linesOf(run: RoundsRun): string[] {
  const { name, nop, quiet, rssBeforeMiB, rssMiB, heapBeforeMiB, heapAfterMiB, stepMs, answers, broken } = run
  const compared = (of: keyof Delays): string => `${ms(nop[of])} (quiet ${ms(quiet[of])})`
  const counts = Object.entries(answers).map(([status, count]) => `${count} × ${status}`)
  return [
    `${name}: NOP p99 ${compared('p99Ms')}, longest of a round ${compared('longestMs')}, of all ${compared('worstMs')}, ` +
      `longest step of a round ${ms(stepMs)}; ` +
      `RSS ${rssBeforeMiB} MiB, in the rounds ${rssMiB.join(' ')}; ` +
      `heap after a collection ${heapBeforeMiB.toFixed(1)}, then ${heapAfterMiB.toFixed(1)} MiB; answers ${counts.join(', ')}`,
    ...broken.map((promise) => `  broken: ${promise}`),
  ]
}

function ms(value: number): string {
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`
}
