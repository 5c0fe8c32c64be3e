/**
 * Methods of brokers' objects as controls `qmf.<package>.<class>.<method>`: as many as the schemas say that there are. A
 * control stands for the method of every broker that has it; versions of it may differ in their arguments.
 */
import type { Identity } from '../../../auth/permissions.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { VOID } from '../../../protocol/monitor/value.ts'
import { QmfStatus, type SchemaMethod } from '../../../protocol/qmf/types.ts'
import { StatusError } from '../../errors.ts'
import type { Hub } from '../../metrics/hub.ts'
import type { QmfBroker } from '../../sensors/qmf/broker.ts'
import type { CallResult } from '../../sensors/qmf/console.ts'
import { fieldMetric, QMF_PREFIX } from '../../sensors/qmf/names.ts'
import { QmfSensor } from '../../sensors/qmf/sensor.ts'
import {
  type Control,
  type ControlParameter,
  type ControlResult,
  type ControlSource,
  failed,
  ok,
  type Run,
} from '../control.ts'
import {
  BROKER_PARAMETER,
  inputsOf,
  isCallable,
  OBJECT_PARAMETER,
  parameterOf,
  toArguments,
  toRecord,
} from './arguments.ts'
import { type Called, calledOn, complete, type Named } from './called.ts'

const ANSWER_MS = 30_000

const ownParameters: readonly ControlParameter[] = [
  {
    name: BROKER_PARAMETER,
    type: BasicType.STRING,
    optional: true,
    description: 'The broker, as the configuration calls it; left out: the only one that has the method.',
  },
  {
    name: OBJECT_PARAMETER,
    type: BasicType.STRING,
    optional: true,
    description:
      'On what it is called: its name or object id, one and no pattern; left out: the only one of its class.',
  },
]

/** A method, in all versions that brokers have. */
interface Versions extends Named {
  readonly versions: SchemaMethod[]
}

export class QmfControls implements ControlSource {
  readonly #hub: Pick<Hub, 'sensors'>

  constructor(hub: Pick<Hub, 'sensors'>) {
    this.#hub = hub
  }

  *of(identity: Identity): Generator<Control> {
    const sensors = this.#sensors(identity)
    for (const [name, versions] of methodsOf(sensors)) yield controlOf(name, versions, brokersOf(sensors))
  }

  find(name: string, identity: Identity): Control | undefined {
    if (!name.startsWith(QMF_PREFIX)) return undefined
    const sensors = this.#sensors(identity)
    const versions = methodsOf(sensors).get(name)
    return versions && controlOf(name, versions, brokersOf(sensors))
  }

  #sensors({ tenant }: Identity): QmfSensor[] {
    return this.#hub.sensors.filter((sensor): sensor is QmfSensor => {
      return sensor instanceof QmfSensor && sensor.owner.tenant === tenant
    })
  }
}

function brokersOf(sensors: readonly QmfSensor[]): QmfBroker[] {
  return sensors.flatMap((sensor) => [...sensor.brokers()])
}

function methodsOf(sensors: readonly QmfSensor[]): Map<string, Versions> {
  const methods = new Map<string, Versions>()
  for (const schema of sensors.flatMap((sensor) => [...sensor.schemas()])) {
    if (schema.kind !== 'table') continue
    const { packageName, className } = schema.key
    for (const method of schema.methods) {
      const name = fieldMetric(schema.key, method.name)
      if (name === undefined || !isCallable(method)) continue
      const known = methods.get(name)
      // `a.b` of `c` and `b` of `c.a` would be called the same: whichever came first has it.
      const isSame = known?.packageName === packageName && known.className === className
      if (known === undefined) methods.set(name, { packageName, className, method: method.name, versions: [method] })
      else if (isSame && known.method === method.name) known.versions.push(method)
    }
  }
  return methods
}

function controlOf(name: string, named: Versions, brokers: readonly QmfBroker[]): Control {
  return {
    name,
    description: named.versions.find(({ description }) => description)?.description ?? `Calls ${named.method}.`,
    parameters: [...ownParameters, ...parametersOf(named.versions)],
    complete: (given) => complete(brokers, named, given),
    prepare(given) {
      const called = calledOn(brokers, named, given)
      const values = toArguments(called.method, given)
      const known = new Set(inputsOf(called.method).map((argument) => parameterOf(argument).name))
      for (const parameter of parametersOf(named.versions)) {
        if (given.has(parameter.name) && !known.has(parameter.name)) {
          throw new StatusError(
            'INVALID_ARGUMENT',
            `${name} of ${called.broker.name} takes no argument ${parameter.name}`,
          )
        }
      }
      return running(called, values)
    },
  }
}

/** Of all versions; what one of them does without need not be given. */
function parametersOf(versions: readonly SchemaMethod[]): ControlParameter[] {
  const parameters = new Map<string, ControlParameter>()
  const all = versions.map((method) => inputsOf(method).map(parameterOf))
  for (const parameter of all.flat()) if (!parameters.has(parameter.name)) parameters.set(parameter.name, parameter)
  return [...parameters.values()].map((parameter) => {
    const isEverywhere = all.every((list) => list.some(({ name }) => name === parameter.name))
    return isEverywhere ? parameter : { ...parameter, optional: true, default: undefined }
  })
}

function running({ broker, object, method }: Called, values: Parameters<QmfBroker['call']>[2]): Run {
  return async (signal) => {
    if (!broker.isUp) return failed(`${broker.name} is not connected: ${broker.detail}`)
    const stopped = new Promise<'stopped'>((resolve) => {
      signal.addEventListener('abort', () => resolve('stopped'), { once: true })
    })
    const result = await Promise.race([broker.call(object, method, values, ANSWER_MS), stopped])
    return resultOf(broker.name, method, result)
  }
}

function resultOf(broker: string, method: SchemaMethod, result: CallResult | 'stopped'): ControlResult {
  const unknown = (what: string): ControlResult => {
    return { outcome: 'unknown', detail: `${what}: whether it was done cannot be known`, value: VOID }
  }
  if (result === undefined) return unknown(`the connection to ${broker} ended before an answer came`)
  if (result === 'stopped') return unknown('the producer stopped before an answer came')
  if (result === 'unreadable') return unknown(`${broker} answered what cannot be read`)
  if (result === 'full') return failed(`too many methods of ${broker} are under way: nothing was called`)
  if (result === 'timeout') {
    return { outcome: 'timeout', detail: `${broker} did not answer within ${ANSWER_MS / 1000} s`, value: VOID }
  }
  if (result.status === QmfStatus.OK) return ok(result.text, toRecord(method, result.arguments))
  return failed(result.text === '' ? `${broker} refused: status ${result.status}` : result.text)
}
