/**
 * Lines of StatsD: `name:value|type`, with the sample rate of Etsy's first server, tags in the forms of DogStatsD
 * (`|#tag:text`), Graphite (`name;tag=text`) and InfluxDB (`name,tag=text`), and several values of DogStatsD 1.1 (`name:1:2|ms`).
 */

/** What a line says of a metric. `timer` stands for ms, h and d. */
export type StatsdKind = 'counter' | 'gauge' | 'timer' | 'set'

export interface StatsdLine {
  readonly kind: StatsdKind
  readonly name: string
  /** As they were sent; of equal names the last one counts. */
  readonly tags: readonly (readonly [name: string, text: string])[]
  /** Numbers, or of a set texts. */
  readonly values: readonly (number | string)[]
  /** Whether the numbers of a gauge are added to it: they were written with a sign. */
  readonly isRelative: boolean
  /** How many values each of them stands for: 1 divided by the sample rate, and finite as the numbers are. */
  readonly weight: number
  /** `ms` for timers in milliseconds, else empty. */
  readonly unit: string
}

export const MAX_LINE_BYTES = 8_192
const MAX_VALUES = 1_024
const MAX_TAGS = 64

const kinds: ReadonlyMap<string, StatsdKind> = new Map([
  ['c', 'counter'],
  ['g', 'gauge'],
  ['ms', 'timer'],
  ['h', 'timer'],
  ['d', 'timer'],
  ['s', 'set'],
])
const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/
/** Events and service checks of DogStatsD, which are no metrics. */
const OTHER = /^_(?:e\{|sc\|)/

/** What is wrong with a line, for people. */
export type BadLine = { readonly problem: string }

/** Reads a line without its end; undefined for one that is empty or no metric. */
export function parseLine(line: string): StatsdLine | BadLine | undefined {
  if (line === '' || OTHER.test(line)) return undefined
  const colon = line.indexOf(':')
  const bar = line.indexOf('|', colon)
  if (colon <= 0 || bar < 0) return { problem: 'no name:value|type' }
  const [type = '', ...fields] = line.slice(bar + 1).split('|')
  const kind = kinds.get(type)
  if (kind === undefined) return { problem: `no type "${type.slice(0, 16)}"` }
  const texts = line.slice(colon + 1, bar).split(':')
  if (texts.length > MAX_VALUES) return { problem: `more than ${MAX_VALUES} values` }
  const values = kind === 'set' ? texts : numbersOf(texts)
  if (values === undefined) return { problem: 'a value that is no number' }
  if (values.some(isInfinite)) return { problem: 'a number that is too large' }
  const named = namedOf(line.slice(0, colon))
  let weight = 1
  for (const field of fields) {
    if (field.startsWith('@')) {
      const rate = NUMBER.test(field.slice(1)) ? Number(field.slice(1)) : Number.NaN
      if (!(rate > 0 && rate <= 1)) return { problem: 'a sample rate that is not above 0 and at most 1' }
      weight = 1 / rate
      if (isInfinite(weight)) return { problem: 'a sample rate that is too small' }
    } else if (field.startsWith('#')) addTags(named.tags, field.slice(1), ',', ':')
  }
  if (named.name === '') return { problem: 'no name' }
  if (named.tags.length > MAX_TAGS) return { problem: `more than ${MAX_TAGS} tags` }
  const isRelative = kind === 'gauge' && /^[+-]/.test(texts[0] as string)
  return { kind, ...named, values, isRelative, weight, unit: type === 'ms' ? 'ms' : '' }
}

function isInfinite(value: number | string): boolean {
  return typeof value === 'number' && !Number.isFinite(value)
}

function numbersOf(texts: readonly string[]): number[] | undefined {
  const numbers: number[] = []
  for (const text of texts) {
    if (!NUMBER.test(text)) return undefined
    numbers.push(Number(text))
  }
  return numbers
}

function namedOf(text: string): { readonly name: string; readonly tags: [string, string][] } {
  const tags: [string, string][] = []
  const semicolon = text.indexOf(';')
  const separator = semicolon >= 0 ? ';' : ','
  const end = text.indexOf(separator)
  if (end < 0) return { name: text, tags }
  addTags(tags, text.slice(end + 1), separator, '=')
  return { name: text.slice(0, end), tags }
}

/** A tag without a text is there: its text is `true`. */
function addTags(tags: [string, string][], text: string, separator: string, between: string): void {
  for (const part of text.split(separator, MAX_TAGS + 1)) {
    if (part === '') continue
    const at = part.indexOf(between)
    tags.push(at < 0 ? [part, 'true'] : [part.slice(0, at), part.slice(at + 1)])
  }
}
