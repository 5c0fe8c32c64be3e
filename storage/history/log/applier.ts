/**
 * Applies the records of the log to a history, in order. Each names the hash of the one before, so that it is known what is missing:
 * a history that does not have that one goes on with what there is, and states the time between as a loss.
 */
import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises'
import { RecordError } from '../../replicated/codec.ts'
import type { LogBounds, LogEntry } from '../../replicated/log.ts'
import { type LogPlace, NO_RECORD_HASH } from '../../replicated/place.ts'
import { recordHash } from '../../replicated/record.ts'
import { StorageError } from '../../store.ts'
import type { History } from '../history.ts'
import type { HistoryLoss } from '../store.ts'
import { decodeHistoryRecord, type HistoryOperation, type HistoryRecord } from './record.ts'
import { TextReferences } from './series-texts.ts'

/** What was applied last is applied once more if the log has something else there: that changes nothing but what was wrong. */
const AGAIN_MESSAGES = 1_000
/** Until a full disk is tried again. */
const ROOM_MS = 1_000
const MISSED = 'records of the cluster that this node has missed, or cannot read'

/** The log begins after what this history has: a copy of another history has what is between. */
export class MissingRecords extends Error {
  override readonly name = 'MissingRecords'

  constructor() {
    super("the history's log begins after what this node has")
  }
}

export class HistoryApplier {
  readonly #history: History
  readonly #references: TextReferences
  readonly #wallMs: () => number
  readonly #signal: AbortSignal
  /** The number of the log. */
  #log = 0
  /** The next record may follow any other, */
  #isFirst = false
  /** and what was between may be missing. */
  #mayMiss = false
  /** Whether what is missing at the beginning is a loss: otherwise nothing is applied. */
  readonly #isLost: () => boolean
  /** The last record before which it began again. */
  #again = 0

  /** `signal`: aborted when nothing more is to be applied. `isLost`: whether what is missing before the log is a loss; otherwise MissingRecords. */
  constructor(history: History, wallMs: () => number, signal: AbortSignal, isLost: () => boolean = () => true) {
    this.#history = history
    this.#references = new TextReferences(history)
    this.#wallMs = wallMs
    this.#signal = signal
    this.#isLost = isLost
  }

  get log(): number {
    return this.#log
  }

  get place(): LogPlace | undefined {
    return this.#history.log.place
  }

  /** The sequence of the last record of this log that the history has; 0 if it has none. */
  get sequence(): number {
    return this.place?.log === this.#log ? this.place.sequence : 0
  }

  /**
   * Begins with the log, and returns the message after which it is to be read. `isForeign`: it is another one than that of the same
   * number which this history has records of.
   */
  begin({ log, first }: LogBounds, isForeign = false): number {
    if (log !== this.#log || isForeign) this.#again = 0
    this.#log = log
    const sequence = isForeign ? 0 : this.sequence
    this.#isFirst = sequence === 0 || sequence + 1 < first
    this.#mayMiss = this.#isFirst
    return this.#isFirst ? first - 1 : sequence
  }

  /** The log has another record where this history is: returns the message after which it is to be read again. */
  beginAgain({ first }: LogBounds): number {
    this.#isFirst = true
    this.#mayMiss = false
    return Math.max(first - 1, this.sequence - AGAIN_MESSAGES)
  }

  /**
   * Returns false, and does nothing, if the record does not follow what the history has: then it is to begin again. A record that does
   * not follow after that either follows none that the log has: what is missing before it is a loss. Rejects with StorageError.
   */
  async apply(entry: LogEntry): Promise<boolean> {
    const record = readable(entry)
    if (record === undefined) this.#lose(this.#wallMs())
    else {
      if (!this.#follows(record, entry)) return false
      this.#references.age(this.#wallMs())
      await this.#doAll(record)
    }
    this.#isFirst = false
    this.#history.log.moveTo({
      log: this.#log,
      epoch: entry.epoch,
      sequence: entry.sequence,
      hash: recordHash(entry.bytes),
    })
    await this.#patiently(() => this.#commit())
    return true
  }

