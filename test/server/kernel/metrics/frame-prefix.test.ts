/** Templates of VALUE frames, against frames built by hand from the specification. */
import { expect, test } from 'vitest'
import { framePrefix } from '../../../../server/kernel/metrics/instance.ts'
import { patternRecord } from '../../../../server/kernel/metrics/measure.ts'
import type { LabelName } from '../../../../server/kernel/metrics/metric.ts'
import { join, str, toHex, type, u32, u64 } from '../../../support/bytes.ts'

const labels = {
  name: 'smon.a',
  host: 'h1',
  agent: 'g',
  source: 's',
  index: '3',
  broker: 'b',
  object: 'o',
}
const header = join(u32(0), u32(7), u64(0), u64(0))

test('nothing open: length, metric id, transaction id and time, all but the metric id to be filled in', () => {
  expect(toHex(framePrefix(7, labels, new Set()))).toBe(toHex(header))
})

test('what is open stands as a REC in the order of the specification, with `value` last', () => {
  const open = new Set<LabelName>(['object', 'index', 'name', 'broker', 'source', 'agent', 'host'])
  const text = (name: string, value: string) => join(str(name), u32(type.string), str(value))
  const expected = join(
    header,
    u32(type.rec),
    u32(8),
    text('name', 'smon.a'),
    text('host', 'h1'),
    text('agent', 'g'),
    text('source', 's'),
    text('index', '3'),
    text('broker', 'b'),
    text('object', 'o'),
    str('value'),
  )
  expect(toHex(framePrefix(7, labels, open))).toBe(toHex(expected))
})

test('a label that the series does not have is left out', () => {
  const measured = { value: { type: 2, value: 1 }, time: 1_700_000_000_000_000 } as const
  const record = patternRecord({ name: 'a' }, new Set<LabelName>(['name', 'host']), measured)
  expect(record.map(({ name }) => name)).toEqual(['name', 'time', 'value'])
  expect(record[1]).toEqual({ name: 'time', type: 4, value: 1_700_000_000_000_000n })
})
