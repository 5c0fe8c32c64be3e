/**
 * Where in the blocks of a head the rows of each series are: each row knows how far before it the one before of its series is. It is made
 * when few series are asked for, of the blocks that are new since then, so that the rules of a minute do not look at all rows for each.
 */

/** What of a block it needs. */
interface Rows {
  readonly series: Uint32Array
}

interface IndexedBlock {
  /** The number of its first row among all that were ever in the head. */
  readonly first: number
  /** For each row, how many rows before it that of the same series is; 0 if there is none near. */
  readonly before: Uint32Array
}

/** Farther apart than rows of a head ever are. */
const NEAR = 2 ** 31
/** With more series than that, those of which no row is left are forgotten when blocks have gone. */
const MOST_SERIES = 1 << 16

export class HeadIndex<Block extends Rows> {
  readonly #indexed = new WeakMap<Block, IndexedBlock>()
  /** By series, the number of its last row. */
  readonly #last = new Map<number, number>()
  /** Of the blocks that it was given last. */
  #oldest: Block | undefined

  /** The blocks that the head has now, and the number of the first row of each. */
  follow(blocks: readonly Block[], firsts: readonly number[]): void {
    let known = blocks.length
    while (known > 0 && !this.#indexed.has(blocks[known - 1]!)) known--
    for (let at = known; at < blocks.length; at++) this.#add(blocks[at]!, firsts[at]!)
    if (blocks[0] !== this.#oldest && this.#last.size > MOST_SERIES) this.#forget(firsts[0] ?? Number.POSITIVE_INFINITY)
    this.#oldest = blocks[0]
  }

  /** The number of the last row of a series, from which `each` begins; undefined if it has none. */
  lastOf(series: number): number | undefined {
    return this.#last.get(series)
  }

  /** The rows of a series in blocks that were followed, the last one first, from a number down to another, which is included. */
  each(blocks: readonly Block[], last: number, take: (block: Block, row: number) => void, least = 0): void {
    let number = last
    for (let at = blocks.length - 1; at >= 0; at--) {
      const block = blocks[at]!
      const { first, before } = this.#indexed.get(block)!
      while (number >= first) {
        if (number < least) return
        const row = number - first
        const back = before[row]!
        take(block, row)
        if (back === 0) return
        number -= back
      }
    }
  }

  #add(block: Block, first: number): void {
    const { series } = block
    const before = new Uint32Array(series.length)
    for (let row = 0; row < series.length; row++) {
      const last = this.#last.get(series[row]!)
      if (last !== undefined && first + row - last < NEAR) before[row] = first + row - last
      this.#last.set(series[row]!, first + row)
    }
    this.#indexed.set(block, { first, before })
  }

  #forget(first: number): void {
    for (const [series, last] of this.#last) if (last < first) this.#last.delete(series)
  }
}
