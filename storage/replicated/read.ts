/** Reads the records of a log in order, through restarts of nats-servers, and notices if some are missing. */
import { setTimeout as delay } from 'node:timers/promises'
import { errors } from '@nats-io/transport-node'
import { StorageError } from '../store.ts'
import { natsReason, SHORTER_MS, ShorterLog } from './append.ts'
import { abortable } from './asking.ts'
import { checkFormat, unpackRecord } from './packing.ts'
import { Assembler, type LogEntry } from './part.ts'
import type { LogStream, StreamMessage } from './stream.ts'

/** The wait before a consumer is made again. */
const RETRY_MS = 200
/** How often a message may fail to come before it counts as lost. */
const GAPS = 5
/** Without a message, before the log is asked. */
const IDLE_MS = 4_000

/** A record as it is read. */
export interface ReadEntry extends LogEntry {
  /** The sequence of the log's last message when this one came, as far as known. */
  readonly last: number
}

/** What is read of a stream. */
export type ReadableStream = Pick<LogStream, 'bounds' | 'messages'>

export interface ReadOptions {
  /** The message after which it ends. */
  readonly until?: number
  /** After so long without a message the log is asked if it has more. */
  readonly idleMs?: number
}

/** See Log.read; `onObstacle` is told why it does not get on, and that it does. */
export function readRecords(
  stream: ReadableStream,
  after: number,
  signal: AbortSignal,
  onObstacle: (obstacle: string | undefined) => void,
  { until = Number.POSITIVE_INFINITY, idleMs = IDLE_MS }: ReadOptions = {},
): AsyncGenerator<ReadEntry, void> {
  return new Reading(stream, after, signal, onObstacle, idleMs).records(until)
}

class Reading {
  readonly #stream: ReadableStream
  readonly #signal: AbortSignal
  readonly #idleMs: number
  readonly #onObstacle: (obstacle: string | undefined) => void
  readonly #assembler = new Assembler()
  readonly #shorter = new ShorterLog()
  /** The sequence of the next message. */
  #next: number
  /** Whether that is waited for; otherwise somebody is busy with the record before. */
  #isWaiting = false
  #gaps = 0

  constructor(
    stream: ReadableStream,
    after: number,
    signal: AbortSignal,
    onObstacle: (obstacle: string | undefined) => void,
    idleMs: number,
  ) {
    this.#stream = stream
    this.#idleMs = idleMs
    this.#next = after + 1
    this.#signal = signal
    this.#onObstacle = onObstacle
  }

  async *records(until: number): AsyncGenerator<ReadEntry, void> {
    while (!this.#signal.aborted) {
      try {
        if (!(await this.#isThere())) {
          await delay(SHORTER_MS, undefined, { signal: this.#signal })
          continue
        }
        this.#onObstacle(undefined)
        for await (const { sequence, part, data, pending = 0 } of this.#messages()) {
          // The server may begin earlier, if it does not have the message yet.
          if (sequence < this.#next) continue
          this.#gaps = sequence === this.#next ? 0 : this.#gaps + 1
          if (this.#gaps > 0) break
          this.#next++
          this.#isWaiting = false
          const entry = this.#assembler.take(sequence, part, data)
          if (entry !== undefined) yield { ...entry, last: sequence + pending }
          if (sequence >= until) return
          this.#isWaiting = true
        }
      } catch (error) {
        if (error instanceof StorageError || error instanceof errors.ClosedConnectionError) throw error
        if (!this.#signal.aborted) this.#onObstacle(`the cluster's log cannot be read: ${natsReason(error)}`)
      }
      await delay(RETRY_MS, undefined, { signal: this.#signal }).catch(() => {})
    }
  }

  /** Whether the log has everything before the next message. Rejects if it no longer has that one. */
  async #isThere(): Promise<boolean> {
    const bounds = await abortable(this.#stream.bounds(), this.#signal)
    if (!this.#shorter.reaches(bounds?.last, this.#next - 1)) return false
    const { first } = bounds!
    if (first > this.#next || this.#gaps === GAPS) throw new StorageError('BEHIND', missing(this.#next, first))
    return true
  }

  /** Messages as they come, until others may come from another server. */
  async *#messages(): AsyncGenerator<StreamMessage, void> {
    const ended = new AbortController()
    const end = (): void => ended.abort()
    this.#signal.addEventListener('abort', end)
    this.#isWaiting = true
    void this.#compare(ended)
    try {
      yield* this.#stream.messages(this.#next, ended.signal)
    } finally {
      this.#signal.removeEventListener('abort', end)
      end()
    }
  }

  /** A replica may have stopped where it is, and still serve a consumer as if nothing came. So the log is asked meanwhile. */
  async #compare(ended: AbortController): Promise<void> {
    const { signal } = ended
    while (!signal.aborted) {
      const next = this.#next
      await delay(this.#idleMs, undefined, { signal }).catch(() => {})
      const isIdle = (): boolean => this.#isWaiting && this.#next === next
      if (signal.aborted || !isIdle()) continue
      const bounds = await this.#stream.bounds().catch(() => undefined)
      if (bounds !== undefined && bounds.last >= next && isIdle()) ended.abort()
    }
  }
}

function missing(next: number, first: number): string {
  return first > next
    ? `the cluster's log begins at ${first}, and this node needs it from ${next} on: copy the database of another node`
    : `the nats-servers do not have message ${next} of the cluster's log: copy the database of another node`
}

/**
 * The bytes of the record whose last part is this message; undefined if the log no longer has it, or does not have it yet.
 * Rejects with StorageError: FOREIGN if no record ends there, TOO_NEW if a newer version has written it, BEHIND if it cannot be unpacked.
 */
export async function readRecordAt(stream: LogStream, sequence: number): Promise<Uint8Array | undefined> {
  const last = await stream.message(sequence)
  if (last === undefined) return undefined
  const { part } = last
  if (part === undefined || part.index < part.count)
    throw new StorageError('FOREIGN', `no record of the cluster's log ends with its message ${sequence}`)
  checkFormat(part.format, part.node)
  const parts = [last.data]
  for (let before = 1; before < part.count; before++) {
    const message = await stream.message(sequence - before)
    if (message === undefined) return undefined
    parts.unshift(message.data)
  }
  return unpackRecord({ format: part.format, bytes: Buffer.concat(parts) }, sequence)
}
