/** What metrics are called and what the catalogue says of them; what objects are called. */
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { type Field, nameProblem } from '../../../protocol/monitor/value.ts'
import { type ClassKey, type Properties, QmfType, type Schema, type TableSchema } from '../../../protocol/qmf/types.ts'
import type { Parameter } from '../../metrics/metric.ts'

export const QMF_PREFIX = 'qmf.'
/** Whether a broker is there. */
export const BROKER_UP = 'qmf.broker.up'

export const brokerParameter: Parameter = {
  name: 'broker',
  type: BasicType.STRING,
  description: 'The broker: its name in the configuration.',
  selects: 'any',
}
export const objectParameter: Parameter = {
  name: 'object',
  type: BasicType.STRING,
  description: 'The object: its name, or its object id like 0-0-1-0-2.',
  selects: 'any',
}
export const objectParameters: readonly Parameter[] = [brokerParameter, objectParameter]
export const eventParameters: readonly Parameter[] = [brokerParameter]

/** UTF-16 units of an object's name: it stands in every value of a pattern. */
const MAX_LABEL = 255
/** Every object refers to these; what it is called by does not need them. */
const COMMON_REFERENCES: readonly string[] = ['vhostRef', 'brokerRef', 'systemRef']

/** `qmf.<package>.<class>`, which an event's metric is called by; undefined if that cannot be a name [MON 1]. */
export function classMetric({ packageName, className }: ClassKey): string | undefined {
  if (packageName === '' || className === '') return undefined
  return checked(`${QMF_PREFIX}${packageName}.${className}`)
}

/** `qmf.<package>.<class>.<property or statistic>`. */
export function fieldMetric(key: ClassKey, field: string): string | undefined {
  const name = classMetric(key)
  return name === undefined || field === '' ? undefined : checked(`${name}.${field}`)
}

/** A star would make it a pattern. */
function checked(name: string): string | undefined {
  return nameProblem(name) === undefined && !name.includes('*') ? name : undefined
}

/** For the catalogue: what it is where it comes from. */
export function detailsOf({ key }: Schema, item: 'property' | 'statistic' | 'event', more: Field[] = []): Field[] {
  const said = { package: key.packageName, class: key.className, item }
  return [...Object.entries(said).map(([name, value]): Field => ({ name, type: BasicType.STRING, value })), ...more]
}

/**
 * How an object is called: by its index properties that are no references. `isOwn`: nothing else of its class can be called
 * so; where that cannot be told (it is found by what it refers to, or has no name) its object id stands with it.
 */
export function nameOfObject(schema: TableSchema, properties: Properties): { name: string; isOwn: boolean } {
  const parts: string[] = []
  let isOwn = true
  for (const [at, { name, type, isIndex }] of schema.properties.entries()) {
    if (!isIndex) continue
    if (type === QmfType.REFERENCE) isOwn &&= COMMON_REFERENCES.includes(name)
    else parts.push(String(properties[at] ?? ''))
  }
  const name = parts.join(',')
  const isLong = name.length > MAX_LABEL
  return { name: isLong ? name.slice(0, MAX_LABEL).toWellFormed() : name, isOwn: isOwn && !isLong }
}

/** With the object id where the name alone would not do. `taken`: what others of the class are called. */
export function labelOf(
  { name, isOwn }: { name: string; isOwn: boolean },
  id: string,
  taken: Pick<ReadonlyMap<string, unknown>, 'has'>,
): string {
  let label = name === '' ? id : isOwn ? name : `${name}@${id}`
  while (taken.has(label)) label += `@${id}`
  return label
}
