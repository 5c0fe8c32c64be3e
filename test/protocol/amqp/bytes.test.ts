import { describe, expect, test } from 'vitest'
import { AmqpReader, AmqpWriter } from '../../../protocol/amqp/bytes.ts'
import { ProtocolError } from '../../../protocol/errors.ts'
import { hex, toHex } from '../../support/bytes.ts'

function code(read: () => unknown): string | undefined {
  try {
    read()
    return undefined
  } catch (error) {
    if (error instanceof ProtocolError) return error.code
    throw error
  }
}

describe('a cursor', () => {
  test('reads big-endian, without padding', () => {
    const cursor = new AmqpReader(
      hex('ff fffe fffffffd fffffffffffffffc 80 8001 80000002 8000000000000003 3fc00000 bff8000000000000'),
    )
    expect([cursor.uint8(), cursor.uint16(), cursor.uint32(), cursor.uint64()]).toEqual([
      255,
      65534,
      4294967293,
      2n ** 64n - 4n,
    ])
    expect([cursor.int8(), cursor.int16(), cursor.int32(), cursor.int64()]).toEqual([
      -128,
      -32767,
      -2147483646,
      -(2n ** 63n) + 3n,
    ])
    expect([cursor.float(), cursor.double(), cursor.remaining]).toEqual([1.5, -1.5, 0])
  })

  test('reads texts and bytes by the length in front', () => {
    const cursor = new AmqpReader(hex('02c3a9 000161 000201ff 00000001fe a0b1'))
    expect([cursor.str8(), cursor.str16()]).toEqual(['é', 'a'])
    expect([cursor.vbin16(), cursor.vbin32()]).toEqual([hex('01ff'), hex('fe')])
    expect(cursor.hex(2)).toBe('a0b1')
  })

  test('reads what is not UTF-8 as Latin-1', () => {
    expect(new AmqpReader(hex('03 61 85 ff')).str8()).toBe('a\x85ÿ')
    expect(new AmqpReader(hex('03 ef bf bd')).str8()).toBe('\ufffd')
    expect(new AmqpReader(hex('04 ef bf bd ff')).str8()).toBe('ï¿½ÿ')
    expect(new AmqpReader(hex('03 ed a0 80')).str8()).toBe('í\xa0\x80')
    expect(new AmqpReader(hex('03 ef bb bf')).str8()).toBe('\ufeff')
  })

  test('stays inside the given range and tells where it ends', () => {
    const cursor = new AmqpReader(hex('000102030405'), 2, 4)
    expect([cursor.remaining, cursor.uint8(), cursor.offset]).toEqual([2, 2, 3])
    expect(code(() => cursor.uint16())).toBe('TRUNCATED')
    expect(cursor.offset).toBe(3)
    expect(code(() => cursor.finish())).toBe('TRAILING_BYTES')
  })

  test('lets a part neither take more nor leave some', () => {
    const cursor = new AmqpReader(hex('0102030405'))
    expect(cursor.within(2, () => cursor.uint16())).toBe(0x0102)
    expect(code(() => cursor.within(1, () => cursor.uint16()))).toBe('TRUNCATED')
    expect(code(() => cursor.within(2, () => cursor.uint8()))).toBe('TRAILING_BYTES')
    expect(cursor.remaining).toBe(2)
    expect(code(() => cursor.within(3, () => 0))).toBe('TRUNCATED')
  })

  test('gives a copy that does not change with the buffer', () => {
    const buffer = Buffer.from('010203', 'hex')
    const copy = new AmqpReader(buffer).copy(3)
    buffer.fill(0)
    expect(copy).toEqual(hex('010203'))
  })
})

describe('a writer', () => {
  test('writes what a cursor reads', () => {
    const writer = new AmqpWriter(1)
    writer.uint8(1).uint16(2).uint32(3).uint64(4n).float(1.5).double(-1.5).str8('é').str16('a').hex('a0b1')
    writer.vbin16(hex('07')).vbin32(hex('08')).raw(hex('09'))
    const numbers = '01 0002 00000003 0000000000000004 3fc00000 bff8000000000000'
    const rest = '02c3a9 000161 a0b1 000107 0000000108 09'
    expect(toHex(writer.bytes())).toBe((numbers + rest).replaceAll(' ', ''))
  })

  test('writes signed numbers as their complement', () => {
    expect(toHex(new AmqpWriter().uint8(-1).uint16(-2).uint32(-3).uint64(-4n).bytes())).toBe(
      'fffffefffffffdfffffffffffffffc',
    )
  })

  test('puts sizes in front of what is written inside', () => {
    const writer = new AmqpWriter(1)
    writer.sized32(() => writer.sized16(() => writer.uint32(7)))
    expect(toHex(writer.bytes())).toBe('00000006000400000007')
  })

  test('refuses what its length field cannot hold', () => {
    const writer = new AmqpWriter()
    expect(code(() => writer.str8('é'.repeat(128)))).toBe('TOO_LONG')
    expect(code(() => writer.str16('x'.repeat(65536)))).toBe('TOO_LONG')
    expect(code(() => writer.sized16(() => writer.raw(new Uint8Array(65536))))).toBe('TOO_LONG')
    expect(code(() => writer.str8('x'.repeat(255)).str16('x'.repeat(65535)))).toBeUndefined()
  })
})
