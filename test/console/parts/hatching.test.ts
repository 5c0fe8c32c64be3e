import { describe, expect, it } from 'vitest'
import { joined, missingText } from '../../../console/parts/hatching.ts'

describe('what is missing', () => {
  const loss = (from: number, to: number, count: number, reason = 'gmetric.*: overflow') => ({
    from,
    to,
    count,
    reason,
  })
  const losses = [loss(10, 20, 7), loss(30, 40, 1), loss(35, 45, 0, 'restart')]
  const text = (from: number, to: number) => missingText(losses, losses, { from, to })

  it('is said in words, with how many values and why', () => {
    expect(text(0, 100)).toBe('8 values are missing: gmetric.*: overflow, restart')
    expect(text(30, 30)).toBe('1 value is missing: gmetric.*: overflow')
    expect(text(42, 43)).toBe('values are missing: restart')
    expect(text(21, 29)).toBe('')
  })

  it('is said of holes of which nothing else is known', () => {
    expect(missingText([], [{ from: 1, to: 2, count: 0 }], { from: 2, to: 3 })).toBe('values are missing')
  })

  it('is hatched once, where several overlap', () => {
    expect(joined(losses)).toEqual([losses[0], { ...losses[1], to: 45 }])
  })
})
