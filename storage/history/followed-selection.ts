/**
 * A selection that was read, and is asked for again and again: what has come of it since. That is found in the rows of the head alone,
 * so where some of these are in pages by now, where a series of the names that it wants has come or gone, or where samples have gone,
 * the selection has to be read anew.
 */
import { seriesAt } from './codec/page.ts'
import { wordsOf } from './codec/words.ts'
import type { Head, StoredBlock } from './head.ts'
import type { HistoryTenant } from './history-tenants.ts'
import { namesWanted } from './kept-selections.ts'
import type { NameChanges } from './name-changes.ts'
import type { HistoryFollowing, HistoryMatcher, HistoryNews } from './store.ts'

/** More rows than that are read anew, in portions. */
const MOST_ROWS = 1 << 13
const NONE = new Float64Array(0)
const NO_NEWS: HistoryNews = { places: NONE, times: NONE, values: NONE }

export interface FollowedTenant extends Pick<HistoryTenant, 'id'> {
  readonly head: Pick<Head, 'rows' | 'firsts' | 'blocks' | 'indexOf'>
}

export interface FollowingParts {
  readonly matchers: readonly HistoryMatcher[]
  /** The tenant of now; undefined if there is none. */
  readonly tenant: () => FollowedTenant | undefined
  readonly changes: Pick<NameChanges, 'now' | 'haveChanged' | 'removals'>
}

/** To be made in the state in which the selection is read. */
export class FollowedSelection implements HistoryFollowing {
  readonly #parts: FollowingParts
  readonly #names: readonly string[] | undefined
  /** The number of the tenant, and not what is in memory of it: one that was removed is not kept. */
  readonly #tenant: number | undefined
  readonly #removals: number
  /** What is known is of this state. */
  #then: number
  #rows: number
  /** Of its series; undefined until they are found. */
  #places: Float64Array | undefined

  constructor(parts: FollowingParts) {
    this.#parts = parts
    this.#names = namesWanted(parts.matchers)
    const tenant = parts.tenant()
    this.#tenant = tenant?.id
    this.#removals = parts.changes.removals
    this.#then = parts.changes.now
    this.#rows = tenant?.head.rows ?? 0
  }

  found(places: Float64Array): void {
    this.#places = places
  }

  news(): HistoryNews | undefined {
    const { changes, tenant: tenantNow } = this.#parts
    const tenant = tenantNow()
    if (tenant?.id !== this.#tenant || changes.removals !== this.#removals) return undefined
    if (tenant === undefined) return NO_NEWS
    const { now } = changes
    if (now !== this.#then && changes.haveChanged(tenant.id, this.#names, this.#then)) return undefined
    this.#then = now
    const { head } = tenant
    const [from, to] = [this.#rows, head.rows]
    if (to === from) return NO_NEWS
    if ((head.firsts[0] ?? to) > from) return undefined
    const places = this.#places
    const index = head.indexOf(head.blocks)
    if (places === undefined || index === undefined) return undefined
    const found = new Found()
    for (const place of places) {
      const last = index.lastOf(seriesAt(place))
      if (last === undefined || last < from) continue
      const first = found.length
      index.each(head.blocks, last, (block, row) => found.add(place, block, row), from)
      found.reverse(first)
      if (found.length > MOST_ROWS) return undefined
    }
    this.#rows = to
    return found.news()
  }
}

/** Rows, each with the place of its series. */
class Found {
  readonly #places: number[] = []
  readonly #blocks: StoredBlock[] = []
  readonly #rows: number[] = []

  get length(): number {
    return this.#rows.length
  }

  add(place: number, block: StoredBlock, row: number): void {
    this.#places.push(place)
    this.#blocks.push(block)
    this.#rows.push(row)
  }

  /** Those of one series were found from the last one on. */
  reverse(first: number): void {
    for (let [low, high] = [first, this.#rows.length - 1]; low < high; low++, high--) {
      ;[this.#rows[low], this.#rows[high]] = [this.#rows[high]!, this.#rows[low]!]
      ;[this.#blocks[low], this.#blocks[high]] = [this.#blocks[high]!, this.#blocks[low]!]
    }
  }

  news(): HistoryNews {
    const { length } = this.#rows
    if (length === 0) return NO_NEWS
    const [times, values] = [new Float64Array(length), new Float64Array(length)]
    const words = wordsOf(values)
    for (let at = 0; at < length; at++) {
      const [block, row] = [this.#blocks[at]!, this.#rows[at]!]
      const from = wordsOf(block.values)
      times[at] = block.times[row]!
      words[2 * at] = from[2 * row]!
      words[2 * at + 1] = from[2 * row + 1]!
    }
    return { places: Float64Array.from(this.#places), times, values }
  }
}
