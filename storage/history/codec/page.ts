/**
 * A page: chunks of neighbouring series of one tenant, ascending by place and, within one series, by time. It is deflated as a
 * whole, since neighbours resemble each other, and has a checksum over everything that is known of it outside.
 *
 *     number of chunks; of each: the distance of its name and of its series to the one before, samples, bytes; then the chunks
 */
import { constants, crc32, deflateRawSync, inflateRawSync, type ZlibOptions } from 'node:zlib'
import { RowSum } from '../../sqlite/damage/checksum.ts'
import { MAX_SAMPLES } from './chunk.ts'
import { DamagedPage, VarintReader, VarintWriter } from './varints.ts'

/** A page is complete when its chunks have so many bytes, before they are deflated. */
export const PAGE_TARGET_BYTES = 32 * 1024
/** No page has more, also before it is deflated: what seems to is damaged. */
const MAX_PAGE_BYTES = 1 << 20
const MAX_DIRECTORY_ENTRY_BYTES = 32
/** The output is one piece then, which saves copies. */
const CHUNK_BYTES = 64 * 1024

/** How a page is deflated: the pages of a file well, those that are soon merged in half of the time. */
export type Deflating = 'kept' | 'fresh'
const DEFLATING: Readonly<Record<Deflating, ZlibOptions>> = {
  kept: { level: 1, chunkSize: CHUNK_BYTES },
  fresh: { level: 1, chunkSize: CHUNK_BYTES, strategy: constants.Z_RLE },
}

/** What is known of a page, and its bytes, as its row has them. */
export interface HistoryPage {
  /** The places of its first and its last series. */
  readonly lo: number
  readonly hi: number
  /** The times of its earliest and its latest sample. */
  readonly from: number
  readonly to: number
  readonly samples: number
  readonly checksum: number
  readonly data: Uint8Array
}

/** Where a series stands: those of one name are neighbours. */
export function placeOf(name: number, series: number): number {
  return name * 2 ** 32 + series
}

export function seriesAt(place: number): number {
  return place % 2 ** 32
}

function nameAt(place: number): number {
  return Math.floor(place / 2 ** 32)
}

/** Of a page: lo, hi, from, to, samples. */
const SUMMED = 5

export class PageWriter {
  /** The chunks of the next page: whoever writes one ends it by `end`. */
  readonly body = new VarintWriter(2 * PAGE_TARGET_BYTES)
  readonly #directory = new VarintWriter()
  readonly #put: (page: HistoryPage) => void
  readonly #deflating: ZlibOptions
  #chunks = 0
  #begun = 0
  #lo = 0
  #last = 0
  #from = Number.POSITIVE_INFINITY
  #to = Number.NEGATIVE_INFINITY
  #samples = 0

  /** `put` gets each page that is complete; the bytes are its own. */
  constructor(put: (page: HistoryPage) => void, deflating: Deflating) {
    this.#put = put
    this.#deflating = DEFLATING[deflating]
  }

