/**
 * A lane: blocks and GAPs in order, consumed from the front. The sending lane (id 0) is ordered by transaction id and has
 * a cursor, the first entry that is not wholly handed out; a buffer lane (its metric's id) only waits.
 */
import type { Block } from './block.ts'
import type { GapEntry } from './gap.ts'

export type Entry = Block | GapEntry

const MIN_COMPACT = 64

export class Lane {
  readonly id: number
  #entries: Entry[] = []
  #start = 0
  #compactAt = MIN_COMPACT
  /** Index of the entry to be sent next, from the front. */
  cursor = 0
  /** keep-latest: the newest value of each series. */
  readonly latest = new Map<string, Block>()

  constructor(id: number) {
    this.id = id
  }

  get length(): number {
    return this.#entries.length - this.#start
  }

  at(index: number): Entry | undefined {
    return index < 0 ? undefined : this.#entries[this.#start + index]
  }

  get head(): Entry | undefined {
    return this.#entries[this.#start]
  }

  get tail(): Entry | undefined {
    return this.#start < this.#entries.length ? this.#entries[this.#entries.length - 1] : undefined
  }

  /** The last entry with something left; what is settled behind it is only not taken out yet. */
  get lastUnsettled(): Entry | undefined {
    for (let index = this.length - 1; index >= 0; index--) {
      const entry = this.at(index) as Entry
      if (isUnsettled(entry)) return entry
    }
    return undefined
  }

  push(entry: Entry): void {
    if (this.length >= this.#compactAt) this.#compact()
    this.#entries.push(entry)
  }

  shift(): void {
    this.#entries[this.#start++] = undefined as unknown as Entry
    if (this.cursor > 0) this.cursor--
    if (this.#start > 1024 && this.#start * 2 > this.#entries.length) {
      this.#entries = this.#entries.slice(this.#start)
      this.#start = 0
    }
  }

  /** Puts an entry at `index`, not before the cursor; what was there and behind it moves back. */
  insert(index: number, entry: Entry): void {
    if (index === 0 && this.#start > 0) this.#entries[--this.#start] = entry
    else this.#entries.splice(this.#start + index, 0, entry)
  }

  /** Takes out the entry at `index`, not before the cursor. */
  remove(index: number): void {
    if (index === 0) {
      this.shift()
      return
    }
    // Entries in front of what is dropped are few: they are in flight. Those behind may be thousands.
    this.#entries.copyWithin(this.#start + 1, this.#start, this.#start + index)
    const { cursor } = this
    this.shift()
    this.cursor = cursor
  }

  /** What is settled goes by itself only at the head; behind a value that is never committed it would pile up. */
  #compact(): void {
    const before = this.#entries.slice(this.#start, this.#start + this.cursor).filter(isUnsettled)
    this.#entries = before.concat(this.#entries.slice(this.#start + this.cursor).filter(isUnsettled))
    this.#start = 0
    this.cursor = before.length
    this.#compactAt = Math.max(MIN_COMPACT, 2 * this.#entries.length)
  }

  /** The index of the entry that has this transaction id, or -1: a hole, or outside. Sending lane only. */
  find(transaction: number): number {
    let low = 0
    let high = this.length - 1
    while (low <= high) {
      const middle = (low + high) >> 1
      const entry = this.at(middle) as Entry
      if (transaction < entry.first) high = middle - 1
      else if (transaction > entry.last) low = middle + 1
      else return middle
    }
    return -1
  }

  *[Symbol.iterator](): IterableIterator<Entry> {
    for (let i = this.#start; i < this.#entries.length; i++) yield this.#entries[i] as Entry
  }
}

/** Something of the entry is still to be sent or committed. */
export function isUnsettled(entry: Entry): boolean {
  return entry.kind === 'gap' ? !entry.settled : entry.unsettled > 0
}
