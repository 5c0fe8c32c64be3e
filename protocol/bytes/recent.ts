/**
 * What was made of bytes that come again and again: the names and labels of values, the QUERYs of a program, the heads of datagrams.
 * A table with one place for each hash, so that it never grows; what shares a place with others is made more often. Mostly things
 * come in the same order again: the place of what came after the last one before is looked at first, without a hash.
 */
interface Kept<T> {
  readonly bytes: Uint8Array
  readonly made: T
}

export class RecentByBytes<T> {
  readonly #places: number
  readonly #maxBytes: number
  readonly #kept: (Kept<T> | undefined)[] = []
  /** For each place, that of what came after it the last time. */
  readonly #next: Uint16Array
  #last = 0

  /** `places`: at most 65,536. Longer ones than `maxBytes` are not kept. */
  constructor(places: number, maxBytes: number) {
    this.#places = places
    this.#maxBytes = maxBytes
    this.#next = new Uint16Array(places)
  }

  /** What was kept for these bytes; undefined if nothing is. */
  get(bytes: Uint8Array, start: number, end: number): T | undefined {
    if (end - start > this.#maxBytes) return undefined
    const guess = this.#next[this.#last] as number
    const likely = this.#kept[guess]
    if (likely !== undefined && isSame(likely.bytes, bytes, start, end)) {
      this.#last = guess
      return likely.made
    }
    const place = this.#placeOf(bytes, start, end)
    const kept = this.#kept[place]
    if (kept === undefined || !isSame(kept.bytes, bytes, start, end)) return undefined
    this.#cameNext(place)
    return kept.made
  }

  #cameNext(place: number): void {
    this.#next[this.#last] = place
    this.#last = place
  }

  keep(bytes: Uint8Array, start: number, end: number, made: T): void {
    if (end - start > this.#maxBytes) return
    // A constructor, not slice(): that of Node's Buffer gives a view.
    const place = this.#placeOf(bytes, start, end)
    this.#kept[place] = { bytes: new Uint8Array(bytes.subarray(start, end)), made }
    this.#cameNext(place)
  }

  #placeOf(bytes: Uint8Array, start: number, end: number): number {
    let hash = 0
    for (let at = start; at < end; at++) hash = (Math.imul(hash, 31) + (bytes[at] as number)) | 0
    return (hash >>> 0) % this.#places
  }
}

function isSame(kept: Uint8Array, bytes: Uint8Array, start: number, end: number): boolean {
  if (kept.length !== end - start) return false
  for (let at = 0; at < kept.length; at++) if (kept[at] !== bytes[start + at]) return false
  return true
}
