/**
 * Series of a sensor by the numbers that decoders know them by (`series-memory.ts`): an index instead of a key of some hundred
 * characters that has to be read and looked up. What is kept for it is bounded: two memories are known, one of the thread and one of
 * the steps, and series that have ended are let go after a while.
 */

const MEMORIES = 2
/** So many series that have ended are kept at most, until all numbers are forgotten. */
const MOST_ENDED = 1_024

interface Ending {
  readonly isLive: boolean
}

/** Numbers whose series stand together. A tenant has few of the numbers of a memory, and most of those follow each other. */
const PAGE = 256

/** Those of one memory. */
export class NumberedSeries<S extends Ending> {
  /** By number divided by PAGE, and then by what is left of it. */
  readonly #pages: ((S | undefined)[] | undefined)[] = []

  /** The series with a number; undefined if it is not known by it, or has ended. */
  of(number: number): S | undefined {
    const at = Math.floor(number / PAGE)
    const found = at < this.#pages.length ? this.#pages[at]?.[number % PAGE] : undefined
    return found?.isLive ? found : undefined
  }

  /** Numbers begin at 1; 0 is none. */
  keep(number: number, series: S): void {
    if (number === 0) return
    const at = Math.floor(number / PAGE)
    while (this.#pages.length <= at) this.#pages.push(undefined)
    let page = this.#pages[at]
    if (page === undefined) {
      page = new Array<S | undefined>(PAGE).fill(undefined)
      this.#pages[at] = page
    }
    page[number % PAGE] = series
  }
}

export class KnownSeries<S extends Ending> {
  /** By their numberings, the one that was used last at the end. */
  readonly #memories = new Map<string, NumberedSeries<S>>()
  #ended = 0
  #letGo = 0

  /** How often all series of a memory were let go, so that each is looked up by its key once more. */
  get letGo(): number {
    return this.#letGo
  }

  /** Those that a memory has numbered. */
  numberedBy(numbering: string): NumberedSeries<S> {
    const numbered = this.#memories.get(numbering) ?? new NumberedSeries<S>()
    this.#memories.delete(numbering)
    this.#memories.set(numbering, numbered)
    for (const oldest of this.#memories.keys()) {
      if (this.#memories.size <= MEMORIES) break
      this.#memories.delete(oldest)
      this.#letGo++
    }
    return numbered
  }

  /** To be called for each series that ends. */
  ended(): void {
    if (++this.#ended < MOST_ENDED) return
    this.#ended = 0
    this.#letGo += this.#memories.size
    this.#memories.clear()
  }
}
