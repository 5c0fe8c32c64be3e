import { describe, expect, test } from 'vitest'
import { AmqpReader, AmqpWriter } from '../../../protocol/amqp/bytes.ts'
import {
  type FieldTable,
  type FieldValue,
  MAX_DEPTH,
  MAX_EMPTY_ITEMS,
  MAX_NESTED,
  readFieldTable,
  writeFieldTable,
} from '../../../protocol/amqp/field-table.ts'
import { ProtocolError } from '../../../protocol/errors.ts'
import { hex, join, toHex, u32 } from '../../support/bytes.ts'

/** By hand: a table of `count` entries that stand in `entries`. */
function table(count: number, ...entries: readonly Uint8Array[]): Uint8Array {
  const inside = join(u32(count), ...entries)
  return join(u32(inside.length), inside)
}
const entry = (key: string, value: string) => join(hex('01'), Buffer.from(key), hex(value))

function read(bytes: Uint8Array): FieldTable {
  const cursor = new AmqpReader(bytes)
  const found = readFieldTable(cursor)
  cursor.finish()
  return found
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
function written(...entries: readonly (readonly [string, FieldValue])[]): string {
  const writer = new AmqpWriter()
  writeFieldTable(writer, new Map(entries))
  return toHex(writer.bytes())
}

describe('a value of octet', () => {
  test.each<[string, string, FieldValue]>([
    ['01', 'ff', -1],
    ['02', 'ff', 255],
    ['04', 'e9', 'é'],
    ['08', '01', true],
    ['08', '00', false],
    ['11', 'fffe', -2],
    ['12', 'fffe', 65534],
    ['21', 'fffffffd', -3],
    ['22', 'fffffffd', 4294967293],
    ['23', '3fc00000', 1.5],
    ['27', '0001f41d', '🐝'],
    ['27', 'ffffffff', '�'],
    ['31', 'fffffffffffffffc', -4n],
    ['32', 'fffffffffffffffc', 18446744073709551612n],
    ['33', '3ff8000000000000', 1.5],
    ['38', '000000006a0b5c00', 1779129344n],
    ['48', '000102030405060708090a0b0c0d0e0f', '00010203-0405-0607-0809-0a0b0c0d0e0f'],
    ['80', '02c3a9', 'é'],
    ['80', '01e9', Uint8Array.of(0xe9)],
    ['84', '02c3a9', 'Ã©'],
    ['85', '02c3a9', 'é'],
    ['85', '01e9', 'é'],
    ['86', '0400e90021', 'é!'],
    ['86', '0300e900', Uint8Array.of(0, 0xe9, 0)],
    ['90', '0002c3a9', 'é'],
    ['94', '0001e9', 'é'],
    ['95', '0002c3a9', 'é'],
    ['96', '000200e9', 'é'],
    ['a0', '00000002c3a9', 'é'],
    ['a8', '00000000', new Map()],
    ['a8', '0000000400000000', new Map()],
    ['a8', '00000008 00000001 01780801', new Map([['x', true]])],
    ['a9', '00000000', []],
    ['a9', '00000007 00000002 0205f0', [5, null]],
    ['aa', '00000007 12 00000001 0007', [7]],
    ['aa', '00000005 95 00000000', []],
    ['ab', '00000003 0401 00', Uint8Array.of(4, 1, 0)],
    ['f0', '', null],
    ['f1', '', true],
  ])('%s %s is read', (octet, bytes, expected) => {
    expect(read(table(2, entry('a', octet + bytes), entry('b', '0209')))).toStrictEqual(
      new Map<string, FieldValue>([
        ['a', expected],
        ['b', 9],
      ]),
    )
  })

  test.each([
    ['0f', '00'],
    ['1f', '0000'],
    ['2f', '00000000'],
    ['3f', '0000000000000000'],
    ['4f', '00'.repeat(16)],
    ['5f', '00'.repeat(32)],
    ['6f', '00'.repeat(64)],
    ['7f', '00'.repeat(128)],
    ['8f', '020000'],
    ['9f', '00020000'],
    ['af', '000000020000'],
    ['cf', '0000000000'],
    ['df', '000000000000000000'],
    ['ff', ''],
  ])('%s, which nobody knows, is left out by its width', (octet, bytes) => {
    expect(read(table(2, entry('a', octet + bytes), entry('b', '0209')))).toStrictEqual(new Map([['b', 9]]))
  })

  test('that nobody knows keeps its place in a list', () => {
    expect(read(table(1, entry('a', 'a9 0000000a 00000003 0205 1f0000 f1')))).toStrictEqual(
      new Map([['a', [5, null, true]]]),
    )
  })

  test.each(['b0', 'e0'])('%s has no width and is refused', (octet) => {
    expect(refusal(table(1, entry('a', octet)))).toBe('BAD_TYPE')
  })
})

describe('a table', () => {
  test('of size 0 is empty, and so is one of no entries', () => {
    expect(read(hex('00000000'))).toStrictEqual(new Map())
    expect(read(hex('00000004 00000000'))).toStrictEqual(new Map())
  })

  test('takes the last of two values of one key', () => {
    expect(read(table(2, entry('a', '0201'), entry('a', '0202')))).toStrictEqual(new Map([['a', 2]]))
  })

  test('is refused where sizes and counts do not fit', () => {
    expect(refusal(hex('00000005 00000000'))).toBe('TRUNCATED')
    expect(refusal(hex('00000005 00000000 00'))).toBe('TRAILING_BYTES')
    expect(refusal(hex('00000003 000000'))).toBe('TRUNCATED')
    expect(refusal(table(2, entry('a', 'f0')))).toBe('BAD_COUNT')
    expect(refusal(table(0xffffffff, entry('a', 'f0')))).toBe('BAD_COUNT')
    expect(refusal(table(1, entry('a', 'a9 00000005 ffffffff f0')))).toBe('BAD_COUNT')
    expect(refusal(table(1, entry('a', 'aa 00000005 02 ffffffff')))).toBe('BAD_COUNT')
    expect(refusal(table(1, entry('a', '95 ffff 00')))).toBe('TRUNCATED')
  })

  test('is read to a depth and not further', () => {
    const nested = (depth: number): Uint8Array =>
      depth === 0 ? table(0) : table(1, join(entry('a', 'a8'), nested(depth - 1)))
    expect(refusal(nested(MAX_DEPTH - 1))).toBeUndefined()
    expect(refusal(nested(MAX_DEPTH))).toBe('TOO_DEEP')
  })

  test('holds so many tables and lists, each of which may be empty, and no more', () => {
    const maps = (count: number) => {
      const items = join(...Array.from({ length: count }, () => hex('a8 00000000')))
      return join(hex('a9'), u32(4 + items.length), u32(count), items)
    }
    const of = (count: number) => table(1, join(entry('a', ''), maps(count)))
    expect(read(of(MAX_NESTED - 1)).get('a')).toHaveLength(MAX_NESTED - 1)
    expect(refusal(of(MAX_NESTED))).toBe('BAD_COUNT')
  })

  test('holds so many items without bytes and no more, over all its arrays', () => {
    const voids = (count: number) => join(hex('aa 00000005 f0'), u32(count))
    const of = (...counts: number[]) =>
      table(counts.length, ...counts.map((count) => join(entry('a', ''), voids(count))))
    expect(read(of(MAX_EMPTY_ITEMS)).get('a')).toHaveLength(MAX_EMPTY_ITEMS)
    expect(refusal(of(MAX_EMPTY_ITEMS, 1))).toBe('BAD_COUNT')
    expect(refusal(of(0xffffffff))).toBe('BAD_COUNT')
  })
})

describe('written', () => {
  test.each<[FieldValue, string]>([
    [0, '2100000000'],
    [-1, '21ffffffff'],
    [2 ** 31, '2280000000'],
    [2 ** 32, '3341f0000000000000'],
    [-0, '338000000000000000'],
    [1.5, '333ff8000000000000'],
    [-1n, '31ffffffffffffffff'],
    [2n ** 63n, '328000000000000000'],
    [true, '0801'],
    [null, 'f0'],
    ['é', '950002c3a9'],
    [Uint8Array.of(0xe9), '900001e9'],
    [new Map([['x', 1]]), 'a80000000b0000000101782100000001'],
    [[1, null], 'a90000000a000000022100000001f0'],
  ])('%o has the octet that brokers read', (value, expected) => {
    const inside = `000000010161${expected}`
    expect(written(['a', value])).toBe((inside.length / 2).toString(16).padStart(8, '0') + inside)
  })

  test('a text too long for str16 is binary, and still a text', () => {
    const long = 'x'.repeat(65536)
    const bytes = hex(written(['a', long]))
    expect(bytes[10]).toBe(0xa0)
    expect(read(bytes).get('a')).toBe(long)
  })

  test('what fits nowhere is refused', () => {
    expect(() => written(['a', 2n ** 64n])).toThrow(ProtocolError)
    expect(() => written(['x'.repeat(256), 1])).toThrow(ProtocolError)
  })
})
