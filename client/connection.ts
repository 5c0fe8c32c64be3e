/**
 * One connection to a producer: commands out, messages in, responses matched by seq [MON 2, 3]. What a response changes is
 * done while it is read, in `onOk`: the values it caused may stand right behind it, long before any promise settles.
 */
import { Framer, MAX_FRAME_BYTES, MAX_FRAME_BYTES_BEFORE_AUTH } from '../protocol/bytes/framer.ts'
import { XdrReader } from '../protocol/bytes/reader.ts'
import { XdrWriter } from '../protocol/bytes/writer.ts'
import { ProtocolError } from '../protocol/errors.ts'
import type { Capabilities } from '../protocol/monitor/capabilities.ts'
import { type Command, writeCommand } from '../protocol/monitor/command.ts'
import { type CommandArguments, type CommandName, commands } from '../protocol/monitor/commands/index.ts'
import { NoticeCode } from '../protocol/monitor/constants.ts'
import {
  type Gap,
  type Message,
  type Notice,
  type Response,
  readMessage,
  type ValueMessage,
} from '../protocol/monitor/message.ts'
import { StatusCode } from '../protocol/monitor/status-code.ts'
import type { ClientClock } from './clock.ts'
import { ConnectionError, type ConnectionErrorCode, meaningOf, StatusError } from './errors.ts'
import { Offer } from './offer.ts'
import { Pending, type Waiting } from './pending.ts'
import { Reading } from './reading.ts'
import type { Transport } from './transport.ts'

export interface ConnectionOptions {
  readonly clock: ClientClock
  /** What errors call the other end, with the user: "tcp://127.0.0.1:7650 as alice". */
  readonly peer: string
  /** So long a response may take. */
  readonly deadlineMs: number
  readonly value: (message: ValueMessage) => void
  readonly gap: (gap: Gap) => void
  readonly notice: (notice: Notice) => void
  /** Once. `isOurs`: by `close` without an error. */
  readonly closed: (reason: ConnectionError, isOurs: boolean) => void
}

/** What AUTH is answered with: the channel, or the data of the AUTH message that goes on with the exchange. */
export type AuthStep = { readonly channel: number } | { readonly data: Uint8Array }

const NOTHING = () => {}

/** What may hold a secret when there is a layer that compresses: AUTH is over by then. */
const SECRETIVE: ReadonlySet<CommandName> = new Set(['EXECUTE', 'DEF_CHANNEL'])

export class Connection {
  readonly #transport: Transport
  readonly #options: ConnectionOptions
  readonly #reading: Reading
  readonly #reader = new XdrReader()
  readonly #writer = new XdrWriter()
  readonly #pending: Pending
  readonly #offer = new Offer()
  #framer = new Framer(MAX_FRAME_BYTES_BEFORE_AUTH)
  #challenge: { resolve(step: AuthStep): void; reject(error: Error): void } | undefined
  #isAdmitted = false
  #isDeflated = false
  #lastWords: Notice | undefined
  #ended: ConnectionError | undefined

