/** What the judge of the rig finds in what was told above, and in signatures. */
import { createHmac } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { AlertsJudge, SECRET_PREFIX } from './judge.ts'
import type { ModelTransition } from './model.ts'
import type { Received } from './receiver.ts'

const FIRED: ModelTransition = { state: 'firing', sinceMs: 1_000, firedMs: 1_000, endedMs: 0 }
const ENDED: ModelTransition = { state: 'inactive', sinceMs: 1_000, firedMs: 1_000, endedMs: 2_000 }
const NEVER = '0001-01-01T00:00:00Z'

/** A notification of the alert above that `Plain 0` fires below. */
function told(status: 'firing' | 'resolved', startsAt: string, endsAt = NEVER): Received {
  const labels = { alertname: 'Below', alert: 'Plain', n: '0' }
  return {
    path: '/above',
    key: 'k',
    time: '1',
    body: JSON.stringify({ alerts: [{ status, labels, startsAt, endsAt }] }),
  }
}

const [ONE, TWO, THREE] = ['2026-11-30T10:00:01Z', '2026-11-30T10:00:02Z', '2026-11-30T10:00:03Z'] as const

describe('what is told above', () => {
  const judged = (...journal: readonly Received[]) => {
    const judge = new AlertsJudge({ transitions: new Map([['Plain 0', [FIRED, ENDED]]]), alerts: new Map() })
    judge.above(journal)
    const { lost, twice, unexpected } = judge.faults
    return { lost, twice, unexpected }
  }
  const right = { lost: 0, twice: 0, unexpected: 0 }

  test('fires and ends as often as below, or less', () => {
    expect(judged()).toEqual(right)
    expect(judged(told('firing', ONE), told('resolved', ONE, TWO))).toEqual(right)
  })

  test('is found to be wrong if its end is missing, comes first, is of another alert, or if it fires again', () => {
    const [firing, resolved] = [told('firing', ONE), told('resolved', ONE, TWO)]
    expect(judged(firing)).toEqual({ ...right, lost: 1 })
    expect(judged(resolved)).toEqual({ ...right, unexpected: 1 })
    expect(judged(firing, told('resolved', TWO, THREE))).toEqual({ ...right, unexpected: 1 })
    expect(judged(firing, resolved, told('firing', THREE), told('resolved', THREE, THREE))).toEqual({
      ...right,
      unexpected: 1,
    })
  })
})

test('a signature is right if it is of this request, with a secret that was put', () => {
  const secret = SECRET_PREFIX + Buffer.alloc(24, 7).toString('base64')
  const signature = `v1,${createHmac('sha256', Buffer.alloc(24, 7)).update('k.1.body').digest('base64')}`
  const request: Received = { path: '/put-each', key: 'k', time: '1', body: 'body', signature }
  const { signature: _, ...unsigned } = request
  const wrong = (received: Received, ...secrets: readonly string[]): number => {
    const judge = new AlertsJudge({ transitions: new Map(), alerts: new Map() })
    judge.signed([received], secrets)
    return judge.faults.unexpected
  }
  expect(wrong(request, 'whsec_', secret)).toBe(0)
  expect(wrong(request, 'whsec_')).toBe(1)
  expect(wrong({ ...request, body: 'other' }, secret)).toBe(1)
  expect(wrong(unsigned, secret)).toBe(1)
})
