/**
 * One life of the server: consumers come back, producers go on, and things are done to channels until it is killed. What is
 * done is picked at random; while a failpoint is armed, mostly what leads to it.
 */

import { args, command, str, type, u32, u64 } from '../../support/bytes.ts'
import { Random } from '../../support/random.ts'
import { Tally } from '../rig.ts'
import { Checker } from './checker.ts'
import { Consumer } from './consumer.ts'
import { Feed, feedOnLoopback, metricOf } from './feed.ts'
import type { Policy } from './history.ts'
import { Link, type Listener, type User } from './link.ts'
import type { Watcher } from './watcher.ts'

const TICK_MS = 8
/** Between two attempts to log in. */
const RETRY_MS = 20
const MOST_COPIES = 4
/** Longer than any run waits, and shorter than a clock may be wrong. */
const MAX_AGE_MS = 1_800_000

export type Deed = 'commit' | 'get' | 'copy' | 'delete' | 'swap' | 'drop' | 'execute' | 'rest' | 'nothing'
const DEEDS: readonly Deed[] = ['get', 'get', 'copy', 'delete', 'swap', 'drop', 'execute']

const PATTERN_SOURCES = [1, 2, 3]
/** Bound by a name of its own, so that its values are plain. */
const PLAIN_SOURCE = 3

export interface World {
  readonly checker: Checker
  readonly feed: Feed
  readonly random: Random
  readonly user: User
  /** The channels there always are, by what they are for. */
  readonly fixed: Map<string, Consumer>
  /** Channels that SUBSCRIBE copied to; they come and go. */
  readonly copies: Set<Consumer>
  /** DEL_CHANNEL was answered OK. */
  readonly deleted: Set<number>
  /** What was done, as `did copy`. */
  readonly counts: Tally
}

export function worldOf(user: User, sources: readonly number[], { seed }: { readonly seed: number }): World {
  const checker = new Checker(seed)
  const random = new Random(seed)
  return {
    checker,
    random,
    feed: new Feed(feedOnLoopback(0), sources, checker, random),
    user,
    fixed: new Map(),
    copies: new Set(),
    deleted: new Set(),
    counts: new Tally(),
  }
}

export function everyone({ fixed, copies }: World): Consumer[] {
  return [...fixed.values(), ...copies]
}

export class Life {
  readonly world: World
  readonly #servers: { readonly listener: Listener }
  readonly #links = new Set<Link>()
  #over = false
  /** Something of the fixed order is under way: one deed at a time. */
  #deed: Promise<unknown> = Promise.resolve()

  constructor(world: World, servers: { readonly listener: Listener }) {
    this.world = world
    this.#servers = servers
  }

  get over(): boolean {
    return this.#over
  }

  end(): void {
    this.#over = true
    this.world.feed.stop()
  }

