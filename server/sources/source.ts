/**
 * A source: where metrics come from. Each has a folder with its section of the configuration, its sensors, its controls and
 * what it listens on; `source.ts` there makes it one of these, and a line in table.ts makes it part of the server.
 */
import type { Identity } from '../../auth/permissions.ts'
import type { AuditLog } from '../accounts/audit/log.ts'
import type { Quotas } from '../accounts/quotas.ts'
import type { Rights } from '../accounts/rights.ts'
import type { Channel } from '../channels/channel.ts'
import type { Section, SectionConfig } from '../config/schema.ts'
import type { Control, ControlSource } from '../controls/control.ts'
import type { Address } from '../core/address.ts'
import type { Clock } from '../core/clock.ts'
import type { Logger } from '../core/log.ts'
import type { Hub } from '../metrics/hub.ts'
import type { Sensor } from '../metrics/metric.ts'
import type { Pacing } from './io/pacer.ts'
import type { Notices } from './producer/notices.ts'
import type { Stats } from './producer/stats.ts'

/** `S`: its section of the configuration, which stands in its `config.ts` with the documentation of each key. */
export interface Source<S extends Section> {
  /** Makes the sensors. Nothing is listened on yet. */
  open(context: SourceContext, config: SectionConfig<S>): OpenedSource
}

/** What the server gives to its sources. */
export interface SourceContext {
  /** The name of the server, and the directory of its data. */
  readonly producer: { readonly name: string; readonly dataDir: string }
  readonly clock: Clock
  /** A clock that stands still during a turn of the event loop. */
  readonly turnClock: Pick<Clock, 'monotonicMs' | 'microseconds'>
  readonly log: Logger
  readonly hub: Hub
  readonly quotas: Quotas
  readonly notices: Pick<Notices, 'emit'>
  readonly pacing: Pacing
  readonly server: ServerView
}

/** The server as a source that shows it sees it. */
export interface ServerView {
  stats(reader: Pick<Identity, 'tenant' | 'role'>): Stats
  channels(): Iterable<Channel>
  controls(identity: Identity): readonly Control[]
  readonly rights: Rights
  readonly audit: AuditLog
  /** Entries of `producer.sensors` that no source has. */
  readonly statuses: readonly StatusEntry[]
}

/** An entry of `producer.sensors`. */
export type StatusEntry = Pick<Sensor, 'owner' | 'status'>

export interface OpenedSource {
  readonly sensors?: readonly Sensor[]
  readonly controls?: readonly Control[]
  /** Controls that come and go while the server runs. */
  readonly controlSource?: ControlSource
  /** Entries of `producer.sensors` beside those of the sensors. */
  readonly statuses?: readonly StatusEntry[]
  /** Opens what it listens on. Values that arrive before bindings are recovered would be lost, so this comes after. */
  listen?(listeners: SourceListeners): Promise<void>
  /** Forgets what was silent for too long; called every second. */
  sweep?(): void
}

/** An address that a source is bound to. */
export interface BoundAddress {
  /** The key of the configuration that names it. */
  readonly key: string
  /** What it is for, as the greeting says it. */
  readonly use: string
  readonly transport: 'tcp' | 'udp'
  readonly address: Address
}

interface Closable {
  close(): Promise<void>
}

/** Everything that sources have opened: closed together, also if a later one cannot be opened. */
export class SourceListeners {
  readonly addresses: BoundAddress[] = []
  readonly #opened: Closable[] = []

  readonly opened = <Listener extends Closable>(listener: Listener): Listener => {
    this.#opened.push(listener)
    return listener
  }

  /** Adds an address; undefined if there is none. */
  bound(use: Omit<BoundAddress, 'address'>, address: Address | undefined): void {
    if (address !== undefined) this.addresses.push({ ...use, address })
  }

  async close(): Promise<void> {
    for (const listener of this.#opened.splice(0)) await listener.close()
  }
}
