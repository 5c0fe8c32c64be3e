/**
 * Rig: calls that wait for approval, in a cluster whose leader is killed, or in a tree of which either server is. Each kill comes at one
 * step of one call, which is reached by itself and not by chance: when it was asked for, shown, approved, and so on. What was approved
 * ran once, or its result says that this is not known; what was refused has not run.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { until } from '../rig/patience.ts'
import { type Rig, type RigOptions, runCourse, Tally, type Totals } from '../rig/rig.ts'
import type { Link } from '../rig/world/link.ts'
import { natsMissing } from '../support/nats.ts'
import { Random } from '../support/random.ts'
import { type Call, Calls, type Shown } from './approvals/calls.ts'
import { type ApprovalScene, ClusterScene, TreeScene } from './approvals/scenes.ts'
import { randomSleep, writtenIn } from './approvals/writing.ts'

/** In the order in which a call reaches them; the last is of one that is refused. */
const STEPS = ['sent', 'waiting', 'shown', 'approving', 'approved', 'begun', 'ended', 'answered', 'refusing'] as const
type Step = (typeof STEPS)[number]

/** The program of a call at whose steps somebody is killed runs for so long that it can be hit. */
const SLEEP = '0.2'
const LOOK = { looks: 12_000, everyMs: 5 }

export const clusterApprovals: Rig = (options) => {
  if (natsMissing !== undefined) throw new Error(natsMissing)
  return run('cluster-approvals', options, (file) => ClusterScene.start(new Random(options.seed + 1), file))
}

export const treeApprovals: Rig = (options) => run('tree-approvals', options, (file) => TreeScene.start(file))

async function run(
  name: string,
  options: RigOptions,
  start: (file: string) => Promise<ApprovalScene>,
): Promise<Totals> {
  const directory = mkdtempSync(join(tmpdir(), 'cinnabar-approvals-'))
  try {
    const file = join(directory, 'ran')
    return await runCourse(name, options, new Run(await start(file), file, options))
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

class Run {
  readonly #scene: ApprovalScene
  readonly #file: string
  readonly #options: RigOptions
  readonly #random: Random
  readonly #calls: Calls
  readonly #kills = new Tally(STEPS.map((step) => `at ${step}`))
  /** What went wrong while something else was waited for. */
  #problem: unknown
  #done = 0

  constructor(scene: ApprovalScene, file: string, options: RigOptions) {
    this.#scene = scene
    this.#file = file
    this.#options = options
    this.#random = new Random(options.seed)
    this.#calls = new Calls(scene.more)
  }

  get moment(): string {
    return `kill ${this.#done + 1}`
  }

  remove(): Promise<void> {
    return this.#scene.remove()
  }

  async all(): Promise<Totals> {
    const { count, say } = this.#options
    const { victims, listener, admin } = this.#scene
    await this.#calls.setUp(listener, admin)
    for (; this.#done < count; this.#done++) {
      // Each step in its turn, and in each round with another victim.
      const round = Math.floor(this.#done / STEPS.length)
      const step = STEPS[this.#done % STEPS.length] as Step
      const victim = victims[(this.#done + round) % victims.length] as string
      await this.#live(step, victim)
      this.#kills.add(`at ${step}`)
      if (this.#done % 20 === 19) say(`${this.#done + 1} kills, ${this.#calls.all.length} calls`)
    }
    await this.#endAll()
    const totals = this.#scene.databases.map(([above, below]) => this.#calls.judge(this.#file, above, below))
    return { kills: this.#done, lost: 0, unexpected: 0, reused: 0, ...this.#kills.totals(), ...totals.at(-1) }
  }

  /** A call comes to a step, and somebody is killed. What waits from before is decided meanwhile. */
  async #live(step: Step, victim: string): Promise<void> {
    const call = this.#calls.add({ sleep: SLEEP, isKeyed: true, isRefused: step === 'refusing' })
    const other = this.#calls.add({ sleep: randomSleep(this.#random), isKeyed: true, isRefused: false })
    const links = await this.#open(call)
    this.#noting(this.#calls.askUntilTaken(links.asker, other))
    await this.#reach(step, call, links)
    await this.#scene.strike(victim)
    links.close()
    if (this.#problem !== undefined) throw this.#problem
  }

  async #reach(step: Step, call: Call, { asker, shown, lead }: Links): Promise<void> {
    // What cannot be taken yet, since the producer below is not known, has not been asked for.
    const taken = this.#calls.askUntilTaken(asker, call)
    if (step === 'sent' && this.#scene.more.length === 0) return this.#noting(taken)
    await taken
    if (step === 'sent' || step === 'waiting') return
    const one = await shown
    if (step === 'shown') return
    const deciding = this.#calls.decide(lead, one)
    if (step === 'approving' || step === 'refusing') return this.#noting(deciding)
    await deciding
    if (step === 'approved') return
    await until('it has begun', () => writtenIn(this.#file).of(`begin ${call.name}`) > 0, LOOK)
    if (step === 'begun') return
    await until('it has ended', () => writtenIn(this.#file).of(`end ${call.name}`) > 0, LOOK)
    if (step === 'ended') return
    await until('it has its answer', () => call.outcomes.size > 0, LOOK)
  }

  /** Who asks and who decides, logged in; `held` waits until its decision is due, all others are decided at once. */
  async #open(held?: Call): Promise<Links> {
    let show: (one: Shown) => void = () => {}
    const shown = new Promise<Shown>((resolve) => {
      show = resolve
    })
    for (let looks = 0; looks < LOOK.looks; looks++) {
      // A node that has just been started may not be able to pass a connection on yet.
      const asker = await this.#calls.askerLink(this.#scene.listener).catch(() => undefined)
      const lead = await this.#calls
        .leadLink(this.#scene.listener, (one, link) => {
          if (one.name === held?.name) show(one)
          else this.#noting(this.#calls.decide(link, one))
        })
        .catch(() => undefined)
      const close = (): void => {
        asker?.close()
        lead?.close()
      }
      if (asker !== undefined && lead !== undefined) return { asker, lead, shown, close }
      close()
      await setTimeout(LOOK.everyMs)
    }
    throw new Error('nobody can log in')
  }

  #noting(done: Promise<unknown>): void {
    done.catch((error: unknown) => {
      this.#problem ??= error
    })
  }

  /** Everything is asked for that has no answer yet, and approved. */
  async #endAll(): Promise<void> {
    const links = await this.#open()
    await this.#calls.answered(links.asker)
    links.close()
    if (this.#problem !== undefined) throw this.#problem
    await this.#scene.stop()
  }
}

interface Links {
  readonly asker: Link
  readonly lead: Link
  readonly shown: Promise<Shown>
  readonly close: () => void
}
