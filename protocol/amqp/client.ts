/**
 * A connection to an AMQP 0-10 broker with one session, without a socket: the caller pushes bytes in and writes bytes
 * out. It covers what a console or an agent of QMF needs.
 *
 *   header, header | start, start-ok | tune, tune-ok | open, open-ok | attach, attached | command-point | commands
 */
import { ProtocolError } from '../errors.ts'
import { encodeUtf8 } from './bytes.ts'
import type { FieldTable } from './field-table.ts'
import {
  type Assembly,
  encodeFrames,
  FrameAssembler,
  HeaderReader,
  MIN_MAX_FRAME_BYTES,
  PROTOCOL_HEADER,
} from './frames.ts'
import {
  AcceptMode,
  AcquireMode,
  type AmqpCommand,
  type AmqpControl,
  CreditUnit,
  decodeControl,
  encodeControl,
  FlowMode,
  type MessageHeader,
  type ReplyTo,
  UNLIMITED,
} from './methods.ts'
import { type AmqpDelivery, type AmqpRefusal, AmqpSession } from './session.ts'

export interface AmqpClientOptions {
  /** For SASL PLAIN; undefined for the other mechanisms. */
  readonly user?: string
  readonly password?: string
  /** Without a user: SASL EXTERNAL, because the connection has a client certificate; otherwise ANONYMOUS. */
  readonly hasCertificate?: boolean
  /** What the broker shows about this client. */
  readonly properties?: FieldTable
  /** Empty for the broker's default. */
  readonly virtualHost: string
  /** Unique among the sessions of a user at the broker. */
  readonly session: string
  /** A longer body ends the connection. */
  readonly maxBodyBytes: number
  /** Must not call `push` before it returns. May keep the bytes. */
  readonly write: (bytes: Uint8Array) => void
  readonly events: AmqpEvents
}

export interface AmqpEvents {
  /** The session is attached and commands may be sent. `heartbeatSeconds` is 0 without heartbeats. */
  opened(info: { readonly serverProperties: FieldTable; readonly heartbeatSeconds: number }): void
  delivered(delivery: AmqpDelivery): void
  /**
   * Called once, last, with a reason for people: the peer has closed, refused a command, broken the protocol, or been
   * silent for too long.
   */
  closed(reason: string, refusal?: AmqpRefusal): void
}

/** A message to send. */
export interface AmqpTransfer {
  readonly exchange: string
  readonly routingKey: string
  readonly correlationId?: string
  readonly replyTo?: ReplyTo
  readonly contentType?: string
  readonly appId?: string
  readonly headers?: FieldTable
}

/** From `start` to `attached`, the state is named after the control that has to come next. */
type State = 'idle' | 'header' | 'start' | 'tune' | 'open-ok' | 'attached' | 'open' | 'closing' | 'ended'

const CONNECTION_CHANNEL = 0
const SESSION_CHANNEL = 1
const CLOSE_NORMAL = 200
/** The limit for messages that are sent to a subscription and not completed. */
const WINDOW = 200
const MAX_REASON_CHARACTERS = 500
/** The longest silence of the peer without heartbeats, and before they are agreed on. */
const SILENCE_MS = 30_000
/** Two ticks that are further apart than this say that we did not run in between, and not that the peer was silent. */
const LATE_TICK_MS = 3_000
/** The interval we ask for if the server leaves the choice. */
const HEARTBEAT_SECONDS = 10

export class AmqpClient {
  readonly #options: AmqpClientOptions
  readonly #header = new HeaderReader()
  readonly #assembler: FrameAssembler
  readonly #liveness = new Liveness()
  readonly #session: AmqpSession
  #state: State = 'idle'
  /** The SASL response, which holds the password. */
  #saslResponse: Uint8Array | undefined
  #serverProperties: FieldTable = new Map()
  #heartbeatSeconds = 0
  #maxFrameBytes = MIN_MAX_FRAME_BYTES

