/** What it takes to be joined with other producers, as upstreams and the nodes of a cluster are. */
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import type { Intake } from '../kernel/channels/intake.ts'
import type { Fences } from '../kernel/metrics/fences.ts'
import type { Hub } from '../kernel/metrics/hub.ts'
import type { Admission } from '../kernel/sessions/admission.ts'

export { MIN_ITERATIONS } from '../../auth/scram/keys.ts'
export type { BatchBuilder } from '../kernel/channels/batch.ts'
export type { Journaled } from '../kernel/channels/journal.ts'
export {
  type HeldQueue,
  partLabels,
  type RemoteFollower,
  type RemoteLoss,
  type RemoteReading,
  type RemoteRequest,
  type RemoteSensor,
  type RemoteSeries,
  type RemoteTap,
} from '../kernel/metrics/metric.ts'
export { compilePattern, isPattern } from '../kernel/metrics/pattern.ts'
export { PRODUCER } from '../kernel/metrics/reach.ts'
export { readableRecords } from '../kernel/metrics/remembered-below.ts'

export interface Joining {
  /** The nodes whose feeds this server takes; undefined without a cluster, or if there are no feeds. */
  readonly nodes: FeedingNodes | undefined
  /** For tests: makes the streams to servers that are consumed, instead of the network. Throws if a server is not there. */
  readonly connect: ((url: string) => Duplex) | undefined
  readonly callers: Callers
  /** Whether values can be stored. */
  readonly intake: Pick<Intake, 'refusal' | 'isClosed'>
  /** The sensors whose values an operator has discarded. */
  readonly fences: Pick<Fences, 'isEmpty' | 'has'>
  /** The producers of a sensor have changed. Settles when bindings that reach some of them follow those that there are now. */
  readonly changed: Hub['producersChanged']
}

/** What it takes to let producers log in that connect to this server. */
export interface Callers {
  /** Puts streams under TLS with the certificate of the server; undefined without `[tls]`. Failed ones are destroyed. */
  readonly tls: { accept(raw: Duplex, done: (socket: TLSSocket) => void): void } | undefined
  /** The places of connections. */
  readonly admission: Pick<Admission, 'enter' | 'authenticated' | 'leave'>
}

/** The nodes of a cluster, each of which takes feeds and keeps them until the node that leads has them. */
export interface FeedingNodes {
  /** The name of this node is among them. */
  readonly names: readonly string[]
  /** Those that have feeds. */
  readonly tenants: readonly string[]
  /** The prefixes of the families of what feeds bring, with the dot. */
  readonly families: readonly string[]
  /** Connects to the feeder of a node for one tenant. Rejects with Error. */
  connect(node: string, tenant: string, signal: AbortSignal): Promise<Duplex>
  /**
   * Has the feeder of this node take nothing more, so that this server can listen instead. Resolves when all that it has was taken,
   * or when that takes too long: then the rest comes later. Never rejects.
   */
  takeOwn(): Promise<void>
}
