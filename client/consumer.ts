/**
 * A consumer: one channel of a producer, taken up again after every lost connection. Values come in the order of the
 * channel, to the handler of their metric or to the loop over the consumer.
 */
import type { Capabilities } from '../protocol/monitor/capabilities.ts'
import type { CommandArguments, CommandName } from '../protocol/monitor/commands.ts'
import { CURRENT_CHANNEL } from '../protocol/monitor/constants.ts'
import type { Gap, Notice, ValueMessage } from '../protocol/monitor/message.ts'
import { Answers } from './answers.ts'
import type { Arguments } from './arguments.ts'
import { attach, bindNew, boundOn } from './attach.ts'
import { atMost } from './clock.ts'
import { type Asking, Commands, type Request, type WaitOptions } from './commands.ts'
import { commitSurely } from './commits.ts'
import type { Connection } from './connection.ts'
import { Delivery } from './delivery.ts'
import { ConnectionError } from './errors.ts'
import { type ConsumerEvents, Events, type Listener } from './events.ts'
import { type Follow, type Followed, Follows, type Handler } from './follows.ts'
import { NextConnection } from './next-connection.ts'
import type { ConsumerOptions } from './options.ts'
import { Reconnect } from './reconnect.ts'
import type { Sample } from './sample.ts'

/** So long a value may be in work when its consumer is closed. */
const PATIENCE_MS = 1000

export class Consumer extends Commands implements AsyncIterable<Sample> {
  readonly #options: ConsumerOptions
  readonly #reconnect: Reconnect
  readonly #answers: Answers
  readonly #delivery: Delivery
  readonly #events = new Events()
  readonly #follows = new Follows()
  readonly #next: NextConnection
  readonly #request: Request = (name, values, onOk) => this.request(name, values, onOk)
  #connection: Connection | undefined
  /** The connection that has the channel: before commands use it, what is followed is bound on it again. */
  #carrier: Connection | undefined
  #channel: number
  #isAttached = false
  #isConfidential = false
  #ended: { readonly error: Error | undefined } | undefined

  /** Use `connect`. Throws ConnectionError, and StatusError where the channel cannot be taken up. */
  static async open(options: ConsumerOptions, signal?: AbortSignal): Promise<Consumer> {
    const consumer = new Consumer(options)
    await consumer.#establish(signal)
    return consumer
  }

