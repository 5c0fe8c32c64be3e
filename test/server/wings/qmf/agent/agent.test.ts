/** The agent towards its broker: how it attaches and is asked, with the bytes of others where there are some. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeBody, encodeMessage } from '../../../../../protocol/qmf/messages.ts'
import type { QmfMessage } from '../../../../../protocol/qmf/types.ts'
import { agentLookup } from '../../../../../server/wings/qmf/agent/agent.ts'
import { AGENT_PACKAGE, agentSchemas, producerSchema } from '../../../../../server/wings/qmf/agent/schema.ts'
import { noneKnown, vector } from '../../../../protocol/qmf/vectors.ts'
import { hex, toHex } from '../../../../support/bytes.ts'
import { AgentPeer, SYSTEM_ID } from './fixture.ts'

const ID = '0-3-1-10-1'
const get = (query: Record<string, string>, sequence = 7): QmfMessage => {
  return { op: 'G', sequence, query: new Map(Object.entries(query)) }
}
const call = (more: Partial<Extract<QmfMessage, { op: 'M' }>> = {}): QmfMessage => {
  return { op: 'M', sequence: 9, id: ID, key: producerSchema.key, method: 'echo', arguments: [7, 'hello'], ...more }
}
const ok = (sequence: number): QmfMessage => ({ op: 'z', sequence, code: 0, text: 'OK' })

const bytesOf = (message: QmfMessage): Uint8Array => encodeMessage(message, agentLookup)
const hexOf = (text: string): string => toHex(new TextEncoder().encode(text))

/** Attached, and asked for its objects once. */
function asked(): AgentPeer {
  const peer = new AgentPeer().attach()
  peer.tell('r', get({ _class: 'producer' }))
  peer.completeAll()
  peer.news()
  return peer
}

describe('attaching', () => {
  it('begins with a queue for answers and A, as another agent sends it', () => {
    const peer = new AgentPeer().open()
    expect(peer.commands).toEqual([
      'start',
      'declare qmfagent-me',
      'bind qmfagent-me amq.direct qmfagent-me',
      'subscribe qmfagent-me qmfagent',
    ])
    const [first, ...rest] = peer.sent
    expect(rest).toEqual([])
    expect(first?.to).toEqual({
      exchange: 'qpid.management',
      routingKey: 'broker',
      replyTo: { exchange: 'amq.direct', routingKey: 'qmfagent-me' },
    })
    expect(toHex(first?.body as Uint8Array)).toBe(toHex(vector('A').bytes))
  })

  it('ends with the answer of a broker: its bank is bound, its package and classes are reported', () => {
    const peer = new AgentPeer().open()
    peer.sent.length = 0
    peer.deliver(vector('a').bytes)
    expect(peer.attached).toEqual([{ brokerBank: 1, agentBank: 10 }])
    expect(peer.commands.at(-1)).toBe('bind qmfagent-me qpid.management agent.1.10')
    expect(peer.sent.every(({ to }) => to.routingKey === 'broker' && to.replyTo?.routingKey === 'qmfagent-me')).toBe(
      true,
    )
    expect(peer.messages()).toEqual([
      { op: 'p', sequence: 0, packageName: AGENT_PACKAGE },
      ...agentSchemas.map(({ kind, key }) => ({ op: 'q', sequence: 0, kind, key })),
    ])
  })

  it('asks for the banks it had before', () => {
    const peer = new AgentPeer({ brokerBank: 1, agentBank: 12 }).open()
    expect(peer.messages()).toMatchObject([{ op: 'A', brokerBank: 1, agentBank: 12 }])
  })

  it.each([
    [
      'refused',
      (peer: AgentPeer) => peer.deliver(vector('z with an error').bytes),
      'the broker refused the agent: Class key not found',
    ],
    ['not answered', (peer: AgentPeer) => peer.pass(10), 'not attached within 10 seconds'],
    [
      'answered with an impossible bank',
      (peer: AgentPeer) => peer.tell(undefined, { op: 'a', sequence: 1, brokerBank: 1, agentBank: 1 << 28 }),
      'the broker gave the agent impossible banks: 1.268435456',
    ],
    [
      "answered with the broker's own bank",
      (peer: AgentPeer) => peer.tell(undefined, { op: 'a', sequence: 1, brokerBank: 1, agentBank: 0 }),
      'the broker gave the agent impossible banks: 1.0',
    ],
    ['cut off', (peer: AgentPeer) => peer.closed('gone'), 'gone'],
  ])('that is %s ends it, once', (_, happen, reason) => {
    const peer = new AgentPeer().open()
    happen(peer)
    peer.closed('again')
    peer.pass(20)
    expect(peer.down).toEqual([reason])
    expect(peer.attached).toEqual([])
  })

  it('is done once, however often it is answered', () => {
    const peer = new AgentPeer().attach()
    peer.tell(undefined, { op: 'a', sequence: 1, brokerBank: 1, agentBank: 11 })
    expect([peer.attached, peer.sent]).toEqual([[{ brokerBank: 1, agentBank: 10 }], []])
  })

  it('answers nobody before it is done', () => {
    const peer = new AgentPeer().open()
    peer.sent.length = 0
    peer.tell('r', get({ _class: 'producer' }))
    expect(peer.sent).toEqual([])
    expect(peer.counters.unexpected).toBe(1)
  })
})

