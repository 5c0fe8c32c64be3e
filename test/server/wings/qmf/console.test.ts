/** Discovery, and what a broker tells: answers and broadcasts are the recorded ones wherever there are any. */
import { describe, expect, it } from 'vitest'
import { keyText, SchemaCache } from '../../../../server/wings/qmf/discovery.ts'
import { capturedConclusions } from '../../../support/qmf/capture.ts'
import { ConsolePeer, done, headerOf, queue } from './console-peer.ts'
import { recordedAnswers, recordedBroadcasts, recordedSchemas, schemaOf, tableOf } from './recorded.ts'

/** Of the recording: the console's own queues, session, connection, bindings and subscriptions. */
const OWN = [81, 82, 83, 84, 85, 86, 87, 88, 89, 90, 91].map((number) => `0-1-1-0-${number}`)
const RECORDED = 'vm.26710.1'

describe('start-up', () => {
  it('declares its queues and binds them before it asks anything', () => {
    const peer = new ConsolePeer({ session: 's1' })
    expect(peer.commands).toEqual(['start'])
    peer.open()
    expect(peer.commands.slice(1)).toEqual([
      'declare reply-s1',
      'declare topic-s1',
      'bind reply-s1 amq.direct reply-s1',
      'bind topic-s1 qpid.management schema.#',
      'bind topic-s1 qpid.management console.heartbeat.#',
      'bind topic-s1 qpid.management console.obj.*.*.org.apache.qpid.broker.agent',
      'subscribe reply-s1 rdest',
      'subscribe topic-s1 tdest',
    ])
    expect(peer.asked()).toEqual(['broker B', 'broker P'])
  })

  it('learns every recorded class once, and is ready when the objects are known', () => {
    const peer = new ConsolePeer({ session: RECORDED }).open()
    peer.serve()
    const names = peer.learned.map(({ key }) => keyText(key))
    expect(names.toSorted()).toEqual(recordedSchemas.map(({ key }) => keyText(key)).toSorted())
    expect(peer.reported).toEqual(['ready'])
    const expected = capturedConclusions().filter(({ kind }) => kind === 'get')
    const living = new Set(expected.map(({ objectId }) => objectId as string).filter((id) => !OWN.includes(id)))
    // Made by a call later than the first answer to G queue.
    living.delete('0-1-1-0-92')
    expect(new Set(peer.objects.map(({ header }) => header.id))).toEqual(living)
    expect([peer.gone, peer.counters.unexpected, peer.counters.unanswered]).toEqual([[], 0, 0])
  })

  it('puts many requests to the broker into one body', () => {
    const peer = new ConsolePeer().open()
    peer.serve()
    expect(Math.max(...peer.bodies.map((asked) => asked.length))).toBeGreaterThan(10)
    for (const asked of peer.bodies) expect(new Set(asked.map(({ to }) => to)).size).toBe(1)
  })

  it('is not ready before the last answer', () => {
    const peer = new ConsolePeer().open()
    for (let [asked] = peer.take(1); asked !== undefined; [asked] = peer.take(1)) {
      expect(peer.reported).toEqual([])
      for (const body of recordedAnswers(asked.message)) peer.deliver(body)
    }
    expect(peer.reported).toEqual(['ready'])
  })

  it('has only so many requests under way to one address', () => {
    const peer = new ConsolePeer().open()
    const underWay = () => peer.bodies.flat().filter(({ message }) => message.op === 'S').length
    for (let [asked] = peer.take(1); asked !== undefined && asked.message.op !== 'S'; [asked] = peer.take(1)) {
      for (const body of recordedAnswers(asked.message)) peer.deliver(body)
    }
    expect(underWay()).toBe(32)
    peer.tell({ op: 'z', sequence: sequenceOfFirst(peer, 'S'), code: 1, text: 'Class key not found' })
    expect(underWay()).toBe(33)
  })

  it('asks for no schema that is in the cache', () => {
    const cache = new SchemaCache()
    new ConsolePeer({ cache }).ready()
    const peer = new ConsolePeer({ cache }).open()
    peer.serve()
    expect(peer.bodies.flat().filter(({ message }) => message.op === 'S')).toEqual([])
    expect(peer.learned).toHaveLength(recordedSchemas.length)
    expect(peer.reported).toEqual(['ready'])
  })

  it('asks for packages again until they are answered', () => {
    const peer = new ConsolePeer().open()
    peer.take()
    peer.pass(10)
    expect(peer.counters.unanswered).toBe(2)
    expect(peer.asked()).toEqual(['broker P'])
  })

  it('is ready without the classes and objects that are not answered', () => {
    const peer = new ConsolePeer().open()
    peer.take()
    const sequence = sequenceOfFirst(peer, 'P')
    const x = { op: 'p', sequence, packageName: 'x' } as const
    peer.tell(x, x, done(sequence))
    expect(peer.asked()).toEqual(['broker Q x'])
    peer.pass(10)
    expect(peer.reported).toEqual(['ready'])
    expect(peer.counters.unanswered).toBe(2)
  })
})

