/**
 * A channel: a durable queue that a consumer defined, its bindings, and the connection that has it now [MON 8].
 * It outlives connections. Changing it goes through the registry, which makes it survive.
 */
import type { Identity } from '../../auth/permissions.ts'
import { covers, type Scope } from '../../auth/scope.ts'
import type { BindingRow, ChannelRow } from '../../storage/store.ts'
import type { MetricInstance } from '../metrics/instance.ts'
import type { Connection, Outbox } from './outbox.ts'
import type { Queue } from './queue.ts'

export interface Binding {
  readonly instance: MetricInstance
  mode: BindingRow['mode']
  /** How far it has come in a metric with a past. */
  reached: number | undefined
  untap: () => void
}

export class Channel {
  readonly id: number
  readonly owner: Identity
  readonly queue: Queue
  readonly outbox: Outbox
  /** By metric id. */
  readonly bindings = new Map<number, Binding>()
  /** Result ids of EXECUTEs whose value is to come or not committed. */
  readonly results = new Set<number>()
  /** GETs whose measurement is under way, by metric id: STOP cancels them. */
  readonly gets = new Map<number, Set<object>>()
  row: ChannelRow
  /** It is in the store. */
  stored = false
  deleted = false
  /** Told when a connection has taken it or left it, and when it is deleted: the producer makes its connections. */
  moved: (() => void) | undefined
  /** The producer would connect, and may not [MON 14]. */
  refused = false

  constructor(row: ChannelRow, owner: Identity, queue: Queue, outbox: Outbox) {
    this.id = row.id
    this.row = row
    this.owner = owner
    this.queue = queue
    this.outbox = outbox
  }

  get connection(): Connection | undefined {
    return this.outbox.connection
  }

  /** Whether all that is bound on it is covered by what a credential may be used for. */
  isFor(scope: Scope | undefined): boolean {
    if (scope === undefined) return true
    for (const { instance } of this.bindings.values()) {
      if (!covers(scope, { command: 'COLLECT', object: instance.selection.name })) return false
    }
    return true
  }

  /** Nothing would be lost with it: it disappears when its connection ends or leaves [MON 8 Life]. */
  get isDisposable(): boolean {
    if (this.row.defined) return false
    if (!this.row.durable) return true
    return !this.row.configured && this.bindings.size === 0 && this.results.size === 0 && this.queue.empty
  }

  /** The producer sends its values on and nobody commits them: no consumer takes it [MON 14]. */
  get isPush(): boolean {
    return this.row.url.startsWith('gmetric:')
  }

  /** What of it is worth a row in the store. */
  get survives(): boolean {
    return this.row.durable || this.row.defined
  }

  /** Of one that the producer connects nothing is told but this: no more than `waiting` says what answers where [MON 14]. */
  get state(): 'connected' | 'waiting' | 'window-full' | 'failed' {
    if (this.connection === undefined) return this.refused ? 'failed' : 'waiting'
    return this.outbox.windowFull && this.row.url === '' ? 'window-full' : 'connected'
  }
}
