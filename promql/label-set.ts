/**
 * The labels of a series: names and texts, ascending by name, none of them empty; the name of the metric is the label `__name__`.
 * A set never changes. `key` is the same for equal sets and for no others, so that it can be the key of a map.
 */
import { quoted } from './parse/quoting.ts'

export const METRIC_NAME_LABEL = '__name__'
export const BUCKET_LABEL = 'le'

/** What says what a metric is; whatever changes a value changes that, so these labels go then. */
const METADATA: readonly string[] = [METRIC_NAME_LABEL, '__type__', '__unit__']

/** Stands between texts in keys; it is less than any other character, so that keys are in the order of their sets. */
const SEPARATOR = '\0'
/** Begins the keys of sets of which a text holds the separator. */
const ESCAPED = `${SEPARATOR}${SEPARATOR}`

export class LabelSet {
  /** Name and text by turns. */
  readonly #pairs: readonly string[]
  #key: string | undefined

  /** In order, without empty texts: what `of` makes of any labels. */
  constructor(pairs: readonly string[]) {
    this.#pairs = pairs
  }

  /** Labels in any order; those with an empty text are none. Of several with one name the last counts. */
  static of(labels: Iterable<readonly [name: string, text: string]>): LabelSet {
    if (labels instanceof LabelSet) return labels
    const byName = new Map<string, string>()
    for (const [name, text] of labels) byName.set(name, text)
    const pairs: string[] = []
    for (const name of [...byName.keys()].sort()) {
      const text = byName.get(name)
      if (text !== undefined && text !== '') pairs.push(name, text)
    }
    return pairs.length === 0 ? NO_LABELS : new LabelSet(pairs)
  }

  get key(): string {
    this.#key ??= keyOf(this.#pairs)
    return this.#key
  }

  get size(): number {
    return this.#pairs.length / 2
  }

  get metricName(): string {
    return this.get(METRIC_NAME_LABEL)
  }

  /** The text of a label, '' if there is none. */
  get(name: string): string {
    const pairs = this.#pairs
    for (let index = 0; index < pairs.length; index += 2) if (pairs[index] === name) return pairs[index + 1] ?? ''
    return ''
  }

  *[Symbol.iterator](): Generator<[name: string, text: string]> {
    for (let index = 0; index < this.#pairs.length; index += 2) {
      yield [this.#pairs[index] ?? '', this.#pairs[index + 1] ?? '']
    }
  }

  /** Those of the names alone. */
  keep(names: ReadonlySet<string>): LabelSet {
    return this.#filtered((name) => names.has(name))
  }

  /** All but those of the names. */
  without(names: ReadonlySet<string>): LabelSet {
    return this.#filtered((name) => !names.has(name))
  }

  /** Without what says which metric it is. */
  withoutMetadata(): LabelSet {
    return this.#filtered((name) => !METADATA.includes(name))
  }

  /** With other texts for some labels; an empty one takes the label away. */
  with(changes: Iterable<readonly [name: string, text: string]>): LabelSet {
    return LabelSet.of([...this, ...changes])
  }

  /** As Prometheus writes it: `up{job="a"}`, or `{__name__="a b", job="a"}` where the name needs quotes. */
  toString(): string {
    const labels = [...this].map(([name, text]) => `${isPlainLabel(name) ? name : quoted(name)}=${quoted(text)}`)
    return `{${labels.join(', ')}}`
  }

  #filtered(isKept: (name: string) => boolean): LabelSet {
    const pairs = this.#pairs
    const kept: string[] = []
    for (let index = 0; index < pairs.length; index += 2) {
      const name = pairs[index] ?? ''
      if (isKept(name)) kept.push(name, pairs[index + 1] ?? '')
    }
    if (kept.length === pairs.length) return this
    return kept.length === 0 ? NO_LABELS : new LabelSet(kept)
  }
}

export const NO_LABELS = new LabelSet([])

/** Orders sets as Prometheus orders results: label by label, by name first. */
export function compareLabelSets(left: LabelSet, right: LabelSet): number {
  if (left.key.startsWith(ESCAPED) || right.key.startsWith(ESCAPED)) return comparePairs([...left], [...right])
  return left.key < right.key ? -1 : left.key > right.key ? 1 : 0
}

function comparePairs(left: readonly [string, string][], right: readonly [string, string][]): number {
  for (const [index, [name, text]] of left.entries()) {
    const [otherName, otherText] = right[index] ?? ['', '']
    if (name !== otherName) return name < otherName ? -1 : 1
    if (text !== otherText) return text < otherText ? -1 : 1
  }
  return left.length - right.length
}

export function isPlainLabel(name: string): boolean {
  return /^[a-zA-Z_][a-zA-Z0-9_]*$/.test(name)
}

/** Prometheus 3 takes any text of Unicode that is not empty. */
export function isLabelName(name: string): boolean {
  return name !== '' && name.isWellFormed()
}

function keyOf(texts: readonly string[]): string {
  const key = texts.join(SEPARATOR)
  // As many texts as before, unless one of them holds a separator.
  return key.split(SEPARATOR).length <= Math.max(texts.length, 1) ? key : ESCAPED + JSON.stringify(texts)
}
