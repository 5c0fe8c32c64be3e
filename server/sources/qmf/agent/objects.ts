/**
 * The objects of the agent, with their numbers and last samples. They outlive connections: an object keeps its number while
 * the server runs. The time of a sample is renewed only by a change, as qpidd does it [QMF 5.7].
 */
import { formatObjectId, parseObjectId } from '../../../../protocol/qmf/object-id.ts'
import type {
  ObjectHeader,
  ObjectId,
  Properties,
  QmfValue,
  Statistics,
  TableSchema,
} from '../../../../protocol/qmf/types.ts'

/** What a broker gave the agent: `agent.<brokerBank>.<agentBank>` is where it is asked. */
export interface Banks {
  readonly brokerBank: number
  readonly agentBank: number
}

/** Whether an object id has room for them. The agent bank 0 is the broker's own: what is asked of it never comes here. */
export function isBanks(value: unknown): value is Banks {
  if (typeof value !== 'object' || value === null || !('brokerBank' in value) || !('agentBank' in value)) return false
  const { brokerBank, agentBank } = value
  return isWithin(brokerBank, 0, 1 << 20) && isWithin(agentBank, 1, 1 << 28)
}

function isWithin(value: unknown, first: number, end: number): boolean {
  return Number.isInteger(value) && Number(value) >= first && Number(value) < end
}

/** In the order of the schema. */
export interface Row {
  readonly properties: Properties
  readonly statistics: Statistics
}

/** What there is of one class; `T` is what an object stands for. */
export interface Shown<T extends object = object> {
  readonly schema: TableSchema
  all(): Iterable<T>
  /** As it is now; undefined: it is gone. */
  read(one: T): Row | undefined
}

export class ShownObject {
  readonly schema: TableSchema
  row: Row
  /** What consoles were told last. */
  told: Partial<Row> = {}
  /** Nanoseconds since 1970; 0: it is there. */
  deleted = 0n
  readonly number: bigint
  readonly #created: bigint
  #sampled: bigint

  constructor(schema: TableSchema, number: bigint, row: Row, now: bigint) {
    this.schema = schema
    this.row = row
    this.number = number
    this.#created = now
    this.#sampled = now
  }

  /** What is the same as before stays the same array, so that a change shows. */
  sample(row: Row | undefined, now: bigint): void {
    if (row === undefined) {
      this.deleted ||= now
      return
    }
    const properties = isSame(this.row.properties, row.properties) ? this.row.properties : row.properties
    const statistics = isSame(this.row.statistics, row.statistics) ? this.row.statistics : row.statistics
    if (properties === this.row.properties && statistics === this.row.statistics) return
    this.row = { properties, statistics }
    this.#sampled = now
  }

  header(boot: number, banks: Banks): ObjectHeader {
    const id: ObjectId = formatObjectId({ flags: 0, boot, ...banks, object: this.number })
    return { key: this.schema.key, sampled: this.#sampled, created: this.#created, deleted: this.deleted, id }
  }
}

interface Entry {
  readonly shown: Shown
  /** What the object stands for. */
  readonly one: object
  readonly object: ShownObject
}

export class Inventory {
  /** Which start of the server this is, 1..4095: objects of another one are others. */
  readonly boot: number
  readonly #classes: readonly { readonly shown: Shown; readonly entries: Map<object, Entry> }[]
  readonly #byNumber = new Map<bigint, Entry>()
  readonly #now: () => bigint
  #last = 0n

  /** `now`: nanoseconds since 1970. */
  constructor(shown: readonly Shown[], boot: number, now: () => bigint) {
    this.boot = boot
    this.#classes = shown.map((one) => ({ shown: one, entries: new Map() }))
    this.#now = now
  }

  get now(): bigint {
    return this.#now()
  }

  get schemas(): readonly TableSchema[] {
    return this.#classes.map(({ shown }) => shown.schema)
  }

  /** Each sampled as it is given; those that are gone come too, until they are forgotten. */
  *of(className: string): Generator<ShownObject> {
    const found = this.#classes.find(({ shown }) => shown.schema.key.className === className)
    if (found === undefined) return
    const { shown, entries } = found
    for (const { one, object } of entries.values()) {
      object.sample(shown.read(one), this.now)
      yield object
    }
    for (const one of [...shown.all()]) {
      const row = entries.has(one) ? undefined : shown.read(one)
      if (row !== undefined) yield this.#enter(shown, one, row, entries)
    }
  }

  /** Sampled now; undefined: there is none of that id, or it is gone. */
  find(id: ObjectId, banks: Banks): ShownObject | undefined {
    const entry = this.#byNumber.get(parseObjectId(id)?.object ?? 0n)
    if (entry === undefined || entry.object.header(this.boot, banks).id !== id) return undefined
    entry.object.sample(entry.shown.read(entry.one), this.now)
    return entry.object.deleted === 0n ? entry.object : undefined
  }

  forget({ number }: ShownObject): void {
    const entry = this.#byNumber.get(number)
    this.#byNumber.delete(number)
    for (const { shown, entries } of this.#classes) if (entry?.shown === shown) entries.delete(entry.one)
  }

  #enter(shown: Shown, one: object, row: Row, entries: Map<object, Entry>): ShownObject {
    const entry = { shown, one, object: new ShownObject(shown.schema, ++this.#last, row, this.now) }
    entries.set(one, entry)
    this.#byNumber.set(this.#last, entry)
    return entry.object
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
