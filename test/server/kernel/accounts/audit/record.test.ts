import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { auditTexts, hashOf, NO_HASH } from '../../../../../server/kernel/accounts/audit/record.ts'

const record = {
  number: 1,
  time: 1_700_000_000_000_001,
  action: 'execute',
  actor: 'ada',
  tenant: 'default',
  address: '192.0.2.1',
  object: 'exec.restart',
  args: '{"unit":"é"}',
  outcome: 'ok',
  detail: '',
}

test('the hash is over the hash before it, both numbers, and each text after its length', () => {
  const bytes = [
    '00'.repeat(32),
    '0000000000000001',
    '00060a24181e4001',
    '0000000765786563757465',
    '00000003616461',
    '0000000764656661756c74',
    '000000093139322e302e322e31',
    '0000000c657865632e72657374617274',
    '0000000d7b22756e6974223a22c3a9227d',
    '000000026f6b',
    '00000000',
  ].join('')
  const expected = createHash('sha256').update(Buffer.from(bytes, 'hex')).digest('hex')
  expect(Buffer.from(hashOf(record, NO_HASH)).toString('hex')).toBe(expected)
})

test('no part can be moved from one field into the next', () => {
  const one = hashOf({ ...record, actor: 'ab', tenant: 'c' }, NO_HASH)
  const other = hashOf({ ...record, actor: 'a', tenant: 'bc' }, NO_HASH)
  expect(one).not.toEqual(other)
})

test('every field and the hash before it count', () => {
  const hash = hashOf(record, NO_HASH)
  for (const text of auditTexts) expect(hashOf({ ...record, [text]: `${record[text]}x` }, NO_HASH)).not.toEqual(hash)
  expect(hashOf({ ...record, number: 2 }, NO_HASH)).not.toEqual(hash)
  expect(hashOf({ ...record, time: record.time + 1 }, NO_HASH)).not.toEqual(hash)
  expect(
    hashOf(
      record,
      NO_HASH.map(() => 1),
    ),
  ).not.toEqual(hash)
})

test('a text and its UTF-8 are the same', () => {
  expect(hashOf({ ...record, args: Buffer.from(record.args) }, NO_HASH)).toEqual(hashOf(record, NO_HASH))
})
