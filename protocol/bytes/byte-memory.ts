/**
 * What bytes were found to mean, so that the same bytes need not be read again: senders repeat the names and labels of their series
 * in every request. It has a bound. Senders go round their series, so if there are more than it may keep, each would be forgotten
 * before it comes again; therefore most of what comes when it is full is not kept, and what is kept goes on being found.
 */

/** What an entry takes besides its bytes, and how often it has them, as texts and keys: an estimate. */
const ENTRY_BYTES = 300
const COPIES = 4
/** Of what is added when there is no room, this part takes the place of the oldest. */
const ADMITTED = 1 / 16

interface Entry<T> {
  readonly bytes: DataView
  readonly meaning: T
  readonly cost: number
}

export class ByteMemory<T> {
  readonly #mostBytes: number
  readonly #random: () => number
  /** So that bytes which are made to have one hash here have it nowhere else. What has the same hash is still told apart. */
  readonly #seed: number
  /** By their hashes, the oldest first: of two with the same, the later one stays. */
  readonly #entries = new Map<number, Entry<T>>()
  #bytes = 0

  /** `random`: 0..1. */
  constructor(mostBytes: number, random: () => number = Math.random) {
    this.#mostBytes = mostBytes
    this.#random = random
    this.#seed = Math.floor(random() * 2 ** 32) | 0
  }

  /** What the bytes from `start` to `end` mean, if that is known. */
  find(view: DataView, start: number, end: number): T | undefined {
    const entry = this.#entries.get(this.#hash(view, start, end))
    return entry !== undefined && isSame(entry.bytes, view, start, end) ? entry.meaning : undefined
  }

  /** `weight`: bytes that the meaning takes, where that is more than a few times its own. */
  add(view: DataView, start: number, end: number, meaning: T, weight = 0): void {
    const cost = ENTRY_BYTES + COPIES * (end - start) + weight
    const isFull = this.#bytes + cost > this.#mostBytes
    if (cost > this.#mostBytes || (isFull && this.#random() >= ADMITTED)) return
    const hash = this.#hash(view, start, end)
    this.#remove(hash)
    for (const oldest of this.#entries.keys()) {
      if (this.#bytes + cost <= this.#mostBytes) break
      this.#remove(oldest)
    }
    // A copy: the bytes of a request are not kept.
    const { buffer } = new Uint8Array(view.buffer, view.byteOffset + start, end - start).slice()
    this.#entries.set(hash, { bytes: new DataView(buffer), meaning, cost })
    this.#bytes += cost
  }

  #remove(hash: number): void {
    this.#bytes -= this.#entries.get(hash)?.cost ?? 0
    this.#entries.delete(hash)
  }

  #hash(view: DataView, start: number, end: number): number {
    let hash = this.#seed ^ (end - start)
    let at = start
    for (; at + 4 <= end; at += 4) hash = mixed(hash, view.getInt32(at, true))
    for (; at < end; at++) hash = mixed(hash, view.getUint8(at))
    return hash
  }
}

/** A step of MurmurHash3. */
function mixed(hash: number, word: number): number {
  let mixed = Math.imul(word, 0xcc9e2d51)
  mixed = Math.imul((mixed << 15) | (mixed >>> 17), 0x1b873593)
  mixed ^= hash
  return (Math.imul((mixed << 13) | (mixed >>> 19), 5) + 0xe6546b64) | 0
}

function isSame(bytes: DataView, view: DataView, start: number, end: number): boolean {
  const { byteLength } = bytes
  if (byteLength !== end - start) return false
  let at = 0
  for (; at + 4 <= byteLength; at += 4) if (bytes.getInt32(at) !== view.getInt32(start + at)) return false
  for (; at < byteLength; at++) if (bytes.getUint8(at) !== view.getUint8(start + at)) return false
  return true
}
