/**
 * A source: where metrics come from. Each has a folder with its section of the configuration, its sensors, its controls and
 * what it listens on; `source.ts` there makes it one of these, and a line in `server/start/wings.ts` makes it part of the server.
 */
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import type { QmfAgentRow, UpstreamBindingRow, UpstreamRow } from '../../storage/store.ts'
import type { Quotas } from '../kernel/accounts/quotas.ts'
import type { Asker } from '../kernel/accounts/rights.ts'
import type { Intake } from '../kernel/channels/intake.ts'
import type { Journal } from '../kernel/channels/journal.ts'
import type { Section, SectionConfig } from '../kernel/config/schema.ts'
import type { Control, ControlSource, RemoteControls } from '../kernel/controls/control.ts'
import type { Address } from '../kernel/core/address.ts'
import type { Clock } from '../kernel/core/clock.ts'
import type { FairWork } from '../kernel/core/fair-work.ts'
import type { ForeignCode } from '../kernel/core/faults.ts'
import type { Logger } from '../kernel/core/log.ts'
import type { Hub } from '../kernel/metrics/hub.ts'
import type { Sensor } from '../kernel/metrics/metric.ts'
import type { Notices } from '../kernel/producer/notices.ts'
import type { ServerView } from '../kernel/producer/own-metrics.ts'
import type { StatusEntry } from '../kernel/producer/status.ts'
import type { Admission } from '../kernel/sessions/admission.ts'
import type { Pacing } from './io/pacer.ts'
import type { PushDestination } from './push.ts'

/** NamedSections of the configuration by their names, and what is read of them. */
export type NamedSections = Readonly<Record<string, Section>>
export type SectionConfigs<M extends NamedSections> = { readonly [N in keyof M]: SectionConfig<M[N]> }
export type NoSections = Readonly<Record<never, never>>

/**
 * `S` is its section of the configuration: `config.ts` in its folder, with the documentation of each key. `M`: the sections that
 * it has in addition, if any.
 */
export interface Source<S extends Section, M extends NamedSections = NoSections> {
  /** Makes the sensors. No address is bound yet. */
  open(
    context: SourceContext,
    config: SectionConfig<S>,
    more: SectionConfigs<M>,
  ): OpenedSource<S, M> | Promise<OpenedSource<S, M>>
}

/** The services that the server provides to its sources. */
export interface SourceContext {
  /** The name of the server, the directory of its data, and the random id that was made with those. */
  readonly producer: { readonly name: string; readonly dataDir: string; readonly id: string }
  /** The name of this node of a cluster; undefined without one. */
  readonly node: string | undefined
  /** The nodes whose feeds this server takes; undefined without a cluster, or if there are no feeds. */
  readonly nodes: FeedingNodes | undefined
  /** For tests: makes the streams to servers that are consumed, instead of the network. Throws if a server is not there. */
  readonly connect: ((url: string) => Duplex) | undefined
  /** Where relative paths of the configuration file start. */
  readonly configDirectory: string
  readonly clock: Clock
  /** A clock whose time is constant during a turn of the event loop. */
  readonly turnClock: Pick<Clock, 'monotonicMs' | 'microseconds'>
  readonly log: Logger
  readonly hub: Hub
  readonly foreign: ForeignCode
  readonly quotas: Quotas
  readonly notices: Pick<Notices, 'emit'>
  readonly pacing: Pacing
  readonly intake: Intake
  readonly work: FairWork
  readonly journal: Pick<Journal, 'touch' | 'change' | 'whenStored'>
  /** How far the channels of other servers were taken. */
  readonly upstreams: readonly UpstreamRow[]
  /** What those channels bind. */
  readonly upstreamBindings: readonly UpstreamBindingRow[]
  /** What brokers of QMF know this server by; undefined if it was an agent of none. */
  readonly qmfAgent: QmfAgentRow | undefined
  readonly server: ServerView
  /** Puts streams under TLS with the certificate of the server; undefined without `[tls]`. Failed ones are destroyed. */
  readonly tls: { accept(raw: Duplex, done: (socket: TLSSocket) => void): void } | undefined
  /** The places of connections, for those who log in over them. */
  readonly admission: Pick<Admission, 'enter' | 'authenticated' | 'leave'>
  /** Has something ended with the server, even if the server cannot start. What listens is ended by its `SourceListeners`. */
  opened(end: () => void): void
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

/** A source with the sensors that it has made. */
export interface OpenedSource<S extends Section = Section, M extends NamedSections = NoSections> {
  readonly sensors?: readonly Sensor[]
  /** The prefixes of the families that take published values, with the dot: a tenant's sensor may be made at its first value. */
  readonly published?: readonly string[]
  readonly controls?: readonly Control[]
  /** Controls that come and go while the server runs. */
  readonly controlSource?: ControlSource
  /** Controls of other producers. */
  readonly remoteControls?: RemoteControls
  /** Entries of `producer.sensors` in addition to those of the sensors; they may come and go. */
  readonly statuses?: readonly StatusEntry[]
  /** Where values of channels are delivered without a session. */
  readonly destinations?: readonly PushDestination[]
  /** Where programs hand over metrics by HTTP. */
  readonly doors?: readonly HttpDoor[]
  /** Begins to take what others have kept. Called after bindings are recovered, and before any source listens. */
  begin?(listeners: SourceListeners): Promise<void>
  /** Opens the listeners. Called after bindings are recovered: values that arrive before that would be lost. */
  listen?(listeners: SourceListeners): Promise<void>
  /** Removes what has been silent for too long; called every second. */
  sweep?(): void
  /** Puts the live keys of its section in force. Never throws. */
  reload?(config: SectionConfig<S>, more: SectionConfigs<M>): void
}

/** A path of the HTTP listeners to which programs POST metrics, each with a token. */
export interface HttpDoor {
  readonly path: string
  /** Bytes that a body may have after decompression by gzip. A longer one is answered with 413. */
  readonly maxBytes: number
  /** Answers a request of somebody who is known. Never rejects. */
  take(request: DoorRequest): Promise<DoorAnswer>
  /** An answer to what never came to `take`, in the form that its peers expect. `type` is the content type of the request. */
  refusal(status: number, detail: string, type: string): DoorAnswer
}

export interface DoorRequest {
  readonly asker: Asker
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Uint8Array
}

export interface DoorAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array | string
}

/** An address that a source is bound to. */
export interface BoundAddress {
  /** The configuration key that sets it. */
  readonly key: string
  /** Its purpose, as the greeting shows it. */
  readonly use: string
  readonly transport: 'tcp' | 'udp'
  readonly address: Address
}

interface Closable {
  close(): Promise<void>
}

/** All listeners that sources have opened. They are closed together, even if a later one could not be opened. */
export class SourceListeners {
  readonly addresses: BoundAddress[] = []
  readonly #opened: Closable[] = []

  readonly opened = <Listener extends Closable>(listener: Listener): Listener => {
    this.#opened.push(listener)
    return listener
  }

  /** Records a bound address; does nothing if it is undefined. */
  bound(use: Omit<BoundAddress, 'address'>, address: Address | undefined): void {
    if (address !== undefined) this.addresses.push({ ...use, address })
  }

  async close(): Promise<void> {
    for (const listener of this.#opened.splice(0)) await listener.close()
  }
}
