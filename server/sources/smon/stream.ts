/**
 * The sources of smon, their streams and series: the decoded values of a stream become values of series. A token is looked
 * up once and has a tree of its indexes, so that a value needs no text and no hashing of names.
 */

import { XdrReader } from '../../../protocol/bytes/reader.ts'
import type { ProtocolError } from '../../../protocol/errors.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { nameProblem, readTyped, type Value } from '../../../protocol/monitor/value.ts'
import { SmonDecoder, type SmonLimits, type SmonSink } from '../../../protocol/smon/decode.ts'
import type { SmonToken } from '../../../protocol/smon/stream-state.ts'
import { type CataloguedSeries, type MetricMetadata, NO_METADATA } from '../../metrics/catalogue.ts'
import type { LabelName, Labels, Subscription } from '../../metrics/metric.ts'

const { UINT64, STRING } = BasicType
const UINT64_BYTES = 12

/**
 * A metric of a source, optionally with an index. Its last value is kept as it is sent (basic type and value in XDR), so that
 * a value is encoded once for all subscribers.
 */
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

/** The series of a token under one index, and those under longer indexes. */
interface Node {
  series: SmonSeries | undefined
  readonly longer: Map<number, Node>
}

/** A defined token; `name` is undefined if it cannot be the name of a metric. */
interface DefinedToken extends Node {
  readonly name: string | undefined
}

/** The sensor, which all streams share. */
export interface SmonReceiver {
  /** Whether one more series may be made; counts it if not. */
  hasRoom(): boolean
  born(series: SmonSeries): void
  /** A series has got a value of another type than before. */
  typed(series: SmonSeries, type: BasicType): void
  received(series: SmonSeries): void
  readonly counters: { badName: number; invalid: number; resets: number }
  invalid(source: SmonSource, error: ProtocolError): void
}

export const SMON_PREFIX = 'smon.'
const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

export class SmonStream implements SmonSink {
  readonly source: SmonSource
  readonly #receiver: SmonReceiver
  readonly #decoder: SmonDecoder
  /** By token number. */
  #tokens: (DefinedToken | undefined)[] = []
  #time = 0

  constructor(source: SmonSource, receiver: SmonReceiver, limits: SmonLimits) {
    this.source = source
    this.#receiver = receiver
    this.#decoder = new SmonDecoder(this, limits)
  }

  get valid(): boolean {
    return this.#decoder.valid
  }

  /** The number of bytes that were discarded while it was invalid. */
  get skipped(): number {
    return this.#decoder.skipped
  }

  /** Whether the stream is between two items. */
  get complete(): boolean {
    return this.#decoder.complete
  }

  /** Takes the next bytes; `time` is that of their values, in microseconds since 1970. Never throws, whatever the bytes. */
  push(bytes: Uint8Array, time: number): void {
    this.#time = time
    this.#decoder.decode(bytes)
  }

  defined({ number, name }: SmonToken): void {
    this.#tokens[number] = { name: metricName(name), series: undefined, longer: new Map() }
  }

  number(token: SmonToken, index: readonly number[], value: number | bigint): void {
    const series = this.#series(token, index)
    if (series === undefined) return
    series.number(value, this.#time)
    this.#receiver.received(series)
  }

  text(token: SmonToken, index: readonly number[], value: Uint8Array): void {
    const series = this.#series(token, index)
    if (series === undefined) return
    series.text(value, this.#time)
    this.#receiver.received(series)
  }

  reset(): void {
    this.#tokens = []
    this.#receiver.counters.resets++
  }

  invalid(error: ProtocolError): void {
    this.#receiver.invalid(this.source, error)
  }

  #series(token: SmonToken, index: readonly number[]): SmonSeries | undefined {
    let node: Node | undefined = this.#tokens[token.number]
    for (let depth = 0; depth < index.length && node !== undefined; depth++) node = node.longer.get(index[depth]!)
    return node?.series ?? this.#findOrCreate(token, index)
  }

  /** Finds or creates the series, for the first value of a token under an index or while there is no room for the series. */
  #findOrCreate(token: SmonToken, index: readonly number[]): SmonSeries | undefined {
    const known = this.#tokens[token.number]
    const receiver = this.#receiver
    if (known?.name === undefined) {
      receiver.counters.badName++
      return undefined
    }
    const text = index.join(',')
    let series = this.source.find(known.name, text)
    if (series === undefined) {
      if (!receiver.hasRoom()) return undefined
      series = this.source.add(known.name, text)
      receiver.born(series)
    }
    receiver.typed(series, token.type === 'u' ? BasicType.UINT64 : BasicType.STRING)
    let node: Node = known
    for (const number of index) {
      const longer = node.longer.get(number) ?? { series: undefined, longer: new Map() }
      node.longer.set(number, longer)
      node = longer
    }
    node.series = series
    return series
  }
}

/** The name of the metric; undefined if it is not a valid name [MON 1]. */
function metricName(bytes: Uint8Array): string | undefined {
  try {
    const name = SMON_PREFIX + strictUtf8.decode(bytes)
    return nameProblem(name) === undefined ? name : undefined
  } catch {
    return undefined
  }
}
