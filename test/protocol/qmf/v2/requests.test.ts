/** What a console asks, compared with what another console asked the recorded broker. */
import { describe, expect, test } from 'vitest'
import type { FieldTable, FieldValue } from '../../../../protocol/amqp/field-table.ts'
import { inputsOf } from '../../../../protocol/qmf/schema.ts'
import { QmfType, type SchemaMethod } from '../../../../protocol/qmf/types.ts'
import { encodeMapRequest, type MapRequest, type ObjectAddress } from '../../../../protocol/qmf/v2/messages.ts'
import { mapValues } from '../../../../protocol/qmf/v2/values.ts'
import { hex, join, toHex } from '../../../support/bytes.ts'
import { concluded, requests, schemas } from './recording.ts'

/** The recorded contents come without type codes: integers of JSON are int64, as that console sent them. */
function tableOf(content: unknown): FieldTable {
  const value = (one: unknown): FieldValue => {
    if (typeof one === 'number') return BigInt(one)
    return typeof one === 'object' && one !== null ? tableOf(one) : (one as FieldValue)
  }
  return new Map(Object.entries(Object(content)).map(([key, one]) => [key, value(one)]))
}

const setSpeed: SchemaMethod = {
  name: 'setSpeed',
  arguments: [{ name: 'rpm', type: QmfType.INT64, direction: 'I' }],
}
const explode: SchemaMethod = { name: 'explode', arguments: [] }
const known = [
  setSpeed,
  explode,
  ...[...schemas.values()].flatMap((schema) => (schema.kind === 'table' ? schema.methods : [])),
]

/** Undefined for what is none of our requests: wrong ones, and predicates. */
function requestOf(opcode: unknown, agent: string, content: unknown): MapRequest | undefined {
  if (opcode === '_agent_locate_request')
    return Array.isArray(content) && content.length === 0 ? { op: 'locate' } : undefined
  const { _what, _where, _schema_id, _object_id, _method_name, _arguments } = Object(content)
  if (opcode === '_method_request') return callOf(agent, _object_id, _method_name, _arguments)
  if (opcode !== '_query_request' || _where !== undefined) return undefined
  const { _package_name, _class_name, _type, _hash } = Object(_schema_id)
  if (_what === 'SCHEMA_ID') return { op: 'classes', agent }
  if (_what === 'SCHEMA' && _hash !== undefined) {
    const key = { packageName: _package_name, className: _class_name, hash: String(_hash).replaceAll('-', '') }
    return { op: 'schema', agent, kind: _type === '_data' ? 'table' : 'event', key }
  }
  if (_what !== 'OBJECT') return undefined
  if (_object_id !== undefined) return { op: 'object', agent, id: addressOf(_object_id) }
  if (_package_name === undefined || _class_name === undefined) return undefined
  return { op: 'class', agent, packageName: _package_name, className: _class_name }
}

/** `values` holds undefined where an argument is missing or wrong, as in some of the calls. */
function callOf(agent: string, id: unknown, name: unknown, given: unknown): MapRequest | undefined {
  const method = known.find((one) => one.name === name)
  const inputs = method && inputsOf(method)
  const values = inputs && mapValues(inputs, tableOf(given))
  if (method === undefined || given === undefined || values?.includes(undefined)) return undefined
  if (Object(id)._object_name === undefined) return undefined
  const told = Object.keys(Object(given)).length
  return told === inputs?.length
    ? { op: 'call', agent, id: addressOf(id), method, arguments: values as never }
    : undefined
}

function addressOf(id: unknown): ObjectAddress {
  const { _object_name: name, _agent_name: agent, _agent_epoch: epoch } = Object(id)
  return { name, ...(agent !== undefined && { agent }), ...(epoch !== undefined && { epoch: BigInt(epoch) }) }
}

/** The bytes of a map with sorted keys, read by hand: a map of Python comes in any order. */
function sorted(map: Uint8Array): string {
  const bytes = Buffer.from(map)
  const entries: string[] = []
  for (let at = 8; at < bytes.length; ) {
    const begin = at
    const octet = bytes[at + 1 + bytes[at]!]!
    at += 2 + bytes[at]!
    const value = at
    const sizes: Readonly<Record<number, number>> = { 8: 1, 49: 8, 72: 16 }
    if (octet === 0x95) at += 2 + bytes.readUInt16BE(at)
    else if (octet === 0xa8) at += 4 + bytes.readUInt32BE(at)
    else at += sizes[octet] ?? Number.NaN
    const shown = octet === 0xa8 ? sorted(bytes.subarray(value, at)) : toHex(bytes.subarray(value, at))
    entries.push(`${toHex(bytes.subarray(begin, value))} ${shown}`)
  }
  return `${toHex(bytes.subarray(0, 8))} {${entries.toSorted().join(', ')}}`
}

