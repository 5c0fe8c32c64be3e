/** What a queue is given from outside: its surroundings, its listener, the limit that it shares, and its settings. */
import type { ChannelRow } from '../../../storage/store.ts'
import type { Inlets } from './inlets.ts'
import type { Drops } from './ledger.ts'
import type { Pool } from './pool.ts'

/** The settings of a channel that a consumer may choose [MON 8 Configuring]. */
export type ChannelSettings = Pick<
  ChannelRow,
  'durable' | 'window' | 'windowBytes' | 'maxBytes' | 'maxAgeMs' | 'expireMs' | 'overflow'
>

/** The settings that concern the queue. */
export type QueueSettings = Omit<ChannelSettings, 'expireMs'>

/** The bytes that several queues hold together, and may hold: those of a tenant [MON 8 Limits]. */
export interface SharedLimit {
  /** Bytes of VALUE frames that are not settled. */
  bytes: number
  readonly limit: number
}

/** The services that a queue needs; all queues have the same one. */
export interface QueueHost {
  readonly pool: Pool
  readonly inlets: Inlets
  /** A new id for a block or a GAP. */
  nextId(): number
  /** The age clock in ms: it is monotonic, and keeps counting while the server is down. */
  age(): number
  /** The same, read once per turn: for values. */
  stamp(): number
  /** Why durable channels take nothing more: the disk is full, or too much waits to be stored. */
  readonly refusing: 'full' | 'overflow' | undefined
  /** It is set while `unstored` is more than this; asked once for the values of a turn of the feeds. */
  readonly refusesAbove: number
  /** Bytes of all durable channels that no durable batch holds yet. */
  unstored: number
  /** The number of values that were dropped because of `refusing` or a lack of memory, whatever the limits of their channel. */
  refused: number
  /** The number of values that were accepted, and that were given to connections, since the start. */
  accepted: number
  sent: number
  /** The number of values that all channels have dropped, since the start. */
  readonly dropped: Drops
}

/** The events of a queue. */
export interface QueueListener {
  /** Something is to be stored. */
  changed(): void
  /** The next batch is waited for: it reserves transaction ids, and there are none any more. */
  awaited(): void
  /** Something is to be sent. */
  ready(): void
  /** The value of an EXECUTE's result is committed or dropped. */
  resultGone(id: number): void
}
