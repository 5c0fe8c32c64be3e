/** Where calls wait for approval while servers are killed: a cluster of three nodes, or a server and the one below it that runs them. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { KilledServer } from '../../rig/killed-server/killed-server.ts'
import type { Listener, User } from '../../rig/world/link.ts'
import { type Argument, administer, text } from '../../rig/world/link-controls.ts'
import { freePort } from '../../support/free-port.ts'
import type { Random } from '../../support/random.ts'
import { PASSWORD } from '../../support/server-process.ts'
import { type ChaosNode, Nodes } from '../cluster/nodes.ts'
import { leaderOfAll } from '../cluster/probe.ts'
import { WRITE, writingTables } from './writing.ts'

const ADMIN: User = { name: 'admin', secret: PASSWORD, keys: undefined }
/** The login of the server above, at the one below. */
const LOGIN = { name: 'main', password: 'the password of the server above' }
const BELOW = 'east'

export interface ApprovalScene {
  /** Where calls are asked for, and decided about. */
  readonly listener: Listener
  readonly admin: User
  /** Arguments of each call beside those of the program. */
  readonly more: readonly Argument[]
  /** Who may be killed. */
  readonly victims: readonly string[]
  /** Kills one of them, at once. Settles when calls are taken again. */
  strike(victim: string): Promise<void>
  /** Ends all. Throws if one does not end well, or has complained. */
  stop(): Promise<void>
  /** The database of the server where calls are asked for, and of the one that runs them; the same if it is one. */
  readonly databases: readonly (readonly [above: string, below: string])[]
  remove(): Promise<void>
}

/** The node that leads is killed; the one that takes over knows what waits from the log. */
export class ClusterScene implements ApprovalScene {
  readonly admin = ADMIN
  readonly more = []
  readonly victims = ['leader']
  readonly #nodes: Nodes
  #leader: ChaosNode

  private constructor(nodes: Nodes, leader: ChaosNode) {
    this.#nodes = nodes
    this.#leader = leader
  }

  static async start(random: Random, file: string): Promise<ClusterScene> {
    const nodes = await Nodes.start(random, { isOnLoopback: true, toml: writingTables(file) })
    try {
      return new ClusterScene(nodes, (await leaderOfAll(nodes, ADMIN)).leader)
    } catch (error) {
      await nodes.remove()
      throw error
    }
  }

  get listener(): Listener {
    return this.#nodes.listener
  }

  async strike(): Promise<void> {
    const killed = this.#leader
    await killed.server.kill()
    killed.server.launch()
    this.#leader = (await leaderOfAll(this.#nodes, ADMIN)).leader
  }

  stop(): Promise<void> {
    return this.#nodes.stop()
  }

  get databases(): readonly (readonly [string, string])[] {
    return this.#nodes.all.map(({ server: { database } }) => [database, database] as const)
  }

  remove(): Promise<void> {
    return this.#nodes.remove()
  }
}

/** People and the rule are at the upper server, the program at the lower one. */
export class TreeScene implements ApprovalScene {
  readonly admin = ADMIN
  readonly more = [text('producer', BELOW)]
  readonly victims = ['upper', 'lower', 'both']
  readonly #upper: KilledServer
  readonly #lower: KilledServer

  private constructor(upper: KilledServer, lower: KilledServer) {
    this.#upper = upper
    this.#lower = lower
  }

  static async start(file: string): Promise<TreeScene> {
    const server = async (): Promise<KilledServer> =>
      new KilledServer({ udpPort: await freePort(), tcpPort: await freePort(), logLevel: 'error' })
    const [upper, lower] = [await server(), await server()]
    const secret = join(upper.directory, 'secret')
    writeFileSync(secret, LOGIN.password)
    lower.append(writingTables(file))
    upper.append(
      `[quota]\ncontrols_per_minute = 0\n[[upstream]]\nname = "${BELOW}"\nurl = "tcp://127.0.0.1:${lower.listener.port}"\n` +
        `user = "${LOGIN.name}"\nsecret_file = ${JSON.stringify(secret)}\ncontrols = ["${WRITE}"]\n`,
    )
    const scene = new TreeScene(upper, lower)
    try {
      await scene.#start('both')
      await administer(lower.listener, ADMIN, [
        ['role.allow', text('role', 'above'), text('command', 'EXECUTE'), text('object', WRITE)],
        ['user.add', text('user', LOGIN.name), text('role', 'above'), text('password', LOGIN.password)],
      ])
      return scene
    } catch (error) {
      await scene.remove()
      throw error
    }
  }

  get listener(): Listener {
    return this.#upper.listener
  }

  /** The upper one takes calls, and answers BUSY until it has found the lower one. */
  async strike(victim: string): Promise<void> {
    const killed = this.#named(victim)
    await Promise.all(killed.map((server) => server.kill()))
    for (const server of killed) server.healthy()
    await this.#start(victim)
  }

  async #start(victim: string): Promise<void> {
    const started = await Promise.all(this.#named(victim).map((server) => server.start()))
    if (started.includes(false)) throw new Error('a server did not start')
  }

  #named(victim: string): readonly KilledServer[] {
    if (victim === 'both') return [this.#lower, this.#upper]
    return victim === 'upper' ? [this.#upper] : [this.#lower]
  }

  async stop(): Promise<void> {
    for (const server of [this.#upper, this.#lower]) {
      await server.stop()
      server.healthy()
    }
  }

  get databases(): readonly (readonly [string, string])[] {
    return [[this.#upper.database, this.#lower.database]]
  }

  async remove(): Promise<void> {
    await this.#upper.remove()
    await this.#lower.remove()
  }
}
