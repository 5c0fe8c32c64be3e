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
import type { Clock } from './clock.ts'
import { ConnectionError, type ConnectionErrorCode, StatusError } from './errors.ts'
import { KeepAlive } from './keep-alive.ts'
import { Pending, type Waiting } from './pending.ts'
import { Sip } from './sip.ts'
import type { Transport } from './transport.ts'

export interface ConnectionOptions {
  readonly clock: Clock
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

/** What a connection's end means where the producer has said why [MON 3 NOTICE]. */
const MEANINGS: ReadonlyMap<number, ConnectionErrorCode> = new Map([
  [NoticeCode.SUPERSEDED, 'SUPERSEDED'],
  [NoticeCode.WITHDRAWN, 'WITHDRAWN'],
  [NoticeCode.CHANNEL_DELETED, 'CHANNEL_GONE'],
  [NoticeCode.PROTOCOL_ERROR, 'PROTOCOL'],
])

export class Connection {
  /** Settles with the first PRODUCER_CAPS. */
  readonly ready: Promise<Capabilities>
  readonly #transport: Transport
  readonly #options: ConnectionOptions
  readonly #keepAlive: KeepAlive
  readonly #framer = new Framer(MAX_FRAME_BYTES_BEFORE_AUTH)
  readonly #reader = new XdrReader()
  readonly #writer = new XdrWriter()
  readonly #pending: Pending
  readonly #sip: Sip
  #challenge: { resolve(step: AuthStep): void; reject(error: Error): void } | undefined
  #capabilities: Capabilities | undefined
  #capable: { resolve(caps: Capabilities): void; reject(error: Error): void } | undefined
  #isHeld = false
  #isSipping = false
  #isPaused = false
  #lastWords: Notice | undefined
  #ended: ConnectionError | undefined

