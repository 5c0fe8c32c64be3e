/** The log of a cluster in memory, and replicas of it: a record is taken only from whoever knows the end. */
import type { FollowEvents, LogEnd, Replica } from '../../../server/cluster/replica.ts'
import type { Clock } from '../../../server/kernel/core/clock.ts'
import type { LogPlace } from '../../../storage/replicated/place.ts'
import { NOWHERE } from '../../../storage/sqlite/log-places.ts'
import {
  type AuditRow,
  type Batch,
  type BlockBytes,
  type Recovered,
  StorageError,
  type StorageErrorCode,
  type StoreEvents,
} from '../../../storage/store.ts'
import { emptyContents, recovered } from '../../support/memory-store/contents.ts'

const WIRE_MS = 5
const READ_MS = 1
const RETRY_MS = 50

interface ModelRecord {
  readonly id: string
  readonly epoch: number
}

/** What a node has on its disk. */
export interface ModelDisk {
  /** The ids of all records, of all logs. */
  content: string[]
  place: LogPlace
}

interface ModelLog {
  readonly number: number
  /** The content of the database with which it was founded, and the place of that. */
  readonly base: readonly string[]
  readonly basePlace: LogPlace
  readonly mayLack: boolean
  readonly records: ModelRecord[]
}

/** What the nats-servers have. */
export class ModelLogs {
  readonly logs: ModelLog[] = []
  readonly followers = new Set<() => void>()
  /** Whether enough nats-servers are there to answer anything about the log. */
  hasMajority = true
  /** How long a question for the end of the log waits for its answer, in ms. */
  answerMs = WIRE_MS
  /** How often a question of those who follow gets no answer, while all others are answered. */
  refusals = 0
  /** How many of its last records the nats-server that leads the newest log does not have, though others do. */
  behind = 0
  /** The sequence of a record in whose place the nats-server that leads the newest log has one that nobody else has. */
  different = 0
  /** How many records those who follow believe that it will have yet. */
  promised = 0
  /** How many of its first records the newest log no longer has. */
  forgotten = 0
  /** Who led in which epoch, by `log/epoch`. */
  readonly leaders = new Map<string, string>()

  get newest(): ModelLog | undefined {
    return this.logs.at(-1)
  }

  /** Appends, if the log ends at `last`. */
  append(log: ModelLog, record: ModelRecord, last: number): boolean {
    if (log !== this.newest || log.records.length !== last) return false
    log.records.push(record)
    for (const pull of [...this.followers]) pull()
    return true
  }
}

/** A process, as far as its replica depends on it. */
export interface ModelHost {
  readonly name: string
  readonly disk: ModelDisk
  readonly clock: Clock
  /** Whether the process runs, and reaches the nats-servers. */
  readonly isConnected: boolean
  /** What reading its database gives instead. */
  readonly damage: StorageError | undefined
  /** How long following takes to end, in ms. */
  readonly endingMs: number
  /** How long it takes to open the database in order to lead, in ms. */
  readonly openingMs: number
}

const noAnswer = (): StorageError => new StorageError('UNREACHABLE', 'nobody answers')

export class ModelReplica implements Replica {
  readonly #logs: ModelLogs
  readonly #host: ModelHost
  #log: ModelLog | undefined
  #events: StoreEvents | undefined
  #last = 0
  #life = 0
  #isGivenUp = false
  epoch = 0

  constructor(logs: ModelLogs, host: ModelHost) {
    this.#logs = logs
    this.#host = host
  }

  get stored(): LogPlace | undefined {
    return this.epoch === 0 ? undefined : this.#host.disk.place
  }

