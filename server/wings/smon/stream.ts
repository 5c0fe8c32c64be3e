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
import {
  type CataloguedSeries,
  type LabelName,
  type Labels,
  type MetricMetadata,
  NO_METADATA,
  type Subscription,
} from '../../kit/metrics.ts'
import type { SmonBudget } from './budget.ts'

const { UINT64, STRING } = BasicType
const UINT64_BYTES = 12

/**
 * The work that is done at once, about a millisecond: a value counts 1, and 1 for each subscription to it, less in runs. What costs more
 * counts more, because a sender chooses what its bytes ask for: two of them may be a text of 64 KiB.
 */
const WORK_AT_ONCE = 2_048
/**
 * From so many subscriptions on, the values of a series that come after each other are handed over together: each subscription
 * leads to other places in memory, and to touch them is most of what a value costs. In a run it costs an eighth.
 */
const MANY_SUBSCRIPTIONS = 8
const RUN_SHARE = 1 / 8
/** The bytes of a text that cost as much as a value. */
const TEXT_BYTES_A_VALUE = 256
/** The work of a definition, of a value whose series is searched for, or created, by name, and of an error. */
const WORK_BY_NAME = 64

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
  readonly #texts: SmonBudget
  #view = new DataView(this.tail.buffer)
  /** The bytes of `tail` if it is that of a text, which are taken of the budget; 0 if it is that of a number. */
  #textBytes = 0

  /** `index` has numbers separated by commas, or is '' for none. `texts` has the bytes of last values that are text. */
  constructor(name: string, source: string, index: string, texts: SmonBudget) {
    this.name = name
    this.labels = { name, source, index }
    this.#texts = texts
  }

  number(value: number | bigint, time: number): void {
    if (this.#textBytes > 0) this.forget()
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

  /** Returns the value as it is sent. It is not kept if the budget is not sufficient: then there is no last value. */
  text(bytes: Uint8Array, time: number): Uint8Array {
    const length = 8 + ((bytes.length + 3) & ~3)
    if (length !== this.#textBytes && !this.#texts.take(length - this.#textBytes)) {
      this.forget()
      const tail = new Uint8Array(length)
      writeText(tail, new DataView(tail.buffer), bytes)
      return tail
    }
    this.#textBytes = length
    if (this.tail.length !== length) this.#resize(length)
    writeText(this.tail, this.#view, bytes)
    this.time = time
    return this.tail
  }

  /** Forgets the last value, and gives back what it took. */
  forget(): void {
    this.#texts.take(-this.#textBytes)
    this.#textBytes = 0
    this.time = 0
    if (this.tail.length !== UINT64_BYTES) this.#resize(UINT64_BYTES)
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

function writeText(tail: Uint8Array, view: DataView, bytes: Uint8Array): void {
  view.setUint32(0, STRING)
  view.setUint32(4, bytes.length)
  tail.set(bytes, 8)
  tail.fill(0, 8 + bytes.length)
}

/**
 * A source of smon streams and its series. It exists while one of its streams is open or, if it sends datagrams, for some
 * minutes after the last one. Its series survive a resynchronisation, after which they are found by name.
 */
export class SmonSource {
  readonly name: string
  /** Open streams, and datagrams under way. */
  streams = 0
  /** When its last datagram came, monotonic ms; undefined if it sends none. */
  datagramMs: number | undefined
  /** Whether its series are being removed, because it is not used any more. */
  isEnding = false
  readonly #texts: SmonBudget
  readonly #series = new Map<string, SmonSeries>()

  /** `texts` has the bytes of last values that are text. */
  constructor(name: string, texts: SmonBudget) {
    this.name = name
    this.#texts = texts
  }

  /** Whether it has an open stream, or sends datagrams. */
  get isUsed(): boolean {
    return this.streams > 0 || this.datagramMs !== undefined
  }

  find(name: string, index: string): SmonSeries | undefined {
    return this.#series.get(keyOf(name, index))
  }

  add(name: string, index: string): SmonSeries {
    const series = new SmonSeries(name, this.name, index, this.#texts)
    this.#series.set(keyOf(name, index), series)
    return series
  }

  /** Takes its series out, one after the other, as long as it is not used. */
  *end(): Generator<SmonSeries, void, void> {
    try {
      for (const [key, series] of this.#series) {
        if (this.isUsed) return
        this.#series.delete(key)
        series.forget()
        yield series
      }
    } finally {
      this.isEnding = false
    }
  }
}

/** The key is unambiguous, because names contain no control characters. */
function keyOf(name: string, index: string): string {
  return index === '' ? name : `${name}\0${index}`
}

/** The series of a token under one index, and those under longer indexes. */
interface Node {
  series: SmonSeries | undefined
  longer: Map<number, Node> | undefined
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
  /** A series has got a value; `tail` has its basic type and the value. */
  received(series: SmonSeries, tail: Uint8Array, time: number): void
  /** The same for several values, in their order. */
  receivedRun(series: SmonSeries, tails: readonly Uint8Array[], time: number): void
  /** For the indexes that streams keep. */
  readonly indexes: SmonBudget
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
  /** The number of indexes in the trees of the tokens. */
  #indexes = 0
  #time = 0
  /** What may still be done of WORK_AT_ONCE. */
  #workLeft = 0
  /** Values of a series with many subscriptions that are not handed over. */
  #run: Uint8Array[] = []
  #runOf: SmonSeries | undefined

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

  /**
   * Takes the next bytes, as many as it can in about a millisecond; returns how many. `time` is that of their values, in
   * microseconds since 1970. Never throws, whatever the bytes.
   */
  push(bytes: Uint8Array, time: number): number {
    this.#time = time
    this.#workLeft = WORK_AT_ONCE
    const taken = this.#decoder.decode(bytes)
    this.#handOver()
    return taken
  }

  /** The stream has ended: gives back what it holds. */
  end(): void {
    this.#decoder.reset()
    this.#forget()
  }

  defined({ number, name }: SmonToken): void {
    this.#spend(WORK_BY_NAME)
    this.#tokens[number] = { name: metricName(name), series: undefined, longer: undefined }
  }

  number(token: SmonToken, index: readonly number[], value: number | bigint): void {
    const series = this.#series(token, index)
    if (series === undefined) return
    series.number(value, this.#time)
    this.#pass(series, series.tail, 1)
  }

  text(token: SmonToken, index: readonly number[], value: Uint8Array): void {
    const series = this.#series(token, index)
    if (series === undefined) return
    this.#pass(series, series.text(value, this.#time), 1 + value.length / TEXT_BYTES_A_VALUE)
  }

  /** `tail` is valid until the next value of the series; `work`: what it costs for each subscription. */
  #pass(series: SmonSeries, tail: Uint8Array, work: number): void {
    const subscriptions = series.subscriptions.length
    if (series === this.#runOf) {
      this.#run.push(tail.slice())
      this.#spend(1 + subscriptions * work * RUN_SHARE)
      return
    }
    this.#handOver()
    if (subscriptions < MANY_SUBSCRIPTIONS) {
      this.#receiver.received(series, tail, this.#time)
    } else {
      this.#runOf = series
      this.#run.push(tail.slice())
    }
    this.#spend((1 + subscriptions) * work)
  }

  #handOver(): void {
    if (this.#runOf === undefined) return
    const [series, run] = [this.#runOf, this.#run]
    this.#runOf = undefined
    this.#run = []
    this.#receiver.receivedRun(series, run, this.#time)
  }

  reset(): void {
    this.#spend(WORK_BY_NAME)
    this.#forget()
    this.#receiver.counters.resets++
  }

  invalid(error: ProtocolError): void {
    this.#spend(WORK_BY_NAME)
    this.#forget()
    this.#receiver.invalid(this.source, error)
  }

  #forget(): void {
    this.#tokens = []
    this.#receiver.indexes.take(-this.#indexes)
    this.#indexes = 0
  }

  #spend(work: number): void {
    this.#workLeft -= work
    if (this.#workLeft <= 0) this.#decoder.pause()
  }

  #series(token: SmonToken, index: readonly number[]): SmonSeries | undefined {
    let node: Node | undefined = this.#tokens[token.number]
    for (let depth = 0; depth < index.length && node !== undefined; depth++) node = node.longer?.get(index[depth]!)
    return node?.series ?? this.#findOrCreate(token, index)
  }

  /** Finds or creates the series, for the first value of a token under an index or while there is no room for series or index. */
  #findOrCreate(token: SmonToken, index: readonly number[]): SmonSeries | undefined {
    this.#handOver()
    this.#spend(WORK_BY_NAME)
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
    const node = this.#grow(known, index)
    if (node !== undefined) node.series = series
    return series
  }

  /** The node of an index in the tree of a token; undefined if there is no room for it. */
  #grow(token: DefinedToken, index: readonly number[]): Node | undefined {
    let node: Node = token
    for (const number of index) {
      let longer = node.longer?.get(number)
      if (longer === undefined) {
        if (!this.#receiver.indexes.take(1)) return undefined
        this.#indexes++
        longer = { series: undefined, longer: undefined }
        node.longer ??= new Map()
        node.longer.set(number, longer)
      }
      node = longer
    }
    return node
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
