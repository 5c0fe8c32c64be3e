/** Ranges of loss that concern an expression are looked for within the time of its query. */
import { expect, it } from 'vitest'
import type { AskedHistory } from '../../../../server/edge/query/asked-history.ts'
import { lossesOf } from '../../../../server/edge/query/evaluate.ts'
import { finish } from '../../../../server/kernel/core/fair-work.ts'
import { FakeClock } from '../../../support/fake-clock.ts'

const TIMEOUT_MS = 60_000

it('looks for losses no longer than a query may take', async () => {
  const clock = new FakeClock()
  const history: AskedHistory = {
    elsewhere: undefined,
    async *select() {},
    async losses() {
      clock.advance(TIMEOUT_MS)
      return []
    },
  }
  const work = { run: (_: unknown, steps: Parameters<typeof finish>[0]) => finish(steps) } as never
  const ended = new AbortController().signal
  const run = { tenant: 'north', work, clock, timeoutMs: TIMEOUT_MS, ended }
  const request = { history, nowMs: 0, maxSamples: 1, run }
  expect(await lossesOf(request, 'scalar(test_a)', { timeMs: 0 })).toEqual([])
  await expect(lossesOf(request, 'scalar(test_a) + scalar(test_b)', { timeMs: 0 })).rejects.toMatchObject({
    type: 'timeout',
  })
})