const said = concluded('request').flatMap(({ cid, key, opcode, content }) => {
  const request = requestOf(opcode, String(key), content)
  const recorded = requests.find(({ header }) => header.message.correlationId === cid)
  return request && recorded && header(recorded).app === 'qmf2'
    ? [{ name: `${request.op} ${cid}`, request, recorded }]
    : []
})

function header({ header: { message } }: (typeof requests)[number]) {
  return { app: message.appId, replyTo: message.replyTo }
}

describe('what another console asked', () => {
  test.each(said)('$name is asked with the same bytes, but for the order of keys', ({ request, recorded }) => {
    const { delivery, message } = recorded.header
    const { correlationId, replyTo } = message as {
      correlationId: string
      replyTo: NonNullable<typeof message.replyTo>
    }
    const { transfer, body } = encodeMapRequest(request, { correlationId, replyTo })
    const { headers, ...properties } = transfer
    expect(properties).toEqual({
      exchange: recorded.exchange,
      routingKey: delivery.routingKey,
      contentType: message.contentType,
      appId: message.appId,
      correlationId,
      replyTo,
    })
    // The other console repeats the app-id and the routing key there.
    for (const [key, value] of headers ?? []) expect([key, message.headers?.get(key)]).toEqual([key, value])
    expect(headers?.size).toBe(2)
    if (request.op === 'locate') expect(body).toEqual(recorded.body)
    else expect(sorted(body)).toBe(sorted(recorded.body))
  })

  test('is of every kind', () => {
    const count = (op: string) => said.filter(({ request }) => request.op === op).length
    const ops = ['locate', 'class', 'object', 'classes', 'schema', 'call']
    expect(Object.fromEntries(ops.map((op) => [op, count(op)]))).toEqual({
      locate: 1,
      class: 3,
      object: 5,
      classes: 2,
      schema: 1,
      call: 20,
    })
  })
})

describe('a call', () => {
  const call = (arguments_: readonly never[] | readonly bigint[], method = setSpeed): MapRequest => ({
    op: 'call',
    agent: 'example.org:waterworks:east-2',
    id: { name: 'pump.0' },
    method,
    arguments: arguments_,
  })
  const origin = { correlationId: '1', replyTo: { exchange: 'qmf.default.direct', routingKey: 'console' } }

  test('without an argument, or with one too many, is not sent', () => {
    expect(() => encodeMapRequest(call([]), origin)).toThrow('0 arguments for 1 of "setSpeed"')
    expect(() => encodeMapRequest(call([1n, 2n]), origin)).toThrow('2 arguments for 1 of "setSpeed"')
    expect(() => encodeMapRequest(call([1n], explode), origin)).toThrow('1 arguments for 0 of "explode"')
  })

  test('longer than a broker takes is not sent', () => {
    const method: SchemaMethod = {
      name: 'note',
      arguments: [{ name: 'text', type: QmfType.LONG_STRING, direction: 'I' }],
    }
    const sized = (length: number) => {
      const request = { ...call([], method), arguments: ['x'.repeat(length)] } as MapRequest
      return encodeMapRequest(request, origin).body.length
    }
    const rest = sized(1) - 1
    expect(sized(65_536 - rest)).toBe(65_536)
    expect(() => sized(65_537 - rest)).toThrow('65537 bytes, where a broker takes 65536')
  })

  test('carries only inputs', () => {
    const method: SchemaMethod = {
      name: 'm',
      arguments: [
        { name: 'o', type: QmfType.BOOL, direction: 'O' },
        { name: 'i', type: QmfType.BOOL, direction: 'I' },
        { name: 'b', type: QmfType.REFERENCE, direction: 'IO' },
      ],
    }
    const request = { ...call([], method), id: { name: 'x' }, arguments: [true, 'y'] } as MapRequest
    const { body } = encodeMapRequest(request, origin)
    const text = (value: string) => Uint8Array.from([value.length, ...Buffer.from(value)])
    const name = (value: string) => join(text('_object_name'), hex('9500'), text(value))
    const object = join(hex('00000015 00000001'), name('x'))
    const values = join(text('i'), hex('08 01'), text('b'), hex('a8 00000015 00000001'), name('y'))
    const parts = [
      join(text('_object_id'), hex('a8'), object),
      join(text('_method_name'), hex('95 0001 6d')),
      join(text('_arguments'), hex('a8'), hex('00000024 00000002'), values),
    ]
    const all = join(...parts)
    expect(toHex(body)).toBe(`${(all.length + 4).toString(16).padStart(8, '0')}00000003${toHex(all)}`)
  })
})
