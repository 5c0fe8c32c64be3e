/**
 * Where the values of a channel are delivered without a session [MON 14]: a consumer names a URL when it defines the channel,
 * and a wing that knows the scheme of that URL sends them.
 */
import type { Channel } from '../kernel/channels/channel.ts'
import type { ChannelConnection, Outbox } from '../kernel/channels/outbox.ts'
import type { Queue } from '../kernel/channels/queue.ts'
import type { Selection } from '../kernel/metrics/selection.ts'

export type { ChannelConnection }

/** What a wing offers to channels with a URL. */
export interface PushDestination {
  /** Of its URLs, in lower case. */
  readonly schemes: readonly string[]
  /** Opens a connection that takes the values of the channel. Rejects with Error if that fails. */
  open(request: PushRequest): Promise<ChannelConnection>
}

/** A channel whose URL was checked, and may be dialled now. */
export interface PushRequest {
  readonly channel: DeliveredChannel
  /** Of the channel; its id if it has none. */
  readonly name: string
  /** In its canonical spelling, with the port. */
  readonly url: string
  /** What the name of the host resolved to: nothing else may be connected to. */
  readonly address: string
  readonly port: number
  /** The secret that is shown to the destination from now on; undefined if there is none. */
  readonly bearer: () => Uint8Array | undefined
  /** The path of a PEM file with the authorities for certificates; undefined for those of Node. */
  readonly ca: string | undefined
  /** Has to be called when the connection leaves the channel. */
  readonly left: (connection: ChannelConnection) => void
}

/** A channel as the connection knows it that delivers its values. */
export interface DeliveredChannel extends Pick<Channel, 'id' | 'label' | 'owner'> {
  /** By metric id: a value without a binding is a result or an answer, or the binding was stopped meanwhile. */
  readonly bindings: ReadonlyMap<number, { readonly instance: DeliveredMetric }>
  /** Where values are committed that the destination has, what is counted of them, and whether one is still to be delivered. */
  readonly queue: Pick<Queue, 'commit' | 'counts' | 'isUnsettled' | 'settings'>
  /** Where the values come from: it is told when more may come. */
  readonly outbox: Pick<Outbox, 'drained' | 'failed'>
}

/** A metric that is bound on such a channel. */
export interface DeliveredMetric {
  readonly selection: Pick<Selection, 'name' | 'carriesLabels' | 'args' | 'listening'>
}
