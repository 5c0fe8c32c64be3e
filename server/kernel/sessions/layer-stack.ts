/** The layers of a connection [MON 12]: those it has, and those it may ask for. Session decides when one is added. */
import type { AuthPeer } from '../../../auth/mechanism.ts'
import { DeflateLink } from '../../../protocol/link/layers/deflate.ts'
import type { Link, LinkListener } from '../../../protocol/link/link.ts'
import type { IncomingConnection, TlsUpgradable } from './incoming-connection.ts'

export class LayerStack {
  readonly #format: IncomingConnection['format']
  readonly #tls: TlsUpgradable | undefined
  readonly #listener: LinkListener
  #link: Link
  #hasTls = false
  #hasDeflate = false

  constructor({ link, tls, format }: IncomingConnection, listener: LinkListener) {
    this.#format = format
    this.#tls = tls
    this.#listener = listener
    this.#link = link
  }

  /** The link to read from and write to: the uppermost layer. */
  get link(): Link {
    return this.#link
  }

  /** True if the connection begins with a TLS handshake. */
  get beginsWithTls(): boolean {
    return this.#tls?.isImmediate === true
  }

  /** Those that were added at the request of the peer (WRAP). */
  get added(): readonly string[] {
    const isTlsAdded = this.#hasTls && !this.beginsWithTls
    return [...(isTlsAdded ? ['tls'] : []), ...(this.#hasDeflate ? ['deflate'] : [])]
  }

  /** The layers that may be asked for now. A connection that speaks JSON has messages of text, and no stream to wrap. */
  offered(isAuthenticated: boolean): string[] {
    if (this.#format === 'json') return []
    if (isAuthenticated) return this.#hasDeflate ? [] : ['deflate']
    return this.#tls === undefined || this.#hasTls ? [] : ['tls']
  }

  /** Listens to the link as it is, without another layer. */
  listen(): void {
    this.#link.listen(this.#listener)
  }

  addDeflate(): void {
    const below = this.#link
    this.#hasDeflate = true
    this.#link = new DeflateLink(below)
    this.listen()
    below.resume()
  }

  /** Starts the handshake. TLS takes over the socket itself, ahead of everything that is queued in its stream. */
  addTls(established: (facts: Partial<AuthPeer>) => void): void {
    if (this.#tls === undefined) return
    this.#link = this.#tls.secure((facts) => {
      this.#hasTls = true
      established(facts)
    })
    this.listen()
  }
}
