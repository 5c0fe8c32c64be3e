/** Where series come from. The history of the server is one source; tests have one in memory. */
import type { LabelMatcher } from './label-matcher.ts'

/** One element at a time; undefined where a step ends without one, so that whoever runs it may stop for a while. */
export type Stream<Element> = Generator<Element | undefined, void, void>

/**
 * A series with its samples: ascending by time, one for each time. A stale marker is a NaN with the bits 0x7ff0000000000002, which
 * a variable of JavaScript may lose: a source copies values with `set`, or as words, and they are recognised by their words here.
 */
export interface SourceSeries {
  /** Each name once, the name of the metric as `__name__`; in any order. */
  readonly labels: Iterable<readonly [name: string, text: string]>
  /** Milliseconds since 1970. */
  readonly times: Float64Array
  readonly values: Float64Array
  /** Up to this time, in milliseconds, only the last sample of each rollup is left; undefined if all are there. */
  readonly thinnedMs?: number | undefined
  /** For how long each sample counts, in milliseconds, where that is longer than the lookback; undefined if none does. */
  readonly heldMs?: Float64Array | undefined
}

/** A series in windows, open on the left, by their ends, ascending; an element of each column for each. Markers are in none. */
export interface SourceRollups {
  readonly labels: SourceSeries['labels']
  readonly ends: Float64Array
  readonly min: Float64Array
  readonly max: Float64Array
  readonly sum: Float64Array
  readonly count: Float64Array
  readonly first: Float64Array
  readonly firstTimes: Float64Array
  readonly last: Float64Array
  readonly lastTimes: Float64Array
  /** What a counter has lost by starting again: the sum of the values before which the next one was smaller. */
  readonly resets: Float64Array
}

/** A source that has rollups. They say all that some functions need to know, also of times whose samples have gone. */
export interface RollupSource {
  /** How long the shortest windows are. */
  readonly stepMs: number
  /** The same as `select`, in whole windows, of which each ends at a multiple of its length; that is a multiple of `stepMs`. */
  select(matchers: readonly LabelMatcher[], fromMs: number, toMs: number, windowsMs: number): Stream<SourceRollups>
}

export interface SeriesSource {
  readonly rollups?: RollupSource | undefined
  /**
   * The series that match all matchers, each once, with their samples of a range; both ends are included. Series without samples
   * there may be left out. The columns are only read here, while the stream stands at their series. `isLookingBack`: the latest sample
   * before a time is wanted, so that one from before the range may come first if it is held until then.
   */
  select(matchers: readonly LabelMatcher[], fromMs: number, toMs: number, isLookingBack?: boolean): Stream<SourceSeries>
}

const MARKER = new Uint32Array(new BigUint64Array([0x7ff0000000000002n]).buffer)

/** Finds the stale markers in a column of values. */
export class StaleMarkers {
  readonly #values: Float64Array
  /** Made when it is needed: most columns have no NaN that would have to be looked at. */
  #made: Uint32Array | undefined

  constructor(values: Float64Array) {
    this.#values = values
  }

  get #words(): Uint32Array {
    const { buffer, byteOffset, length } = this.#values
    this.#made ??= new Uint32Array(buffer, byteOffset, length * 2)
    return this.#made
  }

  has(index: number): boolean {
    return this.#words[index * 2] === MARKER[0] && this.#words[index * 2 + 1] === MARKER[1]
  }

  /** Makes the element a marker; the values are those that were given. */
  set(index: number): void {
    this.#words.set(MARKER, index * 2)
  }
}
