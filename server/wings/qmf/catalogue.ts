/**
 * The metrics of the classes of all brokers, and the names of metrics and objects. A class that many brokers have in
 * one version is kept once, and a fact about which the versions of a class disagree is left open. A name belongs either
 * to fields or to events, whichever came first.
 */
import { createHash } from 'node:crypto'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { type Field, nameProblem } from '../../../protocol/monitor/value.ts'
import {
  type ClassKey,
  type EventSchema,
  type ObjectId,
  type Properties,
  QmfType,
  type Schema,
  type SchemaItem,
  type TableSchema,
} from '../../../protocol/qmf/types.ts'
import { type Metric, type Parameter, SortedNames } from '../../kit/metrics.ts'
import { shownId } from './addresses.ts'
import { basicTypeOf, unitOf } from './values.ts'

export const QMF_PREFIX = 'qmf.'
/** The metric that says whether a broker is connected. */
export const BROKER_UP = 'qmf.broker.up'

const brokerParameter: Parameter = {
  name: 'broker',
  type: BasicType.STRING,
  description: 'The broker: its name in the configuration.',
  selects: 'any',
}
const objectParameter: Parameter = {
  name: 'object',
  type: BasicType.STRING,
  description: 'The object: its name, or its object id like 0-0-1-0-2.',
  selects: 'any',
}
export const objectParameters: readonly Parameter[] = [brokerParameter, objectParameter]

const UP: Metric = {
  name: BROKER_UP,
  kind: 'continuous',
  type: BasicType.BOOLEAN,
  unit: '',
  description: 'Whether the broker is there, with the time of its last heartbeat or answer',
  parameters: [brokerParameter],
}

/** The limit for the name of an object, and for an object id in it, in UTF-16 units: it stands in every value of a pattern. */
const MAX_LABEL = 255
/** Every object refers to these, so its name does not need them. */
const COMMON_REFERENCES: readonly string[] = ['vhostRef', 'brokerRef', 'systemRef']

/** A property or statistic of a class in one version. */
export interface QmfField {
  /** The name of its metric. */
  readonly name: string
  readonly item: SchemaItem
  readonly of: 'property' | 'statistic'
  /** Its position among the properties or statistics of an object. */
  readonly at: number
}
export interface KnownTable {
  readonly schema: TableSchema
  /** The fields that have a metric. */
  readonly fields: readonly QmfField[]
}
export interface KnownEvent {
  readonly schema: EventSchema
  /** The name of its metric, undefined if it has none. */
  readonly name: string | undefined
}
export type KnownClass = KnownTable | KnownEvent

/** The facts about a metric according to one class. */
type Facts = Pick<Metric, 'type' | 'unit' | 'description'> & { readonly details: () => Field[] }

/** A metric, with the facts and fields of all classes that have it. */
interface Entry {
  readonly name: string
  readonly kind: Metric['kind']
  readonly facts: Map<KnownClass, Facts>
  readonly fields: Map<KnownTable, QmfField>
  /** Made when it is needed. */
  metric: Metric | undefined
}

export class QmfCatalogue {
  /** Classes with the number of brokers that have them, by their contents: a hash is only a claim of its broker. */
  readonly #known = new Map<string, { readonly known: KnownClass; brokers: number }>()
  readonly #entries = new SortedNames<Entry>()
  /** The number of fields and events whose name cannot be a metric's, or is another's. */
  badName = 0
  /** Grows whenever its metrics change. */
  changes = 0

