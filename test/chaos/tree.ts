/**
 * Rig: a tree of three servers, the uppermost of which has what the lowest gets. Any of them is killed at random moments, the
 * connections between them are cut or reset after any number of bytes, and the disk of any of them is full for a while. Every value
 * that the lowest has said yes to arrives at the consumer of the uppermost, once, and in the order of its series; and at the end what
 * each server says and has stored adds up (tree/balance.ts).
 */
import { setTimeout } from 'node:timers/promises'
import { GapReason } from '../../protocol/monitor/constants.ts'
import { missingAtLast, until } from '../rig/patience.ts'
import { type Rig, type RigOptions, runCourse, type Totals } from '../rig/rig.ts'
import { canMount, type SmallDisk } from '../rig/small-disk.ts'
import { Random } from '../support/random.ts'
import { accountsOf } from './tree/accounts.ts'
import { Arrivals } from './tree/arrivals.ts'
import { imbalances } from './tree/balance.ts'
import { rowsOf } from './tree/rows.ts'
import { type Level, storageAt, Tree } from './tree/servers.ts'

/** Between two kills, at least and at most, and how long the server stays away. */
const FIRST_LIFE_MS = 300
const MORE_LIFE_MS = 900
const MOST_AWAY_MS = 700
/** Between two requests: with less, the backlog takes longer than the kills. */
const PAUSE_MS = 10
/** How long a disk has room, and how long it stays full once the server has said that it is. */
const ROOM_MS = 3_000
const FULL_MS = 1_500
/** Between two looks at a server whose disk is full: what was freed meanwhile is taken again. */
const REFILL_MS = 50
/** Looks after which a disk is given room again although the server, which may be dead, has not said that it is full. */
const MOST_REFILLS = 100

export const tree: Rig = async (options) => runCourse('tree', options, await Run.open(options))

class Run {
  readonly #options: RigOptions
  readonly #random: Random
  readonly #tree: Tree
  readonly #arrivals = new Arrivals()
  readonly #acceptedBefore = new Map<Level, number>()
  #kills = 0
  #areKillsOver = false
  /** How often a server has said that its disk is full. */
  #full = 0

  private constructor(options: RigOptions, tree: Tree) {
    this.#options = options
    this.#random = new Random(options.seed)
    this.#tree = tree
  }

  static async open(options: RigOptions): Promise<Run> {
    return new Run(options, await Tree.open({ seed: options.seed + 1, hasDisks: canMount() }))
  }

  get moment(): string {
    return `${this.#kills} kills`
  }

  async all(): Promise<Totals> {
    const { feed, links, uppermost } = this.#tree
    await this.#tree.start()
    const consumed = this.#arrivals.run(uppermost.server)
    const fed = feed.run(PAUSE_MS)
    for (const link of links) link.isCutting = true
    const filled = this.#fillDisks()
    await this.#kill()
    this.#areKillsOver = true
    await filled
    await until('each link was cut', () => links.every(({ cuts }) => cuts > 0))
    for (const link of links) link.isCutting = false
    feed.isOver = true
    await fed
    const lost = await missingAtLast(() => [...feed.promised].filter((number) => !this.#arrivals.has(number)).length)
    const accounts = await accountsOf(this.#tree, this.#acceptedBefore)
    this.#arrivals.isOver = true
    await consumed
    const { values: arrived, repeated, disordered, gaps } = this.#arrivals
    const problems = imbalances(accounts, this.#arrivals.cameOf(feed.promised), feed.promised.size)
    if (problems.length > 0) {
      throw new Error(`it does not add up (${lost} lost, ${repeated} repeated):\n${problems.join('\n')}`)
    }
    if (disordered > 0) throw new Error(`${disordered} values came out of order`)
    const overflow = gaps.get(GapReason.overflow)?.values ?? 0
    return {
      kills: this.#kills,
      cuts: links.reduce((sum, { cuts }) => sum + cuts, 0),
      full: this.#full,
      promised: feed.promised.size,
      arrived,
      reported: gaps.get(GapReason.full)?.values ?? 0,
      lost,
      // No limit of a channel is reached: nothing may be dropped by it.
      unexpected: overflow,
      reused: repeated,
    }
  }

  async remove(): Promise<void> {
    this.#areKillsOver = true
    this.#tree.feed.isOver = true
    this.#arrivals.isOver = true
    await this.#tree.remove()
  }

  async #kill(): Promise<void> {
    const { count, say } = this.#options
    while (this.#kills < count) {
      await setTimeout(FIRST_LIFE_MS + this.#random.below(MORE_LIFE_MS))
      const victim = this.#random.pick(this.#tree.levels)
      await victim.server.end('SIGKILL')
      this.#acceptedBefore.set(victim, rowsOf(victim).channel.accepted)
      await setTimeout(this.#random.below(MOST_AWAY_MS))
      await victim.server.start()
      this.#kills++
      if (this.#kills % 20 === 0) {
        say(`${this.#kills} kills, ${this.#full} full disks, ${this.#arrivals.values} values arrived`)
      }
    }
  }

  /** One disk after another, as long as servers are killed; each at least once. */
  async #fillDisks(): Promise<void> {
    const random = new Random(this.#options.seed + 2)
    const { levels } = this.#tree
    for (let turn = 0; turn < levels.length || !this.#areKillsOver; turn++) {
      const level = turn < levels.length ? (levels[turn] as Level) : random.pick(levels)
      if (level.disk === undefined) return
      await setTimeout(random.below(ROOM_MS))
      await this.#fill(level, level.disk, random.below(FULL_MS))
    }
  }

  async #fill(level: Level, disk: SmallDisk, forMs: number): Promise<void> {
    let isFull = false
    for (let refills = 0; !isFull && refills < MOST_REFILLS; refills++) {
      disk.fill()
      await setTimeout(REFILL_MS)
      // It may be dead at the moment.
      isFull = (await storageAt(level).catch(() => '')) === 'full'
    }
    if (isFull) this.#full++
    for (let ms = 0; ms < forMs; ms += REFILL_MS) {
      disk.fill()
      await setTimeout(REFILL_MS)
    }
    disk.free()
  }
}
