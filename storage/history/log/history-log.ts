/**
 * The log that the histories of a cluster share, a stream beside that of the database: whoever leads appends what it does to its
 * history, and everybody applies it. That only one node appends follows from the log, as for the database: each record names the
 * sequence that it expects, and who has led in a later epoch is never followed by who has led before.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { abortable } from '../../replicated/asking.ts'
import { Log, type LogBounds, type LogEntry } from '../../replicated/log.ts'
import { type LogPlace, NO_RECORD_HASH } from '../../replicated/place.ts'
import { recordHash } from '../../replicated/record.ts'
import { StorageError } from '../../store.ts'
import type { History } from '../history.ts'
import type { HistoryLead, HistoryLogOptions } from '../store.ts'
import { HistoryApplier } from './applier.ts'
import { HistoryCopySender } from './copy.ts'
import { encodeHistoryRecord, type HistoryOperation } from './record.ts'

/** How long the nats-servers may take to answer. */
const BOUNDS_MS = 10_000
/** How often who follows looks whether the log was founded anew. */
const LOOK_MS = 5_000
/** What takes this node longer before it leads is reported. */
const SLOW_MS = 5_000
/** The wait after a failure, and until there is a log. */
const AGAIN_MS = 1_000
/** As for the log of the database. */
const SHORTER_TIMES = 15
/** Epochs of one log of the database. */
const EPOCHS = 1e9
const TAKE_NOTHING = 'the nats-servers take no record of the history: a majority of them is needed'

export interface HistoryLogParts {
  readonly history: History
  /** Milliseconds since 1970. */
  readonly wallMs: () => number
  /** Aborted when the log is not wanted any more. */
  readonly signal: AbortSignal
  /** Reported when that changes: why this node cannot go on now, as a sentence; empty if it can. */
  readonly report: (problem: string) => void
  /** Whether what this node has missed is a loss when it follows; otherwise `follow` rejects with MissingRecords. Default true. */
  readonly isLost?: boolean
  /** Everything is applied that the log had when it began to be read. */
  readonly reached?: () => void
  /** How often a log has to seem shorter than it was, a second apart, before that is believed. Default 15. */
  readonly shorterTimes?: number
}

export class HistoryLog {
  readonly #log: Log
  readonly #parts: HistoryLogParts
  readonly #applier: HistoryApplier
  #copies: HistoryCopySender | undefined
  #problem = ''
  /** Why this node does not lead yet. */
  #step = ''
  #epoch = 0
  /** The sequence of the last message, and the hash of the last record, while this node leads. */
  #last = 0
  #hash: Uint8Array = NO_RECORD_HASH

  private constructor(log: Log, parts: HistoryLogParts) {
    this.#log = log
    this.#parts = parts
    const { history, wallMs, signal, isLost = true } = parts
    // Whoever leads goes on with what there is.
    this.#applier = new HistoryApplier(history, wallMs, signal, () => isLost || this.#epoch > 0)
  }

  /** Rejects with StorageError UNREACHABLE if no nats-server can be reached now, and when the signal is aborted. */
  static async connect(options: HistoryLogOptions, parts: HistoryLogParts): Promise<HistoryLog> {
    return new HistoryLog(await abortable(Log.connect({ ...options, content: 'history' }), parts.signal), parts)
  }

  async close(): Promise<void> {
    this.#copies?.stop()
    await this.#log.close()
  }

  /** Has other nodes fetch copies of the history from here. */
  sendCopies(cluster: string, directory: string): void {
    this.#copies = new HistoryCopySender(this.#log, cluster, directory, this.#parts.history)
  }

  /** Applies what the log has, and what comes, until the signal is aborted. Rejects with StorageError if this history cannot. */
  async follow(): Promise<void> {
    const { signal } = this.#parts
    while (!signal.aborted) {
      try {
        const bounds = await this.#log.bounds(BOUNDS_MS)
        this.#report('')
        if (bounds.log > 0) await this.#read(bounds)
      } catch (error) {
        if (signal.aborted) return
        if (!isPassing(error)) throw error
        this.#report(error.message)
      }
      await delay(AGAIN_MS, undefined, { signal }).catch(() => {})
    }
  }

