/** What is asked for when: wanted classes, broadcasts, rounds, and agents behind the broker. */
import { describe, expect, it } from 'vitest'
import type { QmfMessage } from '../../../../protocol/qmf/types.ts'
import { ConsolePeer, done, headerOf, plain, queue } from './console-peer.ts'
import { schemaOf, tableOf } from './recorded.ts'

const QUEUES = 'topic-me qpid.management console.obj.*.*.org.apache.qpid.broker.queue'

/** An agent as the broker tells of it. */
function agent(id: string, agentBank: number, deleted = 0n): QmfMessage {
  const properties = ['0-1-1-0-7', 'label', '0-0-1-0-2', '00000000-0000-0000-0000-000000000001', 1, agentBank]
  return { op: 'c', sequence: 0, header: headerOf('agent', id, { deleted }), properties }
}

describe('a wanted class', () => {
  it('is bound and asked for at once, then every five seconds, until nobody wants it', () => {
    const peer = new ConsolePeer().ready()
    peer.console.want(tableOf('queue'), true)
    peer.console.want(tableOf('queue'), true)
    expect(peer.commands).toEqual([`bind ${QUEUES}`])
    expect(peer.bodies.map((body) => body.length)).toEqual([1])
    peer.serve()
    peer.pass(4)
    expect(peer.asked()).toEqual([])
    peer.pass(1)
    peer.serve()
    peer.pass(5)
    expect(peer.asked()).toEqual(['agent.1.0 G queue'])
    peer.console.want(tableOf('queue'), false)
    expect(peer.commands).toEqual([`bind ${QUEUES}`, `unbind ${QUEUES}`])
    peer.pass(9)
    expect(peer.asked()).toEqual([])
  })

  it('is not asked for twice while an answer is awaited, and again when that is late', () => {
    const peer = new ConsolePeer().ready()
    peer.console.want(tableOf('queue'), true)
    peer.pass(9)
    expect(peer.asked()).toEqual(['agent.1.0 G queue'])
    peer.pass(1)
    expect(peer.asked()).toEqual(['agent.1.0 G queue'])
    expect(peer.counters.unanswered).toBe(1)
  })

  it('has not gone unanswered while we did not run ourselves: the answer may wait to be read', () => {
    const peer = new ConsolePeer().ready()
    peer.pass(1)
    peer.console.want(tableOf('queue'), true)
    peer.clock.advance(30_000)
    peer.console.tick(peer.clock.monotonicMs())
    expect(peer.counters.unanswered).toBe(0)
    peer.pass(1)
    expect(peer.counters.unanswered).toBe(1)
  })

  it('is asked for with its package, of each package that has such a class', () => {
    const peer = new ConsolePeer().ready()
    const other = { ...tableOf('queue'), key: { ...tableOf('queue').key, packageName: 'other' } }
    peer.teach(other)
    peer.console.want(tableOf('queue'), true)
    peer.console.want(other, true)
    const queries = peer.take().map(({ message }) => message.op === 'G' && Object.fromEntries(message.query))
    expect(queries).toEqual([
      { _class: 'queue', _package: 'org.apache.qpid.broker' },
      { _class: 'queue', _package: 'other' },
    ])
  })

  it('of agents is bound whether it is wanted or not', () => {
    const peer = new ConsolePeer().ready()
    peer.console.want(tableOf('agent'), true)
    peer.console.want(tableOf('agent'), false)
    expect(peer.commands).toEqual([])
    expect(peer.asked()).toEqual(['agent.1.0 G agent'])
  })

  it('may be wanted before the session is open', () => {
    const peer = new ConsolePeer()
    peer.console.want(schemaOf('event', 'bind'), true)
    peer.console.want(tableOf('queue'), true)
    peer.open()
    expect(peer.commands).toContain('bind topic-me qpid.management console.event.*.*.org.apache.qpid.broker.bind')
    expect(peer.commands).toContain(`bind ${QUEUES}`)
    peer.pass(3)
    expect(asksFor(peer, 'queue')).toBe(0)
    peer.serve()
    expect(asksFor(peer, 'queue')).toBe(1)
    peer.pass(5)
    expect(peer.asked()).toEqual(['agent.1.0 G queue'])
  })

  it('is not polled while heartbeats come, and polled again when they stop', () => {
    const peer = new ConsolePeer().ready()
    peer.heartbeat()
    peer.console.want(tableOf('queue'), true)
    peer.serve()
    peer.bodies.length = 0
    for (let second = 1; second <= 20; second++) {
      peer.pass(1)
      if (second % 10 === 0) peer.heartbeat()
    }
    expect(peer.bodies).toEqual([])
    for (let second = 1; second <= 30; second++) {
      peer.pass(1)
      peer.serve()
    }
    expect(asksFor(peer, 'queue')).toBe(0)
    peer.pass(1)
    expect(asksFor(peer, 'queue')).toBe(1)
  })

  it('is asked for if statistics come of an object that is not known, but not for each', () => {
    const peer = new ConsolePeer().ready()
    peer.heartbeat()
    peer.console.want(tableOf('queue'), true)
    peer.serve()
    const { header, statistics } = queue(0, '0-1-1-0-201', 'a') as Extract<QmfMessage, { op: 'g' }>
    const reported = peer.objects.length
    peer.pass(6)
    for (let i = 0; i < 3; i++) peer.tell({ op: 'i', sequence: 0, header, statistics })
    expect(peer.objects).toHaveLength(reported)
    expect(peer.counters.unknownObjects).toBe(3)
    expect(peer.asked()).toEqual(['agent.1.0 G queue'])
  })

  it('is polled where heartbeats come from a broker that says that it publishes nothing', () => {
    const peer = new ConsolePeer().ready()
    const { properties } = tableOf('broker')
    const values = properties.map(({ name, type }) => (name === 'mgmtPublish' ? false : plain(type)))
    peer.tell({ op: 'c', sequence: 0, header: headerOf('broker', '0-0-1-0-2'), properties: values })
    peer.heartbeat()
    peer.console.want(tableOf('queue'), true)
    peer.serve()
    peer.pass(5)
    expect(peer.asked()).toEqual(['agent.1.0 G queue'])
  })

  it('is polled where its name is too long for a binding key', () => {
    const peer = new ConsolePeer().ready()
    const key = { ...tableOf('queue').key, packageName: 'p'.repeat(235) }
    const schema = { ...tableOf('queue'), key }
    peer.teach(schema)
    peer.console.want(schema, true)
    expect([peer.commands, peer.asked()]).toEqual([[], ['agent.1.0 G queue']])
  })

  it('is asked for once a minute all the same while it is broadcast', () => {
    const peer = new ConsolePeer().ready()
    peer.heartbeat()
    peer.console.want(tableOf('queue'), true)
    peer.serve()
    peer.bodies.length = 0
    const pass = (beats: number) => {
      for (let beat = 0; beat < beats; beat++) {
        peer.pass(10)
        peer.heartbeat()
        peer.serve()
      }
    }
    pass(5)
    expect(asksFor(peer, 'queue')).toBe(0)
    pass(1)
    expect(asksFor(peer, 'queue')).toBe(1)
    pass(6)
    expect(asksFor(peer, 'queue')).toBe(2)
  })
})

