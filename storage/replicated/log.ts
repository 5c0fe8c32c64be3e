/**
 * The log of the cluster: all batches, in one order, on a majority of the nats-servers. It is one stream of JetStream; when it is
 * founded anew, the next one. Whoever appends names the sequence that it expects to be the last, so the log itself is the lock:
 * after a node has appended its epoch record, no other one can append what it had begun before.
 *
 * This file loads the client of NATS, so it is to be imported dynamically, and only if a cluster is configured.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { JetStreamApiError, type JetStreamManager, jetstreamManager, type StreamInfo } from '@nats-io/jetstream'
import type { NatsConnection } from '@nats-io/transport-node'
import { StorageError } from '../store.ts'
import { appendRecord, type NewRecord, natsReason } from './append.ts'
import { abortable, askAgain } from './asking.ts'
import { ANSWER_MS, connectNats } from './nats.ts'
import type { LogOptions } from './options.ts'
import { MAX_RECORD_BYTES } from './packing.ts'
import { type ReadEntry, readRecordAt, readRecords } from './read.ts'
import { boundsOf, LogStream, logOf, type StreamAccess, streamConfig, streamName, streamSubject } from './stream.ts'

export type { LogEntry } from './part.ts'

export interface LogBounds {
  /** The number of the log: 1, 2, 3 ...; 0 if there is none. */
  readonly log: number
  /** The sequence of the first message that it has; `last + 1` if it has none. */
  readonly first: number
  /** The sequence of the last message; 0 if there never was one. */
  readonly last: number
}

const NAME = /^[A-Za-z0-9_-]{1,64}$/
/** The wait before a request is made again. */
const RETRY_MS = 100
/** How long the nats-servers may take to make a stream: longer than they need to elect a leader. */
const CREATE_MS = 20_000
/** How long they may take to remove one. */
const REMOVE_MS = 5_000
/** How long the connection may take to show that it is good, or is not, before it is closed. */
const CLOSE_MS = 1_000
/** After so many times what an answer may take without any success another nats-server is tried: they may be electing before. */
const CUT_OFF_ANSWERS = 8
/** Replicas that their leader has heard of within this are there: they beat once a second. */
const HEARD_MS = 3_000

