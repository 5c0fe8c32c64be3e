/** The agent of a whole server: what it shows of it, and to a broker over a real socket. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { decodeBody } from '../../../../../protocol/qmf/messages.ts'
import type { QmfMessage } from '../../../../../protocol/qmf/types.ts'
import type { SensorStatus } from '../../../../../server/kernel/metrics/metric.ts'
import { loadConfig } from '../../../../../server/start/config.ts'
import { agentLookup } from '../../../../../server/wings/qmf/agent/agent.ts'
import { objectSources } from '../../../../../server/wings/qmf/agent/schema.ts'
import { TestProducer } from '../../../../support/producer.ts'
import { decoded, type Json } from '../../../../support/records.ts'
import { LoopbackBroker } from '../loopback-broker.ts'

async function until(is: () => boolean): Promise<void> {
  while (!is()) await new Promise((resolve) => setImmediate(resolve))
}

describe('what is shown', () => {
  let producer: TestProducer
  beforeEach(async () => {
    producer = await TestProducer.start()
  })
  afterEach(() => producer.stop())

  function rows(tenant: string): Record<string, unknown[][]> {
    const { registry, name, software } = producer.server.parts.producer
    const stats = {
      software,
      name,
      generation: '',
      uptimeSeconds: 1.5,
      connections: 2,
      channels: 3,
      unstoredBytes: 4,
      faults: 0,
      residentBytes: 5,
      busySeconds: 1,
    }
    const shown = objectSources({
      tenant,
      stats: () => ({ ...stats, storage: 'ok' }),
      channels: () => registry.all(),
      sensors: () => producer.server.parts.hub.sensors,
    })
    return Object.fromEntries(
      shown.map((one) => {
        const read = [...one.all()].map((object) => one.read(object))
        return [one.schema.key.className, read.map((row) => [...(row?.properties ?? []), ...(row?.statistics ?? [])])]
      }),
    )
  }

  it('is the producer as producer.stats tells of it, with times in nanoseconds', () => {
    expect(rows('default')['producer']).toEqual([
      ['n1', producer.server.parts.producer.software, 'ok', 1_500_000_000n, 2n, 3n, 4n, 5n],
    ])
  })

  it('are the channels of the tenant alone, with their ledgers', async () => {
    const mine = await producer.seat('alice')
    await producer.seat('bob', 'acme')
    const id = await mine.follow('test.a')
    producer.emit(1)
    expect((await mine.value()).metric).toBe(id)
    const [channel, ...rest] = rows('default')['channel'] ?? []
    expect(rest).toEqual([])
    expect(channel?.slice(0, 4)).toEqual([expect.any(Number), 'alice', expect.any(Boolean), 'connected'])
    expect(channel?.slice(4, 9)).toEqual([0n, 1n, 1n, 0n, 0n])
    expect(rows('acme')['channel']?.map(([, owner]) => owner)).toEqual(['acme/bob'])
    expect(rows('other')['channel']).toEqual([])
  })

  it('are the sensors that the tenant may see, with their counters', () => {
    const names = (tenant: string) => rows(tenant)['sensor']?.map(([name]) => name)
    expect(names('default')).toContain('gmetric')
    expect(names('acme')).not.toContain('gmetric')
    const [, state, values, counters] = rows('default')['sensor']?.find(([name]) => name === 'gmetric') ?? []
    expect([state, values]).toEqual(['off', 0n])
    expect(counters instanceof Map && counters.get('packets')).toBe(0n)
  })
})

describe('a broker with `agent`', () => {
  let broker: LoopbackBroker
  let producer: TestProducer
  beforeEach(async () => {
    broker = await LoopbackBroker.listen()
    const text = `[[qmf]]\nname = "b1"\nurl = "amqp://127.0.0.1:${broker.port}"\nversion = 1\nagent = true`
    const { qmf } = loadConfig({ file: 'c.toml', env: {}, readFile: () => new TextEncoder().encode(text) })
    producer = await TestProducer.start({ config: { qmf } })
  })
  afterEach(async () => {
    await producer.stop()
    await broker.close()
  })

  /** What the agent sent, message by message, those of an op. */
  const reported = <Op extends QmfMessage['op']>(op: Op) =>
    broker.reported
      .flatMap(([, body]) => decodeBody(body, agentLookup).messages)
      .filter((message): message is QmfMessage & { op: Op } => message.op === op)

  async function status(): Promise<SensorStatus> {
    await producer.addUser('root', { role: 'admin' })
    const list = decoded(await (await producer.seat('root')).query('producer.sensors')) as Json[]
    return list.find((one) => (one as unknown as SensorStatus).name === 'qmf-agent/b1') as unknown as SensorStatus
  }
  const attached = (times: number) => until(() => reported('q').length === 3 * times)

  it('has the producer attached, which tells of itself and is seen in producer.sensors', async () => {
    await attached(1)
    expect(reported('A')).toMatchObject([{ label: 'n1', brokerBank: 0, agentBank: 0 }])
    expect(await status()).toMatchObject({ state: 'listening', detail: 'attached as 1.10' })
    producer.clock.advance(10_000)
    await until(() => reported('h').length > 0)
    const [one] = reported('c').filter(({ header }) => header.key.className === 'producer')
    expect(one?.properties[0]).toBe('n1')
    expect(reported('c').map(({ header }) => header.key.className)).toEqual(
      expect.arrayContaining(['channel', 'sensor']),
    )
  })

  it('has it again after the connection broke, and after a restart: as the same agent, of another boot', async () => {
    await attached(1)
    broker.kick()
    await until(() => broker.connections === 0)
    await producer.settle()
    producer.clock.advance(1_000)
    await attached(2)
    producer = await producer.restart()
    await attached(3)
    const [first, second, third] = reported('A')
    expect(second).toEqual({ ...first, brokerBank: 1, agentBank: 10 })
    expect(third).toEqual(second)
    producer.clock.advance(10_000)
    await until(() => reported('c').length > 0)
    expect(reported('c')[0]?.header.id).toBe('0-2-1-10-1')
  })
})