  private constructor(options: ConsumerOptions) {
    super()
    this.#options = options
    this.#channel = options.channel ?? CURRENT_CHANNEL
    this.#answers = new Answers(options.clock)
    this.#next = new NextConnection(options.clock, options.deadlineMs, options.sessions.url)
    this.#delivery = new Delivery({
      after: options.after,
      isExplicit: options.commit === 'explicit',
      nameOf: (metric) => this.#follows.nameOf(metric),
      followOf: (metric) => this.#follows.get(metric),
      gap: (gap) => this.#events.emit('gap', gap),
      hold: (isHeld) => this.#connection?.hold(isHeld, this.#isDurable),
      send: (transaction, through) => this.#commit(transaction, through),
      failed: (error) => this.#end(error),
    })
    this.#reconnect = new Reconnect({
      clock: options.clock,
      connect: async (signal) => {
        await this.#establish(signal)
        this.#events.emit('connected', { channel: this.#channel })
      },
      ended: (error) => this.#end(error),
    })
  }

  /** The id of the current channel. */
  get channel(): number {
    return this.#channel
  }

  /** What the producer can do; undefined while there is no connection. */
  get capabilities(): Capabilities | undefined {
    return this.#connection?.capabilities
  }

  /** Whether nobody on the way can read along: encrypted, or on this machine. */
  get isConfidential(): boolean {
    return this.#isConfidential
  }

  /** The metric behind an id that is followed, or that the channel binds; empty for others. */
  nameOf(metric: number): string {
    return this.#follows.nameOf(metric)
  }

  /** Gives the function that ends it. */
  on<E extends keyof ConsumerEvents>(event: E, listener: Listener<E>): () => void {
    return this.#events.on(event, listener)
  }

  /**
   * Has the values of a metric come to `handler`, or to the loop without one, also after lost connections. What the channel
   * binds already under this name goes on as it is, with the arguments of then.
   */
  async follow(metric: string, args: Arguments = {}, handler?: Handler): Promise<Followed> {
    const follow: Follow = { metric, args, handler, id: 0, stop: () => this.#leave(follow) }
    if (!this.#follows.adopt(follow)) await bindNew(this.#request, this.#follows, follow)
    return follow
  }

  /** The values that no handler takes. One reader at a time; what is left by `break` or an error was not handled. */
  [Symbol.asyncIterator](): AsyncIterator<Sample, undefined> {
    return this.#delivery.iterator()
  }

  /**
   * Hands values to their handlers until `close`; rejects with what a handler throws, or with what ended the connection for
   * good. What nobody follows is left alone, and not committed.
   */
  async run(): Promise<void> {
    this.#delivery.read()
    while (await this.#delivery.next()) this.#delivery.passOver()
  }

  /** `through`: this one and everything before it. Sent again where the connection is lost before the answer. */
  async commit(transaction: number, { through = false } = {}): Promise<void> {
    const covers = this.#delivery.committing(transaction, through)
    await commitSurely(
      () => this.request('COMMIT', { transaction, through: covers }),
      () => this.#ended !== undefined,
    )
  }

  /** Leaves the current channel for another: what was not handled stays there, and nothing is followed any more. */
  async setChannel(channel: number): Promise<void> {
    if (channel === CURRENT_CHANNEL || channel === this.#channel) return
    const bound = await boundOn(channel, (metric, args) => this.query(metric, args))
    await this.#delivery.settled()
    this.#delivery.turning(true)
    const turn = () => {
      const left = new ConnectionError('CLOSED', `channel ${this.#channel} was left: the result waits there`)
      this.#answers.reject(left, false)
      this.#channel = channel
      this.#delivery.turn()
      this.#follows.clear()
      this.#follows.reconcile(bound)
    }
    try {
      await this.request('SET_CHANNEL', { channel }, turn)
    } catch (error) {
      // Which channel it has now is not known: the next connection takes up the one that we know of.
      if (error instanceof ConnectionError && error.code === 'TIMEOUT') this.#connection?.close(error)
      throw error
    } finally {
      this.#delivery.turning(false)
    }
  }

  /**
   * Ends the reading, commits what was handled, and closes. A value that is being handled is waited for, one second at the
   * most: after that it counts as not handled. So call this in a handler or loop, but do not wait for it there.
   */
  async close(): Promise<void> {
    this.#reconnect.stop()
    this.#delivery.end(undefined)
    await atMost(this.#options.clock, PATIENCE_MS, this.#delivery.left())
    if (this.#connection && !this.#ended) await this.#delivery.settled()
    this.#end(undefined)
  }

  protected request<N extends CommandName>(
    name: N,
    values: CommandArguments<N>,
    onOk?: (result: number) => void,
  ): Promise<number> {
    if (this.#connection) return this.#connection.request(name, values, onOk)
    if (this.#ended) return Promise.reject(this.#reason)
    return this.#next.wait().then((connection) => connection.request(name, values, onOk))
  }

  protected ask<N extends Asking>(name: N, values: CommandArguments<N>, { deadlineMs }: WaitOptions) {
    return this.#answers.ask(this.#request, name, values, { isKept: name === 'EXECUTE' && this.#isDurable, deadlineMs })
  }

  get #isDurable(): boolean {
    return this.#options.durable !== false
  }

  /** Why nothing can be asked any more. */
  get #reason(): Error {
    return (
      this.#ended?.error ?? new ConnectionError('CLOSED', `${this.#options.sessions.url}: this consumer was closed`)
    )
  }

  async #leave(follow: Follow): Promise<void> {
    // With another connection it may get another id.
    if (!this.#connection && !this.#ended) await this.#next.wait()
    await this.stop(follow.id)
    this.#follows.stopped(follow)
  }

  /** Connects, logs in, and makes everything as it was. */
  async #establish(signal?: AbortSignal): Promise<void> {
    const listener = {
      value: this.#arrived,
      gap: this.#arrived,
      notice: (notice: Notice) => this.#events.emit('notice', notice),
      closed: (connection: Connection, reason: ConnectionError, isOurs: boolean) =>
        this.#closed(connection, reason, isOurs),
    }
    const session = await this.#options.sessions.next(listener, signal)
    const { connection, channel: birth, isConfidential, release } = session
    const abort = () => connection.close(signal?.reason)
    signal?.addEventListener('abort', abort)
    try {
      await attach({
        connection,
        answers: this.#answers,
        birth,
        channel: this.#channel,
        isDurable: this.#isDurable,
        isCurrent: release !== undefined,
        isAgain: this.#isAttached,
        follows: this.#follows,
        became: (channel) => this.#became(connection, channel),
      })
      if (signal?.aborted) abort()
      release?.()
      if (connection.ended) throw connection.ended
    } catch (error) {
      connection.close()
      throw error
    } finally {
      signal?.removeEventListener('abort', abort)
    }
    this.#isAttached = true
    this.#isConfidential = isConfidential
    this.#connection = connection
    if (this.#delivery.isHeld) connection.hold(true, this.#isDurable)
    this.#next.came(connection)
  }

  #became(connection: Connection, channel: number): void {
    this.#carrier = connection
    if (channel === this.#channel || !this.#isDurable) this.#delivery.connected()
    else if (this.#isAttached) {
      const gone = new ConnectionError('CHANNEL_GONE', `channel ${this.#channel} is gone, and the result with it`)
      this.#answers.reject(gone, false)
      this.#delivery.turn()
    }
    this.#channel = channel
  }

  readonly #arrived = (message: ValueMessage | Gap): void => {
    const { transaction } = message
    if (!this.#delivery.isNew(transaction)) return
    if (message.kind === 'value' && this.#answers.take(message)) this.#delivery.answered(transaction)
    else this.#delivery.push(message)
  }

  #closed(connection: Connection, reason: ConnectionError, isOurs: boolean): void {
    const goesOn = this.#options.reconnect !== false && !isOurs && this.#options.sessions.goesOn(reason)
    this.#answers.reject(reason, this.#isDurable)
    if (connection !== this.#connection) return
    this.#connection = undefined
    if (!goesOn) {
      this.#end(isOurs ? undefined : reason)
      return
    }
    this.#reconnect.lost(reason)
    this.#events.emit('disconnected', reason)
  }

  #end(error: Error | undefined): void {
    if (this.#ended) return
    this.#ended = { error }
    this.#reconnect.stop()
    this.#delivery.end(error)
    this.#answers.reject(this.#reason, false)
    this.#next.end(this.#reason)
    this.#connection?.close()
    this.#events.emit('closed', error)
  }

  /** Rejects at once where there is no connection: what waits for one would come too late. */
  async #commit(transaction: number, through: boolean): Promise<void> {
    if (!this.#carrier) throw new ConnectionError('CLOSED', `${this.#options.sessions.url}: there is no connection`)
    await this.#carrier.request('COMMIT', { transaction, through })
  }
}
