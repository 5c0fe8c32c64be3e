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
import type { ConsoleLimits, ObjectSample, QmfCounters } from './console-events.ts'
import { classText } from './discovery.ts'
import { heldBytes } from './values.ts'

/** Events that name a connection but nothing that it has. */
const connectionEvents = ['clientConnect', 'clientDisconnect', 'unsubscribe']
/** Limits for the console's queues, session and connection, and for their bindings and subscriptions. */
const MAX_OWN = 100
const MAX_OWN_PARTS = 4_096
/** The console's own objects have shorter ids than this; longer ones are not compared. */
const MAX_OWN_ID = 1_024
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
  /** What the values of the latest samples take. */
  propertyBytes: number
  statisticBytes: number
}

export interface OwnNames {
  readonly session: string
  readonly queues: readonly string[]
}

export interface ObjectsOptions {
  readonly own: OwnNames
  readonly limits: Pick<ConsoleLimits, 'objects' | 'objectBytes'>
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
  /** By agent and class. */
  readonly #byAgent = new Map<string, Map<string, Set<ObjectId>>>()
  /** The objects that belong to each owner. */
  readonly #parts = new Map<ObjectId, Set<ObjectId>>()
  /** What the values of all objects take. */
  #bytes = 0
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
    return this.#byAgent.get(agent)?.has(className) === true
  }

  receive(sample: ObjectSample, schema: TableSchema): void {
    const { header, properties, statistics } = sample
    if (properties !== undefined) {
      const { isOwn, learned } = this.own.classify(header.id, schema, properties)
      for (const id of learned) this.#removeOwn(id)
      if (isOwn) return
    } else if (this.own.has(header.id)) return
    if (header.deleted !== 0n) {
      // These are the last values of the object.
      const isKnown = this.#objects.get(header.id)?.created === header.created
      if (isKnown && statistics !== undefined) this.#options.sampled(sample, schema)
      this.#delete(header)
    } else if (this.#accept(sample, schema)) this.#options.sampled(sample, schema)
  }

  /** Removes the objects of a class that an agent's answer did not contain; `mark` is that of the time it began. */
  removeMissing(agent: string, className: string, mark: number): void {
    for (const id of [...(this.#byAgent.get(agent)?.get(className) ?? [])]) {
      if ((this.#objects.get(id)?.mark ?? mark) <= mark) this.#remove(id)
    }
  }

  removeAgent(agent: string): void {
    for (const ids of [...(this.#byAgent.get(agent)?.values() ?? [])]) for (const id of [...ids]) this.#remove(id)
  }

  /** Returns false if the sample is not to be passed on. */
  #accept({ header, properties, statistics }: ObjectSample, schema: TableSchema): boolean {
    const { id, created, sampled, key } = header
    const { counters, limits, unknown } = this.#options
    let known = this.#objects.get(id)
    if (known !== undefined && created > known.created) {
      // In v2 an object that was made again has the same id.
      this.#remove(id)
      known = undefined
    }
    if (known !== undefined) {
      known.mark = ++this.#mark
      const isOld = sampled < known.sampled && sampled > known.sampled - MAX_REORDERED_NS
      if (isOld) return false
      known.sampled = sampled
      if (this.#hold(known, properties, statistics)) return true
      this.#remove(id)
      return false
    }
    if (this.#deleted.get(id) === created) return false
    if (this.#objects.size >= limits.objects) {
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
    const times = { created, mark: ++this.#mark, sampled }
    const object: KnownObject = { agent, className, owners, ...times, propertyBytes: 0, statisticBytes: 0 }
    if (!this.#hold(object, properties, statistics)) return false
    this.#objects.set(id, object)
    const classes = this.#byAgent.get(agent) ?? new Map<string, Set<ObjectId>>()
    this.#byAgent.set(agent, classes)
    addTo(classes, className, id)
    for (const owner of owners) addTo(this.#parts, owner, id)
    return true
  }

  /** Counts what the values of an object take, in place of those before. Returns false if there is no room for them. */
  #hold(object: KnownObject, properties: Properties | undefined, statistics: Statistics | undefined): boolean {
    const { propertyBytes, statisticBytes } = object
    const next = {
      propertyBytes: properties === undefined ? propertyBytes : heldBytes(properties),
      statisticBytes: statistics === undefined ? statisticBytes : heldBytes(statistics),
    }
    const more = next.propertyBytes - propertyBytes + next.statisticBytes - statisticBytes
    if (more > 0 && this.#bytes + more > this.#options.limits.objectBytes) {
      this.#options.counters.bytesFull++
      return false
    }
    this.#bytes += more
    Object.assign(object, next)
    return true
  }

  #delete({ id, created }: ObjectHeader): void {
    this.#deleted.set(id, created)
    const [oldest] = this.#deleted.keys()
    if (this.#deleted.size > MAX_DELETED && oldest !== undefined) this.#deleted.delete(oldest)
    if ((this.#objects.get(id)?.created ?? 0n) <= created) this.#remove(id)
  }

  /** Removes an object that turned out to be the console's own only after it was accepted, and what belongs to it. */
  #removeOwn(id: ObjectId): void {
    this.#remove(id)
    for (const part of [...(this.#parts.get(id) ?? [])]) this.#remove(part)
  }

  #remove(id: ObjectId): void {
    const object = this.#objects.get(id)
    if (object === undefined) return
    const { agent, className, owners, propertyBytes, statisticBytes } = object
    this.#objects.delete(id)
    this.#bytes -= propertyBytes + statisticBytes
    const classes = this.#byAgent.get(agent)
    if (classes !== undefined) removeFrom(classes, className, id)
    if (classes?.size === 0) this.#byAgent.delete(agent)
    for (const owner of owners) removeFrom(this.#parts, owner, id)
    this.#options.gone(id)
  }
}

function addTo(sets: Map<string, Set<ObjectId>>, key: string, id: ObjectId): void {
  sets.set(key, (sets.get(key) ?? new Set()).add(id))
}

function removeFrom(sets: Map<string, Set<ObjectId>>, key: string, id: ObjectId): void {
  const ids = sets.get(key)
  ids?.delete(id)
  if (ids?.size === 0) sets.delete(key)
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

  /** `learned`: the objects that turned out to be the console's own, this one perhaps among them. */
  classify(
    id: ObjectId,
    schema: TableSchema,
    properties: Properties,
  ): { readonly isOwn: boolean; readonly learned: readonly ObjectId[] } {
    if (ownersOf(schema, properties).some((owner) => this.#ids.has(owner))) this.#addPart(id)
    if (schema.key.className === 'connection' && this.#ids.has(id)) {
      this.#address = itemValue(schema.properties, properties, 'address')
    }
    const own = this.has(id) ? [] : this.#ownOf(id, schema, properties)
    const learned = own.filter((one) => this.#learn(one))
    return { isOwn: this.has(id), learned }
  }

  isOwnEvent({ key, arguments: items }: EventSchema, values: Statistics): boolean {
    if (key.packageName !== BROKER_PACKAGE) return false
    if (this.#isOwnQueue(itemValue(items, values, 'qName'))) return true
    if (this.#address === undefined || !connectionEvents.includes(key.className)) return false
    return itemValue(items, values, 'rhost') === this.#address
  }

  /** The console's own objects, as far as this one tells. */
  #ownOf(id: ObjectId, schema: TableSchema, properties: Properties): readonly ObjectId[] {
    if (schema.key.packageName !== BROKER_PACKAGE) return []
    const property = (name: string): QmfValue | undefined => itemValue(schema.properties, properties, name)
    if (schema.key.className === 'queue') return this.#isOwnQueue(property('name')) ? [id] : []
    if (schema.key.className !== 'session') return []
    if (!this.#isOwnSession(property('name')) && !this.#isOwnSession(property('fullName'))) return []
    const connection = property('connectionRef')
    return typeof connection === 'string' ? [id, connection] : [id]
  }

  /** Returns whether it is new. A connection has one of each; so beyond the limit something else has their names. */
  #learn(id: ObjectId): boolean {
    if (this.#ids.has(id) || this.#ids.size >= MAX_OWN || id.length > MAX_OWN_ID) return false
    this.#ids.add(id)
    return true
  }

  /** Bindings come and go with what is wanted, and without broadcasts their end is never reported. */
  #addPart(id: ObjectId): void {
    if (this.#parts.size >= MAX_OWN_PARTS) this.#parts.clear()
    if (id.length <= MAX_OWN_ID) this.#parts.add(id)
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
