/** What the agent tells by itself, and how much at a time. */
import { describe, expect, it } from 'vitest'
import type { QmfMessage } from '../../../../../protocol/qmf/types.ts'
import { vector } from '../../../../protocol/qmf/vectors.ts'
import { AgentPeer } from './fixture.ts'

const OBJECTS = 'qpid.management console.obj.1.10.cinnabar'

/** `c 17`, `i 17` and the like, by where they went. */
function reported(peer: AgentPeer): string[] {
  return peer.news().map(([to, messages]) => `${to}: ${messages.map(shown).join(', ')}`)
}

function shown(message: QmfMessage): string {
  if (message.op !== 'c' && message.op !== 'i') return message.op
  const { id, deleted } = message.header
  return `${deleted === 0n ? '' : 'deleted '}${message.op} ${id.split('-').at(-1)}`
}

const HEARTBEAT = 'qpid.management console.heartbeat.1.10: h'
const PRODUCER = `${OBJECTS}.producer: c 1, i 1`
const times = (message: QmfMessage | undefined) => {
  if (message?.op !== 'i' && message?.op !== 'c') throw new Error('no c and no i')
  return message.header
}

/** It has been given everything once: the producer is 1, channel 17 is 2, channel 18 is 3. */
function settled(): AgentPeer {
  const peer = new AgentPeer().attach()
  peer.producer.channel(17)
  peer.producer.channel(18)
  peer.pass(10)
  peer.completeAll()
  peer.news()
  return peer
}

describe('every ten seconds', () => {
  it('everything is broadcast at first, class by class, the heartbeat last', () => {
    const peer = new AgentPeer().attach()
    peer.producer.channel(17)
    peer.producer.channel(18)
    peer.pass(9)
    expect(reported(peer)).toEqual([])
    peer.pass(1)
    expect(reported(peer)).toEqual([PRODUCER, `${OBJECTS}.channel: c 2, i 2, c 3, i 3`, HEARTBEAT])
  })

  it('then of what changed: c for properties, i for statistics, and nothing of the rest', () => {
    const peer = settled()
    const [first, second] = peer.producer.channels
    if (first !== undefined) first.queued = 5n
    if (second !== undefined) second.owner = 'bob'
    peer.pass(10)
    expect(reported(peer)).toEqual([`${OBJECTS}.channel: i 2, c 3`, HEARTBEAT])
    peer.completeAll()
    peer.pass(10)
    expect(reported(peer)).toEqual([HEARTBEAT])
  })

  it('of everything again when a console was added', () => {
    const peer = settled()
    peer.deliver(vector('x').bytes)
    peer.pass(10)
    expect(reported(peer)).toEqual([PRODUCER, `${OBJECTS}.channel: c 2, i 2, c 3, i 3`, HEARTBEAT])
    peer.completeAll()
    peer.pass(10)
    expect(reported(peer)).toEqual([HEARTBEAT])
  })

  it('of the end of an object, once, and of those that are new', () => {
    const peer = settled()
    const [first] = peer.producer.channels
    if (first !== undefined) first.isGone = true
    peer.producer.channel(19)
    peer.tell('r', { op: 'G', sequence: 1, query: new Map([['_class', 'channel']]) })
    expect(reported(peer)).toEqual(['amq.direct r: g, g', 'amq.direct r: z'])
    peer.completeAll()
    peer.pass(10)
    expect(reported(peer)).toEqual([`${OBJECTS}.channel: deleted c 2, deleted i 2, c 4, i 4`, HEARTBEAT])
    peer.completeAll()
    peer.pass(10)
    expect(reported(peer)).toEqual([HEARTBEAT])
  })

  it('with the time of the last change, not of the last look', () => {
    const peer = settled()
    const [first] = peer.producer.channels
    const born = BigInt(peer.clock.microseconds()) * 1_000n
    peer.deliver(vector('x').bytes)
    peer.pass(10)
    const [, properties] = peer.messages().filter(({ op }) => op === 'c')
    expect(times(properties)).toMatchObject({ created: born, sampled: born, deleted: 0n })
    peer.completeAll()
    if (first !== undefined) first.queued = 9n
    peer.pass(10)
    const [statistics] = peer.messages().filter(({ op }) => op === 'i')
    expect(times(statistics)).toMatchObject({ created: born, sampled: born + 20_000_000_000n })
  })

  it('though somebody asked before, who is informed too', () => {
    const peer = settled()
    peer.producer.uptime = 6n
    peer.tell('r', { op: 'G', sequence: 1, query: new Map([['_class', 'producer']]) })
    peer.completeAll()
    peer.news()
    peer.pass(10)
    expect(reported(peer)).toEqual([`${OBJECTS}.producer: i 1`, HEARTBEAT])
  })
})

