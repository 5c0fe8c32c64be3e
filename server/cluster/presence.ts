/** How a node is present on the bus: it says how it is, several times per lease, and takes what the others and itself have said. */
import { formatAddress } from '../kernel/core/address.ts'
import { type Alive, decodeAlive, encodeAlive } from './alive.ts'
import type { AwakeTime, Members } from './members.ts'
import type { ClusterNodeOptions } from './node-options.ts'
import type { Reports } from './reports.ts'

/** What changes of a node. */
export type OwnState = Pick<Alive, 'role' | 'epoch' | 'since' | 'place' | 'lagMs' | 'obstacle' | 'leaves'>

/**
 * Messages that are looked at within a beat, and of those beyond that the ones that seem to be of the node that leads. All nodes of
 * the largest cluster say far fewer; whoever says more must not take the time of a node, nor keep it from hearing the leader.
 */
const MAX_PER_BEAT = 1_024

export interface PresenceOptions
  extends Pick<ClusterNodeOptions, 'config' | 'run' | 'configuration' | 'version' | 'format' | 'bus' | 'log'> {
  readonly awake: AwakeTime
  readonly members: Members
  readonly reports: Reports
  /** undefined while nothing is known that the others could build on: then nothing is said. */
  readonly own: () => OwnState | undefined
  /** Another node has said how it is; `isChanged`: because of that another node leads now, or none. */
  readonly onHeard: (alive: Alive, isChanged: boolean) => void
}

export class Presence {
  readonly #options: PresenceOptions
  #echoedAt: number
  #malformed = 0
  #flooded = 0
  /** What this node has said last. */
  #said: Uint8Array = new Uint8Array(0)
  #taken = 0
  #ofLeader = 0

  constructor(options: PresenceOptions) {
    this.#options = options
    this.#echoedAt = options.awake.now()
  }

  /** Messages that were ignored: those that are none, those of more nodes than are kept, and those that were too many. */
  get ignoredMessages(): number {
    return this.#malformed + this.#flooded + this.#options.members.ignored
  }

  /** How long this node has not heard itself, in ms: what it says reaches the nats-servers, and what they have reaches it. */
  get cutOffMs(): number {
    return this.#options.awake.now() - this.#echoedAt
  }

  /** Whether the nats-servers were reached within a lease. */
  get isReachable(): boolean {
    return this.cutOffMs < this.#options.config.leaseMs
  }

  open(): void {
    this.#options.bus.open((bytes) => this.#receive(bytes))
  }

  publish(): void {
    const { config, run, configuration, version, format, bus, members, own } = this.#options
    this.#taken = 0
    this.#ofLeader = 0
    const state = own()
    if (state === undefined) return
    const configured = members.addressOf(config.node)
    const address = configured === undefined ? '' : formatAddress(configured)
    const about = { node: config.node, run, address, format, version, configuration: configuration(), answers: true }
    this.#said = encodeAlive({ ...state, ...about })
    bus.publish(this.#said)
  }

  /** How long the node that was last known to lead is silent, as the end of a sentence. */
  silence(): string {
    const { members, awake } = this.#options
    const { leader } = members
    if (leader === undefined) return ''
    return `; ${leader.node} was last heard ${((awake.now() - leader.heardAt) / 1_000).toFixed(1)} s ago`
  }

  #receive(bytes: Uint8Array): void {
    const { config, run, log, members, awake, onHeard } = this.#options
    if (Buffer.compare(bytes, this.#said) === 0) {
      this.#echoedAt = awake.now()
      return
    }
    if (++this.#taken > MAX_PER_BEAT && !this.#isOfLeader(bytes)) {
      this.#flooded++
      return
    }
    const alive = decodeAlive(bytes)
    if (alive === undefined) this.#malformed++
    else if (alive.node !== config.node) {
      this.#warnOf(alive)
      const before = this.silence()
      const isChanged = members.take(alive)
      const { leader } = members
      if (isChanged && leader !== undefined) {
        log.info(`node ${leader.node} leads ${config.name} since epoch ${leader.epoch}${before}`)
      }
      onHeard(alive, isChanged)
    } else if (alive.run === run) this.#echoedAt = awake.now()
    else this.#warnOfNamesake(alive)
  }

  /** Whether a message has the random text of the node that leads, as far as that may be asked. */
  #isOfLeader(bytes: Uint8Array): boolean {
    const { leader } = this.#options.members
    const isSo = leader !== undefined && Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).includes(leader.run)
    return isSo && ++this.#ofLeader <= MAX_PER_BEAT
  }

  #warnOf({ node, address, configuration }: Alive): void {
    const { reports, members } = this.#options
    const configured = members.addressOf(node)
    if (configured === undefined) {
      const message = `node ${node} is heard, and \`cluster.nodes\` does not name it: no connection goes to it or comes from it`
      reports.warnOnce(`stranger ${node}`, message)
    } else if (formatAddress(configured) !== address) {
      const message =
        `node ${node} says that it is reached at ${address}, and that is refused: by \`cluster.nodes\` of this node its ` +
        `address is ${formatAddress(configured)}. Correct one of them`
      reports.reportOnce(`address ${node} ${address}`, message)
    }
    if (configuration === this.#options.configuration()) return
    const message =
      `node ${node} has another configuration, or other certificates or keys in \`[tls]\` and \`[jwt]\`: all of it that is not ` +
      'about one node has to be the same'
    reports.warnOnce(`configuration ${node} ${configuration}`, message)
  }

  #warnOfNamesake({ node, run, address }: Alive): void {
    const message = `another node calls itself ${node} too, and is reached at ${address}: rename one of them`
    this.#options.reports.warnOnce(`run ${run}`, message)
  }
}
