/**
 * The rows of `cinnabar top`: the latest value of each series, and how they are sorted. Rows are immutable, so
 * that a list of them is a snapshot. A series that has vanished (VOID) stays marked as gone for some seconds.
 */
import { BasicType, type Value, valueToJson } from '../../client/index.ts'
import { isPattern, matcher } from '../../server/kernel/metrics/pattern.ts'
import { byNature, formatValue } from '../format.ts'
import { fieldsOf, findField } from '../records.ts'

export type Content = number | bigint | boolean | string

export interface TopRow {
  /** The name or pattern of the subscription. */
  readonly pattern: string
  readonly metric: string
  /** The producer that it is of; empty unless several were asked for. */
  readonly producer: string
  /** Host, source, index and other parts that the pattern left open, separated by spaces. */
  readonly where: string
  /** Anything but numbers and booleans is cut at 1,000 characters. */
  readonly content: Content
  /** By the producer's clock, microseconds since 1970. */
  readonly time: number
  /** For a value from an answer, when it has been new; undefined if the answer does not say it. */
  readonly arrivedMs: number | undefined
  readonly goneMs: number | undefined
}

/** A value of a subscription. */
export interface ReceivedValue {
  /** The name or pattern of the subscription. */
  readonly name: string
  /** Microseconds since 1970. */
  readonly time: number
  readonly value: Value
}

export const sortKeys = ['metric', 'host', 'value', 'age'] as const
export type SortKey = (typeof sortKeys)[number]

export interface RowOrder {
  readonly sort: SortKey
  readonly isReversed: boolean
  /** Part of the metric, producer or host, ignoring case; with `*` a pattern for one of them as a whole. Empty matches everything. */
  readonly filter: string
}

const MAX_ROWS = 10_000
const MAX_TEXT = 1_000
/** How long a row that is gone is still shown. */
export const GONE_MS = 10_000

export class TopRows {
  readonly #limit: number
  readonly #rows = new Map<string, TopRow>()
  /** Keys of the rows that are gone, in this order. */
  readonly #gone = new Set<string>()
  #isFull = false

  constructor(limit = MAX_ROWS) {
    this.#limit = limit
  }

  get size(): number {
    return this.#rows.size
  }

  /** Whether series had to be left out. */
  get isFull(): boolean {
    return this.#isFull
  }

  values(): IterableIterator<TopRow> {
    return this.#rows.values()
  }

  take({ name, time, value }: ReceivedValue, nowMs: number): void {
    const { key, measured, ...labels } = identify(name, value)
    const content = contentOf(measured)
    if (content === undefined) this.#vanish(key, nowMs)
    else this.#set(key, { pattern: name, ...labels, content, time, arrivedMs: nowMs, goneMs: undefined })
  }

  /**
   * Takes the current values of a name or pattern from the answer to a QUERY, with the time at which it came, in milliseconds of
   * the monotonic clock and since 1970. `completeMs` is the time of
   * the query if the answer is complete: then a row that is not in it and has not changed since is gone, because its VOID was
   * sent while there was no connection.
   */
  seed(
    arrivals: readonly ReceivedValue[],
    name: string,
    completeMs: number | undefined,
    { nowMs, wallMs }: { readonly nowMs: number; readonly wallMs: number },
  ): void {
    const present = new Set<string>()
    for (const { value, time: answeredAt } of arrivals) {
      const { key, measured, time: ownTime, ...labels } = identify(name, value)
      const time = ownTime ?? answeredAt
      const content = contentOf(measured)
      if (content === undefined) continue
      present.add(key)
      const known = this.#rows.get(key)
      if (known && known.content === content && known.goneMs === undefined) continue
      const arrivedMs = ownTime === undefined ? undefined : nowMs - Math.max(0, wallMs - ownTime / 1000)
      this.#set(key, { pattern: name, ...labels, content, time, arrivedMs, goneMs: undefined })
    }
    if (completeMs === undefined) return
    for (const [key, { pattern, arrivedMs = 0 }] of this.#rows) {
      if (pattern === name && arrivedMs < completeMs && !present.has(key)) this.#vanish(key, nowMs)
    }
  }