describe('ten thousand channels', () => {
  const MANY = 10_000
  const ask = (sequence: number): QmfMessage => ({ op: 'G', sequence, query: new Map([['_class', 'channel']]) })

  function many(): AgentPeer {
    const peer = new AgentPeer().attach()
    for (let id = 1; id <= MANY; id++) peer.producer.channel(id)
    return peer
  }
  const isWithin = (peer: AgentPeer) => peer.sent.every(({ body }) => body.length <= 65_536)

  it('come in bodies that a broker takes, a portion at a time', () => {
    const peer = many()
    peer.tell('r', ask(1))
    const first = peer.sent.reduce((sum, { body }) => sum + body.length, 0)
    expect(first).toBeGreaterThan(60_000)
    expect(first).toBeLessThanOrEqual(65_536)
    peer.completeAll()
    expect(isWithin(peer)).toBe(true)
    const messages = peer.messages()
    expect(messages.filter(({ op }) => op === 'g')).toHaveLength(MANY)
    expect(messages.at(-1)?.op).toBe('z')
  })

  it('are broadcast in the same way', () => {
    const peer = many()
    peer.pass(10)
    peer.completeAll()
    expect(isWithin(peer)).toBe(true)
    const messages = peer.messages()
    expect(messages.filter(({ op }) => op === 'c')).toHaveLength(MANY + 1)
    expect(messages.filter(({ op }) => op === 'h')).toHaveLength(1)
  })

  it('of which none changed are looked at a portion at a time too', () => {
    const peer = many()
    peer.pass(10)
    peer.completeAll()
    peer.news()
    const before = peer.producer.reads
    peer.pass(10)
    expect(peer.producer.reads - before).toBeLessThan(2_500)
    peer.completeAll()
    expect(peer.producer.reads - before).toBeGreaterThanOrEqual(MANY)
    expect(peer.messages().map(({ op }) => op)).toEqual(['h'])
  })

  it('cost a flood of questions no more than what may wait; the rest is counted', () => {
    const peer = many()
    for (let sequence = 1; sequence <= 1_000; sequence++) peer.tell('r', ask(sequence))
    expect(peer.sent.reduce((sum, { body }) => sum + body.length, 0)).toBeLessThanOrEqual(65_536)
    expect(peer.counters).toMatchObject({ requests: 64, requestsFull: 936 })
    peer.pass(3)
    peer.sent.length = 0
    peer.tell('r', ask(1_001))
    expect(peer.sent).toEqual([])
  })

  it('take a part of a second and no more, whatever is asked for', () => {
    const peer = many()
    for (let sequence = 1; sequence <= 64; sequence++) peer.tell('r', ask(sequence))
    for (let second = 0; second < 5; second++) {
      for (let portion = 0; portion < 1_000; portion++) peer.complete()
      const bytes = peer.sent.splice(0).reduce((sum, { body }) => sum + body.length, 0)
      expect(bytes).toBeGreaterThan(1 << 19)
      expect(bytes).toBeLessThan((1 << 20) + 65_536)
      peer.pass(1)
    }
  })

  it('delay the heartbeat neither by other jobs nor by a broker that takes nothing', () => {
    const peer = many()
    for (let sequence = 1; sequence <= 64; sequence++) peer.tell('r', ask(sequence))
    peer.pass(9)
    expect(peer.sent.length).toBeGreaterThan(1)
    peer.pass(1)
    peer.news()
    for (let round = 0; round < 60 && peer.counters.requests === 64; round++) {
      peer.pass(5)
      if (peer.news().some(([to]) => to.includes('heartbeat'))) return
    }
    throw new Error('no heartbeat came')
  })
})

describe('a broker that never says what it has taken', () => {
  it('still gets broadcasts, and nothing piles up for it', () => {
    const peer = settled()
    peer.pass(3_600)
    expect(peer.messages().filter(({ op }) => op === 'h')).toHaveLength(360)
    expect(peer.awaited).toBeLessThanOrEqual(100)
    peer.completeAll()
    peer.pass(10)
    expect(peer.awaited).toBe(1)
  })
})

describe('an answer that does not fit its field', () => {
  it('costs only itself', () => {
    const peer = settled()
    peer.failing = true
    peer.tell('r', { op: 'G', sequence: 1, query: new Map([['_class', 'producer']]) })
    peer.failing = false
    peer.completeAll()
    peer.tell('r', { op: 'G', sequence: 2, query: new Map([['_class', 'producer']]) })
    expect(peer.messages().map(({ sequence }) => sequence)).toEqual([2, 2])
    expect([peer.counters.malformed, peer.down]).toEqual([1, []])
  })

  it('is made up for by the next broadcast, where it was one', () => {
    const peer = settled()
    peer.failing = true
    peer.producer.uptime = 7n
    peer.pass(10)
    peer.failing = false
    peer.pass(10)
    expect(reported(peer)).toEqual([PRODUCER, `${OBJECTS}.channel: c 2, i 2, c 3, i 3`, HEARTBEAT])
  })
})
