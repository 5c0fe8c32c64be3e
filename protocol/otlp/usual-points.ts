/**
 * Points as SDKs write them, of a metric whose attributes are remembered: they are read where they stand, without a call for each
 * field. Whatever is new or unusual in one, such as a field that nobody sends, is left to `points.ts`, which reads all there is; what
 * both can read they read alike, and count alike.
 */
import type { MessageReader } from '../protobuf.ts'
import {
  type Attribute,
  type HistogramPoint,
  MAX_POINT_ELEMENTS,
  type MetricData,
  NO_RECORDED_VALUE,
  type NumberPoint,
  pointWeights,
  type ReadAttributes,
} from './metrics.ts'
import type { KnownAttributes } from './points.ts'

type ReadUsual = (message: UsualMessage, known: KnownAttributes) => NumberPoint | HistogramPoint | undefined

const readers: Partial<Readonly<Record<MetricData['kind'], ReadUsual>>> = {
  gauge: numberPoint,
  sum: numberPoint,
  histogram: histogramPoint,
}

/** Tags: the number of a field and how it is written. */
const POINT = 0x0a
const START = 0x11
const TIME = 0x19
const NUMBER = { DOUBLE: 0x21, EXEMPLAR: 0x2a, INTEGER: 0x31, ATTRIBUTE: 0x3a, FLAGS: 0x40 } as const
const HISTOGRAM = {
  COUNT: 0x21,
  SUM: 0x29,
  COUNTS: 0x32,
  BOUNDS: 0x3a,
  EXEMPLAR: 0x42,
  ATTRIBUTE: 0x4a,
  FLAGS: 0x50,
  MIN: 0x59,
  MAX: 0x61,
} as const
const WIDE = 8
const MORE = 0x80
const NO_ATTRIBUTES: readonly Attribute[] = []

/** The point that begins here, in data that ends there; undefined, and nothing is read, if it is new or unusual. */
export function usualPoint(
  reader: MessageReader,
  kind: MetricData['kind'],
  dataEnd: number,
  known: KnownAttributes,
): NumberPoint | HistogramPoint | undefined {
  const read = readers[kind]
  const at = reader.offset
  const { view } = reader
  if (read === undefined || view.getUint8(at) !== POINT) return undefined
  const end = endOf(view, at + 1, dataEnd)
  if (end < 0) return undefined
  const message = new UsualMessage(reader, afterLength(view, at + 1), end)
  const point = read(message, known)
  const elements = 1 + pointWeights[kind] + message.elements
  if (point === undefined || message.elements > MAX_POINT_ELEMENTS || elements > reader.left) return undefined
  reader.skip(end, elements)
  return point
}

/** Where a message ends whose length stands there; -1 if that is of more than two bytes, or the message does not end by `most`. */
function endOf(view: DataView, at: number, most: number): number {
  if (at >= most) return -1
  const first = view.getUint8(at)
  if (first < MORE) return at + 1 + first <= most ? at + 1 + first : -1
  if (at + 1 >= most) return -1
  const second = view.getUint8(at + 1)
  const end = at + 2 + (first & 0x7f) + second * MORE
  return second < MORE && end <= most ? end : -1
}

function afterLength(view: DataView, at: number): number {
  return view.getUint8(at) < MORE ? at + 1 : at + 2
}

/** A message that is being read: what is next, and what all kinds of points have. */
class UsualMessage {
  readonly view: DataView
  readonly #reader: MessageReader
  readonly #end: number
  #at: number
  /** As which what was read counts. */
  elements = 0
  shared: ReadAttributes | undefined
  start = 0
  time = 0
  isEnd = false

  constructor(reader: MessageReader, at: number, end: number) {
    this.view = reader.view
    this.#reader = reader
    this.#at = at
    this.#end = end
  }

