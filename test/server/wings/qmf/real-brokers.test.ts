/** Brokers as operators run them: with access control, other consoles, pauses, and without broadcasts. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { args, command, str, type } from '../../../support/bytes.ts'
import { eventually } from '../../../support/eventually.ts'
import { ScriptedBroker } from '../../../support/qmf/broker.ts'
import { message, sampledLater } from '../../../support/qmf/recording.ts'
import { decoded } from '../../../support/records.ts'
import { concluded, DEPTH, PACKAGE, QmfServer } from './server.ts'

/** Of the recording: the console's two queues are there, then another queue and an exchange too. */
const THREE_QUEUES = 5_500
const HEARTBEAT = 'console.heartbeat.1.0'

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

describe('at the broker', () => {
  it('a connection shows its product, version, platform, program and process', async () => {
    await start()
    const [client] = broker.clients as [Buffer]
    const text = (name: string) => {
      const at = client.indexOf(name) + name.length + 1
      expect(client[at - 1]).toBe(0x95)
      return client.subarray(at + 2, at + 2 + client.readUInt16BE(at)).toString()
    }
    expect(text('product')).toBe('cinnabar')
    expect(text('version')).toMatch(/^\d+\.\d+/)
    expect(text('platform')).toBe(process.platform)
    expect(text('qpid.client_process')).toBe('cinnabar')
    const pid = client.indexOf('qpid.client_pid\x21') + 'qpid.client_pid\x21'.length
    expect(client.readInt32BE(pid)).toBe(process.pid)
  })
})

describe('a class that the access control of the broker refuses', () => {
  let refused: readonly string[]

  /** As qpidd: the session ends at the first one, and nothing after it is read. */
  function refuse(...classNames: readonly string[]): void {
    refused = classNames
    broker.instead = (stage, peer) => {
      const [op, className = ''] = broker.asked.at(-1)?.split(' ') ?? []
      if (stage !== 'answers' || op !== 'G' || !refused.includes(className)) return false
      const who = 'qpid.127.0.0.1:21121-127.0.0.1:38072'
      peer.refuse(403, `unauthorized-access: ACL denied QMF query of object class ${className} from ${who}`)
      return true
    }
  }
  async function upWithin(seconds: number): Promise<void> {
    for (let second = 0; server.status().counters['brokersUp'] !== 1 && second < seconds; second++) {
      await server.pass(1)
    }
    await server.up()
  }

  it('costs a connection each, and is then left out, named and counted; so it is after another connection', async () => {
    refuse('acl', 'session')
    server = await QmfServer.start({ b1: broker.port })
    await upWithin(20)
    expect(broker.connections).toBe(3)
    expect(server.status()).toMatchObject({
      detail: expect.stringContaining(', but its access control refuses queries of acl, session'),
      counters: { refusedClasses: 2 },
    })
    expect(decoded(await server.root.query(`qmf.${PACKAGE}.broker.port`))).toHaveLength(1)
    broker.takeAsked()
    broker.kick()
    await server.down('b1', '')
    await upWithin(20)
    expect(broker.connections).toBe(4)
    expect(broker.asked).toContain('G queue')
    expect(broker.asked).not.toContain('G acl')
    expect(server.status().counters['refusedClasses']).toBe(2)
  })

  it('is found soon even if it is one of many', async () => {
    refuse('session', 'queue', 'agent', 'connection', 'broker', 'vhost', 'exchange', 'memory', 'system', 'link')
    server = await QmfServer.start({ b1: broker.port })
    await upWithin(30)
    expect(broker.connections).toBe(refused.length + 1)
  })

  it('is one that was requested, and refused for that reason', async () => {
    await start()
    const [peer] = [...broker.peers]
    peer?.refuse(403, 'unauthorized-access: ACL denied QMF query of object class queue from somebody')
    await server.down('b1', 'the server refused')
    await upWithin(20)
    expect(server.status().counters['refusedClasses']).toBe(0)
  })
})

