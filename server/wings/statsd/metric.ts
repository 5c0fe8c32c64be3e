/** One name with its tags: what has come in since the last flush, and what goes on beyond it. */
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Field, Value } from '../../../protocol/monitor/value.ts'
import type { StatsdKind, StatsdLine } from '../../../protocol/statsd/lines.ts'

const { ARRAY, BOOLEAN, DOUBLE, REC, UINT64 } = BasicType

/** The upper bounds of the buckets of timers; values above the last one are in a bucket of their own. */
export const BOUNDS: readonly number[] = [
  1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000,
]
/** Members of a set that are told apart in one interval. */
export const MAX_MEMBERS = 10_000

export class StatsdMetric {
  readonly kind: StatsdKind
  readonly name: string
  readonly tags: StatsdLine['tags']
  readonly unit: string
  /** Whether something came since the last flush. */
  isTouched = false
  /** When a line came last, monotonic milliseconds. */
  heardMs = 0
  /** The sum of a counter since the metric began, or the value of a gauge. */
  #number = 0
  #members = new Set<string>()
  #timings = new Timings()

  constructor({ kind, name, tags, unit }: StatsdLine) {
    this.kind = kind
    this.name = name
    this.tags = tags
    this.unit = unit
  }

  /**
   * Takes the values of a line; returns how many were refused: members of a set that there was no room for, and numbers that would
   * make a sum larger than a value can be.
   */
  take({ values, isRelative, weight }: StatsdLine): number {
    let refused = 0
    for (const value of values) {
      const isTaken = typeof value === 'string' ? this.#addMember(value) : this.#addNumber(value, isRelative, weight)
      if (isTaken) this.isTouched = true
      else refused++
    }
    return refused
  }

  #addMember(text: string): boolean {
    if (this.#members.size >= MAX_MEMBERS && !this.#members.has(text)) return false
    this.#members.add(text)
    return true
  }

  #addNumber(value: number, isRelative: boolean, weight: number): boolean {
    if (this.kind === 'timer') return this.#timings.add(value, weight)
    let number = value
    if (this.kind === 'counter') number = this.#number + value * weight
    else if (isRelative) number = this.#number + value
    if (!Number.isFinite(number)) return false
    this.#number = number
    return true
  }

  /** What has come in; the next interval begins. `start`: when this one began, microseconds since 1970. */
  flush(start: number): Value {
    this.isTouched = false
    switch (this.kind) {
      case 'counter':
      case 'gauge':
        return { type: DOUBLE, value: this.#number }
      case 'set': {
        const count = BigInt(this.#members.size)
        this.#members = new Set()
        return { type: UINT64, value: count }
      }
      case 'timer': {
        const timings = this.#timings
        this.#timings = new Timings()
        return { type: REC, value: timings.fields(start) }
      }
    }
  }
}

/** The histogram of one interval. Sampled values count as often as they stand for. */
class Timings {
  #count = 0
  #sum = 0
  #min = Number.POSITIVE_INFINITY
  #max = Number.NEGATIVE_INFINITY
  readonly #counts = new Array<number>(BOUNDS.length + 1).fill(0)

  /** Returns false if it would count or sum up more than a value can be. */
  add(value: number, weight: number): boolean {
    const [count, sum] = [this.#count + weight, this.#sum + value * weight]
    if (count > Number.MAX_SAFE_INTEGER || !Number.isFinite(sum)) return false
    this.#count = count
    this.#sum = sum
    this.#min = Math.min(this.#min, value)
    this.#max = Math.max(this.#max, value)
    let bucket = 0
    while (bucket < BOUNDS.length && value > (BOUNDS[bucket] as number)) bucket++
    this.#counts[bucket] = (this.#counts[bucket] as number) + weight
    return true
  }

  /** In the form of a histogram of `otlp.`, whose counts are differences. */
  fields(start: number): Field[] {
    const counts = this.#counts.map((count) => BigInt(Math.round(count)))
    return [
      { name: 'delta', type: BOOLEAN, value: true },
      { name: 'start', type: UINT64, value: BigInt(Math.floor(start)) },
      { name: 'count', type: UINT64, value: BigInt(Math.round(this.#count)) },
      { name: 'sum', type: DOUBLE, value: this.#sum },
      { name: 'min', type: DOUBLE, value: this.#min },
      { name: 'max', type: DOUBLE, value: this.#max },
      { name: 'bounds', type: ARRAY, value: { element: DOUBLE, items: BOUNDS } },
      { name: 'counts', type: ARRAY, value: { element: UINT64, items: counts } },
    ]
  }
}