describe('S', () => {
  const [schema] = agentSchemas
  const ask: QmfMessage = { op: 'S', sequence: 4, key: producerSchema.key }

  it('of the broker, which names no reply-to, is answered to the broker, with its sequence', () => {
    const peer = new AgentPeer().attach()
    peer.tell(undefined, ask)
    expect(peer.sent[0]?.to.replyTo).toBeDefined()
    const body = peer.sent[0]?.body as Uint8Array
    expect(decodeBody(body, noneKnown).messages).toEqual([{ op: 's', sequence: 4, schema }])
    expect(peer.news().map(([to]) => to)).toEqual(['qpid.management broker'])
  })

  it('of the broker is answered also where consoles ask more than can be answered', () => {
    const peer = new AgentPeer().attach()
    const question = call({ id: '0-3-1-10-99', arguments: [1, 'x'.repeat(1_000)] })
    for (let i = 0; i < 1_000; i++) peer.tell('r', question)
    expect(peer.counters.requestsFull).toBeGreaterThan(0)
    for (const { key } of agentSchemas) peer.tell(undefined, { op: 'S', sequence: 4, key })
    peer.completeAll()
    expect(peer.messages().filter(({ op }) => op === 's')).toHaveLength(agentSchemas.length)
  })

  it('of a console goes to the console; of a class that there is not, it says so', () => {
    const peer = new AgentPeer().attach()
    peer.tell('r', ask)
    peer.completeAll()
    peer.deliver(vector('S').bytes, 'r')
    expect(peer.news()).toEqual([
      ['amq.direct r', [{ op: 's', sequence: 4, schema }]],
      ['amq.direct r', [{ op: 'z', sequence: 4, code: 1, text: 'Class key not found' }]],
    ])
  })
})

describe('G', () => {
  it('of a class gives its objects, then z in a message of its own', () => {
    const peer = new AgentPeer().attach()
    peer.producer.channel(17, 3n)
    peer.producer.channel(18)
    peer.tell('r', get({ _class: 'channel' }))
    const [objects, end, ...rest] = peer.news()
    expect(objects?.[0]).toBe('amq.direct r')
    expect(objects?.[1]).toMatchObject([
      { op: 'g', sequence: 7, properties: [17, 'alice', true, 'connected'], statistics: [3n, 0n, 3n, 0n, 0n, 0n] },
      { op: 'g', sequence: 7, properties: [18, 'alice', true, 'connected'] },
    ])
    expect([end, rest]).toEqual([['amq.direct r', [ok(7)]], []])
  })

  it.each([
    [{ _objectid: ID }, ['n1']],
    [{ _class: 'producer', _package: AGENT_PACKAGE }, ['n1']],
    [{ _class: 'producer', _package: 'another' }, []],
    [{ _class: 'producer', _agent: SYSTEM_ID }, ['n1']],
    [{ _class: 'producer', _agent: '00000000-0000-0000-0000-000000000009' }, []],
    [{ _objectid: ID, _agent: '00000000-0000-0000-0000-000000000009' }, []],
    [{ _class: 'queue' }, []],
    [{ _objectid: '0-3-1-10-99' }, []],
    [{ _objectid: '0-2-1-10-1' }, []],
    [{ _objectid: '0-3-1-11-1' }, []],
    [{ _objectid: 'nonsense' }, []],
  ])('%o gives %o', (query, names) => {
    const peer = asked()
    peer.tell('r', get(query))
    const messages = peer.messages()
    expect(messages.at(-1)).toEqual(ok(7))
    const objects = messages.slice(0, -1)
    expect(objects.map((message) => (message.op === 'g' ? message.properties[0] : message.op))).toEqual(names)
    expect(objects.every((message) => message.op === 'g' && message.header.id === ID)).toBe(true)
  })

  it('that asks for nothing is refused', () => {
    const peer = asked()
    peer.tell('r', get({ nothing: 'x' }))
    expect(peer.messages()).toMatchObject([{ op: 'z', sequence: 7, code: 4 }])
  })

  it('as another console sends it is understood', () => {
    const peer = asked()
    peer.deliver(vector('G of a class').bytes, 'r')
    expect(peer.messages()).toEqual([ok(5)])
  })

  it('reads nothing of what is not asked for', () => {
    const peer = asked()
    peer.producer.channel(17)
    const before = peer.producer.reads
    peer.pass(5)
    peer.tell('r', get({ _objectid: ID }))
    expect(peer.producer.reads).toBe(before + 1)
  })
})

