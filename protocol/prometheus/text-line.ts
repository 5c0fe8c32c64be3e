/**
 * One line of metrics as text: the Prometheus text format 0.0.4 and OpenMetrics 1.0. The series of a sample stays text at first:
 * a scraper has seen nearly all of them before, so `readSeries` is needed for new ones only.
 *
 * Like Prometheus, it is lenient about blanks and about names in quotes, which may hold any text (`{"http.requests", "a.b"="c"}`).
 * All functions throw ProtocolError at what is wrong, which says neither where the line is nor what stands before it.
 */
import { ProtocolError } from '../errors.ts'

export type TextFormat = 'prometheus' | 'openmetrics'

/** What the lines `# TYPE`, `# HELP` and `# UNIT` say of a metric family; empty where they say nothing. */
export interface TextMetadata {
  readonly type: string
  readonly help: string
  readonly unit: string
}

/** A sample, without its series. */
export interface SampleReading {
  readonly value: number
  /** Microseconds since 1970; undefined if the line has none. */
  readonly time: number | undefined
}

/** What a comment says of a family. */
export interface Comment {
  readonly keyword: 'type' | 'help' | 'unit'
  /** Of the family. */
  readonly name: string
  readonly said: string
}

export interface TextSeries {
  readonly name: string
  readonly labels: readonly (readonly [name: string, text: string])[]
}

const QUOTE = 0x22
export const HASH = 0x23
const BACKSLASH = 0x5c
const OPENING = 0x7b
const CLOSING = 0x7d
const DECIMAL = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/
const INFINITE = /^[+-]?inf(?:inity)?$/i
const INTEGER = /^[+-]?\d+$/
const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/
const LABEL = /^[a-zA-Z_][a-zA-Z0-9_]*$/
const TYPES = new Set('counter gauge histogram summary untyped unknown info stateset gaugehistogram'.split(' '))
/** Of a help text. */
const MAX_TEXT = 1_024
/** What the samples of a family have after its name. */
const SUFFIX = /_(?:bucket|sum|count|total|created|info|gsum|gcount)$/

/** Where name and labels end that begin at `start`. */
export function endOfSeries(text: string, start: number, end: number): number {
  let at = start
  for (; at < end; at++) {
    const code = text.charCodeAt(at)
    if (code === OPENING || isBlank(code)) break
  }
  const brace = skipBlanks(text, at, end)
  if (text.charCodeAt(brace) !== OPENING) return at
  let isQuoted = false
  for (at = brace + 1; at < end; at++) {
    const code = text.charCodeAt(at)
    if (isQuoted && code === BACKSLASH) at++
    else if (code === QUOTE) isQuoted = !isQuoted
    else if (!isQuoted && code === CLOSING) return at + 1
  }
  throw new ProtocolError('BAD_NAME', 'the labels have no end')
}

/** Reads what follows the series of a sample: its value, and perhaps a time and an exemplar. */
export function readReading(text: string, after: number, end: number, format: TextFormat): SampleReading {
  const [value, valueEnd] = token(text, skipBlanks(text, after, end), end)
  const [time, timeEnd] = token(text, skipBlanks(text, valueEnd, end), end)
  const isOpenMetrics = format === 'openmetrics'
  const hasTime = time !== '' && !(isOpenMetrics && time.startsWith('#'))
  const rest = skipBlanks(text, hasTime ? timeEnd : valueEnd, end)
  if (isOpenMetrics && text.charCodeAt(rest) === HASH) checkExemplar(text, skipBlanks(text, rest + 1, end), end)
  else if (rest < end) throw new ProtocolError('TRAILING_BYTES', `${shown(text.slice(rest, end))} after the timestamp`)
  return { value: numberOf(value), time: hasTime ? microsecondsOf(time, format) : undefined }
}

