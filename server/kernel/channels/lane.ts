/**
 * A lane: blocks and GAPs in order, consumed from the front. The sending lane (id 0) is ordered by transaction id and has
 * a cursor, the first entry that is not wholly handed out; a buffer lane (its id is that of its metric) only waits.
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

  /** keep-latest: the older value of a series that gives way to a new one; one in flight stays until its connection ends. */
  supersededBy(series: string): Block | undefined {
    const older = this.latest.get(series)
    return older === undefined || older.inFlight > 0 ? undefined : older
  }

  /** The last entry that is not settled; the settled ones after it are only not removed yet. */
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

  /** Closes the last block: the next value begins a new one. */
  sealTail(): void {
    const { tail } = this
    if (tail?.kind === 'block') tail.sealed = true
  }

  shift(): void {
    this.#entries[this.#start++] = undefined as unknown as Entry
    if (this.cursor > 0) this.cursor--
    if (this.#start > 1024 && this.#start * 2 > this.#entries.length) {
      this.#entries = this.#entries.slice(this.#start)
      this.#start = 0
    }
  }

  /** Removes what is settled from the front. */
  dropSettledHead(): void {
    for (let head = this.head; head !== undefined && !isUnsettled(head); head = this.head) this.shift()
  }

  /** Puts an entry at `index`, not before the cursor; the entries from there on move back. */
  insert(index: number, entry: Entry): void {
    if (index === 0 && this.#start > 0) this.#entries[--this.#start] = entry
    else this.#entries.splice(this.#start + index, 0, entry)
  }

  /** Removes the entry at `index`, not before the cursor. */
  remove(index: number): void {
    if (index === 0) {
      this.shift()
      return
    }
    // The entries before it are few: they are in flight. Those after it may be thousands.
    this.#entries.copyWithin(this.#start + 1, this.#start, this.#start + index)
    const { cursor } = this
    this.shift()
    this.cursor = cursor
  }

  /** Settled entries are removed only at the head; after a value that is never committed they would pile up. */
  #compact(): void {
    const before = this.#entries.slice(this.#start, this.#start + this.cursor).filter(isUnsettled)
    this.#entries = before.concat(this.#entries.slice(this.#start + this.cursor).filter(isUnsettled))
    this.#start = 0
    this.cursor = before.length
    this.#compactAt = Math.max(MIN_COMPACT, 2 * this.#entries.length)
  }

  /** The index of the entry that has this transaction id; -1 if none has. Sending lane only. */
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

  /** The first block from `from` and the cursor on that limits may drop values of; -1 if there is none. */
  unsentIndex(from: number): number {
    for (let index = Math.max(from, this.cursor); index < this.length; index++) {
      const entry = this.at(index)
      if (entry?.kind === 'block' && entry.unsettled > entry.inFlight && !entry.exempt) return index
    }
    return -1
  }

  /** The unsettled blocks that may hold values of a metric; all of them without one. */
  blocksOf(metric: number | undefined): Block[] {
    const blocks: Block[] = []
    for (const entry of this) {
      if (entry.kind === 'gap' || entry.unsettled === 0) continue
      if (metric === undefined || entry.metric === 0 || entry.metric === metric) blocks.push(entry)
    }
    return blocks
  }

  /** The entries as they are now. */
  entries(): readonly Entry[] {
    return this.#entries.slice(this.#start)
  }

  *[Symbol.iterator](): IterableIterator<Entry> {
    for (let i = this.#start; i < this.#entries.length; i++) yield this.#entries[i] as Entry
  }
}

/** The lanes of a queue: the sending lane, and a buffer lane for each metric id with values that wait for GET. */
export class Lanes {
  readonly sending = new Lane(0)
  readonly #waiting = new Map<number, Lane>()

  get(id: number): Lane | undefined {
    return id === 0 ? this.sending : this.#waiting.get(id)
  }

  /** The lane of that id, made if it is not there. */
  open(id: number): Lane {
    let lane = this.get(id)
    if (lane === undefined) {
      lane = new Lane(id)
      this.#waiting.set(id, lane)
    }
    return lane
  }

  /** Takes out a buffer lane; undefined if there is none. */
  takeWaiting(metric: number): Lane | undefined {
    const lane = this.#waiting.get(metric)
    if (lane !== undefined) this.#waiting.delete(metric)
    return lane
  }

  waitingIds(): number[] {
    return [...this.#waiting.keys()]
  }

  *[Symbol.iterator](): IterableIterator<Lane> {
    yield this.sending
    yield* this.#waiting.values()
  }
}

/** Something of the entry is still to be sent or committed. */
export function isUnsettled(entry: Entry): boolean {
  return entry.kind === 'gap' ? !entry.settled : entry.unsettled > 0
}
