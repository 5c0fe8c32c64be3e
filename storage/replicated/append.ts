/**
 * Appends one record to a log. Each part says which sequence it expects to be the last one, which every replica of the stream
 * checks when the part is applied: so of two nodes that append, one gets through. Several parts are on the way at once.
 *
 * If the outcome of a part is not known, the log itself is asked. Everything may still be on the way then, for as long as a
 * nats-server is frozen; it does no harm, since the sequence that it expects will have passed.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { JetStreamApiError } from '@nats-io/jetstream'
import { errors, nuid, RequestError } from '@nats-io/transport-node'
import { StorageError } from '../store.ts'
import { abortable } from './asking.ts'
import { packRecord } from './packing.ts'
import type { RecordKind, RecordPart } from './part.ts'
import type { LogStream } from './stream.ts'

/** With parts of nearly 1 MiB more gain nothing. */
const PARTS_IN_FLIGHT = 8
/** The wait before the log is asked again. */
const RETRY_MS = 100
/**
 * How often a log has to seem shorter than it was before that is believed, and the wait between. A nats-server that no longer
 * leads the stream notices that within ten seconds.
 */
const SHORTER_TIMES = 15
export const SHORTER_MS = 1_000

const ALONE = 'a record was sent, and the nats-server that leads the log has not heard from a majority since'
/** The message is too large; the subject belongs to another stream. */
const FINAL_CODES = [10_054, 10_060]

/** What a node appends. */
export interface NewRecord {
  readonly kind: RecordKind
  readonly epoch: number
  readonly bytes: Uint8Array
  /** An epoch record, and this node has appended one of the same epoch before it. */
  readonly isRepeated?: boolean
}

export interface AppendedRecord extends NewRecord {
  readonly node: string
}

/**
 * Appends a record directly after `last`, and returns the sequence of its last part. See Log.append; `onObstacle` is told why
 * it does not get on, and that it does.
 */
export async function appendRecord(
  stream: LogStream,
  record: AppendedRecord,
  last: number,
  signal: AbortSignal,
  onObstacle: (obstacle: string | undefined) => void,
): Promise<number> {
  signal.throwIfAborted()
  const append = new Append(stream, record, last, signal, onObstacle)
  return append.run()
}

class Append {
  readonly #stream: LogStream
  readonly #signal: AbortSignal
  readonly #onObstacle: (obstacle: string | undefined) => void
  readonly #record: AppendedRecord
  readonly #id = nuid.next()
  readonly #format: number
  readonly #parts: readonly Uint8Array[]
  /** The sequence before part 1, and how many parts certainly follow it in the log. */
  #last: number
  #placed = 0
  /** When it became unknown whether a part that was sent had arrived, in ms by a clock that only goes on. */
  #unknownAt = Number.NEGATIVE_INFINITY
  readonly #shorter = new ShorterLog()

  constructor(
    stream: LogStream,
    record: AppendedRecord,
    last: number,
    signal: AbortSignal,
    onObstacle: (obstacle: string | undefined) => void,
  ) {
    this.#stream = stream
    this.#record = record
    this.#last = last
    this.#signal = signal
    this.#onObstacle = onObstacle
    const { format, bytes } = packRecord(record.bytes)
    this.#format = format
    this.#parts = divide(bytes, stream.partBytes)
  }

