/**
 * What one request publishes, in columns: few arrays of numbers and bytes instead of an object for each value, so that they are
 * cheap to keep and to hand from one thread to another. A series is recognised by the bytes of its key, which has its name and
 * labels in one order; a value is a number, or stands encoded as on the wire.
 */
import { XdrReader } from '../../protocol/bytes/reader.ts'
import { ByteWriter, XdrWriter } from '../../protocol/bytes/writer.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import { BasicType } from '../../protocol/monitor/constants.ts'
import { nameProblem, readTyped, type Value, VOID, writeTyped } from '../../protocol/monitor/value.ts'
import { boundedMetadata, type MetricMetadata } from '../kernel/metrics/catalogue.ts'
import { fromForeign, labelsFrom, MAX_LABELS, openLabelsProblem, shownName } from '../kernel/metrics/labels.ts'
import { joined, keyOfSeries, split } from './series-key.ts'

export { split } from './series-key.ts'

/** Texts, one after the other in UTF-8. */
export interface TextColumn {
  readonly bytes: Uint8Array
  readonly ends: Uint32Array
}

export interface Columns {
  /** The keys of series. A key may come again, but not twice running. */
  readonly series: TextColumn
  /** For each series, the number that the memory of its decoder has for it; 0 if it has none. */
  readonly remembered: Uint32Array
  /** Which numbers these are: `numbering` of a memory. */
  readonly numbering: string
  /** What that memory has lost since its last request: labels for which it had no room, and how often its numbers began again. */
  readonly forgotten: number
  readonly renumbered: number
  /** For each series, 1 more than the place of its metadata; 0 if there is none. */
  readonly described: Uint32Array
  /** Units and descriptions (`joined`), and in `traits` what else there is: see `traitsOf`. */
  readonly metadata: TextColumn
  readonly traits: Uint16Array
  /** What is said of families apart from any series, as texts that the source knows (`joined`). */
  readonly families: TextColumn
  /** For each value its series, or NO_SERIES if that cannot be taken. */
  readonly of: Uint32Array
  /** Microseconds since 1970. */
  readonly times: Float64Array
  readonly kinds: Uint8Array
  /** Doubles and integers; for values that are encoded, where they begin in `encoded`. */
  readonly numbers: Float64Array
  /** Types and values as XDR, with their lengths before them. */
  readonly encoded: Uint8Array
  /** Series whose names or labels are beyond the bounds. */
  readonly refusedSeries: number
  /** Why the first value without a series has none, for people. */
  readonly problem: string
  /** What else of the request is not kept, and the first metric that it was said of, for people. */
  readonly left: number
  readonly leftOf: string
}

const NOTHING_FORGOTTEN = { labels: 0, numberings: 0 }
export const NO_SERIES = 0xffff_ffff
export const ValueKind = { DOUBLE: 0, INT64: 1, VOID: 2, ENCODED: 3 } as const

/** A request of 16 MiB with a hundred bytes of labels for each point has less; it bounds what short bodies can become. */
export const MAX_COLUMNS_BYTES = 32 << 20
/** What a value takes in its columns. */
const VALUE_BYTES = 25
/** What a series takes besides its key: its number, and what it is described by. */
const SERIES_BYTES = 8
const END_BYTES = 4
/** Of a value that is encoded. */
const LENGTH_BYTES = 4
/** With more than this nothing is put together to be looked at: some may be there twice, or have no text. */
const MANY_LABELS = 2 * MAX_LABELS
/** Most keys have fewer. */
const KEY_BYTES = 1_024
/** Of one UTF-16 code unit. */
const MOST_UTF8_BYTES = 3

export type SeriesLabel = readonly [name: string, text: string]

/** Metadata of one metric of a request. A further series with the same object has the same place in the columns. */
export type SaidMetadata = Partial<MetricMetadata>

/**
 * The key of a series as it stands in a column, and its number, 0 if it has none, of which numbering; or why there is no key, for
 * people.
 */
export type ColumnKey = { readonly bytes: Uint8Array; number: number; numbering: string } | { readonly problem: string }