  constructor(transport: Transport, options: ConnectionOptions) {
    this.#transport = transport
    this.#options = options
    this.ready = new Promise((resolve, reject) => {
      this.#capable = { resolve, reject }
    })
    this.ready.catch(NOTHING)
    const { clock, deadlineMs } = options
    this.#pending = new Pending({
      clock,
      deadlineMs,
      late: () => this.#error('TIMEOUT', `has not answered a command for ${deadlineMs / 1000} seconds`),
    })
    this.#sip = new Sip(clock, (isSipping) => {
      this.#isSipping = isSipping
      this.#flow()
    })
    this.#keepAlive = new KeepAlive({
      clock,
      probe: () => this.#write('NOP', {}, { response: NOTHING, reject: NOTHING }),
      dead: () => this.#fail('SILENT', 'has not answered for 30 seconds'),
    })
    transport.open({
      data: (bytes) => this.#data(bytes),
      closed: (cause) => this.#closed(cause),
    })
  }

  /** The latest. Undefined until `ready`. */
  get capabilities(): Capabilities | undefined {
    return this.#capabilities
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

  /** One step of an AUTH exchange. Rejects as `request` does. */
  authenticate(method: string, data: Uint8Array): Promise<AuthStep> {
    return new Promise((resolve, reject) => {
      this.#write(
        'AUTH',
        { method, data },
        {
          reject,
          response: ({ status, result, detail }) => {
            if (status === StatusCode.AUTH_NEEDED) this.#challenge = { resolve, reject }
            else if (status === StatusCode.OK) {
              this.#framer.maxFrameBytes = MAX_FRAME_BYTES
              resolve({ channel: result })
            } else reject(new StatusError('AUTH', status, detail))
          },
        },
      )
    })
  }

  /**
   * Whether reading may rest. It goes on while a response is owed: a reader that waits for one before it takes the next
   * value would wait for ever. `sips`: what is taken now and then while it rests is bounded by a window.
   */
  hold(isHeld: boolean, sips: boolean): void {
    this.#isHeld = isHeld
    if (isHeld && sips) this.#sip.start()
    else this.#sip.stop()
    this.#flow()
  }

  /** Sends what was written and closes. Without an error, everything that is waited for is told that it was us. */
  close(error?: ConnectionError): void {
    if (this.#ended) return
    this.#flush()
    this.#ended = error ?? this.#error('CLOSED', 'is no longer connected: it was closed from this side')
    this.#keepAlive.sleep()
    this.#sip.stop()
    this.#transport.close()
    this.#capable?.reject(this.#ended)
    this.#challenge?.reject(this.#ended)
    this.#pending.rejectAll(this.#ended)
    this.#options.closed(this.#ended, error === undefined)
  }

  #write<N extends CommandName>(name: N, values: CommandArguments<N>, pending: Waiting): void {
    if (this.#ended) {
      pending.reject(this.#ended)
      return
    }
    const seq = this.#pending.nextSeq()
    const start = this.#writer.length
    writeCommand(this.#writer, commands[name] as Command, seq, values)
    const bytes = this.#writer.length - start - 4
    const limit = this.#capabilities?.maxFrameBytes || Number.POSITIVE_INFINITY
    if (bytes > limit) {
      this.#writer.length = start
      pending.reject(new RangeError(`${name} would take ${bytes} bytes; the producer takes at most ${limit}`))
      return
    }
    this.#pending.add(seq, pending)
    this.#flow()
    // Everything of one turn goes out together.
    if (start === 0) queueMicrotask(() => this.#flush())
  }

  #flush(): void {
    if (this.#ended || this.#writer.length === 0) return
    this.#transport.send(this.#writer.copy())
    this.#writer.clear()
  }

  #data(chunk: Uint8Array): void {
    if (this.#ended) return
    this.#keepAlive.heard()
    this.#sip.took(chunk.length)
    try {
      this.#framer.push(chunk)
      while (!this.#ended && this.#framer.next()) {
        const { bytes, start, end, view } = this.#framer
        this.#take(readMessage(this.#reader.reset(bytes, start, end, view)))
      }
      this.#framer.settle()
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      const hint = this.#capabilities ? '' : ': is that a Monitoring Protocol producer?'
      this.#fail('PROTOCOL', `sent what the protocol does not know (${error.message})${hint}`, { cause: error })
    }
  }

  #take(message: Message): void {
    if (!this.#capabilities && message.kind !== 'caps') {
      this.#fail('PROTOCOL', `began with ${message.kind} where its capabilities have to stand`)
      return
    }
    switch (message.kind) {
      case 'response':
        this.#response(message)
        break
      case 'caps':
        this.#capabilities = message.caps
        this.#capable?.resolve(message.caps)
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
    if (this.#pending.take(response)) this.#flow()
    else this.#fail('PROTOCOL', `answered a command that was never sent (seq ${response.seq})`)
  }

  #continue(data: Uint8Array): void {
    const challenge = this.#challenge
    this.#challenge = undefined
    if (challenge) challenge.resolve({ data })
    else this.#fail('PROTOCOL', 'sent AUTH without being asked')
  }

  #flow(): void {
    const isPaused = this.#isHeld && !this.#isSipping && this.#pending.size === 0
    if (this.#ended || this.#isPaused === isPaused) return
    this.#isPaused = isPaused
    if (isPaused) {
      this.#keepAlive.sleep()
      this.#transport.pause()
    } else {
      this.#keepAlive.wake()
      this.#transport.resume()
    }
  }

  #closed(cause: Error | undefined): void {
    const why = this.#lastWords?.detail || cause?.message
    const code = MEANINGS.get(this.#lastWords?.code ?? 0) ?? 'CLOSED'
    this.#fail(code, why ? `closed the connection: ${why}` : 'closed the connection', { cause })
  }

  #fail(code: ConnectionErrorCode, what: string, options?: ErrorOptions): void {
    this.close(this.#error(code, what, options))
  }

  #error(code: ConnectionErrorCode, what: string, options?: ErrorOptions): ConnectionError {
    return new ConnectionError(code, `${this.#options.peer}: the producer ${what}`, options)
  }
}
