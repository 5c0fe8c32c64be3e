/** A QMF sensor behind a hub that writes down what is reported to it, and brokers whose consoles say what the test says. */
import type { Value } from '../../../../protocol/monitor/value.ts'
import {
  type EventSchema,
  type ObjectHeader,
  type Properties,
  QmfType,
  type Schema,
  type SchemaProperty,
  type Statistics,
  type TableSchema,
} from '../../../../protocol/qmf/types.ts'
import type { ListeningSensor, Series, Subscription } from '../../../../server/kernel/metrics/metric.ts'
import type { QmfBroker } from '../../../../server/wings/qmf/broker.ts'
import { type QmfHub, QmfSensor } from '../../../../server/wings/qmf/sensor.ts'
import { FakeClock } from '../../../support/fake-clock.ts'

/** `born msgDepth@b1/q1`, `msgDepth@b1/q1 = 42 at 5`, `died ...`; times in microseconds after START. */
export class FakeHub implements QmfHub {
  /** Of objects that are not there yet. */
  readonly expected: Series[] = []
  readonly demand = { born: (_sensor: ListeningSensor, series: Series) => void this.expected.push(series) }
  #reported: string[] = []

  born(_sensor: ListeningSensor, series: Series): undefined {
    this.#reported.push(`born ${nameOf(series)}`)
  }

  emit(series: Series, { value }: Value, time: number): void {
    this.#reported.push(`${nameOf(series)} = ${shown(value)} at ${time - START / 1000}`)
  }

  died(series: Series): void {
    this.#reported.push(`died ${nameOf(series)}`)
    series.subscriptions.length = 0
  }

  /** What was reported since the last look. */
  news(): string[] {
    return this.#reported.splice(0)
  }
}

/** Nanoseconds since 1970 where the fake clock begins. */
export const START = 1_700_000_000_000_000_000

const shown = (value: Value['value']) => (Array.isArray(value) ? value.map((one) => one.value).join(' ') : `${value}`)
const nameOf = ({ labels: { name, broker, object } }: Series) =>
  `${name?.split('.').at(-1)}@${broker}${object === undefined ? '' : `/${object}`}`

const property = (name: string, type: QmfType = QmfType.SHORT_STRING, more: Partial<SchemaProperty> = {}) =>
  ({ name, type, access: 3, isIndex: false, isOptional: false, ...more }) satisfies SchemaProperty
export const index = (name: string, type?: QmfType) => property(name, type, { isIndex: true })

const HASH = '00112233445566778899aabbccddeeff'
export const PACKAGE = 'org.apache.qpid.broker'
export const DEPTH = `qmf.${PACKAGE}.queue.msgDepth`
export const DURABLE = `qmf.${PACKAGE}.queue.durable`
export const DELETED = `qmf.${PACKAGE}.queueDelete`

export function table(className: string, properties: readonly SchemaProperty[], more: Partial<TableSchema> = {}) {
  const key = { packageName: PACKAGE, className, hash: HASH }
  return { kind: 'table', key, properties, statistics: [], methods: [], ...more } satisfies TableSchema
}

export const queue = table(
  'queue',
  [
    index('vhostRef', QmfType.REFERENCE),
    index('name'),
    property('durable', QmfType.BOOL),
    property('arguments', QmfType.MAP),
  ],
  {
    statistics: [
      { name: 'msgDepth', type: QmfType.UINT32, unit: 'message', description: 'Current size of queue in messages' },
      { name: 'byteDepth', type: QmfType.UINT64 },
      { name: 'uptime', type: QmfType.DELTATIME },
    ],
  },
)

export const queueDelete: EventSchema = {
  kind: 'event',
  key: { packageName: PACKAGE, className: 'queueDelete', hash: HASH },
  arguments: [
    { name: 'user', type: QmfType.SHORT_STRING },
    { name: 'qName', type: QmfType.SHORT_STRING },
  ],
}

export const tap = (): Subscription => ({ framePrefix: new Uint8Array(), sink: { append() {} }, at: 0 })

export function makeSensor(...names: string[]) {
  const clock = new FakeClock()
  const hub = new FakeHub()
  const brokers = names.length > 0 ? names : ['b1']
  const sensor = new QmfSensor({ tenant: 'default', brokers, demand: hub.demand }, hub, clock)
  const connect = (name = 'b1') => new Said(sensor.broker(name) as QmfBroker)
  /** Those of a metric, or of all, by the names of their objects. */
  const series = (name?: string) => [...sensor.series(name)]
  /** The one of an object, with a tap from now on. */
  const tapped = (name: string, object?: string): Series => {
    const found = series(name).find(({ labels }) => labels.object === object)
    if (found === undefined) throw new Error(`no series of ${name}`)
    found.subscriptions.push(tap())
    found.wanted(true)
    return found
  }
  return { sensor, hub, clock, connect, series, tapped }
}

/** What the console of a broker says. */
class Said {
  readonly broker: QmfBroker
  #wanted: string[] = []

  constructor(broker: QmfBroker) {
    this.broker = broker
    broker.connected({
      want: ({ key }: Schema, isWanted: boolean) => void this.#wanted.push(`${isWanted ? '+' : '-'}${key.className}`),
      refresh: () => undefined,
      remarks: () => [],
      problemOf: () => undefined,
      call: (id, key, method, args) =>
        Promise.resolve({ status: 0, text: `${id} ${key.className}.${method.name}(${args})`, arguments: [] }),
    })
  }

  learn(...schemas: Schema[]): this {
    for (const schema of schemas) this.broker.learned(schema)
    return this
  }

  /** `ms`: when it was sampled, after START. */
  sample(schema: TableSchema, id: string, ms: number, properties?: Properties, statistics?: Statistics): void {
    const sampled = BigInt(START) + BigInt(ms) * 1_000_000n
    const header: ObjectHeader = { key: schema.key, sampled, created: 1n, deleted: 0n, id }
    this.broker.object({ header, ...(properties && { properties }), ...(statistics && { statistics }) })
  }

  queue(number: number, ms: number, depth: number, name = `q${number}`): void {
    this.sample(queue, `0-1-1-0-${number}`, ms, ['0-0-1-0-3', name, true, new Map()], [depth, 10n, 1n])
  }

  /** What was wanted of the console since it was asked last: `+queue`, `-queue`. */
  wanted(): string[] {
    return this.#wanted.splice(0)
  }
}
