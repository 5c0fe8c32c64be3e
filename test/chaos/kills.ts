/**
 * Rig: SIGKILL, at random moments and at named points, over one data directory. Producers send counters, consumers receive,
 * commit, delete and copy channels; after the last kill everything is drained and the whole history judged. `count` kills, and more
 * if few values have come by then; from 30 on each point is reached at least once: those of a recovery need two.
 */

import { type Armed, KilledServer } from '../rig/killed-server/killed-server.ts'
import { type Rig, type RigOptions, runCourse, Tally, type Totals } from '../rig/rig.ts'
import { drain } from '../rig/world/drain.ts'
import { feedOnLoopback } from '../rig/world/feed.ts'
import { type Deed, everyone, Life, type World, worldOf } from '../rig/world/life.ts'
import { Watcher } from '../rig/world/watcher.ts'
import { freePort } from '../support/free-port.ts'

/** A failpoint of killed-server/failpoints.cjs, and what leads to it. */
interface Point {
  readonly name: string
  readonly deed: Deed
  /** Killed at one of the first so many times. */
  readonly within: number
}

const point = (name: string, deed: Deed, within = 1): Point => ({ name, deed, within })

export const POINTS: readonly Point[] = [
  point('before-insert', 'nothing', 40),
  point('inserted-not-committed', 'nothing', 20),
  point('committed-not-told', 'nothing', 20),
  point('response-not-written', 'commit', 20),
  point('half-a-commit-batch', 'commit', 10),
  point('checkpoint', 'rest'),
  point('overflow-gap', 'nothing', 3),
  point('half-the-copies', 'copy', 2),
  point('copies-not-committed', 'copy', 2),
  point('channel-defined', 'copy', 2),
  point('channel-half-deleted', 'delete', 2),
  point('swap-not-told', 'swap', 3),
  point('swap-not-stored', 'swap', 3),
  point('swap-stored', 'swap', 3),
  point('range-not-reserved', 'nothing', 3),
  point('range-reserved', 'nothing', 3),
  point('half-released', 'get', 3),
  point('execute-announced', 'execute', 2),
  point('result-not-stored', 'execute', 2),
  point('recovery-reading', 'nothing'),
  point('recovery-storing', 'nothing'),
  point('recovery-stored', 'nothing'),
]

/** Killed there, and when it is started again killed there again. */
function isOfRecovery(name: string): boolean {
  return name.startsWith('recovery-')
}

const SOURCES = [1, 2, 3]
/** How long a failpoint is waited for. */
const PATIENCE_MS = 6000
/** A point that was missed is tried again so often. */
const TRIES = 4
const MOST_LIFE_MS = 350
/** A run goes on until so many have been stored and delivered for each kill, or until there were so many times the kills. */
export const VALUES_PER_KILL = 30
const MOST_LIVES = 10
const MOST_CHECKPOINT_US = 1500

export const kills: Rig = async (options) => {
  const udpPort = await freePort()
  return runCourse('kills', options, new Run(new KilledServer({ udpPort }), udpPort, options))
}

class Run {
  readonly world: World
  readonly #server: KilledServer
  readonly #watcher: Watcher
  readonly #options: RigOptions
  readonly #fired = new Tally()
  #kills = 0
  #random = 0
  #missed = 0

  constructor(server: KilledServer, udpPort: number, options: RigOptions) {
    this.#server = server
    this.#options = options
    this.world = worldOf({ name: 'local', secret: '', keys: undefined }, SOURCES, options)
    this.world.feed.target = feedOnLoopback(udpPort)
    this.#watcher = new Watcher(this.world.checker)
  }

  get moment(): string {
    return this.world.checker.step
  }

  async remove(): Promise<void> {
    this.world.feed.close()
    await this.#server.remove()
  }

