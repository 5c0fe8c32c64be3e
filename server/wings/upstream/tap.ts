/**
 * What is followed at one upstream under one request, durable or not: its id there, the series that come, and who wants them here.
 * Values are passed on as they came; only what is before them in a REC, the labels, is read, once for each series.
 */
import { XdrWriter } from '../../../protocol/bytes/writer.ts'
import { ProtocolError } from '../../../protocol/errors.ts'
import type { ArgumentList } from '../../../protocol/monitor/arguments.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { checkTyped, placeOfValue, readLabels } from '../../../protocol/monitor/labelled.ts'
import { FRAME_TIME, FRAME_TYPE, type Gap } from '../../../protocol/monitor/message.ts'
import type { Feed } from '../../kit/feed.ts'
import { type Labels, labelsFrom, openLabelsProblem, type Subscription } from '../../kit/metrics.ts'
import type { HeldQueue, RemoteFollower, RemoteLoss, RemoteRequest, RemoteSeries } from '../../kit/producers.ts'
import { PRODUCER } from '../../kit/producers.ts'
import type { Steps } from '../../kit/running.ts'

/** Where a payload has its time and the type of its value: it begins without the length of its frame. */
const [PAYLOAD_TIME, PAYLOAD_TYPE] = [FRAME_TIME - 4, FRAME_TYPE - 4]
/** Of one name to seven: trees are not deeper [MON 9.13]. */
export const PATH = /^[^/*\p{Cc}]{1,64}(?:\/[^/*\p{Cc}]{1,64}){0,6}$/u
const TYPE_BYTES = 4
const HIGH_WORD = 2 ** 32
/** Longer values are copied by a call. */
const SHORT_BYTES = 32
/** Series whose labels have the same hash: honest ones are hardly ever two, and who makes more must not cost the time to compare all. */
const MAX_ALIKE = 16

export interface TapOptions {
  readonly request: RemoteRequest
  readonly isDurable: boolean
  readonly hub: Pick<Feed, 'emitEncoded'>
  /** Series that are known at once. */
  readonly maxSeries: number
  /** Whether values of a metric may be asked for. */
  readonly mayAsk: (name: string) => boolean
  /** Set if a node of this producer is asked: its series are those of this one. */
  readonly node?: NodeRules | undefined
}

/** What holds for a node, because its series are those of this producer. */
export interface NodeRules {
  /** Whether the sensor here that has the metric is fenced: then values from the node are dropped as well. */
  readonly isFenced: (name: string) => boolean
}

const NOTHING = new XdrWriter().uint32(BasicType.VOID).copy()

export class Tap {
  readonly request: RemoteRequest
  readonly isDurable: boolean
  /** Its metric id at the upstream; 0 while it has none. */
  id = 0
  /** Whether a REC of the form of a series is one. */
  isLabelled = true
  /** The round in which everything was held back that it goes to; 0 if something was not. */
  heldIn = 0
  /** Why the upstream does not take it; empty if it does. */
  problem = ''
  readonly #options: TapOptions
  readonly #followers = new Set<RemoteFollower>()
  /** In the order in which they came. */
  readonly #series = new Set<TappedSeries>()
  /** By the hash of their labels; those with the same one are a chain. */
  readonly #byHash = new Map<number, TappedSeries>()
  /** The one whose value came last. */
  #latest: TappedSeries | undefined

  constructor(options: TapOptions) {
    this.#options = options
    this.request = options.request
    this.isDurable = options.isDurable
  }

  /** The number of those who want it. */
  get followers(): number {
    return this.#followers.size
  }

  /** Where its values go. */
  *queues(): Generator<HeldQueue> {
    for (const { queue } of this.#followers) if (queue !== undefined) yield queue
  }

  /** The number of its series. */
  get size(): number {
    return this.#series.size
  }

  series(): Iterable<RemoteSeries> {
    return this.#series
  }

  add(follower: RemoteFollower): void {
    this.#followers.add(follower)
    this.heldIn = 0
  }

  delete(follower: RemoteFollower): void {
    this.#followers.delete(follower)
  }

  /**
   * Takes the payload of a VALUE. Throws ProtocolError for what is no value.
   */
  take(bytes: Uint8Array, start: number, end: number, view: DataView): void {
    const at = start + PAYLOAD_TYPE
    // Sources send their series in turns: mostly this is the one that came after the last one before, and nothing is looked up.
    const guess = this.#latest?.after
    const isRight = guess !== undefined && this.isLabelled && !guess.isForgotten && guess.isBefore(view, at, end)
    const place = isRight ? at + guess.length : this.#placeOfValue(view, at, end)
    const series = isRight ? guess : this.#find(bytes, view, at, place)
    if (this.#latest !== undefined) this.#latest.after = series
    this.#latest = series
    checkTyped(bytes, view, place, end, place === at ? 0 : 1)
    const time = boundedUint53(view, start + PAYLOAD_TIME)
    const { hub, node } = this.#options
    if (node?.isFenced(series.name)) {
      if (!series.isFenced) hub.emitEncoded(series, NOTHING, time)
      series.isFenced = true
      return
    }
    series.isFenced = false
    if (view.getUint32(place) === BasicType.VOID) {
      hub.emitEncoded(series, NOTHING, time)
      this.#forget(series)
    } else hub.emitEncoded(series, series.keep(bytes, place, end, time), time)
  }

  #placeOfValue(view: DataView, at: number, end: number): number {
    const found = this.isLabelled ? placeOfValue(view, at, end) : -1
    return found < 0 ? at : found
  }

  #find(bytes: Uint8Array, view: DataView, at: number, place: number): TappedSeries {
    const hash = hashOf(view, at, place)
    let series = this.#byHash.get(hash)
    while (series !== undefined && !series.has(view, at, place)) series = series.next
    return series ?? this.#born(hash, bytes, at, place)
  }

  /** Its followers follow the same again, wherever that leads. */
  move(): void {
    for (const follower of [...this.#followers]) follower.again()
  }

  lost(loss: Omit<RemoteLoss, 'producer'>): void {
    const { producer } = this.request
    for (const follower of this.#followers) follower.lost({ ...loss, producer })
  }

  /** A GAP of the upstream. */
  gap({ count, from, to, reason }: Gap): void {
    this.lost({ count, from, to, reason: reason as RemoteLoss['reason'] })
  }

  /** A GAP of the upstream that may be of any binding of the one channel that there is. */
  gapOfChannel({ count, from, to, reason }: Gap): void {
    const { producer } = this.request
    const [follower] = this.#followers
    follower?.lost({ count, from, to, reason: reason as RemoteLoss['reason'], producer, isOfSeveral: true })
  }

  /** The connection is lost: what is not kept at the upstream has no values until it is back. `void`: as they are sent. */
  *end(nothing: Uint8Array, time: number): Steps<void> {
    for (const series of this.#series) {
      this.#options.hub.emitEncoded(series, nothing, time)
      this.#forget(series)
      yield
    }
  }

  #born(hash: number, bytes: Uint8Array, at: number, place: number): TappedSeries {
    const { request, maxSeries, mayAsk, node } = this.#options
    const labels = place === at ? new Map<string, string>() : readLabels(bytes, at, place)
    const name = labels.get('name') ?? request.name
    const path = pathOfValue(request.producer, labels.get(PRODUCER))
    // It comes on top of the labels that the series may have where it is.
    labels.delete(PRODUCER)
    const problem = openLabelsProblem(name, labelsFrom(labels))
    if (problem !== undefined) throw new ProtocolError('TOO_LONG', `${name}: ${problem}`, at)
    const all = labelsFrom(node ? labels : [...labels, [PRODUCER, path]])
    if (this.#series.size >= maxSeries) {
      const [oldest] = this.#series
      if (oldest !== undefined) this.#forget(oldest)
    }
    this.#makeRoom(hash)
    const series = new TappedSeries(name, all, hash, bytes.slice(at, place), this.#byHash.get(hash))
    this.#series.add(series)
    this.#byHash.set(hash, series)
    if (mayAsk(name)) for (const follower of this.#followers) follower.born(series)
    return series
  }

  /** Forgets the oldest of those with this hash if they are too many. */
  #makeRoom(hash: number): void {
    let oldest = this.#byHash.get(hash)
    let length = 1
    for (; oldest?.next !== undefined; oldest = oldest.next) length++
    if (oldest !== undefined && length >= MAX_ALIKE) this.#forget(oldest)
  }

  #unchain(series: TappedSeries): void {
    let one = this.#byHash.get(series.hash)
    if (one === series) {
      if (series.next === undefined) this.#byHash.delete(series.hash)
      else this.#byHash.set(series.hash, series.next)
      return
    }
    while (one !== undefined && one.next !== series) one = one.next
    if (one !== undefined) one.next = series.next
  }

  #forget(series: TappedSeries): void {
    this.#series.delete(series)
    series.isForgotten = true
    // Whoever came before it may still point to it, but to nothing beyond.
    series.after = undefined
    if (this.#latest === series) this.#latest = undefined
    this.#unchain(series)
    for (const follower of this.#followers) follower.forget(series)
  }
}

/** Of the bytes of labels, which come in words of four. */
function hashOf(view: DataView, from: number, to: number): number {
  let hash = 0x811c9dc5
  for (let at = from; at < to; at += 4) hash = Math.imul(hash ^ view.getUint32(at), 0x01000193)
  return hash
}

class TappedSeries implements RemoteSeries {
  readonly name: string
  readonly labels: Labels
  readonly subscriptions: Subscription[] = []
  readonly hash: number
  /** The bytes of its labels before each value; 0 if it has none. */
  readonly length: number
  /** One whose labels have the same hash. */
  next: TappedSeries | undefined
  /** The one that came after it the last time. */
  after: TappedSeries | undefined
  isForgotten = false
  /** Whether the VOID of a fence was the last that was sent. */
  isFenced = false
  /** Its labels as they come before each value. */
  readonly #prefix: DataView
  /** The last value, with its type; empty before the first. */
  #last = new Uint8Array(0)
  #time = 0

  constructor(name: string, labels: Labels, hash: number, prefix: Uint8Array, next: TappedSeries | undefined) {
    this.name = name
    this.labels = labels
    this.hash = hash
    this.length = prefix.length
    this.#prefix = new DataView(prefix.buffer, prefix.byteOffset, prefix.length)
    this.next = next
  }

  get isBare(): boolean {
    return this.length === 0
  }

  /** Whether these are its labels. */
  has(view: DataView, from: number, to: number): boolean {
    return this.length === to - from && this.#isAt(view, from)
  }

  /** Whether a value with its labels is there: they alone say where it begins. False for a series without labels. */
  isBefore(view: DataView, at: number, end: number): boolean {
    return this.length > 0 && this.length + TYPE_BYTES <= end - at && this.#isAt(view, at)
  }

  #isAt(view: DataView, from: number): boolean {
    const prefix = this.#prefix
    for (let at = 0; at < this.length; at += 4) {
      if (prefix.getUint32(at) !== view.getUint32(from + at)) return false
    }
    return true
  }

  get known(): RemoteSeries['known'] {
    return this.#last.length === 0 || this.isFenced ? undefined : { tail: this.#last, time: this.#time }
  }

  /** Keeps a value with its type; returns them, until the next one is kept. An array for each value would be half of what it costs. */
  keep(bytes: Uint8Array, from: number, to: number, time: number): Uint8Array {
    const length = to - from
    if (this.#last.length !== length) this.#last = new Uint8Array(length)
    const last = this.#last
    if (length > SHORT_BYTES) last.set(bytes.subarray(from, to))
    else for (let at = 0; at < length; at++) last[at] = bytes[from + at] as number
    this.#time = time
    return last
  }

  matches(): boolean {
    return false
  }
}

/** Throws ProtocolError for a number beyond 2^53. */
export function boundedUint53(view: DataView, at: number): number {
  const number = view.getUint32(at) * HIGH_WORD + view.getUint32(at + 4)
  if (number > Number.MAX_SAFE_INTEGER) throw new ProtocolError('BAD_NUMBER', 'a number beyond 2^53', at)
  return number
}

/**
 * Whose a value is: that of whom was asked, or of one below it, where values say so by themselves (`upstream.*`). `label` is their
 * own label `producer`, if they have one.
 */
export function pathOfValue(asked: string, label: string | undefined): string {
  return label === undefined || asked.includes('/') || !PATH.test(label) ? asked : `${asked}/${label}`
}

/** The arguments of a request as they are sent to the upstream, to which the rest of the path is a producer of its own. */
export function argumentsThere({ producer, args }: RemoteRequest): ArgumentList {
  const slash = producer.indexOf('/')
  if (slash < 0) return args
  return [...args, { name: 'producer', type: BasicType.STRING, value: producer.slice(slash + 1) }]
}

/** The text of what a request asks of the upstream. */
export function selectionOf(request: RemoteRequest): string {
  return keyOfSelection(
    request.name,
    argumentsThere(request).map(({ name, value }) => [name, value] as const),
  )
}

/** The name in what `keyOfSelection` gives. */
export function nameOfSelection(selection: string): string {
  return String((JSON.parse(selection) as readonly unknown[])[0])
}

/** The same text for the same name with the same arguments, in whatever types and order. */
export function keyOfSelection(name: string, args: Iterable<readonly [string, unknown]>): string {
  const texts = [...args].map(([argument, value]) => [argument, String(value)])
  return JSON.stringify([name, ...texts.sort(([one = ''], [other = '']) => (one < other ? -1 : 1))])
}
