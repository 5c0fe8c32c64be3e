/**
 * Rig: SIGKILL, at random moments and at named points, over one data directory. Producers send counters, consumers receive,
 * commit, delete and copy channels; after the last kill everything is drained and the whole history judged. `count` kills;
 * from as many as there are points on, each point is reached at least once.
 */

import { freePort } from '../support/free-port.ts'
import { Random } from '../support/random.ts'
import type { Json } from '../support/records.ts'
import { Checker } from './checker.ts'
import type { Consumer } from './kills/consumer.ts'
import { Feed } from './kills/feed.ts'
import { type Deed, everyone, Life, type World } from './kills/life.ts'
import { isOfRecovery, POINTS } from './kills/points.ts'
import { type Armed, KilledServer } from './kills/server.ts'
import { Watcher } from './kills/watcher.ts'
import type { Rig, RigOptions, Totals } from './rig.ts'

const SOURCES = [1, 2, 3]
/** How long a failpoint is waited for. */
const PATIENCE_MS = 6000
/** A point that was missed is tried again so often. */
const TRIES = 4
const MOST_LIFE_MS = 350
const MOST_CHECKPOINT_US = 1500
/** Longer than any drain: what did not come by then does not come. */
const DRAIN_MS = 60_000

export const kills: Rig = async (options) => {
  const port = await freePort()
  const server = new KilledServer(port)
  const run = new Run(server, port, options)
  try {
    return await run.all()
  } catch (error) {
    const what = error instanceof Error ? error.message : String(error)
    throw new Error(`kills, seed ${options.seed}, ${run.step}: ${what}`, { cause: error })
  } finally {
    run.world.feed.close()
    await server.remove()
  }
}

class Run {
  readonly world: World
  readonly #server: KilledServer
  readonly #watcher: Watcher
  readonly #options: RigOptions
  readonly #fired = new Map<string, number>()
  #kills = 0
  #random = 0
  #missed = 0

  constructor(server: KilledServer, port: number, options: RigOptions) {
    this.#server = server
    this.#options = options
    const checker = new Checker(options.seed)
    const random = new Random(options.seed)
    this.world = {
      checker,
      random,
      feed: new Feed(port, SOURCES, checker, random),
      user: { secret: '', keys: undefined },
      fixed: new Map(),
      copies: new Set(),
      deleted: new Set(),
      counts: {},
    }
    this.#watcher = new Watcher(checker, this.world.feed)
  }

  get step(): string {
    return this.world.checker.step
  }

  async all(): Promise<Totals> {
    const { count, say } = this.#options
    const plan = this.#plan()
    while (this.#kills < count) {
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
    const never = plan.filter((point) => !this.#fired.has(point))
    if (never.length > 0 && count > POINTS.length) throw new Error(`never reached: ${never.join(', ')}`)
    this.world.checker.step = 'drain'
    await this.#drain()
    this.world.checker.judge()
    return this.#totals()
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
    if (reached) this.#fired.set(name, (this.#fired.get(name) ?? 0) + 1)
    return reached
  }

  /** Starts the server and lets everybody work until it is killed: by what is armed, or after `ms`. */
  async #live(armed: Armed | undefined, ms: number, deed: Deed = 'nothing'): Promise<void> {
    const listens = await this.#server.start(armed)
    this.#kills++
    if (!listens) return
    const { world } = this
    const life = new Life(world, this.#server.port)
    const isFirst = world.fixed.size === 0
    if (isFirst) world.user.secret = this.#server.secret
    void this.#server.exited.then(() => life.end())
    if (isFirst) await life.setUp()
    if (await life.lookAround(this.#watcher)) {
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

  /** A last life: everything is released, received, and seen to be everything; then committed, and the queues are empty. */
  async #drain(): Promise<void> {
    const { world } = this
    if (!(await this.#server.start())) throw new Error('the server did not start')
    const life = new Life(world, this.#server.port)
    const end = performance.now() + DRAIN_MS
    if (!(await life.lookAround(this.#watcher))) throw new Error('the server is gone')
    await life.comeBack()
    // The last of each source: a hole before it shows.
    for (const source of SOURCES) await world.feed.send(source)
    await this.#until(end, 'nothing waits', async () => {
      for (const index of [0, 1]) await life.get(index)
      for (const consumer of everyone(world)) if (consumer.narrow) consumer.commitAll()
      return (record, consumer) =>
        world.feed.idle && record.queued === 0 && record.unstored === 0 && consumer.history.arrived >= record.in_flight
    })
    world.checker.judge()
    await this.#until(end, 'the queues are empty', async () => {
      for (const consumer of everyone(world)) consumer.commitAll()
      return (record) => record.queued === 0 && record.in_flight === 0
    })
    life.end()
    await this.#server.kill()
    this.#server.healthy()
  }

  async #until(
    end: number,
    what: string,
    act: () => Promise<(record: Json, consumer: Consumer) => boolean>,
  ): Promise<void> {
    for (;;) {
      const isDone = await act()
      const records = await this.#watcher.look(everyone(this.world))
      if (records === undefined) throw new Error('the server ended by itself')
      const left = everyone(this.world).filter((consumer) => !isDone(records.get(consumer.channel), consumer))
      if (left.length === 0) return
      if (performance.now() > end) {
        const record = JSON.stringify(records.get(left[0]!.channel))
        throw new Error(`waited in vain until ${what}: ${record}, ${left[0]!.history.arrived} came`)
      }
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }

  #totals(): Totals {
    const { checker, counts } = this.world
    const { lost, unexpected, reused, ...others } = checker.totals()
    const named = [...this.#fired].sort(([a], [b]) => a.localeCompare(b)).map(([name, times]) => [`at ${name}`, times])
    const deeds = Object.entries(counts).map(([deed, times]) => [`did ${deed}`, times])
    return {
      kills: this.#kills,
      lost: lost!,
      unexpected: unexpected!,
      reused: reused!,
      'at any moment': this.#random,
      ...Object.fromEntries(named),
      missed: this.#missed,
      ...others,
      ...Object.fromEntries(deeds),
      looks: this.#watcher.looks,
    }
  }
}