  /** Whether the record follows what the history has, or what is missing before it was stated as a loss. */
  #follows(record: HistoryRecord, { sequence }: LogEntry): boolean {
    if (this.#isFirst) {
      if (this.#mayMiss && !this.#goesOn(record)) {
        if (!this.#isLost()) throw new MissingRecords()
        this.#lose(record.wallMs)
      }
      return true
    }
    const previous = this.sequence === 0 ? NO_RECORD_HASH : (this.place?.hash ?? NO_RECORD_HASH)
    if (isSame(record.previous, previous)) return true
    if (sequence > this.#again) {
      this.#again = sequence
      return false
    }
    this.#lose(record.wallMs)
    return true
  }

  /** What cannot be read of it is a loss, as a whole record is. */
  async #doAll({ operations, wallMs }: HistoryRecord): Promise<void> {
    try {
      for (const operation of operations) await this.#do(operation)
    } catch (error) {
      if (!(error instanceof RecordError)) throw error
      this.#lose(wallMs)
    }
  }

  /** Makes what was applied durable, when there is room. */
  async #commit(): Promise<void> {
    while (!this.#history.commit()) await turn()
  }

  /** Without room nothing is applied: it is tried until there is some, or nobody waits for it. Rejects with StorageError. */
  async #patiently(work: () => Promise<void>): Promise<void> {
    for (;;) {
      try {
        return await work()
      } catch (error) {
        if (!(error instanceof StorageError) || (error.code !== 'FULL' && error.code !== 'LOCKED')) throw error
        if (this.#signal.aborted) throw error
        await delay(ROOM_MS, undefined, { signal: this.#signal }).catch(() => {})
      }
    }
  }

  /** Whether nothing is missing between this history and the first record that there is. */
  #goesOn({ previous, base }: HistoryRecord): boolean {
    const { place } = this
    if (!isSame(previous, NO_RECORD_HASH)) return false
    if (place === undefined || base === undefined) return place === base
    return place.log === base.log && place.sequence === base.sequence && isSame(place.hash, base.hash)
  }

  /** What is missing is so of all tenants whose channels were taken here. */
  #lose(untilMs: number): void {
    for (const tenant of this.#history.figures().tenants.keys()) {
      const { takenMs } = this.#history.positionOf(tenant) ?? {}
      if (takenMs === undefined) continue
      const loss: HistoryLoss = {
        native: '',
        fromMs: takenMs,
        toMs: Math.max(takenMs, untilMs),
        count: 0,
        reason: MISSED,
      }
      this.#append(tenant, { losses: [loss] })
    }
  }

  async #do(operation: HistoryOperation): Promise<void> {
    const { tenant } = operation
    if (operation.kind === 'append') this.#append(tenant, operation)
    else if (operation.kind === 'describe') this.#history.describe(tenant, operation.metric)
    else if (operation.kind === 'remove') {
      this.#references.forget(tenant)
      this.#history.removeTenant(tenant)
    } else await this.#patiently(() => this.#drop(operation))
  }

  async #drop(what: Parameters<History['drop']>[0]): Promise<void> {
    for (const _ of this.#history.drop(what)) await turn()
  }

  #append(tenant: string, given: Partial<Extract<HistoryOperation, { kind: 'append' }>>): void {
    const { texts = [], position, losses = [], times = new Float64Array(0), values = new Float64Array(0) } = given
    const indices = given.series ?? new Uint32Array(0)
    // One that may not be here is 0, which no series is.
    const references = texts.map((text) => this.#references.of(tenant, text) ?? 0)
    const series = indices.map((index) => references[index] as number)
    this.#history.append({ tenant, position, series, times, values, length: series.length, losses })
  }
}

/**
 * Undefined if it is no record, whoever has written it: nobody would get past it, and no node could lead any more. Throws StorageError
 * TOO_NEW.
 */
function readable({ bytes, sequence }: LogEntry): HistoryRecord | undefined {
  try {
    return decodeHistoryRecord(bytes)
  } catch (error) {
    if (!(error instanceof RecordError)) throw error
    if (error.code !== 'TOO_NEW') return undefined
    throw new StorageError('TOO_NEW', `record ${sequence} of the history's log cannot be applied: ${error.message}`)
  }
}

function isSame(one: Uint8Array, other: Uint8Array): boolean {
  return Buffer.compare(one, other) === 0
}
