/**
 * Reads answers that are lists: an ARRAY of REC, the last of which may be {boolean more = true}; among them the catalogue of
 * metrics and controls with units and parameter types.
 */
import { type Arguments, BasicType, type Field, type Sample, StatusError, type Value } from '../client/index.ts'
import type { ParameterTypes } from './arguments.ts'
import { ExitCode, Failure } from './failure.ts'
import { formatValue } from './format.ts'

interface Queryable {
  query(metric: string, args?: Arguments): Promise<Pick<Sample, 'value'>>
}

export type AnswerRecord = readonly Field[]

interface AnswerRecords {
  readonly records: readonly AnswerRecord[]
  /** Whether some records did not fit into the answer. */
  readonly isCut: boolean
}

/** Undefined if the value is not a list of records. */
export function toRecords(value: Value): AnswerRecords | undefined {
  if (value.type !== BasicType.ARRAY || value.value.element !== BasicType.REC) return undefined
  const records = value.value.items as readonly AnswerRecord[]
  const isCut = findField(records.at(-1) ?? [], 'more')?.value === true
  return { records: isCut ? records.slice(0, -1) : records, isCut }
}

export function findField(record: AnswerRecord, name: string): Field | undefined {
  return record.find((field) => field.name === name)
}

/** The formatted value of a field; empty if it is missing. */
export function fieldText(record: AnswerRecord, name: string): string {
  const field = findField(record, name)
  return field ? formatValue(field) : ''
}

/** 0 if the field is missing. */
export function fieldNumber(record: AnswerRecord, name: string): number {
  return Number(findField(record, name)?.value ?? 0)
}

/** Queries until the list is complete; `next` returns the arguments that continue after a record. Rejects with Failure. */
export async function queryAll(
  consumer: Queryable,
  metric: string,
  args: Arguments,
  next: (last: AnswerRecord) => Arguments,
): Promise<readonly AnswerRecord[]> {
  const all: AnswerRecord[] = []
  for (let from: Arguments = {}; ; ) {
    const { value } = await consumer.query(metric, { ...args, ...from })
    const page = toRecords(value)
    if (!page) throw new Failure(ExitCode.FAILED, `the answer of ${metric} is not a list but ${formatValue(value)}`)
    all.push(...page.records)
    const last = page.records.at(-1)
    if (!page.isCut) return all
    if (!last) throw new Failure(ExitCode.FAILED, `${metric} contains a record that is too long for an answer`)
    from = next(last)
  }
}

/** Lists the metrics whose names match; all without a pattern. */
export function listMetrics(consumer: Queryable, pattern?: string): Promise<readonly AnswerRecord[]> {
  const args = pattern === undefined ? {} : { match: pattern }
  return queryAll(consumer, 'producer.metrics', args, (last) => ({ after: fieldText(last, 'name') }))
}

/** The units of a metric or of all that match a pattern; empty for a metric that is not in the catalogue. */
export async function unitsOf(consumer: Queryable, metric: string): Promise<(name: string) => string> {
  const first = async () => [(await firstMetric(consumer, metric)) ?? []]
  const records = await (metric.includes('*') ? listMetrics(consumer, metric) : first())
  const units = new Map(records.map((record) => [fieldText(record, 'name'), fieldText(record, 'unit')]))
  return (name) => units.get(name) ?? ''
}

/** An unknown metric of an open family has the parameters of its family. */
export async function metricParameters(consumer: Queryable, metric: string): Promise<ParameterTypes> {
  const family = `${metric.slice(0, metric.indexOf('.') + 1)}*`
  return parametersOf((await firstMetric(consumer, metric)) ?? (await firstMetric(consumer, family)))
}

export async function controlParameters(consumer: Queryable, control: string): Promise<ParameterTypes> {
  const controls = await queryAll(consumer, 'producer.controls', { match: control }, () => ({}))
  const found = controls.find((record) => fieldText(record, 'name') === control)
  return new Map([['idempotency_key', 'string'], ...parametersOf(found)])
}

/** Also undefined if the user may not read the catalogue, which is only a convenience here. */
async function firstMetric(consumer: Queryable, match: string): Promise<AnswerRecord | undefined> {
  try {
    const { value } = await consumer.query('producer.metrics', { match, limit: 1 })
    return toRecords(value)?.records[0]
  } catch (error) {
    if (error instanceof StatusError) return undefined
    throw error
  }
}

function parametersOf(record: AnswerRecord | undefined): ParameterTypes {
  const parameters = record && findField(record, 'parameters')
  const { records = [] } = (parameters && toRecords(parameters)) ?? {}
  return new Map(records.map((parameter) => [fieldText(parameter, 'name'), fieldText(parameter, 'type')]))
}
