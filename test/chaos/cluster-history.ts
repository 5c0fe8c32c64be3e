/**
 * Rig: three nodes that record a history together, while remote write and OTLP hand numbers over to any of them, now and late. The
 * node that leads is killed, or hands over, again and again. At the end the files of each node are read, by the judge of the history:
 * everything that was acknowledged to its sender is in all three, once.
 */
import { dirname, join } from 'node:path'
import { HISTORY_DIRECTORY } from '../../storage/history/store.ts'
import { openSqlite } from '../../storage/sqlite/driver.ts'
import { until } from '../rig/patience.ts'
import { tokenOfPublisher } from '../rig/prometheus-stack.ts'
import { PromisedFeed, SERIES } from '../rig/promised-feed.ts'
import { type Rig, type RigOptions, runCourse, type Totals } from '../rig/rig.ts'
import type { User } from '../rig/world/link.ts'
import { done } from '../support/administration.ts'
import { natsMissing } from '../support/nats.ts'
import { Random } from '../support/random.ts'
import { Seat } from '../support/seat.ts'
import { loggedIn, PASSWORD } from '../support/server-process.ts'
import { type ChaosNode, Nodes } from './cluster/nodes.ts'
import { leaderOfAll } from './cluster/probe.ts'
import { ShownServer } from './history/doors.ts'
import { HistoryJudge, type JudgedFeed, keptIn } from './history/judge.ts'

const USER: User = { name: 'admin', secret: PASSWORD, keys: undefined }
/** Between two requests of a feed. */
const PAUSE_MS = 20
/** Acknowledged by each leader, before it ends and after another has taken over. */
const LEAST_PROMISED = 10 * SERIES
const DAY_MS = 86_400_000
/** Nodes and nats-servers start in it, or another node takes over. */
const PATIENCE = { looks: 9_000, everyMs: 20 }

const TABLES = `[quota]
queued_bytes = 0
[history]
keep = "30d"
resolution = "0"
metrics = ["otlp.*", "prometheus.*"]
`

export const clusterHistory: Rig = async (options) => {
  if (natsMissing !== undefined) throw new Error(natsMissing)
  const nodes = await Nodes.start(new Random(options.seed + 1), { isOnLoopback: true, toml: TABLES })
  return runCourse('cluster-history', options, new Run(nodes, options))
}

class Run {
  readonly #nodes: Nodes
  readonly #options: RigOptions
  readonly #random: Random
  #feeds: JudgedFeed[] = []
  #feeding: Promise<unknown> = Promise.resolve()
  #takeovers = 0
  #kills = 0

  constructor(nodes: Nodes, options: RigOptions) {
    this.#nodes = nodes
    this.#options = options
    this.#random = new Random(options.seed)
  }

  get moment(): string {
    return `takeover ${this.#takeovers + 1}`
  }

  async remove(): Promise<void> {
    for (const { feed } of this.#feeds) feed.isOver = true
    await this.#nodes.remove()
    await this.#feeding
  }

  async all(): Promise<Totals> {
    const { count, say } = this.#options
    let { leader } = await leaderOfAll(this.#nodes, USER)
    await this.#begin(leader)
    while (this.#takeovers < count) {
      await this.#morePromised()
      leader = await this.#takeOver(leader)
      this.#takeovers++
      say(`${this.#takeovers} takeovers, ${leader.name} leads, ${this.#promised} values acknowledged`)
    }
    await this.#morePromised()
    for (const { feed } of this.#feeds) feed.isOver = true
    await this.#feeding
    await this.#recorded(leader)
    await Promise.all(this.#nodes.all.map(({ server }) => server.kill()))
    return this.#totals()
  }

  async #begin(leader: ChaosNode): Promise<void> {
    const seat = await seatAt(leader)
    await done(seat, 'role.allow', { role: 'operator', command: 'PUBLISH', object: 'otlp.*' })
    const token = await tokenOfPublisher(seat, 'prometheus.*', ';PUBLISH otlp.*')
    seat.peer.destroy()
    const nodes = this.#nodes
    const random = this.#random
    const to = {
      token,
      /** One of those that run: it passes on what it does not lead. */
      get url(): string {
        const there = nodes.all.filter(({ server }) => server.running)
        return `http://127.0.0.1:${(there.length === 0 ? nodes.all[0] : random.pick(there))?.httpPort}`
      },
    }
    const feedOf = (more: object, startMs: number): PromisedFeed =>
      new PromisedFeed(Object.create(to, Object.getOwnPropertyDescriptors(more)), startMs)
    this.#feeds = [
      { shown: 'live', feed: feedOf({ name: 'live' }, Date.now() - 60_000) },
      { shown: 'otlp_late', feed: feedOf({ name: 'late', protocol: 'otlp' }, Date.now() - DAY_MS) },
    ]
    this.#feeding = Promise.all(this.#feeds.map(({ feed }) => feed.run(PAUSE_MS)))
  }

  get #promised(): number {
    return this.#feeds.reduce((sum, { feed }) => sum + feed.promised.size, 0)
  }

  #morePromised(): Promise<void> {
    const before = this.#promised
    return until('values are acknowledged', () => this.#promised >= before + LEAST_PROMISED, PATIENCE)
  }

  /** Ends the node that leads, and gives the next when that serves and the one before follows. */
  async #takeOver({ server }: ChaosNode): Promise<ChaosNode> {
    if (this.#random.below(2) === 0) await server.stop()
    else {
      this.#kills++
      await server.kill()
    }
    await this.#morePromised()
    server.launch()
    return (await leaderOfAll(this.#nodes, USER)).leader
  }

  /** Everything is stored at the node that leads, and the others have it. */
  async #recorded(leader: ChaosNode): Promise<void> {
    const shown = new ShownServer(await seatAt(leader))
    await until(
      'everything is recorded',
      async () => {
        const { queued, in_flight } = await shown.ledger()
        return queued + in_flight === 0
      },
      PATIENCE,
    )
    shown.close()
    const placeOf = (node: ChaosNode): number => {
      const database = openSqlite(join(historyOf(node), 'fresh.db'), { readonly: true })
      try {
        return Number(database.prepare('select log * 1e9 + sequence from log').pluck().get())
      } finally {
        database.close()
      }
    }
    const goal = placeOf(leader)
    await until('all nodes have it', () => this.#nodes.all.every((node) => placeOf(node) >= goal), PATIENCE)
  }

  #totals(): Totals {
    let [lost, unexpected, reused, acknowledged] = [0, 0, 0, 0]
    for (const node of this.#nodes.all) {
      for (const isMerged of [false, true]) {
        const { missing, wrong, twice, examples, ...verdict } = new HistoryJudge(
          keptIn(historyOf(node), { isMerged }),
        ).judge(this.#feeds, [], [])
        if (missing + wrong + twice > 0) this.#options.say(`${node.name}: ${examples.join('; ')}`)
        lost += missing
        unexpected += wrong
        reused += twice
        acknowledged = verdict.acknowledged
      }
    }
    return { takeovers: this.#takeovers, kills: this.#kills, lost, unexpected, reused, acknowledged }
  }
}

function historyOf({ server }: ChaosNode): string {
  return join(dirname(server.database), HISTORY_DIRECTORY)
}

async function seatAt({ server }: ChaosNode): Promise<Seat> {
  const { peer, channel } = await loggedIn(server.port)
  return new Seat(peer, channel)
}
