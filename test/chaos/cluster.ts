/**
 * Rig: three machines with a node of a cluster and a nats-server each, which are killed, frozen, cut off and put back, alone and
 * together, while producers send counters and consumers receive, commit, delete and copy channels at any of the nodes. At the end
 * everything is drained and the whole history judged as of one server; and then the log and the databases of the nodes, which have
 * to be equal.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { Standstill } from '../rig/patience.ts'
import { type Rig, type RigOptions, runCourse, Tally, type Totals } from '../rig/rig.ts'
import { drain } from '../rig/world/drain.ts'
import { everyone, Life, type World, worldOf } from '../rig/world/life.ts'
import type { Link } from '../rig/world/link.ts'
import { Watcher } from '../rig/world/watcher.ts'
import { natsMissing } from '../support/nats.ts'
import { Random } from '../support/random.ts'
import type { Json } from '../support/records.ts'
import { PASSWORD } from '../support/server-process.ts'
import { compareDatabases } from './cluster/databases.ts'
import { judgeLog } from './cluster/epochs.ts'
import { FAULTS, type Fault, faultsInRounds, type Struck } from './cluster/faults.ts'
import { type ChaosNode, Nodes, type NodesOptions } from './cluster/nodes.ts'
import { servedAfter } from './cluster/probe.ts'
import { compareReplicas } from './cluster/replicas.ts'
import { Takeovers } from './cluster/takeovers.ts'

const SOURCES = [1, 2, 3]
/** Between two faults, at least and at most, when all nodes are there. */
const FIRST_LIFE_MS = 200
const MORE_LIFE_MS = 800
/** How long a frozen leader stays frozen after another has taken over, at most. */
const MOST_FROZEN_MS = 1_000
/** How long nothing may move before somebody serves, or all nodes are there: elections of the nats-servers take ten seconds and more. */
const PATIENCE_MS = 120_000
/**
 * After so long what was struck comes back although nobody leads: JetStream may have lost the end of the log with the server that led
 * it, and then all nodes are waited for. docs/cluster.md
 */
const WITHOUT_LEADER_MS = 40_000
const LOOK_MS = 100
/** Between two bursts of values, and between two looks: a leader lives for seconds, most of which are spent on nodes that come back. */
const [BURST_MS, WATCH_MS] = [10, 30]
/** Values that wait at the end, and how many are sent at once. */
const REST = 600
const BURST = 20
const PADDING_BYTES = 1_000
/** How long connections to a leader that is gone may take to end. */
const GRACE_MS = 3_000

/** The faults that end a leader as machines and operators do. */
const TIMED = ['leader killed', 'leader and stream killed', 'handed over']

/** What differs from the rig. */
export interface ClusterOptions extends RigOptions {
  readonly nodes?: NodesOptions
  /** Default: all of them. */
  readonly faults?: readonly Fault[]
}

export const cluster: Rig = (options) => runCluster(options)

/** How long it takes until another node serves, with the lease that nodes have if nothing is configured. */
export const failovers: Rig = (options) => {
  const faults = FAULTS.filter(({ name }) => TIMED.includes(name)).map((fault) => ({ ...fault, times: 1 }))
  return runCluster({ ...options, nodes: { lease: '2s' }, faults })
}

/** What nats-servers have of the log after leaders were cut off with the one of their machine, which may lead the log later. */
export const natsCuts: Rig = (options) => {
  return runCluster({ ...options, faults: FAULTS.filter(({ name }) => name === 'leader cut from NATS') })
}

export async function runCluster(options: ClusterOptions): Promise<Totals> {
  if (natsMissing !== undefined) throw new Error(natsMissing)
  const nodes = await Nodes.start(new Random(options.seed + 1), options.nodes)
  return runCourse('cluster', options, new Run(nodes, options))
}

/** The life of a leader, as consumers see it. */
interface Served {
  readonly life: Life
  readonly leader: ChaosNode
  readonly work: Promise<unknown>
  /** The leader is gone, or cannot be reached any more. */
  isOver: boolean
}

/** A leader, and a connection over which it has answered. */
interface Serving {
  readonly leader: ChaosNode
  readonly link: Link
}

/** What is left of the life of a leader that was frozen or cut off. */
interface Ghost {
  readonly node: ChaosNode
  readonly links: readonly Link[]
  readonly work: Promise<unknown>
  readonly isFrozen: boolean
}

