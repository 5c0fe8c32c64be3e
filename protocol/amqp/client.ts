/**
 * A connection to an AMQP 0-10 broker with one session, without a socket: bytes are pushed in and written out. Kept to what
 * a console or an agent of QMF needs.
 *
 *   header, header | start, start-ok | tune, tune-ok | open, open-ok | attach, attached | command-point | commands
 */
import { ProtocolError } from '../errors.ts'
import { AcceptMode, AcquireMode, type Command, CreditUnit, FlowMode, UNLIMITED } from './commands.ts'
import type { ContentHeader, Delivery, Outgoing } from './content.ts'
import { type Control, decodeControl, encodeControl } from './controls.ts'
import type { FieldTable } from './field-table.ts'
import { type Assembly, encodeFrames, FrameAssembler, MAX_FRAME_BYTES, MIN_MAX_FRAME_BYTES } from './frames.ts'
import { chooseHeartbeat, Liveness } from './liveness.ts'
import { type Credentials, chooseLogin, type Login } from './login.ts'
import { HeaderReader, PROTOCOL_HEADER } from './protocol-header.ts'
import { closeReason, forPeople } from './reasons.ts'
import { Session } from './session.ts'

export type { Delivery, Outgoing } from './content.ts'

export interface AmqpClientOptions extends Credentials {
  /** '': the default one. */
  readonly virtualHost: string
  /** No two of a user may be called the same at a broker. */
  readonly session: string
  /** A longer body is a ProtocolError. */
  readonly maxBodyBytes: number
  /** Must not call `push` before it returns. The bytes may be kept. */
  readonly write: (bytes: Uint8Array) => void
  readonly events: AmqpEvents
}

export interface AmqpEvents {
  /** Attached: commands may be sent. `heartbeatSeconds` 0: there are none. */
  opened(info: { readonly serverProperties: FieldTable; readonly heartbeatSeconds: number }): void
  delivered(message: Delivery): void
  /** Told once; nothing comes after. `reason` is for people. Not told where `push` throws. */
  closed(reason: string): void
}

/** From `start` to `attached`: what has to come next. */
type State = 'idle' | 'header' | 'start' | 'tune' | 'open-ok' | 'attached' | 'open' | 'closing' | 'ended'

const CONNECTION_CHANNEL = 0
const SESSION_CHANNEL = 1
const CLOSE_NORMAL = 200
/** Messages under way to each subscription that are not completed. */
const WINDOW = 200

export class AmqpClient {
  readonly #options: AmqpClientOptions
  readonly #header = new HeaderReader()
  readonly #assembler: FrameAssembler
  readonly #liveness = new Liveness()
  readonly #session: Session
  #state: State = 'idle'
  #login: Login | undefined
  #serverProperties: FieldTable = new Map()
  #heartbeatSeconds = 0
  #maxFrameBytes = MIN_MAX_FRAME_BYTES

