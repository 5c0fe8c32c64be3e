import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { FieldTable, FieldValue } from '../../../../protocol/amqp/field-table.ts'
import { ProtocolError } from '../../../../protocol/errors.ts'
import { MAX_MESSAGES } from '../../../../protocol/qmf/messages.ts'
import { MAX_SCHEMA_ITEMS, MAX_SCHEMA_TEXT } from '../../../../protocol/qmf/schema.ts'
import { MAX_OBJECT_NAME } from '../../../../protocol/qmf/v2/messages.ts'
import { hex, join, u32 } from '../../../support/bytes.ts'
import { isLong, times } from '../../../support/long.ts'
import { str8, str16 } from '../../../support/qmf/wire.ts'
import { Random } from '../../../support/random.ts'
import * as any from '../arbitraries.ts'
import { decodeWhole, ofV2, type WholeMessage } from './recording.ts'

/** A map and a list as a sender writes them: each value is its type code and its bytes. */
const mapOf = (entries: Readonly<Record<string, Uint8Array>>): Uint8Array => {
  const all = join(...Object.entries(entries).flatMap(([key, value]) => [str8(key), value]))
  return join(u32(all.length + 4), u32(Object.keys(entries).length), all)
}
const listOf = (...values: readonly Uint8Array[]): Uint8Array => {
  const all = join(...values)
  return join(u32(all.length + 4), u32(values.length), all)
}
const map = (entries: Readonly<Record<string, Uint8Array>>) => join(hex('a8'), mapOf(entries))
const list = (...values: readonly Uint8Array[]) => join(hex('a9'), listOf(...values))
const text = (value: string) => join(hex('90'), str16(value))
const uint = (value: number) => join(hex('22'), u32(value))

const HASH = '4bd88d64-2f35-d894-435c-1f2ee8c47e69'
const uuid = hex(`48 ${HASH.replaceAll('-', '')}`)
const classParts = { _package_name: text('p'), _class_name: text('c'), _hash: uuid }
const table = map({ ...classParts, _type: text('_data') })
const eventId = map({ ...classParts, _type: text('_event') })
const object = { _object_id: map({ _object_name: text('o') }), _schema_id: table, _values: map({}) }

const headersOf = (opcode: string, content?: string): FieldTable =>
  new Map<string, FieldValue>([
    ['qmf.agent', 'a'],
    ['qmf.opcode', opcode],
    ...(content === undefined ? [] : [['qmf.content', content] as const]),
  ])
const DATA = headersOf('_data_indication', '_data')
const EVENT = headersOf('_data_indication', '_event')
const SCHEMAS = headersOf('_query_response', '_schema')
const EXCEPTION = headersOf('_exception')
const HEARTBEAT = headersOf('_agent_heartbeat_indication')
const decode = (headers: FieldTable, body: Uint8Array) => decodeWhole({ headers, body })

function errorOf(read: () => unknown): Pick<ProtocolError, 'code' | 'offset'> | undefined {
  try {
    read()
    return undefined
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error
    return { code: error.code, offset: error.offset }
  }
}

describe('what a console has no use for is passed over, read or not', () => {
  test.each([
    ['a request', headersOf('_query_request')],
    ['an opcode that is not known', headersOf('_subscribe_response')],
    ['an indication of something else', headersOf('_data_indication', '_schema_id')],
    ['an answer of something else', headersOf('_query_response', '_object_id')],
    ['no opcode', new Map()],
  ])('%s', (_, headers) => {
    expect(decode(headers, hex('ffffffff'))).toBeUndefined()
  })
})

describe('lists', () => {
  test('may be empty, in both forms', () => {
    for (const bytes of ['00000004 00000000', '00000000']) {
      expect(decode(DATA, hex(bytes))).toStrictEqual({ agent: 'a', op: 'data', objects: [] })
    }
  })

  test('may hold several events', () => {
    const event = { _schema_id: eventId, _severity: hex('2100000004'), _timestamp: uint(7), _values: map({}) }
    const message = decode(EVENT, listOf(map(event), map(event)))
    const key = { packageName: 'p', className: 'c', hash: HASH.replaceAll('-', '') }
    const read = { key, time: 7n, severity: 4, values: new Map() }
    expect(message).toStrictEqual({ agent: 'a', op: 'event', events: [read, read] })
  })

  test('may hold an object without an id or times', () => {
    const { _object_id: _, ...rest } = object
    const [read] = (decode(DATA, listOf(map(rest))) as Extract<WholeMessage, { op: 'data' }>).objects
    expect(Object.keys(read!).toSorted()).toEqual(['deleted', 'key', 'values'])
    expect(read?.deleted).toBe(0n)
  })

  test('are limited in their number', () => {
    const most = Array.from({ length: MAX_MESSAGES }, () => map(object))
    expect(decode(DATA, listOf(...most))).toMatchObject({ op: 'data' })
    const error = errorOf(() => decode(DATA, listOf(...most, map(object))))
    expect(error).toEqual({ code: 'BAD_COUNT', offset: 8 + MAX_MESSAGES * map(object).length })
  })

  test('end with their last item', () => {
    const bytes = listOf(map(object))
    expect(errorOf(() => decode(DATA, join(bytes, hex('00'))))).toEqual({
      code: 'TRAILING_BYTES',
      offset: bytes.length,
    })
    expect(errorOf(() => decode(DATA, join(u32(5), u32(0), hex('00'))))).toEqual({ code: 'TRAILING_BYTES', offset: 8 })
    expect(errorOf(() => decode(HEARTBEAT, join(mapOf({ _values: map({}) }), hex('00'))))?.code).toBe('TRAILING_BYTES')
  })
})

