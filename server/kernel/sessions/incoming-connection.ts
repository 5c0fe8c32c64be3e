/** A connection before it is a session. It came in over a listener, or the producer made it. */
import type { Account, AuthExchange, AuthPeer } from '../../../auth/mechanism.ts'
import type { Link } from '../../../protocol/link/link.ts'
import type { ProducerName } from '../../../protocol/monitor/capabilities.ts'
import type { Channel } from '../channels/channel.ts'
import type { ConnectionPlace } from './admission.ts'

/** Decides who may log in: the authenticator, or on a connection that the producer made, the secret of its channel. */
export interface AuthProvider {
  methods(peer: AuthPeer): string[]
  begin(peer: AuthPeer): AuthExchange
}

/** The channel for which the producer made the connection [MON 14]. */
export interface OutboundChannel {
  readonly auth: AuthProvider
  readonly channel: Channel
  /** scheme://host:port */
  readonly destination: string
  /** The owner of the channel, if the certificate of the peer was its proof: the session begins without AUTH. */
  readonly owner: Account | undefined
}

/** The producer made the connection to be consumed over it, and says who it is before the login [MON 9.13]. */
export interface AnnouncedConnection {
  readonly auth: AuthProvider
  readonly producer: ProducerName
}

/** A stream that can be put under TLS, with this end as the server [MON 12]. */
export interface TlsUpgradable {
  /** True if TLS begins with the first byte, false if it begins when the peer asks for it (WRAP). */
  readonly isImmediate: boolean
  /** Takes the stream from its link. `established` is called after the handshake, with what it has shown of the peer. */
  secure(established: (facts: Partial<AuthPeer>) => void): Link
}

/** The scheme of the URL that a consumer connects to, or that the producer dials. */
export type ConnectionScheme = 'tcp' | 'tls' | 'ws' | 'wss'

export interface IncomingConnection {
  readonly link: Link
  readonly transport: ConnectionScheme
  readonly tls?: TlsUpgradable | undefined
  readonly format: 'xdr' | 'json'
  readonly peer: AuthPeer
  /** Called when AUTH has succeeded: from now on the peer may send longer messages. */
  readonly admitted?: () => void
  /** The place that the connection has already; without it `Sessions` looks for one. */
  readonly place?: ConnectionPlace | undefined
  readonly outbound?: OutboundChannel
  readonly announced?: AnnouncedConnection
}
