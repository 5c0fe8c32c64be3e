/**
 * One smon stream of a source: the decoded values become values of series. A token is looked up once and has a tree of its
 * indexes, so that a value needs no text and no hashing of names.
 */
import type { ProtocolError } from '../../../protocol/errors.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { nameProblem } from '../../../protocol/monitor/value.ts'
import { SmonDecoder, type SmonLimits, type SmonSink } from '../../../protocol/smon/decode.ts'
import type { SmonToken } from '../../../protocol/smon/stream-state.ts'
import type { SmonSeries, SmonSource } from './series.ts'

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
