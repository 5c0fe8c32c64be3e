/**
 * The existing objects of a broker, by agent and class; their values are kept by the sensor. A newcomer expects to be
 * informed of deletions: without broadcasts, a deleted object is only missing from the next answer.
 */
import type {
  EventSchema,
  ObjectHeader,
  ObjectId,
  Properties,
  QmfValue,
  SchemaItem,
  Statistics,
  TableSchema,
} from '../../../protocol/qmf/types.ts'
import { agentOf, BROKER_PACKAGE } from './addresses.ts'
import type { ObjectSample, QmfCounters } from './console-events.ts'
import { classText } from './discovery.ts'

/** Events that name a connection but nothing that it has. */
const connectionEvents = ['clientConnect', 'clientDisconnect', 'unsubscribe']
const MAX_OWN_PARTS = 10_000
/**
 * Answers and broadcasts come through two queues, each in its order, so a sample that is older than the last one by
 * less than this is dropped. If it is older by more, the clock of the broker was set back.
 */
const MAX_REORDERED_NS = 60_000_000_000n
/** Deleted objects are remembered, since an older answer to G may still come through the other queue. */
const MAX_DELETED = 1_000

interface KnownObject {
  readonly agent: string
  /** As `classText` gives it. */
  readonly className: string
  readonly created: bigint
  /** The objects it belongs to, as far as they decide whether it is the console's own. */
  readonly owners: readonly ObjectId[]
  /** The value of `mark` when the object was last reported. */
  mark: number
  /** The time of the latest sample. */
  sampled: bigint
}

export interface OwnNames {
  readonly session: string
  readonly queues: readonly string[]
}

export interface ObjectsOptions {
  readonly own: OwnNames
  readonly limit: number
  readonly counters: QmfCounters
  readonly sampled: (sample: ObjectSample, schema: TableSchema) => void
  readonly gone: (id: ObjectId) => void
  /** Called for statistics of an object whose properties never came: the object has to be requested. */
  readonly unknown: (agent: string, className: string) => void
}

export class KnownObjects {
  readonly own: OwnObjects
  readonly #options: ObjectsOptions
  readonly #objects = new Map<ObjectId, KnownObject>()
  readonly #byClass = new Map<string, Set<ObjectId>>()
  /** Creation times by id, since an id may be given again. */
  readonly #deleted = new Map<ObjectId, bigint>()
  #mark = 0

  constructor(options: ObjectsOptions) {
    this.#options = options
    this.own = new OwnObjects(options.own)
  }

  /** Objects that are reported later get a higher mark. */
  get mark(): number {
    return this.#mark
  }

  /** The time of its latest sample, in nanoseconds since 1970; undefined if the object is unknown. */
  sampledOf(id: ObjectId): bigint | undefined {
    return this.#objects.get(id)?.sampled
  }

  /** Whether an agent has objects of a class, as `classText` gives it. */
  has(agent: string, className: string): boolean {
    return this.#byClass.has(`${agent} ${className}`)
  }

