/**
 * The recent values of pushed series that no history records, so that a chart is not empty when it opens (`producer.recent`). They are
 * kept in memory only: numbers and booleans, at most one per series and second, for `maxAgeMs`.
 *
 * Samples lie packed in chunks. When all chunks are in use, the tenant that has most of them gives one up: its oldest, unless a
 * series has written to it since it was last looked at. So what is written least gives way first.
 */
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Value } from '../../../protocol/monitor/value.ts'
import type { Clock } from '../core/clock.ts'
import type { Steps } from '../core/fair-work.ts'
import { isAhead } from './current.ts'
import { isListening } from './kinds.ts'
import type { KeptSamples, ListeningSensor, Sensor, Series } from './metric.ts'

export interface RecentLimits {
  /** Memory for everything together; 0 keeps nothing. */
  readonly maxBytes: number
  readonly maxAgeMs: number
}

/** Microseconds between two samples of a series that are kept. */
const APART = 1_000_000
/** Samples in a chunk; each is two doubles, the time and the value. */
const SAMPLES = 16
/** A basic type and a number of 64 bits. */
const ENCODED_BYTES = 12
/** With the objects that lead to the samples; an estimate. */
const CHUNK_BYTES = SAMPLES * 16 + 128
/** What is allotted for a series itself: names, labels, and the list of its chunks. */
const SERIES_BYTES = 512
const CHUNKS_PER_SLAB = 4096
/** Chunks that are passed over at once because they were written to: the time of one value is bounded. */
const MAX_PASSED = 64

/** A chunk that is written to comes to the end of its list after this part of the time for which values are kept. */
const PLACES_PER_AGE = 8

/** Series that are passed over in one step. */
const PASSED_PER_STEP = 256

/** The chunks of one tenant: a list, nearly in the order in which they were last written to. */
interface Share {
  first: Chunk | undefined
  last: Chunk | undefined
  chunks: number
  series: number
}

interface Chunk {
  /** Its place in the slabs. */
  readonly at: number
  readonly of: RecentSeries
  used: number
  /** Written to since it was last looked at. */
  isFresh: boolean
  /** When it was last written to, monotonic milliseconds. */
  writtenMs: number
  /** When it came to the end of the list, monotonic milliseconds. */
  placedMs: number
  /** Its neighbours in the list of its share. */
  previous: Chunk | undefined
  next: Chunk | undefined
}

/** Whether a history records the series of a name. */
export type IsRecorded = (name: string) => boolean

/** Most series of texts never have a chunk. */
const NO_CHUNKS: readonly Chunk[] = []

/** What is kept of one series. */
export class RecentSeries implements KeptSamples {
  readonly sensor: ListeningSensor
  readonly series: Series
  /** Ascending in the order in which series got their first sample; a new one if it has lost all of them meanwhile. */
  number = 0
  /** Microseconds; the time of the last sample that was kept. */
  last = Number.NEGATIVE_INFINITY
  chunks: readonly Chunk[] = NO_CHUNKS

  constructor(sensor: ListeningSensor, series: Series) {
    this.sensor = sensor
    this.series = series
  }
}

export class RecentValues {
  readonly #options: RecentLimits
  readonly #clock: Pick<Clock, 'monotonicMs' | 'microseconds'>
  readonly #slabs: Float64Array[] = []
  readonly #free: number[] = []
  /** By tenant; those of the producer are together. */
  readonly #shares = new Map<string | undefined, Share>()
  /** Those with samples, by their numbers. */
  readonly #series = new Map<number, RecentSeries>()
  /** The same by their sensors and names, ascending by their numbers. */
  readonly #named = new Map<ListeningSensor, Map<string, Set<RecentSeries>>>()
  /** The basic type and the number of a value that is encoded, copied here so that no value needs a view of its own. */
  readonly #encoded = new Uint8Array(ENCODED_BYTES)
  readonly #view = new DataView(this.#encoded.buffer)
  /** What series that are recorded now had before: it may be here yet when they are recorded no longer. */
  readonly #leftOut = new WeakMap<Series, RecentSeries>()
  #chunks = 0
  #lastNumber = 0
  #isRecorded: IsRecorded = () => false

  constructor(clock: Pick<Clock, 'monotonicMs' | 'microseconds'>, options: RecentLimits) {
    this.#clock = clock
    this.#options = options
  }

  /** Bytes in use. */
  get bytes(): number {
    return this.#chunks * CHUNK_BYTES + this.#series.size * SERIES_BYTES
  }

  /** What is recorded from now on is kept here no longer. */
  *leaveOut(isRecorded: IsRecorded, sensors: Iterable<Sensor>): Steps<void> {
    this.#isRecorded = isRecorded
    for (const sensor of sensors) {
      if (!isListening(sensor)) continue
      for (const series of sensor.series()) {
        this.born(sensor, series)
        yield
      }
    }
  }

  /** To be called for each new series, before its first value. */
  born(sensor: ListeningSensor, series: Series): void {
    if (this.#isRecorded(series.name)) {
      if (series.recent !== undefined) this.#leftOut.set(series, series.recent as RecentSeries)
      series.recent = undefined
    } else if (this.#options.maxBytes > 0 && series.isEvent !== true) {
      series.recent ??= this.#leftOut.get(series) ?? new RecentSeries(sensor, series)
    }
  }

