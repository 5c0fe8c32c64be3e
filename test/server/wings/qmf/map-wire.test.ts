/** QMF v2 as messages of v1: what a console asks and hears over the wire of v2. */
import { describe, expect, it } from 'vitest'
import type { AmqpDelivery } from '../../../../protocol/amqp/session.ts'
import { decodeBody } from '../../../../protocol/qmf/messages.ts'
import type { ClassKey, ObjectHeader, QmfMessage, SchemaLookup, TableSchema } from '../../../../protocol/qmf/types.ts'
import { decodeMapMessage } from '../../../../protocol/qmf/v2/messages.ts'
import { agentOf, shownId } from '../../../../server/wings/qmf/addresses.ts'
import { MapWire } from '../../../../server/wings/qmf/map-wire.ts'
import { concluded, deliveries, ofV2, schemas, titleOf } from '../../../protocol/qmf/v2/recording.ts'

const schemaOf = (key: ClassKey) =>
  schemas.get(titleOf({ kind: 'table', key })) ?? schemas.get(titleOf({ kind: 'event', key }))
const lookup: SchemaLookup = { schema: schemaOf, method: () => undefined }
const TAG = concluded('heartbeat')
  .map(({ agent }) => String(agent))
  .find((name) => name.startsWith('apache.org:qpidd:'))!
  .slice('apache.org:qpidd:'.length)

function wireOf(): MapWire {
  const wire = new MapWire({ lookup, replies: 'replies', nowNs: () => 77n })
  wire.opened(new Map([['qpid.federation_tag', TAG]]))
  return wire
}
/** With all its messages. */
function receive(wire: MapWire, one: AmqpDelivery) {
  const received = wire.receive(one)
  if (received === undefined) return undefined
  const { messages: steps, ...rest } = received
  const messages: QmfMessage[] = []
  for (let next = steps.next(); ; next = steps.next()) {
    if (next.done === true) return { ...rest, messages, stopped: next.value }
    messages.push(next.value)
  }
}
const broker = [...schemas.values()].find(({ key }) => key.className === 'broker') as TableSchema
const delivery = (more: Partial<AmqpDelivery>): AmqpDelivery => {
  return { destination: '', exchange: '', routingKey: '', headers: new Map(), body: new Uint8Array(), ...more }
}

describe('the whole recording', () => {
  const wire = wireOf()
  const heard = deliveries.map((one) => receive(wire, one))

  it('is read without an error but for the classes of the agent, whose schemas are not known', () => {
    const stops = heard.flatMap((one) => one?.stopped ?? [])
    const classes = stops.map(({ reason, key }) => `${reason} ${key?.packageName}`)
    expect(new Set(classes)).toEqual(new Set(['unknown-class org.example.water']))
  })

  it('has each object of the broker with its name as id, and its times', () => {
    const headers = new Set<ObjectHeader>()
    for (const { op, ...rest } of heard.flatMap((one) => one?.messages ?? [])) {
      if (op === 'c' || op === 'i' || op === 'g') headers.add((rest as { header: ObjectHeader }).header)
    }
    const expected = [...concluded('data'), ...concluded('get')].filter(({ cls }) => !String(cls).includes('water'))
    const text = (id: unknown, times: readonly unknown[]) => `${id} ${times}`
    expect(
      new Set([...headers].map(({ id, sampled, created, deleted }) => text(id, [sampled, created, deleted]))),
    ).toEqual(
      new Set(
        expected.map(({ objectId, timestamps }) => {
          return text((objectId as Record<string, unknown>)['_object_name'], timestamps as unknown[])
        }),
      ),
    )
    expect(agentOf([...headers][0]!.id)).toBe('broker')
  })

  it('has the heartbeats of the broker and of the agent', () => {
    const beats = heard.filter((one) => one?.messages[0]?.op === 'h').map((one) => one?.sign)
    expect(beats.filter((one) => one?.agent === 'broker')).toHaveLength(21)
    expect(beats.filter((one) => one?.agent === 'example.org:waterworks:east-2')).toHaveLength(14)
  })
})

