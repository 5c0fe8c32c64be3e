/**
 * On what a method is called: one object of one broker, never more. What was left out is filled in where there is only one
 * it could be, and an object id becomes the object's name, so that rules and the audit log see on what it really runs.
 * Refusals name no objects: whoever asks may not be allowed to know of them.
 */
import type { Schema, SchemaMethod } from '../../../../protocol/qmf/types.ts'
import type { ControlArguments } from '../../../controls/control.ts'
import { StatusError } from '../../../core/errors.ts'
import type { BrokerTable, QmfBroker } from '../broker.ts'
import type { QmfObject } from '../broker-object.ts'
import { fieldMetric, QMF_PREFIX } from '../names.ts'
import { BROKER_PARAMETER, isCallable, OBJECT_PARAMETER } from './parameters.ts'

export interface Called {
  readonly broker: QmfBroker
  readonly object: QmfObject
  /** In the version that this broker has. */
  readonly method: SchemaMethod
}

/** The method of a class that a control stands for. */
export function methodOf(schema: Schema, control: string): SchemaMethod | undefined {
  const { packageName, className } = schema.key
  if (schema.kind !== 'table' || !control.startsWith(packageName, QMF_PREFIX.length)) return undefined
  const called = control.slice(QMF_PREFIX.length + packageName.length + className.length + 2)
  return schema.methods.find((method) => {
    return method.name === called && fieldMetric(schema.key, called) === control && isCallable(method)
  })
}

/** What was left out, where it can be only one. `given` is changed. */
export function complete(brokers: readonly QmfBroker[], control: string, given: Map<string, unknown>): void {
  const able = brokers.filter((broker) => tablesOf(broker, control).length > 0)
  if (!given.has(BROKER_PARAMETER) && able.length === 1) given.set(BROKER_PARAMETER, (able[0] as QmfBroker).name)
  const broker = able.find(({ name }) => name === given.get(BROKER_PARAMETER))
  if (broker === undefined) return
  const tables = tablesOf(broker, control)
  const wanted = given.get(OBJECT_PARAMETER)
  const object =
    wanted === undefined
      ? countOf(tables) === 1 && tables.flatMap(({ objects }) => [...objects.values()])[0]
      : tables.map(({ objects }) => objects.get(wanted as string)).find((found) => found !== undefined)
  if (object) given.set(OBJECT_PARAMETER, object.label)
}

/** Throws StatusError: INVALID_ARGUMENT for what names nothing, or not one thing; BUSY while the broker is not connected. */
export function calledOn(brokers: readonly QmfBroker[], control: string, given: ControlArguments): Called {
  const broker = brokerOf(brokers, control, given.get(BROKER_PARAMETER) as string | undefined)
  if (!broker.isUp) throw new StatusError('BUSY', `${broker.name} is not connected: ${broker.detail}`)
  const object = objectOf(broker, control, given.get(OBJECT_PARAMETER) as string | undefined)
  return { broker, object, method: methodOf(object.known.schema, control) as SchemaMethod }
}

function brokerOf(brokers: readonly QmfBroker[], control: string, wanted: string | undefined): QmfBroker {
  const able = brokers.filter((broker) => tablesOf(broker, control).length > 0)
  const broker = able.find(({ name }) => name === wanted)
  if (broker !== undefined) return broker
  const names = able.map(({ name }) => name).join(', ')
  if (wanted === undefined) throw new StatusError('INVALID_ARGUMENT', `name the broker: it can be ${names}`)
  throw new StatusError('INVALID_ARGUMENT', `no broker ${wanted} has this method: it can be ${names}`)
}

function objectOf(broker: QmfBroker, control: string, wanted: string | undefined): QmfObject {
  const tables = tablesOf(broker, control)
  const found = tables.flatMap(({ labels, objects }) => {
    const object = wanted === undefined ? undefined : labels.get(wanted)
    // The names are those of all versions of the class; not all of them have the method.
    return object !== undefined && objects.get(object.id) === object ? [object] : []
  })
  if (found.length === 1) return found[0] as QmfObject
  const what = wanted === undefined ? 'name the object' : `there is no one object ${wanted}`
  throw new StatusError('INVALID_ARGUMENT', `${what}: ${broker.name} has ${countOf(tables)} of its class`)
}

function tablesOf(broker: QmfBroker, control: string): BrokerTable[] {
  return [...broker.tables()].filter(({ known }) => methodOf(known.schema, control) !== undefined)
}

function countOf(tables: readonly BrokerTable[]): number {
  return tables.reduce((sum, { objects }) => sum + objects.size, 0)
}
