import { expect, test } from 'vitest'
import { toArguments } from '../../client/arguments.ts'
import { BasicType } from '../../protocol/monitor/constants.ts'

test('plain values become arguments of the type that loses nothing', () => {
  const bytes = new Uint8Array([1])
  const values = { s: '7', n: 7, f: 0.5, far: 2 ** 53, i: -1n, u: 2n ** 63n, t: true, o: bytes }
  expect(toArguments(values)).toEqual([
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