describe('the console itself', () => {
  it('is left out of the recorded broadcasts, and of the events', () => {
    const peer = new ConsolePeer({ session: RECORDED }).ready()
    for (const schema of recordedSchemas) peer.console.want(schema, true)
    for (const { body, routingKey } of recordedBroadcasts) peer.deliver(body, { routingKey })
    const seen = new Set(peer.objects.map(({ header }) => header.id))
    expect(OWN.filter((id) => seen.has(id))).toEqual([])
    expect(seen.has('0-1-1-0-93')).toBe(true)
    expect(peer.events.map(([{ className }]) => className)).toEqual([
      'queueDeclare',
      'exchangeDeclare',
      'queueDelete',
      'exchangeDelete',
    ])
    expect(peer.reported.filter((line) => line.startsWith('heartbeat'))).toHaveLength(5)
    expect(peer.counters.unknownObjects).toBe(0)
  })

  it('is never shown for a moment, though everything is wanted at once', () => {
    const peer = new ConsolePeer({ session: RECORDED, wantsAll: true }).ready()
    expect(peer.objects.length).toBeGreaterThan(5)
    expect(peer.objects.filter(({ header }) => OWN.includes(header.id))).toEqual([])
  })

  it('is shown to a console of another name', () => {
    const peer = new ConsolePeer({ session: 'another' }).ready()
    const seen = new Set(peer.objects.map(({ header }) => header.id))
    expect(OWN.filter((id) => seen.has(id))).toEqual(OWN)
  })

  it('is recognised by a reference that was reported first', () => {
    const peer = new ConsolePeer({ session: 'me' }).ready()
    const [reference, other] = ['0-1-1-0-1000', '0-1-1-0-1001']
    const properties = ['0-0-1-0-5', reference, 'key', new Map(), undefined]
    const binding = { op: 'c', sequence: 0, header: headerOf('binding', other), properties } as const
    peer.tellAs('console.obj.1.0.org.apache.qpid.broker.binding', binding)
    expect(peer.objects.at(-1)?.header.id).toBe(other)
    const { properties: own } = queue(0, reference, 'topic-me') as Extract<ReturnType<typeof queue>, { op: 'g' }>
    peer.tell({ op: 'c', sequence: 0, header: headerOf('queue', reference), properties: own })
    expect(peer.gone).toEqual([other])
    expect(peer.objects.at(-1)?.header.id).toBe(other)
  })

  it('knows its connection by its session, and leaves out events about it', () => {
    const peer = new ConsolePeer({ session: RECORDED }).ready()
    const event = schemaOf('event', 'unsubscribe')
    const about = (rhost: string) =>
      peer.tell({ op: 'e', sequence: 0, key: event.key, time: 1n, severity: 6, arguments: [rhost, 'u', 'tdest'] })
    about('qpid.127.0.0.1:15672-127.0.0.1:38924')
    expect(peer.events).toEqual([])
    about('qpid.127.0.0.1:15672-127.0.0.1:9')
    expect(peer.events.map(([{ className }]) => className)).toEqual(['unsubscribe'])
  })
})

