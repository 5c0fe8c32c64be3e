/**
 * Silences: alerts of which nobody is told until a time, by matchers. An acknowledgement is one of alerts that fire already: what begins
 * to fire later is told. Both are stored, and end by themselves.
 */
import { randomBytes } from 'node:crypto'
import type { LabelMatcher } from '../../../promql/label-matcher.ts'
import type { SilenceRow, StoredPeers } from '../../kit/peer.ts'
import type { Steps } from '../../kit/running.ts'
import type { NotifiedAlert } from './alert.ts'
import { alertMatcher, type MatchedAlert, matchesAll } from './matchers.ts'

/** Of a tenant, those that have not ended; and those that have, and are shown for a while. */
const MOST_SILENCES = 1_000
const MOST_ENDED = 1_000
const SHOWN_MS = 5 * 86_400_000

/** What silences ask of an alert. */
export type SilencedAlert = MatchedAlert & Pick<NotifiedAlert, 'firedMs'>

export interface Silence {
  readonly row: SilenceRow
  readonly matchers: readonly LabelMatcher[]
}

export class Silences {
  readonly #journal: Pick<StoredPeers['journal'], 'change'>
  /** By tenant and id. */
  readonly #silences = new Map<string, Silence>()
  /** When it was looked at last what has ended. */
  #sweptMs = Number.NEGATIVE_INFINITY

  constructor(stored: readonly SilenceRow[], journal: Pick<StoredPeers['journal'], 'change'>) {
    this.#journal = journal
    for (const row of stored) this.#keep(row)
  }

  /** Those of a tenant that have not ended, the next to end first. */
  of(tenant: string, nowMs: number): readonly Silence[] {
    return this.#ofTenant(tenant)
      .filter(({ row }) => row.ends > nowMs)
      .sort((left, right) => left.row.ends - right.row.ends)
  }

  /** Those that have ended within the last days, the last to end first. */
  endedOf(tenant: string, nowMs: number): readonly Silence[] {
    return this.#ofTenant(tenant)
      .filter(({ row }) => row.ends <= nowMs)
      .sort((left, right) => right.row.ends - left.row.ends)
  }

  /** Undefined if the tenant has as many as it may. */
  add(silence: Omit<SilenceRow, 'id'>): SilenceRow | undefined {
    if (this.of(silence.tenant, silence.begins).length >= MOST_SILENCES) return undefined
    const row = { ...silence, id: randomBytes(8).toString('hex') }
    this.#put(row)
    return row
  }

  /** Returns whether there was one that had not ended. */
  end(tenant: string, id: string, nowMs: number): boolean {
    const row = this.#silences.get(`${tenant} ${id}`)?.row
    if (row === undefined || row.ends <= nowMs) return false
    this.#put({ ...row, ends: nowMs })
    return true
  }

  /** The one because of which nobody is told of an alert; undefined if there is none. */
  *mutingOf(tenant: string, alert: SilencedAlert, nowMs: number): Steps<SilenceRow | undefined> {
    for (const { row, matchers } of this.#silences.values()) {
      const { tenant: whose, kind, begins, ends } = row
      if (whose !== tenant || nowMs >= ends) continue
      // Where the clock was set back to before it, nobody can tell whether an alert fired then: better tell again than not at all.
      if (kind === 'acknowledgement' && (nowMs < begins || alert.firedMs > begins)) continue
      if (matchesAll(alert, matchers)) return row
      if (matchers.some(({ size }) => size > 0)) yield
    }
    return undefined
  }

  /** Removes what ended long ago; returns whether any has ended since the last time. */
  sweep(nowMs: number): boolean {
    const since = this.#sweptMs
    this.#sweptMs = nowMs
    let hasEnded = false
    const ended = new Map<string, number>()
    const newestFirst = [...this.#silences.values()].sort((left, right) => right.row.ends - left.row.ends)
    for (const { row } of newestFirst) {
      const { tenant, ends } = row
      if (ends > nowMs) continue
      if (ends > since) hasEnded = true
      const count = (ended.get(tenant) ?? 0) + 1
      ended.set(tenant, count)
      if (nowMs - ends >= SHOWN_MS || count > MOST_ENDED) this.#remove(row)
    }
    return hasEnded
  }

  #ofTenant(tenant: string): Silence[] {
    return [...this.#silences.values()].filter(({ row }) => row.tenant === tenant)
  }

  #put(row: SilenceRow): void {
    this.#keep(row)
    this.#journal.change({ put: 'silence', row })
  }

  #remove({ tenant, id }: SilenceRow): void {
    this.#silences.delete(`${tenant} ${id}`)
    this.#journal.change({ remove: 'silence', tenant, id })
  }

  #keep(row: SilenceRow): void {
    const matchers = (JSON.parse(row.matchers) as string[]).map(alertMatcher).filter((matcher) => matcher !== undefined)
    this.#silences.set(`${row.tenant} ${row.id}`, { row, matchers })
  }
}