  /** Keeps a value, if it is a number or boolean and a second has passed. `time` is in microseconds since 1970. */
  take(kept: KeptSamples, value: Value, time: number): void {
    const number = numberOf(value)
    if (number !== undefined) this.#keep(kept as RecentSeries, number, time)
  }

  /** The same for a number. */
  takeNumber(kept: KeptSamples, number: number, time: number): void {
    this.#keep(kept as RecentSeries, number, time)
  }

  /** The same for a value that is encoded: `tail` holds its basic type and the value. */
  takeEncoded(kept: KeptSamples, tail: Uint8Array, time: number): void {
    const { length } = tail
    if (length > ENCODED_BYTES) return
    for (let index = 0; index < length; index++) this.#encoded[index] = tail[index] as number
    const number = numberIn(this.#view)
    if (number !== undefined) this.#keep(kept as RecentSeries, number, time)
  }

  /** Series with samples whose number is above `after`, ascending; they may come and go meanwhile. */
  *above(after: number): Generator<RecentSeries | undefined> {
    let passed = 0
    // The map keeps them in the order of their numbers.
    for (const [number, kept] of this.#series) {
      if (number > after) yield kept
      else if (++passed % PASSED_PER_STEP === 0) yield undefined
    }
  }

  /** The same of one name, as far as these sensors have them: those of other names, and of other sensors, are not walked. */
  *named(name: string, sensors: readonly ListeningSensor[], after: number): Steps<readonly RecentSeries[]> {
    const found: RecentSeries[] = []
    let passed = 0
    for (const sensor of sensors) {
      for (const kept of this.#named.get(sensor)?.get(name) ?? []) {
        if (kept.number > after) found.push(kept)
        if (++passed % PASSED_PER_STEP === 0) yield
      }
    }
    return sensors.length > 1 ? found.sort((one, other) => one.number - other.number) : found
  }

  /** The samples of a series with times from `since` on, in the order in which they came. */
  samples(kept: RecentSeries, since: number): { times: number[]; values: number[] } {
    const [times, values]: [number[], number[]] = [[], []]
    const [now, monotonicMs] = [this.#clock.microseconds(), this.#clock.monotonicMs()]
    const oldest = monotonicMs - this.#options.maxAgeMs
    for (const { at, used, writtenMs } of kept.chunks) {
      if (writtenMs < oldest) continue
      const slab = this.#slabs[Math.floor(at / CHUNKS_PER_SLAB)] as Float64Array
      const first = (at % CHUNKS_PER_SLAB) * SAMPLES * 2
      const writtenAt = now - (monotonicMs - writtenMs) * 1000
      const from = Math.max(since, newestOf(slab, first, used, writtenAt) - (writtenMs - oldest) * 1000)
      for (let index = 0; index < used; index++) {
        const time = slab[first + 2 * index] as number
        if (time < from) continue
        times.push(time)
        values.push(slab[first + 2 * index + 1] as number)
      }
    }
    return { times, values }
  }

  /** To be called every second: drops what is too old, a bounded number of chunks at a time. */
  sweep(): void {
    const oldest = this.#clock.monotonicMs() - this.#options.maxAgeMs
    for (const [tenant, share] of this.#shares) {
      for (let passed = 0; passed < CHUNKS_PER_SLAB; passed++) {
        if (share.first === undefined || share.first.writtenMs >= oldest) break
        this.#release(share)
      }
      if (share.chunks === 0) this.#shares.delete(tenant)
    }
  }

  #keep(kept: RecentSeries, value: number, time: number): void {
    kept.last = time
    const { chunks } = kept
    let chunk = chunks.at(-1)
    if (chunk === undefined || chunk.used === SAMPLES) chunk = this.#takeChunk(kept)
    const slab = this.#slabs[Math.floor(chunk.at / CHUNKS_PER_SLAB)] as Float64Array
    const index = ((chunk.at % CHUNKS_PER_SLAB) * SAMPLES + chunk.used++) * 2
    slab[index] = time
    slab[index + 1] = value
    chunk.isFresh = true
    chunk.writtenMs = this.#clock.monotonicMs()
    // At its old place those behind it would wait for it when they are too old.
    if (chunk.writtenMs - chunk.placedMs <= this.#options.maxAgeMs / PLACES_PER_AGE) return
    const share = this.#shares.get(tenantOf(kept)) as Share
    moveToEnd(share, chunk)
    chunk.placedMs = chunk.writtenMs
  }

  #takeChunk(kept: RecentSeries): Chunk {
    const tenant = tenantOf(kept)
    while (this.bytes + CHUNK_BYTES + SERIES_BYTES > this.#options.maxBytes && this.#chunks > 0) this.#giveWay()
    const share = this.#shares.get(tenant) ?? { first: undefined, last: undefined, chunks: 0, series: 0 }
    this.#shares.set(tenant, share)
    if (kept.chunks.length === 0) {
      kept.chunks = []
      kept.number = ++this.#lastNumber
      this.#enter(kept)
      share.series++
    }
    const at = this.#free.pop() ?? this.#grow()
    this.#chunks++
    const now = this.#clock.monotonicMs()
    const neighbours = { previous: undefined, next: undefined }
    const chunk: Chunk = { at, of: kept, used: 0, isFresh: true, writtenMs: now, placedMs: now, ...neighbours }
    append(share, chunk)
    ;(kept.chunks as Chunk[]).push(chunk)
    return chunk
  }

  /** The place of a chunk in a new slab; the others of it are free. */
  #grow(): number {
    const first = this.#slabs.length * CHUNKS_PER_SLAB
    this.#slabs.push(new Float64Array(CHUNKS_PER_SLAB * SAMPLES * 2))
    for (let at = first + CHUNKS_PER_SLAB - 1; at > first; at--) this.#free.push(at)
    return first
  }

  #giveWay(): void {
    let most: Share | undefined
    for (const share of this.#shares.values()) if (sizeOf(share) > (most === undefined ? 0 : sizeOf(most))) most = share
    if (most === undefined) return
    for (let passed = 0; passed < MAX_PASSED; passed++) {
      const chunk = most.first as Chunk
      if (!(isOpen(chunk) && chunk.isFresh)) break
      chunk.isFresh = false
      moveToEnd(most, chunk)
    }
    this.#release(most)
  }

  /** Frees the oldest chunk of a share, which is the oldest of its series. */
  #release(share: Share): void {
    const chunk = share.first as Chunk
    detach(share, chunk)
    const { of, at } = chunk
    of.chunks = of.chunks.length === 1 ? NO_CHUNKS : of.chunks.slice(1)
    this.#free.push(at)
    this.#chunks--
    if (of.chunks.length > 0) return
    this.#leave(of)
    share.series--
  }

