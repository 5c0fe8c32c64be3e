/** What an upstream answers to a QUERY, as readings of series here: a list has each with its labels and its own time [MON 9 Patterns]. */
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Field, Value } from '../../../protocol/monitor/value.ts'
import { labelsFrom, type Measurement, openLabelsProblem } from '../../kit/metrics.ts'
import type { RemoteReading, RemoteRequest } from '../../kit/producers.ts'
import { PRODUCER } from '../../kit/producers.ts'
import { pathOfValue } from './tap.ts'

/** `isLabelled`: whether a list is one of series. `isNode`: whether these are series of this producer. */
export function readingsOf(
  { name, producer }: RemoteRequest,
  isLabelled: boolean,
  { value, time }: Measurement,
  isNode: boolean,
): RemoteReading[] {
  const bare = { name, labels: labelsFrom(isNode ? [] : [[PRODUCER, producer]]), isBare: true }
  if (!isLabelled || value.type !== BasicType.ARRAY) {
    return value.type === BasicType.VOID ? [] : [{ series: bare, measured: { value, time } }]
  }
  const records = value.value.items as readonly (readonly Field[])[]
  return records.flatMap((record) => readingOf(record, name, producer, isNode) ?? [])
}

/** Undefined for what is none, and for the last record of a list that says that there is more. */
function readingOf(
  record: readonly Field[],
  asked: string,
  producer: string,
  isNode: boolean,
): RemoteReading | undefined {
  const labels: [string, string][] = []
  let [name, time, path] = [asked, 0, producer]
  let value: Value | undefined
  for (const field of record) {
    if (field.name === 'value') value = { type: field.type, value: field.value } as Value
    else if (field.name === 'time') time = field.type === BasicType.UINT64 ? Number(field.value) : Number.NaN
    else if (typeof field.value !== 'string') continue
    else if (field.name === PRODUCER) path = pathOfValue(producer, field.value)
    else labels.push([field.name, field.value])
    if (field.name === 'name' && typeof field.value === 'string') name = field.value
  }
  if (value === undefined || !Number.isSafeInteger(time)) return undefined
  if (openLabelsProblem(name, labelsFrom(labels)) !== undefined) return undefined
  const all = labelsFrom(isNode ? labels : [...labels, [PRODUCER, path]])
  return { series: { name, labels: all, isBare: false }, measured: { value, time } }
}
