/**
 * Where rules are evaluated while somebody is killed: a server, a cluster of three nodes over real nats-servers, or a server below another
 * one, which tells of its alerts.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { KilledServer } from '../../rig/killed-server/killed-server.ts'
import { until } from '../../rig/patience.ts'
import type { Listener, User } from '../../rig/world/link.ts'
import { freePort } from '../../support/free-port.ts'
import type { Random } from '../../support/random.ts'
import { decoded, type Json } from '../../support/records.ts'
import { Seat } from '../../support/seat.ts'
import { loggedIn, PASSWORD } from '../../support/server-process.ts'
import { Nodes } from '../cluster/nodes.ts'
import { leaderOfAll } from '../cluster/probe.ts'

/** Called when somebody is found who is killed when it settles. */
type Before = () => Promise<void>

export interface AlertScene {
  /** Where HTTP is served at the moment. */
  readonly url: string
  readonly listener: Listener
  /** Undefined if nobody consumes it. */
  readonly above: ServerAbove | undefined
  /** Ends what evaluates, at once. Settles when it, or what has taken over, serves again. */
  strike(before?: Before): Promise<void>
  /** Throws if something ended by itself, or complained. */
  healthy(): void
  remove(): Promise<void>
}

/** Where the alerts of the scene are consumed, recorded and told. */
export interface ServerAbove {
  /** How the scene is called there. */
  readonly producer: string
  readonly url: string
  readonly listener: Listener
  /** Until the scene knows that its alerts are consumed. */
  untilBound(): Promise<void>
}

/** A server that was killed stays away for so long, at most. */
const MOST_AWAY_MS = 1_500
/** Nothing is done before somebody is killed. */
const AT_ONCE: Before = async () => {}
/** One start of so many is killed before it serves. */
const STARTS = 4
const MOST_START_MS = 800

export class OneServer implements AlertScene {
  readonly above = undefined
  readonly url: string
  readonly #server: KilledServer
  readonly #random: Random

  private constructor(server: KilledServer, url: string, random: Random) {
    this.#server = server
    this.url = url
    this.#random = random
  }

  static async start(random: Random, toml: string): Promise<OneServer> {
    const [server, url] = await serverOnHttp()
    server.append(toml)
    await start([server])
    return new OneServer(server, url, random)
  }

  get listener(): Listener {
    return this.#server.listener
  }

  async strike(before = AT_ONCE): Promise<void> {
    const server = this.#server
    const random = this.#random
    await before()
    await server.kill()
    await setTimeout(random.below(MOST_AWAY_MS))
    while (random.below(STARTS) === 0) {
      server.launch()
      await setTimeout(random.below(MOST_START_MS))
      await server.kill()
    }
    await start([server])
  }

  healthy(): void {
    this.#server.healthy()
  }

  remove(): Promise<void> {
    return this.#server.remove()
  }
}

export class ThreeNodes implements AlertScene {
  readonly above = undefined
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
  async strike(before = AT_ONCE): Promise<void> {
    const { leader } = await leaderOfAll(this.#nodes, this.#user)
    await before()
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

const BELOW = 'east'
/** An alert above for each that fires below. */
const ABOVE_RULES = `groups:
  - name: above
    interval: 1s
    rules:
      - alert: Below
        expr: max without (alertstate) (ALERTS{alertstate="firing", alertname!="Below", producer!=""})
        labels: { alert: '{{ $labels.alertname }}' }
`

/** Rules are evaluated at the lower server; the upper one has its alerts consumed, and tells of them itself. Any of them is killed. */
export class ServerBelow implements AlertScene {
  readonly url: string
  readonly above: ServerAbove
  readonly #lower: KilledServer
  readonly #upper: KilledServer
  readonly #random: Random
  #strikes = 0

  private constructor([lower, url]: Reached, [upper, urlAbove]: Reached, random: Random) {
    this.#lower = lower
    this.#upper = upper
    this.url = url
    this.#random = random
    const untilBound = (): Promise<void> => this.#untilBound()
    this.above = { producer: BELOW, url: urlAbove, listener: upper.listener, untilBound }
  }

  /** `toml`: of the lower server; `notifiers`: those of the upper one. */
  static async start(random: Random, toml: string, notifiers: string): Promise<ServerBelow> {
    const [lower, upper] = [await serverOnHttp(), await serverOnHttp()]
    const path = (name: string): string => join(upper[0].directory, name)
    writeFileSync(path('secret'), PASSWORD)
    writeFileSync(path('above.yml'), ABOVE_RULES)
    lower[0].append(toml)
    upper[0].append(
      '[history]\nresolution = "0"\nmetrics = ["rules.*"]\nbelow = true\n' +
        `[alerts]\nbuiltin = false\nrules = [${JSON.stringify(path('above.yml'))}]\n` +
        `[[upstream]]\nname = "${BELOW}"\nurl = "tcp://127.0.0.1:${lower[0].port}"\n` +
        `user = "admin"\nsecret_file = ${JSON.stringify(path('secret'))}\n${notifiers}`,
    )
    const scene = new ServerBelow(lower, upper, random)
    try {
      await start([lower[0], upper[0]])
      await until('the upper server has found the lower one', async () => {
        const sensors: Json[] = await asked(upper[0], 'producer.sensors')
        return sensors.find(({ name }) => name === `upstream/${BELOW}`)?.state === 'listening'
      })
      return scene
    } catch (error) {
      await scene.remove()
      throw error
    }
  }

  get listener(): Listener {
    return this.#lower.listener
  }

  async #untilBound(): Promise<void> {
    await until('the lower server knows that alerts are consumed', async () => {
      const channels: Json[] = await asked(this.#lower, 'producer.channels')
      return channels.some(
        ({ name, bindings }) =>
          name.startsWith('upstream:') && bindings.some((binding: Json) => binding.name === 'alert'),
      )
    })
  }

  async strike(before = AT_ONCE): Promise<void> {
    const [lower, upper] = [this.#lower, this.#upper]
    // Each in its turn, so that a few kills are of all of them.
    const struck = [[upper], [lower], [lower, upper]][this.#strikes++ % 3] as readonly KilledServer[]
    await before()
    await Promise.all(struck.map((server) => server.kill()))
    await setTimeout(this.#random.below(MOST_AWAY_MS))
    await start(struck)
  }

  healthy(): void {
    for (const server of [this.#lower, this.#upper]) server.healthy()
  }

  async remove(): Promise<void> {
    await this.#upper.remove()
    await this.#lower.remove()
  }
}

type Reached = readonly [server: KilledServer, url: string]

async function serverOnHttp(): Promise<Reached> {
  const [udpPort, tcpPort, httpPort] = [await freePort(), await freePort(), await freePort()]
  return [new KilledServer({ udpPort, tcpPort, httpPort, logLevel: 'error' }), `http://127.0.0.1:${httpPort}`]
}

async function start(servers: readonly KilledServer[]): Promise<void> {
  const started = await Promise.all(servers.map((server) => server.start()))
  if (started.includes(false)) throw new Error('a server did not start')
}

async function asked(server: KilledServer, metric: string): Promise<Json> {
  const { peer, channel } = await loggedIn(server.port)
  try {
    return decoded(await new Seat(peer, channel).query(metric))
  } finally {
    peer.destroy()
  }
}
