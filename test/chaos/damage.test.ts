import { expect, test } from 'vitest'
import { damage, UNCHECKED } from './damage.ts'

test('damaged files give no wrong value, losses are told, and a start that is refused touches nothing', async () => {
  const totals = await damage({ seed: 1, count: 300, say: () => {} })
  expect(totals).toMatchObject({ damages: 300, lost: 0, unexpected: 0, reused: 0 })
  expect(totals['-wal: the log is short, told']).toBeGreaterThan(0)
  expect(totals['database: values lost, told']).toBeGreaterThan(0)
  expect(totals['database: channels mended, told']).toBeGreaterThan(0)
  expect(totals['refused']).toBeLessThan(150)
  // Rows without a checksum are a few pages of the database.
  expect(totals[`database: ${UNCHECKED}`] ?? 0).toBeLessThan(9)
}, 240_000)
