/**
 * One log, a stream of JetStream, as its two users need it: append.ts and read.ts. What is here asks once; they ask again. A
 * nats-server that was frozen or cut off may answer with an older state for some seconds, until it notices that it does not lead
 * the stream any more. So an answer that the log has a message is certain, and one that it does not is not.
 */
import {
  AckPolicy,
  type ConsumerMessages,
  DeliverPolicy,
  DiscardPolicy,
  JetStreamApiCodes,
  JetStreamApiError,
  type JetStreamClient,
  type JetStreamManager,
  ReplayPolicy,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
  type StreamInfo,
} from '@nats-io/jetstream'
import { type NatsConnection, nanos, nuid } from '@nats-io/transport-node'
import { abortable, askAgain } from './asking.ts'
import { MESSAGE_HEADER_BYTES } from './nats.ts'
import type { LogContent } from './options.ts'
import { partHeaders, partOf, type RecordPart } from './part.ts'

/** Larger messages gain nothing. It is a constant, so that all nodes make the same stream. */
const MAX_MESSAGE_BYTES = 2 ** 20
/** Messages that are read ahead, and when more are asked for. */
const READ_AHEAD = { max_messages: 16, threshold_messages: 8 } as const
/** A consumer that is silent for two of these is replaced by another. */
const HEARTBEAT_MS = 1_000
/** How long one request for messages is good. */
const PULL_MS = 10_000
/** How long nats-server keeps a consumer that nobody reads from. */
const FORGET_MS = 30_000

const NAMES = {
  database: { stream: 'CIN', subject: 'log' },
  history: { stream: 'CINH', subject: 'history' },
} as const

export const streamName = (cluster: string, log: number, content: LogContent = 'database'): string =>
  `${NAMES[content].stream}_${cluster}_${log}`

export const streamSubject = (cluster: string, log: number | '*', content: LogContent = 'database'): string =>
  `cin.${cluster}.${NAMES[content].subject}.${log}`

export function streamConfig(
  cluster: string,
  log: number,
  replicas: number,
  maxBytes: number,
  content: LogContent = 'database',
) {
  return {
    name: streamName(cluster, log, content),
    subjects: [streamSubject(cluster, log, content)],
    retention: RetentionPolicy.Limits,
    storage: StorageType.File,
    num_replicas: replicas,
    max_bytes: maxBytes,
    discard: DiscardPolicy.Old,
    max_msg_size: MAX_MESSAGE_BYTES,
    duplicate_window: nanos(100),
    deny_delete: true,
    allow_direct: true,
  } as const satisfies Partial<StreamConfig>
}

/** The number of the log that a stream is; 0 for a stream that is none of this cluster. */
export function logOf(cluster: string, name: string, content: LogContent = 'database'): number {
  const prefix = streamName(cluster, 0, content).slice(0, -1)
  const number = name.slice(prefix.length)
  return name.startsWith(prefix) && /^[1-9]\d{0,8}$/.test(number) ? Number(number) : 0
}

export interface StreamBounds {
  /** The sequence of the first message; `last + 1` if there is none. */
  readonly first: number
  readonly last: number
  /** How long ago the server that leads the stream has heard of so many others that they are a majority, in ms. */
  readonly majorityMs: number
}

export function boundsOf({ state, config, cluster }: StreamInfo): StreamBounds {
  const first = state.messages === 0 ? state.last_seq + 1 : state.first_seq
  const others = (cluster?.replicas ?? []).map(({ active, offline }) => (offline === true ? Infinity : active / 1e6))
  const needed = Math.floor(config.num_replicas / 2)
  const majorityMs = needed === 0 ? 0 : (others.sort((one, other) => one - other)[needed - 1] ?? Infinity)
  return { first, last: state.last_seq, majorityMs }
}

export interface StreamMessage {
  readonly sequence: number
  /** Undefined for a message that is no part of a record. */
  readonly part: RecordPart | undefined
  readonly data: Uint8Array
  /** How many messages were still to come when it was sent, if that is known. */
  readonly pending?: number
}

/** What streams are used through. */
export interface StreamAccess {
  readonly connection: NatsConnection
  readonly manager: JetStreamManager
  /** Resolves when there is a connection, or after a while in any case. */
  connected(): Promise<void>
  /** Calls back when the connection is lost, until the function that it returns is called. */
  onDisconnect(callback: () => void): () => void
}

export class LogStream {
  readonly name: string
  readonly #subject: string
  readonly #access: StreamAccess
  readonly #client: JetStreamClient

