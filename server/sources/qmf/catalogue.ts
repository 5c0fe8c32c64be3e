/**
 * The metrics that the classes of all brokers make: a class that many brokers have in one version is kept once, and what
 * versions of a class do not agree about is left open. A name belongs to fields or to events, whichever came first.
 */
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Field } from '../../../protocol/monitor/value.ts'
import type { EventSchema, Schema, SchemaItem, TableSchema } from '../../../protocol/qmf/types.ts'
import type { Metric } from '../../metrics/metric.ts'
import {
  BROKER_UP,
  brokerParameter,
  classMetric,
  detailsOf,
  eventParameters,
  fieldMetric,
  objectParameters,
} from './names.ts'
import { basicTypeOf, unitOf } from './values.ts'

/** A property or statistic of a class in one version. */
export interface QmfField {
  /** That of its metric. */
  readonly name: string
  readonly item: SchemaItem
  readonly of: 'property' | 'statistic'
  /** Where its values stand among those of an object. */
  readonly at: number
}

export interface KnownTable {
  readonly schema: TableSchema
  /** Those that have a metric. */
  readonly fields: readonly QmfField[]
}
export interface KnownEvent {
  readonly schema: EventSchema
  /** Of its metric; undefined: it has none. */
  readonly name: string | undefined
}
export type KnownClass = KnownTable | KnownEvent

export function isTable(known: KnownClass): known is KnownTable {
  return known.schema.kind === 'table'
}

/** What one class says of a metric. */
interface Meaning {
  readonly type: BasicType
  readonly unit: string
  readonly description: string
  readonly details: () => Field[]
}

const UP: Metric = {
  name: BROKER_UP,
  kind: 'continuous',
  type: BasicType.BOOLEAN,
  unit: '',
  description: 'Whether the broker is there, with the time of its last heartbeat or answer',
  parameters: [brokerParameter],
}

export class QmfCatalogue {
  /** By what they say, since a hash is only what its broker says it is; with how many brokers have it. */
  readonly #known = new Map<string, { readonly known: KnownClass; brokers: number }>()
  readonly #entries = new Map<string, Entry>()
  /** Fields and events whose name cannot be a metric's, or is another's. */
  badName = 0

  /** A broker has that class. */
  enter(schema: Schema): KnownClass {
    const key = contentOf(schema)
    let entry = this.#known.get(key)
    if (entry === undefined) {
      entry = { known: schema.kind === 'table' ? this.#table(schema) : this.#event(schema), brokers: 0 }
      this.#known.set(key, entry)
    }
    entry.brokers++
    return entry.known
  }

  /** A broker has it no longer. */
  leave(known: KnownClass): void {
    const key = contentOf(known.schema)
    const entry = this.#known.get(key)
    if (entry === undefined || --entry.brokers > 0) return
    this.#known.delete(key)
    const names = isTable(known) ? known.fields.map(({ name }) => name) : [known.name ?? '']
    for (const name of names) if (this.#entries.get(name)?.forget(known)) this.#entries.delete(name)
  }

  classes(): Iterable<KnownClass> {
    return [...this.#known.values()].map(({ known }) => known)
  }

  *metrics(): Generator<Metric> {
    yield UP
    for (const { metric } of this.#entries.values()) yield metric
  }

  metric(name: string): Metric | undefined {
    return name === BROKER_UP ? UP : this.#entries.get(name)?.metric
  }

  /** Fields of that name, with their classes. */
  fields(name: string): Iterable<readonly [KnownTable, QmfField]> {
    return this.#entries.get(name)?.fields ?? []
  }

  #table(schema: TableSchema): KnownTable {
    const fields: QmfField[] = []
    const known = { schema, fields }
    for (const [of, items] of [
      ['property', schema.properties],
      ['statistic', schema.statistics],
    ] as const) {
      for (const [at, item] of items.entries()) {
        const name = fieldMetric(schema.key, item.name)
        const entry = this.#entry(name, 'continuous')
        const isTwice = fields.some((field) => field.name === name)
        if (name === undefined || entry === undefined || isTwice) {
          this.badName++
          continue
        }
        const field = { name, item, of, at }
        fields.push(field)
        entry.means(
          known,
          meaningOf(item, () => detailsOf(schema, of)),
        )
        entry.fields.set(known, field)
      }
    }
    return known
  }

  #event(schema: EventSchema): KnownEvent {
    const name = classMetric(schema.key)
    const entry = this.#entry(name, 'event')
    if (entry === undefined) this.badName++
    const known = { schema, name: entry && name }
    const list = schema.arguments.map((argument) => argument.name).join(',')
    const described = { type: BasicType.REC, unit: '', description: `Event of ${schema.key.packageName}` }
    const more: Field = { name: 'arguments', type: BasicType.STRING, value: list }
    entry?.means(known, { ...described, details: () => detailsOf(schema, 'event', [more]) })
    return known
  }

  #entry(name: string | undefined, kind: Metric['kind']): Entry | undefined {
    if (name === undefined || name === BROKER_UP) return undefined
    let entry = this.#entries.get(name)
    if (entry === undefined) {
      entry = new Entry(name, kind)
      this.#entries.set(name, entry)
    }
    return entry.kind === kind ? entry : undefined
  }
}

/** The same for two schemas that say the same. */
function contentOf(schema: Schema): string {
  return JSON.stringify(schema, (_name, value: unknown) => {
    if (typeof value === 'bigint') return `${value}n`
    return value instanceof Map ? [...value] : value
  })
}

function meaningOf(item: SchemaItem, details: () => Field[]): Meaning {
  return { type: basicTypeOf(item.type), unit: unitOf(item), description: item.description ?? '', details }
}

/** One metric. */
class Entry {
  readonly kind: Metric['kind']
  readonly fields = new Map<KnownTable, QmfField>()
  readonly #name: string
  readonly #meanings = new Map<KnownClass, Meaning>()
  #metric: Metric | undefined

  constructor(name: string, kind: Metric['kind']) {
    this.#name = name
    this.kind = kind
  }

  means(known: KnownClass, meaning: Meaning): void {
    this.#meanings.set(known, meaning)
    this.#metric = undefined
  }

  /** True if nothing is left. */
  forget(known: KnownClass): boolean {
    this.#meanings.delete(known)
    this.fields.delete(known as KnownTable)
    this.#metric = undefined
    return this.#meanings.size === 0
  }

  get metric(): Metric {
    this.#metric ??= this.#made()
    return this.#metric
  }

  #made(): Metric {
    const all = [...this.#meanings.values()]
    const [first] = all
    return {
      name: this.#name,
      kind: this.kind,
      type: all.every(({ type }) => type === first?.type) ? first?.type : undefined,
      unit: all.every(({ unit }) => unit === first?.unit) ? (first?.unit ?? '') : '',
      description: all.find(({ description }) => description !== '')?.description ?? '',
      parameters: this.kind === 'event' ? eventParameters : objectParameters,
      ...(first && { details: first.details }),
    }
  }
}