describe('a sample', () => {
  it('older than the last is dropped, since answers and broadcasts may pass each other, unless the clock was set', () => {
    const peer = new ConsolePeer().ready()
    const reported = peer.objects.length
    const second = 1_000_000_000n
    const sample = (seconds: bigint) => {
      const { header, properties } = queue(0, '0-1-1-0-500', 'q') as Extract<ReturnType<typeof queue>, { op: 'g' }>
      peer.tell({ op: 'c', sequence: 0, header: { ...header, sampled: seconds * second }, properties })
    }
    for (const seconds of [200n, 202n, 201n, 202n, 203n, 142n, 143n, 150n]) sample(seconds)
    const times = peer.objects.slice(reported).map(({ header }) => header.sampled / second)
    expect(times).toEqual([200n, 202n, 202n, 203n, 142n, 143n, 150n])
  })
})

describe('deletion', () => {
  it('is reported with the recorded delete times', () => {
    const peer = new ConsolePeer({ session: RECORDED }).ready()
    for (const { body, routingKey } of recordedBroadcasts) peer.deliver(body, { routingKey })
    // The queue 0-1-1-0-92 was deleted too, but told of in an answer to G alone.
    expect(peer.gone.toSorted()).toEqual(['0-1-1-0-93', '0-1-1-0-94'])
  })

  it('is not undone by an older answer that comes later, but by another object with the id', () => {
    const peer = new ConsolePeer().ready()
    peer.console.want(tableOf('queue'), true)
    const sequence = peer.take()[0]?.message.sequence ?? 0
    const { header, properties } = queue(0, '0-1-1-0-500', 'q') as Extract<ReturnType<typeof queue>, { op: 'g' }>
    peer.tell({ op: 'c', sequence: 0, header, properties })
    peer.tell({ op: 'c', sequence: 0, header: { ...header, deleted: 20n }, properties })
    expect(peer.gone).toEqual(['0-1-1-0-500'])
    const reported = peer.objects.length
    peer.tell(queue(sequence, '0-1-1-0-500', 'q'))
    expect(peer.objects).toHaveLength(reported)
    peer.tell({ op: 'c', sequence: 0, header: { ...header, created: 30n }, properties })
    expect(peer.objects).toHaveLength(reported + 1)
  })
})

describe('the end', () => {
  it('is reported once, whatever comes to an end', () => {
    const peer = new ConsolePeer().ready()
    peer.closed('320 forced')
    peer.closed('again')
    peer.console.end()
    peer.pass(20)
    expect(peer.down).toEqual(['320 forced'])
  })

  it('comes also in the middle of a body', () => {
    const peer = new ConsolePeer().ready()
    const { key } = schemaOf('event', 'queueDelete')
    const event = { op: 'e', sequence: 0, key, time: 1n, severity: 6, arguments: ['h', 'u', 'q'] } as const
    peer.onEvent = () => peer.console.end()
    peer.tell(event, event)
    expect([peer.events.length, peer.down]).toEqual([1, ['ended']])
  })

  it('follows a session that does not open', () => {
    const never = new ConsolePeer()
    never.pass(9)
    expect(never.down).toEqual([])
    never.pass(1)
    expect(never.down).toEqual(['no session within 10 seconds'])
  })

  it('is orderly when the owner wants it, and nothing is asked afterwards', () => {
    const peer = new ConsolePeer().ready()
    peer.console.end()
    expect([peer.commands, peer.down]).toEqual([['close'], ['ended']])
    peer.console.want(tableOf('queue'), true)
    peer.pass(70)
    peer.heartbeat()
    expect([peer.take(), peer.commands]).toEqual([[], ['close']])
  })
})

function sequenceOfFirst(peer: ConsolePeer, op: string): number {
  return peer.bodies.flat().find(({ message }) => message.op === op)?.message.sequence ?? 0
}
