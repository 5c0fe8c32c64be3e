/** What an upstream says of its metrics [MON 9.3]. Its parameters show which labels its values have [MON 9 Patterns]. */
import type { ArgumentList } from '../../../protocol/monitor/arguments.ts'
import { BasicType, labelNames, openLabelFamilies } from '../../../protocol/monitor/constants.ts'
import { typeNamed } from '../../../protocol/monitor/json.ts'
import type { Field, Value } from '../../../protocol/monitor/value.ts'
import type { Metric, Parameter } from '../../kit/metrics.ts'
import { isPattern, PRODUCER, partLabels } from '../../kit/producers.ts'

/** Metrics of one page: few enough to be read at once. */
const PAGE = 500
const { STRING, UINT32 } = BasicType

type Query = (metric: string, args: ArgumentList) => Promise<{ readonly value: Value }>

/** Reads the whole catalogue, page by page. Rejects as `query` does. `added`: the parameters that all metrics have here. */
export async function* readCatalogue(query: Query, added: readonly Parameter[]): AsyncGenerator<readonly Metric[]> {
  for (let after = ''; ; ) {
    const args: ArgumentList = [
      { name: 'limit', type: UINT32, value: PAGE },
      { name: 'after', type: STRING, value: after },
    ]
    const { value } = await query('producer.metrics', args)
    const records = value.type === BasicType.ARRAY ? (value.value.items as readonly (readonly Field[])[]) : []
    const metrics = records.flatMap((record) => metricOf(record, added) ?? [])
    yield metrics
    const last = metrics.at(-1)
    if (last === undefined || textOf(records.at(-1) ?? [], 'name') !== '') return
    after = last.name
  }
}

/** What objects cost besides their texts, about. */
const OBJECT_BYTES = 200

/** What a metric takes of memory, about. */
export function catalogueBytes({ name, unit, description, parameters }: Metric): number {
  const own = OBJECT_BYTES + name.length + unit.length + description.length
  return parameters.reduce((sum, one) => sum + OBJECT_BYTES + one.name.length + one.description.length, own)
}

/** Whether the upstream describes a metric as before. It is asked for each one at each reading. */
export function isSameMetric(one: Metric, other: Metric): boolean {
  const { parameters } = other
  return (
    one.name === other.name &&
    one.kind === other.kind &&
    one.type === other.type &&
    one.unit === other.unit &&
    one.description === other.description &&
    one.takesLabels === other.takesLabels &&
    one.parameters.length === parameters.length &&
    one.parameters.every((parameter, index) => isSameParameter(parameter, parameters[index] as Parameter))
  )
}

function isSameParameter(one: Parameter, { name, type, description, selects }: Parameter): boolean {
  return one.name === name && one.type === type && one.description === description && one.selects === selects
}

/** A metric that is not in the catalogue: it takes whatever selects. */
export function unknownMetric(name: string): Metric {
  return {
    name,
    kind: 'continuous',
    type: undefined,
    unit: '',
    description: 'Of other servers.',
    parameters: [ofProducer],
    takesLabels: true,
    isUnknown: true,
  }
}

/** The parameter that all of them have. */
export const ofProducer: Parameter = {
  name: PRODUCER,
  type: STRING,
  description: 'The server that measures it.',
  selects: 'own',
}

/** Undefined for the last record of a page that says that there is more. */
function metricOf(record: readonly Field[], added: readonly Parameter[]): Metric | undefined {
  const name = textOf(record, 'name')
  if (name === '') return undefined
  const parameters = (listOf(record, 'parameters') ?? []).flatMap((parameter) => parameterOf(name, parameter) ?? [])
  const details = record.find((field) => field.name === 'details')?.value
  const takesLabels = Array.isArray(details) && textOf(details as readonly Field[], 'labels') === 'any'
  return {
    name,
    kind: textOf(record, 'kind') === 'event' ? 'event' : 'continuous',
    type: typeNamed(textOf(record, 'type')),
    unit: textOf(record, 'unit'),
    description: textOf(record, 'description'),
    parameters: [...added, ...parameters.filter((parameter) => parameter.name !== PRODUCER)],
    ...(takesLabels && { takesLabels }),
  }
}

function parameterOf(metric: string, record: readonly Field[]): Parameter | undefined {
  const name = textOf(record, 'name')
  const type = typeNamed(textOf(record, 'type'))
  if (name === '' || type === undefined) return undefined
  const selects = type === STRING ? selectionOf(metric, name) : undefined
  return { name, type, description: textOf(record, 'description'), ...(selects && { selects }) }
}

/** As the protocol says it of the arguments that select. */
function selectionOf(metric: string, name: string): Parameter['selects'] {
  if (!(labelNames as readonly string[]).includes(name)) return undefined
  if ((partLabels as readonly string[]).includes(name)) return 'part'
  return name === 'host' && metric.startsWith('host.') ? 'own' : 'any'
}

/** Whether the values of a selection have labels there, so that a REC of that form is one of labels and `value`. */
export function hasLabels(name: string, args: ArgumentList, metric: Metric | undefined): boolean {
  if (isPattern(name) || metric === undefined) return true
  if (metric.takesLabels === true || openLabelFamilies.some((family) => name.startsWith(family))) return true
  return metric.parameters.some(({ name: label, selects }) => {
    if (selects === undefined || label === PRODUCER) return false
    const given = args.find((argument) => argument.name === label)?.value
    return given === undefined ? selects === 'any' && label !== 'index' : isPattern(String(given))
  })
}

function textOf(record: readonly Field[], name: string): string {
  const value = record.find((field) => field.name === name)?.value
  return typeof value === 'string' ? value : ''
}

function listOf(record: readonly Field[], name: string): readonly (readonly Field[])[] | undefined {
  const field = record.find((one) => one.name === name)
  return field?.type === BasicType.ARRAY ? (field.value.items as readonly (readonly Field[])[]) : undefined
}
