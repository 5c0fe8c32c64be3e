import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Backoff, TO_MAIN_MONITOR, TO_PEER, TO_PRODUCER } from '../../../protocol/kept/backoff.ts'

const inRow = (backoff: Backoff, count: number): number[] => Array.from({ length: count }, () => backoff.next())

describe('the pauses', () => {
  test('double up to the longest, and begin anew after a success', () => {
    const backoff = new Backoff({ firstMs: 100, maxMs: 1_000 }, () => 0)
    expect(inRow(backoff, 6)).toEqual([100, 200, 400, 800, 1_000, 1_000])
    expect(backoff.pauses).toBe(6)
    backoff.reset()
    expect([backoff.pauses, ...inRow(backoff, 2)]).toEqual([0, 100, 200])
  })

  test('are halved at most', () => {
    const backoff = new Backoff({ firstMs: 100, maxMs: 1_000 }, () => 1)
    expect(inRow(backoff, 6)).toEqual([50, 100, 200, 400, 500, 500])
  })

  test('stay between half of their interval and all of it, however many there were', () => {
    const interval = fc.integer({ min: 1, max: 100_000 })
    const chance = fc.double({ min: 0, max: 1, noNaN: true })
    fc.assert(
      fc.property(interval, interval, fc.array(chance, { minLength: 1, maxLength: 30 }), (one, other, chances) => {
        const [firstMs, maxMs] = [Math.min(one, other), Math.max(one, other)]
        let random = 0
        const backoff = new Backoff({ firstMs, maxMs }, () => random)
        for (const [count, chance] of chances.entries()) {
          random = chance
          const interval = Math.min(firstMs * 2 ** count, maxMs)
          const pauseMs = backoff.next()
          expect(pauseMs).toBeGreaterThanOrEqual(interval / 2)
          expect(pauseMs).toBeLessThanOrEqual(interval)
        }
      }),
    )
    const long = new Backoff({ firstMs: 100, maxMs: 10_000 }, () => 0)
    expect(inRow(long, 3_000).at(-1)).toBe(10_000)
  })

  test('are those of the documents', () => {
    // docs/client.md, docs/sources/qmf.md and [MON 14], docs/hierarchy.md.
    expect([TO_PRODUCER.firstMs, TO_PRODUCER.maxMs]).toEqual([100, 10_000])
    expect([TO_PEER.firstMs, TO_PEER.maxMs, TO_PEER.steadyMs]).toEqual([1_000, 60_000, 10_000])
    expect([TO_MAIN_MONITOR.firstMs, TO_MAIN_MONITOR.maxMs]).toEqual([1_000, 30_000])
  })
})