  #enter(kept: RecentSeries): void {
    const { sensor, series } = kept
    this.#series.set(kept.number, kept)
    const names = this.#named.get(sensor) ?? new Map<string, Set<RecentSeries>>()
    this.#named.set(sensor, names)
    const alike = names.get(series.name)
    if (alike === undefined) names.set(series.name, new Set([kept]))
    else alike.add(kept)
  }

  #leave(kept: RecentSeries): void {
    const { sensor, series } = kept
    this.#series.delete(kept.number)
    const names = this.#named.get(sensor)
    const alike = names?.get(series.name)
    alike?.delete(kept)
    if (alike?.size === 0) names?.delete(series.name)
    if (names?.size === 0) this.#named.delete(sensor)
  }
}

/**
 * The time that the age of the samples of a chunk is measured from: that of the last one, but for those whose time was ahead when
 * the chunk was last written to, which would make all others look too old. `writtenAt`: microseconds since 1970.
 */
function newestOf(slab: Float64Array, first: number, used: number, writtenAt: number): number {
  for (let index = used - 1; index >= 0; index--) {
    const time = slab[first + 2 * index] as number
    if (!isAhead(time, writtenAt)) return time
  }
  return slab[first + 2 * (used - 1)] as number
}

function tenantOf({ sensor: { owner } }: RecentSeries): string | undefined {
  return typeof owner === 'string' ? undefined : owner.tenant
}

/** Whether more samples may come into a chunk. */
function isOpen(chunk: Chunk): boolean {
  return chunk.of.chunks.at(-1) === chunk
}

function append(share: Share, chunk: Chunk): void {
  chunk.previous = share.last
  if (share.last === undefined) share.first = chunk
  else share.last.next = chunk
  share.last = chunk
  share.chunks++
}

function detach(share: Share, chunk: Chunk): void {
  const { previous, next } = chunk
  if (previous === undefined) share.first = next
  else previous.next = next
  if (next === undefined) share.last = previous
  else next.previous = previous
  chunk.previous = undefined
  chunk.next = undefined
  share.chunks--
}

function moveToEnd(share: Share, chunk: Chunk): void {
  detach(share, chunk)
  append(share, chunk)
}

/** Whether a value that comes at `time` would be kept: two samples are a second apart, also if the clock of a source was set back. */
export function isDue(kept: KeptSamples, time: number): boolean {
  const passed = time - kept.last
  return passed >= APART || passed <= -APART
}

function sizeOf({ chunks, series }: Share): number {
  return chunks * CHUNK_BYTES + series * SERIES_BYTES
}

function numberOf({ type, value }: Value): number | undefined {
  if (type === BasicType.BOOLEAN) return value ? 1 : 0
  return typeof value === 'number' || typeof value === 'bigint' ? Number(value) : undefined
}

function numberIn(view: DataView): number | undefined {
  switch (view.getUint32(0)) {
    case BasicType.BOOLEAN:
    case BasicType.UINT32:
      return view.getUint32(4)
    case BasicType.INT32:
      return view.getInt32(4)
    case BasicType.UINT64:
      return Number(view.getBigUint64(4))
    case BasicType.INT64:
      return Number(view.getBigInt64(4))
    case BasicType.DOUBLE:
      return view.getFloat64(4)
    default:
      return undefined
  }
}
