/** How fast counters grow. The values of a series are compared with the ones before them, by the time at the producer. */
import { BasicType, type Value } from '../client/index.ts'
import { formatValue } from './format.ts'
import { fieldsOf, findField } from './records.ts'

/** A series that came first is forgotten first. */
const MAX_SERIES = 10_000

interface Counted {
  readonly value: number
  readonly time: number
}

/** The increase per second between two values; undefined if the counter was reset, or if there is no time between them. */
export function growth(before: Counted, value: number, time: number): number | undefined {
  const seconds = (time - before.time) / 1e6
  return seconds > 0 && value >= before.value ? (value - before.value) / seconds : undefined
}

export class Rates {
  /** The last value by metric and by the parts that its pattern left open. */
  readonly #last = new Map<string, Counted>()

  /** The same with a rate in place of its value; undefined if there is none: for the first value, and after a reset. */
  of<T extends { readonly time: number; readonly value: Value }>(name: string, sample: T): T | undefined {
    const { time, value } = sample
    const fields = fieldsOf(value)
    const measured = findField(fields, 'value') ?? value
    if (typeof measured.value !== 'number' && typeof measured.value !== 'bigint') return undefined
    const labels = fields.filter((field) => field !== measured).map((field) => formatValue(field))
    const key = [name, ...labels].join('\0')
    const last = this.#last.get(key)
    this.#set(key, { value: Number(measured.value), time })
    const rate = last && growth(last, Number(measured.value), time)
    if (rate === undefined) return undefined
    const double: Value = { type: BasicType.DOUBLE, value: rate }
    const replaced = fields.map((field) => (field === measured ? { name: field.name, ...double } : field))
    return { ...sample, value: fields.length === 0 ? double : { type: BasicType.REC, value: replaced } }
  }

  #set(key: string, counted: Counted): void {
    if (!this.#last.has(key) && this.#last.size >= MAX_SERIES) {
      const [oldest] = this.#last.keys()
      this.#last.delete(oldest as string)
    }
    this.#last.set(key, counted)
  }
}
