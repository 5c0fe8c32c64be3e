/**
 * Reads metrics as text: the Prometheus text format 0.0.4 and OpenMetrics 1.0. Bytes come in pieces, samples go out as soon as
 * their line is complete. The series of a sample stays text at first: a scraper has seen nearly all of them before, so
 * `readSeries` is needed for new ones only.
 *
 * Like Prometheus, it is lenient about blanks, about a last line without its end (0.0.4), and about names in quotes, which
 * may hold any text (`{"http.requests", "a.b"="c"}`). A line may end with `\r\n`; a `\r` elsewhere is a character like others.
 */
import { ProtocolError, type ProtocolErrorCode } from '../errors.ts'

export type TextFormat = 'prometheus' | 'openmetrics'

/** What the lines `# TYPE`, `# HELP` and `# UNIT` say of a metric family; empty where they say nothing. */
export interface TextMetadata {
  readonly type: string
  readonly help: string
  readonly unit: string
}

export interface TextSample {
  /** Name and labels as they stand in the line. */
  readonly series: string
  readonly value: number
  /** Microseconds since 1970; undefined if the line has none. */
  readonly time: number | undefined
}

export interface TextLimits {
  /** A longer line is an error; of a comment the rest is passed over. */
  readonly lineBytes: number
  /** Further families have no metadata. */
  readonly families: number
}

export interface TextSeries {
  readonly name: string
  readonly labels: readonly (readonly [name: string, text: string])[]
}

const NEWLINE = 0x0a
const RETURN = 0x0d
const QUOTE = 0x22
const HASH = 0x23
const BACKSLASH = 0x5c
const OPENING = 0x7b
const CLOSING = 0x7d
const DECIMAL = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/
const INFINITE = /^[+-]?inf(?:inity)?$/i
const INTEGER = /^[+-]?\d+$/
const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/
const LABEL = /^[a-zA-Z_][a-zA-Z0-9_]*$/
const TYPES = new Set('counter gauge histogram summary untyped unknown info stateset gaugehistogram'.split(' '))
const NOTHING: TextMetadata = { type: '', help: '', unit: '' }
/** Of a help text. */
const MAX_TEXT = 1_024
/** What the samples of a family have after its name. */
const SUFFIX = /_(?:bucket|sum|count|total|created|info|gsum|gcount)$/

export class TextParser {
  readonly #format: TextFormat
  readonly #limits: TextLimits
  readonly #decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  readonly #families = new Map<string, TextMetadata>()
  /** The beginning of a line whose end has not come. */
  #rest: Uint8Array = new Uint8Array(0)
  /** The bytes and lines before `#text`, and how far that was read. */
  #bytesBefore = 0
  #line = 0
  #text = ''
  #at = 0
  #isOver = false
  /** Whether the rest of a long comment is passed over. */
  #isSkipping = false

  constructor(format: TextFormat, limits: TextLimits) {
    this.#format = format
    this.#limits = limits
  }

  /** That of the sample which came last, from 1 on. */
  get line(): number {
    return this.#line
  }

  /** By the names of families. */
  get families(): ReadonlyMap<string, TextMetadata> {
    return this.#families
  }

  /** Takes the next bytes and gives the samples of the lines that they complete. Throws ProtocolError. */
  *push(bytes: Uint8Array): Generator<TextSample> {
    if (this.#isSkipping) {
      const newline = bytes.indexOf(NEWLINE)
      this.#bytesBefore += newline < 0 ? bytes.length : newline
      if (newline < 0) return
      this.#isSkipping = false
      yield* this.push(bytes.subarray(newline))
      return
    }
    const end = bytes.lastIndexOf(NEWLINE) + 1
    if (end > 0) yield* this.#take(joined(this.#rest, bytes.subarray(0, end)))
    // A copy: the bytes of a chunk are not kept.
    this.#rest = end > 0 || this.#rest.length === 0 ? bytes.slice(end) : joined(this.#rest, bytes)
    if (this.#rest.length > this.#limits.lineBytes) this.#cutComment()
  }

  /** Keeps the beginning of a comment whose end has not come. */
  #cutComment(): void {
    const rest = this.#rest
    if (rest[rest.findIndex((byte) => !isBlank(byte))] !== HASH) this.#fail('TOO_LONG', this.#tooLong)
    let length = this.#limits.lineBytes
    // Between two characters.
    while (((rest[length] as number) & 0xc0) === 0x80) length--
    this.#rest = rest.slice(0, length)
    this.#bytesBefore += rest.length - length
    this.#isSkipping = true
  }