  async all(): Promise<Totals> {
    const { count, say } = this.#options
    const plan = this.#plan()
    while (this.#kills < count || (this.#kills < MOST_LIVES * count && !this.#hasFlowed(VALUES_PER_KILL * count))) {
      // The first life makes the channels: whoever is not answered then would have nothing to come back to.
      const point = this.#kills === 0 ? undefined : plan.length > 0 ? plan.shift() : this.#any()
      this.world.checker.step = `kill ${this.#kills + 1} (${point ?? 'any moment'})`
      if (point !== undefined && !(await this.#killAt(point))) {
        this.#missed++
        if (this.#missed < TRIES * POINTS.length) plan.push(point)
      } else if (point === undefined) {
        await this.#live(undefined, this.world.random.below(MOST_LIFE_MS))
        this.#random++
      }
      this.world.checker.verify()
      if (this.#kills % 50 === 0) say(`${this.#kills} kills, ${this.world.checker.totals()['delivered']} values`)
    }
    const never = plan.filter((point) => this.#fired.of(point) === 0)
    if (never.length > 0 && count > POINTS.length) throw new Error(`never reached: ${never.join(', ')}`)
    this.world.checker.step = 'drain'
    await this.#drain()
    this.world.checker.judge()
    return this.#totals()
  }

  /** Whether enough came for the run to prove something: on a slow machine that takes more lives. */
  #hasFlowed(values: number): boolean {
    const { delivered = 0, stored = 0 } = this.world.checker.totals()
    return delivered > values && stored > values
  }

  /** Every point, shuffled; those of the recovery cost two kills. */
  #plan(): string[] {
    const points = POINTS.map(({ name }) => ({ name, at: this.world.random.next() }))
    return points.sort((a, b) => a.at - b.at).map(({ name }) => name)
  }

  #any(): string | undefined {
    const { random } = this.world
    return random.below(2) === 0 ? undefined : random.pick(POINTS).name
  }

  /** False if the point was not reached. The server is gone in any case. */
  async #killAt(name: string): Promise<boolean> {
    const { random } = this.world
    const { deed, within } = POINTS.find((point) => point.name === name)!
    const armed = { point: name, times: 1 + random.below(within), delay: random.below(MOST_CHECKPOINT_US) }
    let reached = true
    for (let time = 0; time < (isOfRecovery(name) ? 2 : 1) && reached; time++) {
      await this.#live(armed, PATIENCE_MS, deed)
      reached = this.#server.fired
    }
    if (reached) this.#fired.add(name)
    return reached
  }

  /** Starts the server and lets everybody work until it is killed: by what is armed, or after `ms`. */
  async #live(armed: Armed | undefined, ms: number, deed: Deed = 'nothing'): Promise<void> {
    const listens = await this.#server.start(armed)
    this.#kills++
    if (!listens) return
    const { world } = this
    const life = new Life(world, this.#server)
    const isFirst = world.fixed.size === 0
    if (isFirst) world.user.secret = this.#server.secret
    void this.#server.exited.then(() => life.end())
    if (isFirst) await life.setUp()
    const link = await life.open()
    if (link !== undefined && (await life.lookAround(this.#watcher, link))) {
      const work = Promise.all([
        life.comeBack(),
        world.feed.run(),
        this.#watcher.run(() => everyone(world)),
        life.run(deed),
      ])
      // A failed check ends it at once; work that goes on ends with the server.
      const timer = new Promise((resolve) => setTimeout(resolve, ms).unref())
      await Promise.race([timer, this.#server.exited, work])
      await this.#server.kill()
      await work
    }
    await this.#server.kill()
    this.#server.healthy()
    world.checker.died()
  }

  async #drain(): Promise<void> {
    if (!(await this.#server.start())) throw new Error('the server did not start')
    const life = new Life(this.world, this.#server)
    void this.#server.exited.then(() => life.end())
    const link = await life.open()
    if (link === undefined || !(await drain(life, this.#watcher, link))) throw new Error('the server ended by itself')
    life.end()
    await this.#server.kill()
    this.#server.healthy()
  }

  #totals(): Totals {
    const { checker, counts } = this.world
    const { lost, unexpected, reused, ...others } = checker.totals()
    return {
      kills: this.#kills,
      lost: lost!,
      unexpected: unexpected!,
      reused: reused!,
      'at any moment': this.#random,
      ...this.#fired.sorted('at '),
      missed: this.#missed,
      ...others,
      ...counts.totals(),
      looks: this.#watcher.looks,
    }
  }
}