  /** Ends the chunk that was written to `body`. Returns whether a page was completed with it. */
  end(place: number, samples: number, from: number, to: number): boolean {
    const directory = this.#directory
    const { length } = this.body
    if (this.#chunks === 0) this.#lo = place
    directory.ensure(MAX_DIRECTORY_ENTRY_BYTES)
    const name = nameAt(place) - nameAt(this.#last)
    directory.varint(name)
    directory.varint(name === 0 ? seriesAt(place) - seriesAt(this.#last) : seriesAt(place))
    directory.varint(samples)
    directory.varint(length - this.#begun)
    this.#begun = length
    this.#last = place
    this.#chunks++
    this.#samples += samples
    this.#from = Math.min(this.#from, from)
    this.#to = Math.max(this.#to, to)
    if (length + directory.length < PAGE_TARGET_BYTES) return false
    this.flush()
    return true
  }

  /** Completes the page, if there is a chunk in it. */
  flush(): void {
    if (this.#chunks === 0) return
    const head = new VarintWriter(this.#directory.length + this.body.length + 8)
    head.varint(this.#chunks)
    head.append(this.#directory.written)
    head.append(this.body.written)
    const data = deflateRawSync(head.written, this.#deflating)
    const row = { lo: this.#lo, hi: this.#last, from: this.#from, to: this.#to, samples: this.#samples }
    this.#put({ ...row, checksum: ReadPage.checksum(row, data), data })
    this.body.length = 0
    this.#directory.length = 0
    this.#chunks = 0
    this.#begun = 0
    this.#last = 0
    this.#samples = 0
    this.#from = Number.POSITIVE_INFINITY
    this.#to = Number.NEGATIVE_INFINITY
  }
}

/** A page that was read. Its chunks are decoded one by one. */
export class ReadPage {
  readonly lo: number
  readonly hi: number
  /** Of each chunk. */
  readonly places: Float64Array
  readonly counts: Int32Array
  /** Where each chunk begins, and where the last one ends. */
  readonly #starts: Int32Array
  readonly #bytes: Uint8Array

  /** Of the bytes, and of all that is known of them outside. */
  static checksum({ lo, hi, from, to, samples }: Omit<HistoryPage, 'checksum' | 'data'>, data: Uint8Array): number {
    return crc32(data, new RowSum(SUMMED).of([lo, hi, from, to, samples]))
  }

  /** Throws DamagedPage. */
  constructor(page: HistoryPage) {
    if (ReadPage.checksum(page, page.data) !== page.checksum) {
      throw new DamagedPage('the checksum is not right')
    }
    this.lo = page.lo
    this.hi = page.hi
    this.#bytes = inflated(page.data)
    const reader = new VarintReader(this.#bytes)
    // An entry of the directory has four bytes or more.
    const chunks = reader.upTo(this.#bytes.length / 4, 'chunks')
    this.places = new Float64Array(chunks)
    this.counts = new Int32Array(chunks)
    this.#starts = new Int32Array(chunks + 1)
    this.#readDirectory(reader, page.samples)
  }

  #readDirectory(reader: VarintReader, samples: number): void {
    let name = 0
    let series = 0
    let sum = 0
    let bytes = 0
    for (let chunk = 0; chunk < this.places.length; chunk++) {
      const nameStep = reader.varint()
      name += nameStep
      series = nameStep === 0 ? series + reader.varint() : reader.varint()
      this.places[chunk] = placeOf(name, series)
      const count = reader.upTo(MAX_SAMPLES, 'samples')
      if (count === 0 || series >= 2 ** 32) throw new DamagedPage('a chunk is not right')
      this.counts[chunk] = count
      sum += count
      bytes += reader.upTo(this.#bytes.length, 'bytes of a chunk')
      this.#starts[chunk + 1] = bytes
    }
    const start = reader.at
    if (sum !== samples || start + bytes !== this.#bytes.length) throw new DamagedPage('its directory is not right')
    for (let index = 0; index < this.#starts.length; index++) this.#starts[index]! += start
  }

  get length(): number {
    return this.places.length
  }

  /** The index of the first chunk at this place, or of the first one after it. */
  find(place: number): number {
    let from = 0
    let to = this.places.length
    while (from < to) {
      const middle = (from + to) >>> 1
      if (this.places[middle]! < place) from = middle + 1
      else to = middle
    }
    return from
  }

  /** Reads one chunk. */
  chunk(index: number): VarintReader {
    return new VarintReader(this.#bytes, this.#starts[index], this.#starts[index + 1])
  }
}

function inflated(data: Uint8Array): Uint8Array {
  try {
    return inflateRawSync(data, { maxOutputLength: MAX_PAGE_BYTES, chunkSize: CHUNK_BYTES })
  } catch (error) {
    throw new DamagedPage(`it cannot be inflated: ${error instanceof Error ? error.message : String(error)}`)
  }
}
