/**
 * What matchers have selected, as long as no series of the names that they want has come or gone: rules ask for the same again and
 * again, and looking it up in the index would be most of the work. What was used last is kept.
 */
import type { NameChanges } from './name-changes.ts'
import { NAME_TERM_LABEL } from './series-table.ts'
import type { HistoryMatcher, HistorySeries } from './store.ts'

/** Of all that is kept: selections, their characters, and series in them. */
const MOST_SELECTIONS = 32_768
const MOST_CHARACTERS = 1 << 23
const MOST_SERIES = 1 << 17
/** A selection with more of them, or with longer matchers, is looked up again. */
const MOST_OF_ONE = 4_096
const MOST_CHARACTERS_OF_ONE = 4_096

export interface KeptSelection {
  /** Ascending. */
  readonly places: Float64Array
  /** What was looked up of them. */
  readonly described: Map<number, HistorySeries>
}

interface Entry extends KeptSelection {
  readonly tenant: number
  readonly names: readonly string[] | undefined
  /** What `now` of the changes was. */
  readonly then: number
}

export class KeptSelections {
  readonly #changes: NameChanges
  /** By tenant and matchers, the one that was used last at the end. */
  readonly #entries = new Map<string, Entry>()
  #series = 0
  #characters = 0

  constructor(changes: NameChanges) {
    this.#changes = changes
  }

  find(tenant: number, matchers: readonly HistoryMatcher[]): KeptSelection | undefined {
    const key = keyOf(tenant, matchers)
    const entry = this.#entries.get(key)
    if (entry === undefined) return undefined
    this.#remove(key, entry)
    if (this.#changes.haveChanged(tenant, entry.names, entry.then)) return undefined
    this.#add(key, entry)
    return entry
  }

  /** `then`: what `now` of the changes was when the state began that it was found in. */
  keep(tenant: number, matchers: readonly HistoryMatcher[], places: Float64Array, then: number): KeptSelection {
    const kept = { tenant, names: namesWanted(matchers), places, described: new Map<number, HistorySeries>(), then }
    const key = keyOf(tenant, matchers)
    if (places.length > MOST_OF_ONE || key.length > MOST_CHARACTERS_OF_ONE) return kept
    const before = this.#entries.get(key)
    if (before !== undefined) this.#remove(key, before)
    this.#add(key, kept)
    for (const [oldest, entry] of this.#entries) {
      if (this.#hasRoom()) break
      this.#remove(oldest, entry)
    }
    return kept
  }

  #hasRoom(): boolean {
    const { size } = this.#entries
    return size <= MOST_SELECTIONS && this.#series <= MOST_SERIES && this.#characters <= MOST_CHARACTERS
  }

  #add(key: string, entry: Entry): void {
    this.#entries.set(key, entry)
    this.#series += entry.places.length
    this.#characters += key.length
  }

  #remove(key: string, { places }: Entry): void {
    this.#entries.delete(key)
    this.#series -= places.length
    this.#characters -= key.length
  }
}

function keyOf(tenant: number, matchers: readonly HistoryMatcher[]): string {
  return `${tenant} ${JSON.stringify(matchers)}`
}

/** The names that series have to have; undefined if they may have any. */
export function namesWanted(matchers: readonly HistoryMatcher[]): readonly string[] | undefined {
  for (const { label, operator, text, texts } of matchers) {
    if (label !== NAME_TERM_LABEL) continue
    if (operator === '=') return [text]
    if (operator === '=~' && texts !== undefined) return texts
  }
  return undefined
}
