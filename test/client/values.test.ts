import { expect, test } from 'vitest'
import { plainOf, Sample, toArgumentList } from '../../client/values.ts'
import { BasicType } from '../../protocol/monitor/constants.ts'
import { VOID } from '../../protocol/monitor/value.ts'

const { INT32, INT64, UINT64, DOUBLE, BOOLEAN, STRING, OPAQUE, REC, ARRAY } = BasicType

test('simple values are what JavaScript has for them', () => {
  expect(plainOf({ type: INT32, value: -7 })).toBe(-7)
  expect(plainOf({ type: DOUBLE, value: 0.5 })).toBe(0.5)
  expect(plainOf({ type: BOOLEAN, value: true })).toBe(true)
  expect(plainOf({ type: STRING, value: 'up' })).toBe('up')
  expect(plainOf({ type: OPAQUE, value: new Uint8Array([1, 2]) })).toEqual(new Uint8Array([1, 2]))
  expect(plainOf(VOID)).toBeNull()
})

test('integers of 64 bits are numbers as long as those are exact', () => {
  const last = 2n ** 53n - 1n
  expect(plainOf({ type: UINT64, value: last })).toBe(Number(last))
  expect(plainOf({ type: INT64, value: -last })).toBe(-Number(last))
  expect(plainOf({ type: UINT64, value: last + 1n })).toBe(last + 1n)
  expect(plainOf({ type: INT64, value: -last - 1n })).toBe(-last - 1n)
})

test('text that is not UTF-8 shows U+FFFD', () => {
  expect(plainOf({ type: STRING, value: new Uint8Array([0x61, 0xff]) })).toBe('a\ufffd')
})

test('records become objects and arrays arrays, all the way down', () => {
  const value = [
    { name: 'host', type: STRING, value: 'n1' },
    { name: 'loads', type: ARRAY, value: { element: UINT64, items: [1n, 2n] } },
    { name: 'none', ...VOID },
  ] as const
  expect(plainOf({ type: REC, value })).toEqual({ host: 'n1', loads: [1, 2], none: null })
  expect(plainOf({ type: ARRAY, value: { element: REC, items: [value] } })).toEqual([
    { host: 'n1', loads: [1, 2], none: null },
  ])
})

test('a field cannot stand for the prototype of the object', () => {
  const plain = plainOf({ type: REC, value: [{ name: '__proto__', type: STRING, value: 'x' }] })
  expect(Object.keys(plain as object)).toEqual(['__proto__'])
})

test('a sample has the name that was followed, what came, and its value as JavaScript has it', () => {
  const value = { type: BasicType.UINT64, value: 42n }
  const message = { kind: 'value', metric: 7, transaction: 12, time: 1_700_000_000_000_000, value } as const
  const sample = new Sample('host.uptime', message)
  expect({ ...sample }).toEqual({ ...message, name: 'host.uptime' })
  expect(sample.plain).toBe(42)
})

test('plain values become arguments of the type that loses nothing', () => {
  const bytes = new Uint8Array([1])
  const values = { s: '7', n: 7, f: 0.5, far: 2 ** 53, i: -1n, u: 2n ** 63n, t: true, o: bytes }
  expect(toArgumentList(values)).toEqual([
    { name: 's', type: BasicType.STRING, value: '7' },
    { name: 'n', type: BasicType.INT64, value: 7n },
    { name: 'f', type: BasicType.DOUBLE, value: 0.5 },
    { name: 'far', type: BasicType.DOUBLE, value: 2 ** 53 },
    { name: 'i', type: BasicType.INT64, value: -1n },
    { name: 'u', type: BasicType.UINT64, value: 2n ** 63n },
    { name: 't', type: BasicType.BOOLEAN, value: true },
    { name: 'o', type: BasicType.OPAQUE, value: bytes },
  ])
})