  /** Closes all connections that this life has opened, but for those to be kept. */
  close(kept: ReadonlySet<Link> = new Set()): void {
    for (const link of this.#links) if (!kept.has(link)) link.close()
  }

  /** A connection; undefined if it is over before there is one. */
  async open(): Promise<Link | undefined> {
    while (!this.#over) {
      const link = await Link.open(this.#servers.listener, this.world.user)
      if (link !== undefined && !this.#over) {
        this.#links.add(link)
        return link
      }
      // A login that waited for the next leader belongs to its life, not to this one.
      link?.close()
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
    }
    return undefined
  }

  /** The first life: the channels are made. */
  async setUp(): Promise<void> {
    const small = [['max_bytes', type.uint64, u64(12_288)] as const, ['window_bytes', type.uint64, u64(4_096)] as const]
    const age = [['max_age_ms', type.uint64, u64(MAX_AGE_MS)] as const]
    await this.#make('pattern', 'keep', age, 'subscribe', [['c*', PATTERN_SOURCES]])
    await this.#make('buffer', 'keep', [], 'buffer', [
      ['c1', [1]],
      ['c2', [2]],
    ])
    await this.#make('plain', 'keep', [['window', type.uint32, u32(50)]], 'subscribe', [
      [metricOf(PLAIN_SOURCE), [PLAIN_SOURCE]],
    ])
    await this.#make('latest', 'latest', [['overflow', type.string, str('keep-latest')]], 'subscribe', [
      ['c*', PATTERN_SOURCES],
    ])
    await this.#make('oldest', 'overflow', small, 'subscribe', [['c*', PATTERN_SOURCES]])
    const newest = [...small, ['overflow', type.string, str('drop-newest')] as const]
    await this.#make('newest', 'overflow', newest, 'subscribe', [['c*', PATTERN_SOURCES]])
  }

  async #make(
    name: string,
    policy: Policy,
    settings: readonly (readonly [string, number, Uint8Array])[],
    mode: 'subscribe' | 'buffer',
    metrics: readonly (readonly [string, readonly number[]])[],
  ): Promise<void> {
    const { checker, random, fixed } = this.world
    const link = await this.open()
    const channel = await link?.ok((seq) => command.defChannel(seq, '', args(...settings)))
    const consumer = new Consumer(checker.channel(channel!, policy), checker, random)
    fixed.set(name, consumer)
    consumer.narrow = settings.some(([setting]) => setting.startsWith('window'))
    await consumer.take(link!)
    for (const [metric, sources] of metrics) {
      const id = await link!.ok((seq) => command.collect(seq, `gmetric.${metric}`))
      await consumer.bind(id!, sources, mode)
    }
    consumer.sure = true
  }

  /**
   * The first look after a restart, before anything is sent: what was answered OK is there. What nobody knows of, since
   * the answer got lost, is deleted. False if the server is gone.
   */
  async lookAround(watcher: Watcher, link: Link): Promise<boolean> {
    const { checker, copies, deleted } = this.world
    watcher.attach(link)
    const records = await watcher.look(everyone(this.world))
    if (records === undefined) return false
    for (const channel of deleted)
      if (records.has(channel)) checker.fault('unexpected', `deleted channel ${channel} is back`)
    for (const consumer of copies) {
      if (consumer.sure && !consumer.gone) continue
      if (!consumer.gone) checker.close(consumer.history, false)
      copies.delete(consumer)
    }
    const known = new Set(everyone(this.world).map((consumer) => consumer.channel))
    for (const { channel, state } of records.values()) {
      if (known.has(channel) || state !== 'waiting') continue
      const answer = await link.ask((seq) => command.delChannel(seq, channel))
      if (answer === undefined) return false
      if (answer.status === 0) deleted.add(channel)
    }
    return true
  }

  /** Everybody's connection, as after any restart. */
  async comeBack(): Promise<void> {
    await Promise.all(everyone(this.world).map((consumer) => this.#take(consumer)))
  }

  async #take(consumer: Consumer): Promise<void> {
    const link = await this.open()
    if (link === undefined || consumer.gone || (await consumer.take(link))) return
    link.close()
  }

  /** Until it is over: commits and deeds. `favoured` is done in most ticks. */
  async run(favoured: Deed): Promise<void> {
    const { random, feed } = this.world
    let busy = false
    while (!this.#over) {
      if (favoured === 'rest') feed.stop()
      else {
        this.#commit(favoured)
        const deed = random.below(4) > 0 ? favoured : random.below(2) === 0 ? random.pick(DEEDS) : 'nothing'
        if (!busy && deed !== 'nothing' && deed !== 'commit') {
          busy = true
          this.#deed = this.#do(deed).finally(() => {
            busy = false
          })
        }
      }
      await new Promise((resolve) => setTimeout(resolve, TICK_MS))
    }
    await this.#deed
  }

  #commit(favoured: Deed): void {
    const { random } = this.world
    for (const consumer of everyone(this.world)) {
      // Those with little room commit seldom, so that it runs out.
      if (consumer.history.policy === 'overflow' && random.below(12) > 0) continue
      if (favoured === 'commit') consumer.commitShuffled()
      else if (random.below(3) === 0) consumer.commitSome()
    }
  }

  async #do(deed: Deed): Promise<void> {
    const { random, fixed, counts } = this.world
    counts.add(`did ${deed}`)
    if (deed === 'get') await this.get(random.below(2))
    else if (deed === 'copy') await this.#copy()
    else if (deed === 'delete') await this.#delete()
    else if (deed === 'execute') await this.#execute(fixed.get('pattern')!)
    else if (deed === 'swap') await this.#take(fixed.get(random.pick(['pattern', 'plain', 'oldest', 'latest']))!)
    else if (deed === 'drop') {
      const consumer = fixed.get(random.pick(['pattern', 'plain', 'oldest', 'newest']))!
      consumer.link?.close()
      await consumer.link?.ended
      if (!this.#over) await this.#take(consumer)
    }
  }

  /** GET of what waits for one of the metric ids of the buffering channel. */
  async get(index: number): Promise<void> {
    const consumer = this.world.fixed.get('buffer')!
    const metric = [...consumer.bound.keys()][index]!
    await consumer.link?.ok((seq) => command.get(seq, metric))
  }

  /** DEF_CHANNEL, and SUBSCRIBE there from the connection that has the pattern's channel: its values are copied. */
  async #copy(): Promise<void> {
    const { checker, random, fixed, copies, counts } = this.world
    if (copies.size >= MOST_COPIES) {
      await this.#delete()
      return
    }
    const from = fixed.get('pattern')!
    const { link } = from
    const channel = await link?.ok((seq) => command.defChannel(seq))
    if (link === undefined || channel === undefined) return
    // A frozen leader may answer when another one leads: there the channel, which nobody knew, was deleted.
    if (this.#over) {
      counts.add('did copy too late')
      return
    }
    const consumer = new Consumer(checker.channel(channel, 'keep'), checker, random)
    copies.add(consumer)
    const metric = [...from.bound.keys()][0]!
    const before = new Set(from.history.uncommitted())
    if (await consumer.bind(metric, PATTERN_SOURCES, 'subscribe', link)) {
      consumer.sure = true
      // What was committed meanwhile need not have been copied.
      if (from.link === link) consumer.history.owe(from.history.uncommitted().filter((key) => before.has(key)))
      await this.#take(consumer)
    }
  }

  async #delete(): Promise<void> {
    const { checker, random, copies, deleted } = this.world
    const consumer = random.pick([...copies])
    if (consumer === undefined) {
      await this.#copy()
      return
    }
    consumer.gone = true
    checker.close(consumer.history)
    const answer = await consumer.link?.ask((seq) => command.delChannel(seq, consumer.channel))
    if (answer?.status !== 0) return
    deleted.add(consumer.channel)
    copies.delete(consumer)
  }

  /** A control on a channel: its result has to come, once. */
  async #execute(consumer: Consumer): Promise<void> {
    const list = args(['channel', type.uint32, u32(consumer.channel)], ['window', type.uint32, u32(60_000)])
    await consumer.link?.ok(
      (seq) => command.execute(seq, 'channel.configure', list),
      ({ status, result }) => {
        if (status === 0) consumer.expectResult(result)
      },
    )
  }
}
