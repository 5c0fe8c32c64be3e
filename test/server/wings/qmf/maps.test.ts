/** QMF v2 through a whole server, by a broker that answers and tells what was recorded. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { args, str, type, u32, u64 } from '../../../support/bytes.ts'
import { eventually } from '../../../support/eventually.ts'
import { ScriptedBroker } from '../../../support/qmf/broker.ts'
import { capturedConclusions } from '../../../support/qmf/capture.ts'
import { mapHeartbeats } from '../../../support/qmf/map-recording.ts'
import { decoded } from '../../../support/records.ts'
import { DEPTH, PACKAGE, QmfServer } from './server.ts'

const QUEUES = 'agent.ind.data.org_apache_qpid_broker.queue.#'

let broker: ScriptedBroker
let server: QmfServer

beforeEach(async () => {
  broker = await ScriptedBroker.listen()
  broker.speaksMaps = true
})
afterEach(async () => {
  await server.stop()
  await broker.close()
})

function piecesOf(bytes: Buffer): Buffer[] {
  const count = Math.ceil(bytes.length / 1_001)
  return Array.from({ length: count }, (_, at) => bytes.subarray(at * 1_001, (at + 1) * 1_001))
}

async function start(): Promise<void> {
  server = await QmfServer.start({ b1: broker.port }, 'version = 2')
  await server.up()
}

// biome-ignore lint/suspicious/noExplicitAny: as it stands in the file
const conclusions = capturedConclusions('v2-console') as any[]
const queues = conclusions.filter(({ cls, kind }) => /^(get|data)$/.test(kind) && cls.startsWith(`${PACKAGE}:queue:`))
const nameOf = ({ objectId }: { objectId: { _object_name: string } }) => objectId._object_name.split(':')[2]!
const answered = queues.filter(({ cid }) => cid === '113')
const told = queues.filter(({ kind, n }) => kind === 'data' && n > answered.at(-1).n)
const deleted = new Set(told.filter(({ timestamps }) => BigInt(timestamps[2]) !== 0n).map(nameOf))

/** Each sample of a statistic once, of objects that stay. */
function samplesOf(field: string) {
  const sampled = new Map<string, bigint>()
  return [...answered, ...told].flatMap((one) => {
    const object = nameOf(one)
    const at = BigInt(one.timestamps[0])
    if (deleted.has(object) || one.values[field] === undefined || sampled.get(object) === at) return []
    sampled.set(object, at)
    return [{ time: Number(at / 1000n), broker: 'b1', object, value: Number(one.values[field]) }]
  })
}

