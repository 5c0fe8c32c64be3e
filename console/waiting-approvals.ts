/**
 * EXECUTEs that wait for approval [MON 10.1], followed while somebody is signed in. `control.pending` says when that changes, and
 * `producer.approvals` has what waits then: so nothing is missing after values were lost, or a connection was.
 */
import { type ReadonlySignal, signal } from '@preact/signals'
import { ConnectionError, type Consumer, type Plain, type PlainRecord, type Sample } from '../client/browser.ts'
import { pagesOf, untilAnswered } from './query.ts'
import { type Refusal, refusalOf } from './refusals.ts'

const CHANGES = 'control.pending'
const WAITING = 'producer.approvals'
/** Ends that are remembered, the newest ones. */
const MAX_ENDS = 10

/** An EXECUTE that waits, and that whoever is signed in has asked for or may decide about. */
export interface WaitingApproval {
  readonly id: string
  readonly control: string
  /** All of them, those that every control takes included. */
  readonly args: readonly (readonly [name: string, value: Plain])[]
  readonly asker: string
  readonly address: string
  /** Whose users may approve it. */
  readonly role: string
  /** The text of the rule by which it waits; empty if the server does not say. */
  readonly rule: string
  /** Microseconds since 1970: when it was asked for, and when it ends by itself. */
  readonly asked: number
  readonly until: number
  /** SHA-256 of the command and the rule, in hexadecimal: the id is its beginning. */
  readonly digest: string
  /** What a dry run has come to; undefined while it runs. */
  readonly dryRun: { readonly outcome: string; readonly detail: string; readonly value: Plain } | undefined
  readonly isOwn: boolean
}

/** How a wait has ended while the page was open. */
export interface EndedApproval {
  readonly id: string
  readonly control: string
  readonly asker: string
  /** `approved`, `refused`, `timeout` or `ended`. */
  readonly state: string
  /** Empty if nobody has decided it. */
  readonly by: string
  /** Empty if it was approved. */
  readonly reason: string
  /** Microseconds since 1970. */
  readonly time: number
}

export class WaitingApprovals {
  readonly #consumer: Consumer
  readonly #waiting = signal<readonly WaitingApproval[] | undefined>(undefined)
  readonly #refusal = signal<Refusal | undefined>(undefined)
  readonly #ends = signal<readonly EndedApproval[]>([])
  #isFollowed = false
  #isReading = false
  /** Something has changed since the reading began. */
  #isStale = false

  constructor(consumer: Consumer) {
    this.#consumer = consumer
  }

  /** In the order in which they were asked for; undefined until that is known. */
  get waiting(): ReadonlySignal<readonly WaitingApproval[] | undefined> {
    return this.#waiting
  }

  /** Why it is not known what waits. */
  get refusal(): ReadonlySignal<Refusal | undefined> {
    return this.#refusal
  }

  /** Newest first, since the page was opened. */
  get ends(): ReadonlySignal<readonly EndedApproval[]> {
    return this.#ends
  }

  /** Follows what waits as long as the connection is there. Never rejects. */
  async follow(): Promise<void> {
    this.#consumer.on('gap', ({ metric }) => {
      // It has no name if several metrics have lost values.
      if (metric === CHANGES || metric === '') void this.#read()
    })
    this.#consumer.on('connected', () => void this.#begin())
    await this.#begin()
  }

  async #begin(): Promise<void> {
    try {
      if (!this.#isFollowed) {
        this.#isFollowed = true
        await this.#consumer.follow(CHANGES, {}, (sample) => this.#took(sample))
      }
    } catch (error) {
      this.#isFollowed = false
      if (!(error instanceof ConnectionError)) this.#refusal.value = refusalOf(error)
      return
    }
    await this.#read()
  }

  #took({ plain, time }: Sample): void {
    const record = plain as PlainRecord
    if (record['state'] !== 'waiting') {
      const end: EndedApproval = {
        id: String(record['id']),
        control: String(record['control']),
        asker: String(record['asker']),
        state: String(record['state']),
        by: String(record['by'] ?? ''),
        reason: String(record['reason'] ?? ''),
        time,
      }
      this.#ends.value = [end, ...this.#ends.value].slice(0, MAX_ENDS)
    }
    void this.#read()
  }

  /** One reading at a time: whatever changes meanwhile is in the next one. */
  async #read(): Promise<void> {
    this.#isStale = true
    if (this.#isReading) return
    this.#isReading = true
    while (this.#isStale) {
      this.#isStale = false
      try {
        this.#waiting.value = await this.#readAll()
        this.#refusal.value = undefined
      } catch (error) {
        this.#refusal.value = refusalOf(error)
      }
    }
    this.#isReading = false
  }

  async #readAll(): Promise<readonly WaitingApproval[]> {
    const found: WaitingApproval[] = []
    // It ends with the session: then no connection comes any more, and nothing is read.
    const { signal: never } = new AbortController()
    const ask = (after: string) => {
      const args = after === '' ? {} : { after: BigInt(after) }
      return untilAnswered(this.#consumer, never, () => this.#consumer.query(WAITING, args))
    }
    for await (const records of pagesOf(ask, { key: 'asked' })) found.push(...records.map(waitingApprovalOf))
    return found
  }
}

/** Those that wait for whoever is signed in. */
export function toDecide(waiting: readonly WaitingApproval[] = []): readonly WaitingApproval[] {
  return waiting.filter(({ isOwn }) => !isOwn)
}

function waitingApprovalOf(record: PlainRecord): WaitingApproval {
  const { args, digest, dry_run: dryRun } = record
  return {
    id: String(record['id']),
    control: String(record['control']),
    args: Object.entries(args as PlainRecord),
    asker: String(record['asker']),
    address: String(record['address']),
    role: String(record['role']),
    rule: String(record['rule'] ?? ''),
    asked: Number(record['asked']),
    until: Number(record['until']),
    digest: Array.from(digest as Uint8Array, (byte) => byte.toString(16).padStart(2, '0')).join(''),
    dryRun: dryRun === undefined ? undefined : dryRunOf(dryRun as PlainRecord),
    isOwn: record['own'] === true,
  }
}

function dryRunOf({ outcome, detail = '', value = null }: PlainRecord): WaitingApproval['dryRun'] {
  return { outcome: String(outcome), detail: String(detail), value }
}
