/**
 * Buffer lanes in the order of their oldest values, as a binary heap: there may be thousands, and a full channel asks for
 * the oldest one with every value that arrives. A stamp in the heap may be too old, since lanes change without a word; it
 * is looked at again when it comes first. It is never too young, since what a lane takes in is younger than what it has.
 */
import type { Lane } from './lane.ts'

interface Aged {
  readonly lane: Lane
  stamp: number
}

export class LanesByAge {
  readonly #heap: Aged[] = []
  readonly #lanes = new Set<Lane>()

  /** `stamp`: of its oldest value. A lane that is there already stays where it is. */
  add(lane: Lane, stamp: number): void {
    if (this.#lanes.has(lane)) return
    this.#lanes.add(lane)
    let index = this.#heap.push({ lane, stamp }) - 1
    for (let parent = (index - 1) >> 1; index > 0 && stamp < this.#heap[parent]!.stamp; parent = (index - 1) >> 1) {
      this.#swap(index, parent)
      index = parent
    }
  }

  /** The lane with the oldest value. `stampOf` gives the age of a lane as it is now; a lane without one is taken out. */
  oldest(stampOf: (lane: Lane) => number | undefined): Lane | undefined {
    for (let first = this.#heap[0]; first !== undefined; first = this.#heap[0]) {
      const stamp = stampOf(first.lane)
      if (stamp === first.stamp) return first.lane
      if (stamp === undefined) this.#removeFirst()
      else first.stamp = stamp
      this.#sink()
    }
    return undefined
  }

  #removeFirst(): void {
    this.#swap(0, this.#heap.length - 1)
    this.#lanes.delete(this.#heap.pop()!.lane)
  }

  /** Brings the first one down to its place. */
  #sink(): void {
    const stampAt = (index: number): number => this.#heap[index]?.stamp ?? Number.POSITIVE_INFINITY
    for (let index = 0; ; ) {
      const left = 2 * index + 1
      const child = stampAt(left + 1) < stampAt(left) ? left + 1 : left
      if (stampAt(child) >= stampAt(index)) return
      this.#swap(index, child)
      index = child
    }
  }

  #swap(one: number, other: number): void {
    const heap = this.#heap
    ;[heap[one], heap[other]] = [heap[other]!, heap[one]!]
  }
}
