/**
 * A channel: a durable queue that a consumer defined, its bindings, and the connection that has it now [MON 8].
 * It outlives connections. Changing it goes through the registry, which makes it survive.
 */
import type { Identity } from '../../auth/permissions.ts'
import type { BindingRow, ChannelRow } from '../../storage/store.ts'
import type { Instance } from '../metrics/instance.ts'
import type { Connection, Outbox } from './outbox.ts'
import type { Queue } from './queue.ts'

export interface Binding {
  readonly instance: Instance
  mode: BindingRow['mode']
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

  /** Nothing would be lost with it: it disappears when its connection ends or leaves [MON 8 Life]. */
  get isDisposable(): boolean {
    if (this.row.defined) return false
    if (!this.row.durable) return true
    return !this.row.configured && this.bindings.size === 0 && this.results.size === 0 && this.queue.empty
  }

  /** What of it is worth a row in the store. */
  get survives(): boolean {
    return this.row.durable || this.row.defined
  }

  get state(): 'connected' | 'waiting' | 'window-full' {
    if (this.connection === undefined) return 'waiting'
    return this.outbox.windowFull ? 'window-full' : 'connected'
  }
}
