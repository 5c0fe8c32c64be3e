/** A broker that says too much, or what nobody asked for: it is counted, and costs a bounded amount of memory. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ClassKey, QmfMessage, Schema } from '../../../../protocol/qmf/types.ts'
import { keyText, SchemaCache } from '../../../../server/wings/qmf/discovery.ts'
import { ConsolePeer, done, headerOf, plain, queue } from './console-peer.ts'
import { recordedBroadcasts, schemaOf, tableOf } from './recorded.ts'

function keyOf(className: string, packageName = 'x'): ClassKey {
  return { packageName, className, hash: Buffer.from(className.padEnd(16)).toString('hex').slice(0, 32) }
}
function event(className: string): Schema {
  return { kind: 'event', key: keyOf(className), arguments: [] }
}

describe('what was not asked for', () => {
  it('of QMFv2 is ignored', () => {
    const peer = new ConsolePeer().ready()
    const [first] = recordedBroadcasts
    peer.deliver(first?.body as Uint8Array, { appId: 'qmf2' })
    expect([peer.counters.qmf2, peer.events.length]).toEqual([1, 0])
  })

  it('is counted and dropped: a wrong sequence, another kind, a request', () => {
    const peer = new ConsolePeer().ready()
    const reported = peer.objects.length
    peer.tell(queue(4_000, '0-1-1-0-1', 'q'))
    peer.tell(done(4_000))
    peer.tell({ op: 'B', sequence: 0 })
    peer.tell({ op: 'q', sequence: 4_000, kind: 'table', key: keyOf('c') })
    expect(peer.counters.unexpected).toBe(4)
    expect(peer.objects).toHaveLength(reported)
    expect(peer.take()).toEqual([])
  })

  it('may be a schema: another one than was asked for is not learned', () => {
    const peer = new ConsolePeer().ready()
    const learned = peer.learned.length
    peer.tell({ op: 'q', sequence: 0, kind: 'event', key: keyOf('one') })
    const sequence = peer.take()[0]?.message.sequence ?? 0
    peer.tell({ op: 's', sequence, schema: event('other') })
    expect([peer.learned.length - learned, peer.counters.unexpected]).toEqual([0, 1])
  })

  it('never throws, whatever the bytes', () => {
    const peer = new ConsolePeer().ready()
    const bodies = recordedBroadcasts.map(({ body }) => body)
    fc.assert(
      fc.property(fc.constantFrom(...bodies), fc.nat(), fc.nat(255), fc.nat(), (body, at, value, end) => {
        const bytes = Uint8Array.from(body)
        bytes[at % bytes.length] = value
        peer.deliver(bytes.subarray(0, end % (bytes.length + 1)), { routingKey: 'console.obj.1.0.x' })
      }),
    )
    expect(peer.down).toEqual([])
  })
})

describe('a class that was not known', () => {
  it('is learned when it is indicated, or a body of it comes, and asked for once', () => {
    const peer = new ConsolePeer().ready()
    const schema = event('late')
    peer.has(schema)
    const happens = () =>
      peer.tellAs('console.event.1.0.x.late', {
        op: 'e',
        sequence: 0,
        key: schema.key,
        time: 1n,
        severity: 6,
        arguments: [],
      })
    happens()
    happens()
    peer.tell({ op: 'q', sequence: 0, kind: 'event', key: schema.key })
    expect(peer.counters.unknownClass).toBe(2)
    const [asked, ...more] = peer.take()
    expect([asked?.message.op, more]).toEqual(['S', []])
    peer.tell({ op: 's', sequence: asked?.message.sequence ?? 0, schema })
    expect(peer.learned.at(-1)).toEqual(schema)
    happens()
    expect(peer.events).toHaveLength(1)
  })

  it('and the broker does not know either is asked for again in the next round, or when it is indicated', () => {
    const peer = new ConsolePeer().ready()
    const schema = event('late')
    peer.has(schema)
    const happens = () => peer.tell({ op: 'e', sequence: 0, key: schema.key, time: 1n, severity: 6, arguments: [] })
    const refuse = () => {
      const [asked] = peer.take()
      expect(asked?.message.op).toBe('S')
      peer.tell({ op: 'z', sequence: asked?.message.sequence ?? 0, code: 1, text: 'Schema not available' })
    }
    happens()
    refuse()
    happens()
    expect(peer.take()).toEqual([])
    peer.tell({ op: 'q', sequence: 0, kind: 'event', key: schema.key })
    refuse()
    happens()
    expect(peer.take()).toEqual([])
    peer.pass(60)
    peer.serve()
    happens()
    expect(peer.asked()).toEqual(['broker S late'])
  })

  it('is asked for its objects once it is learned', () => {
    const peer = new ConsolePeer().ready()
    const schema: Schema = { ...tableOf('queue'), key: { ...tableOf('queue').key, hash: 'ff'.repeat(16) } }
    peer.tell({ op: 'q', sequence: 0, kind: 'table', key: schema.key })
    peer.tell({ op: 's', sequence: peer.take()[0]?.message.sequence ?? 0, schema })
    expect(peer.asked()).toEqual(['agent.1.0 G queue'])
  })

  it('whose name is no text, and longer as such than a name may be, is not asked for', () => {
    const peer = new ConsolePeer().ready()
    const body = Buffer.concat([
      Buffer.from('AM2q\0\0\0\0\x01\x01x\xff', 'latin1'),
      Buffer.alloc(255, 0xff),
      Buffer.alloc(16),
    ])
    peer.deliver(body)
    expect([peer.take(), peer.counters.malformed]).toEqual([[], 1])
  })

  it('may be of a new package', () => {
    const peer = new ConsolePeer().ready()
    peer.tell({ op: 'p', sequence: 0, packageName: 'new' }, { op: 'p', sequence: 0, packageName: 'new' })
    expect(peer.asked()).toEqual(['broker Q new'])
  })
})

describe('a flood', () => {
  it('of objects stops at the limit', () => {
    const peer = new ConsolePeer({ limits: { objects: 30 } }).ready()
    peer.console.want(tableOf('queue'), true)
    const sequence = peer.take()[0]?.message.sequence ?? 0
    for (let i = 0; i < 100; i++) peer.tell(queue(sequence, `0-1-1-0-${1_000 + i}`, `q${i}`))
    expect(new Set(peer.objects.map(({ header }) => header.id)).size).toBe(30)
    expect(peer.counters.objectsFull).toBeGreaterThanOrEqual(70)
  })

  it('of bytes stops at the limit: an object that does not fit is left out, or ends if it was known', () => {
    const peer = new ConsolePeer({ limits: { objectBytes: 250_000 } }).ready()
    peer.console.want(tableOf('queue'), true)
    const sequence = peer.take()[0]?.message.sequence ?? 0
    const large = (id: string, length: number, sampled: bigint): QmfMessage => {
      const one = queue(sequence, id, `q${id}`, { sampled }) as Extract<QmfMessage, { op: 'g' }>
      return { ...one, properties: one.properties.with(5, new Map([['a', 'x'.repeat(length)]])) }
    }
    peer.tell(large('0-1-1-0-2000', 20_000, 10n))
    peer.tell(large('0-1-1-0-2001', 1, 10n))
    expect(peer.counters.bytesFull).toBe(0)
    peer.tell(large('0-1-1-0-2001', 60_000, 11n))
    peer.tell(large('0-1-1-0-2001', 65_000, 12n))
    const before = peer.counters.bytesFull
    peer.tell(large('0-1-1-0-2002', 65_000, 10n))
    expect([peer.counters.bytesFull - before, peer.gone]).toEqual([1, []])
    peer.tell(large('0-1-1-0-2000', 65_500, 11n))
    expect([peer.counters.bytesFull - before, peer.gone]).toEqual([2, ['0-1-1-0-2000']])
    // There is room again.
    peer.tell(large('0-1-1-0-2002', 30_000, 10n))
    expect(peer.objects.at(-1)?.header.id).toBe('0-1-1-0-2002')
    expect(peer.counters.bytesFull - before).toBe(2)
  })

  it('of bytes in schemas stops at the limit: the class is left out', () => {
    const peer = new ConsolePeer({ limits: { schemaBytes: 300_000 } }).ready()
    const learned = peer.learned.length
    for (const name of ['a', 'b', 'c', 'd']) {
      const argument = { name: 'x', type: 7, description: 'd'.repeat(4_000) } as const
      const schema: Schema = { kind: 'event', key: keyOf(name), arguments: Array.from({ length: 14 }, () => argument) }
      peer.teach(schema)
    }
    expect(peer.learned.length - learned).toBeLessThan(3)
    expect(peer.counters.schemasFull).toBeGreaterThan(1)
  })

  it('of sessions with the name of its own leaves the others what they are', () => {
    const peer = new ConsolePeer().ready()
    const { key } = tableOf('session')
    const { properties: items } = tableOf('session')
    for (let i = 0; i < 150; i++) {
      const properties = items.map(({ name, type }) => (name === 'name' ? 'anonymous.me' : plain(type)))
      peer.tell({ op: 'c', sequence: 0, header: { ...headerOf('session', `0-1-1-0-${3_000 + i}`), key }, properties })
    }
    expect(peer.objects.filter(({ header }) => header.key.className === 'session').length).toBeGreaterThanOrEqual(50)
  })

  it('of refused classes is remembered up to a limit; beyond it, the next connection gets no further', () => {
    const refusal = { code: 403, text: 'unauthorized-access: ACL denied QMF query of object class queue from me' }
    const down = [998, 1_000].map((known) => {
      const refusedClasses = new Set(Array.from({ length: known }, (_, at) => `c${at}`))
      const peer = new ConsolePeer({ refusedClasses }).ready()
      peer.console.want(tableOf('queue'), true)
      peer.closed('refused', refusal)
      return [refusedClasses.size, peer.down[0]?.endsWith('(progress)')]
    })
    expect(down).toEqual([
      [999, true],
      [1_000, false],
    ])
  })

  it('of agents that come and go leaves no requests that wait for them', () => {
    const peer = new ConsolePeer().ready()
    const { key } = tableOf('agent')
    const properties = ['0-0-0-0-1', '', '0-0-0-0-1', '00000000-0000-0000-0000-000000000000', 1, 7]
    const told = (deleted: bigint) => {
      const header = { key, sampled: 1n, created: 1n, deleted, id: '0-1-1-0-1007' }
      return { op: 'c', sequence: 0, header, properties } as const
    }
    peer.tell(told(0n), told(5n))
    expect(peer.asked()).toEqual([])
  })

  it('of packages and classes stops at the limit', () => {
    const peer = new ConsolePeer({ limits: { packages: 5, schemas: 60 } }).ready()
    for (let i = 0; i < 100; i++) peer.tell({ op: 'p', sequence: 0, packageName: `p${i}` })
    expect(peer.counters.packagesFull).toBe(97)
    expect(peer.take()).toHaveLength(3)
    for (let i = 0; i < 100; i++) peer.tell({ op: 'q', sequence: 0, kind: 'event', key: keyOf(`c${i}`) })
    expect(peer.counters.schemasFull).toBe(85)
    expect(peer.take()).toHaveLength(15)
  })

  it('of agents stops at the limit', () => {
    const peer = new ConsolePeer({ limits: { agents: 3 } }).ready()
    const { key } = tableOf('agent')
    for (let bank = 1; bank <= 9; bank++) {
      const header = { key, sampled: 1n, created: 1n, deleted: 0n, id: `0-1-1-0-${1_000 + bank}` }
      const properties = ['0-0-0-0-1', '', '0-0-0-0-1', '00000000-0000-0000-0000-000000000000', 1, bank]
      peer.tell({ op: 'c', sequence: 0, header, properties })
    }
    expect(peer.counters.agentsFull).toBe(7)
    expect(new Set(peer.take().map(({ to }) => to))).toEqual(new Set(['agent.1.1', 'agent.1.2']))
  })

  it('of events reaches the sensor, but for those of no class', () => {
    const peer = new ConsolePeer().ready()
    const { key } = schemaOf('event', 'queueDelete')
    const one = { op: 'e', sequence: 0, key, time: 1n, severity: 6, arguments: ['h', 'u', 'q'] } as const
    peer.tell(...Array.from({ length: 1_000 }, () => one))
    expect(peer.events).toHaveLength(1_000)
  })

  it('of schemas leaves the cache as large as it may be', () => {
    const cache = new SchemaCache({ schemas: 2, schemaBytes: 1 << 20 })
    for (const name of ['a', 'b', 'c']) cache.add(event(name))
    expect(['a', 'b', 'c'].map((name) => cache.get(keyOf(name)) && keyText(keyOf(name)))).toEqual([
      undefined,
      keyText(keyOf('b')),
      keyText(keyOf('c')),
    ])
  })
})

describe('one body', () => {
  const { key } = schemaOf('event', 'queueDelete')
  const one = { op: 'e', sequence: 0, key, time: 1n, severity: 6, arguments: ['h', 'u', 'q'] } as const

  it('is many steps: a message each', () => {
    const peer = new ConsolePeer().ready()
    peer.arrive(peer.bodyOf(...Array.from({ length: 100 }, () => one)))
    expect(peer.events).toHaveLength(0)
    for (let count = 1; count <= 100; count++) {
      expect(peer.console.work()).toBe(true)
      expect(peer.events).toHaveLength(count)
    }
    expect([peer.console.work(), peer.console.work()]).toEqual([false, false])
  })

  it('is handled before the end of the connection that came after it', () => {
    const peer = new ConsolePeer().ready()
    peer.arrive(peer.bodyOf(one, one))
    peer.closed('over')
    expect(peer.down).toEqual([])
    while (peer.console.work());
    expect([peer.events.length, peer.down]).toEqual([2, ['over']])
  })
})
