/**
 * What a decoder knows of the series of earlier requests, whoever sent them: nothing in it depends on that. Each decoder has one where
 * bodies are decoded in steps, and one in the thread. Series that come again have a number there, by which whoever publishes them
 * finds them without their key (`known-series.ts`).
 */
import { randomUUID } from 'node:crypto'
import { ByteMemory } from '../../protocol/bytes/byte-memory.ts'
import type { ColumnKey } from './columns.ts'

/** About 11,000 series with six labels of 150 bytes. Of more, it keeps as many. */
const MOST_BYTES = 16 << 20
/** Numbers that are given before all begin again. */
const MOST_NUMBERS = 1 << 16

/** What the bounds of a memory have cost since it was asked before. */
export interface Forgotten {
  /** Labels that it has not kept, or keeps no longer: they are read again when they come again. */
  readonly labels: number
  /** How often all its numbers began again. */
  readonly numberings: number
}

export class SeriesMemory<Labels extends object> {
  /** By the bytes of names and labels, as they stand in requests. */
  readonly labels = new ByteMemory<Labels>(MOST_BYTES)
  readonly #mostNumbers: number
  #keys = new WeakMap<Labels, ColumnKey>()
  #numbering = randomUUID()
  #numbers = 0
  #renumbered = 0

  constructor(mostNumbers = MOST_NUMBERS) {
    this.#mostNumbers = mostNumbers
  }

  /** Tells the numbers of a request from those of other memories, and from those that this one gave before all began again. */
  numbering(): string {
    if (this.#numbers >= this.#mostNumbers) {
      this.#keys = new WeakMap()
      this.#numbering = randomUUID()
      this.#numbers = 0
      this.#renumbered++
    }
    return this.#numbering
  }

  forgotten(): Forgotten {
    const numberings = this.#renumbered
    this.#renumbered = 0
    return { labels: this.labels.lost(), numberings }
  }

  /** The key of labels, which `make` makes the first time. What is asked for again is remembered, and gets a number. */
  keyOf(labels: Labels, make: () => ColumnKey): ColumnKey {
    const known = this.#keys.get(labels)
    if (known === undefined) {
      const made = make()
      this.#keys.set(labels, made)
      return made
    }
    if ('key' in known && known.number === 0 && this.#numbers < this.#mostNumbers) {
      known.number = ++this.#numbers
      known.numbering = this.#numbering
    }
    return known
  }
}