  async run(): Promise<number> {
    await abortable(this.#send(), this.#signal)
    while (this.#placed < this.#parts.length) {
      if (await this.#lookUp()) await abortable(this.#send(), this.#signal)
      else await delay(this.#shorter.isSeen ? SHORTER_MS : RETRY_MS, undefined, { signal: this.#signal })
    }
    this.#onObstacle(undefined)
    return this.#last + this.#placed
  }

  /** Sends the parts that are not placed, until one fails; then waits for those on the way. */
  async #send(): Promise<void> {
    let next = this.#placed
    let isWhole = true
    const onTheWay: Promise<boolean | StorageError>[] = []
    for (;;) {
      const goesOn = isWhole && !this.#signal.aborted
      while (goesOn && next < this.#parts.length && onTheWay.length < PARTS_IN_FLIGHT) {
        onTheWay.push(this.#publish(next))
        next++
      }
      const outcome = await onTheWay.shift()
      if (outcome === undefined) return
      if (outcome instanceof StorageError) throw outcome
      isWhole &&= outcome
      if (isWhole) this.#placed++
    }
  }

  /** Whether the part is in its place; false if that is not known. */
  async #publish(index: number): Promise<boolean | StorageError> {
    const { kind, epoch, node } = this.#record
    const [format, record, count] = [this.#format, this.#id, this.#parts.length]
    const part = { format, kind, epoch, node, record, index: index + 1, count }
    try {
      return await this.#stream.publish(part, this.#parts[index]!, this.#last + index)
    } catch (error) {
      if (!isUntaken(error)) this.#unknownAt = performance.now()
      this.#obstacle(error)
      return finalError(error) ?? false
    }
  }

  /**
   * Asks the log what it has of the record. True: the rest can be sent. False: nobody knows yet. Rejects with StorageError
   * DEPOSED if another node has appended, and FOREIGN if the log is shorter than it was.
   */
  async #lookUp(): Promise<boolean> {
    try {
      const askedAt = performance.now()
      const bounds = await abortable(this.#stream.bounds(), this.#signal)
      const end = this.#last + this.#placed
      if (!this.#shorter.reaches(bounds?.last, end)) return false
      if (bounds!.last > end) await this.#compare(end + 1, bounds!.last)
      // A server that is cut off takes what is sent again beside what it has: in NATS 2.9 both may come to stay there.
      const isKnown = this.#placed === this.#parts.length || bounds!.majorityMs <= askedAt - this.#unknownAt
      if (!isKnown) throw new Error(ALONE)
      return true
    } catch (error) {
      if (error instanceof StorageError || error instanceof errors.ClosedConnectionError || this.#signal.aborted)
        throw error
      this.#obstacle(error)
      return false
    }
  }

  /** Reads what follows the parts that are known to be placed. */
  async #compare(from: number, to: number): Promise<void> {
    let isBroken = false
    for (let sequence = from; sequence <= to; sequence++) {
      const message = await abortable(this.#stream.message(sequence), this.#signal)
      if (message === undefined) throw new Error(`nats-server does not find message ${sequence}`)
      const { part } = message
      const isMine = part?.record === this.#id
      if (isMine && !isBroken && part.index === this.#placed + 1) this.#placed++
      else if (this.#placed === this.#parts.length) {
        // Whether it is still there for the others is found by following. docs/protocol/replicated-log.md
        if (part !== undefined && part.epoch > this.#record.epoch) throw new StorageError('DEPOSED', deposed(part))
        return
      } else if (isMine || this.#isVoid(part)) isBroken = true
      else throw new StorageError('DEPOSED', deposed(part))
    }
    if (!isBroken || this.#placed === this.#parts.length) return
    this.#last = to
    this.#placed = 0
  }

  /**
   * Whether a message is void for every reader: parts that a leader had on the way when this one began, each of which expected
   * the one before, so that all but the first may come after the epoch record of this one. The record has to begin again after
   * them.
   */
  #isVoid(part: RecordPart | undefined): boolean {
    const { kind, isRepeated = false } = this.#record
    if (kind === 'epoch' && !isRepeated) return false
    return part === undefined || (part.kind === 'batch' && part.index > 1 && part.epoch < this.#record.epoch)
  }

  #obstacle(error: unknown): void {
    this.#onObstacle(`the cluster's log cannot be appended to: ${natsReason(error)}`)
  }
}

function divide(bytes: Uint8Array, partBytes: number): Uint8Array[] {
  const count = Math.max(1, Math.ceil(bytes.length / partBytes))
  return Array.from({ length: count }, (_, index) => bytes.subarray(index * partBytes, (index + 1) * partBytes))
}

/** Sending again cannot help. */
function finalError(error: unknown): StorageError | undefined {
  const cause = error instanceof RequestError ? error.cause : error
  const isFinal =
    cause instanceof errors.PermissionViolationError ||
    cause instanceof errors.InvalidArgumentError ||
    (cause instanceof JetStreamApiError && FINAL_CODES.includes(cause.code))
  return isFinal
    ? new StorageError('IO', `the nats-servers refuse a record of the cluster's log: ${natsReason(cause)}`, error)
    : undefined
}

/** Whether nobody has taken a request: without a majority nobody serves the subjects of JetStream. */
function isUntaken(error: unknown): boolean {
  const { message } = error instanceof Error ? error : { message: String(error) }
  return message === 'jetstream is not enabled' || message.startsWith('no responders')
}

/** Why a request to the nats-servers failed, for people. */
export function natsReason(error: unknown): string {
  const { message } = error instanceof Error ? error : { message: String(error) }
  if (message === 'timeout') return 'no nats-server has answered in time'
  if (isUntaken(error)) return 'the nats-servers have no leader for it now, or JetStream is not enabled there'
  return message
}

/** Judges answers that the log is shorter than it was. */
export class ShorterLog {
  #times = 0
  #last: number | undefined

  get isSeen(): boolean {
    return this.#times > 0
  }

  /**
   * Whether the log reaches the message `known`; `last` is undefined if the nats-servers do not know the log. Throws StorageError
   * FOREIGN if it has not done so for long, and does not grow: a server that has just begun to lead may still be applying.
   */
  reaches(last: number | undefined, known: number): boolean {
    const isThere = last !== undefined && last >= known
    this.#times = isThere ? 0 : (last ?? 0) > (this.#last ?? 0) ? 1 : this.#times + 1
    this.#last = last
    if (this.#times < SHORTER_TIMES) return isThere
    const found =
      last === undefined ? `the nats-servers no longer know the cluster's log` : `the cluster's log ends at ${last}`
    throw new StorageError(
      'FOREIGN',
      `${found}, but had a record at ${known} before: the nats-servers have lost what they had stored. See docs/cluster.md`,
    )
  }
}

function deposed(part: RecordPart | undefined): string {
  if (part === undefined) return 'a message in the log is from nobody who is known'
  return `node ${part.node} has appended to the log in epoch ${part.epoch}`
}
