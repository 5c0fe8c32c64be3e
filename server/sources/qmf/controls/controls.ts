/**
 * Methods of brokers' objects as controls `qmf.<package>.<class>.<method>`: as many as the schemas say that there are. A
 * control stands for the method of every broker that has it; versions of it may differ in their arguments.
 */
import type { Identity } from '../../../../auth/permissions.ts'
import type { Argument } from '../../../../protocol/monitor/arguments.ts'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { VOID } from '../../../../protocol/monitor/value.ts'
import { QmfStatus, type QmfValue, type Schema, type SchemaMethod } from '../../../../protocol/qmf/types.ts'
import {
  type Control,
  type ControlParameter,
  type ControlResult,
  type ControlSource,
  failed,
  HIDDEN,
  ok,
} from '../../../controls/control.ts'
import { convertArguments } from '../../../metrics/arguments.ts'
import type { Hub } from '../../../metrics/hub.ts'
import type { QmfBroker } from '../broker.ts'
import type { CallResult } from '../console.ts'
import { fieldMetric, QMF_PREFIX } from '../names.ts'
import { QmfSensor } from '../sensor.ts'
import { checkFits, toArguments, toRecord } from './arguments.ts'
import { type Called, calledOn, complete, methodOf } from './called.ts'
import { BROKER_PARAMETER, inputsOf, OBJECT_PARAMETER, parameterOf, parametersOf, shortened } from './parameters.ts'

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

export class QmfControls implements ControlSource {
  readonly prefix = QMF_PREFIX
  readonly tenants: readonly string[]
  readonly #hub: Pick<Hub, 'sensors'>

  /** `tenants`: those that have brokers. */
  constructor(hub: Pick<Hub, 'sensors'>, tenants: readonly string[]) {
    this.#hub = hub
    this.tenants = tenants
  }

  *of(identity: Identity): Generator<Control> {
    const sensors = this.#sensors(identity)
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
    const sensors = this.#sensors(identity)
    const versions = schemasOf(sensors).flatMap((schema) => methodOf(schema, name) ?? [])
    return versions.length === 0 ? undefined : controlOf(name, versions, brokersOf(sensors))
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

function schemasOf(sensors: readonly QmfSensor[]): Schema[] {
  return sensors.flatMap((sensor) => [...sensor.schemas()])
}

/** `versions`: the method as the classes have it that are called so, at least one. */
function controlOf(name: string, versions: readonly SchemaMethod[], brokers: readonly QmfBroker[]): Control {
  const [first] = versions
  const description = versions.find(({ description }) => description)?.description ?? `Calls ${first?.name}.`
  const parameters = [...ownParameters, ...parametersOf(versions)]
  return {
    name,
    description: shortened(description),
    parameters,
    complete: (given) => complete(brokers, name, given),
    prepare(given) {
      const called = calledOn(brokers, name, given)
      const { broker, object, method } = called
      // Of the types that this broker's version wants.
      const own = [...ownParameters, ...inputsOf(method).map(parameterOf)]
      const list = parameters.flatMap(({ name, type }) => {
        return given.has(name) ? [{ name, type, value: given.get(name) } as Argument] : []
      })
      const values = toArguments(method, convertArguments(list, own, `${name} of ${broker.name}`))
      checkFits(object, method, values)
      const secrets = own.filter(({ secret }) => secret).map(({ name }) => String(given.get(name) ?? ''))
      return async (signal) => withoutSecrets(await call(called, values, signal), secrets)
    },
  }
}

async function call(
  { broker, object, method }: Called,
  values: readonly QmfValue[],
  signal: AbortSignal,
): Promise<ControlResult> {
  if (!broker.isUp) return failed(`${broker.name} is not connected: ${broker.detail}`)
  // Its id may be another's by now.
  if (!broker.has(object)) return failed(`${object.label} of ${broker.name} is gone: nothing was called`)
  let stop = (): void => {}
  const stopped = new Promise<'stopped'>((resolve) => {
    stop = () => resolve('stopped')
    signal.addEventListener('abort', stop)
  })
  try {
    return resultOf(broker.name, method, await Promise.race([broker.call(object, method, values, ANSWER_MS), stopped]))
  } finally {
    // The signal lives as long as the producer.
    signal.removeEventListener('abort', stop)
  }
}

/** What is said goes into the audit log. */
function withoutSecrets(result: ControlResult, secrets: readonly string[]): ControlResult {
  const shown = (text: string, secret: string): string => (secret === '' ? text : text.replaceAll(secret, HIDDEN))
  return { ...result, detail: secrets.reduce(shown, result.detail) }
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
