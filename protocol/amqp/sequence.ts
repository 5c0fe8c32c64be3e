/**
 * Numbers of commands. They count up and wrap at 2^32, so that a range may begin at 0xfffffffe and end at 1: compare them
 * by distance only, never by size.
 */

/** Both ends are in it. */
export interface SequenceRange {
  readonly first: number
  readonly last: number
}

/** So many that are done and not known to be done, and the peer is asked to say that it knows. */
const ASK_ABOVE = 1000
/** A peer that never says so is told of the latest only. */
const MOST_UNKNOWN = 65_536

export function nextSequence(id: number): number {
  return (id + 1) >>> 0
}

export function includes(ranges: readonly SequenceRange[], id: number): boolean {
  return ranges.some(({ first, last }) => distance(first, id) <= distance(first, last))
}

/** The peer's commands: each is done as soon as it is there. */
export class ReceivedCommands {
  #next = 0
  /** Done, and the peer has not said that it knows: those before `#next`. */
  #unknown = 0

  /** The number of the next command. */
  startAt(id: number): void {
    this.#next = id
    this.#unknown = 0
  }

  record(): void {
    this.#next = nextSequence(this.#next)
    this.#unknown = Math.min(this.#unknown + 1, MOST_UNKNOWN)
  }

  /** What is to be told with session.completed. */
  get completed(): readonly SequenceRange[] {
    if (this.#unknown === 0) return []
    return [{ first: (this.#next - this.#unknown) >>> 0, last: (this.#next - 1) >>> 0 }]
  }

  get asksForReply(): boolean {
    return this.#unknown > ASK_ABOVE
  }

  /** The peer knows of these; what is in front of them it has known before. */
  known(ranges: readonly SequenceRange[]): void {
    for (const { last } of ranges) {
      const left = distance(last, this.#next) - 1
      if (left >= 0 && left < this.#unknown) this.#unknown = left
    }
  }
}

function distance(from: number, to: number): number {
  return (to - from) >>> 0
}
