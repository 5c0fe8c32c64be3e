import { expect, test } from 'vitest'
import { damage, UNCHECKED } from './damage.ts'

const DAMAGES = 100

test('damaged files give no wrong value, losses are reported, and a start that is refused touches nothing', async () => {
  const totals = await damage({ seed: 1, count: DAMAGES, say: () => {} })
  expect(totals).toMatchObject({ damages: DAMAGES, lost: 0, unexpected: 0, reused: 0 })
  expect(totals['-wal: the log is short, reported']).toBeGreaterThan(0)
  expect(totals['database: values lost, reported']).toBeGreaterThan(0)
  expect(totals['database: channels mended, reported']).toBeGreaterThan(0)
  expect(totals['refused']).toBeLessThan(DAMAGES / 2)
  // Rows without a checksum are a few pages of the database.
  expect(totals[`database: ${UNCHECKED}`] ?? 0).toBeLessThan(7)
}, 240_000)
