/**
 * What is told of objects: g to who asks (G), c and i to all, as many in a body as a broker takes.
 */
import { Bodies } from '../../../../protocol/qmf/bodies.ts'
import { encodeMessage } from '../../../../protocol/qmf/encode.ts'
import { type Known, type ObjectHeader, type QmfMessage, QmfStatus } from '../../../../protocol/qmf/types.ts'
import type { Banks, Inventory, ShownObject } from './objects.ts'
import { isOf, PACKAGE, producerSchema, schemas } from './schema.ts'
import type { Sent } from './sending.ts'

export const EXCHANGE = 'qpid.management'
const REPLY_EXCHANGE = 'amq.direct'
/** Objects that are looked at in one piece of work. */
const PIECE = 500

/** Our classes, and their one method. */
export const known: Known = {
  schema: (key) => schemas.find((schema) => isOf(schema, key)),
  method: () => producerSchema.methods[0],
}

export interface Telling {
  readonly inventory: Inventory
  readonly banks: Banks
}

/** Through amq.direct, whatever the asker named: one that is not there would cost the session. */
export function reply(routingKey: string, message: QmfMessage): Sent {
  return { to: { exchange: REPLY_EXCHANGE, routingKey }, body: encodeMessage(message, known) }
}

export function complete(sequence: number, code = 0, text = 'OK'): QmfMessage {
  return { op: 'z', sequence, code, text }
}

/** The answer to G: objects of a class, or the one of an id, and z. */
export function* answer(
  { inventory, banks }: Telling,
  { sequence, query }: Extract<QmfMessage, { op: 'G' }>,
  routingKey: string,
): Generator<Sent | undefined> {
  const className = query.get('_class')
  const id = query.get('_objectid')
  if (typeof className === 'string' && (query.get('_package') ?? PACKAGE) === PACKAGE) {
    yield* objects({ exchange: REPLY_EXCHANGE, routingKey }, inventory.of(className), (object) =>
      object.deleted === 0n ? [given(sequence, object, object.header(inventory.boot, banks))] : [],
    )
  } else if (typeof className !== 'string' && typeof id === 'string') {
    const object = inventory.find(id, banks)
    if (object !== undefined) yield reply(routingKey, given(sequence, object, object.header(inventory.boot, banks)))
  }
  const isAsked = typeof className === 'string' || typeof id === 'string'
  const refusal = complete(sequence, QmfStatus.INVALID_PARAMETER, 'neither _class nor _objectid is asked for')
  yield reply(routingKey, isAsked ? complete(sequence) : refusal)
}

/** To all: what changed since it was told last, or everything, and the end of what is gone; the heartbeat comes last. */
export function* broadcast({ inventory, banks }: Telling, isAll: boolean): Generator<Sent | undefined> {
  const at = `${banks.brokerBank}.${banks.agentBank}`
  for (const { key } of inventory.schemas) {
    const routingKey = `console.obj.${at}.${key.packageName}.${key.className}`
    yield* objects({ exchange: EXCHANGE, routingKey }, inventory.of(key.className), (object) => {
      const messages = news(object, object.header(inventory.boot, banks), isAll)
      object.told = object.row
      if (object.deleted !== 0n) inventory.forget(object)
      return messages
    })
  }
  const heartbeat: QmfMessage = { op: 'h', sequence: 0, time: inventory.now }
  yield {
    to: { exchange: EXCHANGE, routingKey: `console.heartbeat.${at}` },
    body: encodeMessage(heartbeat, known),
  }
}

function given(sequence: number, { row }: ShownObject, header: ObjectHeader): QmfMessage {
  return { op: 'g', sequence, header, ...row }
}

function news({ row, told, deleted }: ShownObject, header: ObjectHeader, isAll: boolean): QmfMessage[] {
  const { properties, statistics } = row
  const messages: QmfMessage[] = []
  const always = isAll || deleted !== 0n
  if (always || told.properties !== properties) messages.push({ op: 'c', sequence: 0, header, properties })
  if (always || told.statistics !== statistics) messages.push({ op: 'i', sequence: 0, header, statistics })
  return messages
}

function* objects(
  to: Sent['to'],
  all: Iterable<ShownObject>,
  messagesOf: (object: ShownObject) => QmfMessage[],
): Generator<Sent | undefined> {
  const bodies = new Bodies()
  let looked = 0
  for (const object of all) {
    if (++looked % PIECE === 0) yield undefined
    for (const message of messagesOf(object)) {
      const body = bodies.add(encodeMessage(message, known))
      if (body !== undefined) yield { to, body }
    }
  }
  const body = bodies.rest()
  if (body !== undefined) yield { to, body }
}
