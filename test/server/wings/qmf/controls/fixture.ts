/** Brokers of a sensor without sockets, whose consoles answer calls with what the test says; and their controls. */
import type { Identity } from '../../../../../auth/permissions.ts'
import { BasicType } from '../../../../../protocol/monitor/constants.ts'
import type { Value } from '../../../../../protocol/monitor/value.ts'
import type { ClassKey, QmfValue, Schema, TableSchema } from '../../../../../protocol/qmf/types.ts'
import type {
  Control,
  ControlContext,
  ControlResult,
  ControlRun,
} from '../../../../../server/kernel/controls/control.ts'
import { readInvocation } from '../../../../../server/kernel/controls/invocation.ts'
import { type CallResult, newCounters } from '../../../../../server/wings/qmf/console-events.ts'
import { QmfControls } from '../../../../../server/wings/qmf/controls/controls.ts'
import { QmfRequests } from '../../../../../server/wings/qmf/requests.ts'
import { QmfSensor } from '../../../../../server/wings/qmf/sensor.ts'
import { BytesWire } from '../../../../../server/wings/qmf/wire.ts'
import { schemas } from '../../../../protocol/qmf/vectors.ts'
import { FakeClock } from '../../../../support/fake-clock.ts'

export const identity = { tenant: 'default', name: 'eve', role: 'operator', userId: 7 } as Identity
const context = { identity } as ControlContext
const nobody = { born() {}, emit() {}, died() {} }
const demand = { born() {} }

/** As the real broker of the recording described it. */
export function recorded(className: string): TableSchema {
  const found = schemas.find(({ kind, key }) => kind === 'table' && key.className === className)
  if (found?.kind !== 'table') throw new Error(`the recording has no class ${className}`)
  return found
}

export interface Asked {
  readonly broker: string
  readonly object: string
  readonly method: string
  readonly args: readonly QmfValue[]
}

export class Fleet {
  readonly sensor: QmfSensor
  readonly controls: QmfControls
  readonly calls: Asked[] = []
  answer: CallResult | Promise<CallResult> = { status: 0, text: 'OK', arguments: [] }

  constructor(...brokers: string[]) {
    this.sensor = new QmfSensor({ tenant: 'default', brokers, demand }, nobody, new FakeClock())
    this.controls = new QmfControls([this.sensor])
  }

  /** A broker comes up with these classes. */
  connect(broker: string, ...classes: readonly Schema[]): void {
    const one = this.sensor.broker(broker)
    if (one === undefined) throw new Error(`no broker ${broker}`)
    const schemaOf = ({ className }: ClassKey) => classes.find(({ key }) => key.className === className)
    const wire = new BytesWire({ schema: schemaOf, method: () => undefined }, 'replies')
    const requests = new QmfRequests({ wire, send: () => {}, counters: newCounters() })
    one.connected({
      want() {},
      refresh: () => undefined,
      remarks: () => [],
      problemOf: (id, key, { name: method }, args) => {
        return requests.problemOf({ id, key, method, arguments: args })
      },
      call: (object, _key, { name: method }, args) => {
        this.calls.push({ broker, object, method, args })
        return Promise.resolve(this.answer)
      },
    })
    for (const schema of classes) one.learned(schema)
    one.ready()
  }

  /** An object whose index properties that are texts have this name. */
  object(broker: string, schema: TableSchema, id: string, name: string): void {
    const header = { key: schema.key, id, sampled: 1n, created: 1n, deleted: 0n }
    const properties = schema.properties.map(({ isIndex, type }) => {
      return isIndex && (type === 6 || type === 7) ? name : undefined
    })
    this.sensor.broker(broker)?.object({ header, properties })
  }

  control(name: string): Control {
    const found = this.controls.find(name, identity)
    if (found === undefined) throw new Error(`no control ${name}`)
    return found
  }

  /** As the executor does it: converted, completed, judged. Throws StatusError. */
  judge(name: string, args: Readonly<Record<string, string | number | boolean>>) {
    const control = this.control(name)
    const list = Object.entries(args).map(([key, value]) => {
      const isInteger = Number.isSafeInteger(value)
      const types = { string: BasicType.STRING, number: BasicType.DOUBLE, boolean: BasicType.BOOLEAN }
      const type = isInteger ? BasicType.INT64 : types[typeof value as keyof typeof types]
      return { name: key, type, value: isInteger ? BigInt(value) : value } as { name: string } & Value
    })
    const { args: given } = readInvocation(list, control)
    return { given, run: control.prepare(given, context) as ControlRun }
  }

  run(name: string, args: Readonly<Record<string, string | number | boolean>>): Promise<ControlResult> {
    return Promise.resolve(this.judge(name, args).run(new AbortController().signal))
  }
}