test('every message decodes inside a larger buffer, of which nothing is kept', () => {
  for (const { headers, body } of ofV2) {
    const buffer = Buffer.concat([Buffer.alloc(7, 0xff), body, Buffer.alloc(7, 0xff)])
    const decoded = decode(headers, buffer.subarray(7, 7 + body.length))
    buffer.fill(0xee)
    expect(decoded).toStrictEqual(decode(headers, body))
  }
})

describe('an item that cannot be read is named by its position', () => {
  const first = map(object)
  const second = 8 + first.length
  test.each<[string, Uint8Array, ProtocolError['code']]>([
    ['text', text('x'), 'BAD_TYPE'],
    ['an object without a class', map({ _values: map({}) }), 'BAD_TYPE'],
    ['an object without values', map({ ...object, _values: text('x') }), 'BAD_TYPE'],
    ['an object id without a name', map({ ...object, _object_id: map({}) }), 'BAD_NAME'],
    ['an object id that is text', map({ ...object, _object_id: text('o') }), 'BAD_TYPE'],
    [
      'an object with too long a name',
      map({ ...object, _object_id: map({ _object_name: text('x'.repeat(MAX_OBJECT_NAME + 1)) }) }),
      'TOO_LONG',
    ],
    ['a class of no kind', map({ ...object, _schema_id: map(classParts) }), 'BAD_NAME'],
    [
      'a class whose hash is text',
      map({ ...object, _schema_id: map({ ...classParts, _type: text('_data'), _hash: text('x') }) }),
      'BAD_NAME',
    ],
    [
      'a class with too long a name',
      map({ ...object, _schema_id: map({ ...classParts, _type: text('_data'), _class_name: text('x'.repeat(256)) }) }),
      'TOO_LONG',
    ],
  ])('%s', (_, item, code) => {
    expect(errorOf(() => decode(DATA, listOf(first, item)))).toEqual({ code, offset: second })
  })

  test('an event without a time or a severity', () => {
    const event = { _schema_id: eventId, _severity: uint(4), _timestamp: uint(7), _values: map({}) }
    expect(errorOf(() => decode(EVENT, listOf(map({ ...event, _timestamp: text('now') }))))).toEqual({
      code: 'BAD_NUMBER',
      offset: 8,
    })
    expect(errorOf(() => decode(EVENT, listOf(map({ ...event, _severity: hex('f0') }))))?.code).toBe('BAD_NUMBER')
  })

  test('lists and maps too deep in each other', () => {
    const nested = (depth: number): Uint8Array => (depth === 0 ? hex('f0') : list(nested(depth - 1)))
    const holding = (depth: number) => listOf(map({ ...object, _values: map({ x: nested(depth) }) }))
    expect(decode(DATA, holding(13))).toMatchObject({ op: 'data' })
    expect(errorOf(() => decode(DATA, holding(14)))?.code).toBe('TOO_DEEP')
  })
})

describe('an agent', () => {
  const values = { _name: text('v:p:i'), _timestamp: uint(7), _heartbeat_interval: hex('120002') }

  test('needs no epoch', () => {
    const status = { name: 'v:p:i', time: 7n, interval: 2, epoch: 0n }
    expect(decode(HEARTBEAT, mapOf({ _values: map(values) }))).toStrictEqual({ agent: 'a', op: 'heartbeat', status })
  })

  test.each(['_name', '_timestamp', '_heartbeat_interval'])('needs %s', (key) => {
    const { [key as keyof typeof values]: _, ...rest } = values
    const error = errorOf(() => decode(HEARTBEAT, mapOf({ _values: map(rest) })))
    expect(error).toEqual({ code: key === '_name' ? 'BAD_NAME' : 'BAD_NUMBER', offset: 0 })
  })

  test('may have no name in the header, and none that is too long', () => {
    const body = mapOf({ _values: map(values) })
    const named = (name?: string) => new Map([...HEARTBEAT, ['qmf.agent', name ?? 7]] as [string, FieldValue][])
    expect(decode(named(), body)?.agent).toBe('')
    expect(errorOf(() => decode(named('x'.repeat(256)), body))?.code).toBe('TOO_LONG')
  })
})

