/**
 * What bytes were found to mean, so that the same bytes need not be read again: senders repeat the names and labels of their series
 * in every request. It has a bound. Senders go round their series, so if there are more than it may keep, each would be forgotten
 * before it comes again; therefore most of what comes when it is full is not kept, and what is kept goes on being found.
 */
import { BytePool } from './byte-pool.ts'
import { mixed } from './hash.ts'

/** What an entry takes besides its bytes, and how often it has them, once more in a key: an estimate. */
const ENTRY_BYTES = 300
const COPIES = 2
/** Of what is added when there is no room, this part takes the place of the oldest. */
const ADMITTED = 1 / 16

/** What bytes stand in, if they mean something else elsewhere: made by `within` of the memory that is asked. */
export interface Context {
  readonly number: number
}

const NOWHERE: Context = { number: 0 }
/** What a context takes besides its text: an estimate. */
const CONTEXT_BYTES = 150
/** Of the memory, this part is for contexts. */
const CONTEXTS = 1 / 8

interface Entry<T> {
  readonly context: number
  /** Its bytes, which begin at `at` of a buffer that has others, too. */
  readonly view: DataView
  readonly at: number
  readonly length: number
  readonly meaning: T
  readonly cost: number
  /** The hash of what was found after it, which most often comes after it again. */
  next: number
}

export class ByteMemory<T> {
  readonly #mostBytes: number
  readonly #random: () => number
  /** So that bytes which are made to have one hash here have it nowhere else. What has the same hash is still told apart. */
  readonly #seed: number
  /** By their hashes, the oldest first: of two with the same, the later one stays. */
  readonly #entries = new Map<number, Entry<T>>()
  readonly #pool = new BytePool()
  #bytes = 0
  /** By their texts. A number is not given again, so those that are forgotten are found nowhere. */
  readonly #contexts = new Map<string, Context>()
  #contextBytes = 0
  #numbered = 0
  /** What was found last. */
  #last: Entry<T> | undefined
  #lost = 0

  /** `random`: 0..1. */
  constructor(mostBytes: number, random: () => number = Math.random) {
    this.#mostBytes = mostBytes
    this.#random = random
    this.#seed = Math.floor(random() * 2 ** 32) | 0
  }

  /** Meanings and contexts that were not kept, or are kept no longer, for want of room: since this was asked before. */
  lost(): number {
    const lost = this.#lost
    this.#lost = 0
    return lost
  }

  /** The context of a text, such as the name of a metric, inside of another context. */
  within(text: string, outer = NOWHERE): Context {
    const name = `${outer.number} ${text}`
    let context = this.#contexts.get(name)
    if (context === undefined) {
      context = { number: ++this.#numbered }
      this.#keep(name, context)
    }
    return context
  }

  #keep(name: string, context: Context): void {
    const cost = CONTEXT_BYTES + 2 * name.length
    const most = this.#mostBytes * CONTEXTS
    if (cost > most) {
      this.#lost++
      return
    }
    if (this.#contextBytes + cost > most) {
      this.#lost += this.#contexts.size
      this.#contexts.clear()
      this.#contextBytes = 0
    }
    this.#contexts.set(name, context)
    this.#contextBytes += cost
  }

  /** What the bytes from `start` to `end` mean, if that is known. */
  find(view: DataView, start: number, end: number, context = NOWHERE): T | undefined {
    // Senders repeat their series in one order: to compare with what is expected is all that most need.
    const expected = this.#last && this.#entries.get(this.#last.next)
    if (expected !== undefined && isEntry(expected, view, start, end, context)) {
      this.#last = expected
      return expected.meaning
    }
    const hash = this.#hash(view, start, end, context)
    const entry = this.#entries.get(hash)
    if (entry === undefined || !isEntry(entry, view, start, end, context)) return undefined
    if (this.#last !== undefined) this.#last.next = hash
    this.#last = entry
    return entry.meaning
  }

  /**
   * Returns whether the meaning is kept. `weight`: bytes that it takes, where that is more than a few times those that it has been read
   * from.
   */
  add(view: DataView, start: number, end: number, meaning: T, { context = NOWHERE, weight = 0 } = {}): boolean {
    const cost = ENTRY_BYTES + COPIES * (end - start) + weight
    const isFull = this.#bytes + cost > this.#mostBytes
    if (cost > this.#mostBytes || (isFull && this.#random() >= ADMITTED)) {
      this.#lost++
      return false
    }
    const hash = this.#hash(view, start, end, context)
    this.#remove(hash)
    for (const oldest of this.#entries.keys()) {
      if (this.#bytes + cost <= this.#mostBytes) break
      this.#remove(oldest)
      this.#lost++
    }
    const length = end - start
    // A copy: the bytes of a request are not kept.
    const kept = this.#pool.keep(view, start, length)
    this.#entries.set(hash, { context: context.number, ...kept, length, meaning, cost, next: hash })
    this.#bytes += cost
    return true
  }

  #remove(hash: number): void {
    this.#bytes -= this.#entries.get(hash)?.cost ?? 0
    this.#entries.delete(hash)
  }

  #hash(view: DataView, start: number, end: number, context: Context): number {
    let hash = mixed(this.#seed, context.number) ^ (end - start)
    let at = start
    for (; at + 4 <= end; at += 4) hash = mixed(hash, view.getInt32(at, true))
    for (; at < end; at++) hash = mixed(hash, view.getUint8(at))
    return hash
  }
}

function isEntry(entry: Entry<unknown>, view: DataView, start: number, end: number, context: Context): boolean {
  if (entry.context !== context.number || entry.length !== end - start) return false
  const { view: kept, at: first, length } = entry
  let at = 0
  for (; at + 4 <= length; at += 4) if (kept.getInt32(first + at) !== view.getInt32(start + at)) return false
  for (; at < length; at++) if (kept.getUint8(first + at) !== view.getUint8(start + at)) return false
  return true
}
