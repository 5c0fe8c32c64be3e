/**
 * The audit log while somebody looks at it: its newest records, then those that are added. An admin sees every record, and so the
 * page can check the chain of hashes itself [MON 9.8]: no record was changed, removed or inserted in what was read.
 */
import { type ReadonlySignal, signal } from '@preact/signals'
import {
  ConnectionError,
  type Consumer,
  type Followed,
  type PlainRecord,
  type Sample,
  StatusError,
} from '../client/browser.ts'
import { type Refusal, refusalOf } from './refusals.ts'

const METRIC = 'producer.audit'
/** Records that are read when the view opens, unless the whole log is asked for. */
const LAST = 1_000
/** The newest records that are kept in memory. */
const MAX_KEPT = 20_000
/** After as many records, the reading waits for the verification. */
const BATCH = 1_000

export interface AuditRecord {
  readonly number: number
  /** Microseconds since 1970. */
  readonly time: number
  readonly action: string
  readonly actor: string
  readonly tenant: string
  readonly address: string
  readonly object: string
  readonly args: string
  readonly outcome: string
  readonly detail: string
  readonly hash: Uint8Array
}

export interface AuditState {
  /** Newest first. */
  readonly records: readonly AuditRecord[]
  /** Numbers of the first and the last record that was read; 0 if there is none. */
  readonly first: number
  readonly last: number
  /** The newest record when the reading began; undefined for those who do not see every record. */
  readonly newest: number | undefined
  /** The last record up to which the hashes follow from each other. */
  readonly verified: number
  /** Where the chain is broken, as a sentence; empty if it is not. */
  readonly broken: string
  /** Why nothing can be read; undefined if something can. */
  readonly refusal: Refusal | undefined
}

const NOTHING: AuditState = {
  records: [],
  first: 0,
  last: 0,
  newest: undefined,
  verified: 0,
  broken: '',
  refusal: undefined,
}

export class AuditLog {
  readonly #consumer: Consumer
  readonly #isWhole: boolean
  readonly #state = signal<AuditState | undefined>(undefined)
  readonly #newestLast: AuditRecord[] = []
  readonly #stops: (() => void)[] = []
  #first = 0
  #last = 0
  #newest: number | undefined
  #verified = 0
  #broken = ''
  /** Records are verified one after the other. */
  #verifying = Promise.resolve()
  #followed: Followed | undefined
  /** Values were lost on the way to this page: what comes until the log is read again from there is passed over. */
  #hasGap = false
  #isReading = false
  #isOver = false
  #isScheduled = false

  constructor(consumer: Consumer, isWhole: boolean) {
    this.#consumer = consumer
    this.#isWhole = isWhole
  }

  /** Undefined until it is known whether it can be read. */
  get state(): ReadonlySignal<AuditState | undefined> {
    return this.#state
  }

  /** Never rejects. */
  async begin(): Promise<void> {
    this.#stops.push(
      this.#consumer.on('gap', ({ metric }) => {
        // It has no name if several metrics have lost values.
        if (metric !== METRIC && metric !== '') return
        this.#hasGap = true
        void this.#read()
      }),
      this.#consumer.on('connected', () => void this.#read()),
    )
    await this.#read()
  }

  end(): void {
    this.#isOver = true
    for (const stop of this.#stops) stop()
    this.#followed?.stop().catch(() => {})
  }

  /** Reads on from the last record if nothing is read, or not without a hole. What a lost connection ends, the next one begins anew. */
  async #read(): Promise<void> {
    if (this.#isReading || this.#isOver || (this.#followed !== undefined && !this.#hasGap)) return
    this.#isReading = true
    try {
      await this.#followed?.stop().catch(unlessGone)
      this.#followed = undefined
      this.#hasGap = false
      const after = this.#last > 0 ? this.#last : await this.#begins()
      const followed = await this.#consumer.follow(METRIC, { after }, (sample) => this.#took(sample))
      if (this.#isOver) await followed.stop()
      else this.#followed = followed
      this.#changed()
    } catch (error) {
      if (error instanceof ConnectionError) return
      this.#hasGap = false
      this.#state.value = { ...NOTHING, refusal: refusalOf(error) }
    } finally {
      this.#isReading = false
    }
    if (this.#hasGap) await this.#read()
  }

  /** The record after which the reading begins. */
  async #begins(): Promise<number> {
    const { audit_records: newest } = (await this.#consumer.query('producer.stats')).plain as PlainRecord
    this.#newest = newest === undefined ? undefined : Number(newest)
    return this.#isWhole ? 0 : Math.max(0, (this.#newest ?? 0) - LAST)
  }

  #took(sample: Sample): Promise<void> | undefined {
    const record = sample.plain as unknown as AuditRecord
    // A connection that was made again binds it from where the reading began.
    if (this.#hasGap || record.number <= this.#last) return undefined
    const before = this.#newestLast.at(-1)
    if (this.#first === 0) this.#first = record.number
    this.#last = record.number
    this.#newestLast.push(record)
    if (this.#newestLast.length > 2 * MAX_KEPT) this.#newestLast.splice(0, MAX_KEPT)
    if (this.#newest !== undefined) this.#verifying = this.#verifying.then(() => this.#verify(record, before))
    this.#schedule()
    return record.number % BATCH === 0 ? this.#verifying : undefined
  }

  async #verify(record: AuditRecord, before: AuditRecord | undefined): Promise<void> {
    if (this.#broken !== '') return
    const { number } = record
    const expected = before === undefined ? number : before.number + 1
    if (number !== expected) {
      this.#broken = `Records ${expected} to ${number - 1} are missing.`
    } else {
      // What stands before the first record that was read is known only if that is the first of all.
      const previous = before?.hash ?? (number === 1 ? new Uint8Array(record.hash.length) : undefined)
      const isSame = previous === undefined || sameBytes(await hashOf(record, previous), record.hash)
      if (isSame) this.#verified = number
      else this.#broken = `Record ${number} does not match its hash: it or the record before it was changed.`
    }
    this.#schedule()
  }

  /** Once per frame at most, however many records come. */
  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    requestAnimationFrame(() => {
      this.#isScheduled = false
      this.#changed()
    })
  }

  #changed(): void {
    if (this.#isOver) return
    this.#state.value = {
      records: this.#newestLast.slice(-MAX_KEPT).reverse(),
      first: this.#first,
      last: this.#last,
      newest: this.#newest,
      verified: this.#verified,
      broken: this.#broken,
      refusal: undefined,
    }
  }
}

/** What the server does not know any more is stopped. */
function unlessGone(error: unknown): void {
  if (!(error instanceof StatusError)) throw error
}

/** SHA-256 over the hash before, number and time (64 bits each), and each text as length (32 bits) and UTF-8. */
async function hashOf(record: AuditRecord, before: Uint8Array): Promise<Uint8Array> {
  const { number, time, action, actor, tenant, address, object, args, outcome, detail } = record
  const encoder = new TextEncoder()
  const texts = [action, actor, tenant, address, object, args, outcome, detail].map((text) => encoder.encode(text))
  const bytes = new Uint8Array(before.length + 16 + texts.reduce((sum, { length }) => sum + 4 + length, 0))
  const view = new DataView(bytes.buffer)
  bytes.set(before)
  let at = before.length
  view.setBigInt64(at, BigInt(number))
  view.setBigInt64(at + 8, BigInt(time))
  at += 16
  for (const text of texts) {
    view.setUint32(at, text.length)
    bytes.set(text, at + 4)
    at += 4 + text.length
  }
  return new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))
}

function sameBytes(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && one.every((byte, index) => byte === other[index])
}
