/** Series as records have them: one text for each, which is made and looked for again now and then. */
import { RecordError } from '../../replicated/codec.ts'
import type { HistorySeries, HistoryStore } from '../store.ts'

/** The history forgets a reference that was not used for an hour. */
const REFERENCES_MS = 1_800_000
/** Longer than anybody keeps a reference without asking for it again. */
const TEXTS_MS = 3_600_000

/** Two generations: what was not set in the last two is forgotten. */
class Aging<Key, Value> {
  readonly #ageMs: number
  #young = new Map<Key, Value>()
  #old = new Map<Key, Value>()
  #sinceMs = 0

  constructor(ageMs: number) {
    this.#ageMs = ageMs
  }

  /** Undefined if it was set in no time that is as long as an age. */
  young(key: Key): Value | undefined {
    return this.#young.get(key)
  }

  /** Also what was set in the age before. */
  any(key: Key): Value | undefined {
    return this.#young.get(key) ?? this.#old.get(key)
  }

  set(key: Key, value: Value): void {
    this.#young.set(key, value)
  }

  age(nowMs: number): void {
    if (Math.abs(nowMs - this.#sinceMs) < this.#ageMs) return
    this.#sinceMs = nowMs
    this.#old = this.#young
    this.#young = new Map()
  }
}

/** Nodes of earlier versions want a text there. */
const KIND = 'unknown'

/** The text of a series, without its tenant. */
function seriesText({ native, name, labels }: HistorySeries): string {
  return JSON.stringify([native, name, KIND, labels])
}

/** Throws RecordError MALFORMED for a text that is none. */
function seriesOfText(tenant: string, text: string): HistorySeries {
  const [native, name, , labels] = partsOf(text)
  if (![native, name].every((each) => typeof each === 'string') || !Array.isArray(labels))
    throw new RecordError('MALFORMED', 'a text is no series')
  return { tenant, native, name, labels } as HistorySeries
}

function partsOf(text: string): readonly unknown[] {
  try {
    const parts: unknown = JSON.parse(text)
    return Array.isArray(parts) ? parts : []
  } catch {
    return []
  }
}

/** What references were given for, at the node that leads. */
export class ReferenceTexts {
  readonly #texts = new Aging<number, string>(TEXTS_MS)

  add(reference: number, series: HistorySeries): string {
    const text = this.#texts.any(reference) ?? seriesText(series)
    this.#texts.set(reference, text)
    return text
  }

  /** Undefined if it was given too long ago. */
  of(reference: number): string | undefined {
    return this.#texts.any(reference)
  }

  age(nowMs: number): void {
    this.#texts.age(nowMs)
  }
}

/** The references of texts, where they are applied. */
export class TextReferences {
  readonly #references = new Map<string, Aging<string, number>>()
  readonly #store: Pick<HistoryStore, 'seriesOf'>

  constructor(store: Pick<HistoryStore, 'seriesOf'>) {
    this.#store = store
  }

  /** Undefined if there may not be more series. */
  of(tenant: string, text: string): number | undefined {
    const references = this.#references.get(tenant) ?? new Aging<string, number>(REFERENCES_MS)
    this.#references.set(tenant, references)
    const known = references.young(text)
    if (known !== undefined) return known
    const reference = this.#store.seriesOf(seriesOfText(tenant, text))
    if (reference !== undefined) references.set(text, reference)
    return reference
  }

  forget(tenant: string): void {
    this.#references.delete(tenant)
  }

  age(nowMs: number): void {
    for (const references of this.#references.values()) references.age(nowMs)
  }
}
