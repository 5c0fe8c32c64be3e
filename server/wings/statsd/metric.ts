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

/** Why a metric does not take a line: a set is full, or a sum or a count would be larger than a value can be. */
export type RefusedLine = 'members' | 'size'

/** What of a line changes a metric. */
type TakenLine = Pick<StatsdLine, 'values' | 'isRelative' | 'weight'>

export class StatsdMetric {
  readonly kind: StatsdKind
  readonly name: string
  readonly tags: StatsdLine['tags']
  readonly unit: string
  /** Whether something came since the last flush. */
  isTouched = false
  /** Its feed has it no more: the same name begins anew. */
  isForgotten = false
  /** When a line came last, monotonic milliseconds. */
  heardMs = 0
  /** The sum of a counter since the metric began, or the value of a gauge. */
  #number = 0
  readonly #one = [0]
  #members = new Set<string>()
  #timings = new Timings()

  constructor({ kind, name, tags, unit }: StatsdLine) {
    this.kind = kind
    this.name = copyOf(name)
    this.tags = tags.map(([tag, text]) => [copyOf(tag), copyOf(text)])
    this.unit = unit
  }

  /** Takes a line as a whole; returns why it is refused, and then nothing of it has changed anything. */
  take(line: TakenLine): RefusedLine | undefined {
    const refused = this.#takeValues(line)
    if (refused === undefined) this.isTouched = true
    return refused
  }

  /** The same for a line with one number, which has no sign. */
  takeNumber(number: number, weight: number): RefusedLine | undefined {
    this.#one[0] = number
    return this.take({ values: this.#one, isRelative: false, weight })
  }

  #takeValues({ values, isRelative, weight }: TakenLine): RefusedLine | undefined {
    if (this.kind === 'set') return this.#addMember(String(values[0])) ? undefined : 'members'
    const numbers = values as readonly number[]
    if (this.kind === 'timer') return this.#timings.add(numbers, weight) ? undefined : 'size'
    let number = this.kind === 'counter' || isRelative ? this.#number : 0
    for (const value of numbers) number += this.kind === 'counter' ? value * weight : value
    if (!Number.isFinite(number)) return 'size'
    this.#number = number
    return undefined
  }

  #addMember(text: string): boolean {
    if (this.#members.has(text)) return true
    if (this.#members.size >= MAX_MEMBERS) return false
    this.#members.add(copyOf(text))
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

/** For what is kept: a part of a text keeps the whole of it in memory, here all lines of a datagram. */
export function copyOf(text: string): string {
  return Buffer.from(text).toString()
}

/** The histogram of one interval. Sampled values count as often as they stand for. */
class Timings {
  #count = 0
  #sum = 0
  #min = Number.POSITIVE_INFINITY
  #max = Number.NEGATIVE_INFINITY
  readonly #counts = new Array<number>(BOUNDS.length + 1).fill(0)

  /** Adds all of them or, if it would count or sum up more than a value can be, none; then it returns false. */
  add(values: readonly number[], weight: number): boolean {
    const count = this.#count + values.length * weight
    let sum = this.#sum
    for (const value of values) sum += value * weight
    if (count > Number.MAX_SAFE_INTEGER || !Number.isFinite(sum)) return false
    this.#count = count
    this.#sum = sum
    for (const value of values) {
      this.#min = Math.min(this.#min, value)
      this.#max = Math.max(this.#max, value)
      let bucket = 0
      while (bucket < BOUNDS.length && value > (BOUNDS[bucket] as number)) bucket++
      this.#counts[bucket] = (this.#counts[bucket] as number) + weight
    }
    return true
  }

  /** In the form of a histogram of `otlp.`, whose counts are differences. */
  fields(start: number): Field[] {
    const { counts, count } = this.#rounded()
    return [
      { name: 'delta', type: BOOLEAN, value: true },
      { name: 'start', type: UINT64, value: BigInt(Math.floor(start)) },
      { name: 'count', type: UINT64, value: count },
      { name: 'sum', type: DOUBLE, value: this.#sum },
      { name: 'min', type: DOUBLE, value: this.#min },
      { name: 'max', type: DOUBLE, value: this.#max },
      { name: 'bounds', type: ARRAY, value: { element: DOUBLE, items: BOUNDS } },
      { name: 'counts', type: ARRAY, value: { element: UINT64, items: counts } },
    ]
  }

  /**
   * A rate such as 0.3 makes counts that are no integers. Rounded is how many values lie below each bound, so that the counts
   * of the buckets, the differences, add up to the count of all.
   */
  #rounded(): { readonly counts: readonly bigint[]; readonly count: bigint } {
    let [below, count] = [0, 0n]
    const counts = this.#counts.map((inBucket) => {
      below += inBucket
      const before = count
      count = BigInt(Math.round(below))
      return count - before
    })
    return { counts, count }
  }
}
