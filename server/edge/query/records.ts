/** The records of `producer.history.query` [MON 9.19]: what an expression comes to, or what is wrong with it. */
import type { LabelSet } from '../../../promql/label-set.ts'
import type { QueryResult } from '../../../promql/query.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Field, Value } from '../../../protocol/monitor/value.ts'
import type { RememberedLoss } from '../../kit/history.ts'
import type { QueryProblem } from './problems.ts'

const { ARRAY, DOUBLE, REC, STRING, UINT32, UINT64 } = BasicType

/** A record has at most so many points, so that it is made in well under a millisecond. */
const MOST_POINTS = 2_048
/** Warnings that are said. */
const MOST_REMARKS = 50
const METRIC_NAME = '__name__'

/** The record that says what there is, then ranges of loss, and the series one after the other, long ones in several records. */
export function* resultRecords(
  { data, samples, warnings, infos }: QueryResult,
  tookMs: number,
  losses: readonly RememberedLoss[],
): Generator<Field[]> {
  yield [
    { name: 'type', type: STRING, value: data.type },
    { name: 'series', type: UINT64, value: BigInt(countOf(data)) },
    { name: 'samples', type: UINT64, value: BigInt(samples) },
    { name: 'took', type: UINT64, value: microseconds(tookMs) },
    arrayField('warnings', STRING, warnings.slice(0, MOST_REMARKS)),
    arrayField('infos', STRING, infos.slice(0, MOST_REMARKS)),
    ...(data.type === 'string' ? [{ name: 'text', type: STRING, value: data.text } as const] : []),
  ]
  for (const loss of losses) yield lossFields(loss)
  if (data.type === 'scalar') yield [...seriesFields([]), ...pointFields([data.timeMs], [data.value])]
  if (data.type === 'vector') {
    for (const { labels, value } of data.samples)
      yield [...seriesFields(labels), ...pointFields([data.timeMs], [value])]
  }
  if (data.type !== 'matrix') return
  for (const { labels, times, values } of data.series) {
    for (let from = 0; from === 0 || from < times.length; from += MOST_POINTS) {
      const to = from + MOST_POINTS
      yield [...seriesFields(labels), ...pointFields(times.subarray(from, to), values.subarray(from, to))]
    }
  }
}

/** `text`: the expression; positions are said in characters of it. */
export function problemRecord({ type, message, range }: QueryProblem, text: string): Field[] {
  const characters = (end: number): number => [...text.slice(0, end)].length
  return [
    { name: 'error_type', type: STRING, value: type },
    { name: 'error', type: STRING, value: message },
    ...(range === undefined
      ? []
      : ([
          { name: 'error_from', type: UINT32, value: characters(range.start) },
          { name: 'error_to', type: UINT32, value: characters(range.end) },
        ] as const)),
  ]
}

function countOf(data: QueryResult['data']): number {
  if (data.type === 'matrix') return data.series.length
  return data.type === 'vector' ? data.samples.length : Number(data.type === 'scalar')
}

function lossFields({ tenant, metric, fromMs, toMs, count, reason }: RememberedLoss): Field[] {
  return [
    { name: 'tenant', type: STRING, value: tenant },
    { name: 'metric', type: STRING, value: metric },
    { name: 'from', type: UINT64, value: microseconds(fromMs) },
    { name: 'to', type: UINT64, value: microseconds(toMs) },
    { name: 'lost', type: UINT64, value: BigInt(count) },
    { name: 'reason', type: STRING, value: reason },
  ]
}

function seriesFields(labels: LabelSet | readonly []): Field[] {
  let name = ''
  const others: Field[] = []
  for (const [label, text] of labels) {
    if (label === METRIC_NAME) name = text
    else others.push({ name: label, type: STRING, value: text })
  }
  return [
    { name: 'name', type: STRING, value: name },
    { name: 'labels', type: REC, value: others },
  ]
}

function pointFields(times: ArrayLike<number>, values: ArrayLike<number>): Field[] {
  return [
    arrayField('times', UINT64, Array.from(times, microseconds)),
    arrayField('values', DOUBLE, Array.from(values)),
  ]
}

function microseconds(ms: number): bigint {
  return BigInt(Math.max(0, Math.round(ms * 1_000)))
}

function arrayField(name: string, element: BasicType, items: readonly Value['value'][]): Field {
  return { name, type: ARRAY, value: { element, items } }
}
