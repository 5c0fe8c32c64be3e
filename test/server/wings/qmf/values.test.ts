import { describe, expect, test } from 'vitest'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { VOID } from '../../../../protocol/monitor/value.ts'
import { QmfType, type QmfValue } from '../../../../protocol/qmf/types.ts'
import { eventValue, isSame, MAX_TEXT, toValue, unitOf } from '../../../../server/wings/qmf/values.ts'
import { queueDelete } from './sensor-fixture.ts'

const { UINT32, UINT64, INT32, INT64, DOUBLE, BOOLEAN, STRING } = BasicType
const uuid = '1fe76a23-d4cf-4274-9d59-ca5124581ca1'

describe('a value', () => {
  test.each<[QmfType, QmfValue, BasicType, unknown]>([
    [QmfType.UINT8, 255, UINT32, 255],
    [QmfType.UINT16, 65_535, UINT32, 65_535],
    [QmfType.UINT32, 4_294_967_295, UINT32, 4_294_967_295],
    [QmfType.UINT64, 2n ** 64n - 1n, UINT64, 2n ** 64n - 1n],
    [QmfType.SHORT_STRING, 'q', STRING, 'q'],
    [QmfType.LONG_STRING, '', STRING, ''],
    [QmfType.ABSTIME, -1n, INT64, -1n],
    [QmfType.DELTATIME, 95_412_837_469n, UINT64, 95_412_837_469n],
    [QmfType.REFERENCE, '0-0-1-0-2', STRING, '0-0-1-0-2'],
    [QmfType.BOOL, true, BOOLEAN, true],
    [QmfType.FLOAT, 0.5, DOUBLE, 0.5],
    [QmfType.DOUBLE, Number.NaN, DOUBLE, Number.NaN],
    [QmfType.UUID, uuid, STRING, uuid],
    [QmfType.INT8, -128, INT32, -128],
    [QmfType.INT16, -1, INT32, -1],
    [QmfType.INT32, -(2 ** 31), INT32, -(2 ** 31)],
    [QmfType.INT64, -(2n ** 63n), INT64, -(2n ** 63n)],
    [QmfType.MAP, new Map(), STRING, '{}'],
    [QmfType.LIST, [1, 'a'], STRING, '[1,"a"]'],
  ])('of type %i is of the basic type that holds it', (type, value, basic, expected) => {
    expect(toValue(type, value)).toEqual({ type: basic, value: expected })
  })

  test('that nests is JSON, as the protocol shows values', () => {
    const nested: QmfValue = new Map<string, never>(
      Object.entries({
        'qpid.max_count': 10,
        large: 2n ** 63n,
        small: 5n,
        bytes: Uint8Array.of(1, 2),
        nothing: null,
        odd: Number.POSITIVE_INFINITY,
        __proto: [true, new Map([['x', 'y']])],
      }) as never,
    )
    expect(toValue(QmfType.MAP, nested).value).toBe(
      '{"qpid.max_count":10,"large":"9223372036854775808","small":5,"bytes":"AQI=","nothing":null,"odd":"Infinity",' +
        '"__proto":[true,{"x":"y"}]}',
    )
  })

  test('that is absent, or would not fit a frame, is VOID', () => {
    expect(toValue(QmfType.UINT8, undefined)).toBe(VOID)
    expect(toValue(QmfType.LONG_STRING, 'x'.repeat(MAX_TEXT + 1))).toBe(VOID)
    expect(toValue(QmfType.LONG_STRING, 'x'.repeat(MAX_TEXT)).type).toBe(STRING)
  })

  test('of a time has the unit ns, whatever the schema says', () => {
    expect(unitOf({ type: QmfType.DELTATIME, unit: 'nanosecond' })).toBe('ns')
    expect(unitOf({ type: QmfType.UINT32, unit: 'message' })).toBe('message')
    expect(unitOf({ type: QmfType.UINT32 })).toBe('')
  })
})

describe('two values', () => {
  test.each<[QmfValue | undefined, QmfValue | undefined, boolean]>([
    [1, 1, true],
    [1n, 2n, false],
    [Number.NaN, Number.NaN, true],
    [undefined, undefined, true],
    [undefined, '', false],
    [new Map([['a', 1n]]), new Map([['a', 1n]]), true],
    [new Map([['a', 1n]]), new Map(), false],
    [[1], [1], true],
    [[], 'x', false],
  ])('%s and %s are told apart', (one, other, expected) => {
    expect(isSame(one, other)).toBe(expected)
  })
})

describe('an event', () => {
  const event = { time: 0n, severity: 4, arguments: ['me', 'q1'] }

  test('holds its arguments in order, then how severe it is', () => {
    expect(eventValue(queueDelete, event)).toEqual({
      type: BasicType.REC,
      value: [
        { name: 'user', type: STRING, value: 'me' },
        { name: 'qName', type: STRING, value: 'q1' },
        { name: 'severity', type: STRING, value: 'warning' },
      ],
    })
  })

  test('leaves out arguments that could not be fields, or would be taken for the severity', () => {
    const items = ['', 'severity', 'a\n', 'b'].map((name) => ({ name, type: QmfType.UINT8 }))
    const odd = { ...queueDelete, arguments: items }
    expect(eventValue(odd, { ...event, severity: 9, arguments: [1, 2, 3, 4] })?.value).toEqual([
      { name: 'b', type: UINT32, value: 4 },
      { name: 'severity', type: STRING, value: '9' },
    ])
  })
})