describe('a broker that speaks QMF v2', () => {
  it.each([
    ['whole', (bytes: Buffer) => [bytes], 65_535],
    ['in frames of 4,096 bytes and pieces of 1,001', piecesOf, 4_096],
  ])(
    'gives the values of its objects: what is there, then what it tells, each sample once; %s',
    async (_, cut, frameBytes) => {
      Object.assign(broker, { cut, frameBytes })
      await start()
      broker.mapsTold = answered.at(-1).n
      await server.subscribe(DEPTH, { object: '*' })
      await eventually(() =>
        expect(broker.boundTo('qmf.default.topic')).toContain('agent.ind.data.org_apache_qpid_broker.queue.#'),
      )
      const expected = samplesOf('msgDepth')
      expect(expected.length).toBeGreaterThan(50)
      await server.root.values(answered.length)
      broker.playMaps()
      const came = []
      const first = answered.filter((one) => !deleted.has(nameOf(one))).length
      while (came.length < expected.length - first) {
        const [value] = await server.root.values(1)
        const record = { time: value!.time, ...decoded(value!) } as { object: string; value: unknown; time: number }
        if (!deleted.has(record.object)) came.push(record)
      }
      expect(came).toEqual(expected.slice(first))
      const { counters } = server.status()
      expect(counters).toMatchObject({ malformed: 0, unknownClass: 0, unexpected: 0, connections: 1, qmf2: 0 })
    },
  )

  it('gives its events, with their severity and time, and is up with each heartbeat', async () => {
    await start()
    const metric = `qmf.${PACKAGE}.queueDeclare`
    const all = conclusions.filter(({ cls, kind }) => kind === 'event' && cls.startsWith(`${PACKAGE}:queueDeclare:`))
    expect(all.length).toBeGreaterThan(3)
    await server.subscribe(metric)
    const key = 'agent.ind.event.org_apache_qpid_broker.queueDeclare.#'
    await eventually(() => expect(broker.boundTo('qmf.default.topic')).toContain(key))
    broker.playMaps()
    const came = (await server.root.values(all.length)).map((value) => [value.time, decoded(value)])
    const expected = all.map(({ arguments: values, timestamp }) => {
      const { qName, durable } = values
      const fields = { qName, durable, severity: 'info', args: expect.any(String) }
      return [Number(BigInt(timestamp) / 1000n), { broker: 'b1', value: expect.objectContaining(fields) }]
    })
    expect(came).toEqual(expected)
    const up = await server.subscribe('qmf.broker.up')
    await server.root.value()
    broker.beatMaps()
    const { metric: id, time } = await server.root.value()
    const beat = conclusions.find(({ kind }) => kind === 'heartbeat')
    expect([id, time]).toEqual([up, Number(BigInt(beat.timestamp) / 1000n)])
    expect(server.status().detail).toContain(' by QMF v2')
  })

  it('reports the end of an object that was made while it was wanted', async () => {
    await start()
    const id = await server.subscribe(DEPTH, { object: 'again' })
    await eventually(() => expect(broker.boundTo('qmf.default.topic')).toContain(QUEUES))
    broker.playMaps()
    const came = (await server.root.values(2)).map((value) => [value.metric, decoded(value)])
    expect(came).toEqual([
      [id, { broker: 'b1', value: 0 }],
      [id, { broker: 'b1', value: null }],
    ])
  })

  it('refers to objects by name; each is found by its name and by its object id', async () => {
    await start()
    const ask = async (metric: string, object: string) => {
      return decoded(await server.root.query(`qmf.${PACKAGE}.${metric}`, args(['object', type.string, str(object)])))
    }
    const one = [{ broker: 'b1', value: '/', time: expect.any(Number) }]
    expect(await ask('queue.vhostRef', 'intake')).toEqual(one)
    expect(await ask('queue.vhostRef', `${PACKAGE}:queue:intake`)).toEqual(one)
    const id = `${PACKAGE}:binding:${PACKAGE}:exchange:telemetry,${PACKAGE}:queue:intake,plant.000.pump.#`
    const bound = [{ broker: 'b1', value: 'intake', time: expect.any(Number) }]
    expect(await ask('binding.queueRef', id)).toEqual(bound)
    expect(await ask('binding.queueRef', `plant.000.pump.#@${id}`)).toEqual(bound)
  })

  it('has each object once, though it broadcasts it by v1 too', async () => {
    await start()
    await server.subscribe(DEPTH, { object: '*' })
    await eventually(() => expect(broker.bound).toContain(`console.obj.*.*.${PACKAGE}.queue`))
    const { objects, transfers } = server.status().counters
    broker.play()
    await eventually(() => expect(server.status().counters['transfers']).toBeGreaterThan(Number(transfers)))
    await server.pass(2)
    expect(server.status().counters).toMatchObject({ objects, malformed: 0, unknownClass: 0, unknownObjects: 0 })
  })

  it('calls methods', async () => {
    await start()
    const given = [
      ['sequence', type.uint32, u32(77)],
      ['body', type.string, str('Grüße aus dem Norden')],
    ] as const
    const result = await server.root.execute(`qmf.${PACKAGE}.broker.echo`, ...given)
    expect(result).toMatchObject({ outcome: 'ok', value: { body: 'Grüße aus dem Norden', sequence: 77 } })
    expect(broker.asked).toContain('call broker echo')
  })

  it('is left without a class that its access control refuses, at the cost of one connection', async () => {
    broker.instead = (stage, peer) => {
      if (stage !== 'answers' || broker.asked.at(-1) !== 'query broker OBJECT acl') return false
      peer.refuse(403, 'unauthorized-access: ACL denied QMF query of object class acl from anonymous@QPID')
      return true
    }
    server = await QmfServer.start({ b1: broker.port }, 'version = 2')
    for (let second = 0; broker.connections < 2 && second < 20; second++) await server.pass(1)
    await server.up()
    expect(server.status()).toMatchObject({
      detail: expect.stringContaining('its access control refuses queries of acl'),
      counters: { refusedClasses: 1, connections: 2 },
    })
  })

  it('says why a method failed', async () => {
    await start()
    const control = `qmf.${PACKAGE}.broker.setLogHiresTimestamp`
    const result = await server.root.execute(control, ['logHires', type.boolean, u32(1)])
    const recorded = conclusions.find(({ kind, name }) => kind === 'method' && name === 'setLogHiresTimestamp')
    expect(result).toMatchObject({ outcome: 'failed', detail: recorded.text })
  })
})