describe('an answer to a call', () => {
  test('may have no arguments', () => {
    const result = { agent: 'a', op: 'result', arguments: new Map() }
    expect(decode(headersOf('_method_response'), mapOf({}))).toStrictEqual(result)
  })

  test.each<[string, Readonly<Record<string, Uint8Array>>, object]>([
    ['a code and a text', { error_code: uint(7), error_text: text('no') }, { code: 7n, text: 'no' }],
    ['a text alone', { error_text: text('no') }, { text: 'no' }],
    ['a code that is none', { error_code: text('x'), error_text: text('no') }, { text: 'no' }],
    ['nothing', {}, { text: '' }],
  ])('may be an exception with %s', (_, values, expected) => {
    expect(decode(EXCEPTION, mapOf({ _values: map(values) }))).toStrictEqual({
      agent: 'a',
      op: 'exception',
      ...expected,
    })
  })
})

describe('a schema', () => {
  const id = { _schema_id: table }
  const item = map({ _name: text('n'), _type: text('TYPE_INT') })
  const decoded = (entries: Readonly<Record<string, Uint8Array>>) => {
    const message = decode(SCHEMAS, listOf(map(entries)))
    return message?.op === 'schemas' ? message.schemas[0] : undefined
  }

  test('of an event has arguments', () => {
    expect(decoded({ _schema_id: eventId, _properties: list(item) })).toMatchObject({
      kind: 'event',
      arguments: [{ name: 'n', type: 19 }],
    })
  })

  test('leaves out an item of a type that cannot be shown', () => {
    const other = map({ _name: text('v'), _type: text('TYPE_VOID') })
    expect(decoded({ ...id, _properties: list(other, item) })).toMatchObject({ properties: [{ name: 'n' }] })
  })

  test.each<[string, Readonly<Record<string, Uint8Array>>, ProtocolError['code']]>([
    ['properties that are no list', { _properties: map({}) }, 'BAD_TYPE'],
    ['a property that is no map', { _properties: list(text('x')) }, 'BAD_TYPE'],
    ['a property without a name', { _properties: list(map({ _type: text('TYPE_INT') })) }, 'BAD_NAME'],
    [
      'too long a description',
      { _methods: list(map({ _name: text('m'), _desc: text('x'.repeat(MAX_SCHEMA_TEXT + 1)) })) },
      'TOO_LONG',
    ],
    [
      'an argument without a direction',
      { _methods: list(map({ _name: text('m'), _arguments: list(item) })) },
      'BAD_NAME',
    ],
    [
      'too many items',
      {
        _properties: list(...Array.from({ length: MAX_SCHEMA_ITEMS - 1 }, () => item)),
        _methods: list(map({ _name: text('m') }), map({ _name: text('m') })),
      },
      'BAD_COUNT',
    ],
  ])('is refused for %s', (_, entries, code) => {
    expect(errorOf(() => decoded({ ...id, ...entries }))).toEqual({ code, offset: 8 })
  })
})

describe('outside bytes cause nothing but a ProtocolError inside the body', () => {
  const attempt = (headers: FieldTable, body: Uint8Array): void => {
    const error = errorOf(() => decode(headers, body))
    if (error !== undefined && (error.offset < 0 || error.offset > body.length)) throw new Error(`at ${error.offset}`)
  }

  test('where they are cut off, which is always noticed', () => {
    const random = new Random(5)
    // In the long form each message at up to a thousand places: everywhere, unless it is longer than that.
    const cuts = isLong
      ? ofV2.flatMap((delivery) => {
          const step = Math.ceil(delivery.body.length / 1_000)
          return Array.from({ length: Math.ceil(delivery.body.length / step) }, (_, n) => [delivery, n * step] as const)
        })
      : Array.from({ length: 500 }, () => {
          const delivery = random.pick(ofV2)
          return [delivery, random.below(delivery.body.length)] as const
        })
    for (const [{ headers, body }, at] of cuts) {
      const cut = body.subarray(0, at)
      const error = errorOf(() => decode(headers, cut))
      if (error?.code !== 'TRUNCATED' || error.offset > at) throw new Error(`cut at ${at}: ${JSON.stringify(error)}`)
    }
  })

  test('where real ones are changed', () => {
    const small = ofV2.filter(({ body }) => body.length < 20_000)
    const changes = fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 5 })
    fc.assert(
      fc.property(fc.constantFrom(...small), changes, ({ headers, body }, spots) => {
        const spoilt = body.slice()
        for (const [at, value] of spots) spoilt[at % spoilt.length] = value
        attempt(headers, spoilt)
      }),
      { numRuns: times({ short: 500, long: 2_000 }) },
    )
  })

  test('where body and headers are random', () => {
    const headers = fc.oneof(fc.constantFrom(...new Set(ofV2.map((delivery) => delivery.headers))), any.fieldTable)
    fc.assert(
      fc.property(headers, fc.uint8Array({ maxLength: 400 }), (given, body) => attempt(given, body)),
      { numRuns: times({ short: 500, long: 2_000 }) },
    )
  })

  test('where they are a map of random values', () => {
    const values = fc.dictionary(fc.constantFrom('_values', '_arguments', '_schema_id'), fc.uint8Array())
    const body = values.map((entries) => mapOf(entries))
    fc.assert(
      fc.property(fc.constantFrom(HEARTBEAT, EXCEPTION, DATA), body, (headers, bytes) => attempt(headers, bytes)),
      { numRuns: 500 },
    )
  })
})
