/** Where rules are evaluated while somebody is killed: a server, or a cluster of three nodes over real nats-servers. */
import { setTimeout } from 'node:timers/promises'
import { KilledServer } from '../../rig/killed-server/killed-server.ts'
import type { Listener, User } from '../../rig/world/link.ts'
import { freePort } from '../../support/free-port.ts'
import type { Random } from '../../support/random.ts'
import { Nodes } from '../cluster/nodes.ts'
import { leaderOfAll } from '../cluster/probe.ts'

export interface AlertScene {
  /** Where HTTP is served at the moment. */
  readonly url: string
  readonly listener: Listener
  /** Ends what evaluates, at once. Settles when it, or what has taken over, serves again. */
  strike(): Promise<void>
  /** Throws if something ended by itself, or complained. */
  healthy(): void
  remove(): Promise<void>
}

/** A server that was killed stays away for so long, at most. */
const MOST_AWAY_MS = 1_500
/** One start of so many is killed before it serves. */
const STARTS = 4
const MOST_START_MS = 800

export class OneServer implements AlertScene {
  readonly url: string
  readonly #server: KilledServer
  readonly #random: Random

  private constructor(server: KilledServer, httpPort: number, random: Random) {
    this.#server = server
    this.url = `http://127.0.0.1:${httpPort}`
    this.#random = random
  }

  static async start(random: Random, toml: string): Promise<OneServer> {
    const [udpPort, tcpPort, httpPort] = [await freePort(), await freePort(), await freePort()]
    const server = new KilledServer({ udpPort, tcpPort, httpPort, logLevel: 'error' })
    server.append(toml)
    if (!(await server.start())) throw new Error('the server did not start')
    return new OneServer(server, httpPort, random)
  }

  get listener(): Listener {
    return this.#server.listener
  }

  async strike(): Promise<void> {
    const server = this.#server
    const random = this.#random
    await server.kill()
    await setTimeout(random.below(MOST_AWAY_MS))
    while (random.below(STARTS) === 0) {
      server.launch()
      await setTimeout(random.below(MOST_START_MS))
      await server.kill()
    }
    if (!(await server.start())) throw new Error('the server did not start')
  }

  healthy(): void {
    this.#server.healthy()
  }

  remove(): Promise<void> {
    return this.#server.remove()
  }
}

export class ThreeNodes implements AlertScene {
  readonly #nodes: Nodes
  readonly #random: Random
  readonly #user: User
  takeovers = 0

  private constructor(nodes: Nodes, random: Random, user: User) {
    this.#nodes = nodes
    this.#random = random
    this.#user = user
  }

  static async start(random: Random, user: User, toml: string): Promise<ThreeNodes> {
    const nodes = await Nodes.start(random, { isOnLoopback: true, toml })
    try {
      await leaderOfAll(nodes, user)
      return new ThreeNodes(nodes, random, user)
    } catch (error) {
      await nodes.remove()
      throw error
    }
  }

  /** One of those that run: it passes on what it does not lead. */
  get url(): string {
    const there = this.#nodes.all.filter(({ server }) => server.running)
    return `http://127.0.0.1:${(there.length === 0 ? this.#nodes.all[0] : this.#random.pick(there))?.httpPort}`
  }

  get listener(): Listener {
    return this.#nodes.listener
  }

  /** The node that leads is killed, or hands over. */
  async strike(): Promise<void> {
    const { leader } = await leaderOfAll(this.#nodes, this.#user)
    if (this.#random.below(3) === 0) await leader.server.stop()
    else await leader.server.kill()
    await setTimeout(this.#random.below(MOST_AWAY_MS))
    leader.server.launch()
    await leaderOfAll(this.#nodes, this.#user)
    this.takeovers++
  }

  healthy(): void {
    this.#nodes.healthy()
  }

  remove(): Promise<void> {
    return this.#nodes.remove()
  }
}