class Run {
  readonly world: World
  readonly #nodes: Nodes
  readonly #options: ClusterOptions
  readonly #watcher: Watcher
  readonly #random: Random
  readonly #faultsToCome: Generator<Fault, never>
  readonly #takeovers: Takeovers
  readonly #struck = new Tally()
  #broken: Struck | undefined
  #ghost: Ghost | undefined
  #faults = 0
  #setAside = 0
  /** How often nobody could lead before what was struck was back. */
  #waits = 0
  readonly #ended = new AbortController()

  constructor(nodes: Nodes, options: ClusterOptions) {
    this.#nodes = nodes
    this.#options = options
    this.#random = new Random(options.seed + 2)
    const { missing } = nodes.machines
    if (missing !== undefined) options.say(`nothing is cut off, and no disk fills: ${missing}`)
    const { faults = FAULTS } = options
    const possible = faults.filter(({ needsRoot }) => missing === undefined || needsRoot !== true)
    // Of its own, so that the order depends on nothing else.
    this.#faultsToCome = faultsInRounds(new Random(options.seed + 3), possible)
    this.world = worldOf({ name: 'admin', secret: PASSWORD, keys: undefined }, SOURCES, options)
    this.#watcher = new Watcher(this.world.checker)
    this.#takeovers = new Takeovers(this.world.checker)
  }

  get moment(): string {
    return this.world.checker.step
  }

  async remove(): Promise<void> {
    this.world.feed.close()
    await this.#nodes.remove()
  }