/** An exemplar is passed over, but has to be one: labels, a value and perhaps a time. */
function checkExemplar(text: string, start: number, end: number): void {
  if (text.charCodeAt(start) !== OPENING) throw new ProtocolError('BAD_NAME', 'an exemplar without labels')
  const labelsEnd = endOfSeries(text, start, end)
  const problem = problemOfLabels(text.slice(start, labelsEnd))
  if (problem !== undefined) throw new ProtocolError(problem.code, `an exemplar: ${problem.message}`)
  const [value, valueEnd] = token(text, skipBlanks(text, labelsEnd, end), end)
  numberOf(value)
  const [time, timeEnd] = token(text, skipBlanks(text, valueEnd, end), end)
  if (time !== '') microsecondsOf(time, 'openmetrics')
  const rest = skipBlanks(text, timeEnd, end)
  if (rest < end) throw new ProtocolError('TRAILING_BYTES', `${shown(text.slice(rest, end))} after the exemplar`)
}

/** What Go's `ParseFloat` reads of decimal numbers, as Prometheus does. */
function numberOf(text: string): number {
  if (DECIMAL.test(text)) {
    const value = Number(text)
    if (Number.isFinite(value)) return value
  } else if (INFINITE.test(text)) {
    return text.startsWith('-') ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY
  } else if (text.length === 3 && text.toLowerCase() === 'nan') {
    return Number.NaN
  }
  throw new ProtocolError('BAD_NUMBER', text === '' ? 'a value is missing' : `${shown(text)} is no value`)
}

/** Milliseconds in 0.0.4, seconds in OpenMetrics. */
function microsecondsOf(text: string, format: TextFormat): number {
  const isOpenMetrics = format === 'openmetrics'
  const time = Number(text) * (isOpenMetrics ? 1_000_000 : 1_000)
  if ((isOpenMetrics ? DECIMAL : INTEGER).test(text) && Number.isFinite(time)) return Math.round(time)
  throw new ProtocolError('BAD_NUMBER', `${shown(text)} is no timestamp`)
}

/** Reads what follows `#`: what it says of a family, that the text is over, or nothing. */
export function readComment(comment: string, format: TextFormat): Comment | 'EOF' | undefined {
  const isOpenMetrics = format === 'openmetrics'
  const start = skipBlanks(comment, 0, comment.length)
  const [keyword, keywordEnd] = token(comment, start, comment.length)
  if (keyword === 'EOF') {
    const isAlone = start > 0 && skipBlanks(comment, keywordEnd, comment.length) === comment.length
    return isAlone && isOpenMetrics ? 'EOF' : undefined
  }
  if (keyword !== 'TYPE' && keyword !== 'HELP' && keyword !== 'UNIT') return undefined
  // In 0.0.4 a plain comment.
  if (start === 0 && !isOpenMetrics) return undefined
  const at = skipBlanks(comment, keywordEnd, comment.length)
  const quoted = comment.charCodeAt(at) === QUOTE ? quotedEnd(comment, at) : undefined
  const [plain, plainEnd] = token(comment, at, comment.length)
  const name = quoted === undefined ? plain : unescaped(comment.slice(at + 1, quoted - 1))
  if (name === '') return undefined
  if (quoted === undefined && !NAME.test(name)) {
    // 0.0.4 has no units: such a line may say anything.
    if (keyword === 'UNIT' && !isOpenMetrics) return undefined
    throw new ProtocolError('BAD_NAME', `${shown(name)} is no name of a metric`)
  }
  const given = comment.slice(skipBlanks(comment, quoted ?? plainEnd, comment.length)).slice(0, MAX_TEXT)
  const said = keyword === 'HELP' ? unescaped(given) : given.trimEnd()
  if (keyword === 'TYPE' && !TYPES.has(said))
    throw new ProtocolError('BAD_NAME', `${shown(said)} is no type of a metric`)
  if (keyword === 'UNIT' && isOpenMetrics && said !== '' && !name.endsWith(`_${said}`))
    throw new ProtocolError('BAD_NAME', `${shown(name)} does not end with its unit ${shown(said)}`)
  return { keyword: keyword.toLowerCase() as Comment['keyword'], name, said }
}