export class ColumnWriter {
  readonly #family: string
  readonly #room = { bytes: MAX_COLUMNS_BYTES }
  readonly #series = new TextWriter(this.#room)
  readonly #metadata = new TextWriter(this.#room)
  readonly #families = new TextWriter(this.#room)
  readonly #remembered = new Growing(Uint32Array)
  readonly #numbering: string
  readonly #described = new Growing(Uint32Array)
  readonly #traits = new Growing(Uint16Array)
  readonly #of = new Growing(Uint32Array)
  readonly #times = new Growing(Float64Array)
  readonly #kinds = new Growing(Uint8Array)
  readonly #numbers = new Growing(Float64Array)
  readonly #encoded = new XdrWriter()
  /** Where the last value begins there. */
  #encodedAt = 0
  /** Where keys are made. */
  #made = new Uint8Array(KEY_BYTES)
  #metadataOfKey: SaidMetadata | undefined
  #lastMetadata: SaidMetadata | undefined
  /** The series that values come for. */
  #current = NO_SERIES
  #refused = 0
  #problem = ''
  #left = 0
  #leftOf = ''

  /** `family` is the prefix of all names; `numbering` that of the memory that has the keys, if there is one. */
  constructor(family: string, numbering = '') {
    this.#family = family
    this.#numbering = numbering
  }

