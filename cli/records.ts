/**
 * Reads answers that are lists: an ARRAY of REC, the last of which may be {boolean more = true}; among them the catalogue of
 * metrics and controls with units and parameter types.
 */
import { type Arguments, BasicType, type Field, type Sample, StatusError, type Value } from '../client/index.ts'
import { didYouMean } from '../server/kernel/config/errors.ts'
import { ExitCode, Failure } from './failure.ts'
import { formatValue, printable } from './format.ts'

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

/** The fields of a REC; none of anything else. */
export function fieldsOf(value: Value | undefined): AnswerRecord {
  return value?.type === BasicType.REC ? value.value : []
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

/** Nobody reads values of more metrics than this as they arrive. */
const MAX_FOLLOWED = 1_000

/**
 * The units of metrics, and of all that match patterns; `isQuick`: of the first of these. Empty for a metric that is not in the
 * catalogue.
 */
export async function unitsOf(
  consumer: Queryable,
  metrics: readonly string[],
  isQuick = false,
): Promise<(name: string) => string> {
  const lists = metrics.map((metric) => {
    if (metric.includes('*') && !isQuick) return listMetrics(consumer, metric)
    return firstMetrics(consumer, metric, metric.includes('*') ? MAX_FOLLOWED : 1)
  })
  const records = (await Promise.all(lists)).flat()
  const units = new Map(records.map((record) => [fieldText(record, 'name'), fieldText(record, 'unit')]))
  return (name) => units.get(name) ?? ''
}

/** Whether no metric that the catalogue knows has a name, or matches a pattern. */
export async function unseen(consumer: Queryable, metric: string): Promise<boolean> {
  const { value } = await consumer.query('producer.metrics', { match: metric, limit: 1 })
  return toRecords(value)?.records.length === 0
}

/** Names of sensors that a message repeats. */
const MAX_NAMED = 5

/** Which targets have not answered yet, for people; empty if none is waited for, or that cannot be read. Never rejects. */
export async function awaited(consumer: Queryable): Promise<string> {
  const sample = await consumer.query('producer.sensors').catch(() => undefined)
  const names = ((sample && toRecords(sample.value)?.records) ?? [])
    .filter((sensor) => fieldNumber(fieldsOf(findField(sensor, 'counters')), 'awaited') > 0)
    .map((sensor) => fieldText(sensor, 'name'))
  if (names.length === 0) return ''
  const more = names.length > MAX_NAMED ? ` and ${names.length - MAX_NAMED} more` : ''
  return `no answer yet from ${names.slice(0, MAX_NAMED).join(', ')}${more}`
}

/** Adds to the refusal of a metric which one was probably meant. Rejects with Failure, or with what it is given. */
export async function withSuggestion<T>(consumer: Queryable, metric: string, work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    if (!(error instanceof StatusError) || error.status !== 'NO_SUCH_METRIC') throw error
    const similar = await similarMetric(consumer, metric)
    const message = `${error.message}${similar && `.${similar}`}\n\`cinnabar metrics\` lists the metrics that you can read`
    throw new Failure(ExitCode.FAILED, message, { cause: error })
  }
}

/** A question for the metric that was probably meant, with a space before it; empty if none is alike. Never rejects. */
export async function similarMetric(consumer: Queryable, metric: string): Promise<string> {
  const family = metric.slice(0, metric.indexOf('.') + 1)
  const known = await firstMetrics(consumer, `${family}*`, MAX_FOLLOWED).catch(() => [])
  // A pattern resembles the beginning of a name, with as many words as it has itself.
  const words = metric.split('.').length
  const names = known.map((record) => fieldText(record, 'name').split('.'))
  const candidates = metric.endsWith('.*')
    ? names.filter((name) => name.length >= words).map((name) => [...name.slice(0, words - 1), '*'].join('.'))
    : names.map((name) => name.join('.'))
  return didYouMean(metric, [...new Set(candidates)]).replace(/^: d/, ' D')
}

/** An argument that a metric or control declares. */
export interface CataloguedArgument {
  readonly name: string
  /** "string", "uint32", ... */
  readonly type: string
  readonly isOptional: boolean
  readonly description: string
  readonly isSecret: boolean
  /** What it takes, for people; empty if every value of its type. */
  readonly bounds: string
}

/** Empty if there is no record. */
export function parametersOf(record: AnswerRecord | undefined): readonly CataloguedArgument[] {
  const parameters = record && findField(record, 'parameters')
  const { records = [] } = (parameters && toRecords(parameters)) ?? {}
  return records.map((parameter) => ({
    name: fieldText(parameter, 'name'),
    type: fieldText(parameter, 'type'),
    isOptional: findField(parameter, 'optional')?.value === true,
    description: fieldText(parameter, 'description'),
    isSecret: findField(parameter, 'secret')?.value === true,
    bounds: boundsText(parameter),
  }))
}

function boundsText(parameter: AnswerRecord): string {
  const [min, max, most, pattern, unless] = BOUNDS.map((name) => fieldText(parameter, name))
  const values = String(findField(parameter, 'values')?.value ?? '')
    .split('\n')
    .map(printable)
    .join(', ')
  const range = min && max ? `${min} to ${max}` : min ? `${min} or more` : max && `${max} at most`
  const texts = [
    range,
    most && `${most} bytes at most`,
    pattern && `matches ${pattern}`,
    values && `one of ${values}`,
    unless && `if omitted: ${unless}`,
  ]
  return texts.filter(Boolean).join('; ')
}

const BOUNDS = ['min', 'max', 'max_length', 'pattern', 'default']

/** As `agent [interval_ms]`: what may be left out is in brackets. */
export function parametersText(record: AnswerRecord): string {
  return parametersOf(record)
    .map(({ name, isOptional }) => (isOptional ? `[${name}]` : name))
    .join(' ')
}

/** Those of all metrics that a pattern matches. An unknown metric of an open family has the parameters of its family. */
export async function metricParameters(consumer: Queryable, metric: string): Promise<readonly CataloguedArgument[]> {
  const family = `${metric.slice(0, metric.indexOf('.') + 1)}*`
  const found = await firstMetrics(consumer, metric, metric.includes('*') ? MAX_FOLLOWED : 1)
  const records = found.length > 0 ? found : await firstMetrics(consumer, family, 1)
  return records.flatMap(parametersOf)
}

/** Lists the controls whose names match; all without a pattern. */
export function listControls(consumer: Queryable, pattern?: string): Promise<readonly AnswerRecord[]> {
  return queryAll(consumer, 'producer.controls', pattern === undefined ? {} : { match: pattern }, () => ({}))
}

export async function controlParameters(consumer: Queryable, control: string): Promise<readonly CataloguedArgument[]> {
  const controls = await listControls(consumer, control)
  const found = controls.find((record) => fieldText(record, 'name') === control)
  const key = {
    name: 'idempotency_key',
    type: 'string',
    isOptional: true,
    description: '',
    isSecret: false,
    bounds: '',
  }
  return [key, ...parametersOf(found)]
}

/** Empty if the user may not read the catalogue, which is only a convenience here. */
async function firstMetrics(consumer: Queryable, match: string, limit: number): Promise<readonly AnswerRecord[]> {
  try {
    const { value } = await consumer.query('producer.metrics', { match, limit })
    return toRecords(value)?.records ?? []
  } catch (error) {
    if (error instanceof StatusError) return []
    throw error
  }
}