describe('a request', () => {
  const wire = wireOf()
  const G: QmfMessage = {
    op: 'G',
    sequence: 5,
    query: new Map([
      ['_class', 'queue'],
      ['_package', 'p'],
    ]),
  }

  it('to the broker for objects goes to the exchange of v2, with the sequence as correlation id', () => {
    const { transfer } = wire.encode(G, 'broker')
    expect(transfer).toMatchObject({
      exchange: 'qmf.default.direct',
      routingKey: 'broker',
      appId: 'qmf2',
      correlationId: '5',
      replyTo: { exchange: 'qmf.default.direct', routingKey: 'replies' },
    })
  })

  it('for a schema is one of v1 there, answered by the exchange of v1', () => {
    const { transfer, body } = wire.encode({ op: 'S', sequence: 6, key: broker.key }, 'broker')
    expect(transfer).toMatchObject({
      exchange: 'qmf.default.direct',
      routingKey: 'broker',
      replyTo: { exchange: 'amq.direct', routingKey: 'replies' },
    })
    expect(transfer.appId).toBeUndefined()
    expect(decodeBody(body, lookup).messages).toEqual([{ op: 'S', sequence: 6, key: broker.key }])
  })

  it('to an agent that is attached by v1 is one of v1', () => {
    const { transfer, body } = wire.encode(G, 'agent.1.10')
    expect(transfer).toMatchObject({ exchange: 'qpid.management', routingKey: 'agent.1.10' })
    expect(decodeBody(body, lookup).messages).toEqual([G])
    expect(agentOf('0-0-1-10-2')).toBe('agent.1.10')
  })
})

describe('a delivery', () => {
  const wire = wireOf()
  const beat = Uint8Array.from(Buffer.from('414d32680000000018E9E51DDD83347C', 'hex'))

  it('by v1 is of an agent; what the broker itself broadcasts by v1 comes by v2 too', () => {
    expect(receive(wire, delivery({ routingKey: 'console.heartbeat.1.0', body: beat }))?.messages).toEqual([])
    const heard = receive(wire, delivery({ routingKey: 'console.heartbeat.1.10', body: beat }))
    expect(heard).toMatchObject({ messages: [{ op: 'h' }], sign: { agent: 'agent.1.10', isHeartbeat: true } })
  })

  it('that cannot be read ends its answer, unless it is a part of it', () => {
    const answers = ofV2.filter((one) => decodeMapMessage(one)?.op === 'objects')
    const stopped = (one: AmqpDelivery) => receive(wire, { ...one, body: one.body.subarray(0, -1) })?.stopped
    const ops = answers.map((one) => [one.headers.has('partial'), stopped(one)?.op])
    expect(new Set(ops.map(String))).toEqual(new Set(['true,g', 'false,z']))
    expect(stopped(answers[0]!)).toMatchObject({ reason: 'malformed', sequence: Number(answers[0]!.correlationId) })
  })

  it('with an exception without a code, or with 0, is a failure', () => {
    const codes = ofV2
      .filter((one) => decodeMapMessage(one)?.op === 'exception')
      .flatMap((one) => receive(wire, one)?.messages ?? [])
      .map((message) => (message.op === 'z' ? message.code : message.op))
    expect(codes).toContain(7)
    expect(codes).not.toContain(0)
  })
})

describe('an object id', () => {
  it('of another agent names it, and is shown without its epoch', () => {
    expect(agentOf('example.org:x:1\x00003\0pump')).toBe('example.org:x:1')
    expect(shownId('example.org:x:1\x00003\0pump')).toBe('example.org:x:1:pump')
    expect(shownId('org.apache.qpid.broker:queue:a')).toBe('org.apache.qpid.broker:queue:a')
  })
})
