/**
 * The methods of brokers' objects as controls `qmf.<package>.<class>.<method>`, as many as the schemas have. A control
 * represents the method of every broker that has it; its versions may differ in their arguments. It runs on one object
 * of one broker, never on more. Refusals name no objects, since the caller may have no right to know of them.
 */
import type { Argument } from '../../../../protocol/monitor/arguments.ts'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { VOID } from '../../../../protocol/monitor/value.ts'
import { inputsOf } from '../../../../protocol/qmf/schema.ts'
import { QmfStatus, type QmfValue, type Schema, type SchemaMethod } from '../../../../protocol/qmf/types.ts'
import {
  type Control,
  type ControlArguments,
  type ControlParameter,
  type ControlResult,
  type ControlSource,
  convertArguments,
  failed,
  HIDDEN,
  ok,
} from '../../../kit/controls.ts'
import type { Identity } from '../../../kit/metrics.ts'
import { StatusError } from '../../../kit/running.ts'
import type { BrokerTable, QmfBroker } from '../broker.ts'
import { fieldMetric, QMF_PREFIX } from '../catalogue.ts'
import type { CallResult } from '../console-events.ts'
import type { QmfSensor } from '../sensor.ts'
import type { QmfObject } from '../series.ts'
import {
  BROKER_PARAMETER,
  isCallable,
  methodParameters,
  OBJECT_PARAMETER,
  parameterOf,
  shortened,
  toQmfArguments,
  toRecord,
} from './parameters.ts'

const ANSWER_TIMEOUT_MS = 30_000

const ownParameters: readonly ControlParameter[] = [
  {
    name: BROKER_PARAMETER,
    type: BasicType.STRING,
    optional: true,
    description: 'The name of the broker in the configuration; by default the only one that has the method.',
  },
  {
    name: OBJECT_PARAMETER,
    type: BasicType.STRING,
    optional: true,
    description:
      'The object on which it is called: a name or object id, not a pattern; by default the only one of its class.',
  },
]

export class QmfControls implements ControlSource {
  readonly prefix = QMF_PREFIX
  readonly tenants: readonly string[]
  readonly #sensors: readonly QmfSensor[]

  /** `sensors`: one for each tenant that has brokers. */
  constructor(sensors: readonly QmfSensor[]) {
    this.#sensors = sensors
    this.tenants = sensors.map(({ owner }) => owner.tenant)
  }

  *of(identity: Identity): Generator<Control> {
    const sensors = this.#sensorsOf(identity)
    const methods = new Map<string, SchemaMethod[]>()
    for (const schema of schemasOf(sensors)) {
      if (schema.kind !== 'table') continue
      const names = new Set(schema.methods.map((method) => fieldMetric(schema.key, method.name)))
      for (const name of names) {
        const method = name === undefined ? undefined : methodOf(schema, name)
        if (name !== undefined && method !== undefined) methods.set(name, [...(methods.get(name) ?? []), method])
      }
    }
    for (const [name, versions] of methods) yield controlOf(name, versions, brokersOf(sensors))
  }

  find(name: string, identity: Identity): Control | undefined {
    if (!name.startsWith(QMF_PREFIX)) return undefined
    const sensors = this.#sensorsOf(identity)
    const versions = schemasOf(sensors).flatMap((schema) => methodOf(schema, name) ?? [])
    return versions.length === 0 ? undefined : controlOf(name, versions, brokersOf(sensors))
  }

  #sensorsOf({ tenant }: Identity): QmfSensor[] {
    return this.#sensors.filter(({ owner }) => owner.tenant === tenant)
  }
}

function brokersOf(sensors: readonly QmfSensor[]): QmfBroker[] {
  return sensors.flatMap((sensor) => [...sensor.brokers()])
}

function schemasOf(sensors: readonly QmfSensor[]): Schema[] {
  return sensors.flatMap((sensor) => [...sensor.schemas()])
}

/** `versions`: the method in all versions of the class, at least one. */
function controlOf(name: string, versions: readonly SchemaMethod[], brokers: readonly QmfBroker[]): Control {
  const [first] = versions
  const description = versions.find(({ description }) => description)?.description ?? `Calls ${first?.name}.`
  const parameters = [...ownParameters, ...methodParameters(versions)]
  return {
    name,
    description: shortened(description),
    parameters,
    complete: (given) => completeTarget(brokers, name, given),
    prepare(given) {
      const target = targetOf(brokers, name, given)
      const { broker, object, method } = target
      // These have the types of this broker's version.
      const own = [...ownParameters, ...inputsOf(method).map(parameterOf)]
      const list = parameters.flatMap(({ name, type }) => {
        return given.has(name) ? [{ name, type, value: given.get(name) } as Argument] : []
      })
      const values = toQmfArguments(method, convertArguments(list, own, `${name} of ${broker.name}`))
      const problem = broker.problemOf(object, method, values)
      if (problem !== undefined) throw new StatusError('INVALID_ARGUMENT', problem)
      const secrets = own.filter(({ secret }) => secret).map(({ name }) => String(given.get(name) ?? ''))
      return async (signal) => withoutSecrets(await call(target, values, signal), secrets)
    },
  }
}

