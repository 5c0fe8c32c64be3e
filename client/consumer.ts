/// <reference lib="esnext.disposable" preserve="true" />
/**
 * A consumer: one channel of a producer, taken up again after every lost connection. Values come in the order of the
 * channel, to the handler of their metric or to the loop over the consumer.
 */
import { TO_PRODUCER } from '../protocol/kept/backoff.ts'
import { type ConnectionAttempt, KeptConnection } from '../protocol/kept/kept-connection.ts'
import { onAbort, unlessAborted } from '../protocol/kept/pause.ts'
import type { Capabilities } from '../protocol/monitor/capabilities.ts'
import type { CommandArguments } from '../protocol/monitor/commands.ts'
import { ALL_CHANNELS, BasicType, CURRENT_CHANNEL } from '../protocol/monitor/constants.ts'
import type { ValueMessage } from '../protocol/monitor/message.ts'
import { type ChannelOptions, checkOptions } from './channel-options.ts'
import { type ClientClock, withinTime } from './clock.ts'
import {
  type AskingCommand,
  AwaitedValues,
  CommandMethods,
  type CommandOptions,
  type SendCommand,
  type WaitOptions,
} from './commands.ts'
import type { ClientConnection } from './connection.ts'
import { ConnectionError, isTransient, StatusError } from './errors.ts'
import { type ConsumerEvents, Emitter, type Listener, toGapEvent, toNoticeEvent } from './events.ts'
import { Mailbox } from './mailbox.ts'
import { NextConnection } from './next-connection.ts'
import type { ClientSession, SessionSource } from './session.ts'
import {
  type BoundMetric,
  bindingsOf,
  type Followed,
  type FollowedMetric,
  type Handler,
  type SendQuery,
  Subscriptions,
} from './subscriptions.ts'
import { type Arguments, plainOf, type Sample, toArgumentList } from './values.ts'

/** How long a closing consumer waits for the handler of a value. */
const PATIENCE_MS = 1000
const NOTHING_BOUND: ReadonlyMap<number, BoundMetric> = new Map()

export interface ConsumerOptions extends ChannelOptions {
  readonly sessions: SessionSource
  readonly clock: ClientClock
  /** How long a response may take, and how long a command may wait for a connection. */
  readonly deadlineMs: number
}

export class Consumer extends CommandMethods implements AsyncIterable<Sample> {
  readonly #options: ConsumerOptions
  readonly #kept: KeptConnection
  /** Attempts to connect since the connection was lost. */
  #attempts = 0
  /** Whether the connection is kept that `open` has made: then `#keep` makes the others. */
  #isKept = false
  /** Settles when the connection is lost, with the reason: `#lost` does that. */
  #ending!: Promise<ConnectionError>
  #lost!: (reason: ConnectionError) => void
  readonly #awaited: AwaitedValues
  readonly #mailbox: Mailbox
  readonly #subscriptions = new Subscriptions()
  readonly #next: NextConnection
  readonly #events = new Emitter()
  #connection: ClientConnection | undefined
  /** The connection that has the channel. It becomes `#connection` when everything followed is bound to the channel again. */
  #carrier: ClientConnection | undefined
  #channel: number
  /** The name of the channel, unless `setChannel` has left that. */
  #name: string | undefined
  #isAttached = false
  #isConfidential = false
  #ended: { readonly error: Error | undefined } | undefined

  /** Use `connect`. Throws ConnectionError, StatusError if the channel cannot be taken up, and RangeError. */
  static async open(options: ConsumerOptions, signal?: AbortSignal): Promise<Consumer> {
    checkOptions(options)
    const consumer = new Consumer(options)
    await consumer.#establish(signal)
    consumer.#kept.start()
    return consumer
  }

