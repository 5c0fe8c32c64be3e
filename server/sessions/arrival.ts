/** A connection that came in over some listener, before it is a session. */
import type { Peer } from '../../auth/mechanism.ts'
import type { Link } from '../../protocol/link/link.ts'

export interface Arrival {
  readonly link: Link
  readonly format: 'xdr' | 'json'
  readonly peer: Peer
  /** AUTH succeeded: from now on the peer may send more at once. */
  readonly admitted?: () => void
}
