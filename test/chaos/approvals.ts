/**
 * Rig: SIGKILL around EXECUTEs that a rule has wait for approval. One user asks, with a key or without one, another one approves or refuses
 * what it is shown; the program that runs writes a line when it begins and one when it ends. Whatever was killed in between, what was
 * approved ran once, or its result says that this is not known; what was refused has not run, and nothing ran without an approval.
 */
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { KilledServer } from '../rig/killed-server/killed-server.ts'
import { type Rig, type RigOptions, runCourse, Tally, type Totals } from '../rig/rig.ts'
import type { Link, User } from '../rig/world/link.ts'
import { freePort } from '../support/free-port.ts'
import { Random } from '../support/random.ts'
import { Calls } from './approvals/calls.ts'
import { MOST_SLEEP_MS, randomSleep, writingTables } from './approvals/writing.ts'

/** Killed there, or at any moment. */
const APPROVAL_POINTS = [
  'approval-not-asked',
  'approval-asked',
  'approval-not-stored',
  'approval-stored',
  'result-not-stored',
] as const
const MOST_LIFE_MS = 300
/** A point that is not reached by then is not waited for. */
const PATIENCE_MS = 1200
const CALLS_PER_LIFE = 8

export const approvals: Rig = async (options) => {
  // It warns that the program runs as its own user.
  const server = new KilledServer({ udpPort: await freePort(), logLevel: 'error' })
  const file = join(server.directory, 'ran')
  server.append(writingTables(file))
  return runCourse('approvals', options, new Run(server, file, options))
}

class Run {
  readonly #server: KilledServer
  readonly #file: string
  readonly #options: RigOptions
  readonly #random: Random
  readonly #calls = new Calls()
  readonly #fired = new Tally(APPROVAL_POINTS.map((point) => `at ${point}`))
  /** What went wrong while something else was waited for. */
  #problem: unknown
  #kills = 0

  constructor(server: KilledServer, file: string, options: RigOptions) {
    this.#server = server
    this.#file = file
    this.#options = options
    this.#random = new Random(options.seed)
  }

  get moment(): string {
    return `kill ${this.#kills}`
  }

  remove(): Promise<void> {
    return this.#server.remove()
  }

  async all(): Promise<Totals> {
    const { count, say } = this.#options
    await this.#start()
    const admin: User = { name: 'local', secret: this.#server.secret, keys: undefined }
    await this.#calls.setUp(this.#server.listener, admin)
    await this.#stop()
    while (this.#kills < count) {
      // Each point in its turn, and after each of them any moment.
      const point = this.#kills % 2 === 0 ? APPROVAL_POINTS[(this.#kills / 2) % APPROVAL_POINTS.length] : undefined
      await this.#live(point)
      if (this.#kills % 50 === 0) say(`${this.#kills} kills, ${this.#calls.all.length} calls`)
    }
    await this.#endAll()
    const totals = this.#calls.judge(this.#file, this.#server.database)
    return { kills: this.#kills, lost: 0, unexpected: 0, reused: 0, ...this.#fired.totals(), ...totals }
  }

  async #start(): Promise<void> {
    if (!(await this.#server.start())) throw new Error('the server did not start')
  }

  async #stop(): Promise<void> {
    await this.#server.stop()
    this.#server.healthy()
  }

  /** One life: new calls and some of before are asked for, and decided about, until the server is killed. */
  async #live(point: string | undefined): Promise<void> {
    const times = 1 + this.#random.below(4)
    const listens = await this.#server.start(point === undefined ? undefined : { point, times, delay: 0 })
    this.#kills++
    if (!listens) return
    const asker = await this.#calls.askerLink(this.#server.listener)
    const lead = await this.#deciding()
    if (asker !== undefined) this.#askSome(asker)
    const ms = point === undefined ? this.#random.below(MOST_LIFE_MS) : PATIENCE_MS
    await Promise.race([this.#server.exited, setTimeout(ms, undefined, { ref: false })])
    if (point !== undefined && this.#server.fired) this.#fired.add(`at ${point}`)
    await this.#server.kill()
    this.#server.healthy()
    await Promise.all([asker?.ended, lead?.ended])
    if (this.#problem !== undefined) throw this.#problem
  }

  #deciding(): Promise<Link | undefined> {
    return this.#calls.leadLink(this.#server.listener, (one, link) => {
      this.#noting(this.#calls.decide(link, one))
    })
  }

  #noting(done: Promise<unknown>): void {
    done.catch((error: unknown) => {
      this.#problem ??= error
    })
  }

  #askSome(link: Link): void {
    for (let i = 0; i < CALLS_PER_LIFE; i++) {
      const isKeyed = this.#random.below(4) > 0
      const isRefused = this.#calls.all.length % 5 === 4
      const call = this.#calls.add({ sleep: randomSleep(this.#random), isKeyed, isRefused })
      this.#noting(this.#calls.ask(link, call))
    }
    const repeated = this.#calls.all.slice(-3 * CALLS_PER_LIFE).filter(({ isKeyed }) => isKeyed)
    for (let i = 0; i < CALLS_PER_LIFE; i++) this.#noting(this.#calls.ask(link, this.#random.pick(repeated)))
  }

  /** The last life: everything is asked for that has no answer yet, and approved. */
  async #endAll(): Promise<void> {
    await this.#start()
    const asker = await this.#calls.askerLink(this.#server.listener)
    const lead = await this.#deciding()
    if (asker === undefined || lead === undefined) throw new Error('the server is gone')
    await this.#calls.answered(asker)
    await setTimeout(2 * MOST_SLEEP_MS)
    asker.close()
    lead.close()
    if (this.#problem !== undefined) throw this.#problem
    await this.#stop()
  }
}
