/** The whole recording, decoded and compared with what another console made of it. */
import { describe, expect, test } from 'vitest'
import type { FieldTable } from '../../../../protocol/amqp/field-table.ts'
import { outputsOf } from '../../../../protocol/qmf/schema.ts'
import { QmfType, type SchemaItem } from '../../../../protocol/qmf/types.ts'
import type { MapMessage, MapObject } from '../../../../protocol/qmf/v2/messages.ts'
import { mapValues, sampleOf } from '../../../../protocol/qmf/v2/values.ts'
import { toHex } from '../../../support/bytes.ts'
import { Random } from '../../../support/random.ts'
import {
  brokerStream,
  concluded,
  decodeWhole,
  deliveries,
  frameBorders,
  type Heard,
  ofV1,
  ofV2,
  plain,
  replay,
  schemas,
  titleOf,
  type WholeMessage,
  whole,
} from './recording.ts'

type Message<Op extends MapMessage['op']> = Extract<WholeMessage, { op: Op }>

const messages = ofV2.map((delivery) => decodeWhole(delivery))
function all<Op extends MapMessage['op']>(...ops: readonly Op[]): Message<Op>[] {
  const isOp = (message: WholeMessage | undefined): message is Message<Op> => ops.some((op) => op === message?.op)
  return messages.filter(isOp)
}

describe('the recording', () => {
  test('is delivered to the last byte', () => {
    const ours = deliveries.map(({ routingKey, contentType, correlationId, appId, headers }) => {
      const { 'x-amqp-0-10.app-id': _, ...shown } = Object.fromEntries(headers)
      return { routingKey, contentType, correlationId, appId, headers: shown }
    })
    const theirs = concluded('message').map(({ n: _, ttl: __, userId: ___, ...message }) => message)
    expect(ours.map(plain)).toEqual(theirs.map(plain))
    expect(ours).toHaveLength(419)
    const [{ text }] = concluded('sessionException') as [{ text: string }]
    const reason = text.slice(0, text.lastIndexOf('('))
    expect(whole.ends).toEqual([expect.stringContaining(`ended the session (403): ${reason}`)])
  })

  test('is decoded to the last byte, as messages of v2 and the schemas by v1', () => {
    expect(messages.filter((message) => message === undefined)).toEqual([])
    expect(ofV1.flatMap(({ stopped }) => stopped ?? [])).toEqual([])
    const others = ofV1.flatMap(({ messages: found }) => found).filter(({ op }) => op !== 's')
    expect(others.map(({ op, sequence: seq }) => ({ op, seq }))).toEqual(
      concluded('v1').map(({ op, seq }) => ({ op, seq })),
    )
    expect([...schemas.keys()].toSorted()).toEqual(
      concluded('schema')
        .map(({ cls }) => cls)
        .toSorted(),
    )
    expect(schemas.size).toBe(25)
  })
})

const random = new Random(11)
const cuttings: readonly (readonly [name: string, cuts: readonly number[]])[] = [
  ['byte by byte', Array.from(brokerStream, (_, i) => i)],
  ['at every border of a frame', frameBorders()],
  ['at 500 places', Array.from({ length: 500 }, () => random.below(brokerStream.length)).sort((a, b) => a - b)],
]
test.each(cuttings)('the same is delivered if it is cut %s', (_, cuts) => {
  expect(shown(replay(cuts)) === shown(whole)).toBe(true)
})

/** As text, which is compared in no time. */
function shown(heard: Heard): string {
  return JSON.stringify(heard, (_, value) => {
    return value instanceof Uint8Array ? toHex(value) : value instanceof Map ? [...value] : value
  })
}