  receive(sample: ObjectSample, schema: TableSchema): void {
    const { header, properties, statistics } = sample
    if (properties !== undefined) {
      const { isOwn, hasLearned } = this.own.classify(header.id, schema, properties)
      if (hasLearned) this.#removeOwn()
      if (isOwn) return
    } else if (this.own.has(header.id)) return
    if (header.deleted !== 0n) {
      // These are the last values of the object.
      const isKnown = this.#objects.get(header.id)?.created === header.created
      if (isKnown && statistics !== undefined) this.#options.sampled(sample, schema)
      this.#delete(header)
    } else if (this.#accept(header, schema, properties)) this.#options.sampled(sample, schema)
  }

  /** Removes the objects of a class that an agent's answer did not contain; `mark` is that of the time it began. */
  removeMissing(agent: string, className: string, mark: number): void {
    for (const id of [...(this.#byClass.get(`${agent} ${className}`) ?? [])]) {
      if ((this.#objects.get(id)?.mark ?? mark) <= mark) this.#remove(id)
    }
  }

  removeAgent(agent: string): void {
    for (const [id, object] of [...this.#objects]) if (object.agent === agent) this.#remove(id)
  }

  /** Returns false if the sample is not to be passed on. */
  #accept(
    { id, created, sampled, key }: ObjectHeader,
    schema: TableSchema,
    properties: Properties | undefined,
  ): boolean {
    const { counters, limit, unknown } = this.#options
    let known = this.#objects.get(id)
    if (known !== undefined && created > known.created) {
      // In v2 an object that was made again has the same id.
      this.#remove(id)
      known = undefined
    }
    if (known !== undefined) {
      known.mark = ++this.#mark
      const isOld = sampled < known.sampled && sampled > known.sampled - MAX_REORDERED_NS
      if (!isOld) known.sampled = sampled
      return !isOld
    }
    if (this.#deleted.get(id) === created) return false
    if (this.#objects.size >= limit) {
      counters.objectsFull++
      return false
    }
    const agent = agentOf(id)
    const className = classText(key)
    if (properties === undefined) {
      counters.unknownObjects++
      unknown(agent, className)
      return false
    }
    const owners = ownersOf(schema, properties)
    this.#objects.set(id, { agent, className, created, owners, mark: ++this.#mark, sampled })
    const ids = this.#byClass.get(`${agent} ${className}`) ?? new Set()
    this.#byClass.set(`${agent} ${className}`, ids.add(id))
    return true
  }

  #delete({ id, created }: ObjectHeader): void {
    this.#deleted.set(id, created)
    const [oldest] = this.#deleted.keys()
    if (this.#deleted.size > MAX_DELETED && oldest !== undefined) this.#deleted.delete(oldest)
    if ((this.#objects.get(id)?.created ?? 0n) <= created) this.#remove(id)
  }

  /** Removes objects that turned out to be the console's own only after they were accepted. */
  #removeOwn(): void {
    for (const [id, { owners }] of [...this.#objects]) {
      if (this.own.has(id) || owners.some((owner) => this.own.has(owner))) this.#remove(id)
    }
  }

  #remove(id: ObjectId): void {
    const object = this.#objects.get(id)
    if (object === undefined) return
    this.#objects.delete(id)
    const place = `${object.agent} ${object.className}`
    const ids = this.#byClass.get(place)
    ids?.delete(id)
    if (ids?.size === 0) this.#byClass.delete(place)
    this.#options.gone(id)
  }
}

/**
 * A console sees itself in the broker: its queues, their bindings and subscriptions, its session and connection, all of
 * which change with every request. They are recognised by the names that only this connection has, and by the
 * references between them; objects come in any order, so a reference may become meaningful only after it was read.
 */
export class OwnObjects {
  readonly #names: OwnNames
  /** The console's queues, session and connection. */
  readonly #ids = new Set<ObjectId>()
  /** The bindings and subscriptions that belong to them; statistics come without the references. */
  readonly #parts = new Set<ObjectId>()
  /** The name of the connection in events. */
  #address: QmfValue | undefined

  constructor(names: OwnNames) {
    this.#names = names
  }

  has(id: ObjectId): boolean {
    return this.#ids.has(id) || this.#parts.has(id)
  }

  /** `hasLearned`: other objects turned out to be the console's own. */
  classify(
    id: ObjectId,
    schema: TableSchema,
    properties: Properties,
  ): { readonly isOwn: boolean; readonly hasLearned: boolean } {
    const known = this.#ids.size
    if (ownersOf(schema, properties).some((owner) => this.#ids.has(owner))) this.#addPart(id)
    else if (this.#isOwn(id, schema, properties)) this.#ids.add(id)
    return { isOwn: this.has(id), hasLearned: this.#ids.size > known }
  }

  isOwnEvent({ key, arguments: items }: EventSchema, values: Statistics): boolean {
    if (key.packageName !== BROKER_PACKAGE) return false
    if (this.#isOwnQueue(itemValue(items, values, 'qName'))) return true
    if (this.#address === undefined || !connectionEvents.includes(key.className)) return false
    return itemValue(items, values, 'rhost') === this.#address
  }

  #isOwn(id: ObjectId, schema: TableSchema, properties: Properties): boolean {
    if (schema.key.packageName !== BROKER_PACKAGE) return false
    const property = (name: string): QmfValue | undefined => itemValue(schema.properties, properties, name)
    switch (schema.key.className) {
      case 'queue':
        return this.#isOwnQueue(property('name'))
      case 'session': {
        if (!this.#isOwnSession(property('name')) && !this.#isOwnSession(property('fullName'))) return false
        const connection = property('connectionRef')
        if (typeof connection === 'string') this.#ids.add(connection)
        return true
      }
      case 'connection':
        if (this.#ids.has(id)) this.#address = property('address')
        return this.#ids.has(id)
      default:
        return false
    }
  }

  /** Bindings come and go with what is wanted, and without broadcasts their end is never reported. */
  #addPart(id: ObjectId): void {
    if (this.#parts.size >= MAX_OWN_PARTS) this.#parts.clear()
    this.#parts.add(id)
  }

  #isOwnQueue(name: QmfValue | undefined): boolean {
    return typeof name === 'string' && this.#names.queues.includes(name)
  }

  /** qpidd puts the user in front of the name: `anonymous.<name>`. */
  #isOwnSession(name: QmfValue | undefined): boolean {
    return typeof name === 'string' && (name === this.#names.session || name.endsWith(`.${this.#names.session}`))
  }
}

/** The value of a property or argument by its name. */
export function itemValue(
  items: readonly SchemaItem[],
  values: readonly (QmfValue | undefined)[],
  name: string,
): QmfValue | undefined {
  return values[items.findIndex((item) => item.name === name)]
}

/** The objects that a binding or subscription belongs to; none for other classes. */
function ownersOf({ key, properties: items }: TableSchema, properties: Properties): readonly ObjectId[] {
  if (key.packageName !== BROKER_PACKAGE || !['binding', 'subscription'].includes(key.className)) return []
  return ['queueRef', 'sessionRef'].flatMap((name) => {
    const value = itemValue(items, properties, name)
    return typeof value === 'string' ? [value] : []
  })
}
