/** Brokers over real sockets, and consumers through the whole server: logins, values, events, what is lost and comes back. */
import { rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { SensorStatus } from '../../../../server/kernel/metrics/metric.ts'
import { loadConfig } from '../../../../server/start/config.ts'
import { args, command, str, type } from '../../../support/bytes.ts'
import { Authority, OperatorDirectory } from '../../../support/certificates.ts'
import { TestProducer } from '../../../support/producer.ts'
import { decoded, type Json } from '../../../support/records.ts'
import type { Seat } from '../../../support/seat.ts'
import { LoopbackBroker } from './loopback-broker.ts'
import { recordedBroadcasts } from './recorded.ts'

const PACKAGE = 'qmf.org.apache.qpid.broker'
const DEPTH = `${PACKAGE}.queue.msgDepth`
const DECLARED = `${PACKAGE}.queueDeclare`
const NO_SUCH_METRIC = 7
const UNSUPPORTED = 12

let broker: LoopbackBroker
let producer: TestProducer
let root: Seat

async function start(more = '', url = `amqp://127.0.0.1:${broker.port}`): Promise<void> {
  const text = `[[qmf]]\nname = "b1"\nurl = "${url}"\nversion = 1\n${more}`
  const { qmf } = loadConfig({ file: 'c.toml', env: {}, readFile: () => new TextEncoder().encode(text) })
  producer = await TestProducer.start({ config: { qmf } })
  await producer.addUser('root', { role: 'admin' })
  root = await producer.seat('root')
}

function status(): SensorStatus {
  const all = producer.server.parts.hub.sensors.map((sensor) => sensor.status?.())
  return all.find((one) => one?.name === 'qmf') as SensorStatus
}

async function until(is: () => boolean): Promise<void> {
  while (!is()) await new Promise((resolve) => setImmediate(resolve))
}
const up = () => until(() => status().counters['brokersUp'] === 1)
const down = () => until(() => status().detail.includes('waiting'))

/** What was broadcast to these keys, in order. */
function broadcast(prefix: string): void {
  for (const { routingKey, body } of recordedBroadcasts) {
    if (routingKey.startsWith(prefix)) broker.broadcast(routingKey, body)
  }
}

async function subscribe(metric: string, ...list: (readonly [string, string])[]): Promise<number> {
  const id = await root.collect(metric, args(...list.map(([name, value]) => [name, type.string, str(value)] as const)))
  await root.ok((seq) => command.subscribe(seq, id))
  return id
}

beforeEach(async () => {
  broker = await LoopbackBroker.listen()
})
afterEach(async () => {
  await producer.stop()
  await broker.close()
})

describe('a consumer', () => {
  it('gets the values of every object, in order, and what is wanted is bound', async () => {
    await start()
    await up()
    expect(broker.logins).toEqual(['ANONYMOUS '])
    const id = await subscribe(DEPTH)
    await until(() => broker.asked.includes('bind console.obj.*.*.org.apache.qpid.broker.queue'))
    broadcast('console.obj.1.0.org.apache.qpid.broker.queue')
    const value = await root.value()
    expect(value.metric).toBe(id)
    expect(decoded(value)).toMatchObject({ broker: 'b1', value: expect.any(Number) })
    await root.ok((seq) => command.stop(seq, id))
    await until(() => broker.asked.includes('unbind console.obj.*.*.org.apache.qpid.broker.queue'))
  })

  it('gets events with their severity, at their time; GET of one gives nothing, QUERY is unsupported', async () => {
    await start()
    await up()
    const id = await subscribe(DECLARED, ['broker', 'b1'])
    broadcast('console.event')
    const value = await root.value()
    expect([value.metric, value.time]).toEqual([id, 1_795_218_239_549_189])
    expect(decoded(value)).toMatchObject({ qName: 'cinnabar-q', disp: 'created', severity: 'info' })
    await root.ok((seq) => command.get(seq, id))
    expect((await root.ask((seq) => command.query(seq, DECLARED))).status).toBe(UNSUPPORTED)
    expect(root.rest()).toEqual([])
  })

  it('may ask for any name before the schemas are known, and only for those that there are afterwards', async () => {
    broker.isDeaf = true
    await start()
    const early = await subscribe('qmf.no.such.thing')
    const event = await subscribe(DECLARED, ['broker', 'b*'])
    await until(() => broker.connections === 1)
    broker.isDeaf = false
    broker.kick()
    await down()
    producer.clock.advance(1_000)
    await up()
    expect((await root.ask((seq) => command.collect(seq, 'qmf.no.such.thing'))).status).toBe(NO_SUCH_METRIC)
    await root.ok((seq) => command.get(seq, event))
    await root.ok((seq) => command.stop(seq, early))
    broadcast('console.event')
    expect(decoded(await root.value())).toMatchObject({ broker: 'b1', value: { qName: 'cinnabar-q' } })
  })

  it('gets VOID when the broker goes, but not for events; ids continue, also over a restart', async () => {
    await start()
    await up()
    await root.setChannel(await root.defChannel())
    const depth = await subscribe(DEPTH, ['broker', 'b1'], ['object', '0-1-1-0-83'])
    const declared = await subscribe(DECLARED)
    const isUp = await subscribe('qmf.broker.up', ['broker', 'b1'])
    expect((await root.values(2)).map((value) => decoded(value))).toEqual([0, true])
    broker.kick()
    const [one, two] = await root.values(2)
    expect([one, two].map((value) => [value?.metric, value?.type]).sort()).toEqual(
      [
        [depth, type.void],
        [isUp, type.boolean],
      ].sort(),
    )
    await down()
    producer.clock.advance(1_000)
    await up()
    expect((await root.values(2)).map((value) => [value.metric, decoded(value)])).toEqual([
      [depth, 0],
      [isUp, true],
    ])
    broadcast('console.event')
    expect((await root.value()).metric).toBe(declared)
    producer = await producer.restart()
    await up()
    await until(() => broker.asked.filter((one) => /^bind .*queueDeclare$/.test(one)).length === 3)
  })

  it('of a pattern gets all objects of a class at once', async () => {
    await start()
    await up()
    const list = decoded(await root.query(`${PACKAGE}.vhost.*`)) as Json[]
    expect(list).toContainEqual({
      name: `${PACKAGE}.vhost.name`,
      broker: 'b1',
      object: '/',
      time: expect.anything(),
      value: '/',
    })
    const [vhost] = decoded(await root.query(`${PACKAGE}.vhost.federationTag`)) as Json[]
    expect(vhost).toMatchObject({ broker: 'b1', object: '/' })
  })

  it('asks a fenced sensor for nothing', async () => {
    await start()
    await up()
    await subscribe(DECLARED)
    const topic = 'console.event.*.*.org.apache.qpid.broker.queueDeclare'
    await until(() => broker.asked.includes(`bind ${topic}`))
    await root.execute('sensor.fence', ['sensor', type.string, str('qmf')])
    await until(() => broker.asked.includes(`unbind ${topic}`))
    await root.execute('sensor.resume', ['sensor', type.string, str('qmf')])
    await until(() => broker.asked.filter((one) => one === `bind ${topic}`).length === 2)
    expect(root.rest()).toEqual([])
  })
})

describe('a login', () => {
  it('is PLAIN where the URL has a user, and its password is shown nowhere', async () => {
    broker.refusal = 'no hunter2 here'
    await start('', `amqp://guest:hunter2@127.0.0.1:${broker.port}`)
    await down()
    expect(broker.logins).toEqual(['PLAIN .guest.hunter2'])
    expect(status()).toMatchObject({ state: 'failed', detail: expect.stringMatching(/^b1: waiting, .*no \*\*\* here/) })
    expect(producer.logged.join()).not.toContain('hunter2')
  })

  it('may have its password in a file, which is read at each attempt', async () => {
    const path = join(tmpdir(), `cinnabar-qmf-${process.pid}`)
    await start(`password_file = "${path}"`, `amqp://guest@127.0.0.1:${broker.port}`)
    await down()
    expect(status().detail).toContain('the password file cannot be read: ENOENT')
    writeFileSync(path, 'hunter3\n')
    producer.clock.advance(1_000)
    await up()
    expect(broker.logins).toEqual(['PLAIN .guest.hunter3'])
    rmSync(path)
  })
})

describe('amqps', () => {
  it('takes a broker whose certificate names it and is signed by `ca`, and no other, whatever the environment', async () => {
    vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0')
    await broker.close()
    const authority = await Authority.make()
    broker = await LoopbackBroker.listen(await authority.server())
    const directory = new OperatorDirectory()
    const ca = directory.write('ca.pem', (await Authority.make()).cert)
    await start(`ca = "${ca}"`, `amqps://127.0.0.1:${broker.port}`)
    await down()
    expect([status().detail, broker.logins]).toEqual([expect.stringContaining('certificate'), []])
    directory.write('ca.pem', authority.cert)
    producer.clock.advance(1_000)
    await up()
    directory.remove()
    vi.unstubAllEnvs()
  })
})

describe('a client certificate', () => {
  it('is the login, by EXTERNAL, and is read at each attempt', async () => {
    await broker.close()
    const authority = await Authority.make()
    broker = await LoopbackBroker.listen(await authority.server(), authority.cert)
    const directory = new OperatorDirectory()
    const [mine, others] = [await authority.client('monitor'), await (await Authority.make()).client('mallory')]
    const paths = {
      ca: directory.write('ca.pem', authority.cert),
      cert: directory.write('cert.pem', others.cert),
      key: directory.write('key.pem', others.key),
    }
    const keys = Object.entries(paths).map(([key, path]) => `${key} = "${path}"\n`)
    await start(keys.join(''), `amqps://127.0.0.1:${broker.port}`)
    await down()
    expect(broker.logins).toEqual([])
    directory.write('cert.pem', mine.cert)
    directory.write('key.pem', mine.key)
    producer.clock.advance(1_000)
    await up()
    expect(broker.logins).toEqual(['EXTERNAL monitor'])
    directory.remove()
  })
})

describe('a broker that is not there', () => {
  it('is tried again, later each time', async () => {
    broker.refusal = 'no'
    await start()
    for (let attempt = 1; attempt <= 5; attempt++) {
      await until(() => broker.logins.length === attempt)
      await down()
      const longest = 500 * 2 ** attempt
      producer.clock.advance(longest / 2 - 1)
      await producer.settle()
      expect(broker.logins).toHaveLength(attempt)
      producer.clock.advance(longest / 2 + 1)
    }
  })

  it('says why', async () => {
    const url = `amqp://127.0.0.1:${broker.port}`
    await broker.close()
    await start('', url)
    await down()
    expect(status()).toMatchObject({
      state: 'failed',
      detail: expect.stringContaining('ECONNREFUSED'),
      counters: { connections: 0, brokers: 1, brokersUp: 0 },
    })
  })

  it('nor says anything, is left after ten seconds', async () => {
    broker.isDeaf = true
    await start()
    await until(() => status().counters['connections'] === 1)
    producer.clock.advance(11_000)
    await down()
    expect(status().detail).toBe('b1: waiting, no session within 10 seconds')
  })
})
