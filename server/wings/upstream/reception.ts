/**
 * Where upstreams that cannot be reached connect to [MON 9.13]. One says who it is, and the upstream of that name logs in; whoever
 * is unknown, or cannot prove to know the secret, is closed and costs a place among the connections that have not logged in.
 */
import { createServer, type Server, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { exporterOf, SOCKET_OPTIONS, securityOf, streamTransport } from '../../../client/dial/stream.ts'
import type { Transport, TransportListener } from '../../../client/transport.ts'
import { Framer } from '../../../protocol/bytes/framer.ts'
import { XdrReader } from '../../../protocol/bytes/reader.ts'
import { readMessage } from '../../../protocol/monitor/message.ts'
import { type Address, bindTcp, formatAddress } from '../../kit/io/address.ts'
import type { Kit } from '../../kit/kit.ts'
import type { SensorStatus, StatusEntry } from '../../kit/metrics.ts'
import type { Callers } from '../../kit/producers.ts'
import { PassingTransport } from './passing-transport.ts'
import { shownProblem } from './session.ts'
import type { Upstream } from './upstream.ts'

/** From connecting to the end of the login [MON 11]. */
const LOGIN_MS = 10_000
/** The longest first frame: what is offered and who it is are a few hundred bytes. */
const MAX_GREETING_BYTES = 1 << 14
/** Of a name that nobody knows, in the log. */
const MAX_SHOWN = 64
const NO_BYTES = new Uint8Array(0)

export interface ReceptionOptions extends Pick<Kit, 'clock' | 'log'>, Callers {
  readonly address: Address
  /** The upstream that announces itself here under a name. */
  readonly find: (name: string) => Upstream | undefined
}

export class Reception implements StatusEntry {
  readonly owner = 'producer'
  readonly #options: ReceptionOptions
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  /** `nameless`: those who were closed before they had said who they are. */
  readonly #counters = { connections: 0, nameless: 0, unknown: 0, failed: 0 }
  #bound: Address | undefined
  #problem = ''

  constructor(options: ReceptionOptions) {
    this.#options = options
    this.#server = createServer(SOCKET_OPTIONS, (socket) => this.#arrived(socket))
  }

  get isOpen(): boolean {
    return this.#bound !== undefined
  }

  /** Rejects with ListenError; it may be tried again then. */
  async open(): Promise<Address> {
    try {
      this.#bound = await bindTcp(this.#server, this.#options.address, 'upstream.listen')
      this.#problem = ''
      return this.#bound
    } catch (error) {
      this.#problem = (error as Error).message
      throw error
    }
  }

  close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    return new Promise((resolve) => this.#server.close(() => resolve()))
  }

  status(): SensorStatus {
    const { address } = this.#options
    return {
      name: `upstream.listen/${formatAddress(this.#bound ?? address)}`,
      state: this.#bound === undefined ? 'failed' : 'listening',
      detail: this.#problem,
      counters: { ...this.#counters, open: this.#sockets.size },
    }
  }

  #arrived(socket: Socket): void {
    const { tls, admission, clock } = this.#options
    const { remoteAddress = '' } = socket
    const place = admission.enter(remoteAddress, () => socket.destroy())
    if (place === undefined) {
      socket.destroy()
      return
    }
    this.#sockets.add(socket)
    let isNamed = false
    const timer = clock.setTimeout(() => socket.destroy(), LOGIN_MS)
    socket.on('error', () => socket.destroy())
    socket.once('close', () => {
      clock.clear(timer)
      this.#sockets.delete(socket)
      if (!isNamed) this.#counters.nameless++
      admission.leave(place)
    })
    const greet = (stream: Duplex, security: Parameters<typeof streamTransport>[1]): void => {
      const named = (): void => {
        isNamed = true
      }
      this.#greet(streamTransport(stream, security), remoteAddress, named).then(
        () => {
          clock.clear(timer)
          admission.authenticated(place, false)
        },
        () => socket.destroy(),
      )
    }
    if (tls === undefined) greet(socket, securityOf(socket))
    else {
      // Somebody in between would need our key: the upstream has verified our certificate.
      tls.accept(socket, (secure) =>
        greet(secure, { ...securityOf(socket), encrypted: true, exporter: exporterOf(secure) }),
      )
    }
  }

  /**
   * Settles when the upstream that announces itself is logged in to. Rejects if it is not; the log says why if it has said who it is.
   */
  async #greet(transport: Transport, address: string, named: () => void): Promise<void> {
    const { find, log } = this.#options
    const heard = new HeardTransport(transport)
    const name = await heard.name
    named()
    const upstream = find(name)
    if (upstream === undefined) {
      this.#counters.unknown++
      log.info(
        { address, name: name.slice(0, MAX_SHOWN) },
        'a server has announced itself for which there is no [[upstream]]',
      )
      throw new Error('unknown')
    }
    try {
      await upstream.announced(heard)
      this.#counters.connections++
    } catch (error) {
      this.#counters.failed++
      log.warn(
        { address, name, problem: shownProblem((error as Error).message) },
        'an upstream that has announced itself cannot be used',
      )
      throw error
    }
  }
}

/** A transport of which the first frame is read before anybody else opens it, who gets it again. */
class HeardTransport extends PassingTransport {
  /** What the other end calls itself in its capabilities. Rejects if they do not come first. */
  readonly name: Promise<string>
  #heard = NO_BYTES
  #listener: TransportListener | undefined
  /** What has ended it before it was opened. */
  #closed: { readonly cause: Error | undefined } | undefined

  constructor(transport: Transport) {
    super(transport)
    const framer = new Framer(MAX_GREETING_BYTES)
    let isHeard = false
    this.name = new Promise((resolve, reject) => {
      const hear = (bytes: Uint8Array): void => {
        framer.push(bytes)
        isHeard = framer.next()
        if (isHeard) {
          transport.pause()
          resolve(nameIn(framer))
        }
        framer.settle()
      }
      transport.open({
        data: (bytes) => {
          if (this.#listener !== undefined) {
            this.#listener.data(bytes)
            return
          }
          // The buffer belongs to the socket.
          const own = new Uint8Array(bytes)
          this.#heard = joined(this.#heard, own)
          try {
            if (!isHeard) hear(own)
          } catch (error) {
            reject(error)
          }
        },
        closed: (cause) => {
          this.#closed = { cause }
          this.#listener?.closed(cause)
          reject(new Error('it has closed the connection'))
        },
      })
    })
  }

  open(listener: TransportListener): void {
    this.#listener = listener
    listener.data(this.#heard)
    this.#heard = NO_BYTES
    if (this.#closed === undefined) this.transport.resume()
    else listener.closed(this.#closed.cause)
  }
}

/** Throws Error if the frame does not say who sends it. */
function nameIn({ bytes, start, end, view }: Framer): string {
  const message = readMessage(new XdrReader().reset(bytes, start, end, view))
  if (message.kind !== 'caps' || message.caps.producer === undefined) throw new Error('it does not say who it is')
  return message.caps.producer.name
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array<ArrayBuffer> {
  const both = new Uint8Array(first.length + second.length)
  both.set(first)
  both.set(second, first.length)
  return both
}
