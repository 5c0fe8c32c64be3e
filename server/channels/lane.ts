/**
 * A lane: blocks and GAPs in order, consumed from the front. The sending lane (id 0) is ordered by transaction id and has
 * a cursor, the first entry that is not wholly handed out; a buffer lane (its metric's id) only waits.
 */
import type { Block } from './block.ts'
import type { Gap } from './gap.ts'

export type Entry = Block | Gap

export class Lane {
  readonly id: number
  #entries: Entry[] = []
  #start = 0
  /** Index of the entry to be sent next, from the front. */
  cursor = 0

  constructor(id: number) {
    this.id = id
  }

  get length(): number {
    return this.#entries.length - this.#start
  }

  at(index: number): Entry | undefined {
    return this.#entries[this.#start + index]
  }

  get head(): Entry | undefined {
    return this.#entries[this.#start]
  }

  get tail(): Entry | undefined {
    return this.#entries[this.#entries.length - 1]
  }

  push(entry: Entry): void {
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

  /** Puts an entry at `index`; what was there and behind it moves back. */
  insert(index: number, entry: Entry): void {
    if (index === 0 && this.#start > 0) this.#entries[--this.#start] = entry
    else this.#entries.splice(this.#start + index, 0, entry)
  }

  replace(index: number, entry: Entry): void {
    this.#entries[this.#start + index] = entry
  }

  remove(index: number): void {
    if (index === 0) {
      this.shift()
      return
    }
    // Entries in front of what is dropped are few: they are in flight. Those behind may be thousands.
    this.#entries.copyWithin(this.#start + 1, this.#start, this.#start + index)
    const cursor = this.cursor
    this.shift()
    this.cursor = cursor > index ? cursor - 1 : cursor
  }

  /** Keeps only what `keep` says. Before the cursor nothing may go. */
  filter(keep: (entry: Entry) => boolean): void {
    const front = this.#entries.slice(this.#start, this.#start + this.cursor)
    const rest = this.#entries.slice(this.#start + this.cursor).filter(keep)
    this.#entries = front.concat(rest)
    this.#start = 0
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
