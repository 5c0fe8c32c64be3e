/**
 * Encoded values that are passed on without being decoded: where the REC of a series has its labels and its value [MON 9 Patterns],
 * and whether what stands there is a value at all.
 */
import { XdrReader } from '../bytes/reader.ts'
import { RecentByBytes } from '../bytes/recent.ts'
import { ProtocolError } from '../errors.ts'
import { BasicType } from './constants.ts'
import { type Field, readBareValue, readName, readType, readTyped, type Value } from './value.ts'

/** Series whose labels are kept, and how many bytes these have at most. */
const [KEPT_SERIES, MAX_KEPT_BYTES] = [1_024, 512]

/** Reads values, and keeps the labels of the series that came last: their RECs are the same but for the last field. */
export class LabelledReader {
  readonly #kept = new RecentByBytes<readonly Field[]>(KEPT_SERIES, MAX_KEPT_BYTES)

  /** As `readTyped`. */
  read(reader: XdrReader): Value {
    const { dataView: view, offset } = reader
    const place = placeOfValue(view, offset, offset + reader.remaining)
    if (place < 0) return readTyped(reader)
    const labels = this.#kept.get(view, offset, place)
    if (labels === undefined) return this.#readNew(reader, place)
    reader.offset = place
    // Whoever gets them may change them.
    const fields = copied(labels)
    const { type, value } = readBareValue(reader, readType(reader), 1)
    fields.push({ name: 'value', type, value } as Field)
    return { type: BasicType.REC, value: fields }
  }

  #readNew(reader: XdrReader, place: number): Value {
    const { dataView: view, offset } = reader
    const read = readTyped(reader)
    if (read.type !== BasicType.REC) return read
    const labels = read.value.slice(0, -1)
    // One that is not UTF-8 is given as its bytes, which could be changed.
    if (labels.every(({ value }) => typeof value === 'string')) this.#kept.keep(view, offset, place, copied(labels))
    return read
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
