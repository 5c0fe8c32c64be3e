/** Both recordings through a whole server: each schema and each value as the independent consoles understood them. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { args, str, type } from '../../../support/bytes.ts'
import { ScriptedBroker } from '../../../support/qmf/broker.ts'
import { capturedConclusions } from '../../../support/qmf/capture.ts'
import { decoded } from '../../../support/records.ts'
import { QmfServer } from './server.ts'

type Facts = Readonly<Record<string, unknown>>
interface Item {
  readonly name: string
  readonly type: number
  readonly unit?: string
  readonly desc?: string
  readonly dir?: string
}
interface Method {
  readonly name: string
  readonly desc?: string
  readonly arguments: readonly Item[]
}
interface RecordedSchema {
  readonly cls: string
  readonly properties: readonly Item[]
  readonly statistics: readonly Item[]
  readonly methods: readonly Method[]
  readonly arguments: readonly Item[]
}
interface RecordedObject {
  readonly id: string
  readonly values: Facts
}

const metricOf = (cls: string) => `qmf.${cls.split(':').slice(0, 2).join('.')}`
const isEvent = ({ cls }: RecordedSchema) => cls.includes(':_event(')

/** The codes of types as the page of QMF has them. */
function typeOf(code: number): number {
  if (code <= 3) return type.uint32
  if (code === 4 || code === 9) return type.uint64
  if (code === 8 || code === 19) return type.int64
  if (code === 11) return type.boolean
  if (code === 12 || code === 13) return type.double
  if (code >= 16 && code <= 18) return type.int32
  return type.string
}

class Recorded {
  readonly schemas: readonly RecordedSchema[]
  /** By class, as they were answered first. */
  readonly objects = new Map<string, Map<string, RecordedObject>>()

  constructor(version: 1 | 2) {
    const all = capturedConclusions(version === 1 ? undefined : 'v2-console') as unknown as Record<string, never>[]
    this.schemas = all.filter(({ kind }) => kind === 'schema') as unknown as RecordedSchema[]
    let answering = ''
    for (const one of all.filter(({ kind }) => kind === 'get')) {
      const cls = String(one['cls'])
      if (!cls.startsWith('org.apache.qpid.')) continue
      // A class may have been asked for again, or by a single id.
      const answer = `${cls} ${one['cid']}`
      if (answer !== answering && this.objects.has(cls)) continue
      answering = answer
      const id = version === 1 ? String(one['objectId']) : String(Object(one['objectId'])._object_name)
      const values = version === 1 ? { ...Object(one['properties']), ...Object(one['statistics']) } : one['values']!
      const objects = this.objects.get(cls) ?? new Map<string, RecordedObject>()
      this.objects.set(cls, objects)
      if (!objects.has(id)) objects.set(id, { id, values })
    }
  }

  /** What a consumer is to see of a value. */
  shown({ name, type: code }: Item, { values }: RecordedObject): unknown {
    const [key] = [name, name.replace(/Samples$/, 'Count').replace(/Average$/, 'Avg')].filter((one) => one in values)
    const value = key === undefined ? undefined : values[key]
    if (value === undefined || value === null) return null
    if (code !== 10) return value
    const id = typeof value === 'string' ? value : String((value as Facts)['_object_name'])
    const [named] = [...this.objects.values()].flatMap((objects) => objects.get(id) ?? [])
    return named?.values['name'] || named?.values['address'] || named?.values['systemId'] || id
  }
}

describe.each([1, 2] as const)('the recording of QMF v%i', (version) => {
  const recorded = new Recorded(version)
  let broker: ScriptedBroker
  let server: QmfServer

  beforeEach(async () => {
    broker = await ScriptedBroker.listen()
    broker.speaksMaps = version === 2
    server = await QmfServer.start({ b1: broker.port }, `version = ${version}`)
    await server.up()
  })
  afterEach(async () => {
    await server.stop()
    await broker.close()
  })

  it('has every class and event with all that the schemas say', () => {
    const [sensor] = server.producer.server.parts.hub.sensors.filter(({ family }) => family === 'qmf.')
    const metrics = [...sensor!.metrics()].filter(({ name }) => name !== 'qmf.broker.up')
    const ours = new Map(metrics.map(({ name, type, unit, description }) => [name, { type, unit, description }]))
    const expected = new Map<string, unknown>()
    for (const schema of recorded.schemas) {
      const metric = metricOf(schema.cls)
      if (isEvent(schema)) {
        const description = `Event of ${schema.cls.split(':')[0]}`
        expected.set(metric, { type: type.rec, unit: '', description })
      }
      for (const item of isEvent(schema) ? [] : [...schema.properties, ...schema.statistics]) {
        const unit = item.type === 8 || item.type === 9 ? 'ns' : (item.unit ?? '')
        expected.set(`${metric}.${item.name}`, { type: typeOf(item.type), unit, description: item.desc ?? '' })
      }
    }
    expect(expected.size).toBeGreaterThan(200)
    expect(ours).toEqual(expected)
  })

  it('has every value of every object', async () => {
    let compared = 0
    for (const [cls, objects] of recorded.objects) {
      const schema = recorded.schemas.find((one) => one.cls === cls)!
      const items = [...schema.properties, ...schema.statistics]
      for (const object of objects.values()) {
        const list = args(['object', type.string, str(object.id)])
        const records = decoded(await server.root.query(`${metricOf(cls)}.*`, list)) as {
          name: string
          value: unknown
        }[]
        const ours = new Map(records.map(({ name, value }) => [name.slice(metricOf(cls).length + 1), value]))
        const expected = new Map(items.map((item) => [item.name, recorded.shown(item, object)]))
        const plain = items.map((item): [string, unknown] => {
          const value = ours.get(item.name)
          if (item.type === 15 || item.type === 21) return [item.name, JSON.parse(String(value))]
          return [item.name, typeof value === 'bigint' ? Number(value) : value]
        })
        expect([object.id, new Map(plain)]).toEqual([object.id, expected])
        compared += items.length
      }
    }
    expect(compared).toBeGreaterThan(300)
  })

  it('has each binding under its name of v2 too', async () => {
    const [cls, bindings] = [...recorded.objects].find(([name]) => name.includes(':binding:'))!
    const schema = recorded.schemas.find((one) => one.cls === cls)!
    const item = (name: string) => schema.properties.find((one) => one.name === name)!
    const names: string[] = []
    for (const binding of bindings.values()) {
      const [exchange, queue, key] = ['exchangeRef', 'queueRef', 'bindingKey'].map((name) =>
        recorded.shown(item(name), binding),
      )
      // The default exchange has no name, and is shown by its object id.
      if (/^[\d-]+$|:exchange:$/.test(String(exchange))) continue
      const at = 'org.apache.qpid.broker'
      const name = `${at}:binding:${at}:exchange:${exchange},${at}:queue:${queue},${key}`
      const list = args(['object', type.string, str(name)])
      const value = decoded(await server.root.query(`${metricOf(cls)}.bindingKey`, list))
      expect([name, value]).toEqual([name, [expect.objectContaining({ value: key })]])
      names.push(name)
    }
    expect(names.length).toBeGreaterThan(1)
  })
})