  /** The next tag; -1 at the end. */
  tag(): number {
    if (this.#at >= this.#end) return -1
    this.elements++
    return this.view.getUint8(this.#at++)
  }

  /** The place of eight bytes, which are passed over; -1 if they are not there. */
  wide(): number {
    const at = this.#at
    this.#at = at + WIDE
    return this.#at <= this.#end ? at : -1
  }

  setStart(): boolean {
    const at = this.wide()
    if (at >= 0) this.start = this.#reader.microsecondsAt(at)
    return at >= 0
  }

  setTime(): boolean {
    const at = this.wide()
    if (at >= 0) this.time = this.#reader.microsecondsAt(at)
    return at >= 0
  }

  flags(): boolean {
    const flags = this.#at < this.#end ? this.view.getUint8(this.#at++) : MORE
    this.isEnd = (flags & NO_RECORDED_VALUE) !== 0
    return flags < MORE
  }

  /** Passes over a message. */
  pass(): boolean {
    const end = endOf(this.view, this.#at, this.#end)
    this.#at = end
    return end >= 0
  }

  /** Eight bytes for each of several numbers, which are passed over: their place; -1 if they are not packed like that. */
  packed(): number {
    const start = this.#at
    if (!this.pass()) return -1
    const first = afterLength(this.view, start)
    const count = (this.#at - first) / WIDE
    this.elements += count
    return Number.isInteger(count) ? first : -1
  }

  /** How many numbers were passed over that begin there. */
  countFrom(first: number): number {
    return (this.#at - first) / WIDE
  }

  /** All attributes of a point, whose first tag was read. False if they are not remembered, or if it had some before. */
  attributes(tag: number, { memory, context }: KnownAttributes): boolean {
    if (this.shared !== undefined) return false
    const { view } = this
    const start = this.#at
    let at = start - 1
    while (at < this.#end && view.getUint8(at) === tag) {
      const next = endOf(view, at + 1, this.#end)
      if (next < 0) return false
      at = next
    }
    this.shared = memory.find(view, start, at, context)
    if (this.shared === undefined) return false
    this.elements += this.shared.elements
    this.#at = at
    return true
  }
}

function numberPoint(message: UsualMessage, known: KnownAttributes): NumberPoint | undefined {
  const { view } = message
  let value: number | bigint | undefined
  let at = 0
  for (let tag = message.tag(); tag >= 0; tag = message.tag()) {
    let isUsual = false
    if (tag === NUMBER.ATTRIBUTE) isUsual = message.attributes(tag, known)
    else if (tag === TIME) isUsual = message.setTime()
    else if (tag === START) isUsual = message.setStart()
    else if (tag === NUMBER.FLAGS) isUsual = message.flags()
    else if (tag === NUMBER.EXEMPLAR) isUsual = message.pass()
    else if (tag === NUMBER.DOUBLE || tag === NUMBER.INTEGER) {
      at = message.wide()
      isUsual = at >= 0
      if (isUsual) value = tag === NUMBER.DOUBLE ? view.getFloat64(at, true) : view.getBigInt64(at, true)
    }
    if (!isUsual) return undefined
  }
  const { shared, start, time, isEnd } = message
  return { attributes: shared?.attributes ?? NO_ATTRIBUTES, shared, start, time, isEnd, value }
}

/** A histogram whose numbers stand in the bytes of the request, to be read or copied from there. */
export class UsualHistogram implements HistogramPoint {
  attributes = NO_ATTRIBUTES
  shared: ReadAttributes | undefined
  start = 0
  time = 0
  isEnd = false
  readonly view: DataView
  /** Where its numbers stand; -1 for what it has not. */
  countAt = -1
  sumAt = -1
  minAt = -1
  maxAt = -1
  countsAt = -1
  boundsAt = -1
  countsLength = 0
  boundsLength = 0

  constructor(view: DataView) {
    this.view = view
  }

  /** Takes a field with numbers; false if there is something unusual about it. */
  take(tag: number, message: UsualMessage): boolean {
    switch (tag) {
      case HISTOGRAM.COUNT:
        this.countAt = message.wide()
        return this.countAt >= 0
      case HISTOGRAM.SUM:
        this.sumAt = message.wide()
        return this.sumAt >= 0
      case HISTOGRAM.MIN:
        this.minAt = message.wide()
        return this.minAt >= 0
      case HISTOGRAM.MAX:
        this.maxAt = message.wide()
        return this.maxAt >= 0
      case HISTOGRAM.COUNTS: {
        const isFirst = this.countsAt < 0
        this.countsAt = message.packed()
        this.countsLength = message.countFrom(this.countsAt)
        return isFirst && this.countsAt >= 0
      }
      case HISTOGRAM.BOUNDS: {
        const isFirst = this.boundsAt < 0
        this.boundsAt = message.packed()
        this.boundsLength = message.countFrom(this.boundsAt)
        return isFirst && this.boundsAt >= 0
      }
      default:
        return false
    }
  }

  /** After all fields. */
  end({ shared, start, time, isEnd }: UsualMessage): void {
    this.attributes = shared?.attributes ?? NO_ATTRIBUTES
    this.shared = shared
    this.start = start
    this.time = time
    this.isEnd = isEnd
  }

  get count(): bigint {
    return this.countAt < 0 ? 0n : this.view.getBigUint64(this.countAt, true)
  }

  get sum(): number | undefined {
    return this.#double(this.sumAt)
  }

  get min(): number | undefined {
    return this.#double(this.minAt)
  }

  get max(): number | undefined {
    return this.#double(this.maxAt)
  }

  get counts(): readonly bigint[] {
    return Array.from({ length: this.countsLength }, (_, place) =>
      this.view.getBigUint64(this.countsAt + WIDE * place, true),
    )
  }

  get bounds(): readonly number[] {
    return Array.from({ length: this.boundsLength }, (_, place) =>
      this.view.getFloat64(this.boundsAt + WIDE * place, true),
    )
  }

  #double(at: number): number | undefined {
    return at < 0 ? undefined : this.view.getFloat64(at, true)
  }
}

function histogramPoint(message: UsualMessage, known: KnownAttributes): HistogramPoint | undefined {
  const point = new UsualHistogram(message.view)
  for (let tag = message.tag(); tag >= 0; tag = message.tag()) {
    let isUsual = false
    if (tag === HISTOGRAM.ATTRIBUTE) isUsual = message.attributes(tag, known)
    else if (tag === TIME) isUsual = message.setTime()
    else if (tag === START) isUsual = message.setStart()
    else if (tag === HISTOGRAM.FLAGS) isUsual = message.flags()
    else if (tag === HISTOGRAM.EXEMPLAR) isUsual = message.pass()
    else isUsual = point.take(tag, message)
    if (!isUsual) return undefined
  }
  point.end(message)
  return point
}
