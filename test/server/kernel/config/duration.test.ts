import { expect, test } from 'vitest'
import { parseDuration } from '../../../../server/kernel/config/duration.ts'

test.each([
  ['0s', 0],
  ['500ms', 500],
  ['30s', 30_000],
  ['10m', 600_000],
  ['12h', 43_200_000],
  ['7d', 604_800_000],
])('%s is %d milliseconds', (text, ms) => {
  expect(parseDuration(text)).toBe(ms)
})

test.each(['', '7', 'd', '7 d', ' 7d', '7D', '-7d', '1.5h', '1h30m', '1w', '1e3s', '9999999999999s'])(
  '%j is no duration',
  (text) => {
    expect(parseDuration(text)).toBeUndefined()
  },
)
