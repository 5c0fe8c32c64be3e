/**
 * Reads metrics as text: the Prometheus text format 0.0.4 and OpenMetrics 1.0. Bytes come in pieces, samples go out as soon as
 * their line is complete. A text that is read again and again has a memory: lines that begin as they did the last time are
 * recognised, and of samples only the rest is read.
 *
 * Like Prometheus, it is lenient about a last line without its end (0.0.4). A line may end with `\r\n`; a `\r` elsewhere is a
 * character like others.
 */
import { ProtocolError, type ProtocolErrorCode } from '../errors.ts'
import { FamilyComment, RememberedLines } from './remembered-lines.ts'
import {
  endOfSeries,
  HASH,
  isBlank,
  readComment,
  readReading,
  skipBlanks,
  type TextFormat,
  type TextMetadata,
} from './text-line.ts'

export interface TextLimits {
  /** A longer line is an error; of a comment the rest is passed over. */
  readonly lineBytes: number
  /** Further families have no metadata. */
  readonly families: number
}

/** What takes the samples of a text. `Series`: what the reader has made of the text of a series. */
export interface TextSink<Series extends object> {
  /** Finds or makes the series of a line that is not recognised. `text`: name and labels as they stand there. May throw ProtocolError. */
  series(text: string): Series
  /** `time`: microseconds since 1970; undefined if the line has none. */
  take(series: Series, value: number, time: number | undefined): void
}

/** The lines that a text had when it was last read to its end. */
export class TextMemory<Series extends object> {
  lines = new RememberedLines<Series | FamilyComment<TextMetadata>>()
  /** Of another format, they would mean something else. */
  format: TextFormat | undefined

  forget(): void {
    this.lines = new RememberedLines()
  }
}

const NEWLINE = 0x0a
const RETURN = 0x0d
const BLANK = 0x20
const MINUS = 0x2d
const DOT = 0x2e
const ZERO = 0x30
const SMALL_E = 0x65
const CAPITAL_E = 0x45
const OPENING = 0x7b
const PLUS = 0x2b
const NOTHING: TextMetadata = { type: '', help: '', unit: '' }
const LINES_PER_STEP = 128
const BYTES_PER_STEP = 16_384
/** A longer comment is not remembered. */
const MAX_COMMENT_BYTES = 2_048
/** Decimal digits that a double has in any case, and the powers of ten that it has exactly: their quotients and products are right. */
const EXACT_DIGITS = 15
const POWERS = Float64Array.from({ length: 23 }, (_, power) => Number(`1e${power}`))

export class TextParser<Series extends object> {
  readonly #format: TextFormat
  readonly #limits: TextLimits
  readonly #sink: TextSink<Series>
  readonly #memory: TextMemory<Series>
  readonly #decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  readonly #families = new Map<string, TextMetadata>()
  /** The beginning of a line whose end has not come. */
  #rest: Uint8Array = new Uint8Array(0)
  /** The bytes and lines before those that are read, and how far these are read. */
  #bytesBefore = 0
  #line = 0
  #at = 0
  #isOver = false
  /** Whether the rest of a long comment is passed over. */
  #isSkipping = false
  /** The remembered line that is expected next, and what will be remembered instead of these lines, if they are not all there any more. */
  #expected = 0
  #remembered: RememberedLines<Series | FamilyComment<TextMetadata>> | undefined
  /** All that is read, as text; undefined before a line of it is needed, and if it is not ASCII: its offsets would be others. */
  #text: string | undefined
  #isAscii = true
  /** Where the number ends that was read last. */
  #numberEnd = 0

  constructor(format: TextFormat, limits: TextLimits, sink: TextSink<Series>, memory = new TextMemory<Series>()) {
    this.#format = format
    this.#limits = limits
    this.#sink = sink
    this.#memory = memory
    if (memory.format !== format) memory.forget()
    memory.format = format
  }

  /** By the names of families. */
  get families(): ReadonlyMap<string, TextMetadata> {
    return this.#families
  }

  /** The number of the line that is read, or was read last. */
  get line(): number {
    return this.#line
  }

