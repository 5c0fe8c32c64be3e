/**
 * A channel: a durable queue that a consumer defined, its bindings, and the connection that has it now [MON 8].
 * It outlives connections. Changing it goes through the registry, which makes it survive.
 */
import type { Identity } from '../../../auth/permissions.ts'
import { covers, type Scope } from '../../../auth/permissions.ts'
import type { BindingRow, ChannelRow } from '../../../storage/store.ts'
import type { HubBinding } from '../metrics/hub.ts'
import type { MetricInstance } from '../metrics/instance.ts'
import type { ChannelConnection, Outbox } from './outbox.ts'
import type { Queue } from './queue.ts'

export interface ChannelBinding {
  readonly instance: MetricInstance
  mode: BindingRow['mode']
  /** Blocks with a lower id have values from before it was made, if the metric is bound elsewhere too. */
  readonly since: number
  /** The number up to which values of a metric with a past were queued; undefined if it has none. */
  reached: number | undefined
  /** What the hub sends here; undefined until it is asked for. */
  source: HubBinding | undefined
}

export class Channel {
  readonly id: number
  readonly owner: Identity
  readonly queue: Queue
  readonly outbox: Outbox
  /** By metric id. */
  readonly bindings = new Map<number, ChannelBinding>()
  /** Result ids of EXECUTEs whose value has not come yet, or is not committed. */
  readonly results = new Set<number>()
  /** GETs whose measurement has not ended, by metric id: STOP cancels them. */
  readonly gets = new Map<number, Set<object>>()
  row: ChannelRow
  /** It is in the store. */
  stored = false
  deleted = false
  /** Microseconds: of the values of a series in one such span only the first is wanted; 0: all are. */
  resolutionUs = 0
  /** Nobody has come back for it, and nobody would find it by a name or a URL: its polled metrics are not read. */
  isOrphan: boolean
  /** Called when a connection has taken or left it, and when it is deleted, if the producer makes its connections. */
  onConnectionChange: (() => void) | undefined

  constructor(row: ChannelRow, owner: Identity, queue: Queue, outbox: Outbox) {
    this.id = row.id
    this.row = row
    this.isOrphan = row.paused
    this.owner = owner
    this.queue = queue
    this.outbox = outbox
  }

  /** Its id, and its name if it has one, in texts for people. */
  get label(): string {
    return this.row.name === '' ? String(this.id) : `${this.id} (${this.row.name})`
  }

  get connection(): ChannelConnection | undefined {
    return this.outbox.connection
  }

  /** Whether the scope of a credential covers everything bound on it. */
  isCoveredBy(scope: Scope | undefined): boolean {
    if (scope === undefined) return true
    for (const { instance } of this.bindings.values()) {
      if (!covers(scope, { command: 'COLLECT', object: instance.selection.name })) return false
    }
    return true
  }

  /** Nothing would be lost with it: it is deleted when its connection ends or leaves [MON 8 Life]. */
  get isDisposable(): boolean {
    if (this.row.defined) return false
    if (!this.row.durable) return true
    return !this.row.configured && this.bindings.size === 0 && this.results.size === 0 && this.queue.empty
  }

  /** Nobody could find it again but by an id that was noted: it has neither name nor URL, and its owner chose no settings. */
  get isAnonymous(): boolean {
    const { name, url, configured } = this.row
    return name === '' && url === '' && !configured
  }

  /** The producer sends its values on and nobody commits them: no consumer can take it [MON 14]. */
  get isPush(): boolean {
    return /^(?:gmetric|(?:prometheus|otlp)\+https?):/.test(this.row.url)
  }

  /** It survives a restart: it belongs in the store. */
  get survives(): boolean {
    return this.row.durable || this.row.defined
  }

  /**
   * The state that `producer.channels` reports. For a channel with a URL it must not show what answers where, or what its name
   * resolves to [MON 14].
   */
  get state(): 'connected' | 'waiting' | 'window-full' | 'orphan' {
    if (this.connection === undefined) return this.isOrphan ? 'orphan' : 'waiting'
    return this.outbox.windowFull && this.row.url === '' ? 'window-full' : 'connected'
  }
}