  /** Deletes rows that have been gone for long enough. */
  expire(nowMs: number): void {
    for (const key of this.#gone) {
      if (nowMs - (this.#rows.get(key)?.goneMs ?? 0) < GONE_MS) break
      this.#drop(key)
    }
  }

  #set(key: string, row: TopRow): void {
    this.#gone.delete(key)
    if (!this.#rows.has(key) && this.#rows.size >= this.#limit) {
      const [oldest] = this.#gone
      if (oldest === undefined) {
        this.#isFull = true
        return
      }
      this.#drop(oldest)
    }
    this.#rows.set(key, row)
  }

  #vanish(key: string, nowMs: number): void {
    const row = this.#rows.get(key)
    if (!row || row.goneMs !== undefined) return
    this.#rows.set(key, { ...row, goneMs: nowMs })
    this.#gone.add(key)
  }

  #drop(key: string): void {
    this.#rows.delete(key)
    this.#gone.delete(key)
    this.#isFull = false
  }
}

interface Identified extends Pick<TopRow, 'metric' | 'producer' | 'where'> {
  readonly key: string
  readonly measured: Value
  /** The value's own time, microseconds since 1970. */
  readonly time?: number
}

/** The value of a pattern is a REC of the parts that it left open, in an answer of the `time`, and of `value` [MON 9]. */
function identify(name: string, value: Value): Identified {
  const record = fieldsOf(value)
  const measured = findField(record, 'value')
  if (!measured) return { key: name, metric: name, producer: '', where: '', measured: value }
  let [metric, producer] = [name, '']
  let time: number | undefined
  const places: string[] = []
  for (const field of record) {
    if (field.name === 'name') metric = textOf(field)
    else if (field.name === 'producer') producer = textOf(field)
    else if (field.name === 'time') time = Number(field.value)
    else if (field.name !== 'value') places.push(textOf(field))
  }
  const identified = {
    key: [metric, producer, ...places].join('\0'),
    metric,
    producer,
    where: places.join(' '),
    measured,
  }
  return time === undefined ? identified : { ...identified, time }
}

/** Undefined if there is no value. */
function contentOf(value: Value): Content | undefined {
  switch (value.type) {
    case BasicType.VOID:
      return undefined
    case BasicType.STRING:
      return textOf(value).slice(0, MAX_TEXT)
    case BasicType.REC:
    case BasicType.ARRAY:
    case BasicType.OPAQUE:
      return formatValue(value).slice(0, MAX_TEXT)
    default:
      return value.value
  }
}

function textOf(value: Value): string {
  return value.type === BasicType.STRING ? String(valueToJson(value)) : formatValue(value)
}

/** Returns a new list: names from a to z, the largest values and the latest arrivals first, unless reversed. */
export function sortRows(rows: Iterable<TopRow>, { sort, isReversed, filter }: RowOrder): TopRow[] {
  const matches = rowFilter(filter)
  const kept: TopRow[] = []
  for (const row of rows) if ([row.metric, row.producer, row.where].some(matches)) kept.push(row)
  const compare = COMPARE[sort]
  const sign = isReversed ? -1 : 1
  return kept.sort((a, b) => sign * compare(a, b) || byName(a, b))
}

const byHost = (a: TopRow, b: TopRow) => byNature(a.producer, b.producer) || byNature(a.where, b.where)
const byName = (a: TopRow, b: TopRow) => byNature(a.metric, b.metric) || byHost(a, b)

const COMPARE: Readonly<Record<SortKey, (a: TopRow, b: TopRow) => number>> = {
  metric: byName,
  host: byHost,
  value: (a, b) => byContent(a.content, b.content),
  age: (a, b) => ordered(b.arrivedMs ?? Number.NEGATIVE_INFINITY, a.arrivedMs ?? Number.NEGATIVE_INFINITY),
}

/** Numbers before texts. */
function byContent(a: Content, b: Content): number {
  if (typeof a === 'string' || typeof b === 'string') {
    if (typeof a !== typeof b) return typeof a === 'string' ? 1 : -1
    return ordered(a as string, b as string)
  }
  return ordered(comparable(b), comparable(a))
}

function comparable(content: number | bigint | boolean): number | bigint {
  if (typeof content === 'boolean') return Number(content)
  return Number.isNaN(content) ? Number.NEGATIVE_INFINITY : content
}

function ordered<T extends string | number | bigint>(a: T, b: T): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/** Ignores case. */
function rowFilter(filter: string): (text: string) => boolean {
  const wanted = filter.toLowerCase()
  const matches = isPattern(wanted) ? matcher(wanted) : (text: string) => text.includes(wanted)
  return (text) => matches(text.toLowerCase())
}
