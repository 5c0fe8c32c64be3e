import { describe, expect, test } from 'vitest'
import { AmqpReader, AmqpWriter } from '../../../protocol/amqp/bytes.ts'
import { ProtocolError } from '../../../protocol/errors.ts'
import { readProperties, writeProperties, writeValues } from '../../../protocol/qmf/messages.ts'
import { MAX_SCHEMA_ITEMS, MAX_SCHEMA_TEXT, readSchema } from '../../../protocol/qmf/schema.ts'
import type { TableSchema } from '../../../protocol/qmf/types.ts'
import { hex, join, toHex, u32 } from '../../support/bytes.ts'

const KEY = `0370 2e71 0163 ${'ab'.repeat(16)}`
const key = { packageName: 'p.q', className: 'c', hash: 'ab'.repeat(16) }

/** A map by hand: values as octet and bytes in hex. */
function map(fields: Readonly<Record<string, string>>): Uint8Array {
  const entries = Object.entries(fields).map(([name, value]) =>
    join(Uint8Array.of(name.length), Buffer.from(name), hex(value)),
  )
  const inside = join(u32(entries.length), ...entries)
  return join(u32(inside.length), inside)
}
const str16 = (text: string) => `95${text.length.toString(16).padStart(4, '0')}${toHex(Buffer.from(text))}`
const table = (counts: string, ...maps: readonly Uint8Array[]) => join(hex(`01 ${KEY} ${counts}`), ...maps)
const event = (...maps: readonly Uint8Array[]) => join(hex(`02 ${KEY}`), hex('0001'), ...maps)

function read(bytes: Uint8Array) {
  const cursor = new AmqpReader(bytes)
  const schema = readSchema(cursor)
  cursor.finish()
  return schema
}
function refusal(bytes: Uint8Array): string | undefined {
  try {
    read(bytes)
    return undefined
  } catch (error) {
    if (error instanceof ProtocolError) return error.code
    throw error
  }
}

