/**
 * The recent values of pushed series, so that a chart is not empty when it opens (`producer.recent`). They are kept in memory
 * only: numbers and booleans, at most one per series and second, for `maxAgeMs`.
 *
 * Samples lie packed in chunks. When all chunks are in use, the tenant that has most of them gives one up: its oldest, unless a
 * series has written to it since it was last looked at. So what is written least gives way first.
 */
import { BasicType } from '../../protocol/monitor/constants.ts'
import type { Value } from '../../protocol/monitor/value.ts'
import type { Clock } from '../core/clock.ts'
import type { KeptSamples, ListeningSensor, Series } from './metric.ts'

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
const CHUNK_BYTES = SAMPLES * 16 + 32
/** What is allotted for a series itself: names, labels, and the list of its chunks. */
const SERIES_BYTES = 512
const CHUNKS_PER_SLAB = 4096
/** Chunks that are passed over at once because they were written to: the time of one value is bounded. */
const MAX_PASSED = 64

/** Series that are passed over in one step. */
const PASSED_PER_STEP = 256

/** The chunks of one tenant, in the order in which they were taken. */
interface Share {
  readonly chunks: Chunk[]
  /** Chunks before this index are gone. */
  head: number
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
}

/** What is kept of one series. */
export class RecentSeries implements KeptSamples {
  readonly sensor: ListeningSensor
  readonly series: Series
  /** Ascending in the order in which series got their first sample; a new one if it has lost all of them meanwhile. */
  number = 0
  /** Microseconds; the time of the last sample that was kept. */
  last = Number.NEGATIVE_INFINITY
  readonly chunks: Chunk[] = []

  constructor(sensor: ListeningSensor, series: Series) {
    this.sensor = sensor
    this.series = series
  }
}

export class RecentValues {
  readonly #options: RecentLimits
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #slabs: Float64Array[] = []
  readonly #free: number[] = []
  /** By tenant; those of the producer are together. */
  readonly #shares = new Map<string | undefined, Share>()
  /** Those with samples, by their numbers. */
  readonly #series = new Map<number, RecentSeries>()
  /** The basic type and the number of a value that is encoded, copied here so that no value needs a view of its own. */
  readonly #encoded = new Uint8Array(ENCODED_BYTES)
  readonly #view = new DataView(this.#encoded.buffer)
  #chunks = 0
  #lastNumber = 0

  constructor(clock: Pick<Clock, 'monotonicMs'>, options: RecentLimits) {
    this.#clock = clock
    this.#options = options
  }

  /** Bytes in use. */
  get bytes(): number {
    return this.#chunks * CHUNK_BYTES + this.#series.size * SERIES_BYTES
  }

  /** To be called for each new series, before its first value. */
  born(sensor: ListeningSensor, series: Series): void {
    if (this.#options.maxBytes > 0 && series.isEvent !== true) series.recent ??= new RecentSeries(sensor, series)
  }

  /** Keeps a value, if it is a number or boolean and a second has passed. `time` is in microseconds since 1970. */
  take(kept: KeptSamples, value: Value, time: number): void {
    const number = numberOf(value)
    if (number !== undefined) this.#keep(kept as RecentSeries, number, time)
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

  /** The samples of a series with times from `since` on, in the order in which they came. */
  samples(kept: RecentSeries, since: number): { times: number[]; values: number[] } {
    const [times, values]: [number[], number[]] = [[], []]
    const oldest = this.#clock.monotonicMs() - this.#options.maxAgeMs
    for (const { at, used, writtenMs } of kept.chunks) {
      if (writtenMs < oldest) continue
      const slab = this.#slabs[Math.floor(at / CHUNKS_PER_SLAB)] as Float64Array
      const first = (at % CHUNKS_PER_SLAB) * SAMPLES * 2
      for (let index = 0; index < used; index++) {
        const time = slab[first + 2 * index] as number
        if (time < since) continue
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
        const chunk = share.chunks[share.head]
        if (chunk === undefined || chunk.writtenMs >= oldest) break
        this.#release(share)
      }
      if (share.head === share.chunks.length && share.series === 0) this.#shares.delete(tenant)
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
  }

  #takeChunk(kept: RecentSeries): Chunk {
    const { owner } = kept.sensor
    const tenant = typeof owner === 'string' ? undefined : owner.tenant
    while (this.bytes + CHUNK_BYTES + SERIES_BYTES > this.#options.maxBytes && this.#chunks > 0) this.#giveWay()
    const share = this.#shares.get(tenant) ?? { chunks: [], head: 0, series: 0 }
    this.#shares.set(tenant, share)
    if (kept.chunks.length === 0) {
      kept.number = ++this.#lastNumber
      this.#series.set(kept.number, kept)
      share.series++
    }
    const at = this.#free.pop() ?? this.#grow()
    this.#chunks++
    const chunk = { at, of: kept, used: 0, isFresh: true, writtenMs: 0 }
    share.chunks.push(chunk)
    kept.chunks.push(chunk)
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
      const chunk = most.chunks[most.head] as Chunk
      const isOpen = chunk.of.chunks.at(-1) === chunk
      if (!(isOpen && chunk.isFresh)) break
      chunk.isFresh = false
      most.chunks.push(chunk)
      this.#pass(most)
    }
    this.#release(most)
  }

  /** Frees the oldest chunk of a share. */
  #release(share: Share): void {
    const chunk = share.chunks[share.head] as Chunk
    this.#pass(share)
    const { of, at } = chunk
    const index = of.chunks.indexOf(chunk)
    of.chunks.splice(index, 1)
    this.#free.push(at)
    this.#chunks--
    if (of.chunks.length > 0) return
    this.#series.delete(of.number)
    share.series--
  }

  #pass(share: Share): void {
    share.head++
    if (share.head < CHUNKS_PER_SLAB || share.head < share.chunks.length / 2) return
    share.chunks.splice(0, share.head)
    share.head = 0
  }
}

/** Whether a value that comes at `time` would be kept: two samples are a second apart, also if the clock of a source was set back. */
export function isDue(kept: KeptSamples, time: number): boolean {
  const passed = time - kept.last
  return passed >= APART || passed <= -APART
}

function sizeOf({ chunks, head, series }: Share): number {
  return (chunks.length - head) * CHUNK_BYTES + series * SERIES_BYTES
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
