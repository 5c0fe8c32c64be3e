/**
 * The audit log. It numbers records, chains them by their hashes, and adds each to the current batch of the journal. A record
 * exists once that batch is stored: an action waits for `journal.whenStored()`, and listeners are called only then.
 */
import { formatIdentity } from '../../../../auth/identity.ts'
import type { Identity } from '../../../../auth/permissions.ts'
import type { AuditRow, Change, Recovered, Store } from '../../../../storage/store.ts'
import type { Clock } from '../../core/clock.ts'
import { auditTexts, hashOf, NO_HASH } from './record.ts'
import { argsText, cut } from './redaction.ts'

/** Who acts; the role is known unless the server found the record of a user that is gone. */
export type Actor = Pick<Identity, 'tenant' | 'name'> & Partial<Pick<Identity, 'role'>>

export interface AuditEntry {
  /** execute, outcome, auth, dial, admin ... */
  readonly action: string
  /** The identity that acts; undefined if none is known. */
  readonly identity?: Actor | undefined
  /** Used if there is no identity: the name that a peer claimed. */
  readonly actor?: string
  readonly address: string
  /** The control, method or destination. */
  readonly object: string
  /** Values named password, secret, hash, token or data are masked. */
  readonly args?: Readonly<Record<string, unknown>>
  readonly outcome: string
  readonly detail?: string
}

/** The part of the journal that the audit log needs. */
export interface AuditJournal {
  change(change: Change): void
  mark(): number
  wait(waiting: { durable(mark: number): void }): void
  whenStored(): Promise<void>
}

export interface AuditOptions {
  readonly journal: AuditJournal
  readonly clock: Pick<Clock, 'microseconds'>
  readonly store: Pick<Store, 'audit'>
  /** Number and hash of the last stored record. */
  readonly audited: Recovered['audited']
  /** Called with the size of each record that somebody caused. */
  readonly charge?: (actor: Actor, bytes: number) => void
}

/** Called with stored records, ascending and without gaps. */
export type AuditListener = (rows: readonly AuditRow[]) => void

const MAX_DETAIL = 2048
/** Number, time and hash, and what the database needs for a row. */
const FIXED_BYTES = 64
/** The number of records read at a time. */
const PORTION = 64

export class AuditLog {
  readonly #journal: AuditJournal
  readonly #clock: Pick<Clock, 'microseconds'>
  readonly #store: Pick<Store, 'audit'>
  readonly #charge: (actor: Actor, bytes: number) => void
  readonly #listeners = new Set<AuditListener>()
  /** Records that are not stored yet, each with the mark of its batch. */
  #pending: { readonly mark: number; readonly row: AuditRow }[] = []
  #last: Pick<AuditRow, 'number' | 'hash'>
  #stored: number

  constructor({ journal, clock, store, audited, charge = () => {} }: AuditOptions) {
    this.#journal = journal
    this.#clock = clock
    this.#store = store
    this.#charge = charge
    this.#last = audited ?? { number: 0, hash: NO_HASH }
    this.#stored = this.#last.number
  }

  /** The number of the last record that is stored; 0 before the first. */
  get stored(): number {
    return this.#stored
  }

  /** Records that are not stored yet. */
  get waiting(): number {
    return this.#pending.length
  }

  /** Adds a record to the current batch. */
  record({ action, identity, actor, address, object, args = {}, outcome, detail = '' }: AuditEntry): void {
    const record = {
      number: this.#last.number + 1,
      time: this.#clock.microseconds(),
      action: cut(action),
      actor: cut(actor ?? (identity ? formatIdentity(identity) : '')),
      tenant: cut(identity?.tenant ?? ''),
      address: cut(address),
      object: cut(object),
      args: argsText(args),
      outcome: cut(outcome),
      detail: cut(detail, MAX_DETAIL),
    }
    const row: AuditRow = { ...record, hash: hashOf(record, this.#last.hash) }
    this.#last = row
    if (identity !== undefined) {
      const texts = auditTexts.reduce((sum, field) => sum + Buffer.byteLength(record[field]), 0)
      this.#charge(identity, texts + FIXED_BYTES)
    }
    this.#journal.change({ put: 'audit', row })
    if (this.#pending.length === 0) this.#journal.wait(this)
    this.#pending.push({ mark: this.#journal.mark(), row })
  }

  /** Calls the listener with every record that is stored from now on. The returned function ends it. */
  follow(listener: AuditListener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Reads some of the stored records after a number, ascending; none if there are no more. Rejects with StorageError. */
  read(after: number): Promise<AuditRow[]> {
    return this.#store.audit(after, PORTION)
  }

  /** Resolves when everything changed so far is stored. */
  whenStored(): Promise<void> {
    return this.#journal.whenStored()
  }

  /**
   * Removes records from the beginning that are older than `keepMs`, up to the first that is not, but never the last one.
   * Resolves to their number. Rejects with StorageError.
   */
  async prune(keepMs: number): Promise<number> {
    const before = this.#clock.microseconds() - keepMs * 1000
    let pruned = 0
    for (let through = 0; ; ) {
      const rows = await this.read(through)
      const young = rows.findIndex(({ time, number }) => time >= before || number >= this.#stored)
      const old = young < 0 ? rows : rows.slice(0, young)
      const last = old.at(-1)
      if (last === undefined) return pruned
      pruned += old.length
      through = last.number
      this.#journal.change({ remove: 'audit', through })
      await this.#journal.whenStored()
      if (young >= 0) return pruned
    }
  }

  /** Called by the journal when batches up to `mark` are stored. */
  durable(mark: number): void {
    const open = this.#pending.findIndex((pending) => pending.mark > mark)
    const rows = this.#pending.splice(0, open < 0 ? this.#pending.length : open).map(({ row }) => row)
    if (this.#pending.length > 0) this.#journal.wait(this)
    const last = rows.at(-1)
    if (last === undefined) return
    this.#stored = last.number
    for (const listener of [...this.#listeners]) listener(rows)
  }
}