describe('an answer to G', () => {
  /** Two queues, and the next request for them under way. */
  function peerWithQueues(): { peer: ConsolePeer; sequence: number } {
    const peer = new ConsolePeer().ready()
    peer.gone.length = 0
    peer.console.want(tableOf('queue'), true)
    const first = peer.take()[0]?.message.sequence ?? 0
    peer.tell(queue(first, '0-1-1-0-201', 'a'), queue(first, '0-1-1-0-202', 'b'), done(first))
    // Those of the recording are not in this answer.
    expect(peer.gone.toSorted()).toEqual(['0-1-1-0-83', '0-1-1-0-87'])
    peer.gone.length = 0
    peer.pass(5)
    return { peer, sequence: peer.take()[0]?.message.sequence ?? 0 }
  }

  it('ends what it does not name', () => {
    const { peer, sequence } = peerWithQueues()
    peer.tell(queue(sequence, '0-1-1-0-202', 'b'))
    expect(peer.gone).toEqual([])
    peer.tell(done(sequence))
    expect(peer.gone).toEqual(['0-1-1-0-201'])
  })

  it('ends nothing that was broadcast while it was under way', () => {
    const { peer, sequence } = peerWithQueues()
    const { header, properties } = queue(0, '0-1-1-0-203', 'c') as Extract<QmfMessage, { op: 'g' }>
    peer.tell({ op: 'c', sequence: 0, header, properties })
    peer.tell(queue(sequence, '0-1-1-0-201', 'a'), queue(sequence, '0-1-1-0-202', 'b'), done(sequence))
    expect(peer.gone).toEqual([])
  })

  it('ends nothing if it is an error, or comes too late', () => {
    const { peer, sequence } = peerWithQueues()
    peer.tell({ op: 'z', sequence, code: 1, text: 'no' })
    peer.pass(15)
    peer.tell(done(sequence))
    expect(peer.gone).toEqual([])
    expect([peer.counters.unexpected, peer.counters.unanswered]).toEqual([1, 1])
  })

  it('ends nothing if part of it was unreadable', () => {
    const { peer, sequence } = peerWithQueues()
    const whole = Buffer.alloc(12)
    whole.write('AM2g', 'latin1')
    whole.writeUInt32BE(sequence, 4)
    peer.deliver(whole)
    peer.tell(done(sequence))
    expect(peer.gone).toEqual([])
    expect(peer.counters.malformed).toBe(1)
    peer.pass(5)
    peer.tell(done(peer.take()[0]?.message.sequence ?? 0))
    expect(peer.gone).toEqual(['0-1-1-0-201', '0-1-1-0-202'])
  })

  it('has its time from the last part', () => {
    const { peer, sequence } = peerWithQueues()
    peer.pass(9)
    peer.tell(queue(sequence, '0-1-1-0-201', 'a'))
    peer.pass(9)
    peer.tell(done(sequence))
    expect(peer.gone).toEqual(['0-1-1-0-202'])
    expect(peer.counters.unanswered).toBe(0)
  })
})