describe('M', () => {
  it('echo gives back what it was given', () => {
    const peer = asked()
    peer.tell('r', call())
    const [sent] = peer.sent
    expect(toHex(sent?.body as Uint8Array)).toBe(toHex(vector('m of echo').bytes).replace('00000028', '00000009'))
    expect(sent?.to).toEqual({ exchange: 'amq.direct', routingKey: 'r' })
  })

  it.each([
    ['an object that there is not', call({ id: '0-3-1-10-99' }), 1, 'UnknownObject'],
    ['an object of another class', call({ id: '0-3-1-10-2' }), 4, 'InvalidParameter'],
  ])('of %s is refused', (_, message, status, text) => {
    const peer = asked()
    peer.producer.channel(17)
    peer.tell('r', get({ _class: 'channel' }))
    peer.completeAll()
    peer.news()
    peer.tell('r', message)
    expect(peer.messages()).toEqual([{ op: 'm', sequence: 9, status, text, arguments: [] }])
  })

  it.each([
    ['a method that there is not', hexOf('echo'), hexOf('stop'), 2, 'UnknownMethod'],
    ['a class with another hash', producerSchema.key.hash, '0'.repeat(32), 4, 'InvalidParameter'],
    ['a class that there is not', hexOf('producer'), hexOf('products'), 4, 'InvalidParameter'],
  ])('of %s is refused, and counted', (_, from, to, status, text) => {
    const peer = asked()
    peer.deliver(hex(toHex(bytesOf(call())).replace(from, to)), 'r')
    expect(peer.messages()).toEqual([{ op: 'm', sequence: 9, status, text, arguments: [] }])
    expect(peer.counters.malformed).toBe(1)
  })

  it('with arguments that are cut off is refused', () => {
    const peer = asked()
    peer.deliver(bytesOf(call()).slice(0, -3), 'r')
    expect(peer.messages()).toMatchObject([{ op: 'm', sequence: 9, status: 4 }])
  })

  it('whose answer would be too long, or got longer since it was no UTF-8, is refused', () => {
    const peer = asked()
    peer.tell('r', call({ arguments: [1, 'x'.repeat(65_530)] }))
    const raw = Buffer.from(bytesOf(call({ arguments: [1, 'x'.repeat(40_000)] })))
    raw.fill(0xe9, raw.length - 39_000)
    peer.completeAll()
    peer.deliver(new Uint8Array(raw), 'r')
    expect(peer.messages()).toMatchObject([
      { op: 'm', sequence: 9, status: 4 },
      { op: 'm', sequence: 9, status: 4 },
    ])
  })
})

describe('what is for nobody', () => {
  it('is ignored, and counted: questions without a reply-to, messages of others', () => {
    const peer = asked()
    peer.tell(undefined, get({ _class: 'producer' }), call())
    peer.deliver(vector('B').bytes, 'r')
    peer.deliver(vector('h').bytes, 'r')
    peer.deliver(new Uint8Array([1, 2, 3]), 'r')
    peer.deliver(vector('G of a class').bytes, 'r', { appId: 'qmf2' })
    peer.deliver(new Uint8Array(0), 'r')
    expect(peer.sent).toEqual([])
    expect(peer.counters).toMatchObject({ unexpected: 4, malformed: 1, qmf2: 1 })
    expect(peer.down).toEqual([])
  })

  it('and a G that is cut off is refused', () => {
    const peer = asked()
    peer.deliver(vector('G of a class').bytes.slice(0, -2), 'r')
    expect(peer.messages()).toMatchObject([{ op: 'z', sequence: 5, code: 4 }])
  })
})

describe('whatever comes', () => {
  const good = [get({ _class: 'producer' }), get({ _objectid: ID }), call()].map(bytesOf)
  const bodies = fc.oneof(
    fc.uint8Array({ maxLength: 100 }),
    fc
      .tuple(fc.constantFrom(...good), fc.nat(200), fc.nat(255), fc.nat(10))
      .map(([body, at, byte, cut]) => body.map((old, i) => (i === at ? byte : old)).slice(0, body.length - cut)),
  )

  it('ends nothing, and what is answered can be read', () => {
    fc.assert(
      fc.property(fc.array(bodies, { maxLength: 5 }), (list) => {
        const peer = asked()
        for (const body of list) peer.deliver(body, 'r')
        peer.completeAll()
        expect(() => peer.news()).not.toThrow()
        expect(peer.down).toEqual([])
      }),
    )
  })
})

describe('the end', () => {
  it('is said to the broker', () => {
    const peer = asked()
    peer.agent.end()
    expect([peer.commands.at(-1), peer.down]).toEqual(['close', ['ended']])
    peer.tell('r', get({ _class: 'producer' }))
    peer.pass(20)
    expect(peer.sent).toEqual([])
  })
})
