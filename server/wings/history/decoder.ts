/**
 * Frames of a channel become columns of samples, in the thread of the history. A series is recognised by the bytes before its value,
 * so that one that is known costs no text (docs/decisions/0017).
 */
import { ByteMemory } from '../../../protocol/bytes/byte-memory.ts'
import { XdrReader } from '../../../protocol/bytes/reader.ts'
import { BasicType, gapReasonName, MessageId } from '../../../protocol/monitor/constants.ts'
import { placeOfValue } from '../../../protocol/monitor/labelled.ts'
import {
  FRAME_METRIC,
  FRAME_TIME,
  FRAME_TRANSACTION,
  FRAME_TYPE,
  readMessage,
} from '../../../protocol/monitor/message.ts'
import type { Value } from '../../../protocol/monitor/value.ts'
import { labelsKey, prometheusLabels } from '../../../protocol/prometheus/labels.ts'
import type { HistoryLoss, HistoryStore } from '../../../storage/history/store.ts'
import { type DeliveredName, type Label, unwrapped } from '../../kit/delivered-values.ts'
import {
  isAhead,
  nameForPrometheus,
  type SampleSink,
  samplesOf,
  samplesOfHistogram,
  samplesOfSummary,
} from '../../kit/samples.ts'
import { ColumnsByTenant } from './columns.ts'
import { DescribedMetrics } from './described.ts'
import { noRecorded, type RecordedCounts, type RecordedMetric, SERVER } from './messages.ts'

/** Of each metric that is bound: a hundred thousand series with six labels. */
const MEMORY_BYTES = 64 << 20
/** The history forgets a reference that was not used for an hour. */
const ASK_AGAIN_MS = 1_800_000
/** Parts of histograms, summaries and records that are known: with more of them all are forgotten, and asked for again. */
const MAX_PARTS = 200_000
/** A series that was refused is tried again after this time. */
const REFUSED_MS = 60_000
const MICROSECONDS = 1_000
const HIGH = 2 ** 32

/** A series of the history, as long as its bytes are known. */
interface KnownSeries {
  /** undefined: it is refused, or it has none of its own. */
  reference: number | undefined
  /** When the history was asked for it. */
  askedMs: number
}

/** What the bytes before a value stand for. A histogram, a summary or a record is several series, by their names and labels. */
interface Known extends KnownSeries {
  parts: Map<string, KnownSeries> | undefined
}

interface Bound extends RecordedMetric {
  readonly delivered: DeliveredName
  memory: ByteMemory<Known>
}

export class ChannelDecoder {
  readonly counts: RecordedCounts = noRecorded()
  /** Everything up to this transaction was taken. */
  taken: number
  /** What the channel has counted as committed when all of that is. */
  committed = 0
  /** The last one that has come over this connection; it may have been taken before. */
  seen = 0
  /** By tenant: that of the channel, and that of the server. */
  readonly columns = new ColumnsByTenant()
  readonly described = new DescribedMetrics()
  readonly losses: HistoryLoss[] = []
  /** Those of what belongs to no tenant. */
  readonly lossesOfServer: HistoryLoss[] = []
  /** The latest time of a sample that is not of the future, milliseconds since 1970; 0 before the first. */
  #lastMs = 0
  readonly #sinceMs: number
  readonly #mostParts: number
  readonly #store: Pick<HistoryStore, 'seriesOf'>
  readonly #bound = new Map<number, Bound>()
  readonly #reader = new XdrReader()
  readonly #sink: PartSink
  /** Parts that are known. */
  #partCount = 0
  #nowMs = 0

  /** `taken`: what was taken before; `sinceMs`: where a loss begins of which nothing else is known. */
  constructor(store: Pick<HistoryStore, 'seriesOf'>, taken: number, sinceMs: number, mostParts = MAX_PARTS) {
    this.#store = store
    this.#mostParts = mostParts
    this.taken = taken
    this.#sinceMs = sinceMs
    this.#sink = new PartSink((...part) => this.#part(...part))
  }

  bind(metrics: readonly RecordedMetric[]): void {
    for (const metric of metrics) {
      const { id, name, args, carriesLabels } = metric
      const delivered = { name, args, carriesLabels: () => carriesLabels }
      this.#bound.set(id, { ...metric, delivered, memory: new ByteMemory<Known>(MEMORY_BYTES) })
    }
  }

