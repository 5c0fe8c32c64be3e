import { afterEach, describe, expect, test, vi } from 'vitest'
import { ageClock, stamps, systemClock } from '../../../../server/kernel/core/clock.ts'

describe('the age clock', () => {
  const HOUR_MS = 3_600_000
  const stored = { age: 1_000, wall: 1_700_000_000_000 }
  const at = (wallMs: number) => ({ wallMs: () => wallMs, monotonicMs: () => 77 })

  test('goes on by the time between two runs, which is never negative', () => {
    expect(ageClock(at(stored.wall + 250), stored)()).toBe(1_250)
    expect(ageClock(at(stored.wall - HOUR_MS), stored)()).toBe(1_000)
    expect(ageClock(at(stored.wall), { age: 0, wall: 0 })()).toBe(0)
  })

  test('is not touched by the wall clock of another machine if the time since its last batch is known', () => {
    for (const wrong of [HOUR_MS, -HOUR_MS]) {
      let age = stored.age
      for (let takeover = 1; takeover <= 10; takeover++) {
        age = ageClock(at(stored.wall + (takeover % 2) * wrong), { age, wall: stored.wall }, 250)()
        expect(age).toBe(1_000 + takeover * 250)
      }
    }
  })
})

describe('stamps', () => {
  /** A wall and a monotonic clock in milliseconds; the wall shows whole ones, as Date.now does. */
  function clocks() {
    const hands = { wallMs: 1_700_000_000_000, monotonicMs: 5_000 }
    return {
      hands,
      stamp: stamps(
        () => Math.floor(hands.wallMs),
        () => hands.monotonicMs,
      ),
    }
  }

  test('begin at the wall clock', () => {
    const { stamp } = clocks()
    expect(stamp()).toBe(1_700_000_000_000_000)
  })

  test('count the microseconds within a millisecond', () => {
    const { hands, stamp } = clocks()
    const first = stamp()
    hands.monotonicMs += 0.25
    hands.wallMs += 0.25
    expect(stamp() - first).toBe(250)
  })

  test('stay within a millisecond of a wall clock that runs faster or slower', () => {
    for (const speed of [0.9, 1.1]) {
      const { hands, stamp } = clocks()
      for (let i = 0; i < 1_000; i++) {
        hands.monotonicMs += 0.7
        hands.wallMs += 0.7 * speed
        const offUs = stamp() - Math.floor(hands.wallMs) * 1_000
        expect(offUs).toBeGreaterThanOrEqual(0)
        expect(offUs).toBeLessThan(1_000)
      }
    }
  })

  test('follow a wall clock that is set forward', () => {
    const { hands, stamp } = clocks()
    stamp()
    hands.wallMs += 3_600_000
    expect(stamp()).toBe(1_700_003_600_000_000)
  })

  test('stand still while the wall clock makes up for a small step back', () => {
    const { hands, stamp } = clocks()
    const first = stamp()
    hands.wallMs -= 500
    expect(stamp()).toBe(first)
    hands.wallMs += 501
    hands.monotonicMs += 501
    expect(stamp()).toBeGreaterThan(first)
  })

  test('follow a step back of more than a second', () => {
    const { hands, stamp } = clocks()
    stamp()
    hands.wallMs -= 3_600_000
    expect(Math.floor(stamp() / 1_000)).toBe(1_699_996_400_000)
  })
})

describe('the system clock', () => {
  afterEach(() => {
    vi.useRealTimers()
  })

  test('stamps in whole microseconds of the present', () => {
    const clock = systemClock()
    const before = Date.now()
    const stamp = clock.microseconds()
    expect(Number.isSafeInteger(stamp)).toBe(true)
    expect(stamp).toBeGreaterThanOrEqual(before * 1_000)
    expect(clock.microseconds()).toBeGreaterThanOrEqual(stamp)
  })

  test('runs a timer once, an interval again and again, and neither after clear', () => {
    vi.useFakeTimers()
    const clock = systemClock()
    const seen: string[] = []
    clock.setTimeout(() => seen.push('once'), 15)
    clock.clear(clock.setTimeout(() => seen.push('never'), 15))
    const interval = clock.setInterval(() => seen.push('again'), 10)
    vi.advanceTimersByTime(29)
    expect(seen).toEqual(['again', 'once', 'again'])
    clock.clear(interval)
    clock.clear(undefined)
    expect(vi.getTimerCount()).toBe(0)
  })

  test('waits longer than one timer of Node can, and can be stopped in any part of it', () => {
    vi.useFakeTimers()
    const clock = systemClock()
    const seen: string[] = []
    clock.setTimeout(() => seen.push('ran'), 2 ** 32)
    const stopped = clock.setTimeout(() => seen.push('never'), 2 ** 32)
    vi.advanceTimersByTime(2 ** 32 - 1)
    expect(seen).toEqual([])
    clock.clear(stopped)
    vi.advanceTimersByTime(1)
    expect(seen).toEqual(['ran'])
    expect(vi.getTimerCount()).toBe(0)
  })
})