  constructor(transport: Transport, options: ConnectionOptions) {
    this.#transport = transport
    this.#options = options
    const { clock, deadlineMs } = options
    this.#pending = new Pending({
      clock,
      deadlineMs,
      late: () => this.#error('TIMEOUT', `has not answered a command for ${deadlineMs / 1000} seconds`),
    })
    this.#reading = new Reading({
      clock,
      transport,
      isOwed: () => this.#pending.size > 0,
      probe: () => this.#write('NOP', {}, { response: NOTHING, reject: NOTHING }),
      dead: () => this.#fail('SILENT', 'has not answered for 30 seconds'),
    })
    transport.open({
      data: (bytes) => this.#data(bytes),
      closed: (cause) => this.#closed(cause),
    })
  }

  /** Settles with the PRODUCER_CAPS that stand first here: at the beginning, behind the login, under TLS. */
  get ready(): Promise<Capabilities> {
    return this.#offer.next
  }

  /** The latest. Undefined until the first have come. */
  get capabilities(): Capabilities | undefined {
    return this.#offer.latest
  }

  /** Why it has ended; undefined while it has not. */
  get ended(): ConnectionError | undefined {
    return this.#ended
  }

  get peer(): string {
    return this.#options.peer
  }

  /** Sends a command; settles with the result. Rejects with StatusError or ConnectionError. */
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
   * One step of an AUTH exchange. `isLast`: the producer has proven what it has to, so that OK admits us; before that
   * nothing that it sends is taken for values. Rejects as `request` does.
   */
  authenticate(method: string, data: Uint8Array, isLast: boolean): Promise<AuthStep> {
    return new Promise((resolve, reject) => {
      this.#write(
        'AUTH',
        { method, data },
        {
          reject,
          response: ({ status, result, detail }) => {
            if (status === StatusCode.AUTH_NEEDED) this.#challenge = { resolve, reject }
            else if (status === StatusCode.OK) {
              this.#isAdmitted = isLast
              this.#framer.maxFrameBytes = MAX_FRAME_BYTES
              this.#offer.expect()
              resolve({ channel: result })
            } else reject(new StatusError('AUTH', status, detail))
          },
        },
      )
    })
  }

  /** To be called while a response is read: takes away what stands behind it, and reads what comes later afresh. */
  cut(): Uint8Array {
    const { bytes, end, pending } = this.#framer
    this.#framer = new Framer(this.#framer.maxFrameBytes)
    return bytes.slice(end, end + pending)
  }

  /** What was offered in the clear may have been said by somebody else [MON 12]: it is to be said again. */
  forget(): void {
    this.#offer.forget()
  }

  /** From now on commands that may hold a secret are sent by themselves. */
  keepSecretsApart(): void {
    this.#isDeflated = true
  }

  /** See Reading. */
  hold(isHeld: boolean, sips: boolean): void {
    this.#reading.hold(isHeld, sips)
  }

  /** Sends what was written and closes. Without an error, everything that is waited for is told that it was us. */
  close(error?: ConnectionError): void {
    if (this.#ended) return
    this.#flush()
    this.#ended = error ?? this.#error('CLOSED', 'is no longer connected: it was closed from this side')
    this.#reading.end()
    this.#transport.close()
    this.#offer.reject(this.#ended)
    this.#challenge?.reject(this.#ended)
    this.#pending.rejectAll(this.#ended)
    this.#options.closed(this.#ended, error === undefined)
  }

  #write<N extends CommandName>(name: N, values: CommandArguments<N>, pending: Waiting): void {
    if (this.#ended) {
      pending.reject(this.#ended)
      return
    }
    const isSecret = this.#isDeflated && SECRETIVE.has(name)
    if (isSecret) this.#flush()
    const seq = this.#pending.nextSeq()
    const start = this.#writer.length
    writeCommand(this.#writer, commands[name] as Command, seq, values)
    const bytes = this.#writer.length - start - 4
    const limit = this.capabilities?.maxFrameBytes || Number.POSITIVE_INFINITY
    if (bytes > limit) {
      this.#writer.length = start
      pending.reject(new RangeError(`${name} would take ${bytes} bytes; the producer takes at most ${limit}`))
      return
    }
    this.#pending.add(seq, pending)
    this.#reading.flow()
    if (isSecret) this.#flush(true)
    // Everything of one turn goes out together.
    else if (start === 0) queueMicrotask(() => this.#flush())
  }

  #flush(isSecret = false): void {
    if (this.#ended || this.#writer.length === 0) return
    this.#transport.send(this.#writer.copy(), isSecret)
    this.#writer.clear()
  }

  #data(chunk: Uint8Array): void {
    if (this.#ended) return
    this.#reading.took(chunk.length)
    const framer = this.#framer
    try {
      framer.push(chunk)
      while (!this.#ended && framer === this.#framer && framer.next()) {
        const { bytes, start, end, view } = framer
        this.#take(readMessage(this.#reader.reset(bytes, start, end, view)))
      }
      framer.settle()
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      const hint = this.capabilities ? '' : ': is that a Monitoring Protocol producer?'
      this.#fail('PROTOCOL', `sent what the protocol does not know (${error.message})${hint}`, { cause: error })
    }
  }

  #take(message: Message): void {
    const { kind } = message
    if (!this.capabilities && kind !== 'caps') {
      this.#fail('PROTOCOL', `began with ${kind} where its capabilities have to stand`)
      return
    }
    // Whoever calls could fill our memory with them, and who only seems to be the producer make us believe them.
    if (!this.#isAdmitted && (kind === 'value' || kind === 'gap')) {
      this.#fail('PROTOCOL', 'sent values before the login')
      return
    }
    switch (kind) {
      case 'response':
        this.#response(message)
        break
      case 'caps':
        this.#offer.came(message.caps)
        break
      case 'auth':
        this.#continue(message.data)
        break
      case 'gap':
        this.#options.gap(message)
        break
      case 'notice':
        if (message.code !== NoticeCode.WINDOW_FULL) this.#lastWords = message
        this.#options.notice(message)
        break
      case 'value':
        this.#options.value(message)
        break
    }
  }

  #response(response: Response): void {
    if (this.#pending.take(response)) this.#reading.flow()
    else this.#fail('PROTOCOL', `answered a command that was never sent (seq ${response.seq})`)
  }

  #continue(data: Uint8Array): void {
    const challenge = this.#challenge
    this.#challenge = undefined
    if (challenge) challenge.resolve({ data })
    else this.#fail('PROTOCOL', 'sent AUTH without being asked')
  }

  #closed(cause: Error | undefined): void {
    const why = this.#lastWords?.detail || cause?.message
    const what = why ? `closed the connection: ${why}` : 'closed the connection'
    // A layer has found what it cannot read.
    if (cause instanceof ConnectionError) this.#fail(cause.code, cause.message, { cause })
    else this.#fail(meaningOf(this.#lastWords?.code ?? 0), what, { cause })
  }

  #fail(code: ConnectionErrorCode, what: string, options?: ErrorOptions): void {
    this.close(this.#error(code, what, options))
  }

  #error(code: ConnectionErrorCode, what: string, options?: ErrorOptions): ConnectionError {
    return new ConnectionError(code, `${this.#options.peer}: the producer ${what}`, options)
  }
}
