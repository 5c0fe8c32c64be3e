/**
 * The recorded broker behind a real socket and a consumer in front of the whole server: what comes out is what an
 * independent console made of the same recording.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { command, str, type, u32 } from '../../../support/bytes.ts'
import { eventually } from '../../../support/eventually.ts'
import { ScriptedBroker } from '../../../support/qmf/broker.ts'
import { capturedConclusions } from '../../../support/qmf/capture.ts'
import { broadcasts } from '../../../support/qmf/recording.ts'
import { decoded } from '../../../support/records.ts'
import { concluded, DEPTH, expected, PACKAGE, QmfServer, QUEUES } from './server.ts'

const ENQUEUED = `qmf.${PACKAGE}.queue.msgTotalEnqueues`
const EVENTS = ['bind', 'queueDeclare', 'exchangeDeclare', 'queueDelete', 'exchangeDelete']
const SEVERITY = ['emergency', 'alert', 'critical', 'error', 'warning', 'notice', 'info', 'debug']
/** Of the recording: the console's two queues are there, then another queue and an exchange too. */
const [TWO_QUEUES, THREE_QUEUES] = [4_400, 5_500]

let broker: ScriptedBroker
let server: QmfServer

beforeEach(async () => {
  broker = await ScriptedBroker.listen()
})
afterEach(async () => {
  await server.stop()
  await broker.close()
})

async function start(more = ''): Promise<void> {
  server = await QmfServer.start({ b1: broker.port }, more)
  await server.up()
}

/** The next values of a pattern of objects. */
async function values(count: number): Promise<unknown[]> {
  return (await server.root.values(count)).map((value) => {
    const { object, value: plain } = decoded(value)
    return { object, time: value.time, value: typeof plain === 'string' ? Number(plain) : plain }
  })
}

async function nothingMore(): Promise<void> {
  await server.producer.settle()
  expect(server.root.rest()).toEqual([])
}

/** Everything that is known of an event but its severity, which stands after name, hash and time. */
function severityOf(name: string): string {
  const { body } = broadcasts.find(({ routingKey }) => routingKey.endsWith(`.${name}`))!
  return SEVERITY[body[8 + 1 + PACKAGE.length + 1 + name.length + 16 + 8]!]!
}

describe('where the broker broadcasts', () => {
  it.each([DEPTH, ENQUEUED])(
    'every sample of the recording comes once, in order, after what is known: %s',
    async (metric) => {
      await start()
      await server.subscribe(metric, { object: '*' })
      await eventually(() => expect(broker.bound).toContain(QUEUES))
      const field = metric.split('.').at(-1)!
      expect(await values(2)).toEqual(expected(['get'], field).slice(0, 2))
      broker.play()
      const all = expected(['stats'], field)
      expect(all).toHaveLength(7)
      expect(await values(all.length)).toEqual(all)
      await nothingMore()
    },
  )

  it('events come as records of what they say', async () => {
    await start()
    const ids = new Map<number, string>()
    for (const name of EVENTS) ids.set(await server.subscribe(`qmf.${PACKAGE}.${name}`), name)
    await eventually(() => expect(broker.bound).toContain(`console.event.*.*.${PACKAGE}.exchangeDelete`))
    broker.play()
    const came = (await server.root.values(EVENTS.length)).map((value) => {
      const name = ids.get(value.metric)!
      return { name, time: value.time, value: decoded(value) }
    })
    const reported = EVENTS.map((name) => {
      const { arguments: list, timestamp } = concluded(name).find(({ kind }) => kind === 'event')!
      const shown = Object.entries(list).map(([key, one]) => [key, typeof one === 'object' ? JSON.stringify(one) : one])
      const value = { ...Object.fromEntries(shown), severity: severityOf(name) }
      return { name, time: Number(BigInt(timestamp) / 1000n), value: { broker: 'b1', value } }
    })
    expect(came).toEqual(reported)
    await nothingMore()
  })

  it('nothing is asked for as long as there are heartbeats, and then every interval', async () => {
    await start()
    await server.subscribe(DEPTH, { object: '*' })
    await eventually(() => expect(broker.takeAsked()).toContain('G queue'))
    const heartbeat = broadcasts.find(({ routingKey }) => routingKey.startsWith('console.heartbeat'))!
    const isUp = await server.subscribe('qmf.broker.up')
    await server.root.values(3)
    for (let second = 0; second < 50; second += 2) {
      broker.publish(heartbeat.routingKey, heartbeat.body)
      expect((await server.root.value()).metric).toBe(isUp)
      await server.pass(2)
    }
    expect(broker.takeAsked()).toEqual([])
    await server.pass(14)
    expect(new Set(broker.asked)).toContain('G queue')
  })

  it('what is deleted is VOID, once', async () => {
    broker.ms = THREE_QUEUES
    await start()
    const id = await server.subscribe(DEPTH, { broker: 'b1', object: 'cinnabar-q' })
    await eventually(() => expect(broker.bound).toContain(QUEUES))
    expect((await server.root.value()).type).not.toBe(type.void)
    broker.play()
    const last = await server.root.value()
    expect([last.metric, last.type]).toEqual([id, type.void])
    await nothingMore()
  })
})

