/**
 * Silences: alerts of which nobody is told until a time, by matchers. An acknowledgement is one of alerts that fire already: what begins
 * to fire later is told. Both are stored, and end by themselves.
 */
import { randomBytes } from 'node:crypto'
import type { LabelMatcher } from '../../../promql/label-matcher.ts'
import type { SilenceRow, StoredPeers } from '../../kit/peer.ts'
import type { NotifiedAlert } from './alert.ts'
import { alertMatcher, matchesAll } from './matchers.ts'

/** Of a tenant. */
const MOST_SILENCES = 1_000

export interface Silence {
  readonly row: SilenceRow
  readonly matchers: readonly LabelMatcher[]
}

export class Silences {
  readonly #journal: Pick<StoredPeers['journal'], 'change'>
  /** By tenant and id. */
  readonly #silences = new Map<string, Silence>()

  constructor(stored: readonly SilenceRow[], journal: Pick<StoredPeers['journal'], 'change'>) {
    this.#journal = journal
    for (const row of stored) this.#keep(row)
  }

  /** Those of a tenant, the next to end first. */
  of(tenant: string): readonly Silence[] {
    const found = [...this.#silences.values()].filter(({ row }) => row.tenant === tenant)
    return found.sort((left, right) => left.row.ends - right.row.ends)
  }

  /** Undefined if the tenant has as many as it may. */
  add(silence: Omit<SilenceRow, 'id'>): SilenceRow | undefined {
    if (this.of(silence.tenant).length >= MOST_SILENCES) return undefined
    const row = { ...silence, id: randomBytes(8).toString('hex') }
    this.#keep(row)
    this.#journal.change({ put: 'silence', row })
    return row
  }

  /** Returns whether there was one. */
  remove(tenant: string, id: string): boolean {
    if (!this.#silences.delete(`${tenant} ${id}`)) return false
    this.#journal.change({ remove: 'silence', tenant, id })
    return true
  }

  isMuted(tenant: string, alert: NotifiedAlert, nowMs: number): boolean {
    for (const { row, matchers } of this.#silences.values()) {
      const { tenant: whose, kind, begins, ends } = row
      if (whose !== tenant || nowMs < begins || nowMs >= ends) continue
      if (kind === 'acknowledgement' && alert.firedMs > begins) continue
      if (matchesAll(alert, matchers)) return true
    }
    return false
  }

  /** Removes what has ended; returns whether anything has. */
  sweep(nowMs: number): boolean {
    const over = [...this.#silences.values()].filter(({ row }) => nowMs >= row.ends)
    for (const { row } of over) this.remove(row.tenant, row.id)
    return over.length > 0
  }

  #keep(row: SilenceRow): void {
    const matchers = (JSON.parse(row.matchers) as string[]).map(alertMatcher).filter((matcher) => matcher !== undefined)
    this.#silences.set(`${row.tenant} ${row.id}`, { row, matchers })
  }
}
