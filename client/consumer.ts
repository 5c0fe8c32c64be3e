/**
 * A consumer, logged in: one method per command. Commands may be sent without waiting for each other.
 * A value goes to the handler of its metric id; to `entries` where there is none; and nowhere where neither is, which
 * loses nothing on a durable channel: what is not committed comes again.
 */
import type { Capabilities } from '../protocol/monitor/capabilities.ts'
import type { CommandArguments } from '../protocol/monitor/commands/index.ts'
import { CURRENT_CHANNEL } from '../protocol/monitor/constants.ts'
import type { Gap, Notice, ValueMessage } from '../protocol/monitor/message.ts'
import { type Arguments, toArguments } from './arguments.ts'
import { type Clock, systemClock } from './clock.ts'
import { Connection } from './connection.ts'
import type { ConnectionError } from './errors.ts'
import { Inbox } from './inbox.ts'
import { type Credentials, logIn } from './login.ts'
import type { Transport } from './transport.ts'

export type Entry = ValueMessage | Gap

/** `return` ends the loop also from outside of it. */
export interface Entries extends AsyncIterableIterator<Entry, undefined> {
  return(): Promise<IteratorResult<Entry, undefined>>
}

export interface ConsumerOptions {
  readonly clock?: Clock | undefined
  /** What errors call the producer; its URL. */
  readonly name?: string | undefined
  /** Entries that may wait to be taken before reading rests; 1,024 unless given. */
  readonly maxWaiting?: number | undefined
  /** A loss, while nobody reads `entries`, where it would stand in its place. */
  readonly onGap?: ((gap: Gap) => void) | undefined
  readonly onNotice?: ((notice: Notice) => void) | undefined
  /** Without an error where it was closed from here. */
  readonly onClose?: ((error: ConnectionError | undefined) => void) | undefined
  /** Gives up while logging in. */
  readonly signal?: AbortSignal | undefined
}

interface Answer {
  resolve(value: ValueMessage): void
  reject(error: Error): void
}

export class Consumer {
  /** Whether nobody on the way can read along: encrypted, or on this machine. */
  readonly isConfidential: boolean
  readonly #connection: Connection
  readonly #options: ConsumerOptions
  readonly #handlers = new Map<number, (value: ValueMessage) => void>()
  readonly #answers = new Map<number, Answer>()
  #entries: Inbox<Entry> | undefined
  #channel = CURRENT_CHANNEL

  /** Logs in over a transport. Throws ConnectionError. */
  static async open(transport: Transport, credentials: Credentials, options: ConsumerOptions = {}): Promise<Consumer> {
    const consumer = new Consumer(transport, credentials, options)
    const { signal } = options
    const abort = () => consumer.#connection.close(signal?.reason)
    signal?.addEventListener('abort', abort)
    try {
      consumer.#channel = await logIn(consumer.#connection, transport, credentials)
      return consumer
    } catch (error) {
      consumer.close()
      throw error
    } finally {
      signal?.removeEventListener('abort', abort)
    }
  }

