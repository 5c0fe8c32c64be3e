/**
 * A broker on loopback that speaks AMQP as far as a console does, with a login, and answers QMF as recorded. Our own codec
 * on both ends: that it is right is tested elsewhere; here it is about sockets.
 */
import { createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer, TLSSocket } from 'node:tls'
import { type Assembly, encodeFrames, FrameAssembler, PROTOCOL_HEADER } from '../../../../protocol/amqp/frames.ts'
import {
  type AmqpControl,
  decodeCommand,
  decodeControl,
  encodeCommand,
  encodeControl,
  encodeHeader,
} from '../../../../protocol/amqp/methods.ts'
import { deliveryOf } from '../../../../protocol/amqp/session.ts'
import { decodeBody } from '../../../../protocol/qmf/messages.ts'
import type { Issued } from '../../../support/certificates.ts'
import { recordedAnswers, recordedKnown } from './recorded.ts'

const FRAME_BYTES = 65_535
/** The answer to A: banks 1.10. */
const ATTACHED = Uint8Array.from(Buffer.from('414d326100000001000000010000000a', 'hex'))

export class LoopbackBroker {
  readonly port: number
  /** Credentials of each login: `ANONYMOUS `, `PLAIN .user.password`, `EXTERNAL ` with the name in the certificate. */
  readonly logins: string[] = []
  /** `bind <queue> <key>`, `unbind ...`, `G <class>`, `M <method>` */
  readonly asked: string[] = []
  /** What agents sent, by routing key. */
  readonly reported: (readonly [key: string, body: Uint8Array])[] = []
  /** Logins are refused with this text. */
  refusal: string | undefined
  /** Nothing is said or read. */
  isDeaf = false
  readonly #server: Server
  readonly #peers = new Set<Peer>()

  private constructor(server: Server, event: 'connection' | 'secureConnection') {
    this.#server = server
    this.port = (server.address() as { port: number }).port
    server.on(event, (socket: Socket) => {
      const peer = new Peer(socket, this)
      this.#peers.add(peer)
      socket.on('close', () => this.#peers.delete(peer))
    })
  }

  /** `issued`: over TLS, with that certificate. `clientCa`: clients need one by that authority, and log in with it. */
  static async listen(issued?: Issued, clientCa?: string): Promise<LoopbackBroker> {
    const client = clientCa === undefined ? {} : { ca: clientCa, requestCert: true }
    const server = issued === undefined ? createServer() : createTlsServer({ ...issued, ...client })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return new LoopbackBroker(server, issued === undefined ? 'connection' : 'secureConnection')
  }

  get connections(): number {
    return this.#peers.size
  }

  broadcast(routingKey: string, body: Uint8Array): void {
    for (const peer of this.#peers) peer.deliver('tdest', routingKey, body)
  }

  /** Every connection breaks. */
  kick(): void {
    for (const { socket } of this.#peers) socket.destroy()
  }

  close(): Promise<void> {
    this.kick()
    return new Promise((resolve) => this.#server.close(() => resolve()))
  }
}

class Peer {
  readonly socket: Socket
  readonly #broker: LoopbackBroker
  readonly #assembler = new FrameAssembler(1 << 20)
  #greeted = false
  #commands = 0

  constructor(socket: Socket, broker: LoopbackBroker) {
    this.socket = socket
    this.#broker = broker
    socket.on('error', () => {})
    socket.on('data', (chunk: Uint8Array) => this.#read(chunk))
  }

  deliver(destination: string, routingKey: string, body: Uint8Array): void {
    const method = encodeCommand({ name: 'message.transfer', destination, acceptMode: 1, acquireMode: 0 })
    const header = encodeHeader({ delivery: { routingKey }, message: {} })
    this.#write({ channel: 1, isControl: false, method, header, body })
  }

  get #commonName(): string | undefined {
    const { socket } = this
    return socket instanceof TLSSocket ? socket.getPeerCertificate().subject?.CN?.toString() : undefined
  }

  #write(assembly: Assembly): void {
    this.socket.write(encodeFrames(assembly, FRAME_BYTES))
  }

  #control(control: AmqpControl, channel = 0): void {
    this.#write({ channel, isControl: true, method: encodeControl(control) })
  }

  #read(chunk: Uint8Array): void {
    if (this.#broker.isDeaf) return
    if (!this.#greeted) {
      this.#greeted = true
      this.socket.write(PROTOCOL_HEADER)
      const mechanisms = this.#commonName === undefined ? ['ANONYMOUS', 'PLAIN'] : ['EXTERNAL']
      this.#control({ name: 'connection.start', mechanisms, locales: ['en_US'] })
      this.#assembler.push(chunk.subarray(8))
    } else this.#assembler.push(chunk)
    for (let next = this.#assembler.next(); next !== undefined; next = this.#assembler.next()) {
      if (next.isControl) this.#take(decodeControl(next.method) as AmqpControl)
      else this.#command(next)
    }
  }

  #take(control: AmqpControl): void {
    const { refusal, logins } = this.#broker
    if (control.name === 'connection.start-ok') {
      logins.push(
        `${control.mechanism} ${Buffer.from(control.response ?? [])
          .toString()
          .replaceAll('\0', '.')}${this.#commonName ?? ''}`,
      )
      if (refusal !== undefined) this.#control({ name: 'connection.close', code: 320, text: refusal })
      else this.#control({ name: 'connection.tune', channelMax: 1, maxFrameBytes: FRAME_BYTES, heartbeatMaxSeconds: 0 })
    }
    if (control.name === 'connection.open') this.#control({ name: 'connection.open-ok', knownHosts: [] })
    if (control.name === 'connection.close') this.#control({ name: 'connection.close-ok' })
    if (control.name === 'session.attach') {
      this.#control({ name: 'session.attached', session: control.session ?? '' }, 1)
      this.#control({ name: 'session.command-point', id: 0, offset: 0n }, 1)
    }
  }

  #command({ method, header, body }: Assembly): void {
    const { asked, reported } = this.#broker
    const { command } = decodeCommand(method)
    this.#control({ name: 'session.completed', commands: [{ first: 0, last: this.#commands++ }] }, 1)
    if (command.name === 'exchange.bind') asked.push(`bind ${command.key}`)
    if (command.name === 'exchange.unbind') asked.push(`unbind ${command.key}`)
    if (command.name !== 'message.transfer') return
    const { replyTo, routingKey, body: request } = deliveryOf(command.destination, header, body)
    const [first] = decodeBody(request, recordedKnown).messages
    if (replyTo?.routingKey.startsWith('qmfagent') || replyTo === undefined) reported.push([routingKey, request])
    if (first?.op === 'A') this.deliver('qmfagent', replyTo?.routingKey ?? '', ATTACHED)
    if (replyTo?.routingKey.startsWith('qmfagent') || replyTo === undefined) return
    for (const message of decodeBody(request, recordedKnown).messages) {
      if (message.op === 'G') asked.push(`G ${message.query.get('_class')}`)
      if (message.op === 'M') asked.push(`M ${message.method}`)
      for (const answer of recordedAnswers(message)) this.deliver('rdest', replyTo?.routingKey ?? '', answer)
    }
  }
}
