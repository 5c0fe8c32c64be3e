import { expect, test } from 'vitest'
import { Sample } from '../../client/sample.ts'
import { BasicType } from '../../protocol/monitor/constants.ts'

test('a sample has the name that was followed, what came, and its value as JavaScript has it', () => {
  const value = { type: BasicType.UINT64, value: 42n }
  const sample = new Sample('host.uptime', {
    kind: 'value',
    metric: 7,
    transaction: 12,
    time: 1_700_000_000_000_000,
    value,
  })
  expect({ ...sample }).toEqual({
    kind: 'value',
    name: 'host.uptime',
    metric: 7,
    transaction: 12,
    time: 1_700_000_000_000_000,
    value,
  })
  expect(sample.plain).toBe(42)
})