  /** To be called when everything has come. Throws ProtocolError, also if the text is known to be cut off. */
  *end(): Generator<TextSample> {
    if (this.#rest.length > 0) yield* this.#take(joined(this.#rest, Uint8Array.of(NEWLINE)))
    this.#rest = new Uint8Array(0)
    if (this.#format === 'openmetrics' && !this.#isOver) this.#fail('TRUNCATED', 'the text ends without # EOF')
  }

  /** `bytes`: whole lines. */
  *#take(bytes: Uint8Array): Generator<TextSample> {
    try {
      this.#text = this.#decoder.decode(bytes)
    } catch {
      this.#fail('BAD_UTF8', 'the text is not UTF-8')
    }
    const text = this.#text
    this.#at = 0
    while (this.#at < text.length) {
      this.#line++
      const newline = text.indexOf('\n', this.#at)
      const hasReturn = newline > this.#at && text.charCodeAt(newline - 1) === RETURN
      const end = hasReturn ? newline - 1 : newline
      const start = skipBlanks(text, this.#at, end)
      // Only what is long in characters can be too long in bytes.
      const isLong = end - this.#at > this.#limits.lineBytes
      if (isLong && text.charCodeAt(start) !== HASH) this.#fail('TOO_LONG', this.#tooLong)
      const sample = this.#readLine(start, end)
      this.#at = newline + 1
      if (sample !== undefined) yield sample
    }
    this.#bytesBefore += bytes.length
    this.#text = ''
    this.#at = 0
  }

  get #tooLong(): string {
    return `a line has at most ${this.#limits.lineBytes} bytes`
  }

  #readLine(start: number, end: number): TextSample | undefined {
    if (start === end) return undefined
    if (this.#isOver) this.#fail('TRAILING_BYTES', 'a line after # EOF')
    if (this.#text.charCodeAt(start) !== HASH) return this.#sample(start, end)
    this.#comment(this.#text.slice(start + 1, end))
    return undefined
  }

  #sample(start: number, end: number): TextSample {
    const text = this.#text
    const after = this.#endOfSeries(start, end)
    const [value, valueEnd] = token(text, skipBlanks(text, after, end), end)
    const [time, timeEnd] = token(text, skipBlanks(text, valueEnd, end), end)
    const isOpenMetrics = this.#format === 'openmetrics'
    const hasTime = time !== '' && !(isOpenMetrics && time.startsWith('#'))
    const rest = skipBlanks(text, hasTime ? timeEnd : valueEnd, end)
    if (isOpenMetrics && text.charCodeAt(rest) === HASH) this.#exemplar(skipBlanks(text, rest + 1, end), end)
    else if (rest < end) this.#fail('TRAILING_BYTES', `${shown(text.slice(rest, end))} after the timestamp`)
    return {
      series: text.slice(start, after),
      value: this.#number(value),
      time: hasTime ? this.#microseconds(time) : undefined,
    }
  }

  /** An exemplar is passed over, but has to be one: labels, a value and perhaps a time. */
  #exemplar(start: number, end: number): void {
    const text = this.#text
    if (text.charCodeAt(start) !== OPENING) this.#fail('BAD_NAME', 'an exemplar without labels')
    const labelsEnd = this.#endOfSeries(start, end)
    const problem = problemOfLabels(text.slice(start, labelsEnd))
    if (problem !== undefined) this.#fail(problem.code, `an exemplar: ${problem.message}`)
    const [value, valueEnd] = token(text, skipBlanks(text, labelsEnd, end), end)
    this.#number(value)
    const [time, timeEnd] = token(text, skipBlanks(text, valueEnd, end), end)
    if (time !== '') this.#microseconds(time)
    const rest = skipBlanks(text, timeEnd, end)
    if (rest < end) this.#fail('TRAILING_BYTES', `${shown(text.slice(rest, end))} after the exemplar`)
  }

  /** Where name and labels end. */
  #endOfSeries(start: number, end: number): number {
    const text = this.#text
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
    return this.#fail('BAD_NAME', 'the labels have no end')
  }

