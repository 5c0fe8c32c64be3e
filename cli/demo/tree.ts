/**
 * Servers above servers (docs/hierarchy.md): two racks, a site that consumes both, and a main server that consumes the site. Values
 * wait in one durable channel of each, of whoever is above it.
 */
import type { Connect, Consumer } from '../../client/index.ts'
import { ExitCode, Failure } from '../failure.ts'
import { type ChannelLedger, isBalanced, toLedger } from '../ledger.ts'
import type { ResolvedLogin } from '../login.ts'
import { queryAll } from '../records.ts'
import { formatSum } from './output.ts'
import { DemoServer } from './server.ts'

/** The channel of the consumer at the uppermost server. */
export const CHANNEL = 'count'

export class DemoTree {
  readonly racks: readonly DemoServer[]
  readonly site: DemoServer
  readonly main: DemoServer
  /** Rejects with Failure if any of the servers ends by itself. */
  readonly failed: Promise<never>

  static async create(): Promise<DemoTree> {
    const racks = [await DemoServer.create({ name: 'rack1' }), await DemoServer.create({ name: 'rack2' })]
    const site = await DemoServer.create({ name: 'east', takesNumbers: false, upstreams: racks })
    const main = await DemoServer.create({ name: 'main', takesNumbers: false, upstreams: [site] })
    return new DemoTree(racks, site, main)
  }

  private constructor(racks: readonly DemoServer[], site: DemoServer, main: DemoServer) {
    this.racks = racks
    this.site = site
    this.main = main
    this.failed = Promise.race(this.#servers.map(({ failed }) => failed))
    this.failed.catch(() => {})
  }

  get #servers(): readonly DemoServer[] {
    return [...this.racks, this.site, this.main]
  }

  /** Kills the servers and deletes everything they have written. */
  async remove(): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.remove()))
  }
}

interface LevelOptions {
  readonly server: DemoServer
  readonly login: (server: DemoServer) => Promise<ResolvedLogin>
  readonly connect: Connect
}

/** One server of the tree, with the ledger of the channel in which values wait for whoever is above it. */
export class TreeLevel {
  readonly server: DemoServer
  readonly #options: LevelOptions
  /** A connection of its own for each run of the server. */
  #reader: Consumer | undefined

  constructor(options: LevelOptions) {
    this.#options = options
    this.server = options.server
  }

  get name(): string {
    return this.server.name
  }

  get isUp(): boolean {
    return this.server.pid !== 0
  }

  /** Resolves when the server is up and the ledger can be read. Rejects with Failure. */
  async start(): Promise<void> {
    const { login, connect } = this.#options
    await this.server.start()
    const { url, credentials } = await login(this.server)
    this.#reader = await connect(url, credentials, { durable: false, reconnect: false })
  }

  async kill(): Promise<void> {
    await this.server.kill()
    await this.#reader?.close()
  }

  async close(): Promise<void> {
    await this.#reader?.close()
  }

  /** Undefined as long as there is no such channel. Rejects with Failure if the ledger does not balance. */
  async find(): Promise<ChannelLedger | undefined> {
    const channels = (await queryAll(this.#reader!, 'producer.channels', {}, () => ({}))).map(toLedger)
    const ledger = channels.find(
      ({ name, isDurable }) => isDurable && (name === CHANNEL || name.startsWith('upstream:')),
    )
    if (ledger === undefined || isBalanced(ledger)) return ledger
    throw new Failure(ExitCode.FAILED, `the ledger of ${this.name} does not balance: ${formatSum(ledger)}`)
  }

  /** Rejects with Failure if there is no channel, or if its ledger does not balance. */
  async ledger(): Promise<ChannelLedger> {
    const ledger = await this.find()
    if (ledger !== undefined) return ledger
    throw new Failure(ExitCode.FAILED, `the channel of ${this.name} does not exist any more`)
  }
}

/** What went into a place of the tree, and what came out of it. */
export interface Passage {
  readonly name: string
  readonly from: string
  readonly sent: number
  readonly arrived: number
  readonly lost: number
  readonly repeated: number
}

/**
 * What reached a channel. `sent`: by its source, or what was committed below and is not kept there any more. It is exact when nothing
 * is on its way; a loss and a repetition at one place would cancel each other, but not at the consumer, which knows each number.
 */
export function passageTo(name: string, from: string, sent: number, { accepted, dropped }: PassedLedger): Passage {
  const lost = dropped.reduce((sum, { count }) => sum + count, Math.max(0, sent - accepted))
  return { name, from, sent, arrived: accepted, lost, repeated: Math.max(0, accepted - sent) }
}

type PassedLedger = Pick<ChannelLedger, 'accepted' | 'dropped'>

/** Says what was lost or repeated and where, line by line; empty if nothing was. */
export function describeFaults(passages: readonly Passage[]): string {
  const isFaulty = ({ sent, arrived, lost, repeated }: Passage) => lost > 0 || repeated > 0 || sent !== arrived
  return passages
    .filter(isFaulty)
    .map(
      ({ name, from, sent, arrived, lost, repeated }) =>
        `from ${from} to ${name}: ${sent} sent, ${arrived} arrived, ${lost} lost, ${repeated} repeated`,
    )
    .join('\n')
}