  /** Begins a series, whose values follow, with what `keyOf` has given for its name and labels. Throws ProtocolError TOO_LONG. */
  begin(name: string, found: ColumnKey, metadata?: SaidMetadata): void {
    if ('problem' in found) {
      this.refuse(name, found.problem)
      return
    }
    const { bytes } = found
    if (this.#current !== NO_SERIES && metadata === this.#metadataOfKey && this.#series.isLast(bytes)) return
    this.#metadataOfKey = metadata
    this.#take(SERIES_BYTES)
    // The numbers of its memory may have begun again since this request has.
    this.#remembered.push(found.numbering === this.#numbering ? found.number : 0)
    this.#current = this.#series.pushBytes(bytes)
    this.#described.push(metadata === undefined ? 0 : this.#placeOf(metadata))
  }

  /** Begins a series that cannot be taken; the problem is for people. */
  refuse(name: string, problem: string): void {
    this.#current = NO_SERIES
    this.#refused++
    if (this.#problem === '') this.#problem = `${shownName(this.#family + name)}: ${problem}`
  }

  /** Values of a metric that cannot be taken, whatever their series; the problem is for people. */
  reject(name: string, values: number, problem: string): void {
    if (this.#problem === '') this.#problem = `${shownName(this.#family + name)}: ${problem}`
    for (let count = 0; count < values; count++) this.#push(NO_SERIES, 0, ValueKind.VOID, 0)
  }

  /**
   * What a series is known by in the columns of a family. It depends on nothing else. Labels have the names of their source. The bytes
   * stay as they are until the next key is made.
   */
  keyOf(name: string, labels: readonly SeriesLabel[]): ColumnKey {
    const full = this.#family + name
    if (name === '' || nameProblem(full) !== undefined) return { problem: `not a name of ${this.#family}*` }
    if (labels.length > MANY_LABELS) return { problem: `more than ${MAX_LABELS} labels` }
    const own = labelsFrom(labels.map(([label, text]) => [fromForeign(label), text] as const))
    const problem = openLabelsProblem(full, own)
    if (problem !== undefined) return { problem }
    const key = keyOfSeries(full, own)
    const most = key.length * MOST_UTF8_BYTES
    if (this.#made.length < most) this.#made = new Uint8Array(2 * most)
    const { written } = utf8.encodeInto(key, this.#made)
    return { bytes: this.#made.subarray(0, written), number: 0, numbering: '' }
  }

  #placeOf(metadata: SaidMetadata): number {
    if (metadata !== this.#lastMetadata) {
      this.#lastMetadata = metadata
      const { unit, description } = boundedMetadata({ unit: metadata.unit, description: metadata.description })
      this.#metadata.push(joined([unit ?? '', description ?? '']))
      this.#traits.push(traitsOf(metadata))
    }
    return this.#traits.length
  }

  /** A value that is a DOUBLE. */
  double(number: number, time: number): void {
    this.#push(this.#current, time, ValueKind.DOUBLE, number)
  }

  value(value: Value, time: number): void {
    const plain = plainOf(value)
    if (plain !== undefined) {
      this.#push(this.#current, time, plain.kind, plain.number)
      return
    }
    writeTyped(this.beginEncoded(time), value)
    this.endEncoded()
  }

  /** Begins a value whose type and value are written as on the wire, into what this gives, until `endEncoded`. */
  beginEncoded(time: number): XdrWriter {
    this.#encodedAt = this.#encoded.beginFrame()
    this.#push(this.#current, time, ValueKind.ENCODED, this.#encodedAt)
    return this.#encoded
  }

  endEncoded(): void {
    this.#encoded.endFrame(this.#encodedAt)
    this.#take(this.#encoded.length - this.#encodedAt)
  }

  #push(of: number, time: number, kind: number, number: number): void {
    this.#take(VALUE_BYTES)
    this.#of.push(of)
    this.#times.push(time)
    this.#kinds.push(kind)
    this.#numbers.push(number)
  }

  /** What is said of a metric and not kept. */
  leave(name: string, count: number): void {
    if (this.#left === 0 && count > 0) this.#leftOf = shownName(this.#family + name)
    this.#left += count
  }

  /** Something that is said of a family. */
  family(texts: readonly string[]): void {
    this.#families.push(joined(texts))
  }

  #take(bytes: number): void {
    take(this.#room, bytes)
  }

  /** `forgotten`: what the memory says of itself. */
  columns(forgotten = NOTHING_FORGOTTEN): Columns {
    return {
      series: this.#series.column(),
      remembered: this.#remembered.all(),
      numbering: this.#numbering,
      forgotten: forgotten.labels,
      renumbered: forgotten.numberings,
      described: this.#described.all(),
      metadata: this.#metadata.column(),
      traits: this.#traits.all(),
      families: this.#families.column(),
      of: this.#of.all(),
      times: this.#times.all(),
      kinds: this.#kinds.all(),
      numbers: this.#numbers.all(),
      encoded: this.#encoded.bytes(),
      refusedSeries: this.#refused,
      problem: this.#problem,
      left: this.#left,
      leftOf: this.#leftOf,
    }
  }
}

/** All memory of columns, to be given to another thread. */
export function buffersOf(columns: Columns): ArrayBuffer[] {
  const arrays = Object.values(columns).flatMap((column) => {
    if (ArrayBuffer.isView(column)) return [column]
    return typeof column === 'object' ? [column.bytes, column.ends] : []
  })
  return arrays.map(({ buffer }) => buffer as ArrayBuffer)
}

/** A value that is a number, as an integer of 64 bits is if a double has it exactly. */
function plainOf(value: Value): { readonly kind: number; readonly number: number } | undefined {
  if (value.type === BasicType.DOUBLE) return { kind: ValueKind.DOUBLE, number: value.value }
  if (value.type === BasicType.VOID) return { kind: ValueKind.VOID, number: 0 }
  if (value.type !== BasicType.INT64) return undefined
  const number = Number(value.value)
  return Number.isSafeInteger(number) ? { kind: ValueKind.INT64, number } : undefined
}

/** The value at a place. */
export function valueAt(columns: Columns, place: number): Value {
  const number = columns.numbers[place] as number
  switch (columns.kinds[place]) {
    case ValueKind.DOUBLE:
      return { type: BasicType.DOUBLE, value: number }
    case ValueKind.INT64:
      return { type: BasicType.INT64, value: BigInt(number) }
    case ValueKind.VOID:
      return VOID
    default:
      return readTyped(new XdrReader(encodedAt(columns, place)))
  }
}

/** Type and value of a value that is encoded: a view. */
export function encodedAt({ numbers, encoded }: Columns, place: number): Uint8Array {
  const start = (numbers[place] as number) + LENGTH_BYTES
  let length = 0
  for (let at = start - LENGTH_BYTES; at < start; at++) length = length * 256 + (encoded[at] as number)
  return encoded.subarray(start, start + length)
}

function take(room: { bytes: number }, bytes: number): void {
  room.bytes -= bytes
  if (room.bytes >= 0) return
  throw new ProtocolError(
    'TOO_LONG',
    `names, labels and values of more than ${MAX_COLUMNS_BYTES} bytes: send fewer at a time`,
  )
}

const DISTRIBUTIONS = [undefined, 'histogram', 'summary'] as const

/**
 * The type, in four bits; then whether it only grows (0 unknown, 1 no, 2 yes), whether there is a unit, a description, and, in two
 * bits, of what kind of distribution it is a part.
 */
function traitsOf({ type, isCounter, unit, description, distribution }: SaidMetadata): number {
  const counter = isCounter === undefined ? 0 : isCounter ? 2 : 1
  const texts = (unit === undefined ? 0 : 1 << 6) | (description === undefined ? 0 : 1 << 7)
  return (type ?? 0) | (counter << 4) | texts | (DISTRIBUTIONS.indexOf(distribution) << 8)
}

/** The other way round; `texts` are the unit and the description. */
export function metadataFrom(traits: number, [unit, description]: readonly string[]): MetricMetadata {
  const counter = (traits >> 4) & 3
  return {
    type: (traits & 15) === 0 ? undefined : ((traits & 15) as BasicType),
    isCounter: counter === 0 ? undefined : counter === 2,
    unit: (traits & (1 << 6)) === 0 ? undefined : unit,
    description: (traits & (1 << 7)) === 0 ? undefined : description,
    distribution: DISTRIBUTIONS[(traits >> 8) & 3],
  }
}

/** The texts of a column by their places. */
export function textsIn({ bytes, ends }: TextColumn): (place: number) => string {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return (place) => buffer.toString('utf8', place === 0 ? 0 : ends[place - 1], ends[place])
}

/** What the columns of a request say of its series. */
export class SeriesReader {
  readonly #columns: Columns
  /** The key of the series at a place. */
  readonly key: (place: number) => string
  readonly #text: (place: number) => string
  /** Series of one metric follow each other, and have the same metadata. */
  #last = -1
  #metadata: MetricMetadata | undefined

  constructor(columns: Columns) {
    this.#columns = columns
    this.key = textsIn(columns.series)
    this.#text = textsIn(columns.metadata)
  }

  /** The metadata of the series at a place; undefined if the request has none. */
  metadata(place: number): MetricMetadata | undefined {
    const about = (this.#columns.described[place] as number) - 1
    if (about !== this.#last) {
      this.#last = about
      const traits = this.#columns.traits[about] as number
      this.#metadata = about < 0 ? undefined : metadataFrom(traits, split(this.#text(about)))
    }
    return this.#metadata
  }
}

interface NumberArray {
  readonly length: number
  [index: number]: number
  set(from: NumberArray): void
  slice(start: number, end: number): this
}

const FIRST_CAPACITY = 64

/** A column that grows. */
class Growing<A extends NumberArray> {
  readonly #make: new (
    length: number,
  ) => A
  #array: A
  length = 0

  constructor(make: new (length: number) => A) {
    this.#make = make
    this.#array = new make(FIRST_CAPACITY)
  }

  push(value: number): void {
    if (this.length === this.#array.length) {
      const larger = new this.#make(2 * this.length)
      larger.set(this.#array)
      this.#array = larger
    }
    this.#array[this.length++] = value
  }

  at(place: number): number {
    return this.#array[place] as number
  }

  all(): A {
    return this.#array.slice(0, this.length)
  }
}

const utf8 = new TextEncoder()

class TextWriter {
  readonly #room: { bytes: number }
  readonly #bytes = new ByteWriter()
  readonly #ends = new Growing(Uint32Array)

  constructor(room: { bytes: number }) {
    this.#room = room
  }

  /** Returns its place. */
  push(text: string): number {
    return this.pushBytes(utf8.encode(text))
  }

  pushBytes(bytes: Uint8Array): number {
    take(this.#room, bytes.length + END_BYTES)
    this.#bytes.raw(bytes)
    this.#ends.push(this.#bytes.length)
    return this.#ends.length - 1
  }

  /** Whether the last text has these bytes. */
  isLast(bytes: Uint8Array): boolean {
    const { length } = this.#ends
    const start = length < 2 ? 0 : this.#ends.at(length - 2)
    if (length === 0 || this.#bytes.length - start !== bytes.length) return false
    return Buffer.compare(this.#bytes.bytes().subarray(start), bytes) === 0
  }

  column(): TextColumn {
    return { bytes: this.#bytes.bytes(), ends: this.#ends.all() }
  }
}
