/**
 * One connection to a producer: it sends commands, reads messages, and matches responses to commands by seq [MON 2, 3]. What
 * a response changes is changed while it is read, in `onOk`: values that it caused may follow it directly, long before any
 * promise settles.
 */
import { Framer, MAX_FRAME_BYTES, MAX_FRAME_BYTES_BEFORE_AUTH } from '../protocol/bytes/framer.ts'
import { XdrReader } from '../protocol/bytes/reader.ts'
import { XdrWriter } from '../protocol/bytes/writer.ts'
import { ProtocolError } from '../protocol/errors.ts'
import type { Capabilities } from '../protocol/monitor/capabilities.ts'
import {
  type CommandArguments,
  type CommandDeclaration,
  type CommandName,
  commands,
  writeCommand,
} from '../protocol/monitor/commands.ts'
import { MAX_ID, NoticeCode } from '../protocol/monitor/constants.ts'
import type { LabelledReader } from '../protocol/monitor/labelled.ts'
import {
  type Gap,
  HEADER_BYTES,
  type Message,
  type Notice,
  type Response,
  readMessage,
  type ValueMessage,
} from '../protocol/monitor/message.ts'
import { StatusCode } from '../protocol/monitor/status.ts'
import type { ClientClock, ClientTimer } from './clock.ts'
import { ConnectionError, type ConnectionErrorCode, codeOfNotice, StatusError } from './errors.ts'
import { FlowControl } from './flow-control.ts'
import type { Transport } from './transport.ts'

/** Receives what the producer sends on a connection. */
export interface ConnectionListener {
  message(message: ValueMessage | Gap): void
  notice(notice: Notice): void
  /** Capabilities have come, also for the first time. */
  capabilities?(caps: Capabilities): void
  /** Called once. `isOurs`: the connection was closed by `close` without an error. */
  closed(connection: ClientConnection, reason: ConnectionError, isOurs: boolean): void
}

/** Takes VALUE messages as they came, for a reader that passes them on. */
export interface FrameTaker {
  /** The payload, from `start` to `end`, is valid during the call. Returns false for a message that is to be decoded as usual. */
  value(bytes: Uint8Array, start: number, end: number, view: DataView): boolean
}

export interface ConnectionOptions {
  /** Set if the producer connects to us and may begin without a login, because our certificate is the proof [MON 14]. */
  readonly isReceiver?: boolean
  readonly clock: ClientClock
  /** The other end and the user, as errors name them: "tcp://127.0.0.1:7650 as alice". */
  readonly peer: string
  /** How long a response may take. */
  readonly deadlineMs: number
  readonly listener: ConnectionListener
  readonly frames?: FrameTaker | undefined
  /** Reads what comes, faster where values of the same series come again and again. The library for browsers has none, to be small. */
  readonly reader?: LabelledReader | undefined
}

/** The answer to AUTH: the channel, or the data with which the exchange continues. */
export type AuthReply = { readonly channel: number } | { readonly data: Uint8Array }

interface PendingCommand {
  response(response: Response): void
  reject(error: Error): void
}

const NOTHING = () => {}

/** Commands that may hold a secret after a compressing layer was added: AUTH is over by then. */
const SECRETIVE: ReadonlySet<CommandName> = new Set(['EXECUTE', 'DEF_CHANNEL'])

export class ClientConnection {
  readonly #transport: Transport
  readonly #options: ConnectionOptions
  readonly #flow: FlowControl
  readonly #reader: XdrReader
  readonly #writer = new XdrWriter()
  /** Commands that wait for their response, by seq. All have the same deadline, so the first is always the first to expire. */
  readonly #pending = new Map<number, { readonly command: PendingCommand; readonly dueMs: number }>()
  /** The seqs of expired commands. A response to one of these may still come. */
  readonly #expired = new Set<number>()
  #deadline: ClientTimer | undefined
  #seq = 0
  #framer = new Framer(MAX_FRAME_BYTES_BEFORE_AUTH)
  #capabilities: Capabilities | undefined
  #ready!: Promise<Capabilities>
  #waiting!: { resolve(capabilities: Capabilities): void; reject(error: Error): void }
  #challenge: { resolve(reply: AuthReply): void; reject(error: Error): void } | undefined
  #isAdmitted = false
  #isDeflated = false
  #lastNotice: Notice | undefined
  #ended: ConnectionError | undefined

