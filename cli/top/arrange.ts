/** Which rows are shown, and in which order. */
import { isPattern, matcher } from '../../server/metrics/pattern.ts'
import type { Content, Row } from './rows.ts'

export const sorts = ['metric', 'host', 'value', 'age'] as const
export type Sort = (typeof sorts)[number]

export interface Arrangement {
  readonly sort: Sort
  readonly isReversed: boolean
  /** A part of the metric or host, in any case; with `*` the whole of one of them. Empty: everything. */
  readonly filter: string
}

/** A new list: names from a to z, the largest values and the latest arrivals first, unless reversed. */
export function arrange(rows: Iterable<Row>, { sort, isReversed, filter }: Arrangement): Row[] {
  const matches = filtering(filter)
  const kept: Row[] = []
  for (const row of rows) if (matches(row.metric) || matches(row.where)) kept.push(row)
  const compare = COMPARE[sort]
  const sign = isReversed ? -1 : 1
  return kept.sort((a, b) => sign * compare(a, b) || byName(a, b))
}

const byName = (a: Row, b: Row) => ordered(a.metric, b.metric) || ordered(a.where, b.where)

const COMPARE: Readonly<Record<Sort, (a: Row, b: Row) => number>> = {
  metric: byName,
  host: (a, b) => ordered(a.where, b.where),
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

/** In any case. */
function filtering(filter: string): (text: string) => boolean {
  const wanted = filter.toLowerCase()
  const matches = isPattern(wanted) ? matcher(wanted) : (text: string) => text.includes(wanted)
  return (text) => matches(text.toLowerCase())
}