  /** A broker has this class. */
  add(schema: Schema): KnownClass {
    const key = contentsOf(schema)
    let entry = this.#known.get(key)
    if (entry === undefined) {
      entry = { known: schema.kind === 'table' ? this.#addTable(schema) : this.#addEvent(schema), brokers: 0 }
      this.#known.set(key, entry)
      this.changes++
    }
    entry.brokers++
    return entry.known
  }

  /** A broker has this class no longer. */
  remove(known: KnownClass): void {
    const key = contentsOf(known.schema)
    const counted = this.#known.get(key)
    if (counted === undefined || --counted.brokers > 0) return
    this.#known.delete(key)
    this.changes++
    const names = 'fields' in known ? known.fields.map(({ name }) => name) : [known.name ?? '']
    for (const name of names) {
      const entry = this.#entries.get(name)
      if (entry === undefined) continue
      entry.facts.delete(known)
      entry.fields.delete(known as KnownTable)
      entry.metric = undefined
      if (entry.facts.size === 0) this.#entries.delete(name)
    }
  }

  schemas(): Schema[] {
    return [...this.#known.values()].map(({ known }) => known.schema)
  }

  *metrics(prefix = '', after = ''): Generator<Metric> {
    let isUpGiven = false
    for (const entry of this.#entries.values(prefix, after)) {
      if (!isUpGiven && entry.name > BROKER_UP) yield UP
      isUpGiven ||= entry.name > BROKER_UP
      yield metricOf(entry)
    }
    if (!isUpGiven) yield UP
  }

  metric(name: string): Metric | undefined {
    const entry = this.#entries.get(name)
    return name === BROKER_UP ? UP : entry && metricOf(entry)
  }

  /** The fields of this name, with their classes. */
  fields(name: string): Iterable<readonly [KnownTable, QmfField]> {
    return this.#entries.get(name)?.fields ?? []
  }

  #addTable(schema: TableSchema): KnownTable {
    const fields: QmfField[] = []
    const known = { schema, fields }
    const items = [
      ...schema.properties.map((item, at) => ({ of: 'property', item, at }) as const),
      ...schema.statistics.map((item, at) => ({ of: 'statistic', item, at }) as const),
    ]
    for (const { of, item, at } of items) {
      const name = fieldMetric(schema.key, item.name)
      const entry = this.#entry(name, 'continuous')
      const isRepeated = fields.some((field) => field.name === name)
      if (name === undefined || entry === undefined || isRepeated) {
        this.badName++
        continue
      }
      const field = { name, item, of, at }
      fields.push(field)
      entry.fields.set(known, field)
      this.#addFacts(entry, known, {
        type: basicTypeOf(item.type),
        unit: unitOf(item),
        description: item.description ?? '',
        details: () => detailsOf(schema, of),
      })
    }
    return known
  }

  #addEvent(schema: EventSchema): KnownEvent {
    const name = classMetric(schema.key)
    const entry = this.#entry(name, 'event')
    const known = { schema, name: entry && name }
    if (entry === undefined) {
      this.badName++
      return known
    }
    const list = schema.arguments.map((argument) => argument.name).join(',')
    this.#addFacts(entry, known, {
      type: BasicType.REC,
      unit: '',
      description: `Event of ${schema.key.packageName}`,
      details: () => [...detailsOf(schema, 'event'), { name: 'arguments', type: BasicType.STRING, value: list }],
    })
    return known
  }

  #addFacts(entry: Entry, known: KnownClass, facts: Facts): void {
    entry.facts.set(known, facts)
    entry.metric = undefined
  }

  /** Returns undefined if there can be no metric of that name and kind. */
  #entry(name: string | undefined, kind: Metric['kind']): Entry | undefined {
    if (name === undefined || name === BROKER_UP) return undefined
    const entry = this.#entries.get(name) ?? { name, kind, facts: new Map(), fields: new Map(), metric: undefined }
    this.#entries.set(name, entry)
    return entry.kind === kind ? entry : undefined
  }
}

function metricOf(entry: Entry): Metric {
  if (entry.metric !== undefined) return entry.metric
  const all = [...entry.facts.values()]
  const [first] = all
  entry.metric = {
    name: entry.name,
    kind: entry.kind,
    type: all.every(({ type }) => type === first?.type) ? first?.type : undefined,
    unit: all.every(({ unit }) => unit === first?.unit) ? (first?.unit ?? '') : '',
    description: all.find(({ description }) => description !== '')?.description ?? '',
    parameters: entry.kind === 'event' ? [brokerParameter] : objectParameters,
    ...(first && { details: first.details }),
  }
  return entry.metric
}

/** Equal for two schemas with the same contents. */
function contentsOf(schema: Schema): string {
  return JSON.stringify(schema, (_name, value: unknown) => {
    if (typeof value === 'bigint') return `${value}n`
    return value instanceof Map ? [...value] : value
  })
}

/** For the catalogue: where the metric comes from. */
function detailsOf({ key }: Schema, item: 'property' | 'statistic' | 'event'): Field[] {
  const details = { package: key.packageName, class: key.className, item }
  return Object.entries(details).map(([name, value]): Field => ({ name, type: BasicType.STRING, value }))
}

/** `qmf.<package>.<class>`, the metric of an event; undefined if that cannot be a name [MON 1]. */
export function classMetric({ packageName, className }: ClassKey): string | undefined {
  if (packageName === '' || className === '') return undefined
  return checkedName(`${QMF_PREFIX}${packageName}.${className}`)
}

/** `qmf.<package>.<class>.<property or statistic>`. */
export function fieldMetric(key: ClassKey, field: string): string | undefined {
  const name = classMetric(key)
  return name === undefined || field === '' ? undefined : checkedName(`${name}.${field}`)
}

/** A star would make it a pattern. */
function checkedName(name: string): string | undefined {
  return nameProblem(name) === undefined && !name.includes('*') ? name : undefined
}

/**
 * Names an object by its index properties except references. `isUnique`: no other object of its class can have the
 * name; otherwise (it is told apart by its references, or has no name) the object id is added to it.
 */
export function nameOfObject(schema: TableSchema, properties: Properties): { name: string; isUnique: boolean } {
  const parts: string[] = []
  let isUnique = true
  for (const [at, { name, type, isIndex }] of schema.properties.entries()) {
    if (!isIndex) continue
    if (type === QmfType.REFERENCE) isUnique &&= COMMON_REFERENCES.includes(name)
    else parts.push(String(properties[at] ?? ''))
  }
  const name = parts.join(',')
  const isLong = name.length > MAX_LABEL
  return { name: isLong ? name.slice(0, MAX_LABEL).toWellFormed() : name, isUnique: isUnique && !isLong }
}

/**
 * The name, with the object id if the name alone is not enough, or with a hash of the id if that is too long. `taken` has the
 * labels of the other objects of the class.
 */
export function labelOf(
  { name, isUnique }: { name: string; isUnique: boolean },
  id: ObjectId,
  taken: Pick<ReadonlyMap<string, unknown>, 'has'>,
): string {
  const shown = shownId(id)
  const suffix = shown.length > MAX_LABEL ? createHash('sha256').update(shown).digest('hex').slice(0, 32) : shown
  let label = name === '' ? suffix : isUnique ? name : `${name}@${suffix}`
  while (taken.has(label)) label += `@${suffix}`
  return label
}
