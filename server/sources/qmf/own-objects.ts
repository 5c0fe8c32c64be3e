/**
 * A console sees itself in the broker: its queues, their bindings and subscriptions, its session and connection, all of
 * which change with every request. They are known by the names that only this connection has, and by the
 * references between them; objects come in any order, so a reference may be understood later than it is read.
 */
import type { EventSchema, ObjectId, Properties, QmfValue, TableSchema } from '../../../protocol/qmf/types.ts'

/** Of qpidd; classes of the same name in other packages are something else. */
export const BROKER_PACKAGE = 'org.apache.qpid.broker'

const MOST_PARTS = 10_000

export interface OwnNames {
  readonly session: string
  readonly queues: readonly string[]
}

/** Events that name a connection and nothing of what it has. */
const connectionEvents = ['clientConnect', 'clientDisconnect', 'unsubscribe']

export class OwnObjects {
  readonly #names: OwnNames
  /** Its queues, session and connection. */
  readonly #ids = new Set<ObjectId>()
  /** What belongs to them; statistics come without the references. */
  readonly #parts = new Set<ObjectId>()
  /** As events call the connection. */
  #address: QmfValue | undefined

  constructor(names: OwnNames) {
    this.#names = names
  }

  has(id: ObjectId): boolean {
    return this.#ids.has(id) || this.#parts.has(id)
  }

  /** Whether an object is the console's own. `learned`: others turned out to be so by it. */
  look(
    id: ObjectId,
    schema: TableSchema,
    properties: Properties,
  ): { readonly isOwn: boolean; readonly learned: boolean } {
    const known = this.#ids.size
    if (ownersOf(schema, properties).some((owner) => this.#ids.has(owner))) this.#addPart(id)
    else if (this.#isOwn(id, schema, properties)) this.#ids.add(id)
    return { isOwn: this.has(id), learned: this.#ids.size > known }
  }

  isOwnEvent({ key, arguments: items }: EventSchema, values: readonly QmfValue[]): boolean {
    if (key.packageName !== BROKER_PACKAGE) return false
    const given = (name: string): QmfValue | undefined => values[items.findIndex((item) => item.name === name)]
    if (this.#isOwnQueue(given('qName'))) return true
    return this.#address !== undefined && connectionEvents.includes(key.className) && given('rhost') === this.#address
  }

  #isOwn(id: ObjectId, schema: TableSchema, properties: Properties): boolean {
    if (schema.key.packageName !== BROKER_PACKAGE) return false
    const given = (name: string): QmfValue | undefined =>
      properties[schema.properties.findIndex((property) => property.name === name)]
    switch (schema.key.className) {
      case 'queue':
        return this.#isOwnQueue(given('name'))
      case 'session': {
        if (!this.#isOwnSession(given('name')) && !this.#isOwnSession(given('fullName'))) return false
        const connection = given('connectionRef')
        if (typeof connection === 'string') this.#ids.add(connection)
        return true
      }
      case 'connection':
        if (this.#ids.has(id)) this.#address = given('address')
        return this.#ids.has(id)
      default:
        return false
    }
  }

  /** Bindings come and go with what is wanted, and where nothing is broadcast nobody tells that they went. */
  #addPart(id: ObjectId): void {
    if (this.#parts.size >= MOST_PARTS) this.#parts.clear()
    this.#parts.add(id)
  }

  #isOwnQueue(name: QmfValue | undefined): boolean {
    return typeof name === 'string' && this.#names.queues.includes(name)
  }

  /** qpidd puts the user before the name: `anonymous.<name>`. */
  #isOwnSession(name: QmfValue | undefined): boolean {
    return typeof name === 'string' && (name === this.#names.session || name.endsWith(`.${this.#names.session}`))
  }
}

/** The objects that one belongs to, if it is a binding or a subscription. */
export function ownersOf(schema: TableSchema, properties: Properties): readonly ObjectId[] {
  const { packageName, className } = schema.key
  if (packageName !== BROKER_PACKAGE || (className !== 'binding' && className !== 'subscription')) return []
  return schema.properties.flatMap(({ name }, index) => {
    const value = properties[index]
    return (name === 'queueRef' || name === 'sessionRef') && typeof value === 'string' ? [value] : []
  })
}