  /** Use `open` or `connect`. */
  private constructor(transport: Transport, credentials: Credentials, options: ConsumerOptions) {
    this.isConfidential = transport.encrypted || transport.loopback
    this.#options = options
    this.#connection = new Connection(transport, {
      clock: options.clock ?? systemClock(),
      peer: `${options.name ?? 'the producer'} as ${credentials.identity}`,
      value: (message) => this.#value(message),
      gap: (gap) => (this.#entries ? this.#entries.push(gap) : options.onGap?.(gap)),
      notice: (notice) => options.onNotice?.(notice),
      closed: (reason, isOurs) => this.#closed(reason, isOurs),
    })
  }

  /** The id of the current channel; never 0. */
  get channel(): number {
    return this.#channel
  }

  get capabilities(): Capabilities | undefined {
    return this.#connection.capabilities
  }

  /** Makes a metric instance; gives its id. Nothing is measured before it is bound. */
  collect(metric: string, args: Arguments = {}): Promise<number> {
    return this.#connection.request('COLLECT', { metric, args: toArguments(args) })
  }

  async subscribe(metric: number, channel = CURRENT_CHANNEL): Promise<void> {
    await this.#connection.request('SUBSCRIBE', { metric, channel })
  }

  async buffer(metric: number, channel = CURRENT_CHANNEL): Promise<void> {
    await this.#connection.request('BUFFER', { metric, channel })
  }

  async get(metric: number, channel = CURRENT_CHANNEL): Promise<void> {
    await this.#connection.request('GET', { metric, channel })
  }

  async stop(metric: number, channel = CURRENT_CHANNEL): Promise<void> {
    await this.#connection.request('STOP', { metric, channel })
  }

  /** Defines a channel that outlives every connection; gives its id. */
  defChannel(url = '', args: Arguments = {}): Promise<number> {
    return this.#connection.request('DEF_CHANNEL', { url, args: toArguments(args) })
  }

  async setChannel(channel: number): Promise<void> {
    await this.#connection.request('SET_CHANNEL', { channel }, () => {
      if (channel !== CURRENT_CHANNEL) this.#channel = channel
    })
  }

  /** Deleting the current channel ends the connection. */
  async delChannel(channel = CURRENT_CHANNEL): Promise<void> {
    await this.#connection.request('DEL_CHANNEL', { channel })
  }

  /** `through`: this one and everything sent before it on this connection. */
  async commit(transaction: number, { through = false } = {}): Promise<void> {
    await this.#connection.request('COMMIT', { transaction, through })
  }

  /** Runs a control; gives the value with its result, to be committed where it has a transaction id. */
  execute(control: string, args: Arguments = {}): Promise<ValueMessage> {
    return this.#ask('EXECUTE', { control, args: toArguments(args) })
  }

  /** One value of a continuous metric; of type VOID where no measurement could be had. */
  query(metric: string, args: Arguments = {}): Promise<ValueMessage> {
    return this.#ask('QUERY', { metric, args: toArguments(args) })
  }

  async nop(): Promise<void> {
    await this.#connection.request('NOP', {})
  }

  /** Hands the values of one id to `handler`; gives a function that ends that. To be called before the id is bound. */
  onValue(metric: number, handler: (value: ValueMessage) => void): () => void {
    this.#handlers.set(metric, handler)
    return () => {
      if (this.#handlers.get(metric) === handler) this.#handlers.delete(metric)
    }
  }

  /**
   * All values that no handler takes and all GAPs, in their order. To be called before the first value is due. Reading
   * rests while too many wait to be taken; the producer closes a connection that has rested for 30 s, so that a slow
   * reader should rather ask for a small `window`. One at a time; throws where one is open.
   */
  entries(): Entries {
    if (this.#entries) throw new Error('the entries of this consumer are already being read')
    this.#entries = new Inbox<Entry>({
      limit: this.#options.maxWaiting ?? 1024,
      hold: (isHeld) => this.#connection.hold(isHeld),
      left: () => {
        this.#entries = undefined
      },
    })
    return this.#entries
  }

  /** What has been sent still goes out. Promises that wait are rejected, `entries` ends. */
  close(): void {
    this.#connection.close()
  }

  #ask<N extends 'QUERY' | 'EXECUTE'>(command: N, values: CommandArguments<N>): Promise<ValueMessage> {
    return new Promise((resolve, reject) => {
      this.#connection.request(command, values, (id) => this.#answers.set(id, { resolve, reject })).catch(reject)
    })
  }

  #value(message: ValueMessage): void {
    const answer = this.#answers.get(message.metric)
    const handler = this.#handlers.get(message.metric)
    this.#answers.delete(message.metric)
    if (answer) answer.resolve(message)
    else if (handler) handler(message)
    else this.#entries?.push(message)
  }

  #closed(reason: ConnectionError, isOurs: boolean): void {
    const error = isOurs ? undefined : reason
    for (const { reject } of this.#answers.values()) reject(reason)
    this.#answers.clear()
    this.#entries?.end(error)
    this.#options.onClose?.(error)
  }
}
