/**
 * Series as Prometheus' tests write them, its own and the unit tests of rules: `up{job="a"} 0+1x5 _ stale`. `a+bxn` is a value and
 * n more, each larger by b; `axn` is a and n more of it; `_` is no sample, `stale` a stale marker, `_xn` n times none.
 */
import { PromqlError } from '../errors.ts'
import { LabelSet, NO_LABELS } from '../label-set.ts'
import type { MemoryValue } from '../memory-source.ts'
import { floatOf } from './numbers.ts'
import { parseSelector } from './parse.ts'

/** A native histogram; which one does not matter, since none is supported. */
export const HISTOGRAM = Symbol('a native histogram')
/** Undefined: no sample at that time. */
export type NotedValue = MemoryValue | typeof HISTOGRAM | undefined

export interface NotedSeries {
  readonly labels: LabelSet
  readonly values: readonly NotedValue[]
}

const NUMBER = '[+-]?(?:inf|nan|(?:\\d+\\.?\\d*|\\.\\d+)(?:e[+-]?\\d+)?)'
const ITEM = new RegExp(
  `^(${NUMBER}|_|stale|\\{\\{[^}]*\\}\\})(?:([+-])(${NUMBER}|\\{\\{[^}]*\\}\\}))?(?:x(\\d+))?$`,
  'i',
)
/** More values than these are refused: a text of a few characters may stand for any number of them. */
const MAX_VALUES = 10_000_000

/** A series with its values on one line. Throws PromqlError. */
export function parseNotedSeries(line: string): NotedSeries {
  // The braces of labels may hold texts with braces.
  const metric = /^[^{\s]*(?:\{(?:[^"'`}]|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`[^`]*`)*\})?/.exec(line)?.[0] ?? ''
  return { labels: parseNotedLabels(metric), values: parseNotedValues(line.slice(metric.length)) }
}

/** `up{job="a"}`, or `{}` for no labels. Throws PromqlError. */
export function parseNotedLabels(metric: string): LabelSet {
  if (metric.replace(/\s/g, '') === '{}') return NO_LABELS
  return LabelSet.of(parseSelector(metric).matchers.map(({ label, text }) => [label, text] as const))
}

/** Throws PromqlError. */
export function parseNotedValues(text: string): readonly NotedValue[] {
  const values: NotedValue[] = []
  for (const item of text.match(/(?:\{\{[^}]*\}\}|\S)+/g) ?? []) addItem(item, values)
  return values
}

function addItem(item: string, values: NotedValue[]): void {
  const found = ITEM.exec(item)
  if (found === null) throw new PromqlError('bad_data', `no value of a series: ${item}`)
  const [, first = '', sign = '+', difference, times] = found
  const count = times === undefined ? 1 : Number(times) + (first === '_' ? 0 : 1)
  if (values.length + count > MAX_VALUES)
    throw new PromqlError('bad_data', `a series has more than ${MAX_VALUES} values: ${item}`)
  const add = difference === undefined || difference.startsWith('{{') ? 0 : (floatOf(difference) ?? 0)
  const value = notedValueOf(first)
  if (typeof value !== 'number') {
    for (let index = 0; index < count; index++) values.push(value)
    return
  }
  // One after the other, as Prometheus adds them.
  let next = value
  for (let index = 0; index < count; index++, next += sign === '-' ? -add : add) values.push(next)
}

function notedValueOf(text: string): NotedValue {
  if (text.startsWith('{{')) return HISTOGRAM
  if (text === '_') return undefined
  return text.toLowerCase() === 'stale' ? 'stale' : (floatOf(text) ?? Number.NaN)
}
