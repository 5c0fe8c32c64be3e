/** Records of the log of histories, as bytes and back. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import {
  decodeHistoryRecord,
  encodeHistoryRecord,
  type HistoryOperation,
  type HistoryRecord,
} from '../../../../storage/history/log/record.ts'
import { NO_RECORD_HASH } from '../../../../storage/replicated/place.ts'

const STALE = 0x7ff0000000000002n
const values = new Float64Array(3)
new BigUint64Array(values.buffer).set([STALE, 0x3ff0000000000000n, 0x7ff8000000000000n])

const operations: readonly HistoryOperation[] = [
  {
    kind: 'append',
    tenant: 'acme',
    position: { generation: 'g 3', channel: 7, transaction: 99, committed: undefined, takenMs: 5 },
    texts: ['["a.b","a_b","gauge",[["host","ä"]]]', '["c","c","counter",[]]'],
    series: Uint32Array.of(0, 1, 0),
    times: Float64Array.of(1, 2, 3),
    values,
    losses: [{ native: '', fromMs: 1, toMs: 2, count: 3, reason: 'why' }],
  },
  {
    kind: 'describe',
    tenant: '',
    metric: { native: 'a', families: [{ name: 'a', type: 'gauge', help: 'h', unit: '' }] },
  },
  { kind: 'drop', tenant: 'acme', matchers: [{ label: '__name__', operator: '=~', text: 'a.*' }] },
  { kind: 'remove', tenant: 'acme' },
]
const base = { log: 1, epoch: 2_000_000_003, sequence: 4, hash: new Uint8Array(32).fill(5) }
const record: HistoryRecord = { previous: NO_RECORD_HASH, wallMs: 1_700_000_000_000, base, operations }

test('each operation comes back as it was, with all bits of its values', () => {
  const decoded = decodeHistoryRecord(encodeHistoryRecord(record))
  expect(decoded).toEqual(record)
  const [first] = decoded.operations
  const bits = first?.kind === 'append' ? [...new BigUint64Array(first.values.buffer)] : []
  expect(bits).toEqual([STALE, 0x3ff0000000000000n, 0x7ff8000000000000n])
})

test('a record is as docs/protocol/replicated-log.md shows it', () => {
  const page = readFileSync(new URL('../../../../docs/protocol/replicated-log.md', import.meta.url), 'utf8')
  const shown = /01 00\*32 000092D0[^`]*/
    .exec(page)?.[0]
    .split('\n')
    .map((line) => line.split(/ {3,}/)[0])
  const hex = shown
    ?.join('')
    .replace('00*32', '00'.repeat(32))
    .replaceAll(/\[.*\]|\s/g, '')
  const sample = { series: Uint32Array.of(0), times: Float64Array.of(1_700_000_500_000), values: Float64Array.of(1) }
  const texts = ['["a","load","gauge",[["host","a"]]]']
  const append = { kind: 'append', tenant: 't', position: undefined, losses: [], texts, ...sample } as const
  const one = { previous: NO_RECORD_HASH, wallMs: 1_700_000_500_000, base: undefined, operations: [append] }
  expect(Buffer.from(encodeHistoryRecord(one)).toString('hex').toUpperCase()).toBe(hex)
})

test('equal records have equal bytes', () => {
  expect(Buffer.compare(encodeHistoryRecord(record), encodeHistoryRecord({ ...record }))).toBe(0)
})

test('what is cut, too long, of a newer version, or has a sample of no series is refused', () => {
  const bytes = encodeHistoryRecord(record)
  for (const length of [0, 1, 40, bytes.length - 1])
    expect(() => decodeHistoryRecord(bytes.slice(0, length))).toThrow('the record ends early')
  expect(() => decodeHistoryRecord(Uint8Array.of(...bytes, 0))).toThrow('1 bytes too many')
  expect(() => decodeHistoryRecord(Uint8Array.of(2, ...bytes.slice(1)))).toThrow('format 2')
  const [append] = operations
  const wrong = { ...append, series: Uint32Array.of(0, 2, 0) } as HistoryOperation
  expect(() => decodeHistoryRecord(encodeHistoryRecord({ ...record, operations: [wrong] }))).toThrow('without a text')
})