  constructor(options: AmqpClientOptions) {
    this.#options = options
    this.#assembler = new FrameAssembler(options.maxBodyBytes)
    this.#session = new Session({
      name: options.session,
      writeControl: (control) => this.#control(control, SESSION_CHANNEL),
      writeCommand: (method, header, body) =>
        this.#frames({ channel: SESSION_CHANNEL, isControl: false, method, header, body }),
      delivered: (message) => options.events.delivered(message),
      ended: (reason) => this.#end(reason),
    })
  }

  start(): void {
    this.#state = 'header'
    this.#write(PROTOCOL_HEADER)
  }

  /** Takes what the broker sent, cut anywhere. Throws ProtocolError: then the connection has to be ended. */
  push(bytes: Uint8Array): void {
    if (this.#isEnded()) return
    this.#liveness.heard()
    try {
      this.#read(bytes)
    } catch (error) {
      this.#state = 'ended'
      throw error
    }
    if (this.#state === 'open') this.#session.settle()
  }

  /** To be called every second: heartbeats; true: the peer has been silent for too long. `nowMs` is monotonic. */
  tick(nowMs: number): boolean {
    if (this.#state === 'idle' || this.#isEnded()) return false
    if (this.#liveness.isSilent(nowMs)) return true
    if (this.#state !== 'closing' && this.#liveness.isHeartbeatDue(nowMs))
      this.#control({ name: 'connection.heartbeat' })
    return false
  }

  /** Exclusive to this session, and gone with it. */
  declareQueue(queue: string, options: FieldTable = new Map()): void {
    const given = options.size > 0 && { arguments: options }
    this.#command({ name: 'queue.declare', queue, exclusive: true, autoDelete: true, ...given })
  }

  deleteQueue(queue: string): void {
    this.#command({ name: 'queue.delete', queue })
  }

  bind(queue: string, exchange: string, key: string): void {
    this.#command({ name: 'exchange.bind', queue, exchange, key })
  }

  unbind(queue: string, exchange: string, key: string): void {
    this.#command({ name: 'exchange.unbind', queue, exchange, key })
  }

  /** Nothing is to be accepted; bytes are unlimited, messages a window that moves on with what is completed. */
  subscribe(queue: string, destination: string): void {
    const modes = { acceptMode: AcceptMode.NONE, acquireMode: AcquireMode.PRE_ACQUIRED }
    this.#command({ name: 'message.subscribe', queue, destination, ...modes })
    this.#command({ name: 'message.set-flow-mode', destination, mode: FlowMode.WINDOW })
    this.#command({ name: 'message.flow', destination, unit: CreditUnit.BYTE, amount: UNLIMITED })
    this.#command({ name: 'message.flow', destination, unit: CreditUnit.MESSAGE, amount: WINDOW })
  }

  transfer(message: Outgoing, body: Uint8Array): void {
    const { exchange, routingKey, replyTo, contentType } = message
    const header = { delivery: { routingKey }, message: { replyTo, contentType } }
    this.#command({ name: 'message.transfer', destination: exchange }, { header, body })
  }

  /** Calls back when the broker has completed everything sent so far; never, once the connection is over. */
  sync(done: () => void): void {
    if (this.#mayCommand()) this.#session.sync(done)
  }

  /** Orderly: `closed` follows when the broker agrees; `tick` says where it does not. */
  close(): void {
    if (this.#state === 'idle' || this.#state === 'closing' || this.#isEnded()) return
    this.#state = 'closing'
    this.#liveness.await()
    this.#control({ name: 'connection.close', code: CLOSE_NORMAL })
  }

  #read(bytes: Uint8Array): void {
    const taken = this.#header.isComplete ? 0 : this.#header.push(bytes)
    if (!this.#header.isComplete) return
    if (this.#state === 'header') this.#greeted(this.#header.otherVersion)
    this.#assembler.push(bytes.subarray(taken))
    while (!this.#isEnded()) {
      const assembly = this.#assembler.next()
      if (!assembly) return
      const { channel, isControl, method } = assembly
      if (isControl) {
        const control = decodeControl(method)
        if (control.name === 'unknown') continue
        if (channel === CONNECTION_CHANNEL) this.#connectionControlled(control)
        if (channel === SESSION_CHANNEL) this.#sessionControlled(control)
      } else if (channel === SESSION_CHANNEL && this.#state === 'open') {
        this.#session.commanded(assembly)
      }
    }
  }

  #greeted(otherVersion: string | undefined): void {
    if (otherVersion === undefined) this.#state = 'start'
    else this.#end(`the server speaks ${otherVersion}, not AMQP 0-10`)
  }

  #connectionControlled(control: Control): void {
    switch (control.name) {
      case 'connection.start':
        if (this.#expects('start', control)) this.#logIn(control)
        break
      case 'connection.secure':
        if (this.#expects('tune', control)) {
          this.#control({ name: 'connection.secure-ok', response: this.#login?.response })
        }
        break
      case 'connection.tune':
        if (this.#expects('tune', control)) this.#tune(control)
        break
      case 'connection.open-ok':
        if (this.#expects('open-ok', control)) {
          this.#state = 'attached'
          this.#control({ name: 'session.attach', session: this.#options.session }, SESSION_CHANNEL)
        }
        break
      case 'connection.redirect':
        this.#end(
          `the server sends us to another one (${control.host ?? 'unnamed'}), which has to be configured instead`,
        )
        break
      case 'connection.close':
        this.#control({ name: 'connection.close-ok' })
        this.#end(closeReason(control, this.#state === 'tune'))
        break
      case 'connection.close-ok':
        if (this.#expects('closing', control)) this.#end('closed on request')
        break
    }
  }

  #sessionControlled(control: Control): void {
    if (control.name === 'session.attached') {
      if (this.#expects('attached', control)) this.#opened()
    } else if (this.#state === 'open' || this.#state === 'attached') {
      this.#session.controlled(control)
    }
  }

  #logIn({ mechanisms = [], serverProperties }: Extract<Control, { name: 'connection.start' }>): void {
    const login = chooseLogin(this.#options, mechanisms)
    if (typeof login === 'string') {
      this.#end(login)
      return
    }
    this.#login = login
    this.#serverProperties = serverProperties ?? new Map()
    this.#state = 'tune'
    this.#control({ name: 'connection.start-ok', clientProperties: new Map(), ...login, locale: 'en_US' })
  }

  #tune(tune: Extract<Control, { name: 'connection.tune' }>): void {
    const {
      channelMax = 0xffff,
      maxFrameBytes = MAX_FRAME_BYTES,
      heartbeatMinSeconds = 0,
      heartbeatMaxSeconds = 0,
    } = tune
    if (maxFrameBytes < MIN_MAX_FRAME_BYTES) {
      throw new ProtocolError('BAD_NUMBER', `the server takes frames of ${maxFrameBytes} bytes; the least is 4,096`)
    }
    const heartbeatSeconds = chooseHeartbeat(heartbeatMinSeconds, heartbeatMaxSeconds)
    this.#control({ name: 'connection.tune-ok', channelMax, maxFrameBytes, heartbeatSeconds })
    this.#liveness.agree(heartbeatSeconds)
    this.#heartbeatSeconds = heartbeatSeconds
    this.#maxFrameBytes = maxFrameBytes
    this.#state = 'open-ok'
    this.#control({ name: 'connection.open', virtualHost: this.#options.virtualHost })
  }

  #opened(): void {
    this.#state = 'open'
    this.#liveness.settle()
    this.#control({ name: 'session.command-point', id: 0, offset: 0n }, SESSION_CHANNEL)
    const info = { serverProperties: this.#serverProperties, heartbeatSeconds: this.#heartbeatSeconds }
    this.#options.events.opened(info)
  }

  /** False: we are closing, and what still comes is of no interest. */
  #expects(state: State, control: Control): boolean {
    if (this.#state === state) return true
    if (this.#state === 'closing') return false
    throw new ProtocolError(
      'UNKNOWN_MESSAGE',
      `${control.name} comes where ${this.#state} is the state of the connection`,
    )
  }

  #end(reason: string): void {
    if (this.#isEnded()) return
    this.#state = 'ended'
    this.#options.events.closed(forPeople(reason, this.#options.password))
  }

  #isEnded(): boolean {
    return this.#state === 'ended'
  }

  /** What is sent too late is dropped: whoever sends hears of the end, or has. */
  #mayCommand(): boolean {
    if (this.#state === 'open') return true
    if (this.#state === 'closing' || this.#isEnded()) return false
    throw new Error('commands may be sent once the session is attached, which `opened` tells')
  }

  #command(command: Command, content?: { readonly header: ContentHeader; readonly body: Uint8Array }): void {
    if (this.#mayCommand()) this.#session.send(command, content)
  }

  #control(control: Control, channel = CONNECTION_CHANNEL): void {
    this.#frames({ channel, isControl: true, method: encodeControl(control) })
  }

  #frames(assembly: Assembly): void {
    this.#write(encodeFrames(assembly, this.#maxFrameBytes))
  }

  #write(bytes: Uint8Array): void {
    this.#liveness.sent()
    this.#options.write(bytes)
  }
}
