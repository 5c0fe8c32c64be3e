/**
 * What a decoder knows of the series of earlier requests, whoever sent them: nothing in it depends on that. Each decoder has one where
 * bodies are decoded in steps, and one in the thread. Series that come again have a number there, by which whoever publishes them
 * finds them without their key (`known-series.ts`).
 */
import { randomUUID } from 'node:crypto'
import { ByteMemory } from '../../protocol/bytes/byte-memory.ts'
import { BytePool } from '../../protocol/bytes/byte-pool.ts'
import type { ColumnKey } from './columns.ts'

/** About 28,000 series with six labels of 150 bytes. Of more, it keeps as many. */
const MOST_BYTES = 16 << 20
/** The same for bodies that are decoded in the thread, which come from whoever has many series: about 110,000. */
export const MOST_BYTES_IN_THREAD = 64 << 20
/** Numbers that are given before all begin again. */
const MOST_NUMBERS = 1 << 18

/** What labels were read from bytes. The key that was made of them is kept with them. */
export interface Keyed {
  key?: ColumnKey
}

/** What the bounds of a memory have cost since it was asked before. */
export interface Forgotten {
  /** Labels that it has not kept, or keeps no longer: they are read again when they come again. */
  readonly labels: number
  /** How often all its numbers began again. */
  readonly numberings: number
}

export interface SeriesMemoryBounds {
  readonly mostBytes?: number
  readonly mostNumbers?: number
}

export class SeriesMemory<Labels extends object> {
  /** By the bytes of names and labels, as they stand in requests. */
  readonly labels: ByteMemory<Labels>
  readonly #mostNumbers: number
  readonly #keys = new BytePool()
  #numbering = randomUUID()
  #numbers = 0
  #renumbered = 0

  constructor({ mostBytes = MOST_BYTES, mostNumbers = MOST_NUMBERS }: SeriesMemoryBounds = {}) {
    this.labels = new ByteMemory<Labels>(mostBytes)
    this.#mostNumbers = mostNumbers
  }

  /** Tells the numbers of a request from those of other memories, and from those that this one gave before all began again. */
  numbering(): string {
    if (this.#numbers >= this.#mostNumbers) {
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
  keyOf(labels: Labels & Keyed, make: () => ColumnKey): ColumnKey {
    const known = labels.key
    if (known === undefined) {
      labels.key = this.#kept(make())
      return labels.key
    }
    if ('problem' in known) return known
    if (known.numbering !== this.#numbering) {
      known.number = 0
      known.numbering = this.#numbering
    } else if (known.number === 0 && this.#numbers < this.#mostNumbers) known.number = ++this.#numbers
    return known
  }

  #kept(made: ColumnKey): ColumnKey {
    if ('problem' in made) return made
    return { bytes: this.#keys.keepBytes(made.bytes), number: 0, numbering: this.#numbering }
  }
}
