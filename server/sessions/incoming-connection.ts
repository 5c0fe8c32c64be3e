/** A connection that came in over some listener, before it is a session. */
import type { AuthExchange, Peer } from '../../auth/mechanism.ts'
import type { Link } from '../../protocol/link/link.ts'
import type { Channel } from '../channels/channel.ts'

/** Who decides whom to let in: the authenticator, or on a connection that the producer made, the secret of its channel. */
export interface AuthProvider {
  methods(peer: Peer): string[]
  begin(peer: Peer): AuthExchange
}

/** The producer made the connection, for this channel [MON 14]. */
export interface OutboundChannel {
  readonly auth: AuthProvider
  readonly channel: Channel
}

/** A stream that can be put under TLS, this end being the server [MON 12]. */
export interface TlsUpgradable {
  /** From the first byte on; else when the peer asks for it (WRAP). */
  readonly isImmediate: boolean
  /** Takes the stream from its link. `secured` tells what the peer has shown; the handshake is over then. */
  secure(secured: (facts: Partial<Peer>) => void): Link
}

export interface IncomingConnection {
  readonly link: Link
  readonly tls?: TlsUpgradable | undefined
  readonly format: 'xdr' | 'json'
  readonly peer: Peer
  /** AUTH succeeded: from now on the peer may send more at once. */
  readonly admitted?: () => void
  readonly outbound?: OutboundChannel
}