async function call(
  { broker, object, method }: CallTarget,
  values: readonly QmfValue[],
  signal: AbortSignal,
): Promise<ControlResult> {
  if (!broker.isUp) return failed(`${broker.name} is not connected: ${broker.detail}`)
  // Its id may be that of another object by now.
  if (!broker.has(object)) return failed(`${object.label} of ${broker.name} is gone: nothing was called`)
  let stop = (): void => {}
  const stopped = new Promise<'stopped'>((resolve) => {
    stop = () => resolve('stopped')
    signal.addEventListener('abort', stop)
  })
  try {
    return resultOf(
      broker.name,
      method,
      await Promise.race([broker.call(object, method, values, ANSWER_TIMEOUT_MS), stopped]),
    )
  } finally {
    // The signal lives as long as the producer.
    signal.removeEventListener('abort', stop)
  }
}

/** The detail goes into the audit log. */
function withoutSecrets(result: ControlResult, secrets: readonly string[]): ControlResult {
  const shown = (text: string, secret: string): string => (secret === '' ? text : text.replaceAll(secret, HIDDEN))
  return { ...result, detail: secrets.reduce(shown, result.detail) }
}

function resultOf(broker: string, method: SchemaMethod, result: CallResult | 'stopped'): ControlResult {
  const unknown = (reason: string): ControlResult => {
    return { outcome: 'unknown', detail: `${reason}: it is not known whether the method was executed`, value: VOID }
  }
  if (result === undefined) return unknown(`the connection to ${broker} ended before an answer came`)
  if (result === 'stopped') return unknown('the producer stopped before an answer came')
  if (result === 'unreadable') return unknown(`the answer of ${broker} cannot be read`)
  if (result === 'full') return failed(`too many calls to ${broker} are pending: nothing was called`)
  if (result === 'timeout') {
    return { outcome: 'timeout', detail: `${broker} did not answer within ${ANSWER_TIMEOUT_MS / 1000} s`, value: VOID }
  }
  if (result.status === QmfStatus.OK) return ok(result.text, toRecord(method, result.arguments))
  return failed(result.text === '' ? `${broker} refused: status ${result.status}` : result.text)
}

interface CallTarget {
  readonly broker: QmfBroker
  readonly object: QmfObject
  /** The version that this broker has. */
  readonly method: SchemaMethod
}

/** The method of a class that a control represents. */
function methodOf(schema: Schema, control: string): SchemaMethod | undefined {
  const { packageName, className } = schema.key
  if (schema.kind !== 'table' || !control.startsWith(packageName, QMF_PREFIX.length)) return undefined
  const name = control.slice(QMF_PREFIX.length + packageName.length + className.length + 2)
  return schema.methods.find((method) => {
    return method.name === name && fieldMetric(schema.key, name) === control && isCallable(method)
  })
}

/**
 * Adds omitted parameters if there is only one choice, and turns an object id into the object's name, so that rules and
 * the audit log see the real target. Changes `given`.
 */
function completeTarget(brokers: readonly QmfBroker[], control: string, given: Map<string, unknown>): void {
  const able = brokers.filter((broker) => tablesOf(broker, control).length > 0)
  if (!given.has(BROKER_PARAMETER) && able.length === 1) given.set(BROKER_PARAMETER, (able[0] as QmfBroker).name)
  const broker = able.find(({ name }) => name === given.get(BROKER_PARAMETER))
  if (broker === undefined) return
  const tables = tablesOf(broker, control)
  const wanted = given.get(OBJECT_PARAMETER)
  const object =
    wanted === undefined
      ? countOf(tables) === 1 && tables.flatMap(({ objects }) => [...objects.values()])[0]
      : tables.flatMap((table) => objectIn(table, wanted as string) ?? [])[0]
  if (object) given.set(OBJECT_PARAMETER, object.label)
}

/** The object of that id, which may be its name in QMF v2 too. */
function objectIn({ objects }: Pick<BrokerTable, 'objects'>, id: string): QmfObject | undefined {
  const found = objects.get(id)
  if (found !== undefined || !id.includes(':')) return found
  for (const object of objects.values()) if (object.matches((text) => text === id)) return object
  return undefined
}

/** Throws StatusError: INVALID_ARGUMENT for no object or several, BUSY while the broker is not connected. */
function targetOf(brokers: readonly QmfBroker[], control: string, given: ControlArguments): CallTarget {
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
  if (wanted === undefined) throw new StatusError('INVALID_ARGUMENT', `name the broker: one of ${names}`)
  throw new StatusError('INVALID_ARGUMENT', `broker ${wanted} does not have this method: choose one of ${names}`)
}

function objectOf(broker: QmfBroker, control: string, wanted: string | undefined): QmfObject {
  const tables = tablesOf(broker, control)
  const found = tables.flatMap(({ labels, objects }) => {
    const object = wanted === undefined ? undefined : labels.get(wanted)
    // All versions of the class share the labels, but not all of them have the method.
    return object !== undefined && objects.get(object.id) === object ? [object] : []
  })
  if (found.length === 1) return found[0] as QmfObject
  const what = wanted === undefined ? 'name the object' : `there is no object ${wanted}`
  throw new StatusError('INVALID_ARGUMENT', `${what}: ${broker.name} has ${countOf(tables)} of its class`)
}

function tablesOf(broker: QmfBroker, control: string): BrokerTable[] {
  return [...broker.tables()].filter(({ known }) => methodOf(known.schema, control) !== undefined)
}

function countOf(tables: readonly BrokerTable[]): number {
  return tables.reduce((sum, { objects }) => sum + objects.size, 0)
}
