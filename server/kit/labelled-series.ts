/** A series with any labels, as metrics of today's programs have them [MON 9 Labels]. */
import { murmurOf } from '../../protocol/bytes/hash.ts'
import { XdrReader } from '../../protocol/bytes/reader.ts'
import { XdrWriter } from '../../protocol/bytes/writer.ts'
import { BasicType } from '../../protocol/monitor/constants.ts'
import { readTyped, type Value, writeTyped } from '../../protocol/monitor/value.ts'
import { type CataloguedSeries, type MetricMetadata, NO_METADATA } from '../kernel/metrics/catalogue.ts'
import { CurrentTime } from '../kernel/metrics/current.ts'
import { labelText } from '../kernel/metrics/labels.ts'
import type { Labels, Measurement, Subscription } from '../kernel/metrics/metric.ts'

/** Samples of a series that are known again if they are sent again. */
const REMEMBERED = 8
/** Each takes a time and a mark of its value. */
const PAIR = 2

export class LabelledSeries implements CataloguedSeries {
  readonly name: string
  readonly labels: Labels
  readonly key: string
  readonly subscriptions: Subscription[] = []
  metadata: MetricMetadata = NO_METADATA
  /** False after it has ended. */
  isLive = true
  /** Decides which value is `last`. */
  readonly current = new CurrentTime()
  first?: () => Measurement | undefined
  /** When a value came last, monotonic milliseconds. */
  heardMs = 0
  /** The current value, if it is no number, or as it came encoded; a number needs no object of its own, which would outlive most others. */
  #last: Measurement | Uint8Array | undefined
  #hasNumber = false
  #number = 0
  /** Of the number, or of what is encoded, microseconds since 1970. */
  #lastTime = 0
  /** The stamp of the publisher that was asked last whether the series may be published, and what it said. */
  #judgedBy: object | undefined
  #isAllowed = false
  #newest = Number.NEGATIVE_INFINITY
  /** Times and marks of its last samples; the place of the next one. */
  #samples: Float64Array | undefined
  #next = 0

  constructor(name: string, labels: Labels, key: string) {
    this.name = name
    this.labels = labels
    this.key = key
  }

  /** The current value; undefined after its source has said that the series ended. */
  get last(): Measurement | undefined {
    const time = this.#lastTime
    if (this.#hasNumber) return { value: { type: BasicType.DOUBLE, value: this.#number }, time }
    if (!(this.#last instanceof Uint8Array)) return this.#last
    // What is read may keep the bytes, and these are written over.
    return { value: readTyped(new XdrReader(this.#last.slice())), time }
  }

  /** `time`: microseconds since 1970. */
  setLast(value: Value, time: number): void {
    this.#hasNumber = false
    this.#last = value.type === BasicType.VOID ? undefined : { value, time }
  }

  /** The same for a DOUBLE. */
  setLastNumber(number: number, time: number): void {
    this.#hasNumber = true
    this.#last = undefined
    this.#number = number
    this.#lastTime = time
  }

  /** The same for a value that is encoded, whose bytes are copied. */
  setLastEncoded(encoded: Uint8Array, time: number): void {
    this.#hasNumber = false
    // Most values of a series are as long as each other.
    if (this.#last instanceof Uint8Array && this.#last.length === encoded.length) this.#last.set(encoded)
    else this.#last = encoded.slice()
    this.#lastTime = time
  }

  /** Whether the publisher with a stamp lets the series be published: `judge` is asked the first time, whose answer never changes. */
  isAllowedBy(stamp: object, judge: (key: string) => boolean): boolean {
    if (this.#judgedBy !== stamp) {
      this.#isAllowed = judge(this.key)
      this.#judgedBy = stamp
    }
    return this.#isAllowed
  }

  matches(label: string, matcher: (text: string) => boolean): boolean {
    return matcher(labelText(this.labels, label) ?? '')
  }

  /** Remembers a sample; returns false if it is one of the last ones again. `time`: microseconds since 1970. */
  isNew(value: Value, time: number): boolean {
    return this.isNewNumber(markOf(value), time)
  }

  /** The same for a value that is encoded. */
  isNewEncoded(encoded: Uint8Array, time: number): boolean {
    return this.isNewNumber(markOfBytes(encoded), time)
  }

  /** The same for a DOUBLE. */
  isNewNumber(mark: number, time: number): boolean {
    const samples = this.#samples ?? new Float64Array(REMEMBERED * PAIR).fill(Number.NEGATIVE_INFINITY)
    this.#samples = samples
    if (time <= this.#newest) {
      for (let at = 0; at < samples.length; at += PAIR) {
        if (samples[at] === time && Object.is(samples[at + 1], mark)) return false
      }
    } else this.#newest = time
    samples[this.#next] = time
    samples[this.#next + 1] = mark
    this.#next = (this.#next + PAIR) % samples.length
    return true
  }

  /** Nothing is known again: samples that were taken were not all stored, and will be sent again. */
  forget(): void {
    this.#samples?.fill(Number.NEGATIVE_INFINITY)
  }
}

/** Times the least double, integers up to here are exact, and no number that anybody measures. */
const MAX_TINY = 2 ** 51
const VOID_MARK = (MAX_TINY + 1) * Number.MIN_VALUE

/**
 * A number that two different values do not share, as far as a hash of 53 bits tells them apart. The writer for it costs much more
 * than all else here, so most integers, and values without content, do without.
 */
function markOf(value: Value): number {
  if (typeof value.value === 'number') return value.value
  if (typeof value.value === 'boolean') return Number(value.value)
  if (value.type === BasicType.VOID) return VOID_MARK
  if (value.type === BasicType.INT64 && value.value >= -MAX_TINY && value.value <= MAX_TINY) {
    return Number(value.value) * Number.MIN_VALUE
  }
  const writer = new XdrWriter()
  writeTyped(writer, value)
  return markOfBytes(writer.bytes())
}

/** Two hashes as one number. */
function markOfBytes(encoded: Uint8Array): number {
  return (murmurOf(encoded, 1) >>> 0) * 2 ** 21 + (murmurOf(encoded, 2) >>> 11)
}
