import { describe, expect, it } from 'vitest'
import { offsetOf, ticksAfter } from '../../../../../server/wings/alerts/evaluation/schedule.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const START = 1_000 * HOUR

describe('a group of an interval of a minute', () => {
  const at = (reached: number, now: number) => ticksAfter(START + reached, START + now, MINUTE, 7_000)

  it('is due at the multiples of the interval, shifted by its offset', () => {
    expect(at(0, 6_999).nextMs).toBeUndefined()
    expect(at(0, 7_000).nextMs).toBe(START + 7_000)
    expect(at(7_000, 60_000).nextMs).toBeUndefined()
    expect(at(7_000, 70_000).nextMs).toBe(START + 67_000)
  })

  it('catches up one time after the other', () => {
    expect(at(7_000, 30 * MINUTE)).toEqual({ nextMs: START + 67_000, skipped: 0, setBackMs: 0 })
  })

  it('leaves out what was due more than an hour ago, and counts it', () => {
    const { nextMs, skipped } = at(7_000, 3 * HOUR)
    expect(nextMs).toBe(START + 2 * HOUR + 7_000)
    expect(skipped).toBe(119)
  })

  it('waits for a clock that is an interval behind, and goes on from now where it is further behind', () => {
    expect(at(7_000 + MINUTE, 7_000)).toEqual({ nextMs: undefined, skipped: 0, setBackMs: 0 })
    expect(at(7_000 + MINUTE, 6_999)).toEqual({ nextMs: undefined, skipped: 0, setBackMs: MINUTE + 1 })
  })
})

it('does what is due once where an interval is longer than what is caught up', () => {
  expect(ticksAfter(START, START + 30 * HOUR, 4 * HOUR, 0)).toEqual({
    nextMs: START + 28 * HOUR,
    skipped: 6,
    setBackMs: 0,
  })
})

it('spreads groups over their interval, each always at the same place', () => {
  const offsets = Array.from({ length: 1_000 }, (_, index) => offsetOf(`["default","a.yml","g${index}"]`, MINUTE))
  expect(Math.min(...offsets)).toBeLessThan(1_000)
  expect(Math.max(...offsets)).toBeGreaterThan(59_000)
  const inHalf = offsets.filter((offset) => offset < MINUTE / 2).length
  expect(inHalf).toBeGreaterThan(400)
  expect(inHalf).toBeLessThan(600)
  expect(offsetOf('x', MINUTE)).toBe(offsetOf('x', MINUTE))
})
