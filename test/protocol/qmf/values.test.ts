import { describe, expect, test } from 'vitest'
import { AmqpReader, AmqpWriter } from '../../../protocol/amqp/bytes.ts'
import { ProtocolError } from '../../../protocol/errors.ts'
import type { QmfType, QmfValue } from '../../../protocol/qmf/types.ts'
import {
  isQmfType,
  parseObjectId,
  readObjectId,
  readQmfValue,
  writeObjectId,
  writeQmfValue,
} from '../../../protocol/qmf/values.ts'
import { hex, toHex } from '../../support/bytes.ts'

const written = (type: QmfType, value: QmfValue): string => {
  const writer = new AmqpWriter()
  writeQmfValue(writer, type, value)
  return toHex(writer.bytes())
}
function refusal(type: QmfType, value: QmfValue): string | undefined {
  try {
    written(type, value)
    return undefined
  } catch (error) {
    if (error instanceof ProtocolError) return error.code
    throw error
  }
}

/** Of section 5.4 of the protocol, all that have values. */
const cases: readonly (readonly [QmfType, string, QmfValue])[] = [
  [1, 'ff', 255],
  [2, 'fffe', 65534],
  [3, 'fffffffd', 4294967293],
  [4, 'fffffffffffffffc', 18446744073709551612n],
  [6, '02c3a9', 'é'],
  [7, '0002c3a9', 'é'],
  [8, 'ffffffffffffffff', -1n],
  [8, '18e9e53eec8ad818', 1795217984903108632n],
  [9, 'ffffffffffffffff', 18446744073709551615n],
  [10, '00000000 10000000 0000000000000002', '0-0-1-0-2'],
  [11, '01', true],
  [11, '00', false],
  [12, '3fc00000', 1.5],
  [13, '3ff8000000000000', 1.5],
  [14, '000102030405060708090a0b0c0d0e0f', '00010203-0405-0607-0809-0a0b0c0d0e0f'],
  [15, '0000000b 00000001 0178 21 00000001', new Map([['x', 1]])],
  [16, '80', -128],
  [17, '8001', -32767],
  [18, '80000002', -2147483646],
  [19, '8000000000000003', -9223372036854775805n],
  [21, '0000000a 00000002 21 00000001 f0', [1, null]],
]

describe('a value', () => {
  test.each(cases.map(([type, bytes, value]) => [type, bytes.replaceAll(' ', ''), value] as const))(
    'of type %i: %s',
    (type, bytes, value) => {
      const cursor = new AmqpReader(hex(bytes))
      expect(readQmfValue(cursor, type)).toStrictEqual(value)
      expect(cursor.remaining).toBe(0)
      expect(written(type, value)).toBe(bytes)
    },
  )

  test('of a boolean is true for every octet but 0', () => {
    expect(readQmfValue(new AmqpReader(hex('7f')), 11)).toBe(true)
  })

  test.each([20, 22] as const)('of type %i is neither read nor written', (type) => {
    expect(() => readQmfValue(new AmqpReader(new Uint8Array(99)), type)).toThrow(
      expect.objectContaining({ code: 'BAD_TYPE' }),
    )
    expect(refusal(type, [])).toBe('BAD_TYPE')
  })

  test.each<[QmfType, QmfValue, string]>([
    [1, 256, 'BAD_NUMBER'],
    [1, -1, 'BAD_NUMBER'],
    [1, 1.5, 'BAD_NUMBER'],
    [1, Number.NaN, 'BAD_NUMBER'],
    [2, 65536, 'BAD_NUMBER'],
    [3, 2 ** 32, 'BAD_NUMBER'],
    [3, 1n, 'BAD_TYPE'],
    [4, -1n, 'BAD_NUMBER'],
    [4, 2n ** 64n, 'BAD_NUMBER'],
    [4, 1, 'BAD_TYPE'],
    [6, 'x'.repeat(256), 'TOO_LONG'],
    [7, 'x'.repeat(65536), 'TOO_LONG'],
    [7, true, 'BAD_TYPE'],
    [8, 2n ** 63n, 'BAD_NUMBER'],
    [9, -1n, 'BAD_NUMBER'],
    [10, '0-0-1-0', 'BAD_NAME'],
    [11, 1, 'BAD_TYPE'],
    [13, '1', 'BAD_TYPE'],
    [14, '00010203', 'BAD_NAME'],
    [15, [], 'BAD_TYPE'],
    [16, 128, 'BAD_NUMBER'],
    [17, -32769, 'BAD_NUMBER'],
    [18, 2 ** 31, 'BAD_NUMBER'],
    [19, 2n ** 63n, 'BAD_NUMBER'],
    [21, new Map(), 'BAD_TYPE'],
  ])('that does not fit type %i is refused: %s', (type, value, expected) => {
    expect(refusal(type, value)).toBe(expected)
  })

  test('has one of the types, 5 is none', () => {
    expect([0, 1, 4, 5, 6, 19, 20, 21, 22, 23].filter(isQmfType)).toEqual([1, 4, 6, 19, 20, 21, 22])
  })
})

describe('an object id', () => {
  const bits = 'a123 4567 8 9abcdef fedcba9876543210'.replaceAll(' ', '')
  const text = `10-${0x123}-${0x45678}-${0x9abcdef}-${0xfedcba9876543210n}`

  test('has five parts, across the borders of bytes', () => {
    expect(readObjectId(new AmqpReader(hex(bits)))).toBe(text)
    const writer = new AmqpWriter()
    writeObjectId(writer, text)
    expect(toHex(writer.bytes())).toBe(bits)
  })

  test('is parted', () => {
    expect(parseObjectId('1-2-3-4-18446744073709551615')).toEqual({
      flags: 1,
      boot: 2,
      brokerBank: 3,
      agentBank: 4,
      object: 18446744073709551615n,
    })
  })

  test('of all ones and of all zeros', () => {
    expect(readObjectId(new AmqpReader(hex('f'.repeat(32))))).toBe('15-4095-1048575-268435455-18446744073709551615')
    expect(parseObjectId('15-4095-1048575-268435455-18446744073709551615')).toBeDefined()
    expect(readObjectId(new AmqpReader(new Uint8Array(16)))).toBe('0-0-0-0-0')
  })

  test.each([
    '',
    '*',
    '0-0-1-0',
    '0-0-1-0-2-3',
    '00-0-1-0-2',
    '0-0-1-0--2',
    ' 0-0-1-0-2',
    '16-0-0-0-0',
    '0-4096-0-0-0',
    '0-0-1048576-0-0',
    '0-0-0-268435456-0',
    '0-0-0-0-18446744073709551616',
    `0-0-0-0-${'9'.repeat(99)}`,
  ])('is not "%s"', (other) => {
    expect(parseObjectId(other)).toBeUndefined()
    expect(() => writeObjectId(new AmqpWriter(), other)).toThrow(ProtocolError)
  })
})