  constructor(access: StreamAccess, cluster: string, log: number, content: LogContent = 'database') {
    this.name = streamName(cluster, log, content)
    this.#subject = streamSubject(cluster, log, content)
    this.#access = access
    this.#client = access.manager.jetstream()
  }

  /** The largest part of a record, in bytes, for the server of the present connection. */
  get partBytes(): number {
    const { max_payload: most = MAX_MESSAGE_BYTES } = this.#access.connection.info ?? {}
    return Math.max(MESSAGE_HEADER_BYTES, Math.min(most, MAX_MESSAGE_BYTES) - MESSAGE_HEADER_BYTES)
  }

  /** Undefined if the nats-servers know no such stream. */
  async bounds(): Promise<StreamBounds | undefined> {
    try {
      return boundsOf(await this.#answer(() => askAgain(() => this.#access.manager.streams.info(this.name))))
    } catch (error) {
      if (error instanceof JetStreamApiError && error.code === JetStreamApiCodes.StreamNotFound) return undefined
      throw error
    }
  }

  /** The message with this sequence, from the server that leads the stream; undefined if there is none. */
  async message(sequence: number): Promise<StreamMessage | undefined> {
    const { streams } = this.#access.manager
    const found = await this.#answer(() => askAgain(() => streams.getMessage(this.name, { seq: sequence })))
    return found === null ? undefined : { sequence, part: partOf(found.header), data: found.data }
  }

  /** Sends a message that must come directly after `last`. Whether it is there now; any error means that nobody knows. */
  async publish(part: RecordPart, data: Uint8Array, last: number): Promise<boolean> {
    const options = { headers: partHeaders(part), expect: { lastSequence: last, streamName: this.name } }
    const ack = await this.#answer(() => this.#client.publish(this.#subject, data, options))
    return ack.stream === this.name && ack.seq === last + 1 && !ack.duplicate
  }

  /**
   * The messages from a sequence on, or from the first one if that is later, and new ones as they come. Ends when the signal
   * is aborted, and when the consumer may have to be replaced: messages may then be missing, and the caller begins again.
   */
  async *messages(from: number, signal: AbortSignal): AsyncGenerator<StreamMessage> {
    const config = {
      name: nuid.next(),
      ack_policy: AckPolicy.None,
      deliver_policy: DeliverPolicy.StartSequence,
      opt_start_seq: from,
      replay_policy: ReplayPolicy.Instant,
      inactive_threshold: nanos(FORGET_MS),
      mem_storage: true,
      num_replicas: 1,
      max_deliver: 1,
    }
    const { consumers } = this.#access.manager
    // It has a name, so that all of these are one consumer. Whoever ends this does not wait for a nats-server to answer.
    const made = this.#answer(() => askAgain(() => consumers.add(this.name, config)))
    const info = await abortable(made, signal)
    const consumer = this.#client.consumers.getConsumerFromInfo(info)
    const messages = await consumer.consume({ ...READ_AHEAD, expires: PULL_MS, idle_heartbeat: HEARTBEAT_MS })
    const stop = (): void => messages.stop()
    signal.addEventListener('abort', stop)
    const forget = this.#access.onDisconnect(stop)
    void stopIfGone(messages)
    try {
      if (signal.aborted) return
      for await (const message of messages)
        yield {
          sequence: message.seq,
          part: partOf(message.headers),
          data: message.data,
          pending: message.info.pending,
        }
    } finally {
      forget()
      signal.removeEventListener('abort', stop)
      messages.stop()
      // Otherwise the nats-server forgets it in time.
      consumer.delete().catch(() => {})
    }
  }

  /** Asks when there is a connection. Rejects as soon as that is lost, since then hardly an answer comes. */
  async #answer<T>(ask: () => Promise<T>): Promise<T> {
    await this.#access.connected()
    return new Promise((resolve, reject) => {
      const forget = this.#access.onDisconnect(() => reject(new Error('the connection to a nats-server was lost')))
      ask().then(resolve, reject).finally(forget)
    })
  }
}

/** What the client reports while nothing is wrong. Anything else, and another consumer is quicker than waiting for this one. */
const USUAL: ReadonlySet<string> = new Set(['next', 'heartbeat', 'discard', 'debug'])

async function stopIfGone(messages: ConsumerMessages): Promise<void> {
  for await (const { type } of messages.status()) if (!USUAL.has(type)) messages.stop()
}
