/**
 * What a query may use. Samples, series, points and bytes are counted as they come, before anything is made of them, and the query
 * ends with an error of the type that Prometheus has for it. Work is counted so that evaluation stops for a moment often enough.
 */
import { executionError } from '../errors.ts'

export interface QueryLimits {
  /** Samples that the source gives. */
  readonly maxSamples: number
  /** Series that the source gives. */
  readonly maxSeries: number
  /** Points of results, those within an expression included. */
  readonly maxPoints: number
  /** What is held at one time, as far as it is counted: columns of points. */
  readonly maxBytes: number
}

export const QUERY_LIMITS: QueryLimits = {
  maxSamples: 50_000_000,
  maxSeries: 200_000,
  maxPoints: 200_000_000,
  maxBytes: 512 * 2 ** 20,
}

/** Elements of columns that are handled between two stops: less than a millisecond, a few where each takes long. */
const WORK_PER_STEP = 50_000
/** What a series costs besides its elements. */
const WORK_PER_SERIES = 300
/** A point of a column, and the mark that it is there. */
const BYTES_PER_POINT = 9
/** A series with its labels, about. */
const BYTES_PER_SERIES = 500

export class Budget {
  readonly #limits: QueryLimits
  readonly #onHeld: (bytes: number) => void
  #samples = 0
  #series = 0
  #points = 0
  #bytes = 0
  #held = 0
  #peak = 0
  #work = 0

  /** `onHeld` learns of the bytes that are held as they come, and, as fewer than none, as they go. */
  constructor(limits: QueryLimits, onHeld: (bytes: number) => void = () => {}) {
    this.#limits = limits
    this.#onHeld = onHeld
  }

  get samples(): number {
    return this.#samples
  }

  get series(): number {
    return this.#series
  }

  /** The most points that were held at one time. */
  get peakPoints(): number {
    return this.#peak
  }

  /** A series that the source gave. */
  takeSeries(samples: number): void {
    this.#series++
    this.#samples += samples
    if (this.#series > this.#limits.maxSeries) throw tooMany('series', this.#limits.maxSeries)
    if (this.#samples > this.#limits.maxSamples)
      throw executionError('query processing would load too many samples into memory in query execution')
  }

  /** A column that is about to be made. */
  takePoints(count: number): void {
    this.#points += count
    if (this.#points > this.#limits.maxPoints) throw tooMany('points', this.#limits.maxPoints)
  }

  /** A column that stays until `release`. */
  hold(points: number, bytesPerPoint = BYTES_PER_POINT): void {
    this.#held += points
    this.#peak = Math.max(this.#peak, this.#held)
    this.holdBytes(points * bytesPerPoint + BYTES_PER_SERIES)
  }

  release(series: number, points: number, bytesPerPoint = BYTES_PER_POINT): void {
    this.#held -= points
    this.releaseBytes(points * bytesPerPoint + series * BYTES_PER_SERIES)
  }

  /** What is no column of points and stays, too, such as marks. */
  holdBytes(bytes: number): void {
    this.#bytes += bytes
    this.#onHeld(bytes)
    if (this.#bytes > this.#limits.maxBytes) throw tooMany('bytes of results at one time', this.#limits.maxBytes)
  }

  releaseBytes(bytes: number): void {
    this.#bytes -= bytes
    this.#onHeld(-bytes)
  }

  /** Counts the elements of a series that were handled; whether it is time to stop for a moment. */
  isStepOver(elements: number): boolean {
    this.#work += elements + WORK_PER_SERIES
    if (this.#work < WORK_PER_STEP) return false
    this.#work = 0
    return true
  }

  /** How much may be done before it is time to stop. */
  get workLeft(): number {
    return Math.max(1, WORK_PER_STEP - this.#work)
  }
}

function tooMany(what: string, limit: number) {
  return executionError(`query processing would need more than ${limit} ${what}`)
}