  /** Takes whole frames. `nowMs`: milliseconds since 1970. */
  decode(bytes: Uint8Array, nowMs: number): void {
    this.#nowMs = nowMs
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    for (let at = 0; at < bytes.length; ) {
      const end = at + 4 + view.getUint32(at)
      const transaction = view.getUint32(at + FRAME_TRANSACTION) * HIGH + view.getUint32(at + FRAME_TRANSACTION + 4)
      this.seen = transaction
      if (transaction > this.taken) {
        this.taken = transaction
        const metric = view.getUint32(at + FRAME_METRIC)
        if (metric === MessageId.GAP) this.#gap(bytes, view, at, end)
        else {
          this.committed++
          this.#value(bytes, view, at, end, metric)
        }
      } else this.counts.repeated++
      at = end
    }
  }

  /** Everything that was taken is with the store. */
  clear(): void {
    for (const columns of this.columns.values()) columns.clear()
    this.losses.length = 0
    this.lossesOfServer.length = 0
  }

  #value(bytes: Uint8Array, view: DataView, at: number, end: number, metric: number): void {
    const bound = this.#bound.get(metric)
    // A result or an answer, or the binding was stopped meanwhile.
    if (bound === undefined) return
    const time = view.getUint32(at + FRAME_TIME) * HIGH + view.getUint32(at + FRAME_TIME + 4)
    if (isAhead(time, this.#nowMs * MICROSECONDS)) {
      this.counts.ahead++
      return
    }
    const start = at + FRAME_TYPE
    let place = bound.carriesLabels ? placeOfNumber(view, start, end) : start
    let known = place < 0 ? undefined : bound.memory.find(view, start, place)
    if (known === undefined) {
      if (bound.carriesLabels) place = placeOfValue(view, start, end)
      if (place < 0) {
        this.counts.unsupported++
        return
      }
      known = this.#knownBy(bound, view, start, place)
    }
    const timeMs = Math.floor(time / MICROSECONDS)
    const type = view.getUint32(place)
    if (type === BasicType.VOID) {
      this.#ended(known, bound.tenant, timeMs)
      return
    }
    const number = numberAt(view, place + 4, type)
    if (number === undefined) this.#parts(bytes, view, at, end, bound, known, timeMs)
    else if (known.reference !== undefined && this.#isFresh(known)) {
      this.#add(bound.tenant, known.reference, timeMs, number)
    } else if (this.#isFresh(known)) this.counts.refused++
    else this.#parts(bytes, view, at, end, bound, known, timeMs)
  }

  #knownBy({ memory }: Bound, view: DataView, start: number, place: number): Known {
    let known = memory.find(view, start, place)
    if (known === undefined) {
      known = { reference: undefined, askedMs: Number.NEGATIVE_INFINITY, parts: undefined }
      memory.add(view, start, place, known)
    }
    return known
  }

  #isFresh({ askedMs, reference }: KnownSeries): boolean {
    // The clock may have been set back.
    return Math.abs(this.#nowMs - askedMs) < (reference === undefined ? REFUSED_MS : ASK_AGAIN_MS)
  }

  #add(tenant: string, reference: number, timeMs: number, value: number): void {
    this.columns.of(tenant).add(reference, timeMs, value)
    this.counts.samples++
    if (timeMs > this.#lastMs && timeMs <= this.#nowMs) this.#lastMs = timeMs
  }