describe('an agent that speaks v2 only', () => {
  const AGENT = 'example.org:waterworks:east-2'
  const WATER = 'org.example.water'
  const pumps = conclusions.filter(({ cid, kind }) => kind === 'get' && cid === '156')

  async function heard(): Promise<void> {
    await start()
    const before = Number(server.status().counters['objects'])
    broker.beatMaps('agent')
    await eventually(() => expect(server.status().counters['objects']).toBe(before + pumps.length))
  }
  const all = async (field: string) => {
    const records = decoded(await server.root.query(`qmf.${WATER}.pump.${field}`)) as {
      object: string
      value: unknown
    }[]
    return new Map(records.map(({ object, value }) => [object, value]))
  }
  const expected = (field: string) =>
    new Map(pumps.map((one) => [one.objectId._object_name, one.values[field] ?? null]))

  it('is asked for its classes and objects when it is heard, and its values are those that it reports', async () => {
    await heard()
    expect(pumps.length).toBeGreaterThan(10)
    for (const field of ['name', 'rpm', 'flow', 'running', 'serial']) {
      expect(await all(field)).toEqual(expected(field))
    }
    for (const field of ['limits', 'history']) {
      const ours = [...(await all(field))].map(([name, text]) => [name, JSON.parse(String(text))])
      expect(new Map(ours as [string, unknown][])).toEqual(expected(field))
    }
    const requests = broker.asked.filter((one) => one.includes(AGENT))
    expect(requests.slice(0, 2)).toEqual([
      `query ${AGENT} SCHEMA_ID`,
      expect.stringMatching(/SCHEMA (pump|overheated)$/),
    ])
    // The broker is asked for none of them, nor the agent for the broker's.
    expect(broker.asked).not.toContain('query broker OBJECT pump')
    expect(broker.asked).not.toContain(`query ${AGENT} OBJECT queue`)
    expect(server.status().counters).toMatchObject({ malformed: 0, unexpected: 0, connections: 1 })
  })

  it('sends its events', async () => {
    await heard()
    const metric = `qmf.${WATER}.overheated`
    await server.subscribe(metric)
    await eventually(() =>
      expect(broker.boundTo('qmf.default.topic')).toContain(`agent.ind.event.${WATER}.overheated.#`),
    )
    broker.playMaps()
    const recorded = conclusions.filter(({ cls, kind }) => kind === 'event' && cls.startsWith(`${WATER}:overheated`))
    expect(recorded.length).toBeGreaterThan(1)
    const came = (await server.root.values(recorded.length)).map((value) => [value.time, decoded(value)])
    const severities = ['emergency', 'alert', 'critical', 'error', 'warning', 'notice', 'info', 'debug']
    const events = recorded.map(({ arguments: values, severity, timestamp }) => {
      return [Number(BigInt(timestamp) / 1000n), { broker: 'b1', value: { ...values, severity: severities[severity] } }]
    })
    expect(came).toEqual(events)
  })

  it('is called by its own name, and its failures are given', async () => {
    await heard()
    const set = (rpm: number) => {
      const name = ['object', type.string, str('pump.0')] as const
      return server.root.execute(`qmf.${WATER}.pump.setSpeed`, name, ['rpm', type.int64, u64(rpm)])
    }
    expect(await set(1234)).toMatchObject({ outcome: 'ok', value: { before: 900 } })
    expect(broker.asked).toContain(`call ${AGENT} setSpeed`)
    const object = ['object', type.string, str(`${AGENT}:pump.0`)] as const
    const result = await server.root.execute(`qmf.${WATER}.pump.explode`, object)
    expect(result).toMatchObject({ outcome: 'failed', detail: 'no' })
  })

  it('stays for three of the intervals that it gives itself', async () => {
    await start()
    const before = Number(server.status().counters['objects'])
    const { routingKey, properties, body } = mapHeartbeats.agent
    const slow = Buffer.from(body)
    const at = slow.indexOf('_heartbeat_interval') + '_heartbeat_interval'.length
    expect([slow[at], slow.readUInt32BE(at + 1)]).toEqual([0x22, 3])
    slow.writeUInt32BE(20, at + 1)
    for (const peer of broker.peers) peer.publish('qmf.default.topic', routingKey, slow, properties)
    await eventually(() => expect(server.status().counters['objects']).toBe(before + pumps.length))
    await server.pass(50)
    expect(server.status().counters['objects']).toBe(before + pumps.length)
    await server.pass(15)
    await eventually(() => expect(server.status().counters['objects']).toBe(before))
  })

  it('is gone with its objects after three intervals without a heartbeat, and is found again', async () => {
    await heard()
    const before = Number(server.status().counters['objects'])
    await server.pass(60)
    await eventually(() => expect(server.status().counters['objects']).toBe(before - pumps.length))
    broker.takeAsked()
    broker.beatMaps('agent')
    await eventually(() => expect(server.status().counters['objects']).toBe(before))
    expect(broker.asked).toContain(`query ${AGENT} SCHEMA_ID`)
  })
})