  /** What Go's `ParseFloat` reads of decimal numbers, as Prometheus does. */
  #number(text: string): number {
    if (DECIMAL.test(text)) {
      const value = Number(text)
      if (Number.isFinite(value)) return value
    } else if (INFINITE.test(text)) {
      return text.startsWith('-') ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY
    } else if (text.length === 3 && text.toLowerCase() === 'nan') {
      return Number.NaN
    }
    return this.#fail('BAD_NUMBER', text === '' ? 'a value is missing' : `${shown(text)} is no value`)
  }

  /** Milliseconds in 0.0.4, seconds in OpenMetrics. */
  #microseconds(text: string): number {
    const isOpenMetrics = this.#format === 'openmetrics'
    const time = Number(text) * (isOpenMetrics ? 1_000_000 : 1_000)
    if ((isOpenMetrics ? DECIMAL : INTEGER).test(text) && Number.isFinite(time)) return Math.round(time)
    return this.#fail('BAD_NUMBER', `${shown(text)} is no timestamp`)
  }

  #comment(comment: string): void {
    const start = skipBlanks(comment, 0, comment.length)
    const [keyword, keywordEnd] = token(comment, start, comment.length)
    const isAlone = start > 0 && skipBlanks(comment, keywordEnd, comment.length) === comment.length
    if (keyword === 'EOF' && isAlone && this.#format === 'openmetrics') this.#isOver = true
    if (keyword !== 'TYPE' && keyword !== 'HELP' && keyword !== 'UNIT') return
    const isOpenMetrics = this.#format === 'openmetrics'
    // In 0.0.4 a plain comment.
    if (start === 0 && !isOpenMetrics) return
    const at = skipBlanks(comment, keywordEnd, comment.length)
    const quoted = comment.charCodeAt(at) === QUOTE ? quotedEnd(comment, at) : undefined
    const [plain, plainEnd] = token(comment, at, comment.length)
    const name = quoted === undefined ? plain : unescaped(comment.slice(at + 1, quoted - 1))
    if (name === '') return
    if (quoted === undefined && !NAME.test(name)) {
      // 0.0.4 has no units: such a line may say anything.
      if (keyword === 'UNIT' && !isOpenMetrics) return
      this.#fail('BAD_NAME', `${shown(name)} is no name of a metric`)
    }
    const known = this.#families.get(name)
    const given = comment.slice(skipBlanks(comment, quoted ?? plainEnd, comment.length)).slice(0, MAX_TEXT)
    const said = keyword === 'HELP' ? unescaped(given) : given.trimEnd()
    if (keyword === 'TYPE' && !TYPES.has(said)) this.#fail('BAD_NAME', `${shown(said)} is no type of a metric`)
    if (keyword === 'UNIT' && isOpenMetrics && said !== '' && !name.endsWith(`_${said}`)) {
      this.#fail('BAD_NAME', `${shown(name)} does not end with its unit ${shown(said)}`)
    }
    if (known === undefined && this.#families.size >= this.#limits.families) return
    this.#families.set(name, { ...(known ?? NOTHING), [keyword.toLowerCase()]: said })
  }

  #fail(code: ProtocolErrorCode, problem: string): never {
    const offset = this.#bytesBefore + new TextEncoder().encode(this.#text.slice(0, this.#at)).length
    throw new ProtocolError(code, `line ${Math.max(1, this.#line)}: ${problem}`, offset)
  }
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

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09
}

function skipBlanks(text: string, start: number, end: number): number {
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

function joined(one: Uint8Array, other: Uint8Array): Uint8Array {
  if (one.length === 0) return other
  const both = new Uint8Array(one.length + other.length)
  both.set(one)
  both.set(other, one.length)
  return both
}