describe('a round', () => {
  it('looks for classes and unwanted objects every minute', () => {
    const peer = new ConsolePeer().ready()
    peer.pass(59)
    expect(peer.take()).toEqual([])
    peer.pass(1)
    peer.serve()
    const ops = peer.bodies.flat().map(({ message }) => message.op)
    expect(ops.filter((op) => op === 'P' || op === 'Q')).toEqual(['P', 'Q', 'Q'])
    expect(ops.filter((op) => op === 'G')).toHaveLength(21)
    const asked = peer.bodies.flat().flatMap(({ message: m }) => (m.op === 'G' ? [m.query.get('_class')] : []))
    expect(asked.slice(0, 4)).toEqual(['session', 'queue', 'agent', 'connection'])
    expect(asked.slice(-2).toSorted()).toEqual(['binding', 'subscription'])
    expect(ops).not.toContain('S')
    expect(peer.reported).toEqual(['ready'])
    peer.bodies.length = 0
    peer.pass(59)
    expect(peer.bodies).toEqual([])
    peer.pass(1)
    expect(peer.asked()).toEqual(['broker P'])
  })
})

describe('a round, after a call, which may have made objects,', () => {
  it('is earlier, but not for a call without a reply, and 10 s after the last', async () => {
    const peer = new ConsolePeer().ready()
    const { key, methods } = tableOf('broker')
    const method = methods.find(({ name }) => name === 'getLogLevel') as (typeof methods)[0]
    const call = () => peer.console.call('0-0-1-0-2', key, method, [])
    const lost = call()
    peer.pass(11)
    expect([await lost, peer.take(1)[0]?.message.op, peer.take()]).toEqual(['timeout', 'M', []])
    const done = call()
    peer.serve()
    await done
    expect(asksFor(peer, 'queue')).toBe(0)
    peer.pass(1)
    peer.serve()
    expect(asksFor(peer, 'queue')).toBe(1)
    const again = call()
    peer.serve()
    await again
    peer.pass(9)
    expect(peer.take()).toEqual([])
    peer.pass(1)
    expect(peer.asked()).toEqual(['broker P'])
  })
})

describe('an agent of the broker', () => {
  it('is asked for everything when it is found, each in a body of its own', () => {
    const peer = new ConsolePeer().ready()
    peer.tell(agent('0-1-1-0-300', 10))
    expect(peer.bodies.length).toBeGreaterThan(20)
    expect(peer.bodies.every((body) => body.length === 1 && body[0]?.to === 'agent.1.10')).toBe(true)
  })

  it('is polled for what it has, whatever the broker broadcasts, and gone with its object', () => {
    const peer = new ConsolePeer().ready()
    peer.heartbeat()
    peer.tell(agent('0-1-1-0-300', 10))
    for (const { message } of peer.take()) {
      const isQueue = message.op === 'G' && message.query.get('_class') === 'queue'
      if (isQueue) peer.tell(queue(message.sequence, '0-1-1-10-1', 'a'))
      peer.tell(done(message.sequence))
    }
    peer.console.want(tableOf('queue'), true)
    expect(peer.asked()).toEqual(['agent.1.0 G queue', 'agent.1.10 G queue'])
    for (const { message } of peer.bodies.flat().slice(-2)) {
      peer.tell(queue(message.sequence, message === peer.bodies.at(-1)?.[0]?.message ? '0-1-1-10-1' : '0-1-1-0-9', 'a'))
      peer.tell(done(message.sequence))
    }
    peer.console.want(tableOf('exchange'), true)
    for (const { message } of peer.take()) peer.tell(done(message.sequence))
    peer.pass(5)
    expect(peer.asked()).toEqual(['agent.1.10 G queue'])
    peer.heartbeat('1.10')
    expect(peer.reported).toEqual(['ready', 'heartbeat 1'])
    peer.pass(15)
    expect([peer.asked(), peer.counters.unanswered]).toEqual([[], 1])
    peer.gone.length = 0
    peer.tell(agent('0-1-1-0-300', 10, 99n))
    expect(peer.gone).toEqual(['0-1-1-0-300', '0-1-1-10-1'])
    peer.pass(9)
    expect(peer.asked()).toEqual([])
  })

  it('that does not answer holds up nobody else, and is asked for one class in a round', () => {
    const peer = new ConsolePeer().ready()
    peer.tell(agent('0-1-1-0-300', 10))
    peer.take()
    peer.console.want(tableOf('queue'), true)
    expect(peer.asked()).toEqual(['agent.1.0 G queue'])
    peer.console.want(tableOf('queue'), false)
    peer.pass(30)
    peer.take()
    peer.pass(30)
    const packages = peer.take().find(({ message }) => message.op === 'P')?.message.sequence ?? 0
    peer.tell(done(packages))
    expect(peer.asked().filter((text) => text.startsWith('agent.1.10'))).toEqual(['agent.1.10 G session'])
  })
})

/** How often it was asked for. */
function asksFor(peer: ConsolePeer, className: string): number {
  return peer.bodies.flat().filter(({ message: m }) => m.op === 'G' && m.query.get('_class') === className).length
}