  async all(): Promise<Totals> {
    const { count, say } = this.#options
    const { checker } = this.world
    while (this.#faults < count) {
      await this.#live()
      checker.verify()
      say(`${this.#faults} faults, ${this.#takeovers.count} takeovers, ${checker.totals()['delivered']} values`)
    }
    checker.step = 'drain'
    await this.#drain()
    checker.step = 'end'
    this.#ended.abort()
    await this.#nodes.stop()
    const totals = this.#totals()
    say(`before the databases and the log are judged: ${JSON.stringify(totals)}`)
    const databases = await compareDatabases(this.#nodes)
    const log = await judgeLog(this.#nodes.logOptions('judge'))
    const stores = this.#nodes.all.map(({ index }) => this.#nodes.nats.storeDirectory(index))
    return { ...totals, ...log, ...databases, ...compareReplicas(stores) }
  }

  /** From the moment in which a leader serves to that in which it does not. */
  async #live(): Promise<void> {
    const served = await this.#begin()
    while (!served.isOver && this.#faults < this.#options.count) {
      await this.#restore()
      await this.#wholeOrOver(served)
      await Promise.race([delay(FIRST_LIFE_MS + this.#random.below(MORE_LIFE_MS)), served.work])
      if (served.isOver) break
      const fault = this.#faultsToCome.next().value
      await this.#strike(fault, served)
      if (fault.ends !== 'nothing') return
    }
    // Another leader was not asked for, but it happens on a busy machine; or a front is gone.
    await this.#end(served)
  }

  async #strike(fault: Fault, served: Served): Promise<void> {
    const { life, leader, work } = served
    this.#faults++
    this.#struck.add(fault.name)
    this.world.checker.step = `fault ${this.#faults} (${fault.name}, ${leader.name})`
    this.#options.say(this.world.checker.step)
    if (fault.ends !== 'nothing') this.#takeovers.begin(fault.name, this.#servedAgain())
    const struck = await fault.strike(this.#nodes, leader, this.#random)
    this.#broken = struck
    if (fault.leaves !== undefined) {
      this.#ghost = { node: leader, links: this.#haunt(life), work, isFrozen: fault.leaves === 'frozen' }
    } else if (fault.ends !== 'nothing') await this.#end(served)
    else if (struck.says !== undefined) await this.#untilSaid(served, struck.says)
    if (fault.ends === 'all') await this.#restore()
  }

  /** Asks beside everything else, over connections of its own: consumers of the rig have more to do first. */
  #servedAgain(): Promise<void> {
    const patience = AbortSignal.timeout(PATIENCE_MS)
    const signal = AbortSignal.any([patience, this.#ended.signal])
    return servedAfter(this.#takeovers.epoch, this.#nodes, this.world.user, signal)
  }

  /** What was struck comes back; a frozen leader finds that another one leads, and one that is cut off has found that before. */
  async #restore(): Promise<void> {
    const [broken, ghost] = [this.#broken, this.#ghost]
    this.#broken = undefined
    this.#ghost = undefined
    if (ghost?.isFrozen === false) await this.#vanish(ghost)
    if (ghost?.isFrozen === true) await delay(this.#random.below(MOST_FROZEN_MS))
    await broken?.mend()
    if (ghost?.isFrozen === true) await this.#vanish(ghost)
  }

  /** If nobody leads for long, what was struck comes back meanwhile. */
  async #comeBackLate(signal: AbortSignal): Promise<void> {
    if (this.#broken === undefined) return
    await delay(WITHOUT_LEADER_MS, undefined, { signal }).catch(() => {})
    if (signal.aborted) return
    this.#waits++
    this.#options.say('nobody leads: what was struck comes back')
    const broken = this.#broken
    this.#broken = undefined
    await broken?.mend()
  }

  /** Waits until a leader that was replaced has no consumers any more. */
  async #vanish({ node, links, work, isFrozen }: Ghost): Promise<void> {
    const late = delay(PATIENCE_MS, true, { ref: false })
    for (const link of links) {
      if ((await Promise.race([link.ended, late])) !== true) continue
      const how = isFrozen ? 'was frozen' : 'is cut off'
      throw new Error(`${node.name}, which ${how}, still has consumers although another node leads`)
    }
    await work
  }

  /** Until a node says what keeps it from leading. */
  async #untilSaid(served: Served, { node, obstacle }: NonNullable<Struck['says']>): Promise<void> {
    const { feed } = this.world
    const end = performance.now() + PATIENCE_MS
    // What is stored has to need room.
    feed.paddingBytes = PADDING_BYTES
    while (!served.isOver) {
      const state = await this.#watcher.query('producer.cluster')
      const said = (state?.nodes as Json[] | undefined)?.find(({ name }) => name === node.name)
      if (said?.obstacle.includes(obstacle)) break
      if (performance.now() > end) throw new Error(`it should say "${obstacle}": ${JSON.stringify(said)}`)
      await Promise.race([delay(LOOK_MS), served.work])
    }
    feed.paddingBytes = 0
  }

  /** Waits until somebody serves, and lets everybody work. */
  async #begin(): Promise<Served> {
    const { world } = this
    const life = new Life(world, this.#nodes)
    const { leader } = await this.#untilServed(life)
    let isEnding = false
    const work = Promise.all([
      life.comeBack(),
      world.feed.run(BURST_MS),
      this.#watcher.run(() => everyone(world), WATCH_MS).then(() => end()),
      life.run('nothing'),
    ]).catch((error: unknown) => {
      // A leader that hands over may refuse what is under way.
      if (!isEnding && !life.over) throw error
    })
    const served: Served = { life, leader, work, isOver: false }
    const end = (): void => {
      isEnding = true
      served.isOver = true
      life.end()
    }
    // It is awaited later.
    work.catch(() => {})
    return served
  }

  /** Waits until somebody serves. Throws if nothing moves any more, or what was struck does not come back. */
  async #untilServed(life: Life): Promise<Serving> {
    const found = new AbortController()
    const mended = this.#comeBackLate(found.signal)
    // It is awaited later.
    mended.catch(() => life.end())
    const patience = this.#whileItMoves(life, found.signal)
    let serving: Serving | undefined
    while (serving === undefined && !life.over) serving = await this.#serving(life)
    found.abort()
    await mended
    this.#nodes.healthy()
    if (serving === undefined) throw new Error(`nobody serves, and nothing moves: ${await patience}`)
    return serving
  }

  /** Ends the life at a standstill of the nodes and the nats-servers. Gives what was seen of them last. */
  async #whileItMoves(life: Life, signal: AbortSignal): Promise<string> {
    const standstill = new Standstill(PATIENCE_MS)
    let state = ''
    while (!life.over && !signal.aborted) {
      state = await this.#nodes.look()
      if (!signal.aborted && standstill.isReached(state)) life.end()
      await delay(LOOK_MS * 10, undefined, { signal }).catch(() => {})
    }
    return state
  }

  /** The node that leads, once it has answered everything that is asked first; undefined if it is gone before. */
  async #serving(life: Life): Promise<Serving | undefined> {
    const { checker, feed, fixed } = this.world
    const link = await life.open()
    if (link === undefined) return undefined
    this.#watcher.attach(link)
    const state = await this.#watcher.query('producer.cluster')
    if (state === undefined || state.leader === '') return undefined
    const { leader, epoch } = state as { leader: string; epoch: number }
    if (epoch < this.#takeovers.epoch) {
      checker.fault(
        'unexpected',
        `${leader} served in epoch ${epoch} after somebody had in epoch ${this.#takeovers.epoch}`,
      )
      return undefined
    }
    // One that is cut off from NATS alone is still reached through the others, until it gives up by itself.
    if (leader === this.#ghost?.node.name && epoch === this.#takeovers.epoch) {
      link.close()
      await delay(LOOK_MS)
      return undefined
    }
    const node = this.#nodes.named(leader)
    const isEarlier = node.server.program === this.#options.nodes?.programs?.[leader]
    this.#takeovers.serves(epoch, leader, isEarlier ? 'the earlier version' : undefined)
    feed.target = this.#nodes.feedOf(node)
    if (fixed.size === 0) await life.setUp()
    return (await life.lookAround(this.#watcher, link)) ? { leader: node, link } : undefined
  }

  /** Until every node leads, or follows and could lead. */
  async #wholeOrOver(served: Served): Promise<void> {
    const standstill = new Standstill(PATIENCE_MS)
    while (!served.isOver) {
      const state = await this.#watcher.query('producer.cluster')
      const missing = (state?.nodes as Json[] | undefined)?.filter(
        ({ role, obstacle }) => role === 'not heard' || obstacle !== '',
      )
      if (missing?.length === 0) {
        // One fault at a time: until then the next one could leave less than a majority.
        await Promise.race([this.#nodes.inStep(), served.work])
        this.#setAside += this.#nodes.removeSetAside()
        return
      }
      this.#nodes.healthy()
      const seen = JSON.stringify(missing)
      if (standstill.isReached(seen)) throw new Error(`not all nodes are there: ${seen}`)
      await Promise.race([delay(LOOK_MS), served.work])
    }
  }

  /** Consumers leave a frozen leader, their last COMMITs unread by it; what it answers to them later is judged. */
  #haunt(life: Life): Link[] {
    life.end()
    this.#watcher.detach()
    const consumers = everyone(this.world)
    for (const consumer of consumers) consumer.commitSome()
    const links = consumers.flatMap((consumer) => consumer.leave() ?? [])
    life.close(new Set(links))
    return links
  }

  async #end({ life, work }: Served): Promise<void> {
    life.end()
    await Promise.race([work, delay(GRACE_MS)])
    life.close()
    await work
    for (const consumer of everyone(this.world)) consumer.leave()
  }

  async #drain(): Promise<void> {
    for (;;) {
      const served = await this.#begin()
      await this.#restore()
      await this.#wholeOrOver(served)
      if (served.isOver) continue
      await this.#end(served)
      const life = new Life(this.world, this.#nodes)
      // Another node may lead by now, or the same one again.
      const { link } = await this.#untilServed(life)
      const isDrained = (await drain(life, this.#watcher, link)) && (await this.#fill())
      life.end()
      life.close()
      if (isDrained) return
    }
  }

  /** Values wait in the queues, so that there is something to be compared; false if the leader is gone. */
  async #fill(): Promise<boolean> {
    const { feed } = this.world
    for (let sent = 0; sent < REST; sent += BURST) {
      await feed.burst(BURST)
      while (!feed.idle) await delay(LOOK_MS / 10)
    }
    for (;;) {
      const records = await this.#watcher.look(everyone(this.world))
      if (records === undefined) return false
      if (this.#watcher.hasTakenAll && [...records.values()].every(({ unstored }) => unstored === 0)) return true
      await delay(LOOK_MS)
    }
  }

  #totals(): Totals {
    const { checker, counts } = this.world
    const { lost, unexpected, reused, ...others } = checker.totals()
    return {
      faults: this.#faults,
      lost: lost!,
      unexpected: unexpected!,
      reused: reused!,
      ...this.#struck.sorted(),
      ...this.#takeovers.totals(),
      'takeovers that waited for all nodes': this.#waits,
      'databases set aside': this.#setAside,
      ...others,
      ...counts.totals(),
      looks: this.#watcher.looks,
    }
  }
}
