/**
 * A smon series: a metric of a source, optionally with an index. Its last value is kept as it is sent (basic type and value
 * in XDR), so that a value is encoded once for all subscribers.
 */
import { XdrReader } from '../../../protocol/bytes/reader.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { readTyped, type Value } from '../../../protocol/monitor/value.ts'
import { type CataloguedSeries, type MetricMetadata, NO_METADATA } from '../../metrics/catalogue.ts'
import type { LabelName, Labels, Subscription } from '../../metrics/metric.ts'

const { UINT64, STRING } = BasicType
const UINT64_BYTES = 12

export class SmonSeries implements CataloguedSeries {
  readonly name: string
  readonly labels: Labels
  readonly subscriptions: Subscription[] = []
  metadata: MetricMetadata = NO_METADATA
  /** When the last value came, in microseconds since 1970; 0 if there was none. */
  time = 0
  /** The last value: basic type and value. Valid until the next one. */
  tail = new Uint8Array(UINT64_BYTES)
  #view = new DataView(this.tail.buffer)

  /** `index` has numbers separated by commas, or is '' for none. */
  constructor(name: string, source: string, index: string) {
    this.name = name
    this.labels = { name, source, index }
  }

  /** Whether the last value is text; only then may its tail have any length. */
  get isText(): boolean {
    return this.#view.getUint32(0) === STRING
  }

  number(value: number | bigint, time: number): void {
    if (this.isText) this.#resize(UINT64_BYTES)
    const view = this.#view
    view.setUint32(0, UINT64)
    if (typeof value === 'bigint') {
      view.setBigUint64(4, value)
    } else {
      const high = Math.floor(value / 0x100000000)
      view.setUint32(4, high)
      view.setUint32(8, value - high * 0x100000000)
    }
    this.time = time
  }

  text(bytes: Uint8Array, time: number): void {
    const padded = (bytes.length + 3) & ~3
    if (this.tail.length !== 8 + padded) this.#resize(8 + padded)
    const { tail } = this
    this.#view.setUint32(0, STRING)
    this.#view.setUint32(4, bytes.length)
    tail.set(bytes, 8)
    tail.fill(0, 8 + bytes.length)
    this.time = time
  }

  value(): Value {
    return readTyped(new XdrReader(this.tail))
  }

  #resize(length: number): void {
    this.tail = new Uint8Array(length)
    this.#view = new DataView(this.tail.buffer)
  }

  matches(label: LabelName, matcher: (text: string) => boolean): boolean {
    const text = this.labels[label]
    return text !== undefined && matcher(text)
  }
}

/**
 * A source of smon streams and its series. It exists while one of its streams is open or, if it sends datagrams, for some
 * minutes after the last one. Its series survive a resynchronisation, after which they are found by name.
 */
export class SmonSource {
  readonly name: string
  /** Open streams. */
  streams = 0
  /** When its last datagram came, monotonic ms; undefined if it sends none. */
  datagramMs: number | undefined
  readonly #series = new Map<string, SmonSeries>()

  constructor(name: string) {
    this.name = name
  }

  find(name: string, index: string): SmonSeries | undefined {
    return this.#series.get(keyOf(name, index))
  }

  add(name: string, index: string): SmonSeries {
    const series = new SmonSeries(name, this.name, index)
    this.#series.set(keyOf(name, index), series)
    return series
  }

  series(): Iterable<SmonSeries> {
    return this.#series.values()
  }
}

/** The key is unambiguous, because names contain no control characters. */
function keyOf(name: string, index: string): string {
  return index === '' ? name : `${name}\0${index}`
}
