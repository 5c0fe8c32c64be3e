/**
 * A broker on loopback that speaks AMQP 0-10 in raw bytes and answers QMF as recorded. It takes nothing on trust: a client
 * that gives no credit gets nothing, one that completes nothing gets no more than its window. What it does otherwise than
 * a broker should, a test says in `instead`, `answers` and `cut`.
 */
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { capturedChunks } from './capture.ts'
import { type MapAnswer, mapAnswersTo, mapBroadcasts, mapHeartbeats, mapRequestOf } from './map-recording.ts'
import { answersTo, broadcasts, matches, type Request, requestsIn, sampledLater } from './recording.ts'
import {
  type Args,
  type Came,
  code,
  command,
  control,
  HEADER,
  replyKeyOf,
  routingKeyOf,
  str8,
  str16,
  transfer,
  u8,
  u16,
  u32,
  WireReader,
} from './wire.ts'

/** What the broker says next. `completed`: before each command is told to be done; `answers`: before each request's. */
export type Stage = 'header' | 'tune' | 'open-ok' | 'attached' | 'completed' | 'answers'

const startOf = (...recording: Parameters<typeof capturedChunks>) =>
  Buffer.from(
    capturedChunks(...recording)
      .find(({ from }) => from === 'broker')!
      .bytes.subarray(8),
  )
const START = startOf()
const MAP_START = startOf('v2-console')

export class ScriptedBroker {
  port = 0
  /** True: it says nothing of its own there; the function may have said something else. */
  instead: (stage: Stage, peer: BrokerPeer) => boolean = () => false
  /** Other bodies than those recorded. */
  answers: (bodies: readonly Buffer[], request: Request) => readonly Buffer[] = (bodies) => bodies
  /** Whether it speaks QMF v2 too, as recorded in a session of its own. */
  speaksMaps = false
  /** Other answers of v2 than those recorded. */
  mapAnswers: (answers: readonly MapAnswer[], request: string) => readonly MapAnswer[] = (answers) => answers
  /** How what is written is cut. */
  cut: (bytes: Buffer) => readonly Buffer[] = (bytes) => [bytes]
  /** Where in the recording it is: how G is answered. Later ones as they are played. */
  ms = 0
  /** The number of the last transfer in the recording of v2 that was told, or passed over. */
  mapsTold = 0
  /** Of the frames that it writes. */
  frameBytes = 65_535
  /** Most seconds between heartbeats that it offers; 0: none. */
  heartbeatSeconds = 0
  /** What was asked for, over all connections: see Request. */
  readonly asked: string[] = []
  /** `ANONYMOUS `, `PLAIN .user.password` */
  readonly logins: string[] = []
  /** The client properties of each, as they came. */
  readonly clients: Buffer[] = []
  readonly virtualHosts: string[] = []
  /** Over all its time. */
  connections = 0
  readonly peers = new Set<BrokerPeer>()
  #server: Server | undefined

  /** On `port`, if it is not 0. */
  static async listen(port = 0): Promise<ScriptedBroker> {
    const broker = new ScriptedBroker()
    await broker.open(port)
    return broker
  }

  /** Again, after `close`, at the same port. */
  async open(port = this.port): Promise<void> {
    const server = createServer((socket) => {
      this.connections++
      const peer = new BrokerPeer(socket, this)
      this.peers.add(peer)
      socket.once('close', () => this.peers.delete(peer))
    })
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
    this.port = (server.address() as AddressInfo).port
    this.#server = server
  }

  /** What it asked for since; the rest is forgotten. */
  takeAsked(): string[] {
    return this.asked.splice(0)
  }

  /** Binding keys of the topic exchange, of all connections. */
  get bound(): string[] {
    return this.boundTo('qpid.management')
  }

  boundTo(exchange: string): string[] {
    return [...this.peers].flatMap((peer) => peer.boundTo(exchange))
  }

  /** Tells what was reported in that part of the recording, in order, of what is bound; as if it were so much later. */
  play(untilMs = Number.POSITIVE_INFINITY, { isHeartbeat = true, laterMs = 0 } = {}): void {
    for (const { ms, routingKey, body } of broadcasts) {
      if (ms <= this.ms || ms > untilMs) continue
      if (isHeartbeat || !routingKey.startsWith('console.heartbeat'))
        this.publish(routingKey, sampledLater(body, laterMs))
    }
    this.ms = Math.min(untilMs, broadcasts.at(-1)!.ms)
  }

  /** Tells what was reported in the recording of v2, up to a transfer, of what is bound. */
  playMaps(until = Number.POSITIVE_INFINITY): void {
    for (const { n, routingKey, body, properties } of mapBroadcasts) {
      if (n <= this.mapsTold || n > until) continue
      for (const peer of this.peers) peer.publish('qmf.default.topic', routingKey, body, properties)
    }
    this.mapsTold = until
  }

