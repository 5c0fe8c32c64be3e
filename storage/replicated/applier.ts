/**
 * Applies the records of the log to a database, in order: each names the hash of the one before, so a record that does not
 * follow what the database has is never applied. The place in the log is stored in the transaction of its record.
 */
import type { Origin } from '../sqlite/generation.ts'
import type { StorageService } from '../sqlite/service.ts'
import type { BatchRecordPlace } from '../sqlite/writer.ts'
import { type Batch, StorageError } from '../store.ts'
import type { Log, LogEntry } from './log.ts'
import { type LogPlace, NO_RECORD_HASH } from './place.ts'
import { decodeRecord, type EpochRecord, type LogRecord, RecordError, recordHash } from './record.ts'

const NO_ROWS = new Float64Array(0)

interface Waiting {
  readonly resolve: () => void
  readonly reject: (error: StorageError) => void
}

export class Applier {
  readonly #service: StorageService
  /** The number of the log. */
  readonly #log: number
  #place: LogPlace
  #waiting: Waiting | undefined
  #failure: StorageError | undefined

  constructor(service: StorageService, log: number) {
    this.#service = service
    this.#log = log
    this.#place = service.tables.log.place
  }

  /** Where the database stands. */
  get place(): LogPlace {
    return this.#place
  }

  /** The sequence of the last record of this log that the database has; 0 if it has none. */
  get sequence(): number {
    return this.#place.log === this.#log ? this.#place.sequence : 0
  }

  /** The writer has stored the record in flight. */
  stored(): void {
    this.#waiting?.resolve()
    this.#waiting = undefined
  }

  /** The writer has failed: nothing more is applied. */
  failed(error: StorageError): void {
    this.#failure = error
    this.#waiting?.reject(error)
    this.#waiting = undefined
  }

  /** Rejects with StorageError: FOREIGN if the log has another record at the place of the database, UNREACHABLE if it does not answer. */
  async check(log: Pick<Log, 'recordAt'>, timeoutMs: number): Promise<void> {
    if (this.sequence === 0) return
    const bytes = await log.recordAt(this.sequence, timeoutMs)
    if (bytes === undefined || isSame(recordHash(bytes), this.#place.hash)) return
    throw this.#foreign(`log ${this.#log} has another record ${this.sequence}`)
  }

  /** Stores a record with its place. Rejects with StorageError; FOREIGN if it does not follow what the database has. */
  async apply(entry: LogEntry): Promise<void> {
    const { bytes, sequence, epoch } = entry
    const record = this.#decode(entry)
    const adopts = this.sequence === 0 ? this.#originOf(record) : undefined
    const previous = this.sequence === 0 ? NO_RECORD_HASH : this.#place.hash
    if (!isSame(record.previous, previous)) {
      throw this.#foreign(`record ${sequence} of log ${this.#log} does not follow record ${this.sequence}`)
    }
    const place: LogPlace = { log: this.#log, epoch, sequence, hash: recordHash(bytes) }
    if (record.kind === 'batch') await this.write(record.batch, { place })
    else if (adopts !== undefined) await this.write(this.#nothing(), { place, adopts })
    // The content stays as it is.
    else await this.#stored(() => this.#service.writer.write(this.#nothing(), { place }))
    this.#place = place
  }

  /** Stores a batch and waits until it is durable. Without a place it waits for `inLog`. */
  write(batch: Batch, record: BatchRecordPlace): Promise<void> {
    return this.#stored(() => this.#service.write(batch, record))
  }

  #stored(write: () => void): Promise<void> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure)
    return new Promise<void>((resolve, reject) => {
      this.#waiting = { resolve, reject }
      write()
    })
  }

  /** The record that the writer waits for is in the log. */
  inLog(place: LogPlace): void {
    this.#place = place
    this.#service.writer.inLog(place)
  }

  /** A batch that changes nothing: for a record that only moves the place. */
  #nothing(): Batch {
    const clocks = 'select age, wall from meta'
    const { age, wall } = this.#service.opened.database.prepare(clocks).get() as Pick<Batch, 'age' | 'wall'>
    return {
      number: 0,
      data: new ArrayBuffer(0),
      dataLength: 0,
      blocks: NO_ROWS,
      moved: NO_ROWS,
      settled: NO_ROWS,
      removed: NO_ROWS,
      channels: NO_ROWS,
      gaps: NO_ROWS,
      gapsRemoved: NO_ROWS,
      changes: [],
      reserves: false,
      age,
      wall,
    }
  }

  #decode({ bytes, sequence }: LogEntry): LogRecord {
    try {
      return decodeRecord(bytes, (id) => this.#service.tables.blocks.read(id))
    } catch (error) {
      if (!(error instanceof RecordError)) throw error
      const reason = `record ${sequence} of log ${this.#log} cannot be applied: ${error.message}`
      if (error.code === 'MALFORMED') throw this.#foreign(reason)
      // Without its base a block is damaged here: only another copy of the database has it.
      throw new StorageError(error.code === 'TOO_NEW' ? 'TOO_NEW' : 'BEHIND', reason)
    }
  }

  /**
   * What the database takes over with the first record of a log. It has to be the database that the log was founded with, a
   * copy of it, or an empty one if the log begins with nothing.
   */
  #originOf(record: LogRecord): { readonly origin: Origin; readonly isSkipping: boolean } {
    if (record.kind !== 'epoch') throw this.#foreign(`log ${this.#log} does not begin with an epoch`)
    const { base, origin } = record
    if (!isAt(this.#place, base)) {
      throw this.#foreign(`log ${this.#log} begins with another database than this one`)
    }
    const own = this.#service.opened.generation.origin
    // The first database was restored: ids that may have been given since are skipped here too.
    return { origin, isSkipping: base !== undefined && own.generation !== origin.generation }
  }

  #foreign(reason: string): StorageError {
    const { path } = this.#service.opened
    return new StorageError('FOREIGN', `the database ${path} is not part of the cluster's log: ${reason}`)
  }
}

/** The base of an EpochRecord is undefined if the log begins with an empty database. */
function isAt(place: LogPlace, base: EpochRecord['base']): boolean {
  if (base === undefined) return place.log === 0 && place.sequence === 0
  const { log, epoch, sequence, hash } = place
  return log === base.log && epoch === base.epoch && sequence === base.sequence && isSame(hash, base.hash)
}

function isSame(one: Uint8Array, other: Uint8Array): boolean {
  return Buffer.compare(one, other) === 0
}
