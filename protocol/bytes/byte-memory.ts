/**
 * What bytes were found to mean, so that the same bytes need not be read again: senders repeat the names and labels of their series
 * in every request. It has a bound: what was not seen for long is forgotten first.
 */

/** What an entry takes besides its bytes, and how often it has them, as texts and keys: an estimate. */
const ENTRY_BYTES = 300
const COPIES = 4

interface Entry<T> {
  readonly bytes: DataView
  readonly meaning: T
  readonly weight: number
}

export class ByteMemory<T> {
  readonly #mostBytes: number
  /** So that bytes which are made to have one hash here have it nowhere else. What has the same hash is still told apart. */
  readonly #seed: number
  /** By their hashes: of two with the same, the later one stays. What is not seen while `#young` fills up is forgotten with `#old`. */
  #young = new Map<number, Entry<T>>()
  #old = new Map<number, Entry<T>>()
  #youngBytes = 0

  /** `random`: 0..1. */
  constructor(mostBytes: number, random: () => number = Math.random) {
    this.#mostBytes = mostBytes
    this.#seed = Math.floor(random() * 2 ** 32) | 0
  }

  /** What the bytes from `start` to `end` mean, if that is known. */
  find(view: DataView, start: number, end: number): T | undefined {
    const hash = this.#hash(view, start, end)
    const young = this.#young.get(hash)
    if (young !== undefined) return isSame(young.bytes, view, start, end) ? young.meaning : undefined
    const old = this.#old.get(hash)
    if (old === undefined || !isSame(old.bytes, view, start, end)) return undefined
    this.#keep(hash, old)
    return old.meaning
  }

  /** `weight`: bytes that the meaning takes, where that is more than a few times its own. */
  add(view: DataView, start: number, end: number, meaning: T, weight = 0): void {
    // A copy: the bytes of a request are not kept.
    const { buffer } = new Uint8Array(view.buffer, view.byteOffset + start, end - start).slice()
    this.#keep(this.#hash(view, start, end), { bytes: new DataView(buffer), meaning, weight })
  }

  #keep(hash: number, entry: Entry<T>): void {
    this.#youngBytes += ENTRY_BYTES + COPIES * entry.bytes.byteLength + entry.weight
    if (this.#youngBytes > this.#mostBytes / 2) {
      this.#old = this.#young
      this.#young = new Map()
      this.#youngBytes = 0
    }
    this.#young.set(hash, entry)
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
