/**
 * On what a method is called: one object of one broker, never more. What was left out is filled in where there is only one
 * it could be, and an object id becomes the object's name, so that rules and the audit log see on what it really runs.
 */
import type { SchemaMethod } from '../../../protocol/qmf/types.ts'
import { StatusError } from '../../errors.ts'
import type { QmfBroker } from '../../sensors/qmf/broker.ts'
import type { QmfObject } from '../../sensors/qmf/broker-object.ts'
import type { Given } from '../control.ts'
import { BROKER_PARAMETER, OBJECT_PARAMETER } from './arguments.ts'

/** The method of a class that a control stands for. */
export interface Named {
  readonly packageName: string
  readonly className: string
  readonly method: string
}

export interface Called {
  readonly broker: QmfBroker
  readonly object: QmfObject
  /** In the version that this broker has. */
  readonly method: SchemaMethod
}

/** What was left out, where it can be only one. `given` is changed. */
export function complete(brokers: readonly QmfBroker[], named: Named, given: Map<string, unknown>): void {
  const able = brokers.filter((broker) => hasMethod(broker, named))
  if (!given.has(BROKER_PARAMETER) && able.length === 1) given.set(BROKER_PARAMETER, (able[0] as QmfBroker).name)
  const broker = able.find(({ name }) => name === given.get(BROKER_PARAMETER))
  if (broker === undefined) return
  const wanted = given.get(OBJECT_PARAMETER)
  const objects = [...broker.objects(named)]
  const object =
    wanted === undefined ? (objects.length === 1 ? objects[0] : undefined) : objects.find(({ id }) => id === wanted)
  if (object !== undefined) given.set(OBJECT_PARAMETER, object.label)
}

/** Throws StatusError: INVALID_ARGUMENT for what names nothing, or not one thing; BUSY while the broker is not connected. */
export function calledOn(brokers: readonly QmfBroker[], named: Named, given: Given): Called {
  const broker = brokerOf(brokers, named, given.get(BROKER_PARAMETER) as string | undefined)
  if (!broker.isUp) throw new StatusError('BUSY', `${broker.name} is not connected: ${broker.detail}`)
  const object = objectOf(broker, named, given.get(OBJECT_PARAMETER) as string | undefined)
  const method = object.known.schema.methods.find(({ name }) => name === named.method)
  if (method === undefined) {
    throw new StatusError('INVALID_ARGUMENT', `${named.className} of ${broker.name} has no method ${named.method}`)
  }
  return { broker, object, method }
}

function brokerOf(brokers: readonly QmfBroker[], named: Named, wanted: string | undefined): QmfBroker {
  const able = brokers.filter((broker) => hasMethod(broker, named))
  const broker = able.find(({ name }) => name === wanted)
  if (broker !== undefined) return broker
  const names = able.map(({ name }) => name).join(', ')
  if (wanted === undefined) throw new StatusError('INVALID_ARGUMENT', `name the broker: it can be ${names}`)
  throw new StatusError('INVALID_ARGUMENT', `no broker ${wanted} has this method: it can be ${names}`)
}

function objectOf(broker: QmfBroker, named: Named, wanted: string | undefined): QmfObject {
  const all = [...broker.objects(named)]
  const object = all.find(({ label }) => label === wanted)
  if (object !== undefined) return object
  const shown = all.slice(0, 5).map(({ label }) => label)
  const there = all.length === 0 ? 'there is none' : `there are ${all.length}: ${shown.join(', ')}`
  if (wanted === undefined) {
    throw new StatusError('INVALID_ARGUMENT', `name the object: of ${named.className} ${there}`)
  }
  throw new StatusError('INVALID_ARGUMENT', `${broker.name} has no ${named.className} ${wanted}: ${there}`)
}

function hasMethod(broker: QmfBroker, { packageName, className, method }: Named): boolean {
  for (const schema of broker.schemas()) {
    const { key } = schema
    if (schema.kind !== 'table' || key.packageName !== packageName || key.className !== className) continue
    if (schema.methods.some(({ name }) => name === method)) return true
  }
  return false
}
