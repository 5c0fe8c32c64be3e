/**
 * The living objects of a broker: which there are, of which agent and class; their values are the sensor's. A newcomer
 * expects deletion to be told: where nothing is broadcast an object is only missing from the next answer.
 */
import type { ObjectHeader, ObjectId, Properties, TableSchema } from '../../../protocol/qmf/types.ts'
import type { QmfCounters } from './counters.ts'
import { type OwnNames, OwnObjects, ownersOf } from './own-objects.ts'
import type { ObjectSample } from './told.ts'

interface Entry {
  readonly agent: string
  readonly className: string
  readonly created: bigint
  /** Those it belongs to, as far as they decide whether it is the console's own. */
  readonly owners: readonly ObjectId[]
  /** When it was heard of last; see `mark`. */
  mark: number
  /** The latest. */
  sampled: bigint
}

export interface ObjectsOptions {
  readonly own: OwnNames
  readonly most: number
  readonly counters: QmfCounters
  readonly took: (sample: ObjectSample, schema: TableSchema) => void
  readonly gone: (id: ObjectId) => void
  /** Statistics came of an object whose properties never did: it has to be asked for. */
  readonly unknown: (agent: string, className: string) => void
}

/**
 * Answers and broadcasts come by two queues, each in its order: a sample older than the last by less is dropped. By more
 * the clock of the broker was set back.
 */
const REORDERED_NS = 60_000_000_000n

/** Deleted objects are remembered, since an older answer to G may come by another queue afterwards. */
const MOST_DELETED = 1_000

export class KnownObjects {
  readonly #options: ObjectsOptions
  readonly #own: OwnObjects
  readonly #entries = new Map<ObjectId, Entry>()
  readonly #byClass = new Map<string, Set<ObjectId>>()
  /** With the time of creation: an id may be given again. */
  readonly #deleted = new Map<ObjectId, bigint>()
  #mark = 0

  constructor(options: ObjectsOptions) {
    this.#options = options
    this.#own = new OwnObjects(options.own)
  }

  /** Whatever is heard of later has a higher one. */
  get mark(): number {
    return this.#mark
  }

  get own(): Pick<OwnObjects, 'isOwnEvent'> {
    return this.#own
  }

  has(agent: string, className: string): boolean {
    return this.#byClass.has(`${agent} ${className}`)
  }

  take(sample: ObjectSample, schema: TableSchema): void {
    const { header, properties, statistics } = sample
    if (properties !== undefined) {
      const { isOwn, learned } = this.#own.look(header.id, schema, properties)
      if (learned) this.#leaveOut()
      if (isOwn) return
    } else if (this.#own.has(header.id)) return
    if (header.deleted !== 0n) {
      // What it was worth at its end.
      const isThere = this.#entries.get(header.id)?.created === header.created
      if (isThere && statistics !== undefined) this.#options.took(sample, schema)
      this.#bury(header)
    } else if (this.#enter(header, schema, properties)) this.#options.took(sample, schema)
  }

  /** Those of a class that an agent did not name any more in an answer that began at `mark`. */
  missing(agent: string, className: string, mark: number): void {
    for (const id of [...(this.#byClass.get(`${agent} ${className}`) ?? [])]) {
      if ((this.#entries.get(id)?.mark ?? mark) <= mark) this.#remove(id)
    }
  }

  /** Everything of an agent that is no more. */
  missingAgent(agent: string): void {
    for (const [id, entry] of [...this.#entries]) if (entry.agent === agent) this.#remove(id)
  }

  #enter(
    { id, created, sampled, key }: ObjectHeader,
    schema: TableSchema,
    properties: Properties | undefined,
  ): boolean {
    const { counters, most, unknown } = this.#options
    const known = this.#entries.get(id)
    if (known !== undefined) {
      known.mark = ++this.#mark
      const isOld = sampled < known.sampled && sampled > known.sampled - REORDERED_NS
      if (!isOld) known.sampled = sampled
      return !isOld
    }
    if (this.#deleted.get(id) === created) return false
    if (this.#entries.size >= most) {
      counters.objectsFull++
      return false
    }
    if (properties === undefined) {
      counters.unknownObjects++
      unknown(agentOf(id), key.className)
      return false
    }
    const entry: Entry = {
      agent: agentOf(id),
      className: key.className,
      created,
      owners: ownersOf(schema, properties),
      mark: ++this.#mark,
      sampled,
    }
    this.#entries.set(id, entry)
    const place = `${entry.agent} ${entry.className}`
    const ids = this.#byClass.get(place) ?? new Set()
    this.#byClass.set(place, ids.add(id))
    return true
  }

  #bury({ id, created }: ObjectHeader): void {
    this.#deleted.set(id, created)
    if (this.#deleted.size > MOST_DELETED) {
      for (const oldest of this.#deleted.keys()) {
        this.#deleted.delete(oldest)
        break
      }
    }
    this.#remove(id)
  }

  /** What turned out to be the console's own after it was taken for somebody's. */
  #leaveOut(): void {
    for (const [id, { owners }] of [...this.#entries]) {
      if (this.#own.has(id) || owners.some((owner) => this.#own.has(owner))) this.#remove(id)
    }
  }

  #remove(id: ObjectId): void {
    const entry = this.#entries.get(id)
    if (entry === undefined) return
    this.#entries.delete(id)
    const place = `${entry.agent} ${entry.className}`
    const ids = this.#byClass.get(place)
    ids?.delete(id)
    if (ids?.size === 0) this.#byClass.delete(place)
    this.#options.gone(id)
  }
}

/** The banks of its agent: `1.0` of `0-0-1-0-2`. */
export function agentOf(id: ObjectId): string {
  const [, , brokerBank, agentBank] = id.split('-')
  return `${brokerBank}.${agentBank}`
}
