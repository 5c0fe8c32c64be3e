/**
 * The layers of a connection [MON 6.12, 12]: which it has, which it may ask for, and WRAP, which is synchronous. What is
 * owed goes out first; what arrives before its response is written ends the connection; from the response on nothing is
 * read or written before the layer is there.
 */
import type { Peer } from '../../auth/mechanism.ts'
import { DeflateLink } from '../../protocol/link/layers/deflate.ts'
import type { Link, LinkListener } from '../../protocol/link/link.ts'
import { statuses } from '../../protocol/monitor/status.ts'
import type { IncomingConnection } from './incoming-connection.ts'
import type { Replies } from './replies.ts'

/** The result of a WRAP after which the capabilities are others [MON 2]. */
const CAPABILITIES_CHANGED = 0xfffffffe

/** What of a session its layers change. */
export interface Wrapped extends LinkListener {
  readonly isAuthenticated: boolean
  /** Calls when everything that was written is out of this process. */
  whenDrained(act: () => void): void
  /** The handshake is about to begin. */
  securing(): void
  /** The link is under TLS now; this is what the peer has shown in the handshake. */
  secured(facts: Partial<Peer>): void
  /** There is a layer more. */
  wrapped(): void
}

export class Wrapping {
  readonly #arrival: IncomingConnection
  readonly #session: Wrapped
  #link: Link
  #asked: { readonly seq: number; readonly layer: string } | undefined
  #isSecuring = false
  #isSecured = false
  #isDeflated = false

  constructor(arrival: IncomingConnection, session: Wrapped) {
    this.#arrival = arrival
    this.#session = session
    this.#link = arrival.link
  }

  /** What is read from and written to: the uppermost layer. */
  get link(): Link {
    return this.#link
  }

  /** A WRAP is not answered, or its layer is not there yet. */
  get isUnderWay(): boolean {
    return this.#asked !== undefined || this.#isSecuring
  }

  /** The old layer carries nothing any more, and the new one carries nothing yet. */
  get isSecuring(): boolean {
    return this.#isSecuring
  }

  /** Layers that may be asked for now. Messages of JSON are texts: there is no stream to be wrapped. */
  offered(): string[] {
    const { format, tls } = this.#arrival
    if (format === 'json') return []
    if (this.#session.isAuthenticated) return this.#isDeflated ? [] : ['deflate']
    return tls === undefined || this.#isSecured ? [] : ['tls']
  }

  /** Listens to what comes. False: a handshake has to come first. */
  begin(): boolean {
    if (this.#arrival.tls?.isImmediate) this.#secure()
    else this.#link.listen(this.#session)
    return !this.#isSecuring
  }

  ask(seq: number, layer: string): void {
    this.#asked = { seq, layer }
  }

  /** Answers, unless other responses are owed. */
  goOn(replies: Replies): void {
    if (this.#asked === undefined || replies.unanswered > 0) return
    const { seq, layer } = this.#asked
    this.#asked = undefined
    if (!this.offered().includes(layer)) {
      replies.refuse(seq, statuses.UNSUPPORTED.code, `the layer ${layer} is not offered on this connection`)
      replies.flush()
      return
    }
    // What a peer sends as soon as it has the response is under the new layer.
    this.#link.pause()
    replies.now(seq, CAPABILITIES_CHANGED)
    replies.flush()
    if (layer === 'deflate') this.#deflate()
    else this.#leave()
  }

  #deflate(): void {
    const below = this.#link
    this.#isDeflated = true
    this.#link = new DeflateLink(below)
    this.#link.listen(this.#session)
    below.resume()
    this.#session.wrapped()
  }

  /** TLS takes the socket itself, past everything that waits in the stream to be written. */
  #leave(): void {
    this.#isSecuring = true
    this.#session.securing()
    this.#session.whenDrained(() => this.#secure())
  }

  #secure(): void {
    const { tls } = this.#arrival
    if (tls === undefined) return
    this.#isSecuring = true
    this.#link = tls.secure((facts) => {
      this.#isSecuring = false
      this.#isSecured = true
      this.#session.secured(facts)
    })
    this.#link.listen(this.#session)
  }
}