describe('the other console concluded the same', () => {
  test('about agents and their heartbeats', () => {
    const statuses = (op: 'located' | 'heartbeat') =>
      all(op).map(({ status: { name, time, interval, epoch } }) => ({
        agent: name,
        timestamp: time,
        interval,
        epoch,
      }))
    const theirs = (kind: string) =>
      concluded(kind).map(({ agent, timestamp, interval, values }) => {
        return { agent, timestamp, interval, epoch: Object(values)._epoch }
      })
    expect(plain(statuses('located'))).toEqual(plain(theirs('agent')))
    expect(plain(statuses('heartbeat'))).toEqual(plain(theirs('heartbeat')))
    expect([statuses('located').length, statuses('heartbeat').length]).toEqual([5, 35])
  })

  test('about every event', () => {
    const ours = all('event').flatMap(({ agent, events }) =>
      events.map(({ key, time, severity, values }) => {
        const shown = { agent, severity, timestamp: time, arguments: values }
        return { cls: titleOf({ kind: 'event', key }), ...shown }
      }),
    )
    expect(ours.map(plain)).toEqual(concluded('event').map(({ n: _, ...event }) => plain(event)))
    expect(ours).toHaveLength(46)
  })

  function object({ id, key, sampled, created, deleted, values }: MapObject) {
    const isOfBroker = sampled !== undefined
    return plain({
      cls: titleOf({ kind: 'table', key }),
      objectId: {
        ...(id?.agent !== undefined && { _agent_name: id.agent }),
        ...(id?.epoch !== undefined && { _agent_epoch: id.epoch }),
        _object_name: id?.name,
      },
      timestamps: [sampled, created, isOfBroker ? deleted : undefined],
      values,
    })
  }

  test.each([
    ['data', 'data', 665],
    ['get', 'objects', 175],
  ] as const)('about every object of %s', (kind, op, count) => {
    const ours = all(op).flatMap(({ objects, agent }) => objects.map((one) => ({ agent, ...Object(object(one)) })))
    expect(ours).toEqual(concluded(kind).map(({ n: _, cid: __, ...rest }) => plain(rest)))
    expect(ours).toHaveLength(count)
  })

  test('about the end of every answer, and who asked', () => {
    const ours = all('objects', 'classes', 'schemas').filter(({ isPartial }) => !isPartial)
    const objects = ours.filter(({ op }) => op === 'objects').map(({ agent, correlationId: cid }) => ({ agent, cid }))
    expect(objects).toEqual(concluded('complete').map(({ agent, cid }) => ({ agent, cid })))
    const parts = concluded('message').filter(({ headers }) => Object.hasOwn(Object(headers), 'partial'))
    const more = all('objects', 'classes', 'schemas').filter(({ isPartial }) => isPartial)
    expect(more.map(({ op, correlationId }) => [op, correlationId])).toEqual(
      parts.map(({ correlationId }) => ['objects', correlationId]),
    )
    expect([objects.length, more.length, ours.length]).toEqual([23, 3, 26])
  })

  test('about the classes and schemas of an agent', () => {
    const ids = all('classes').map(({ classes }) => classes.map(titleOf))
    expect(ids).toEqual(concluded('schemaIds').map(({ classes }) => classes))
    const ours = all('schemas').map(({ schemas: found }) => found)
    expect(ours.map(([schema]) => schema && titleOf(schema))).toEqual(
      concluded('schemaV2').map(({ cls }) => cls ?? undefined),
    )
    const [[pump]] = ours as [[(typeof ours)[0][0]]]
    if (pump?.kind !== 'table') throw new Error('no class was answered')
    const [told] = concluded('schemaV2').map(({ schema }) => Object(schema))
    const item = ({ name, unit, description }: SchemaItem) => ({ _name: name, _unit: unit, _desc: description })
    const shown = ({ _name, _unit, _desc }: Record<string, unknown>) => ({ _name, _unit, _desc })
    expect(pump.properties.map(item)).toEqual(told._properties.map(shown))
    expect(pump.properties.map(({ type, access, isIndex }) => [type, access, isIndex])).toEqual([
      [QmfType.LONG_STRING, 3, true],
      [QmfType.INT64, 2, false],
      [QmfType.DOUBLE, 3, false],
      [QmfType.BOOL, 3, false],
      [QmfType.LONG_STRING, 3, false],
      [QmfType.UUID, 3, false],
      [QmfType.MAP, 3, false],
      [QmfType.LIST, 3, false],
    ])
    const args = pump.methods.map((method) => method.arguments.map((a) => [a.name, a.type, a.direction, a.unit]))
    expect(pump.methods.map(({ name, description }) => [name, description])).toEqual([
      ['setSpeed', 'Changes the speed'],
      ['explode', undefined],
    ])
    expect(args).toEqual([
      [
        ['rpm', QmfType.INT64, 'I', '1/min'],
        ['before', QmfType.INT64, 'O', undefined],
      ],
      [],
    ])
  })

  test('about every method and every other exception', () => {
    const theirs = [...concluded('method'), ...concluded('exception')]
      .map(({ n, agent, cid, status, text, out }) => ({ n: Number(n), agent, cid, status, text, out }))
      .toSorted((a, b) => a.n - b.n)
      .map(({ n: _, ...rest }) => plain(rest))
    const ours = all('result', 'exception').map(({ correlationId: cid, agent, ...reply }) => {
      if (reply.op === 'result') return plain({ agent, cid, status: 0, text: 'OK', out: reply.arguments })
      return plain({ agent, cid, status: reply.code, text: reply.text, out: null })
    })
    expect(ours).toEqual(theirs)
    expect(ours).toHaveLength(37)
  })
})

