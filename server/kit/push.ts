/**
 * Where the values of a channel are delivered without a session [MON 14]: a consumer names a URL when it defines the channel,
 * and a wing that knows the scheme of that URL sends them.
 */
import type { Channel } from '../kernel/channels/channel.ts'
import type { ChannelConnection } from '../kernel/channels/outbox.ts'

export type { MetricInstance } from '../kernel/metrics/instance.ts'
export type { Channel, ChannelConnection }

/** What a wing offers to channels with a URL. */
export interface PushDestination {
  /** Of its URLs, in lower case. */
  readonly schemes: readonly string[]
  /** Opens a connection that takes the values of the channel. Rejects with Error if that fails. */
  open(request: PushRequest): Promise<ChannelConnection>
}

/** A channel whose URL was checked, and may be dialled now. */
export interface PushRequest {
  readonly channel: Channel
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
