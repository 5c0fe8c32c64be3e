/** The agent as a console finds it, through a broker between them. */
import { beforeEach, describe, expect, it } from 'vitest'
import { BrokerAgent } from '../../../../../server/wings/qmf/agent/broker-agent.ts'
import { agentSchemas, producerSchema } from '../../../../../server/wings/qmf/agent/schema.ts'
import { Console } from '../../../../../server/wings/qmf/console.ts'
import type { ObjectSample } from '../../../../../server/wings/qmf/console-events.ts'
import { newCounters } from '../../../../../server/wings/qmf/console-events.ts'
import { SchemaCache } from '../../../../../server/wings/qmf/discovery.ts'
import { VersionChoice } from '../../../../../server/wings/qmf/version-choice.ts'
import { FakeClock } from '../../../../support/fake-clock.ts'
import { FakeProducer, Starts } from './fixture.ts'
import { MemoryBroker } from './memory-broker.ts'

class Watcher {
  readonly learned: string[] = []
  readonly objects: ObjectSample[] = []
  readonly gone: string[] = []
  readonly console: Console

  constructor(broker: MemoryBroker, clock: FakeClock) {
    this.console = new Console({
      session: 'watcher',
      choice: new VersionChoice(1),
      intervalMs: 5_000,
      cache: new SchemaCache(),
      refusedClasses: new Set(),
      counters: newCounters(),
      clock,
      connect: (events) =>
        broker.connect({
          ...events,
          delivered: (delivery) => {
            events.delivered(delivery)
            while (this.console.work());
          },
        }),
      events: {
        learned: ({ key }) => this.learned.push(`${key.packageName}.${key.className}`),
        ready: () => {},
        object: (sample) => this.objects.push(sample),
        gone: (id) => this.gone.push(id),
        event: () => {},
        heartbeat: () => {},
        down: () => {},
      },
    })
  }

  /** The newest properties of each object of a class. */
  of(className: string): Map<string, ObjectSample['properties']> {
    const found = this.objects.filter(({ header }) => header.key.className === className)
    return new Map(found.flatMap(({ header, properties }) => (properties ? [[header.id, properties]] : [])))
  }
}

let starts: Starts
let clock: FakeClock
let broker: MemoryBroker
let producer: FakeProducer
let down: string[]
beforeEach(() => {
  starts = new Starts()
  clock = new FakeClock()
  broker = new MemoryBroker()
  producer = new FakeProducer()
  down = []
})

function post(): BrokerAgent {
  return new BrokerAgent({
    broker: 'b1',
    tenant: 'default',
    label: 'n1',
    sources: producer.sources,
    state: starts.next(),
    clock,
  })
}

function open(from: BrokerAgent) {
  let link: object = {}
  const events = { attached: () => {}, down: (reason: string) => void down.push(reason) }
  const agent = from.open('agent-session', events, (amqp) => {
    const made = broker.connect(amqp)
    link = made
    return made
  })
  broker.run()
  return { agent, drop: () => broker.drop(link) }
}

/** Time goes on by so many seconds, with a tick each for all of them. */
function pass(seconds: number, ...all: { tick(nowMs: number): void }[]): void {
  for (let second = 0; second < seconds; second++) {
    clock.advance(1_000)
    for (const one of all) one.tick(clock.monotonicMs())
    broker.run()
  }
}

describe('a broker', () => {
  it('keeps the agentSchemas of the agent, by their hashes, and hands them on as they are', () => {
    open(post())
    expect(broker.packages).toContain('cinnabar')
    for (const { key } of agentSchemas)
      expect(broker.known.schema(key)).toEqual(agentSchemas.find((one) => one.key === key))
  })

  it('gives the agent the banks it had, also after a restart, and knows it by the same id', () => {
    broker.nextBank = 31
    const { drop } = open(post())
    const before = [...broker.agents]
    drop()
    broker.nextBank = 50
    open(post())
    expect(broker.agents).toMatchObject(before.map(({ link: _, ...agent }) => agent))
    expect(broker.agents).toMatchObject([{ agentBank: 31, label: 'n1' }])
  })

  it('that was restarted gets everything again', () => {
    const first = post()
    open(first)
    expect(first.status()).toMatchObject({ name: 'qmf-agent/b1', state: 'listening', detail: 'attached as 1.10' })
    first.down('the broker closed the connection')
    expect(first.status()).toMatchObject({ state: 'failed', detail: 'waiting, the broker closed the connection' })
    broker = new MemoryBroker()
    open(first)
    expect(broker.packages).toContain('cinnabar')
    expect(first.status()).toMatchObject({ state: 'listening', counters: { connections: 2, requests: 6 } })
  })
})

describe('a console', () => {
  it('lists classes and objects, follows what changes, and calls echo', async () => {
    const { agent } = open(post())
    producer.channel(17, 3n)
    const watcher = new Watcher(broker, clock)
    broker.run()
    expect(watcher.learned).toEqual(expect.arrayContaining(agentSchemas.map(({ key }) => `cinnabar.${key.className}`)))
    expect([...watcher.of('producer')]).toEqual([['0-1-1-10-1', ['n1', 'cinnabar/1', 'ok']]])
    expect([...watcher.of('channel').values()]).toEqual([[17, 'alice', true, 'connected']])

    const method = producerSchema.methods[0] as (typeof producerSchema.methods)[0]
    const reply = watcher.console.call('0-1-1-10-1', producerSchema.key, method, [7, 'hello'])
    broker.run()
    expect(await reply).toEqual({ status: 0, text: 'OK', arguments: [7, 'hello'] })

    const channelSchema = agentSchemas.find(({ key }) => key.className === 'channel')
    if (channelSchema !== undefined) watcher.console.want(channelSchema, true)
    const [channel] = producer.channels
    if (channel !== undefined) channel.queued = 42n
    watcher.objects.length = 0
    pass(11, agent, watcher.console)
    const samples = watcher.objects.filter(({ header }) => header.key.className === 'channel')
    expect(samples.at(-1)?.statistics?.[0]).toBe(42n)
    if (channel !== undefined) channel.isGone = true
    pass(11, agent, watcher.console)
    expect(watcher.gone).toContain('0-1-1-10-2')
    expect(down).toEqual([])
  })

  it('that came later gets everything by the next broadcast', () => {
    const { agent } = open(post())
    pass(25, agent)
    broker.seen.length = 0
    const watcher = new Watcher(broker, clock)
    broker.run()
    pass(10, agent, watcher.console)
    expect(broker.seen).toContain('qpid.management console.obj.1.10.cinnabar.producer c')
  })
})