  constructor(transport: Transport, options: ConnectionOptions) {
    this.#transport = transport
    this.#options = options
    this.#reader = options.reader ?? new XdrReader()
    this.#expectCapabilities()
    this.#flow = new FlowControl({
      clock: options.clock,
      transport,
      isResponseDue: () => this.#pending.size > 0,
      probe: () => this.#write('NOP', {}, { response: NOTHING, reject: NOTHING }),
      dead: (silenceMs) => this.#fail('SILENT', `has not answered for ${silenceMs / 1000} seconds`),
    })
    transport.open({
      data: (bytes) => this.#data(bytes),
      closed: (cause) => this.#closed(cause),
    })
  }

  /** Settles with the first PRODUCER_CAPS after the beginning, after the login, or under TLS, whichever came last. */
  get ready(): Promise<Capabilities> {
    return this.#ready
  }

  /** The latest capabilities; undefined until the first have arrived. */
  get capabilities(): Capabilities | undefined {
    return this.#capabilities
  }

  /** Why the connection has ended; undefined if it has not. */
  get ended(): ConnectionError | undefined {
    return this.#ended
  }

  get peer(): string {
    return this.#options.peer
  }

  /** Sends a command and settles with the result. Rejects with StatusError or ConnectionError. */
  request<N extends CommandName>(
    name: N,
    values: CommandArguments<N>,
    onOk: (result: number) => void = NOTHING,
  ): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#write(name, values, {
        reject,
        response: ({ status, result, detail }) => {
          if (status !== StatusCode.OK) return reject(new StatusError(name, status, detail))
          onOk(result)
          resolve(result)
        },
      })
    })
  }

  /**
   * One step of an AUTH exchange. `isLast`: the producer has proven what it has to, so OK admits us; before that nothing
   * that it sends is accepted as values. Rejects as `request` does.
   */
  authenticate(method: string, data: Uint8Array, isLast: boolean): Promise<AuthReply> {
    return new Promise((resolve, reject) => {
      const response = ({ status, result, detail }: Response) => {
        if (status === StatusCode.AUTH_NEEDED) this.#challenge = { resolve, reject }
        else if (status === StatusCode.OK) {
          this.#admitted(isLast)
          this.#expectCapabilities()
          resolve({ channel: result })
        } else reject(new StatusError('AUTH', status, detail))
      }
      this.#write('AUTH', { method, data }, { reject, response })
    })
  }

  /** To be called while a response is read: takes away the bytes after it. What arrives later is read afresh. */
  takeRemainder(): Uint8Array {
    const { bytes, end, pending } = this.#framer
    this.#framer = new Framer(this.#framer.maxFrameBytes)
    return bytes.slice(end, end + pending)
  }

  /** Capabilities in the clear may come from somebody in between [MON 12], so the producer has to repeat them. */
  forgetCapabilities(): void {
    this.#capabilities = undefined
    this.#expectCapabilities()
  }

  /** From now on each command that may hold a secret is sent apart from others. */
  separateSecrets(): void {
    this.#isDeflated = true
  }

  /** See FlowControl. */
  hold(isHeld: boolean, isBounded: boolean): void {
    this.#flow.hold(isHeld, isBounded)
  }

  /** How long the producer may be silent from now on; after half of it a NOP asks whether it is there. */
  allowSilence(silenceMs: number): void {
    this.#flow.allowSilence(silenceMs)
  }

  /** Sends what was written and closes. Everything that waits is rejected with the error or, without one, as closed from here. */
  close(error?: ConnectionError): void {
    if (this.#ended) return
    this.#flush()
    const ended = error ?? this.#error('CLOSED', 'is no longer connected: the connection was closed from this side')
    this.#ended = ended
    this.#flow.end()
    this.#transport.close()
    this.#waiting.reject(ended)
    this.#challenge?.reject(ended)
    this.#deadline?.cancel()
    const pending = [...this.#pending.values()]
    this.#pending.clear()
    for (const { command } of pending) command.reject(ended)
    this.#options.listener.closed(this, ended, error === undefined)
  }

  #write<N extends CommandName>(name: N, values: CommandArguments<N>, command: PendingCommand): void {
    if (this.#ended) {
      command.reject(this.#ended)
      return
    }
    const isSecret = this.#isDeflated && SECRETIVE.has(name)
    if (isSecret) this.#flush()
    const seq = this.#nextSeq()
    const start = this.#writer.length
    this.#writer.whole((writer) => writeCommand(writer, commands[name] as CommandDeclaration, seq, values))
    const bytes = this.#writer.length - start - 4
    const limit = this.capabilities?.maxFrameBytes || Number.POSITIVE_INFINITY
    if (bytes > limit) {
      this.#writer.length = start
      command.reject(new RangeError(`${name} would take ${bytes} bytes; the producer accepts at most ${limit}`))
      return
    }
    const { clock, deadlineMs } = this.#options
    this.#pending.set(seq, { command, dueMs: clock.monotonicMs() + deadlineMs })
    this.#deadline ??= clock.setTimeout(() => this.#expire(), deadlineMs)
    this.#flow.update()
    if (isSecret) this.#flush(true)
    // All commands of one turn are sent together.
    else if (start === 0) queueMicrotask(() => this.#flush())
  }

  /** A seq that has no response to come any more. */
  #nextSeq(): number {
    do this.#seq = (this.#seq + 1) >>> 0
    while (this.#pending.has(this.#seq) || this.#expired.has(this.#seq))
    return this.#seq
  }

  #expire(): void {
    const { clock, deadlineMs } = this.#options
    this.#deadline = undefined
    const now = clock.monotonicMs()
    for (const [seq, { command, dueMs }] of this.#pending) {
      if (dueMs > now) {
        this.#deadline = clock.setTimeout(() => this.#expire(), dueMs - now)
        return
      }
      this.#pending.delete(seq)
      this.#expired.add(seq)
      command.reject(this.#error('TIMEOUT', `has not answered a command for ${deadlineMs / 1000} seconds`))
    }
  }

  #flush(isSecret = false): void {
    if (this.#ended || this.#writer.length === 0) return
    this.#transport.send(this.#writer.copy(), isSecret)
    this.#writer.clear()
  }

  #data(chunk: Uint8Array): void {
    if (this.#ended) return
    this.#flow.received(chunk.length)
    const framer = this.#framer
    try {
      framer.push(chunk)
      while (!this.#ended && framer === this.#framer && framer.next()) {
        const { bytes, start, end, view } = framer
        if (this.#isTaken(bytes, start, end, view)) continue
        this.#message(readMessage(this.#reader.reset(bytes, start, end, view)))
      }
      framer.settle()
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      const hint = this.capabilities ? '' : '. Is it a Monitoring Protocol producer?'
      this.#fail('PROTOCOL', `sent a message that violates the protocol: ${error.message}${hint}`, { cause: error })
    }
  }

  /** Whether it is a value that is taken as it is. */
  #isTaken(bytes: Uint8Array, start: number, end: number, view: DataView): boolean {
    const { frames } = this.#options
    if (frames === undefined || !this.#isAdmitted || end - start < HEADER_BYTES) return false
    const id = view.getUint32(start)
    return id > 0 && id <= MAX_ID && frames.value(bytes, start, end, view)
  }

  #message(message: Message): void {
    const { kind } = message
    if (!this.capabilities && kind !== 'caps') {
      this.#fail('PROTOCOL', `began with ${kind} instead of its capabilities`)
      return
    }
    // An unproven peer could exhaust our memory with them, or make us believe false values.
    if (!this.#isAdmitted && (kind === 'value' || kind === 'gap')) {
      this.#fail('PROTOCOL', 'sent values before the login')
      return
    }
    switch (kind) {
      case 'response':
        this.#response(message)
        break
      case 'caps':
        this.#capabilities = message.caps
        if (this.#options.isReceiver === true && message.caps.extension.includes('dialled')) this.#admitted(true)
        this.#waiting.resolve(message.caps)
        this.#options.listener.capabilities?.(message.caps)
        break
      case 'auth':
        this.#continueLogin(message.data)
        break
      case 'notice':
        if (message.code !== NoticeCode.WINDOW_FULL) this.#lastNotice = message
        this.#options.listener.notice(message)
        break
      default:
        this.#options.listener.message(message)
    }
  }

  #response(response: Response): void {
    const { seq } = response
    const pending = this.#pending.get(seq)
    if (pending) {
      this.#pending.delete(seq)
      pending.command.response(response)
    } else if (!this.#expired.delete(seq)) {
      this.#fail('PROTOCOL', `answered a command that was never sent (seq ${seq})`)
    }
    this.#flow.update()
  }

  #continueLogin(data: Uint8Array): void {
    const challenge = this.#challenge
    this.#challenge = undefined
    if (challenge) challenge.resolve({ data })
    else this.#fail('PROTOCOL', 'sent AUTH without being asked for it')
  }

  #admitted(isAdmitted: boolean): void {
    this.#isAdmitted = isAdmitted
    this.#framer.maxFrameBytes = MAX_FRAME_BYTES
  }

  /** `ready` then waits for the next capabilities; the latest remain valid until those come. */
  #expectCapabilities(): void {
    this.#ready = new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject }
    })
    // Nobody may be waiting when the connection ends.
    this.#ready.catch(NOTHING)
  }

  #closed(cause: Error | undefined): void {
    const why = this.#lastNotice?.detail || cause?.message
    const what = why ? `closed the connection: ${why}` : 'closed the connection'
    // A layer could not decode its input.
    if (cause instanceof ConnectionError) this.#fail(cause.code, cause.message, { cause })
    else this.#fail(codeOfNotice(this.#lastNotice?.code ?? 0), what, { cause })
  }

  #fail(code: ConnectionErrorCode, what: string, options?: ErrorOptions): void {
    this.close(this.#error(code, what, options))
  }

  #error(code: ConnectionErrorCode, what: string, options?: ErrorOptions): ConnectionError {
    return new ConnectionError(code, `${this.#options.peer}: the producer ${what}`, options)
  }
}