export class Log {
  readonly connection: NatsConnection
  readonly #options: LogOptions
  readonly #manager: JetStreamManager
  readonly #closing = new AbortController()
  #isConnected = true
  readonly #onConnect = new Set<() => void>()
  readonly #onDisconnect = new Set<() => void>()
  #stream: LogStream | undefined
  #obstacle: string | undefined
  /** Since when nothing has succeeded, and the last time that something has failed, in ms by a clock that only goes on. */
  #failsSince: number | undefined
  #failedAt = 0
  readonly #onObstacle = (obstacle: string | undefined): void => {
    this.#obstacle = obstacle
    this.#succeeded(obstacle === undefined)
  }

  private constructor(options: LogOptions, connection: NatsConnection, manager: JetStreamManager) {
    this.#options = options
    this.connection = connection
    this.#manager = manager
    void this.#watch()
  }

  /** Rejects with StorageError UNREACHABLE if no nats-server can be reached now. Once connected, it connects again by itself. */
  static async connect(options: LogOptions): Promise<Log> {
    const { cluster, node, timeoutMs = ANSWER_MS } = options
    const wrong = [cluster, node].find((name) => !NAME.test(name))
    if (wrong !== undefined)
      throw new StorageError(
        'IO',
        `"${wrong}" cannot be the name of a cluster or a node: letters, digits, - and _ can be in it`,
      )
    const connection = await connectNats(options, `cinnabar ${cluster} ${node}`)
    return new Log(options, connection, await jetstreamManager(connection, { timeout: timeoutMs, checkAPI: false }))
  }

  /** Why the log could not be appended to or read the last time, as a sentence for people; undefined if it could. */
  get obstacle(): string | undefined {
    return this.#isConnected ? this.#obstacle : 'there is no connection to a nats-server'
  }

  /** The newest log. Rejects with StorageError UNREACHABLE if no majority of its nats-servers answers in `timeoutMs`. */
  bounds(timeoutMs: number): Promise<LogBounds> {
    return this.#ask(timeoutMs, 'a majority of the nats-servers does not answer', () => this.#newest())
  }

  /**
   * Makes log `n`. Rejects with StorageError DEPOSED if it is there and has messages, because another node was faster, and with
   * UNREACHABLE or IO if it cannot be made. If two nodes make it at once, both succeed; the first record decides.
   */
  async create(n: number): Promise<void> {
    const { cluster, replicas, maxBytes, content } = this.#options
    const config = streamConfig(cluster, n, replicas, maxBytes, content)
    const info = await this.#ask(CREATE_MS, `the nats-servers do not make the stream ${config.name}`, () =>
      this.#manager.streams
        .add(config)
        .catch((error: unknown) => this.#existing(config.name, config.subjects[0], error)),
    )
    if (info.state.last_seq > 0) throw new StorageError('DEPOSED', `another node has founded log ${n} of the cluster`)
  }

  /**
   * Removes the logs before log `n`, which nobody reads any more: the nats-servers reserve room for each of them. Rejects with
   * StorageError UNREACHABLE if they do not answer in time.
   */
  async removeBefore(n: number): Promise<void> {
    const { cluster, content } = this.#options
    await this.#ask(REMOVE_MS, 'the nats-servers do not remove an old log', async () => {
      for (const log of await this.#numbers())
        if (log < n) await this.#manager.streams.delete(streamName(cluster, log, content))
    })
  }

  /**
   * Has the nats-servers choose another of them to lead log `n`: the one that leads it may have less of it than others. Rejects with
   * Error if that is refused, or not answered in time.
   */
  async move(n: number): Promise<void> {
    const { cluster, timeoutMs = ANSWER_MS, content } = this.#options
    const subject = `$JS.API.STREAM.LEADER.STEPDOWN.${streamName(cluster, n, content)}`
    const answer = await this.connection.request(subject, undefined, { timeout: timeoutMs })
    const { error } = answer.json<{ readonly error?: { readonly description?: string } }>()
    if (error !== undefined) throw new Error(error.description ?? 'the nats-servers refuse it')
  }

  /** Log `n` is the one that is appended to and read from now on. */
  open(n: number): void {
    this.#stream = new LogStream(this.#access, this.#options.cluster, n, this.#options.content)
  }

  /**
   * Appends a record, of at most 1 GiB and at most half of what the log holds, directly after the message `last`, and returns the
   * sequence of its last part. It is then stored on a majority. The sequence is higher than `last` plus the number of parts if a
   * leader that was deposed had parts on the way. While the nats-servers cannot be reached or have no majority, it is tried again,
   * until the signal is aborted or the log is closed.
   *
   * Rejects with StorageError: DEPOSED if another node has appended; FOREIGN if the log is shorter than it was; UNREACHABLE if it was
   * ended, IO if the nats-servers refuse the record. After DEPOSED the record is in the log only if
   * a node that has read it leads by now, and then it is found by following.
   */
  async append(record: NewRecord, last: number, signal: AbortSignal = this.#closing.signal): Promise<number> {
    const { node, maxBytes } = this.#options
    const limit = Math.min(MAX_RECORD_BYTES, maxBytes / 2)
    if (record.bytes.length > limit)
      throw new StorageError('IO', `a record has ${record.bytes.length} bytes, and the cluster's log takes ${limit}`)
    const whole = { ...record, node }
    try {
      return await appendRecord(this.#opened(), whole, last, signal, this.#onObstacle)
    } catch (error) {
      if (error instanceof StorageError) throw error
      throw new StorageError('UNREACHABLE', `a record may not be in the cluster's log: ${this.#end()}`, error)
    }
  }

  /**
   * The whole records after the message `after`, in order, and new ones as they come, until the signal is aborted. `after` is
   * the last part of a record, or 0. With `until` it ends after that message, also if no record ends there. Throws StorageError: BEHIND if the log no longer has message `after + 1`; FOREIGN if it is
   * shorter than `after`; TOO_NEW if a newer version has written a record; UNREACHABLE if the log is closed.
   */
  async *read(after: number, signal: AbortSignal, until?: number): AsyncGenerator<ReadEntry, void> {
    try {
      yield* readRecords(this.#opened(), after, signal, this.#onObstacle, until === undefined ? {} : { until })
    } catch (error) {
      if (error instanceof StorageError) throw error
      throw new StorageError('UNREACHABLE', `the cluster's log cannot be read: ${this.#end()}`, error)
    }
  }

  /**
   * The bytes of the record whose last part is this message; undefined if the log no longer has it, or not yet. Rejects with
   * StorageError: FOREIGN if no record ends there, UNREACHABLE if no majority of the nats-servers answers in `timeoutMs`.
   */
  recordAt(sequence: number, timeoutMs: number): Promise<Uint8Array | undefined> {
    const failure = 'a majority of the nats-servers does not answer'
    return this.#ask(timeoutMs, failure, () => readRecordAt(this.#opened(), sequence))
  }

  /** What is being appended or read is ended. */
  async close(): Promise<void> {
    this.#closing.abort()
    // The client stops listening to its socket when it is closed. If the server has just ended, an error of the socket that is
    // still to come would then be one that nobody catches; this brings it about before.
    await abortable(this.connection.flush(), AbortSignal.timeout(CLOSE_MS)).catch(() => {})
    await this.connection.close()
  }

  get #access(): StreamAccess {
    return {
      connection: this.connection,
      manager: this.#manager,
      connected: () => this.#connected(),
      onDisconnect: (callback) => {
        this.#onDisconnect.add(callback)
        return () => this.#onDisconnect.delete(callback)
      },
    }
  }

  async #watch(): Promise<void> {
    for await (const { type } of this.connection.status()) {
      if (type === 'disconnect') this.#connectionIs(false)
      else if (type === 'reconnect' || type === 'close') this.#connectionIs(true)
    }
  }

  #connectionIs(isConnected: boolean): void {
    this.#isConnected = isConnected
    for (const callback of isConnected ? this.#onConnect : this.#onDisconnect) callback()
  }

  /** A request without a connection may be lost, and its time has to pass before it is made again. That is the limit here too. */
  async #connected(): Promise<void> {
    if (this.#isConnected) return
    const connected = new AbortController()
    const stop = (): void => connected.abort()
    this.#onConnect.add(stop)
    await delay(this.#options.timeoutMs ?? ANSWER_MS, undefined, { signal: connected.signal }).catch(() => {})
    this.#onConnect.delete(stop)
  }

  /** Leaves a server that can be reached, and seems to be cut off from the others: another may not be. */
  #succeeded(isDone: boolean): void {
    const now = performance.now()
    const cutOffMs = CUT_OFF_ANSWERS * (this.#options.timeoutMs ?? ANSWER_MS)
    if (isDone || now - this.#failedAt > cutOffMs) this.#failsSince = undefined
    if (isDone) return
    this.#failedAt = now
    this.#failsSince ??= now
    if (now - this.#failsSince < cutOffMs || !this.#isConnected) return
    this.#failsSince = now
    this.connection.reconnect().catch(() => {})
  }

  #opened(): LogStream {
    if (this.#stream === undefined) throw new Error('no log is open')
    return this.#stream
  }

  /** Why a request to the log has no result. */
  #end(): string {
    return this.#closing.signal.aborted ? 'the log was closed' : 'this was ended before the nats-servers answered'
  }

  /** A stream that nobody has appended to is no log: whoever made it may have ended before its first record. */
  async #newest(): Promise<LogBounds> {
    const { cluster, content } = this.#options
    for (const log of await askAgain(() => this.#numbers())) {
      const info = await askAgain(() => this.#manager.streams.info(streamName(cluster, log, content)))
      const { first, last, majorityMs } = boundsOf(info)
      // A server that leads a stream and is cut off from the others answers for some seconds more.
      if (majorityMs >= HEARD_MS) throw new Error('the nats-server that leads the log does not hear a majority of them')
      if (last > 0) return { log, first, last }
    }
    return { log: 0, first: 1, last: 0 }
  }

  /** The numbers of all logs that there are, the newest first. */
  async #numbers(): Promise<number[]> {
    const { cluster, content } = this.#options
    const numbers: number[] = []
    for await (const name of this.#manager.streams.names(streamSubject(cluster, '*', content)))
      numbers.push(logOf(cluster, name, content))
    return numbers.filter((log) => log > 0).sort((one, other) => other - one)
  }

  /**
   * The stream that is there already, after a failure to make it: two nodes may make one at once, and nats-server then refuses one
   * of them for various reasons, such as subjects that overlap.
   */
  async #existing(name: string, subject: string, error: unknown): Promise<StreamInfo> {
    if (!(error instanceof JetStreamApiError)) throw error
    const info = await this.#manager.streams.info(name).catch(() => {
      throw error
    })
    if (info.state.last_seq > 0 || info.config.subjects.join() === subject) return info
    throw new StorageError(
      'IO',
      `there is an empty stream ${name} of another kind on the nats-servers: remove it there`,
    )
  }

  /** Asks until there is an answer. When the time is over, rejects with StorageError UNREACHABLE, whose message begins with `failure`. */
  async #ask<T>(timeoutMs: number, failure: string, question: () => Promise<T>): Promise<T> {
    const signal = AbortSignal.timeout(timeoutMs)
    let reason = `not within ${timeoutMs / 1_000} s`
    while (!signal.aborted && !this.#closing.signal.aborted) {
      try {
        await abortable(this.#connected(), signal)
        const answer = await abortable(question(), signal)
        this.#succeeded(true)
        return answer
      } catch (error) {
        if (error instanceof StorageError) throw error
        if (!signal.aborted) reason = natsReason(error)
        this.#succeeded(false)
      }
      await delay(RETRY_MS, undefined, { signal }).catch(() => {})
    }
    const message = this.#closing.signal.aborted ? 'the log was closed' : `${failure}: ${reason}`
    throw new StorageError('UNREACHABLE', message)
  }
}