  /** One heartbeat of v2. */
  beatMaps(of: keyof typeof mapHeartbeats = 'broker'): void {
    const { routingKey, body, properties } = mapHeartbeats[of]
    for (const peer of this.peers) peer.publish('qmf.default.topic', routingKey, body, properties)
  }

  publish(routingKey: string, body: Buffer): void {
    for (const peer of this.peers) peer.publish('qpid.management', routingKey, body)
  }

  /** Every connection breaks. */
  kick(): void {
    for (const { socket } of this.peers) socket.resetAndDestroy()
  }

  async close(): Promise<void> {
    this.kick()
    await new Promise((resolve) => this.#server?.close(resolve))
  }
}

interface Subscription {
  readonly destination: string
  credit: number
  readonly waiting: [routingKey: string, body: Buffer, properties: Buffer | undefined][]
}

export class BrokerPeer {
  readonly socket: Socket
  readonly broker: ScriptedBroker
  /** Heartbeats of the client. */
  heartbeats = 0
  /** Transfers that the client said are done. */
  completed = 0
  readonly #reader = new WireReader()
  readonly #subscriptions = new Map<string, Subscription>()
  readonly #bindings = new Map<string, { readonly queue: string; readonly exchange: string; readonly key: string }>()
  readonly #unwritten: Buffer[] = []
  /** Destinations of transfers that are not completed; the first is the one with the number `#first`. */
  readonly #sent: string[] = []
  #first = 0
  #received = 0

