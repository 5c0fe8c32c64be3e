/**
 * Where other nodes connect to this one (its address in `cluster.nodes`). Only nodes get in: they come from addresses of nodes, and
 * both ends show certificates of the cluster's authority, except where everything is on one machine and nothing is configured for
 * TLS. Each stream begins with a PROXY header; consumers' streams go to the listener of this node that they came to at the other one.
 */
import { createServer, type Server, type Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { type ProxyHeader, ProxyHeaderReader } from '../../protocol/proxy/header.ts'
import { passedAddress, showPeer, type TakePassed } from '../edge/passed-on.ts'
import type { Address } from '../kernel/core/address.ts'
import type { Clock, Timer } from '../kernel/core/clock.ts'
import { bindTcp, ListenError } from '../kernel/core/listen.ts'
import type { RareWarnings } from '../kernel/core/rare-warnings.ts'
import type { NodeAddress } from './config.ts'
import { isCertifiedFor, isOfThisMachine, mayComeFrom, type NodeCertificates } from './node-certificates.ts'
import { asksForAnswer, isFromLoopback, kindOf, TAKEN } from './node-stream.ts'

/** From connecting to the end of the header, the handshake of TLS included. */
const OPENING_MS = 5_000
/** Connections that have not shown a whole header. One more, and the oldest gives way. */
const MAX_OPENING = 1_024
const SOCKET_OPTIONS = { allowHalfOpen: true, noDelay: true, keepAlive: true, keepAliveInitialDelay: 15_000 }

export interface NodeListenerOptions {
  readonly address: Address
  /** The key of the configuration, for errors. */
  readonly key: string
  /** Undefined only if the address is one of loopback. */
  readonly certificates: NodeCertificates | undefined
  /** All nodes. */
  readonly nodes: readonly NodeAddress[]
  /** What takes streams of a kind now; undefined if nothing does, as for consumers' streams while this node does not lead. */
  readonly takerOf: (kind: string) => TakePassed | undefined
  readonly clock: Pick<Clock, 'setTimeout' | 'clear'>
  readonly warnings: RareWarnings
}

export class NodeListener {
  readonly #options: NodeListenerOptions
  readonly #server: Server
  /** The oldest first. */
  readonly #opening = new Map<Socket, Timer>()
  readonly #open = new Set<Socket>()
  #isClosed = false
  /**
   * `taken`: streams that went on to their takers; `untaken`: those of a kind that nothing takes now; `refused`: connections that
   * did not prove to be of a node, or did not send a header; `late`: those among them that took too long for it; `evicted`:
   * connections that gave way to newer ones.
   */
  readonly counters = { taken: 0, untaken: 0, refused: 0, late: 0, evicted: 0 }

  constructor(options: NodeListenerOptions) {
    this.#options = options
    this.#server = createServer(SOCKET_OPTIONS, (socket) => this.#arrived(socket))
  }

  /** Connections that have not shown a whole header. */
  get opening(): number {
    return this.#opening.size
  }

  /** All connections that came over this listener, those of streams that were taken included. */
  get connections(): number {
    return this.#open.size
  }

  /** Resolves to the address that was bound. Rejects with ListenError. */
  open(): Promise<Address> {
    const { address, key, certificates } = this.#options
    if (certificates === undefined && !isOfThisMachine(address.host)) {
      const problem = `\`${key}\` is an address that others reach, so it needs certificates`
      return Promise.reject(
        new ListenError(
          `${problem}: name \`cluster.tls_ca\`, \`cluster.tls_cert\` and \`cluster.tls_key\`, or an address of this machine alone`,
        ),
      )
    }
    return bindTcp(this.#server, address, key)
  }

  /** Closes the listener and all streams that came over it. */
  close(): Promise<void> {
    this.#isClosed = true
    for (const raw of this.#opening.keys()) this.#opened(raw)
    for (const raw of this.#open) raw.destroy()
    return new Promise((resolve) => this.#server.close(() => resolve()))
  }

  #arrived(raw: Socket): void {
    if (this.#isClosed) {
      raw.destroy()
      return
    }
    this.#open.add(raw)
    raw.on('error', () => raw.destroy())
    raw.once('close', () => {
      this.#open.delete(raw)
      if (this.#opening.has(raw)) this.#refuse(raw, 'it ended, or its handshake of TLS failed')
    })
    const { clock, certificates, nodes } = this.#options
    if (!nodes.some((node) => mayComeFrom(node, raw))) {
      this.#refuse(raw, 'no node of `cluster.nodes` has its address')
      return
    }
    if (this.#opening.size >= MAX_OPENING) this.#evictOldest()
    const late = (): void => {
      this.counters.late++
      this.#refuse(raw, `it did not say within ${OPENING_MS / 1000} s what it is for`)
    }
    this.#opening.set(raw, clock.setTimeout(late, OPENING_MS))
    if (certificates === undefined) this.#readHeader(raw, raw)
    else certificates.accept(raw, (secured) => this.#secured(secured, raw))
  }

  #secured(socket: TLSSocket, raw: Socket): void {
    socket.on('error', () => socket.destroy())
    const shown = this.#options.nodes.filter(({ name, host }) => isCertifiedFor(socket, [name, host]))
    if (shown.some((node) => mayComeFrom(node, raw))) this.#readHeader(socket, raw)
    else if (shown.length === 0) {
      this.#refuse(raw, 'its certificate is of the authority of the cluster, but for none of the nodes')
    } else this.#refuse(raw, `its certificate is for ${shown[0]?.name}, which has another address in \`cluster.nodes\``)
  }

  /** `socket` is `raw`, or TLS over it. */
  #readHeader(socket: Socket, raw: Socket): void {
    const reader = new ProxyHeaderReader()
    const read = (): void => {
      const chunk: Buffer | null = socket.read()
      if (chunk === null || !this.#opening.has(raw)) return
      try {
        const done = reader.take(chunk)
        if (done === undefined) return
        socket.off('readable', read)
        if (done.rest.length > 0) socket.unshift(done.rest)
        this.#begin(socket, raw, done.header)
      } catch (error) {
        this.#refuse(raw, (error as Error).message)
      }
    }
    socket.on('readable', read)
    socket.once('end', () => {
      if (this.#opening.has(raw)) this.#refuse(raw, 'it ended before its header was complete')
    })
  }

  #begin(socket: Socket, raw: Socket, header: ProxyHeader): void {
    const { route } = header
    const kind = kindOf(header)
    const node = socket.remoteAddress
    if (route === undefined || kind === undefined || node === undefined) {
      this.#refuse(raw, 'its PROXY header does not say who connected, and what for')
      return
    }
    this.#opened(raw)
    const take = this.#options.takerOf(kind)
    if (take === undefined) {
      this.counters.untaken++
      raw.destroy()
      return
    }
    this.counters.taken++
    showPeer(socket, { remoteAddress: passedAddress(route.from.address, node), remotePort: route.from.port })
    if (asksForAnswer(header)) socket.write(Uint8Array.of(TAKEN))
    take(socket, isFromLoopback(header))
  }

  #refuse(raw: Socket, reason: string): void {
    this.counters.refused++
    this.#opened(raw)
    this.#options.warnings.warn('a connection to the address for other nodes was refused', {
      peer: raw.remoteAddress,
      reason,
    })
    raw.destroy()
  }

  /** Ends the time for opening. */
  #opened(raw: Socket): void {
    this.#options.clock.clear(this.#opening.get(raw))
    this.#opening.delete(raw)
  }

  #evictOldest(): void {
    for (const oldest of this.#opening.keys()) {
      this.counters.evicted++
      this.#opened(oldest)
      oldest.destroy()
      return
    }
  }
}
