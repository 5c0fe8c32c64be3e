/** What the producer says about its metrics and controls: units, and the types of their parameters. */
import { type Consumer, StatusError } from '../client/index.ts'
import type { ParameterTypes } from './assignments.ts'
import { fieldOf, queryAll, type Record, recordsOf, textOf } from './records.ts'

type Asked = Pick<Consumer, 'query'>

/** Every metric whose name matches; all without a pattern. */
export function listMetrics(consumer: Asked, pattern?: string): Promise<readonly Record[]> {
  const args = pattern === undefined ? {} : { match: pattern }
  return queryAll(consumer, 'producer.metrics', args, (last) => ({ after: textOf(last, 'name') }))
}

/** The units, by name, of a metric or of those that a pattern matches; empty for what is not in the catalogue. */
export async function unitsOf(consumer: Asked, metric: string): Promise<(name: string) => string> {
  const first = async () => [(await firstMetric(consumer, metric)) ?? []]
  const records = await (metric.includes('*') ? listMetrics(consumer, metric) : first())
  const units = new Map(records.map((record) => [textOf(record, 'name'), textOf(record, 'unit')]))
  return (name) => units.get(name) ?? ''
}

/** A metric of an open family that was never seen has the parameters of its family. */
export async function metricParameters(consumer: Asked, metric: string): Promise<ParameterTypes> {
  const family = `${metric.slice(0, metric.indexOf('.') + 1)}*`
  return parametersOf((await firstMetric(consumer, metric)) ?? (await firstMetric(consumer, family)))
}

export async function controlParameters(consumer: Asked, control: string): Promise<ParameterTypes> {
  const controls = await queryAll(consumer, 'producer.controls', { match: control }, () => ({}))
  const found = controls.find((record) => textOf(record, 'name') === control)
  return new Map([['idempotency_key', 'string'], ...parametersOf(found)])
}

/** Undefined also where this identity may not look: the catalogue is a convenience here. */
async function firstMetric(consumer: Asked, match: string): Promise<Record | undefined> {
  try {
    const { value } = await consumer.query('producer.metrics', { match, limit: 1 })
    return recordsOf(value)?.records[0]
  } catch (error) {
    if (error instanceof StatusError) return undefined
    throw error
  }
}

function parametersOf(record: Record | undefined): ParameterTypes {
  const parameters = record && fieldOf(record, 'parameters')
  const { records = [] } = (parameters && recordsOf(parameters)) ?? {}
  return new Map(records.map((parameter) => [textOf(parameter, 'name'), textOf(parameter, 'type')]))
}