  constructor(options: AmqpClientOptions) {
    this.#options = options
    this.#assembler = new FrameAssembler(options.maxBodyBytes)
    this.#session = new AmqpSession({
      name: options.session,
      writeControl: (control) => this.#sendControl(control, SESSION_CHANNEL),
      writeCommand: (method, header, body) =>
        this.#sendFrames({ channel: SESSION_CHANNEL, isControl: false, method, header, body }),
      delivered: (delivery) => options.events.delivered(delivery),
      ended: (reason, refusal) => this.#end(reason, refusal),
    })
  }

  start(): void {
    this.#state = 'header'
    this.#write(PROTOCOL_HEADER)
  }

  /** Takes bytes of the broker, cut anywhere. Never throws because of them. */
  push(bytes: Uint8Array): void {
    if (this.#isEnded()) return
    this.#liveness.received()
    try {
      this.#receive(bytes)
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      this.#end(error.message)
    }
    if (this.#state === 'open') this.#session.reportCompletions()
  }

  /** Call it every second: sends heartbeats, and ends if the peer has been silent for too long. `nowMs` is monotonic. */
  tick(nowMs: number): void {
    if (this.#state === 'idle' || this.#isEnded()) return
    if (this.#liveness.isSilent(nowMs)) this.#end('the broker has been silent for too long')
    else if (this.#state !== 'closing' && this.#liveness.isHeartbeatDue(nowMs)) {
      this.#sendControl({ name: 'connection.heartbeat' })
    }
  }

  /** Declares a queue that is exclusive to this session and deleted with it. */
  declareQueue(queue: string, options: FieldTable = new Map()): void {
    const given = options.size > 0 && { arguments: options }
    this.#sendCommand({ name: 'queue.declare', queue, exclusive: true, autoDelete: true, ...given })
  }

  bind(queue: string, exchange: string, key: string): void {
    this.#sendCommand({ name: 'exchange.bind', queue, exchange, key })
  }

  unbind(queue: string, exchange: string, key: string): void {
    this.#sendCommand({ name: 'exchange.unbind', queue, exchange, key })
  }

  /** Subscribes without acceptance, with unlimited bytes and a window of messages that moves on with completions. */
  subscribe(queue: string, destination: string): void {
    const modes = { acceptMode: AcceptMode.NONE, acquireMode: AcquireMode.PRE_ACQUIRED }
    this.#sendCommand({ name: 'message.subscribe', queue, destination, ...modes })
    this.#sendCommand({ name: 'message.set-flow-mode', destination, mode: FlowMode.WINDOW })
    this.#sendCommand({ name: 'message.flow', destination, unit: CreditUnit.BYTE, amount: UNLIMITED })
    this.#sendCommand({ name: 'message.flow', destination, unit: CreditUnit.MESSAGE, amount: WINDOW })
  }

  transfer({ exchange, routingKey, ...message }: AmqpTransfer, body: Uint8Array): void {
    const header = { delivery: { routingKey }, message }
    this.#sendCommand({ name: 'message.transfer', destination: exchange }, { header, body })
  }

  /** Calls back when the broker has completed everything sent so far; never after the end of the connection. */
  sync(done: () => void): void {
    if (this.#maySend()) this.#session.sync(done)
  }

  /** Closes in order: `closed` follows when the broker agrees or, if it does not, when it was silent for too long. */
  close(): void {
    if (this.#state === 'idle' || this.#state === 'closing' || this.#isEnded()) return
    this.#state = 'closing'
    this.#liveness.expectAnswer()
    this.#sendControl({ name: 'connection.close', code: CLOSE_NORMAL })
  }

  #receive(bytes: Uint8Array): void {
    const headerBytes = this.#header.isComplete ? 0 : this.#header.push(bytes)
    if (!this.#header.isComplete) return
    if (this.#state === 'header') {
      this.#state = 'start'
      const { otherVersion } = this.#header
      if (otherVersion !== undefined) this.#end(`the server speaks ${otherVersion}, not AMQP 0-10`)
    }
    this.#assembler.push(bytes.subarray(headerBytes))
    while (!this.#isEnded()) {
      const assembly = this.#assembler.next()
      if (!assembly) return
      const { channel, isControl, method } = assembly
      if (isControl) {
        const control = decodeControl(method)
        if (control.name === 'unknown') continue
        if (channel === CONNECTION_CHANNEL) this.#receiveConnectionControl(control)
        if (channel === SESSION_CHANNEL) this.#receiveSessionControl(control)
      } else if (channel === SESSION_CHANNEL && this.#state === 'open') {
        this.#session.receiveCommand(assembly)
      }
    }
  }

  #receiveConnectionControl(control: AmqpControl): void {
    switch (control.name) {
      case 'connection.start':
        if (this.#expects('start', control)) this.#logIn(control)
        break
      case 'connection.secure':
        if (this.#expects('tune', control)) {
          this.#sendControl({ name: 'connection.secure-ok', response: this.#saslResponse })
        }
        break
      case 'connection.tune':
        if (this.#expects('tune', control)) this.#tune(control)
        break
      case 'connection.open-ok':
        if (this.#expects('open-ok', control)) {
          this.#state = 'attached'
          this.#sendControl({ name: 'session.attach', session: this.#options.session }, SESSION_CHANNEL)
        }
        break
      case 'connection.redirect':
        this.#end(`the server redirects to ${control.host ?? 'an unnamed server'}: configure that one instead`)
        break
      case 'connection.close': {
        const what = this.#state === 'tune' ? 'the server refused the login' : 'the server closed the connection'
        const reason = `${what} (${control.code ?? 'no code'})`
        this.#sendControl({ name: 'connection.close-ok' })
        this.#end(control.text ? `${reason}: ${control.text}` : reason)
        break
      }
      case 'connection.close-ok':
        if (this.#expects('closing', control)) this.#end('closed on request')
        break
    }
  }

  #receiveSessionControl(control: AmqpControl): void {
    if (control.name === 'session.attached') {
      if (this.#expects('attached', control)) this.#opened()
    } else if (this.#state === 'open' || this.#state === 'attached') {
      this.#session.receiveControl(control)
    }
  }

  /**
   * Logs in by ANONYMOUS, PLAIN (RFC 4616) or EXTERNAL (RFC 4422, appendix A; the server derives the user from the
   * certificate), in one step. Never tries another mechanism than the configured one.
   */
  #logIn({ mechanisms = [], serverProperties }: Extract<AmqpControl, { name: 'connection.start' }>): void {
    const { user, password = '', hasCertificate = false, properties = new Map() } = this.#options
    const mechanism = user !== undefined ? 'PLAIN' : hasCertificate ? 'EXTERNAL' : 'ANONYMOUS'
    if (!mechanisms.includes(mechanism)) {
      const offered = mechanisms.length === 0 ? 'no way to log in' : mechanisms.join(', ')
      this.#end(`the server offers ${offered}, not ${mechanism}: ${loginHints[mechanism]}`)
      return
    }
    const response = encodeUtf8(user === undefined ? '' : `\0${user}\0${password}`)
    this.#saslResponse = response
    this.#serverProperties = serverProperties ?? new Map()
    this.#state = 'tune'
    this.#sendControl({
      name: 'connection.start-ok',
      clientProperties: properties,
      mechanism,
      response,
      locale: 'en_US',
    })
  }

  #tune(tune: Extract<AmqpControl, { name: 'connection.tune' }>): void {
    const { channelMax = 0xffff, maxFrameBytes = 0xffff, heartbeatMinSeconds = 0, heartbeatMaxSeconds = 0 } = tune
    if (maxFrameBytes < MIN_MAX_FRAME_BYTES) {
      throw new ProtocolError('BAD_NUMBER', `the server takes frames of ${maxFrameBytes} bytes; the least is 4,096`)
    }
    const heartbeatSeconds = Math.min(Math.max(HEARTBEAT_SECONDS, heartbeatMinSeconds), heartbeatMaxSeconds)
    this.#sendControl({ name: 'connection.tune-ok', channelMax, maxFrameBytes, heartbeatSeconds })
    this.#liveness.agree(heartbeatSeconds)
    this.#heartbeatSeconds = heartbeatSeconds
    this.#maxFrameBytes = maxFrameBytes
    this.#state = 'open-ok'
    this.#sendControl({ name: 'connection.open', virtualHost: this.#options.virtualHost })
  }

  #opened(): void {
    this.#state = 'open'
    this.#liveness.allowSilence()
    this.#sendControl({ name: 'session.command-point', id: 0, offset: 0n }, SESSION_CHANNEL)
    const info = { serverProperties: this.#serverProperties, heartbeatSeconds: this.#heartbeatSeconds }
    this.#options.events.opened(info)
  }

  /** Returns false while closing, when nothing else matters any more. */
  #expects(state: State, control: AmqpControl): boolean {
    if (this.#state === state) return true
    if (this.#state === 'closing') return false
    throw new ProtocolError(
      'UNKNOWN_MESSAGE',
      `${control.name} arrived while the connection was in state ${this.#state}`,
    )
  }

  #end(reason: string, refusal?: AmqpRefusal): void {
    if (this.#isEnded()) return
    this.#state = 'ended'
    this.#options.events.closed(redactReason(reason, this.#options.password), refusal)
  }

  #isEnded(): boolean {
    return this.#state === 'ended'
  }

  /** Drops what is sent too late: the sender is informed of the end, or was already. */
  #maySend(): boolean {
    if (this.#state === 'open') return true
    if (this.#state === 'closing' || this.#isEnded()) return false
    throw new Error('commands may be sent only after `opened` was called')
  }

  #sendCommand(command: AmqpCommand, content?: { readonly header: MessageHeader; readonly body: Uint8Array }): void {
    if (this.#maySend()) this.#session.send(command, content)
  }

  #sendControl(control: AmqpControl, channel = CONNECTION_CHANNEL): void {
    this.#sendFrames({ channel, isControl: true, method: encodeControl(control) })
  }

  #sendFrames(assembly: Assembly): void {
    this.#write(encodeFrames(assembly, this.#maxFrameBytes))
  }

  #write(bytes: Uint8Array): void {
    this.#liveness.sent()
    this.#options.write(bytes)
  }
}

/** What to do if the server does not offer a mechanism. */
const loginHints = {
  ANONYMOUS: 'configure a user and a password',
  PLAIN: 'the configured user cannot log in there',
  EXTERNAL: 'it does not accept the client certificate as a login; configure a user and a password',
} as const

/**
 * Decides when a heartbeat is due and when a peer is gone. Only `tick` looks at the time, and what happened between two
 * ticks counts as having happened at the later one. After a late tick, bytes of the peer may wait to be read: only the
 * next tick concludes anything from silence. So bytes that wait cost nobody the connection.
 */
class Liveness {
  /** How long the peer may be silent; undefined if for ever. */
  #silenceMs: number | undefined = SILENCE_MS
  #heartbeatMs: number | undefined
  #receivedMs: number | undefined
  #sentMs: number | undefined
  #tickedMs: number | undefined

  /** Applies from now on. A peer is gone after two missing heartbeats. */
  agree(heartbeatSeconds: number): void {
    this.#heartbeatMs = heartbeatSeconds > 0 ? heartbeatSeconds * 1000 : undefined
  }

  /** From now on the peer has to send nothing but heartbeats. */
  allowSilence(): void {
    this.#silenceMs = this.#heartbeatMs && 2 * this.#heartbeatMs
  }

  /** From now on the peer has to answer, whatever was agreed on. */
  expectAnswer(): void {
    this.#silenceMs = SILENCE_MS
    this.#receivedMs = undefined
  }

  received(): void {
    this.#receivedMs = undefined
  }

  sent(): void {
    this.#sentMs = undefined
  }

  isSilent(nowMs: number): boolean {
    const isLate = nowMs - (this.#tickedMs ?? nowMs) > LATE_TICK_MS
    this.#tickedMs = nowMs
    this.#receivedMs ??= nowMs
    return !isLate && this.#silenceMs !== undefined && nowMs - this.#receivedMs > this.#silenceMs
  }

  /** True after half of the interval: the peer counts from the last bytes it received, and ticks are a second apart. */
  isHeartbeatDue(nowMs: number): boolean {
    this.#sentMs ??= nowMs
    return this.#heartbeatMs !== undefined && nowMs - this.#sentMs >= this.#heartbeatMs / 2
  }
}

/** Shortens the text of a peer for people, and hides the password if the peer repeats it. */
export function redactReason(reason: string, password = ''): string {
  const shown = password === '' ? reason : reason.replaceAll(password, '***')
  return shown.slice(0, MAX_REASON_CHARACTERS)
}
