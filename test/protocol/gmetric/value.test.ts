import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { basicValue } from '../../../protocol/gmetric/value.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'

const { INT32, UINT32, DOUBLE, STRING } = BasicType
/** The text of a 133 packet as the declared type. */
const parseText = (declared: string, text: string | Uint8Array) => basicValue(declared, 'string', text)

describe('text as its declared type', () => {
  test.each([
    ['int8', INT32, -128, 127],
    ['int16', INT32, -32768, 32767],
    ['int32', INT32, -2147483648, 2147483647],
    ['uint8', UINT32, 0, 255],
    ['uint16', UINT32, 0, 65535],
    ['uint32', UINT32, 0, 4294967295],
    ['timestamp', UINT32, 0, 4294967295],
  ] as const)('%s holds its whole range and nothing outside', (declared, type, min, max) => {
    expect(parseText(declared, String(min))).toEqual({ type, value: min })
    expect(parseText(declared, String(max))).toEqual({ type, value: max })
    expect(parseText(declared, String(min - 1))).toBeUndefined()
    expect(parseText(declared, String(max + 1))).toBeUndefined()
    expect(parseText(declared, '99999999999999999999')).toBeUndefined()
  })

  test.each(['float', 'double'])('%s is a DOUBLE', (declared) => {
    const cases = [
      ['36.6', 36.6],
      ['-.5', -0.5],
      ['+5.', 5],
      ['1e3', 1000],
      ['1.5E-3', 0.0015],
      [' \t42', 42],
      ['inf', Number.POSITIVE_INFINITY],
      ['-Infinity', Number.NEGATIVE_INFINITY],
      ['NaN', Number.NaN],
      ['-nan', Number.NaN],
      ['1e999', Number.POSITIVE_INFINITY],
    ] as const
    for (const [text, value] of cases) expect(parseText(declared, text)).toEqual({ type: DOUBLE, value })
  })

  test.each(['', ' ', '+', '.', 'e5', '1e', '0x10', '1,5', '1 2', '5\n', 'infinit', 'nan(1)', '٣', '1_000', '--1'])(
    '%j is no number of any type',
    (text) => {
      for (const declared of ['int8', 'uint32', 'float', 'double']) expect(parseText(declared, text)).toBeUndefined()
    },
  )

  test('a whole number may be written with a point or an exponent, a fraction is no integer', () => {
    expect(parseText('uint32', '42.0')).toEqual({ type: UINT32, value: 42 })
    expect(parseText('int32', '-4e2')).toEqual({ type: INT32, value: -400 })
    for (const text of ['42.5', 'inf', 'nan', '1e999']) expect(parseText('uint32', text)).toBeUndefined()
  })

  test('zero has no sign as an integer', () => {
    expect(parseText('int32', '-0')).toEqual({ type: INT32, value: 0 })
  })

  test.each(['string', '', 'int64'])('declared %j any text passes as it is', (declared) => {
    expect(parseText(declared, ' hi there ')).toEqual({ type: STRING, value: ' hi there ' })
    expect(parseText(declared, '')).toEqual({ type: STRING, value: '' })
    const latin1 = Uint8Array.of(0xb0, 0x43)
    expect(parseText(declared, latin1)).toEqual({ type: STRING, value: latin1 })
  })

  test('bytes that are no UTF-8 are no number', () => {
    expect(parseText('float', Uint8Array.of(0x31, 0xb0))).toBeUndefined()
  })

  test('a type is a word of the table, not of JavaScript', () => {
    expect(parseText('constructor', 'x')).toEqual({ type: STRING, value: 'x' })
    expect(parseText('__proto__', 'x')).toEqual({ type: STRING, value: 'x' })
  })

  test('any double survives its own text', () => {
    fc.assert(
      fc.property(fc.double(), (value) => {
        const parsed = parseText('double', Object.is(value, -0) ? '-0' : String(value))
        expect(parsed).toEqual({ type: DOUBLE, value })
      }),
    )
  })
})

describe('a typed value', () => {
  test.each([
    ['uint16', UINT32],
    ['uint32', UINT32],
    ['int16', INT32],
    ['int32', INT32],
    ['float', DOUBLE],
    ['double', DOUBLE],
  ] as const)('sent as %s has that type while nothing is declared', (sent, type) => {
    expect(basicValue(undefined, sent, 7)).toEqual({ type, value: 7 })
    expect(basicValue('of the senders own', sent, 7)).toEqual({ type, value: 7 })
  })

  test('becomes the declared type where it fits', () => {
    expect(basicValue('double', 'uint32', 7)).toEqual({ type: DOUBLE, value: 7 })
    expect(basicValue('uint8', 'double', 7)).toEqual({ type: UINT32, value: 7 })
    expect(basicValue('string', 'int32', -7)).toEqual({ type: STRING, value: '-7' })
  })

  test('is no value where it does not fit', () => {
    expect(basicValue('uint8', 'uint32', 256)).toBeUndefined()
    expect(basicValue('uint32', 'int32', -1)).toBeUndefined()
    expect(basicValue('int32', 'float', 1.5)).toBeUndefined()
  })
})
