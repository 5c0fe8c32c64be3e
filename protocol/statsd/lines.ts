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
  /** Finite numbers, of a gauge one; of a set, one text. */
  readonly values: readonly (number | string)[]
  /** Whether the number of a gauge is added to it: it was written with a sign. */
  readonly isRelative: boolean
  /** How many values each of them stands for: 1 divided by the sample rate. */
  readonly weight: number
  /** `ms` for timers in milliseconds, else empty. */
  readonly unit: string
}

export const MAX_LINE_BYTES = 8_192
/** A value of a smaller rate would stand for more than a million. */
const MIN_RATE = 1e-6
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
  const values = valuesOf(kind, line.slice(colon + 1, bar))
  if ('problem' in values) return values
  const named = namedOf(line.slice(0, colon))
  let weight = 1
  for (const field of fields) {
    if (field.startsWith('@')) {
      const rate = NUMBER.test(field.slice(1)) ? Number(field.slice(1)) : Number.NaN
      if (!(rate >= MIN_RATE && rate <= 1)) return { problem: `a sample rate that is not from ${MIN_RATE} to 1` }
      weight = 1 / rate
    } else if (field.startsWith('#')) addTags(named.tags, field.slice(1), ',', ':')
  }
  if (named.name === '') return { problem: 'no name' }
  if (named.tags.length > MAX_TAGS) return { problem: `more than ${MAX_TAGS} tags` }
  return { kind, ...named, ...values, weight, unit: type === 'ms' ? 'ms' : '' }
}

/** A member of a set may contain colons, as addresses do, so a line has one of them. */
function valuesOf(kind: StatsdKind, text: string): Pick<StatsdLine, 'values' | 'isRelative'> | BadLine {
  if (kind === 'set') return { values: [text], isRelative: false }
  const texts = text.split(':')
  if (texts.length > MAX_VALUES) return { problem: `more than ${MAX_VALUES} values` }
  const numbers: number[] = []
  for (const text of texts) {
    if (!NUMBER.test(text)) return { problem: 'a value that is no number' }
    const number = Number(text)
    if (!Number.isFinite(number)) return { problem: 'a number that is too large' }
    if (kind === 'counter' && number < 0) return { problem: 'a counter that would go back' }
    numbers.push(number)
  }
  return kind === 'gauge' ? gaugeOf(texts, numbers) : { values: numbers, isRelative: false }
}

/** What a gauge is after several values in their order: those with a sign are added to the one before. */
function gaugeOf(
  texts: readonly string[],
  numbers: readonly number[],
): Pick<StatsdLine, 'values' | 'isRelative'> | BadLine {
  const last = texts.findLastIndex((text) => !/^[+-]/.test(text))
  const number = numbers.slice(Math.max(0, last)).reduce((sum, next) => sum + next, 0)
  if (!Number.isFinite(number)) return { problem: 'a number that is too large' }
  return { values: [number], isRelative: last < 0 }
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

/** A tag without a text is there: its text is `true`. Some clients of DogStatsD write `#` before a tag once more. */
function addTags(tags: [string, string][], text: string, separator: string, between: string): void {
  for (const written of text.split(separator, MAX_TAGS + 1)) {
    const part = between === ':' && written.startsWith('#') ? written.slice(1) : written
    if (part === '') continue
    const at = part.indexOf(between)
    tags.push(at < 0 ? [part, 'true'] : [part.slice(0, at), part.slice(at + 1)])
  }
}
