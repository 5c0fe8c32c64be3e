import { describe, expect, test } from 'vitest'
import type { Argument } from '../../../../protocol/monitor/arguments.ts'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { convertArguments } from '../../../../server/kernel/metrics/arguments.ts'

const { INT32, UINT32, INT64, UINT64, DOUBLE, BOOLEAN, STRING, OPAQUE } = BasicType
const refused = expect.objectContaining({ status: 'INVALID_ARGUMENT' })

function convert(type: BasicType, argument: Partial<Argument>): unknown {
  const list = [{ name: 'x', ...argument } as Argument]
  return convertArguments(list, [{ name: 'x', type }], 'a metric').get('x')
}

describe('integers', () => {
  test.each([
    [INT32, -(2n ** 31n), 2n ** 31n - 1n],
    [UINT32, 0n, 2n ** 32n - 1n],
    [INT64, -(2n ** 63n), 2n ** 63n - 1n],
    [UINT64, 0n, 2n ** 64n - 1n],
  ] as const)('of type %i are taken from any integer type while they fit', (type, least, most) => {
    const is32 = type === INT32 || type === UINT32
    const from = [
      [INT32, -1],
      [INT32, 0x7fffffff],
      [UINT32, 0xffffffff],
      [INT64, least > -(2n ** 63n) ? least - 1n : least],
      [INT64, least],
      [UINT64, most],
      [UINT64, most < 2n ** 64n - 1n ? most + 1n : most],
    ] as const
    for (const [given, value] of from) {
      const integer = BigInt(value)
      if (integer < least || integer > most) {
        expect(() => convert(type, { type: given, value } as Argument)).toThrow(refused)
      } else {
        expect(convert(type, { type: given, value } as Argument)).toBe(is32 ? Number(integer) : integer)
      }
    }
  })

  test('are taken from nothing else', () => {
    for (const [type, value] of [
      [DOUBLE, 1],
      [BOOLEAN, true],
      [STRING, '1'],
      [OPAQUE, new Uint8Array(4)],
    ] as const) {
      expect(() => convert(UINT32, { type, value } as Argument)).toThrow(refused)
    }
  })
})

test('DOUBLE takes any number', () => {
  expect(convert(DOUBLE, { type: INT32, value: -1 })).toBe(-1)
  expect(convert(DOUBLE, { type: UINT64, value: 2n ** 60n })).toBe(2 ** 60)
  expect(convert(DOUBLE, { type: DOUBLE, value: Number.NaN })).toBeNaN()
  expect(() => convert(DOUBLE, { type: STRING, value: '1' })).toThrow(refused)
  expect(() => convert(DOUBLE, { type: BOOLEAN, value: true })).toThrow(refused)
})

test('BOOLEAN, STRING and OPAQUE take their own kind alone', () => {
  expect(convert(BOOLEAN, { type: BOOLEAN, value: true })).toBe(true)
  expect(convert(STRING, { type: STRING, value: '1' })).toBe('1')
  expect(convert(OPAQUE, { type: OPAQUE, value: Uint8Array.of(1) })).toEqual(Uint8Array.of(1))
  expect(() => convert(BOOLEAN, { type: UINT32, value: 1 })).toThrow(refused)
  expect(() => convert(STRING, { type: OPAQUE, value: Uint8Array.of(1) })).toThrow(refused)
  expect(() => convert(OPAQUE, { type: STRING, value: 'AQ==' })).toThrow(refused)
})

test('a STRING that is not UTF-8 names nothing', () => {
  expect(() => convert(STRING, { type: STRING, value: Uint8Array.of(0xff) } as unknown as Argument)).toThrow(refused)
})

describe('from JSON', () => {
  const json = (type: BasicType, value: unknown) => ({ type, value, json: true }) as unknown as Argument

  test('64-bit integers may be text, numbers may be whole doubles, opaque is base64', () => {
    expect(convert(UINT64, json(STRING, '18446744073709551615'))).toBe(2n ** 64n - 1n)
    expect(convert(INT64, json(STRING, '-9223372036854775808'))).toBe(-(2n ** 63n))
    expect(convert(UINT32, json(DOUBLE, 5))).toBe(5)
    expect(convert(OPAQUE, json(STRING, 'AQI='))).toEqual(Uint8Array.of(1, 2))
  })

  test('DOUBLE may be NaN and the infinities', () => {
    expect(convert(DOUBLE, json(STRING, 'NaN'))).toBeNaN()
    expect(convert(DOUBLE, json(STRING, 'Infinity'))).toBe(Number.POSITIVE_INFINITY)
    expect(convert(DOUBLE, json(STRING, '-Infinity'))).toBe(Number.NEGATIVE_INFINITY)
  })

  test('32-bit integers are numbers and never text', () => {
    for (const type of [INT32, UINT32]) {
      expect(convert(type, json(INT64, 7n))).toBe(7)
      for (const text of ['7', '0', '-1']) expect(() => convert(type, json(STRING, text))).toThrow(refused)
    }
  })

  test('nothing else is converted', () => {
    for (const [type, value] of [
      [UINT64, '1.5'],
      [UINT64, ''],
      [UINT64, '1e3'],
      [UINT64, '9'.repeat(30)],
      [UINT64, '0x10'],
      [DOUBLE, '1'],
      [DOUBLE, 'nan'],
      [OPAQUE, '*'],
      [BOOLEAN, 'true'],
    ] as const) {
      expect(() => convert(type, json(STRING, value))).toThrow(refused)
    }
    expect(() => convert(UINT32, json(DOUBLE, 5.5))).toThrow(refused)
  })
})

test('an unknown name is refused with those there are', () => {
  const list = [{ name: 'y', type: STRING, value: 'a' }] as const
  expect(() => convertArguments(list, [{ name: 'x', type: STRING }], 'host.load.one')).toThrow(
    'host.load.one takes no argument y; it takes: x',
  )
  expect(() => convertArguments(list, [], 'host.load.one')).toThrow('it takes: none')
})