  /** Takes the next bytes, and hands over the samples of the lines that they complete, in steps. Throws ProtocolError. */
  *push(bytes: Uint8Array): Generator<void, void> {
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
  *end(): Generator<void, void> {
    if (this.#rest.length > 0) yield* this.#take(joined(this.#rest, Uint8Array.of(NEWLINE)))
    this.#rest = new Uint8Array(0)
    if (this.#format === 'openmetrics' && !this.#isOver) this.#fail('TRUNCATED', 'the text ends without # EOF')
    if (this.#expected < this.#memory.lines.size) this.#diverge()
    if (this.#remembered !== undefined) this.#memory.lines = this.#remembered
  }

  /** `bytes`: whole lines. */
  *#take(bytes: Uint8Array): Generator<void, void> {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
    this.#text = undefined
    this.#isAscii = true
    this.#at = 0
    let pausedAt = 0
    while (this.#at < bytes.length) {
      this.#line++
      const isKnown = this.#recognise(bytes, view)
      if (!isKnown) this.#readLine(bytes)
      // The series of a new line may have taken long.
      if (isKnown && this.#line % LINES_PER_STEP > 0 && this.#at - pausedAt < BYTES_PER_STEP) continue
      pausedAt = this.#at
      yield
    }
    this.#bytesBefore += bytes.length
    this.#text = undefined
    this.#at = 0
  }

  /** Takes the next line if it begins as a remembered one does. */
  #recognise(bytes: Uint8Array, view: DataView): boolean {
    const { lines } = this.#memory
    const index = lines.find(this.#expected, view, this.#at)
    if (index < 0 || this.#isOver) return false
    const line = lines.line(index)
    const after = this.#at + lines.lengthOf(index)
    if (line instanceof FamilyComment) {
      this.#follow(index)
      const { name, change, before } = line
      const known = this.#families.get(name)
      this.#describe(name, known === before ? line.after : { ...(known ?? NOTHING), ...change })
      this.#at = after
      return true
    }
    const value = this.#number(bytes, after)
    const isPlain = this.#numberEnd > 0 && this.#numberEnd - this.#at <= this.#limits.lineBytes
    // A name may stand before a blank and its labels.
    if (!isPlain && firstIn(bytes, after) === OPENING) return false
    this.#follow(index)
    if (isPlain) {
      this.#sink.take(line, value, undefined)
      this.#at = this.#numberEnd + 1
      return true
    }
    const newline = bytes.indexOf(NEWLINE, after)
    const rest = this.#lineOf(bytes, after, newline)
    const reading = this.#attempt(() => readReading(rest, 0, rest.length, this.#format))
    this.#sink.take(line, reading.value, reading.time)
    this.#at = newline + 1
    return true
  }

  /** The remembered line with this index is there; those before it are not. */
  #follow(index: number): void {
    if (index > this.#expected) this.#diverge()
    this.#remembered?.addFrom(this.#memory.lines, index, index + 1)
    this.#expected = index + 1
  }

  #readLine(bytes: Uint8Array): void {
    const newline = bytes.indexOf(NEWLINE, this.#at)
    const line = this.#lineOf(bytes, this.#at, newline)
    const start = skipBlanks(line, 0, line.length)
    if (start < line.length) {
      if (this.#isOver) this.#fail('TRAILING_BYTES', 'a line after # EOF')
      if (line.charCodeAt(start) === HASH)
        this.#readComment(line.slice(start + 1), bytes.subarray(this.#at, newline + 1))
      else this.#readSample(line, start, bytes)
    }
    this.#at = newline + 1
  }

  #readSample(line: string, start: number, bytes: Uint8Array): void {
    const { series, reading, after } = this.#attempt(() => {
      const after = endOfSeries(line, start, line.length)
      const reading = readReading(line, after, line.length, this.#format)
      return { series: this.#sink.series(line.slice(start, after)), reading, after }
    })
    this.#sink.take(series, reading.value, reading.time)
    // Only what stands directly before the number is recognised.
    if (line.charCodeAt(after) !== BLANK || isBlank(line.charCodeAt(after + 1))) return
    const length = this.#isAscii ? after : new TextEncoder().encode(line.slice(0, after)).length
    this.#remember(bytes.subarray(this.#at, this.#at + length + 1), series)
  }

  #readComment(comment: string, bytes: Uint8Array): void {
    const read = this.#attempt(() => readComment(comment, this.#format))
    if (read === 'EOF') this.#isOver = true
    if (read === 'EOF' || read === undefined) return
    const { keyword } = read
    // Copies: they are kept, and a part of the text would keep all of it.
    const [name, said] = [copied(read.name), copied(read.said)]
    const before = this.#families.get(name)
    const change = { [keyword]: said }
    const after = { ...(before ?? NOTHING), ...change }
    if (!this.#describe(name, after) || bytes.length > MAX_COMMENT_BYTES) return
    this.#remember(bytes, new FamilyComment(name, change, before, after))
  }

  /** Returns false if there are too many families. */
  #describe(name: string, metadata: TextMetadata): boolean {
    if (this.#families.size >= this.#limits.families && !this.#families.has(name)) return false
    this.#families.set(name, metadata)
    return true
  }

  #remember(bytes: Uint8Array, line: Series | FamilyComment<TextMetadata>): void {
    this.#diverge().add(bytes, line)
  }

  /** From here on the lines are others than those that are remembered. */
  #diverge(): RememberedLines<Series | FamilyComment<TextMetadata>> {
    if (this.#remembered === undefined) {
      this.#remembered = new RememberedLines()
      this.#remembered.addFrom(this.#memory.lines, 0, this.#expected)
    }
    return this.#remembered
  }

  /** A line without its end, as text. */
  #lineOf(bytes: Uint8Array, start: number, newline: number): string {
    const end = newline > start && bytes[newline - 1] === RETURN ? newline - 1 : newline
    if (end - this.#at > this.#limits.lineBytes && firstIn(bytes, this.#at) !== HASH)
      this.#fail('TOO_LONG', this.#tooLong)
    if (this.#text === undefined && this.#isAscii) this.#decodeAll(bytes)
    if (this.#text !== undefined) return this.#text.slice(start, end)
    try {
      return this.#decoder.decode(bytes.subarray(start, end))
    } catch {
      return this.#fail('BAD_UTF8', 'the text is not UTF-8')
    }
  }

  /** All at once, if it is ASCII: that takes a fraction of the time. */
  #decodeAll(bytes: Uint8Array): void {
    try {
      const text = this.#decoder.decode(bytes)
      this.#isAscii = text.length === bytes.length
      if (this.#isAscii) this.#text = text
    } catch {
      this.#isAscii = false
    }
  }

  get #tooLong(): string {
    return `a line has at most ${this.#limits.lineBytes} bytes`
  }

  /**
   * The number that begins at a place and ends the line, if it is a plain one of few digits: nearly all are. Otherwise
   * `#numberEnd` is 0.
   */
  #number(bytes: Uint8Array, start: number): number {
    this.#numberEnd = 0
    let at = start
    let byte = bytes[at]
    const isNegative = byte === MINUS
    if (isNegative) byte = bytes[++at]
    let [digits, power, number] = [0, 0, 0]
    for (; isDigit(byte); byte = bytes[++at], digits++) number = number * 10 + byte - ZERO
    if (byte === DOT) {
      const point = at
      for (byte = bytes[++at]; isDigit(byte); byte = bytes[++at], digits++) number = number * 10 + byte - ZERO
      power = point + 1 - at
    }
    if (digits === 0 || digits > EXACT_DIGITS) return 0
    if (byte === SMALL_E || byte === CAPITAL_E) {
      byte = bytes[++at]
      const isSmall = byte === MINUS
      if (isSmall || byte === PLUS) byte = bytes[++at]
      const first = at
      let exponent = 0
      for (; isDigit(byte) && at - first < 3; byte = bytes[++at]) exponent = exponent * 10 + byte - ZERO
      if (at === first) return 0
      power += isSmall ? -exponent : exponent
    }
    if (byte !== NEWLINE || power >= POWERS.length || -power >= POWERS.length) return 0
    this.#numberEnd = at
    const absolute = power < 0 ? number / (POWERS[-power] as number) : number * (POWERS[power] as number)
    return isNegative ? -absolute : absolute
  }

  /** What is wrong with a line is reported with its place. */
  #attempt<T>(read: () => T): T {
    try {
      return read()
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      return this.#fail(error.code, error.message)
    }
  }

  #fail(code: ProtocolErrorCode, problem: string): never {
    throw new ProtocolError(code, `line ${Math.max(1, this.#line)}: ${problem}`, this.#bytesBefore + this.#at)
  }
}

function isDigit(byte: number | undefined): byte is number {
  return byte !== undefined && byte >= ZERO && byte <= 0x39
}

/** The first byte from a place on that is no blank. */
function firstIn(bytes: Uint8Array, at: number): number | undefined {
  while (isBlank(bytes[at] as number)) at++
  return bytes[at]
}

function copied(text: string): string {
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(new TextEncoder().encode(text))
}

function joined(one: Uint8Array, other: Uint8Array): Uint8Array {
  if (one.length === 0) return other
  const both = new Uint8Array(one.length + other.length)
  both.set(one)
  both.set(other, one.length)
  return both
}