describe('what nobody has bound', () => {
  it('is requested when it is read, at most once a second, and read when the answer is there', async () => {
    await start()
    await server.pass(1)
    broker.takeAsked()
    broker.ms = THREE_QUEUES
    const queues = decoded(await server.root.query(DEPTH)) as { object: string }[]
    expect(queues.map(({ object }) => object)).toContain('cinnabar-q')
    expect(broker.takeAsked()).toEqual(['G queue'])
    await server.root.query(DEPTH)
    expect(broker.takeAsked()).toEqual([])
    await server.pass(1)
    await server.root.query(DEPTH)
    expect(broker.takeAsked()).toEqual(['G queue'])
  })

  it('is read by GET right after COLLECT when the first answer is there', async () => {
    await start()
    await server.pass(1)
    broker.takeAsked()
    broker.ms = THREE_QUEUES
    const id = await server.root.collect(DEPTH, args(['object', type.string, str('cinnabar-q')]))
    await server.root.ok((seq) => command.get(seq, id))
    expect(decoded(await server.root.value())).toEqual([{ broker: 'b1', time: expect.anything(), value: 0 }])
    expect(broker.takeAsked()).toEqual(['G queue'])
  })

  it('is read as it was last known if the broker does not answer in time', async () => {
    await start()
    await server.pass(1)
    broker.instead = (stage) => stage === 'answers'
    let answer: unknown
    void server.root.query(DEPTH).then((value) => {
      answer = decoded(value)
    })
    await eventually(() => expect(broker.asked.at(-1)).toBe('G queue'))
    expect(answer).toBeUndefined()
    await server.pass(4)
    await eventually(() => expect(answer).toHaveLength(2))
  })

  it('is not requested by readers of something else, nor at other brokers', async () => {
    await start()
    await server.pass(1)
    broker.takeAsked()
    await server.root.query('qmf.broker.up')
    await server.root.query(DEPTH, args(['broker', type.string, str('b2')]))
    expect(broker.takeAsked()).toEqual([])
  })
})

it('a queue at rest has no value before its VOID when the broker comes back', async () => {
  // Long before the clock of the test.
  broker.answers = (bodies) => bodies.map((body) => sampledLater(body, -100_000_000_000))
  await start()
  await server.subscribe(DEPTH, { broker: 'b1', object: 'topic-vm.26710.1' })
  const before = await server.root.value()
  await server.pass(60)
  broker.kick()
  const end = await server.root.value()
  await server.pass(2)
  const after = await server.root.value()
  expect([before, end, after].map((value) => decoded(value))).toEqual([0, null, 0])
  expect(before.time).toBeLessThan(end.time)
  expect(after.time).toBeGreaterThan(end.time)
})

describe('a class that others poll', () => {
  const [first] = concluded('queue').filter(({ kind }) => kind === 'get')
  const sampled = BigInt(first!['timestamps'][0])
  let isUp: number

  /** A heartbeat, that long after the first sample, which has arrived. */
  async function heartbeat(ms: number): Promise<void> {
    const time = Buffer.alloc(8)
    time.writeBigUInt64BE(sampled + BigInt(ms) * 1_000_000n)
    broker.publish(HEARTBEAT, message('h', 0, time))
    while ((await server.root.value()).metric !== isUp);
  }
  /** A minute, with a heartbeat every ten seconds; then the class is requested. */
  async function minute(): Promise<void> {
    for (let beat = 1; beat <= 6; beat++) {
      await heartbeat(beat * 10_000)
      await server.pass(10)
    }
    await eventually(() => expect(broker.takeAsked()).toContain('G queue'))
    await heartbeat(70_000)
  }
  async function startBroadcasting(): Promise<void> {
    await start()
    isUp = await server.subscribe('qmf.broker.up')
    await server.root.value()
    await heartbeat(1)
    await server.subscribe(DEPTH, { object: '*' })
    await eventually(() => expect(broker.asked.filter((one) => one === 'G queue')).toHaveLength(2))
    await server.root.values(2)
    broker.takeAsked()
  }

  it('is polled as soon as an answer has a change that was not broadcast although a heartbeat came since', async () => {
    await startBroadcasting()
    broker.answers = (bodies, { text }) =>
      bodies.map((body) => (text === 'G queue' ? sampledLater(body, 30_000) : body))
    await minute()
    await server.pass(5)
    await eventually(() => expect(broker.takeAsked()).toEqual(['G queue']))
    await server.pass(5)
    await eventually(() => expect(broker.takeAsked()).toEqual(['G queue']))
  })

  it('is not a class whose change the broker had no time to broadcast', async () => {
    await startBroadcasting()
    broker.answers = (bodies, { text }) =>
      bodies.map((body) => (text === 'G queue' ? sampledLater(body, 65_000) : body))
    await minute()
    await server.pass(9)
    expect(broker.takeAsked()).not.toContain('G queue')
  })
})

describe('a broker without broadcasts of QMF v1', () => {
  const NONE = ', but it does not broadcast by QMF v1: there are no events'

  it('is named in the detail after half a minute', async () => {
    await start()
    await server.pass(29)
    expect(server.status().detail).not.toContain(NONE)
    await server.pass(2)
    expect(server.status().detail).toContain(NONE)
  })

  it('is none that sends heartbeats', async () => {
    await start()
    for (let beat = 0; beat < 5; beat++) {
      broker.publish(HEARTBEAT, message('h', 0, Buffer.alloc(8, 1)))
      await server.pass(10)
    }
    expect(server.status().detail).not.toContain(NONE)
  })
})
