/**
 * What was made of bytes that come again and again: the names and labels of values, the QUERYs of a program, the heads of datagrams.
 * A table with a few places for each hash, so that it never grows; where more share them, some are made more often. Mostly things
 * come in the same order again, so each place has a note of the one that was found next: that is looked at first, without a hash.
 */
interface Kept<T> {
  readonly bytes: DataView
  readonly made: T
}

/** With one place for each hash, a quarter of a thousand things in 4,096 places took each other's. */
const PLACES_OF_HASH = 4

export class RecentByBytes<T> {
  readonly #places: number
  readonly #maxBytes: number
  readonly #kept: (Kept<T> | undefined)[] = []
  /** For each place, the one that was found next the last time. */
  readonly #next: Uint16Array
  #last = 0
  /** Counts those that took the place of another. */
  #replaced = 0

  /** `places`: a multiple of 4, at most 65,536. Longer ones than `maxBytes` are not kept. */
  constructor(places: number, maxBytes: number) {
    this.#places = places
    this.#maxBytes = maxBytes
    this.#next = new Uint16Array(places)
  }

  /** What was kept for these bytes; undefined if nothing is. */
  get(bytes: DataView, start: number, end: number): T | undefined {
    if (end - start > this.#maxBytes) return undefined
    const guess = this.#next[this.#last] as number
    const likely = this.#kept[guess]
    if (likely !== undefined && isSame(likely.bytes, bytes, start, end)) {
      this.#last = guess
      return likely.made
    }
    const first = this.#firstPlaceOf(bytes, start, end)
    for (let place = first; place < first + PLACES_OF_HASH; place++) {
      const kept = this.#kept[place]
      if (kept === undefined) return undefined
      if (!isSame(kept.bytes, bytes, start, end)) continue
      this.#cameNext(place)
      return kept.made
    }
    return undefined
  }

  #cameNext(place: number): void {
    this.#next[this.#last] = place
    this.#last = place
  }

  keep(bytes: DataView, start: number, end: number, made: T): void {
    if (end - start > this.#maxBytes) return
    const place = this.#freePlace(this.#firstPlaceOf(bytes, start, end))
    const own = bytes.buffer.slice(bytes.byteOffset + start, bytes.byteOffset + end)
    this.#kept[place] = { bytes: new DataView(own), made }
    this.#cameNext(place)
  }

  /** That of another, if all places of the hash are taken. */
  #freePlace(first: number): number {
    for (let place = first; place < first + PLACES_OF_HASH; place++) if (this.#kept[place] === undefined) return place
    return first + (this.#replaced++ % PLACES_OF_HASH)
  }

  #firstPlaceOf(bytes: DataView, start: number, end: number): number {
    let hash = 0
    for (let at = start; at < end; at += 4) {
      hash = Math.imul(hash ^ wordAt(bytes, at, end), 0x9e3779b1)
      hash ^= hash >>> 15
    }
    // Finished as in MurmurHash3: names that differ in their last letter only would share a place.
    hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
    return (((hash ^ (hash >>> 13)) >>> 0) % (this.#places / PLACES_OF_HASH)) * PLACES_OF_HASH
  }
}

/** Four bytes, or what is left before `end`. Byte by byte, to compare took a fifth of a consumer's time. */
function wordAt(bytes: DataView, at: number, end: number): number {
  if (at + 4 <= end) return bytes.getInt32(at)
  let word = 0
  for (let next = at; next < end; next++) word = (word << 8) | bytes.getUint8(next)
  return word
}

function isSame(kept: DataView, bytes: DataView, start: number, end: number): boolean {
  const length = kept.byteLength
  if (length !== end - start) return false
  const whole = length & ~3
  for (let at = 0; at < whole; at += 4) {
    if (kept.getInt32(at) !== bytes.getInt32(start + at)) return false
  }
  return whole === length || wordAt(kept, whole, length) === wordAt(bytes, start + whole, end)
}