  #ended({ reference, parts }: Known, tenant: string, timeMs: number): void {
    const columns = this.columns.of(tenant)
    if (reference !== undefined) columns.addStale(reference, timeMs)
    for (const part of parts?.values() ?? []) {
      if (part.reference !== undefined) columns.addStale(part.reference, timeMs)
    }
  }

  /** Reads everything that stands in the frame: a series that is new, or a value of several samples. */
  #parts(
    bytes: Uint8Array,
    view: DataView,
    at: number,
    end: number,
    { delivered, own, tenant }: Bound,
    known: Known,
    timeMs: number,
  ): void {
    const message = readMessage(this.#reader.reset(bytes, at + 4, end, view))
    if (message.kind !== 'value') return
    const { name: native, labels, value } = unwrapped(delivered, message.value)
    const added = own.find(([family]) => native.startsWith(family))?.[1] ?? []
    const all = [...labels, ...added.filter(([name]) => !labels.some(([given]) => given === name))]
    if (!this.#sink.take({ native, labels: all, value, known, tenant, timeMs })) this.counts.unsupported++
  }

  #part(
    { native, known, tenant, timeMs }: TakenValue,
    isAlone: boolean,
    name: string,
    labels: readonly Label[],
    value: number,
  ): void {
    const series = isAlone ? known : this.#partOf(known, `${name}\0${labelsKey(labels)}`)
    if (!this.#isFresh(series)) {
      const sorted = [...labels].sort(([one], [other]) => (one < other ? -1 : 1))
      series.reference = this.#store.seriesOf({ tenant, name, labels: sorted, native })
      series.askedMs = this.#nowMs
      if (series.reference !== undefined) this.described.recorded(tenant, native, this.#nowMs)
    }
    if (series.reference === undefined) this.counts.refused++
    else this.#add(tenant, series.reference, timeMs, value)
  }

  /** The bounds of a histogram may be others in each of its values, so that what is known would grow for ever. */
  #partOf(known: Known, key: string): KnownSeries {
    known.parts ??= new Map()
    let part = known.parts.get(key)
    if (part === undefined) {
      if (++this.#partCount > this.#mostParts) this.#forget()
      part = { reference: undefined, askedMs: Number.NEGATIVE_INFINITY }
      known.parts.set(key, part)
    }
    return part
  }

  #forget(): void {
    for (const bound of this.#bound.values()) bound.memory = new ByteMemory<Known>(MEMORY_BYTES)
    this.#partCount = 0
  }

  #gap(bytes: Uint8Array, view: DataView, at: number, end: number): void {
    const message = readMessage(this.#reader.reset(bytes, at + 4, end, view))
    if (message.kind !== 'gap') return
    const { metric, count, from, to, reason } = message
    this.counts.lost += count
    const toMs = to === 0 ? this.#nowMs : Math.ceil(to / MICROSECONDS)
    const bound = this.#bound.get(metric)
    const losses = bound?.tenant === SERVER ? this.lossesOfServer : this.losses
    losses.push({
      native: bound?.name ?? '',
      fromMs: from === 0 ? Math.min(this.#lastMs || this.#sinceMs, toMs) : Math.floor(from / MICROSECONDS),
      toMs,
      count,
      reason: gapReasonName(reason) ?? String(reason),
    })
  }
}

/** `value` as the name of a field, in words: its length, and its letters. */
const VALUE_NAME = [5, 0x76616c75, 0x65000000] as const
const NAME_BYTES = 12

/**
 * Where the basic type of a value stands if the frame ends with a number that is called `value`; -1 if it does not. A text may end so
 * as well, but what stands before it is then no beginning that was remembered: where a REC has its last field, its bytes say.
 */
function placeOfNumber(view: DataView, start: number, end: number): number {
  for (let bytes = 12; bytes >= 8; bytes -= 4) {
    const place = end - bytes
    if (place - NAME_BYTES < start || view.getUint32(place - 4) !== VALUE_NAME[2]) continue
    if (view.getUint32(place - 8) !== VALUE_NAME[1] || view.getUint32(place - 12) !== VALUE_NAME[0]) continue
    const type = view.getUint32(place)
    const isLong = type === BasicType.DOUBLE || type === BasicType.INT64 || type === BasicType.UINT64
    const isShort = type === BasicType.INT32 || type === BasicType.UINT32 || type === BasicType.BOOLEAN
    if (bytes === 12 ? isLong : isShort) return place
  }
  return -1
}

/** undefined if it is no number. */
function numberAt(view: DataView, at: number, type: number): number | undefined {
  switch (type) {
    case BasicType.DOUBLE:
      return view.getFloat64(at)
    case BasicType.INT32:
      return view.getInt32(at)
    case BasicType.UINT32:
    case BasicType.BOOLEAN:
      return view.getUint32(at)
    case BasicType.INT64:
      return Number(view.getBigInt64(at))
    case BasicType.UINT64:
      return Number(view.getBigUint64(at))
    default:
      return undefined
  }
}

/** A value with what its samples go by. */
interface TakenValue {
  readonly native: string
  readonly labels: readonly Label[]
  readonly value: Value
  readonly known: Known
  readonly tenant: string
  readonly timeMs: number
}

/** `isAlone`: the value is this one sample. */
type TakePart = (taken: TakenValue, isAlone: boolean, name: string, labels: readonly Label[], value: number) => void

/** What a value is in the terms of Prometheus, sample by sample. */
class PartSink implements SampleSink {
  readonly hasLists = false
  readonly #part: TakePart
  #taken: TakenValue | undefined

  constructor(part: TakePart) {
    this.#part = part
  }

  /** Whether it was any sample. */
  take(taken: TakenValue): boolean {
    this.#taken = taken
    return samplesOf(this, nameForPrometheus(taken.native).name, taken.labels, taken.value)
  }

  number(name: string, labels: readonly Label[], value: number | bigint | boolean): void {
    const taken = this.#taken as TakenValue
    this.#part(taken, taken.value.type !== BasicType.REC, name, prometheusLabels(labels), Number(value))
  }

  histogram(...[name, labels, histogram]: Parameters<SampleSink['histogram']>): void {
    samplesOfHistogram(name, labels, histogram, (...sample) => this.#part(this.#taken as TakenValue, false, ...sample))
  }

  summary(...[name, labels, summary]: Parameters<SampleSink['summary']>): void {
    samplesOfSummary(name, labels, summary, (...sample) => this.#part(this.#taken as TakenValue, false, ...sample))
  }
}
