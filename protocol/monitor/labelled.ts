/**
 * The RECs of series: where they have their labels and their value [MON 9 Patterns], whether what stands there is a value at all, for
 * those that pass it on without decoding it, and how to decode the same labels only once.
 */
import { XdrReader } from '../bytes/reader.ts'
import { RecentByBytes } from '../bytes/recent.ts'
import { ProtocolError } from '../errors.ts'
import { BasicType } from './constants.ts'
import { type Field, readBareValue, readName, readType, readTyped, type Value } from './value.ts'

/** Texts that are kept, and how long they are at most. */
const [TEXTS, MAX_TEXT_BYTES] = [512, 64]
/** Places for series whose labels are kept, and how many bytes these have at most. */
const [PLACES, MAX_KEPT_BYTES] = [4_096, 512]
/** With more series than places, labels are kept for one in so many: to keep them costs more than to read them. */
const KEPT_ONE_IN = 32

/**
 * A reader of values whose labels come again and again: `npm run bench -- codec` reads 2.2 million values of 100 series a second with it
 * (`valueReadAgain`), and 0.82 million with an XdrReader.
 */
export class LabelledReader extends XdrReader {
  readonly #texts = new RecentByBytes<string>(TEXTS, MAX_TEXT_BYTES)
  readonly #kept = new RecentByBytes<readonly Field[]>(PLACES, MAX_KEPT_BYTES)
  /** Labels that were not found. */
  #missed = 0

  /** As `readTyped`. */
  typed(): Value {
    const at = this.offset
    const place = placeOfValue(this.data, at, this.end)
    if (place < 0) return readTyped(this)
    const labels = this.#kept.get(this.data, at, place)
    if (labels === undefined) return this.#readNew(at, place)
    this.offset = place
    // A consumer may change what it is given.
    const fields = copied(labels)
    const { type, value } = readBareValue(this, readType(this), 1)
    fields.push({ name: 'value', type, value } as Field)
    return { type: BasicType.REC, value: fields }
  }

  #readNew(at: number, place: number): Value {
    const read = readTyped(this)
    if (read.type !== BasicType.REC) return read
    if (++this.#missed > PLACES && this.#missed % KEPT_ONE_IN !== 0) return read
    const labels = copied(read.value)
    labels.pop()
    // One that is not UTF-8 is given as its bytes, which could be changed.
    if (labels.every(({ value }) => typeof value === 'string')) this.#kept.keep(this.data, at, place, labels)
    return read
  }

  protected override decodeText(start: number, end: number): string {
    const kept = this.#texts.get(this.data, start, end)
    if (kept !== undefined) return kept
    const text = super.decodeText(start, end)
    this.#texts.keep(this.data, start, end, text)
    return text
  }
}

function copied(labels: readonly Field[]): Field[] {
  const fields: Field[] = []
  for (const { name, type, value } of labels) fields.push({ name, type, value } as Field)
  return fields
}

/**
 * Where the basic type of the field `value` stands in the REC of a series; `at` is where that of the REC stands. -1 if it is no such
 * REC: every field before the last is a STRING, and the last is called `value`. Nothing beyond `end` is read.
 */
export function placeOfValue(view: DataView, at: number, end: number): number {
  if (end - at < 12 || view.getUint32(at) !== BasicType.REC) return -1
  const count = view.getUint32(at + 4)
  let place = at + 8
  for (let left = count; left > 1; left--) {
    place = after(view, place, end)
    if (place < 0 || place + 8 > end || view.getUint32(place) !== BasicType.STRING) return -1
    place = after(view, place + 4, end)
    if (place < 0) return -1
  }
  const isValue =
    count > 0 && place + 16 <= end && view.getUint32(place) === 5 && view.getUint32(place + 4) === 0x76616c75
  return isValue && view.getUint32(place + 8) === 0x65000000 ? place + 12 : -1
}

/** The place after a string; -1 if it reaches beyond `end`. */
function after(view: DataView, at: number, end: number): number {
  if (at + 4 > end) return -1
  const length = view.getUint32(at)
  const next = at + 4 + ((length + 3) & ~3)
  return length <= end - at - 4 && next <= end ? next : -1
}

/** The labels before the field `value`; `place` as `placeOfValue` gives it. Throws ProtocolError. */
export function readLabels(bytes: Uint8Array, at: number, place: number): Map<string, string> {
  const reader = new XdrReader(bytes.subarray(at, place))
  reader.uint32()
  const labels = new Map<string, string>()
  for (let left = reader.uint32(); left > 1; left--) {
    const from = reader.offset
    const name = readName(reader)
    const { value } = readTyped(reader)
    if (typeof value !== 'string') throw new ProtocolError('BAD_UTF8', `label ${name} is not UTF-8`, at + from)
    if (labels.has(name)) throw new ProtocolError('DUPLICATE_NAME', `label ${name} stands twice`, at + from)
    labels.set(name, value)
  }
  return labels
}

/** The bytes of numbers, by basic type. */
const SCALAR_BYTES: readonly number[] = [-1, 4, 4, 8, 8, 8]

/**
 * Throws ProtocolError unless a basic type and a value of it, and nothing else, stand from `at` to `end`. `depth`: the RECs around it,
 * which count towards its nesting.
 */
export function checkTyped(bytes: Uint8Array, view: DataView, at: number, end: number, depth = 0): void {
  if (end - at >= 4 && SCALAR_BYTES[view.getUint32(at)] === end - at - 4) return
  const reader = new XdrReader(bytes.subarray(at, end))
  readBareValue(reader, readType(reader), depth)
  reader.finish()
}