  /**
   * Applies the log to its end, and begins an epoch of this node: from then on no other one can append that has led before. Rejects
   * with StorageError, DEPOSED if a node has led in a later epoch.
   */
  async lead({ log, epoch }: HistoryLead): Promise<void> {
    this.#epoch = log * EPOCHS + epoch
    const slow = setTimeout(() => this.#report(this.#step), SLOW_MS)
    try {
      await this.#beginToLead()
    } finally {
      clearTimeout(slow)
    }
    this.#report('')
  }

  /** What is done before this node leads: it is reported if that takes long. */
  #nowDoes(step: string): void {
    this.#step = step
    if (this.#problem !== '') this.#report(step)
  }

  async #beginToLead(): Promise<void> {
    const { signal } = this.#parts
    this.#nowDoes("the nats-servers are asked for the history's log")
    const bounds = await this.#boundsToLead()
    if (this.#isWhole(bounds)) {
      this.#nowDoes("what is missing here of the history's log is applied first")
      await this.#read(bounds, bounds.last)
    } else await this.#found(bounds.log)
    const { place } = this.#applier
    if ((place?.epoch ?? 0) > this.#epoch)
      throw new StorageError('DEPOSED', 'another node leads, and records the history')
    signal.throwIfAborted()
    this.#last = place?.sequence ?? 0
    this.#hash = place?.hash ?? NO_RECORD_HASH
    this.#nowDoes(TAKE_NOTHING)
    // Twice, as for the log of the database: a nats-server 2.9 may have kept a record in the place of the first.
    for (const isRepeated of [false, true]) await this.#appendEpoch(isRepeated)
  }

  /**
   * Appends what is done, and gives the place that the history has with it. Rejects with StorageError, as `Log.append`; until the
   * signal is aborted it is tried again.
   */
  async append(operations: readonly HistoryOperation[]): Promise<LogPlace> {
    const wallMs = this.#parts.wallMs()
    const bytes = encodeHistoryRecord({ previous: this.#hash, wallMs, base: undefined, operations })
    const record = { kind: 'batch', epoch: this.#epoch, bytes } as const
    this.#last = await this.#log.append(record, this.#last, this.#parts.signal)
    this.#hash = recordHash(bytes)
    return { log: this.#applier.log, epoch: this.#epoch, sequence: this.#last, hash: this.#hash }
  }

  /** A nats-server that has just begun to lead the log may still be applying it: one that seems to lack something is asked again. */
  async #boundsToLead(): Promise<LogBounds> {
    const { signal, shorterTimes = SHORTER_TIMES } = this.#parts
    let bounds = await this.#log.bounds(BOUNDS_MS)
    if (!this.#isWhole(bounds))
      this.#nowDoes("the history's log seems to lack something that this node has; it is asked for again")
    for (let times = 1; !this.#isWhole(bounds) && this.#applier.place !== undefined && times < shorterTimes; times++) {
      await delay(AGAIN_MS, undefined, { signal })
      bounds = await this.#log.bounds(BOUNDS_MS)
    }
    return bounds
  }

  /** Whether the log is as long as this history knows it; otherwise another has to be founded. `#isForeign` compares what it has. */
  #isWhole({ log, last }: LogBounds): boolean {
    const { place } = this.#applier
    return log > 0 && (place === undefined || log > place.log || (log === place.log && last >= place.sequence))
  }

  /** Makes the next log, which begins with this history. */
  async #found(newest: number): Promise<void> {
    const { place: base } = this.#applier
    const number = Math.max(newest, base?.log ?? 0) + 1
    this.#nowDoes(TAKE_NOTHING)
    await this.#log.removeBefore(number).catch(() => {})
    await this.#log.create(number)
    this.#log.open(number)
    this.#applier.begin({ log: number, first: 1, last: 0 })
    this.#last = 0
    this.#hash = NO_RECORD_HASH
    await this.#appendEpoch(false, base)
  }

  async #appendEpoch(isRepeated: boolean, base?: LogPlace): Promise<void> {
    const { wallMs, signal } = this.#parts
    const bytes = encodeHistoryRecord({ previous: this.#hash, wallMs: wallMs(), base, operations: [] })
    const epoch = this.#epoch
    this.#last = await this.#log.append({ kind: 'epoch', epoch, bytes, isRepeated }, this.#last, signal)
    this.#hash = recordHash(bytes)
    await this.#applier.apply({ kind: 'epoch', epoch, node: '', bytes, sequence: this.#last })
  }

  /** Applies what comes, up to a message if one is given. Without one, also until another log is there. */
  async #read(bounds: LogBounds, until?: number): Promise<void> {
    this.#log.open(bounds.log)
    let after = this.#applier.begin(bounds, await this.#isForeign(bounds))
    if (after >= bounds.last) this.#parts.reached?.()
    for (;;) {
      const ended = new AbortController()
      const signal = AbortSignal.any([this.#parts.signal, ended.signal])
      if (until === undefined) void this.#lookForNewer(bounds.log, ended, signal)
      try {
        if (until !== undefined && after >= until) return
        if (await this.#applyAll(this.#log.read(after, signal, until), bounds.last)) return
        after = this.#applier.beginAgain(bounds)
      } finally {
        ended.abort()
      }
    }
  }

  /**
   * Whether the log has another record at the place of this history: it is another log of the same number, founded by a node that did
   * not know this one. Rejects with StorageError UNREACHABLE.
   */
  async #isForeign({ log, last }: LogBounds): Promise<boolean> {
    const { place } = this.#applier
    if (place?.log !== log || last < place.sequence) return false
    try {
      const bytes = await this.#log.recordAt(place.sequence, BOUNDS_MS)
      // Undefined: it has gone from the log.
      return bytes !== undefined && Buffer.compare(recordHash(bytes), place.hash) !== 0
    } catch (error) {
      if (error instanceof StorageError && error.code === 'FOREIGN') return true
      throw error
    }
  }

  /** Returns false at a record that does not follow the one before it here. */
  async #applyAll(entries: AsyncIterable<LogEntry>, last: number): Promise<boolean> {
    for await (const entry of entries) {
      if (this.#parts.signal.aborted) return true
      if (!(await this.#applier.apply(entry))) return false
      if (entry.sequence === last) this.#parts.reached?.()
    }
    return true
  }

  async #lookForNewer(number: number, ended: AbortController, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await delay(LOOK_MS, undefined, { signal }).catch(() => {})
      if (signal.aborted) return
      const { log } = await this.#log.bounds(BOUNDS_MS).catch(() => ({ log: number }))
      if (log > number) ended.abort()
    }
  }

  #report(problem: string): void {
    if (problem === this.#problem) return
    this.#problem = problem
    this.#parts.report(problem)
  }
}

/** Whether it may be otherwise later: the nats-servers answer again, another node founds a log, or this node is upgraded. */
function isPassing(error: unknown): error is StorageError {
  return error instanceof StorageError && ['UNREACHABLE', 'FOREIGN', 'BEHIND', 'TOO_NEW'].includes(error.code)
}