describe('where the broker does not broadcast', () => {
  it('what is wanted is asked for every interval, and nothing else', async () => {
    await start('interval_ms = 3000')
    broker.takeAsked()
    await server.pass(10)
    expect(broker.takeAsked()).toEqual([])
    const id = await server.subscribe(DEPTH, { object: '*' })
    await eventually(() => expect(broker.takeAsked()).toEqual(['G queue']))
    await server.pass(9)
    await eventually(() => expect(broker.asked).toEqual(['G queue', 'G queue', 'G queue']))
    await server.root.ok((seq) => command.stop(seq, id))
    broker.takeAsked()
    await server.pass(9)
    expect(broker.takeAsked()).toEqual([])
  })

  it('each sample comes once; objects come and go', async () => {
    await start()
    await server.subscribe(DEPTH, { object: '*' })
    await eventually(() => expect(broker.asked.filter((one) => one === 'G queue')).toHaveLength(2))
    const all = expected(['get'], 'msgDepth')
    expect(await values(2)).toEqual(all.slice(0, 2))
    broker.ms = THREE_QUEUES
    await server.pass(5)
    expect(await values(3)).toEqual(all.slice(2))
    await server.pass(10)
    broker.answers = (bodies, { text }) => (text === 'G queue' ? bodies.map(withoutFirst) : bodies)
    await server.pass(5)
    expect(await values(1)).toMatchObject([{ object: 'cinnabar-q', value: null }])
    await nothingMore()
  })
})

/** Of several messages in a body. */
function withoutFirst(body: Buffer): Buffer {
  const second = body.indexOf('AM2g', 1)
  return second < 0 ? body : body.subarray(second)
}

it('a method is called, and its reply is a record of what it gave', async () => {
  await start()
  const given = [
    ['sequence', type.uint32, u32(1)],
    ['body', type.string, str('hello cinnabar')],
  ] as const
  const recorded = capturedConclusions().find(({ kind, name }) => kind === 'method' && name === 'echo')
  const { text: detail, out: value } = recorded as { text: string; out: unknown }
  const result = await server.root.execute(`qmf.${PACKAGE}.broker.echo`, ...given)
  expect(result).toEqual({ outcome: 'ok', detail, value })
})

it('a broker that comes again is followed on, by the same ids', async () => {
  await start()
  const depth = await server.subscribe(DEPTH, { broker: 'b1', object: 'topic-vm.26710.1' })
  const up = await server.subscribe('qmf.broker.up', { broker: 'b1' })
  await eventually(() => expect(broker.bound).toContain(QUEUES))
  await server.root.values(2)
  await broker.close()
  const gone = await server.root.values(2)
  expect(new Map(gone.map((value) => [value.metric, decoded(value)]))).toEqual(
    new Map([
      [depth, null],
      [up, false],
    ]),
  )
  await server.pass(2)
  await broker.open()
  await server.pass(4)
  await server.up()
  await eventually(() => expect(broker.bound).toContain(QUEUES))
  const back = await server.root.values(2)
  expect(back.map(({ metric }) => metric).toSorted()).toEqual([depth, up].toSorted())
  broker.play(TWO_QUEUES + 100, { isHeartbeat: false })
  expect(await server.root.value()).toMatchObject({ metric: depth, time: 1_795_218_238_729_029 })
})

it('logs in by PLAIN where there is a user', async () => {
  server = await QmfServer.start({ b1: `amqp://guest:secret%21@127.0.0.1:${broker.port}/test` })
  await server.up()
  expect(broker.logins).toEqual(['PLAIN .guest.secret!'])
  expect(broker.virtualHosts).toEqual(['test'])
})

it('sends heartbeats, and a broker that sends them is kept', async () => {
  broker.heartbeatSeconds = 120
  await start()
  const [peer] = broker.peers
  for (let minute = 0; minute < 5; minute++) {
    const before = peer!.heartbeats
    // Ten seconds is what is asked for where the broker leaves the choice; one of five is late already.
    await server.pass(6)
    await eventually(() => expect(peer!.heartbeats).toBeGreaterThan(before))
  }
  expect(broker.connections).toBe(1)
})
