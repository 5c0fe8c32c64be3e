/**
 * What a cluster cannot keep: the power fails everywhere, the log comes back without its end, and the machine of the leader, which
 * alone has what was acknowledged last, does not come back. Then that is lost; but consumers get a GAP for it, and no transaction
 * id is given again.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { until } from '../../rig/patience.ts'
import { Life, worldOf } from '../../rig/world/life.ts'
import type { Link, Listener, Message } from '../../rig/world/link.ts'
import { Watcher } from '../../rig/world/watcher.ts'
import { command } from '../../support/bytes.ts'
import { eventually } from '../../support/eventually.ts'
import { natsMissing } from '../../support/nats.ts'
import { Random } from '../../support/random.ts'
import { decoded, type Json } from '../../support/records.ts'
import { PASSWORD } from '../../support/server-process.ts'
import { compareDatabases } from './databases.ts'
import { type ChaosNode, Nodes } from './nodes.ts'

const SOURCE = 1
const METRIC = 'gmetric.c1'
const RESTORED = 7
const REPLACED = 9
const LOOK_MS = 100
const KEPT = 40
const LOST = 30
const NEW = 20

const howTo = natsMissing === undefined ? '' : ` (${natsMissing})`

class Course {
  readonly nodes: Nodes
  readonly #world = worldOf({ name: 'admin', secret: PASSWORD, keys: undefined }, [SOURCE], { seed: 1 })
  readonly #watcher = new Watcher(this.#world.checker)
  #life: Life
  #leader: ChaosNode | undefined
  #channel = 0
  /** What came on the present connection: the counter of a value, or the reason of a GAP, by transaction id. */
  values = new Map<number, number>()
  gaps = new Map<number, number>()
  #link: Link | undefined

  constructor(nodes: Nodes) {
    this.nodes = nodes
    this.#life = new Life(this.#world, this)
  }

  /** The leader, since the front of another node may be frozen. */
  get listener(): Listener {
    return this.#leader?.server.listener ?? this.nodes.listener
  }

  /** The node that leads, after it could be asked. */
  async leader(): Promise<ChaosNode> {
    for (;;) {
      const link = await this.#life.open()
      this.#watcher.attach(link as Link)
      const state = await this.#watcher.query('producer.cluster')
      const leader = state?.leader ?? ''
      if (leader !== '') {
        this.#world.feed.target = this.nodes.feedOf(this.nodes.named(leader))
        this.#leader = this.nodes.named(leader)
        this.#watcher.attach((await this.#life.open()) as Link)
        return this.#leader
      }
      await delay(LOOK_MS)
    }
  }

  /** Waits until all nodes have the same, and none has an obstacle. */
  async inStep(): Promise<void> {
    for (;;) {
      const state = await this.#watcher.query('producer.cluster')
      const nodes = (state?.nodes ?? []) as Json[]
      const sequences = new Set(nodes.map(({ sequence }) => sequence))
      if (nodes.length === 3 && sequences.size === 1 && nodes.every(({ obstacle }) => obstacle === '')) return
      await delay(LOOK_MS)
    }
  }

  /** A channel with what METRIC measures, or the one that there is. */
  async consume(): Promise<void> {
    const link = (await this.#life.open()) as Link
    this.#link = link
    this.values = new Map()
    this.gaps = new Map()
    link.onMessage = (message) => this.#take(message)
    if (this.#channel === 0) this.#channel = (await link.ok((seq) => command.defChannel(seq))) as number
    await link.ok((seq) => command.setChannel(seq, this.#channel))
  }

  async subscribe(): Promise<void> {
    const metric = await this.#link?.ok((seq) => command.collect(seq, METRIC))
    await this.#link?.ok((seq) => command.subscribe(seq, metric as number))
  }

  /** Sends counters, and waits until they came and are stored. */
  async send(count: number): Promise<number[]> {
    const first = this.#world.checker.sent(SOURCE) + 1
    for (let sent = 0; sent < count; sent++) {
      await this.#world.feed.send(SOURCE)
      await until('the value was sent', () => this.#world.feed.idle, { looks: 60_000, everyMs: 1 })
    }
    const counters = Array.from({ length: count }, (_, index) => first + index)
    await eventually(async () => {
      expect([...this.values.values()]).toEqual(expect.arrayContaining(counters))
      const records = (await this.#watcher.query('producer.channels')) as unknown as Json[]
      expect(records.find(({ channel }) => channel === this.#channel)).toMatchObject({ unstored: 0 })
    })
    return counters
  }

  /** Commits a value, and waits for the answer. */
  async commit(id: number): Promise<void> {
    await this.#link?.ok((seq) => command.commitThrough(seq, id))
  }

  /** Everybody's connections end, and others are made later. */
  leave(): void {
    this.#life.end()
    this.#life.close()
    this.#life = new Life(this.#world, this)
    this.#leader = undefined
  }

  close(): void {
    this.leave()
    this.#world.feed.close()
  }

  #take(message: Message): void {
    if (message.kind === 'gap') this.gaps.set(message.transaction, message.reason)
    if (message.kind !== 'value' || message.transaction === 0) return
    const value = decoded(message)
    this.values.set(message.transaction, Number(String(value?.value ?? value).split('-')[1]))
  }
}

// Skipped only where nats-server is missing; the name says how to install it.
it.skipIf(natsMissing !== undefined)(
  `the leader's machine and the end of the log are lost: a GAP reports it, and no id comes twice${howTo}`,
  { timeout: 600_000 },
  async () => {
    const nodes = await Nodes.start(new Random(1))
    const course = new Course(nodes)
    try {
      const leader = await course.leader()
      const followers = nodes.all.filter((node) => node !== leader)
      await course.consume()
      await course.subscribe()
      // The log comes back as it is now.
      await course.send(1)
      await nodes.copies.ready()
      await nodes.copies.stop()
      const kept = await course.send(KEPT)
      await course.inStep()
      // From here on only the nats-servers and the leader have it.
      for (const node of followers) nodes.freeze(node)
      const lost = await course.send(LOST)
      const ids = new Map([...course.values].map(([id, counter]) => [counter, id]))
      await nodes.copies.ready()
      await Promise.all([
        ...nodes.all.map(({ server }) => server.kill()),
        ...nodes.nats.urls.map((_, index) => nodes.nats.kill(index)),
      ])
      course.leave()
      for (const node of nodes.all) node.isAway = false
      for (const index of nodes.nats.urls.keys()) await nodes.copies.putBack(index)
      // A new machine.
      nodes.erase(leader)
      await Promise.all(nodes.nats.urls.map((_, index) => nodes.nats.restart(index)))
      for (const { server } of nodes.all) server.launch()

      expect(followers).toContain(await course.leader())
      await course.consume()
      const added = await course.send(NEW)
      const came = new Map([...course.values].map(([id, counter]) => [counter, id]))
      // What the others had comes again, each under its id; nothing of the rest does.
      for (const counter of kept) expect(came.get(counter)).toBe(ids.get(counter))
      for (const counter of lost) expect(came.has(counter)).toBe(false)
      const [[gap, reason] = [0, 0], ...more] = course.gaps
      expect(reason).toBe(RESTORED)
      // What the feeder of the lost machine had is gone too.
      for (const [, reason] of more) expect(reason).toBe(REPLACED)
      const [lastKept, lastLost, firstNew] = [ids.get(kept.at(-1)!)!, ids.get(lost.at(-1)!)!, came.get(added[0]!)!]
      expect(lastKept).toBeLessThan(gap)
      // Ids that the lost machine may have given are skipped.
      expect(lastLost).toBeLessThan(gap)
      expect(gap).toBeLessThan(firstNew)
      await course.commit(firstNew)
      await course.inStep()
      course.leave()
      await nodes.stop()
      expect(await compareDatabases(nodes)).toMatchObject({ 'equal rows': expect.any(Number) })
    } finally {
      course.close()
      await nodes.remove()
    }
  },
)
