import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { AmqpReader, AmqpWriter } from '../../../../protocol/amqp/bytes.ts'
import { type FieldTable, type FieldValue, readFieldTable } from '../../../../protocol/amqp/field-table.ts'
import { QmfType, type QmfValue, type TableSchema } from '../../../../protocol/qmf/types.ts'
import { mapValues, sampleOf, writeMapValue } from '../../../../protocol/qmf/v2/values.ts'
import { hex, toHex } from '../../../support/bytes.ts'
import * as any from '../arbitraries.ts'

const uuid = '0b9f1c7e-5d42-4a6e-9c0d-000000000000'
const read = (type: QmfType, value: FieldValue) => mapValues([{ name: 'x', type }], new Map([['x', value]]))[0]

/** A table of one entry `x` with this type code and these bytes, as a sender writes it. */
function sent(value: string): FieldTable {
  const bytes = hex(`0178${value.replaceAll(' ', '')}`)
  return readFieldTable(
    new AmqpReader(hex(`${(bytes.length + 4).toString(16).padStart(8, '0')}00000001${toHex(bytes)}`)),
  )
}

describe('a value that is read', () => {
  test.each<[string, QmfType, string, QmfValue]>([
    ['int16 for a uint64', QmfType.UINT64, '11 0bb8', 3000n],
    ['uint8 for a uint32', QmfType.UINT32, '02 0b', 11],
    ['int32 for a time', QmfType.DELTATIME, '21 00000000', 0n],
    ['uint64 for a time', QmfType.ABSTIME, '32 18ea54723204c501', 1795340250902742273n],
    ['int64 for an int8', QmfType.INT8, '31 ffffffffffffff80', -128],
    ['uint32 for an int64', QmfType.INT64, '22 ee6b2800', 4000000000n],
    ['float for a double', QmfType.DOUBLE, '23 3e800000', 0.25],
    ['int8 for a double', QmfType.DOUBLE, '01 fe', -2],
    ['double', QmfType.DOUBLE, '33 c008000000000000', -3],
    ['false', QmfType.BOOL, '08 00', false],
    ['binary for text', QmfType.SHORT_STRING, '90 0005 696e2dc3bc', 'in-ü'],
    ['binary for text that is not UTF-8', QmfType.LONG_STRING, '90 0002 ff41', 'ÿA'],
    ['text', QmfType.LONG_STRING, '95 0001 41', 'A'],
    ['uuid', QmfType.UUID, '48 0b9f1c7e5d424a6e9c0d000000000000', uuid],
    ['map of an object id', QmfType.REFERENCE, 'a8 00000015 00000001 0c5f6f626a6563745f6e616d65 90 0001 71', 'q'],
    ['list', QmfType.LIST, 'a9 00000006 00000001 02 07', [7]],
    ['map', QmfType.MAP, 'a8 00000008 00000001 0161 02 07', new Map([['a', 7]])],
  ])('%s', (_, type, bytes, expected) => {
    expect(mapValues([{ name: 'x', type }], sent(bytes))).toStrictEqual([expected])
  })

  test.each<[string, QmfType, FieldValue]>([
    ['a void', QmfType.UINT32, null],
    ['a number out of range', QmfType.UINT8, 256],
    ['a negative number where none fits', QmfType.UINT64, -1],
    ['an integer above int64', QmfType.INT64, 2n ** 63n],
    ['a fraction', QmfType.UINT32, 1.5],
    ['text for a number', QmfType.UINT32, '7'],
    ['a number for text', QmfType.LONG_STRING, 7],
    ['a number for a boolean', QmfType.BOOL, 1],
    ['a map that names no object', QmfType.REFERENCE, new Map([['_agent_epoch', 1]])],
    ['text for a reference', QmfType.REFERENCE, 'q'],
    ['a list for a map', QmfType.MAP, []],
    ['a map for a list', QmfType.LIST, new Map()],
    ['text for a double', QmfType.DOUBLE, '1'],
    ['anything of a type that nobody can show', QmfType.OBJECT, 1],
  ])('is absent if it is %s', (_, type, value) => {
    expect(read(type, value)).toBeUndefined()
  })
})