  private constructor(options: ConsumerOptions) {
    super()
    const { clock, deadlineMs, sessions } = options
    this.#options = options
    this.#channel = options.channel ?? CURRENT_CHANNEL
    this.#name = options.name
    this.#awaited = new AwaitedValues(clock)
    this.#next = new NextConnection(clock, deadlineMs, sessions.url)
    this.#mailbox = new Mailbox({
      after: options.after?.transaction,
      isExplicit: options.commit === 'explicit',
      subscriptions: this.#subscriptions,
      awaited: this.#awaited,
      generation: () => this.generation,
      gap: (gap) => this.#events.emit('gap', toGapEvent(gap, this.nameOf(gap.metric))),
      restored: (restored) => this.#events.emit('restored', restored),
      hold: (isHeld) => this.#connection?.hold(isHeld, this.#isDurable),
      commit: (transaction, through) => this.#commit(transaction, through),
      failed: (error) => this.#end(error),
    })
    this.#kept = new KeptConnection({
      clock,
      intervals: TO_PRODUCER,
      run: (attempt) => this.#keep(attempt),
      changed: (state) => state.is === 'waiting' && this.#retrying(state.delayMs, state.lost),
    })
  }

  /** The id of the current channel. */
  get channel(): number {
    return this.#channel
  }

  /** Names the history of transaction ids of the producer; '' if it does not name it. For `Place`. */
  get generation(): string {
    return this.#carrier?.capabilities?.generation ?? ''
  }

  /** The capabilities of the producer; undefined while there is no connection. */
  get capabilities(): Capabilities | undefined {
    return this.#connection?.capabilities
  }

  /** Whether nobody on the way can read along: the connection is encrypted, or stays on this machine. */
  get isConfidential(): boolean {
    return this.#isConfidential
  }

  /** The name of a metric that is followed, or that the channel binds; empty for other ids. */
  nameOf(metric: number): string {
    return this.#subscriptions.nameOf(metric)
  }

  /** Returns the function that removes the listener. */
  on<E extends keyof ConsumerEvents>(event: E, listener: Listener<E>): () => void {
    return this.#events.on(event, listener)
  }

  /**
   * Has the values of a metric come to `handler`, or to the loop if there is none, also after lost connections. A binding
   * that the channel already has with this name and these arguments is taken over; otherwise a new one is made.
   */
  async follow(
    metric: string,
    args: Arguments = {},
    handler?: Handler,
    { signal }: CommandOptions = {},
  ): Promise<Followed> {
    const followed: FollowedMetric = { metric, args, handler, id: 0, stop: () => this.#unfollow(followed) }
    const bound = this.#subscriptions.adopt(followed)
    try {
      if (bound === undefined) await this.#subscriptions.bind(this.request, followed, signal)
      else if (bound.mode !== 'subscribe') await this.subscribe(bound.id, CURRENT_CHANNEL, { signal })
    } catch (error) {
      if (bound === undefined) this.#subscriptions.delete(followed)
      else this.#subscriptions.giveBack(followed, bound)
      // The SUBSCRIBE may be on its way. If there is nothing to stop, that is fine.
      if (signal?.aborted && bound === undefined && followed.id !== 0) this.stop(followed.id).catch(() => {})
      throw error
    }
    return followed
  }

  /**
   * The metrics that the channel binds and this program does not follow, such as those of an earlier version of it, or with other
   * arguments. Their values come to the loop. `stop` ends them.
   */
  get unfollowed(): readonly BoundMetric[] {
    return this.#subscriptions.unfollowed
  }

  override async stop(metric: number, channel: number = CURRENT_CHANNEL, options: CommandOptions = {}): Promise<void> {
    await super.stop(metric, channel, options)
    const isHere = channel === CURRENT_CHANNEL || channel === ALL_CHANNELS || channel === this.#channel
    if (isHere) this.#subscriptions.forget(metric)
  }

  /** Iterates over the values without a handler, for one reader at a time. A value left by `break` or an error was not handled. */
  [Symbol.asyncIterator](): AsyncIterator<Sample, undefined> {
    return this.#mailbox.iterator()
  }

  /**
   * The same with a signal: once it is aborted, the loop throws its reason instead of handing out another value. What was handed out
   * before was handled.
   */
  samples({ signal }: CommandOptions): AsyncIterable<Sample> {
    return { [Symbol.asyncIterator]: () => this.#mailbox.iterator(signal) }
  }

  /**
   * Calls the handlers until `close`. Rejects with what a handler throws, or with what ended the connection for good. Values
   * that nobody follows are skipped and not committed. `signal` ends it between two values, and it rejects with the reason.
   */
  run({ signal }: CommandOptions = {}): Promise<void> {
    return this.#mailbox.run(signal)
  }

  /** `through` commits everything before it as well. The COMMIT is repeated if the connection is lost before the response. */
  async commit(
    transaction: number,
    { through = false, signal }: CommandOptions & { readonly through?: boolean | undefined } = {},
  ): Promise<void> {
    const covers = this.#mailbox.beginCommit(transaction, through)
    for (;;) {
      try {
        await this.request('COMMIT', { transaction, through: covers }, undefined, signal)
        return
      } catch (error) {
        const isLost = error instanceof ConnectionError && error.code !== 'TIMEOUT'
        if (!isLost || this.#ended) throw error
      }
    }
  }

  /** Leaves the current channel for another. What was not handled stays there, and nothing is followed any more. */
  async setChannel(channel: number): Promise<void> {
    if (channel === CURRENT_CHANNEL || channel === this.#channel) return
    const bound = await bindingsOf(channel, (metric, args) => this.query(metric, args))
    await this.#mailbox.committed()
    this.#mailbox.suspendCommits(true)
    const switchTo = () => {
      const left = new ConnectionError('CLOSED', `channel ${this.#channel} was left: the result waits there`)
      this.#awaited.reject(left, false)
      this.#channel = channel
      this.#name = undefined
      this.#mailbox.switchChannel()
      this.#subscriptions.clear()
      this.#subscriptions.reconcile(bound)
    }
    try {
      await this.request('SET_CHANNEL', { channel }, switchTo)
    } catch (error) {
      // It is unknown which channel this connection has now. The next one takes up the channel that we know of.
      if (error instanceof ConnectionError && error.code === 'TIMEOUT') this.#connection?.close(error)
      throw error
    } finally {
      this.#mailbox.suspendCommits(false)
    }
  }

  /**
   * Stops the reading, commits what was handled, and closes. It waits for a running handler for one second at most; after
   * that the value counts as not handled. Call it in a handler or loop, but do not wait for it there.
   */
  async close(): Promise<void> {
    void this.#kept.stop(this.#reason)
    this.#mailbox.end(undefined)
    await withinTime(this.#options.clock, PATIENCE_MS, this.#mailbox.idle())
    if (this.#connection && !this.#ended) await this.#mailbox.committed()
    this.#end(undefined)
  }

  /** `await using consumer = await connect(...)` closes it at the end of the block. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  protected readonly request: SendCommand = (name, values, onOk, signal) => {
    if (signal?.aborted) return Promise.reject(signal.reason)
    const send = (connection: ClientConnection) => unlessAborted(signal, connection.request(name, values, onOk))
    if (this.#connection) return send(this.#connection)
    return this.#ended ? Promise.reject(this.#reason) : this.#next.wait(signal).then(send)
  }

  protected ask<N extends AskingCommand>(name: N, values: CommandArguments<N>, options: WaitOptions) {
    return this.#awaited.ask(this.request, name, values, { ...options, isKept: name === 'EXECUTE' && this.#isDurable })
  }

  get #isDurable(): boolean {
    return this.#options.durable !== false
  }

  /** Why no more commands can be sent. */
  get #reason(): Error {
    return (
      this.#ended?.error ?? new ConnectionError('CLOSED', `${this.#options.sessions.url}: this consumer was closed`)
    )
  }

  async #unfollow(followed: FollowedMetric): Promise<void> {
    try {
      // The metric may get another id on the next connection.
      if (!this.#connection && !this.#ended) await this.#next.wait()
      await this.stop(followed.id)
    } catch (error) {
      // A channel that is not durable ends with its connection, and the next one is not to bind this metric.
      if (this.#isDurable || !(error instanceof ConnectionError)) throw error
    }
    this.#subscriptions.stopped(followed)
  }

  /** One connection, from the attempt to its end, which is the reason. The first one is there already. */
  async #keep({ signal, connected }: ConnectionAttempt): Promise<Error> {
    try {
      if (this.#isKept) {
        await this.#establish(signal)
        this.#events.emit('connected', { channel: this.#channel })
      }
    } catch (error) {
      if (!signal.aborted && !isTransient(error)) this.#end(error as Error)
      throw error
    }
    this.#isKept = true
    this.#attempts = 0
    connected()
    return unlessAborted(signal, this.#ending)
  }

  #retrying(delayMs: number, error: Error): void {
    try {
      this.#events.emit('retrying', { attempt: ++this.#attempts, delayMs, error })
    } catch (error) {
      this.#end(error as Error)
    }
  }

  /** Connects, logs in, and makes everything as it was on the last connection. */
  async #establish(signal?: AbortSignal): Promise<void> {
    // It may be lost before this has settled.
    this.#ending = new Promise((resolve) => {
      this.#lost = resolve
    })
    const session = await this.#options.sessions.next(
      {
        message: (message) => this.#mailbox.receive(message),
        notice: (notice) => this.#events.emit('notice', toNoticeEvent(notice)),
        closed: (connection, reason, isOurs) => this.#closed(connection, reason, isOurs),
      },
      signal,
    )
    const { connection } = session
    const abort = () => connection.close(signal?.reason)
    const release = onAbort(signal, abort)
    try {
      await this.#restore(session)
      if (signal?.aborted) abort()
      session.release?.()
      if (connection.ended) throw connection.ended
    } catch (error) {
      connection.close()
      throw error
    } finally {
      release()
    }
    this.#isAttached = true
    this.#isConfidential = session.isConfidential
    this.#connection = connection
    if (this.#mailbox.isHeld) connection.hold(true, this.#isDurable)
    this.#next.settle(connection)
  }

  /** Takes up the channel of the last connection, and binds what is no longer bound to it. */
  async #restore({ connection, channel: birth, release }: ClientSession): Promise<void> {
    const send: SendCommand = (name, values, onOk) => connection.request(name, values, onOk)
    const query: SendQuery = (metric, args) =>
      this.#awaited.ask(send, 'QUERY', { metric, args: toArgumentList(args) }, { isKept: false })
    let missing: readonly FollowedMetric[] = []
    // Must run at once: values may follow directly after the response that made the channel current.
    const switchTo = (id: number, bound?: ReadonlyMap<number, BoundMetric>) => {
      // Where the producer does not report what a channel binds: another one than before binds none of the ids that are known.
      const known = bound ?? (id === this.#channel ? undefined : NOTHING_BOUND)
      this.#became(connection, id)
      missing = this.#subscriptions.reconcile(known)
    }
    const isOther = this.#options.sessions.hasSeveralAddresses && (await this.#isOtherGeneration(connection))
    const name = isOther ? undefined : this.#name
    const named = name === undefined ? undefined : { url: '', args: toArgumentList({ name }) }
    const channel = named === undefined ? this.#channel : await send('DEF_CHANNEL', named)
    if (release) {
      // The producer has connected to us for this channel [MON 14].
      switchTo(birth, await bindingsOf(birth, query))
    } else if (!this.#isDurable) {
      // Channels of a credential that only watches are not durable anyway.
      if (!(await connection.ready).extension.includes('watch-only')) {
        const args = toArgumentList({ channel: birth, durable: false })
        checkDone(await this.#awaited.ask(send, 'EXECUTE', { control: 'channel.configure', args }, { isKept: false }))
      }
      switchTo(birth, NOTHING_BOUND)
    } else if (channel === CURRENT_CHANNEL) {
      switchTo(birth, NOTHING_BOUND)
    } else {
      const bound = await bindingsOf(channel, query)
      const exists = await this.#takeUp(connection, channel, isOther, () => switchTo(channel, bound))
      if (!exists) switchTo(birth, NOTHING_BOUND)
    }
    // Some may have been stopped meanwhile.
    for (const followed of missing) {
      if (this.#subscriptions.get(followed.id) === followed) await this.#subscriptions.bind(send, followed)
    }
  }

  /** Returns false if the channel is gone and nothing was lost with it. `isOther`: see `#isOtherGeneration`. */
  async #takeUp(connection: ClientConnection, channel: number, isOther: boolean, onOk: () => void): Promise<boolean> {
    try {
      await connection.request('SET_CHANNEL', { channel }, onOk)
      return true
    } catch (error) {
      const isGone = error instanceof StatusError && error.status === 'NO_SUCH_CHANNEL'
      if (!isGone || (!this.#isAttached && !isOther)) throw error
      const cause = { cause: error }
      if (isOther) {
        const what = `this is another server than at the other addresses: it has another generation and no channel ${channel}`
        const unless = 'or it was restored from a backup that is older than the channel'
        throw new ConnectionError('OTHER_SERVER', `${connection.peer}: ${what}, ${unless}`, cause)
      }
      if (this.#subscriptions.size === 0) return false
      const message = `channel ${channel} is gone: it was deleted, or was unused for too long`
      throw new ConnectionError('CHANNEL_GONE', message, cause)
    }
  }

  /** The generation of the ids that we know; undefined if we know none. */
  get #knownGeneration(): string | undefined {
    return this.#carrier === undefined ? this.#options.after?.generation : this.generation
  }

  /**
   * Whether the producer of this connection has another generation than the one whose channel we have: it was restored from a
   * backup, or it is another one. Then the channel has to be taken up by its id, which a backup has and another producer has not.
   */
  async #isOtherGeneration({ ready }: ClientConnection): Promise<boolean> {
    const { generation = '' } = await ready
    const known = this.#knownGeneration
    return this.#isDurable && this.#channel !== CURRENT_CHANNEL && known !== undefined && known !== generation
  }

  /** The connection has this channel. Everything that it receives from now on belongs to that. */
  #became(connection: ClientConnection, channel: number): void {
    const before = this.#knownGeneration
    this.#carrier = connection
    // Responses have come, and the capabilities before them.
    const isOther = before !== undefined && before !== this.generation
    if (channel === this.#channel || !this.#isDurable) this.#mailbox.reconnected()
    else if (this.#channel !== CURRENT_CHANNEL) {
      const gone = new ConnectionError('CHANNEL_GONE', `channel ${this.#channel} is gone, and the result with it`)
      this.#awaited.reject(gone, false)
      this.#mailbox.switchChannel()
    }
    this.#channel = channel
    // Transaction ids of another generation tell nothing about what was handled.
    if (isOther) this.#mailbox.beginGeneration(before, this.generation)
  }

  #closed(connection: ClientConnection, reason: ConnectionError, isOurs: boolean): void {
    const continues = this.#options.reconnect !== false && !isOurs && this.#options.sessions.mayContinue(reason)
    this.#awaited.reject(reason, this.#isDurable)
    if (connection !== this.#connection) return
    this.#connection = undefined
    if (!continues) {
      this.#end(isOurs ? undefined : reason)
      return
    }
    try {
      this.#events.emit('disconnected', reason)
    } finally {
      this.#lost(reason)
    }
  }

  #end(error: Error | undefined): void {
    if (this.#ended) return
    this.#ended = { error }
    void this.#kept.stop(this.#reason)
    this.#mailbox.end(error)
    this.#awaited.reject(this.#reason, false)
    this.#next.settle(this.#reason)
    this.#connection?.close()
    this.#events.emit('closed', error)
  }

  /** Rejects at once if there is no connection: a COMMIT that waited for one would come too late. */
  async #commit(transaction: number, through: boolean): Promise<void> {
    if (!this.#carrier) throw new ConnectionError('CLOSED', `${this.#options.sessions.url}: there is no connection`)
    await this.#carrier.request('COMMIT', { transaction, through })
  }
}

function checkDone({ value }: ValueMessage): void {
  const result = value.type === BasicType.REC ? (plainOf(value) as { outcome?: unknown; detail?: unknown }) : {}
  if (result.outcome === 'ok') return
  throw new ConnectionError('CLOSED', `the producer could not make the channel non-durable: ${result.detail}`)
}