describe('a schema', () => {
  test('is read by meaning, whatever octets its maps have', () => {
    const older = {
      name: str16('n'),
      type: '21 00000003',
      access: '31 0000000000000002',
      index: '0801',
      optional: '0200',
    }
    const more = {
      unit: '8501 75',
      desc: 'a000000001 64',
      min: '01 ff',
      max: '32 ffffffffffffffff',
      maxlen: '31 0000000000000009',
    }
    expect(read(table('0001 0000 0000', map({ ...older, ...more })))).toStrictEqual({
      kind: 'table',
      key,
      properties: [
        {
          name: 'n',
          type: 3,
          unit: 'u',
          description: 'd',
          min: -1,
          max: 18446744073709551615n,
          maxLength: 9,
          access: 2,
          isIndex: true,
          isOptional: false,
        },
      ],
      statistics: [],
      methods: [],
    })
  })

  test('takes a property that says nothing more than name and type', () => {
    const schema = read(table('0001 0000 0000', map({ name: str16('n'), type: '0203' })))
    expect(schema).toMatchObject({ properties: [{ access: 3, isIndex: false, isOptional: false }] })
  })

  test('has the arguments of each method after it', () => {
    const method = (name: string, count: string) => map({ name: str16(name), argCount: count })
    const argument = (name: string, dir: string, more = {}) =>
      map({ name: str16(name), type: '0201', dir: str16(dir), ...more })
    const maps = [
      method('a', '0202'),
      argument('x', 'i'),
      argument('y', 'Io', { default: '2100000007', refPackage: str16('rp'), refClass: str16('rc') }),
      method('b', '2100000000'),
    ]
    expect(read(table('0000 0000 0002', ...maps))).toMatchObject({
      methods: [
        {
          name: 'a',
          arguments: [
            { name: 'x', type: 1, direction: 'I' },
            { name: 'y', type: 1, direction: 'IO', default: 7, refPackage: 'rp', refClass: 'rc' },
          ],
        },
        { name: 'b', arguments: [] },
      ],
    })
    expect(refusal(table('0000 0000 0001', method('a', '0201'), argument('x', 'up')))).toBe('BAD_NAME')
    expect(refusal(table('0000 0000 0001', method('a', '01ff')))).toBe('BAD_COUNT')
    expect(refusal(table('0000 0000 0001', map({ name: str16('a') })))).toBe('BAD_COUNT')
  })

  test('may give the directions of arguments as numbers', () => {
    const argument = (dir: string) => map({ name: str16('x'), type: '0201', dir })
    const three = map({ name: str16('a'), argCount: '0203' })
    const maps = [three, argument('0201'), argument('2100000002'), argument('310000000000000003')]
    expect(read(table('0000 0000 0001', ...maps))).toMatchObject({
      methods: [{ arguments: [{ direction: 'I' }, { direction: 'O' }, { direction: 'IO' }] }],
    })
    const one = map({ name: str16('a'), argCount: '0201' })
    for (const dir of ['0200', '0204']) expect(refusal(table('0000 0000 0001', one, argument(dir)))).toBe('BAD_NAME')
  })

  test('is refused where an item has no name or no type', () => {
    expect(refusal(event(map({ type: '0201' })))).toBe('BAD_NAME')
    expect(refusal(event(map({ name: str16(''), type: '0201' })))).toBe('BAD_NAME')
    expect(refusal(event(hex('00000000')))).toBeDefined()
    expect(refusal(event(map({ name: str16('n') })))).toBe('BAD_COUNT')
  })

  test('may have items of types that are never read, but not of types that do not exist', () => {
    expect(refusal(event(map({ name: str16('n'), type: '0214' })))).toBeUndefined()
    expect(refusal(event(map({ name: str16('n'), type: '0216' })))).toBeUndefined()
    expect(refusal(event(map({ name: str16('n'), type: '0205' })))).toBe('BAD_TYPE')
    expect(refusal(event(map({ name: str16('n'), type: '0217' })))).toBe('BAD_TYPE')
  })

  test('has so many items and no more, those of its methods among them', () => {
    const statistic = map({ name: str16('s'), type: '0201' })
    const argument = map({ name: str16('s'), type: '0201', dir: str16('I') })
    const count = (n: number) => n.toString(16).padStart(4, '0')
    const of = (n: number) => table(`0000 ${count(n)} 0000`, ...Array.from({ length: n }, () => statistic))
    expect(refusal(of(MAX_SCHEMA_ITEMS))).toBeUndefined()
    expect(refusal(of(MAX_SCHEMA_ITEMS + 1))).toBe('BAD_COUNT')
    const called = (n: number) =>
      table(
        '0000 0000 0001',
        map({ name: str16('m'), argCount: `12${count(n)}` }),
        ...Array.from({ length: n }, () => argument),
      )
    expect(refusal(called(MAX_SCHEMA_ITEMS - 1))).toBeUndefined()
    expect(refusal(called(MAX_SCHEMA_ITEMS))).toBe('BAD_COUNT')
    expect(refusal(table('ffff ffff ffff'))).toBe('BAD_COUNT')
  })

  test('has texts so long and no longer', () => {
    const described = (length: number) =>
      event(map({ name: str16('n'), type: '0201', desc: str16('x'.repeat(length)) }))
    expect(refusal(described(MAX_SCHEMA_TEXT))).toBeUndefined()
    expect(refusal(described(MAX_SCHEMA_TEXT + 1))).toBe('TOO_LONG')
  })
})

describe('the presence mask', () => {
  const property = { type: 1, access: 3, isIndex: false } as const
  const schema: TableSchema = {
    kind: 'table',
    key,
    properties: [
      { ...property, name: 'first', isOptional: false },
      ...Array.from({ length: 10 }, (_, i) => ({ ...property, name: `o${i}`, isOptional: true })),
    ],
    statistics: [],
    methods: [],
  }
  const none = undefined
  // Of the optional ones the 0th, the 7th and the 8th: bits 0 and 7 of the first byte, bit 0 of the second.
  const values = [5, 10, none, none, none, none, none, none, 17, 18, none]

  test('has a bit for each optional property, in bytes of eight, the lowest first', () => {
    const cursor = new AmqpReader(hex('8101 05 0a 11 12'))
    expect(readProperties(cursor, schema)).toStrictEqual(values)
    expect(cursor.remaining).toBe(0)
    const writer = new AmqpWriter()
    writeProperties(writer, schema, values)
    expect(toHex(writer.bytes())).toBe('8101050a1112')
  })

  test('has no meaning in the bits after the last optional property', () => {
    expect(readProperties(new AmqpReader(hex('81fd 05 0a 11 12')), schema)).toStrictEqual(values)
  })

  test('cannot say that a property is absent that is not optional, nor that there are more or fewer', () => {
    const write = (list: typeof values) => () => writeProperties(new AmqpWriter(), schema, list)
    expect(write([none, ...values.slice(1)])).toThrow(ProtocolError)
    expect(write(values.slice(1))).toThrow(ProtocolError)
    expect(() => writeValues(new AmqpWriter(), schema.properties, [1])).toThrow(ProtocolError)
  })
})