describe('a sample', () => {
  const schema = {
    kind: 'table',
    key: { packageName: 'p', className: 'c', hash: '0'.repeat(32) },
    properties: [{ name: 'name', type: QmfType.SHORT_STRING, access: 3, isIndex: true, isOptional: false }],
    statistics: [
      { name: 'lagSamples', type: QmfType.DELTATIME },
      { name: 'lagMin', type: QmfType.DELTATIME },
      { name: 'lagAverage', type: QmfType.DELTATIME },
      { name: 'count', type: QmfType.UINT32 },
    ],
    methods: [],
  } as const satisfies TableSchema

  test('has what the message has: properties, statistics or both', () => {
    expect(sampleOf(schema, new Map([['name', 'a']]))).toStrictEqual({ properties: ['a'] })
    const statistics = [undefined, undefined, undefined, 4]
    expect(sampleOf(schema, new Map([['count', 4]]))).toStrictEqual({ statistics })
    expect(
      sampleOf(
        schema,
        new Map<string, FieldValue>([
          ['name', 'a'],
          ['count', 4],
        ]),
      ),
    ).toStrictEqual({ properties: ['a'], statistics })
    expect(sampleOf(schema, new Map([['other', 4]]))).toStrictEqual({})
  })

  test('has the two statistics of an average that a broker calls otherwise', () => {
    const values = new Map([
      ['lagCount', 3n],
      ['lagMin', 1n],
      ['lagAvg', 2n],
    ])
    expect(sampleOf(schema, values)).toStrictEqual({ statistics: [3n, 1n, 2n, undefined] })
  })

  test('prefers the name of the schema', () => {
    const values = new Map([
      ['lagCount', 3n],
      ['lagSamples', 4n],
    ])
    expect(sampleOf(schema, values).statistics?.[0]).toBe(4n)
  })
})

describe('a value that is sent', () => {
  const written = (type: QmfType, value: QmfValue): string => {
    const writer = new AmqpWriter()
    writeMapValue(writer, type, value)
    return toHex(writer.bytes())
  }

  test.each<[string, QmfType, QmfValue, string]>([
    ['uint8 as int64', QmfType.UINT8, 7, '310000000000000007'],
    ['uint64 as int64', QmfType.UINT64, 77n, '31000000000000004d'],
    ['uint64 above int64', QmfType.UINT64, 2n ** 64n - 1n, '32ffffffffffffffff'],
    ['int32', QmfType.INT32, -1, '31ffffffffffffffff'],
    ['a whole double', QmfType.DOUBLE, 3, '334008000000000000'],
    ['float', QmfType.FLOAT, 0.5, '333fe0000000000000'],
    ['bool', QmfType.BOOL, true, '0801'],
    ['text', QmfType.SHORT_STRING, 'ü', '950002c3bc'],
    ['uuid', QmfType.UUID, uuid, '480b9f1c7e5d424a6e9c0d000000000000'],
    ['reference', QmfType.REFERENCE, 'q', 'a800000015000000010c5f6f626a6563745f6e616d6595000171'],
    ['list', QmfType.LIST, [true], 'a900000006000000010801'],
    ['empty map', QmfType.MAP, new Map(), 'a80000000400000000'],
  ])('%s', (_, type, value, expected) => {
    expect(written(type, value)).toBe(expected)
  })

  test.each<[string, QmfType, QmfValue, string]>([
    ['too large', QmfType.UINT8, 256, 'the value (number) does not fit the type 1'],
    ['of another type', QmfType.UINT32, 'x', 'the value (string) does not fit the type 3'],
    ['no uuid', QmfType.UUID, 'x', 'not a uuid: x'],
    ['no name of an object', QmfType.REFERENCE, 7, 'the value (number) does not fit the type 10'],
    ['of a type that cannot be sent', QmfType.ARRAY, [], 'the value (object) does not fit the type 22'],
  ])('is refused if it is %s', (_, type, value, message) => {
    expect(() => written(type, value)).toThrow(message)
  })

  test('comes back as it was, whatever its type', () => {
    const typed = any.method.chain(({ arguments: items }) => fc.tuple(fc.constant(items), any.valuesOf(items)))
    fc.assert(
      fc.property(typed, ([items, values]) => {
        for (const [i, { type }] of items.entries()) {
          const back = mapValues([{ name: 'x', type }], sent(written(type, values[i]!)))
          expect(back).toStrictEqual([values[i]])
        }
      }),
      { numRuns: 200 },
    )
  })
})