/** Reads the series of a sample. Throws ProtocolError. */
export function readSeries(text: string): TextSeries {
  const brace = text.charCodeAt(0) === OPENING ? 0 : text.search(/[{ \t]/)
  let name = brace < 0 ? text : text.slice(0, brace)
  const labels: (readonly [string, string])[] = []
  // Prometheus keeps the name as a label, which must not be there twice.
  const seen = new Set(['__name__'])
  const end = text.length
  let at = skipBlanks(text, brace < 0 ? end : brace, end)
  if (at < end && text.charCodeAt(at) !== OPENING)
    throw new ProtocolError('BAD_NAME', `${shown(text)} is no name of a metric`)
  at = skipBlanks(text, at + 1, end)
  while (at < end && text.charCodeAt(at) !== CLOSING) {
    const [label, labelEnd, isQuoted] = readName(text, at)
    const equals = skipBlanks(text, labelEnd, end)
    if (text[equals] === '=') {
      const start = skipBlanks(text, equals + 1, end)
      const textEnd = text.charCodeAt(start) === QUOTE ? quotedEnd(text, start) : undefined
      if (textEnd === undefined) throw new ProtocolError('BAD_NAME', `label ${shown(label)} has no text in quotes`)
      if (label === '' || !(isQuoted || LABEL.test(label)))
        throw new ProtocolError('BAD_NAME', `${shown(label)} is no name of a label`)
      if (seen.has(label)) throw new ProtocolError('DUPLICATE_NAME', `label ${shown(label)} stands twice`)
      seen.add(label)
      labels.push([label, unescaped(text.slice(start + 1, textEnd - 1))])
      at = textEnd
    } else {
      // The name of the metric itself, which only quotes allow to stand there.
      if (!isQuoted || name !== '' || label === '')
        throw new ProtocolError('BAD_NAME', `label ${shown(label)} has no =`)
      name = label
      at = labelEnd
    }
    at = skipBlanks(text, at, end)
    if (text[at] === ',') at = skipBlanks(text, at + 1, end)
    else if (text.charCodeAt(at) !== CLOSING)
      throw new ProtocolError('BAD_NAME', `a comma is missing before ${shown(text.slice(at))}`)
  }
  if (name === '' || (brace !== 0 && !NAME.test(name)))
    throw new ProtocolError('BAD_NAME', `${shown(name)} is no name of a metric`)
  return { name, labels }
}

/** What is wrong with labels in braces, without a name before them; undefined if nothing is. */
function problemOfLabels(text: string): ProtocolError | undefined {
  try {
    readSeries(`x${text}`)
    return undefined
  } catch (error) {
    if (error instanceof ProtocolError) return error
    throw error
  }
}

/** The metadata of the family that a sample with this name belongs to. */
export function familyMetadata(name: string, families: ReadonlyMap<string, TextMetadata>): TextMetadata | undefined {
  return families.get(name) ?? families.get(name.replace(SUFFIX, ''))
}

export function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09
}

export function skipBlanks(text: string, start: number, end: number): number {
  let at = start
  while (at < end && isBlank(text.charCodeAt(at))) at++
  return at
}

/** What stands up to the next blank, and where it ends. */
function token(text: string, start: number, end: number): [string, number] {
  let at = start
  while (at < end && !isBlank(text.charCodeAt(at))) at++
  return [text.slice(start, at), at]
}

/** The place after the closing quote of a text whose opening one is at `start`; undefined if there is none. */
function quotedEnd(text: string, start: number): number | undefined {
  for (let at = start + 1; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === BACKSLASH) at++
    else if (code === QUOTE) return at + 1
  }
  return undefined
}

/** A name between braces, where it ends, and whether it is in quotes. */
function readName(text: string, start: number): [string, number, boolean] {
  if (text.charCodeAt(start) === QUOTE) {
    const end = quotedEnd(text, start)
    if (end === undefined) throw new ProtocolError('BAD_NAME', 'a name in quotes has no end')
    return [unescaped(text.slice(start + 1, end - 1)), end, true]
  }
  const length = text.slice(start).search(/[=,}\s]/)
  const end = length < 0 ? text.length : start + length
  return [text.slice(start, end), end, false]
}

/** `\n`, `\\` and `\"`; other backslashes stand for themselves. */
function unescaped(text: string): string {
  if (!text.includes('\\')) return text
  return text.replace(/\\([n"\\])/g, (_, letter: string) => (letter === 'n' ? '\n' : letter))
}

/** What was found, for an error. */
function shown(text: string): string {
  return JSON.stringify(text.length > 40 ? `${text.slice(0, 40)}…` : text)
}