describe('by the schemas of the broker', () => {
  const objects = all('data', 'objects').flatMap((message) => message.objects)
  const known = objects.flatMap((one) => {
    const schema = schemas.get(titleOf({ kind: 'table', key: one.key }))
    return schema?.kind === 'table' ? [{ ...one, schema }] : []
  })

  /** What the broker calls otherwise than its schema. */
  const keys = new Map([
    ['messageLatencySamples', 'messageLatencyCount'],
    ['messageLatencyAverage', 'messageLatencyAvg'],
  ])
  const byKey = (items: readonly SchemaItem[], values: readonly unknown[] = []) =>
    items.flatMap(({ name }, i) => (values[i] === undefined ? [] : [[keys.get(name) ?? name, values[i]] as const]))
  const referenced = (values: FieldTable) =>
    [...values].map(([key, value]) => {
      const isReference = value instanceof Map && value.has('_object_name')
      return [key, isReference ? value.get('_object_name') : value] as const
    })

  test('every value of every object fits, under its name in the schema', () => {
    for (const { schema, values } of known) {
      const { properties, statistics } = sampleOf(schema, values)
      const read = [...byKey(schema.properties, properties), ...byKey(schema.statistics, statistics)]
      expect(plain(new Map(read))).toEqual(plain(new Map(referenced(values))))
    }
    expect([known.length, objects.length - known.length]).toEqual([817, 23])
  })

  test('every object has all its statistics or none, all its properties but optional ones or none', () => {
    const samples = known.map(({ schema, values }) => ({ schema, ...sampleOf(schema, values) }))
    for (const { schema, properties, statistics } of samples) {
      expect(statistics ?? []).not.toContain(undefined)
      const absent = schema.properties.filter(({ isOptional }, i) => properties?.[i] === undefined && !isOptional)
      if (properties !== undefined) expect(absent).toEqual([])
    }
    const having = (kind: 'properties' | 'statistics') => samples.filter((sample) => sample[kind] !== undefined)
    expect([having('properties').length, having('statistics').length]).toEqual([488, 782])
  })

  test('each value has the type of its schema, whatever its octet', () => {
    const typeOf = (items: readonly SchemaItem[], values: readonly unknown[] = []) =>
      items.flatMap(({ type }, i) => (values[i] === undefined ? [] : [`${type} ${typeof values[i]}`]))
    const found = known.flatMap(({ schema, values }) => {
      const { properties, statistics } = sampleOf(schema, values)
      return [...typeOf(schema.properties, properties), ...typeOf(schema.statistics, statistics)]
    })
    const expected = {
      '2 number': QmfType.UINT16,
      '3 number': QmfType.UINT32,
      '4 bigint': QmfType.UINT64,
      '6 string': QmfType.SHORT_STRING,
      '7 string': QmfType.LONG_STRING,
      '8 bigint': QmfType.ABSTIME,
      '9 bigint': QmfType.DELTATIME,
      '10 string': QmfType.REFERENCE,
      '11 boolean': QmfType.BOOL,
      '14 string': QmfType.UUID,
      '15 object': QmfType.MAP,
    }
    expect([...new Set(found)].toSorted()).toEqual(Object.keys(expected).toSorted())
  })

  test('every event has all its arguments', () => {
    const events = all('event').flatMap((message) => message.events)
    const ours = events.flatMap(({ key, values }) => {
      const schema = schemas.get(titleOf({ kind: 'event', key }))
      return schema?.kind === 'event' ? [[byKey(schema.arguments, mapValues(schema.arguments, values)), values]] : []
    })
    for (const [read, values] of ours) expect(plain(new Map(read as []))).toEqual(plain(values))
    expect(ours).toHaveLength(40)
  })

  test('every result has all its arguments', () => {
    const broker = [...schemas.values()].find(({ key }) => key.className === 'broker')
    const echo = broker?.kind === 'table' && broker.methods.find(({ name }) => name === 'echo')
    if (!echo) throw new Error('no echo was recorded')
    const [first] = all('result')
    expect(mapValues(outputsOf(echo), first!.arguments)).toEqual([77, 'Grüße aus dem Norden'])
  })
})
