/**
 * The objects of the agent, with their numbers and last samples. They outlive connections: an object keeps its number
 * while the server runs. Only a change renews the time of a sample, as in qpidd [QMF 5.7].
 */
import type {
  Banks,
  ObjectHeader,
  ObjectId,
  Properties,
  QmfValue,
  Statistics,
  TableSchema,
} from '../../../../protocol/qmf/types.ts'
import { formatObjectId, parseObjectId } from '../../../../protocol/qmf/values.ts'

/** Whether the banks fit an object id. Agent bank 0 is the broker's own: requests to it never come here. */
export function isBanks(value: unknown): value is Banks {
  if (typeof value !== 'object' || value === null || !('brokerBank' in value) || !('agentBank' in value)) return false
  const { brokerBank, agentBank } = value
  return isWithin(brokerBank, 0, 1 << 20) && isWithin(agentBank, 1, 1 << 28)
}

function isWithin(value: unknown, first: number, end: number): boolean {
  return Number.isInteger(value) && Number(value) >= first && Number(value) < end
}

/** The values of an object, in the order of the schema. */
export interface ObjectValues {
  readonly properties: Properties
  readonly statistics: Statistics
}

/** The source of the objects of one class; `T` is the thing that an object represents. */
export interface ObjectSource<T extends object = object> {
  readonly schema: TableSchema
  all(): Iterable<T>
  /** Returns the current values, undefined if the thing is gone. */
  read(thing: T): ObjectValues | undefined
}

export class AgentObject {
  readonly schema: TableSchema
  readonly number: bigint
  values: ObjectValues
  /** The values that were broadcast last. */
  broadcast: Partial<ObjectValues> = {}
  /** Nanoseconds since 1970, 0 while it exists. */
  deleted = 0n
  readonly #created: bigint
  #sampled: bigint

  constructor(schema: TableSchema, number: bigint, values: ObjectValues, now: bigint) {
    this.schema = schema
    this.number = number
    this.values = values
    this.#created = now
    this.#sampled = now
  }

  /** Keeps the arrays of unchanged values, so that a change is seen by comparing arrays. */
  update(values: ObjectValues | undefined, now: bigint): void {
    if (values === undefined) {
      this.deleted ||= now
      return
    }
    const before = this.values
    const properties = isSame(before.properties, values.properties) ? before.properties : values.properties
    const statistics = isSame(before.statistics, values.statistics) ? before.statistics : values.statistics
    if (properties === before.properties && statistics === before.statistics) return
    this.values = { properties, statistics }
    this.#sampled = now
  }

  header(boot: number, banks: Banks): ObjectHeader {
    const id: ObjectId = formatObjectId({ flags: 0, boot, ...banks, object: this.number })
    return { key: this.schema.key, sampled: this.#sampled, created: this.#created, deleted: this.deleted, id }
  }
}

interface Entry {
  readonly source: ObjectSource
  readonly thing: object
  readonly object: AgentObject
}

export class Inventory {
  /** The number of this start of the server, 1..4095: each start has other objects. */
  readonly boot: number
  readonly #classes: readonly { readonly source: ObjectSource; readonly entries: Map<object, Entry> }[]
  readonly #byNumber = new Map<bigint, Entry>()
  readonly #now: () => bigint
  #last = 0n

  /** `now`: nanoseconds since 1970. */
  constructor(sources: readonly ObjectSource[], boot: number, now: () => bigint) {
    this.boot = boot
    this.#classes = sources.map((source) => ({ source, entries: new Map() }))
    this.#now = now
  }

  get now(): bigint {
    return this.#now()
  }

  get schemas(): readonly TableSchema[] {
    return this.#classes.map(({ source }) => source.schema)
  }

  /** Updates each object as it is yielded. Objects that are gone are yielded too, until they are removed. */
  *of(className: string): Generator<AgentObject> {
    const found = this.#classes.find(({ source }) => source.schema.key.className === className)
    if (found === undefined) return
    const { source, entries } = found
    for (const { thing, object } of entries.values()) {
      object.update(source.read(thing), this.now)
      yield object
    }
    for (const thing of [...source.all()]) {
      const values = entries.has(thing) ? undefined : source.read(thing)
      if (values === undefined) continue
      const object = new AgentObject(source.schema, ++this.#last, values, this.now)
      const entry = { source, thing, object }
      entries.set(thing, entry)
      this.#byNumber.set(object.number, entry)
      yield object
    }
  }

  /** Returns the updated object, undefined if there is none with this id. */
  find(id: ObjectId, banks: Banks): AgentObject | undefined {
    const entry = this.#byNumber.get(parseObjectId(id)?.object ?? 0n)
    if (entry === undefined || entry.object.header(this.boot, banks).id !== id) return undefined
    entry.object.update(entry.source.read(entry.thing), this.now)
    return entry.object.deleted === 0n ? entry.object : undefined
  }

  remove({ number }: AgentObject): void {
    const entry = this.#byNumber.get(number)
    this.#byNumber.delete(number)
    for (const { source, entries } of this.#classes) if (entry?.source === source) entries.delete(entry.thing)
  }
}

function isSame(one: readonly (QmfValue | undefined)[], other: readonly (QmfValue | undefined)[]): boolean {
  return one.every((value, i) => value === other[i] || (isMap(value) && isMap(other[i]) && isSameMap(value, other[i])))
}

function isMap(value: unknown): value is ReadonlyMap<string, unknown> {
  return value instanceof Map
}

function isSameMap(one: ReadonlyMap<string, unknown>, other: ReadonlyMap<string, unknown>): boolean {
  return one.size === other.size && [...one].every(([key, value]) => other.get(key) === value)
}
