/**
 * Lists of what another producer remembers: their records are of any metrics, while only the list itself was asked for. So each record
 * is judged by the metric and the labels of its series, as the series would be [MON 9.13].
 */
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Field, Value } from '../../../protocol/monitor/value.ts'
import { prometheusLabel } from '../../../protocol/prometheus/names.ts'
import { toForeign } from './labels.ts'

/** Where a record has the labels of its series, and under which names. */
interface RecordShape {
  readonly metric: string
  readonly labelsOf: (record: readonly Field[]) => readonly Field[]
  readonly labelNames: (name: string) => readonly string[]
}

const SHAPES: ReadonlyMap<string, RecordShape> = new Map([
  [
    'producer.recent',
    // What is remembered in the history has the names that labels have in Prometheus, and other values those that they have here.
    { metric: 'name', labelsOf: (record) => record, labelNames: (name) => [name, prometheusLabel(toForeign(name))] },
  ],
  [
    'producer.history.select',
    {
      metric: 'metric',
      labelsOf: (record) => {
        const labels = record.find(({ name }) => name === 'labels')
        return labels?.type === BasicType.REC ? (labels.value as readonly Field[]) : []
      },
      labelNames: (name) => [prometheusLabel(toForeign(name))],
    },
  ],
])

/** Whether a metric is such a list. */
export function isOfRemembered(metric: string): boolean {
  return SHAPES.has(metric)
}

/** The value of a metric: of such a list the records that may be read, and those of no metric, which say that there is more. */
export function readableRecords(
  metric: string,
  value: Value,
  mayRead: (metric: string, label: (name: string) => string | undefined) => boolean,
): Value {
  const shape = SHAPES.get(metric)
  if (shape === undefined || value.type !== BasicType.ARRAY) return value
  const { element, items } = value.value
  if (element !== BasicType.REC) return value
  const readable = (items as readonly (readonly Field[])[]).filter((record) => {
    const name = textOf(record, shape.metric)
    if (name === undefined || name === '') return true
    const labels = shape.labelsOf(record)
    const textOfOne = (label: string) => shape.labelNames(label).map((each) => textOf(labels, each))
    return mayRead(name, (label) => textOfOne(label).find((text) => text !== undefined))
  })
  return { type: BasicType.ARRAY, value: { element, items: readable } }
}

function textOf(record: readonly Field[], name: string): string | undefined {
  const value = record.find((field) => field.name === name)?.value
  return typeof value === 'string' ? value : undefined
}