  async end(timeoutMs: number): Promise<LogEnd> {
    const { answerMs } = this.#logs
    await this.#pass(Math.min(answerMs, timeoutMs))
    if (answerMs > timeoutMs || !this.#isAnswered) throw noAnswer()
    const { newest, behind } = this.#logs
    return { log: newest?.number ?? 0, last: (newest?.records.length ?? 0) - behind }
  }

  async moveLog(): Promise<void> {
    await this.#wire()
    this.#logs.behind = 0
    this.#logs.different = 0
  }

  /** Takes time like all that a node waits for, so that no node can go on for ever within a moment. */
  async place(): Promise<LogPlace> {
    await this.#pass(READ_MS)
    if (this.#host.damage !== undefined) throw this.#host.damage
    return this.#host.disk.place
  }

  async found(mayLack: boolean): Promise<LogPlace> {
    await this.#wire()
    const { place, content } = this.#host.disk
    const number = Math.max(this.#logs.newest?.number ?? 0, place.log) + 1
    const first = { id: `epoch of log ${number}`, epoch: place.epoch + 1 }
    this.#logs.logs.push({ number, base: [...content], basePlace: place, records: [first], mayLack })
    return place
  }

  async follow(events: FollowEvents, signal: AbortSignal): Promise<void> {
    await this.#wire()
    if (this.#logs.refusals > 0) {
      this.#logs.refusals--
      throw noAnswer()
    }
    const log = this.#check()
    const pull = (): void => {
      if (!this.#host.isConnected || signal.aborted) return
      this.#apply(log)
      events.onPlace(this.#host.disk.place, log.records.length + this.#logs.promised)
    }
    pull()
    const polling = this.#host.clock.setInterval(pull, RETRY_MS)
    this.#logs.followers.add(pull)
    await new Promise<void>((resolve) => {
      if (signal.aborted) resolve()
      signal.addEventListener('abort', () => resolve())
    })
    this.#logs.followers.delete(pull)
    this.#host.clock.clear(polling)
    const { endingMs } = this.#host
    if (endingMs > 0) await this.#pass(endingMs)
  }

  async open(events: StoreEvents): Promise<Recovered> {
    await this.#wire()
    const { openingMs } = this.#host
    if (openingMs > 0) await this.#pass(openingMs)
    if (this.#isGivenUp) throw new StorageError('DEPOSED', 'another node leads')
    const log = this.#check()
    this.#apply(log)
    const last = log.records.length
    const epoch = this.#host.disk.place.epoch + 1
    await this.#wire()
    const taken = this.#logs.append(log, { id: `epoch ${epoch} of log ${log.number}, ${this.#host.name}`, epoch }, last)
    if (!taken) throw new StorageError('DEPOSED', 'another node was faster')
    const key = `${log.number}/${epoch}`
    if (this.#logs.leaders.has(key)) throw new Error(`two nodes lead in epoch ${key}`)
    this.#logs.leaders.set(key, this.#host.name)
    this.#apply(log)
    this.#log = log
    this.#events = events
    this.#last = last + 1
    this.#life++
    this.epoch = epoch
    return recovered(emptyContents())
  }

  /** Appends a record, again and again until the log has it or another one; then `durable` is called, or the store fails. */
  put(id: string, durable: () => void): void {
    const { clock } = this.#host
    const life = this.#life
    const isOver = (): boolean => life !== this.#life || this.epoch === 0
    const attempt = (): void => {
      const log = this.#log
      if (isOver() || log === undefined) return
      if (!this.#host.isConnected) {
        clock.setTimeout(attempt, RETRY_MS)
        return
      }
      const record = { id, epoch: this.epoch }
      const isThere =
        log === this.#logs.newest && log.records.length === this.#last + 1 && log.records.at(-1)?.id === id
      if (!isThere && !this.#logs.append(log, record, this.#last)) {
        this.#fail('DEPOSED', 'another node leads')
        return
      }
      // The answer may be lost.
      clock.setTimeout(() => {
        if (isOver()) return
        if (!this.#host.isConnected) attempt()
        else {
          this.#last++
          this.#store(log, { id, epoch: this.epoch }, this.#last)
          durable()
        }
      }, WIRE_MS)
    }
    clock.setTimeout(attempt, WIRE_MS)
  }

  write(_: Batch): void {
    throw new Error('the model writes records')
  }

  read(): Promise<BlockBytes[]> {
    return Promise.resolve([])
  }

  audit(): Promise<AuditRow[]> {
    return Promise.resolve([])
  }

  backup(): Promise<number> {
    return Promise.reject(new Error('the model has no backups'))
  }

  giveUp(): void {
    this.#isGivenUp = true
  }

  async close(): Promise<void> {
    this.#isGivenUp = false
    this.epoch = 0
    this.#life++
  }

  async disconnect(): Promise<void> {}

  #fail(code: StorageErrorCode, message: string): void {
    this.#events?.onFailed(new StorageError(code, message))
  }

  /** Time of the process. */
  async #pass(ms: number): Promise<void> {
    await new Promise<void>((resolve) => void this.#host.clock.setTimeout(resolve, ms))
  }

  /** A request and its answer. */
  async #wire(): Promise<void> {
    await this.#pass(WIRE_MS)
    if (!this.#isAnswered) throw noAnswer()
  }

  get #isAnswered(): boolean {
    return this.#host.isConnected && this.#logs.hasMajority
  }

  /** Throws FOREIGN if the newest log does not go on from this database. */
  #check(): ModelLog {
    const log = this.#logs.newest
    const { content, place } = this.#host.disk
    if (log === undefined) throw new StorageError('FOREIGN', 'there is no log')
    const known = place.log === log.number ? place.sequence : 0
    const isBase = place.log === log.basePlace.log && place.sequence === log.basePlace.sequence
    const all = [...log.base, ...log.records.slice(0, known).map(({ id }) => id)]
    const isSame = all.join() === content.join() && (known === 0 || known !== this.#logs.different)
    const isPart = (known > 0 || isBase) && known <= log.records.length && isSame
    if (known < this.#logs.forgotten) throw new StorageError('BEHIND', `the log no longer has record ${known + 1}`)
    if (!isPart) throw new StorageError('FOREIGN', `the log has another record ${place.sequence}`)
    return log
  }

  #apply(log: ModelLog): void {
    const { place } = this.#host.disk
    const known = place.log === log.number ? place.sequence : 0
    for (const [index, record] of log.records.slice(known).entries()) this.#store(log, record, known + index + 1)
  }

  #store(log: ModelLog, { id, epoch }: ModelRecord, sequence: number): void {
    const { disk } = this.#host
    disk.content.push(id)
    disk.place = { ...NOWHERE, log: log.number, epoch, sequence }
  }
}