  constructor(socket: Socket, broker: ScriptedBroker) {
    this.socket = socket
    this.broker = broker
    socket.setNoDelay()
    socket.on('error', () => {})
    socket.on('data', (chunk: Uint8Array) => this.#read(chunk))
  }

  boundTo(wanted: string): string[] {
    return [...this.#bindings.values()].filter(({ exchange }) => exchange === wanted).map(({ key }) => key)
  }

  publish(exchange: string, routingKey: string, body: Buffer, properties?: Buffer): void {
    for (const [queue, subscription] of this.#subscriptions) {
      const isBound = [...this.#bindings.values()].some((binding) => {
        const isMatch = exchange.endsWith('direct') ? binding.key === routingKey : matches(binding.key, routingKey)
        return binding.queue === queue && binding.exchange === exchange && isMatch
      })
      if (isBound) subscription.waiting.push([routingKey, body, properties])
      this.#send(subscription)
    }
  }

  write(bytes: Buffer): void {
    const pieces = this.broker.cut(bytes)
    if (pieces.length === 1 && this.#unwritten.length === 0) {
      this.socket.write(bytes)
      return
    }
    if (this.#unwritten.length === 0) setImmediate(() => this.#writeNext())
    for (const piece of pieces) this.#unwritten.push(piece)
  }

  /** With a message that nobody asked for, whatever is bound and however much credit there is. */
  deliver(destination: string, routingKey: string, body: Buffer, properties?: Buffer): void {
    this.#sent.push(destination)
    this.write(transfer(destination, routingKey, body, this.broker.frameBytes, properties))
  }

  /** Only when what waits was written, if it still can be. */
  end(): void {
    if (this.#unwritten.length === 0 || this.socket.destroyed) this.socket.end()
    else setImmediate(() => this.end())
  }

  closeConnection(number: number, text: string): void {
    this.write(control(code.close, 0x0300, u16(number), str8(text)))
  }

  detachSession(): void {
    this.write(control(code.detached, 0x0300, str16('session'), u8(2)))
  }

  /** A command of the client was refused: qpidd ends the session with it. */
  refuse(number: number, text: string): void {
    const fields = [u16(number), u32(0), u8(4), u8(1), u8(0), str16(text)]
    this.write(command(code.exception, 0x3f00, ...fields))
    this.detachSession()
  }

  /** A piece for each turn of the event loop, so that they arrive as they were cut. */
  #writeNext(): void {
    const piece = this.#unwritten.shift()
    if (piece === undefined || this.socket.destroyed) return
    this.socket.write(piece)
    if (this.#unwritten.length > 0) setImmediate(() => this.#writeNext())
  }

  #read(chunk: Uint8Array): void {
    const isGreeted = this.#reader.header !== undefined
    const came = this.#reader.push(chunk)
    let next = came.next()
    if (!isGreeted && this.#reader.header !== undefined && !this.broker.instead('header', this)) {
      this.write(Buffer.concat([HEADER, this.broker.speaksMaps ? MAP_START : START]))
    }
    for (; !next.done; next = came.next()) {
      if (next.value.isControl) this.#take(next.value)
      else this.#command(next.value)
    }
  }

  #take({ code: number, args }: Came): void {
    const { broker } = this
    const says = (stage: Stage, bytes: Buffer): void => {
      if (!broker.instead(stage, this)) this.write(bytes)
    }
    if (number === code.startOk) {
      broker.clients.push(args.sized32())
      const login = [args.str8(), args.sized32().toString().replaceAll('\0', '.')]
      broker.logins.push(login.join(' '))
      const tune = [u16(0xfffe), u16(0xffff), u16(0), u16(broker.heartbeatSeconds)]
      says('tune', control(code.tune, 0x0f00, ...tune))
    } else if (number === code.open) {
      broker.virtualHosts.push(args.str8())
      // An array of no known hosts: its size, their type, how many.
      says('open-ok', control(code.openOk, 0x0100, u32(5), u8(0x95), u32(0)))
    } else if (number === code.attach) {
      const attached = control(code.attached, 0x0100, str16(args.sized16().toString()))
      says('attached', Buffer.concat([attached, control(code.commandPoint, 0x0300, u32(0), u32(0), u32(0))]))
    } else if (number === code.close) {
      this.write(control(code.closeOk, 0))
      this.end()
    } else if (number === code.completed) this.#complete(args)
    else if (number === code.heartbeat) {
      this.heartbeats++
      this.write(control(code.heartbeat, 0))
    }
  }

  /** The window of a subscription moves on with what is done of it. */
  #complete(args: Args): void {
    const ranges = args.sized16()
    // Others are reported again each time; what is done is taken from the front.
    let last = this.#first - 1
    for (let at = 0; at < ranges.length; at += 8) {
      if (ranges.readUInt32BE(at) <= last + 1) last = Math.max(last, ranges.readUInt32BE(at + 4))
    }
    for (; this.#first <= last; this.#first++) {
      this.completed++
      const destination = this.#sent.shift()
      for (const one of this.#subscriptions.values()) if (one.destination === destination) one.credit++
    }
    for (const one of this.#subscriptions.values()) this.#send(one)
    if (args.bit()) this.write(control(code.knownCompleted, 0x0100, u16(0)))
  }

  #command({ code: number, args, header, body }: Came): void {
    const id = this.#received++
    if (number === code.subscribe) {
      const [queue, destination] = [args.str8(), args.str8()]
      this.#subscriptions.set(queue, { destination, credit: 0, waiting: [] })
    } else if (number === code.flow) {
      const [destination, unit, amount] = [args.str8(), args.number(1), args.number(4)]
      for (const one of this.#subscriptions.values()) {
        if (one.destination === destination && unit === 0) one.credit += amount
      }
    } else if (number === code.bind || number === code.unbind) {
      const binding = { queue: args.str8(), exchange: args.str8(), key: args.str8() }
      if (number === code.bind) this.#bindings.set(JSON.stringify(binding), binding)
      else this.#bindings.delete(JSON.stringify(binding))
    }
    if (!this.broker.instead('completed', this)) {
      this.write(control(code.completed, 0x0100, u16(8), u32(0), u32(id)))
      if (id % 50 === 49) this.write(control(code.flush, 0x0400))
    }
    if (number === code.transfer) this.#request(args.str8(), header, body)
  }

  #request(exchange: string, header: Buffer, body: Buffer): void {
    const to = routingKeyOf(header)
    if (exchange.startsWith('qmf.default.')) {
      if (this.broker.speaksMaps && body.length <= 65_536) this.#mapRequest(to, header, body)
      return
    }
    const replyKey = replyKeyOf(header)
    // As qpidd: dropped without a word [QMF 5.7].
    if (exchange !== 'qpid.management' || replyKey === '' || body.length > 65_536) return
    for (const request of requestsIn(body)) {
      if (to !== ('GM'.includes(request.text[0]!) ? 'agent.1.0' : 'broker')) continue
      this.broker.asked.push(request.text)
      if (this.broker.instead('answers', this)) continue
      const bodies = this.broker.answers(answersTo(request, this.broker.ms), request)
      for (const answer of bodies) this.publish('amq.direct', replyKey, answer)
    }
  }

  #mapRequest(to: string, header: Buffer, body: Buffer): void {
    const { broker } = this
    const request = mapRequestOf(to, header, body)
    if (request === undefined) return
    broker.asked.push(request.text)
    if (broker.instead('answers', this)) return
    for (const { exchange, body, properties } of broker.mapAnswers(mapAnswersTo(request), request.text)) {
      this.publish(exchange, request.replyKey, body, properties)
    }
  }

  #send(subscription: Subscription): void {
    while (subscription.credit > 0) {
      const next = subscription.waiting.shift()
      if (next === undefined) return
      subscription.credit--
      this.deliver(subscription.destination, ...next)
    }
  }
}
