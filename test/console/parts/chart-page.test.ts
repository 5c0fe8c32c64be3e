/** Which time the charts of a page show. */
import { beforeEach, describe, expect, it } from 'vitest'
import { ChartPage } from '../../../console/parts/chart-page.ts'

const NOW = 1_700_000_010
const HOUR = 3_600

describe('ChartPage', () => {
  const clock = { nowMs: 0 }
  let page: ChartPage
  const shown = () => [page.shown.value.from - NOW, page.shown.value.to - NOW]
  beforeEach(() => {
    clock.nowMs = NOW * 1_000
    page = new ChartPage({ seconds: HOUR, at: undefined }, clock)
  })

  it('follows the time in steps of a tenth', () => {
    const { from, to } = page.shown.value
    expect([to - from, to % (HOUR / 10)]).toEqual([HOUR, 0])
    expect(to - NOW).toBeGreaterThanOrEqual(0)
    expect(to - NOW).toBeLessThan(HOUR / 10)
    expect(page.isLive).toBe(true)
  })

  it('leaves little of a long time empty', () => {
    const MONTH = 30 * 24 * HOUR
    page.show({ seconds: MONTH, at: undefined })
    const { from, to } = page.shown.value
    expect(to - from).toBe(MONTH)
    expect(to - NOW).toBeGreaterThanOrEqual(0)
    expect(to - NOW).toBeLessThan(MONTH / 80)
  })

  it('stays where it was put', () => {
    page.show({ seconds: HOUR, at: NOW - HOUR })
    clock.nowMs += 1e9
    page.zoomTo(undefined)
    expect(shown()).toEqual([-2 * HOUR, -HOUR])
    expect(page.isLive).toBe(false)
  })

  it('shows a part, and all of it again', () => {
    page.show({ seconds: HOUR, at: NOW })
    page.zoom(0.5, NOW - HOUR / 2)
    expect(shown()).toEqual([-0.75 * HOUR, -0.25 * HOUR])
    page.zoomTo(undefined)
    expect(shown()).toEqual([-HOUR, 0])
  })

  it('shows no less than two seconds, no more than a day, and two years where the server remembers', () => {
    page.show({ seconds: HOUR, at: NOW })
    const length = () => page.shown.value.to - page.shown.value.from
    page.zoom(1e-9, NOW)
    expect(length()).toBeCloseTo(2)
    page.zoom(1e9, NOW)
    expect(length()).toBeCloseTo(86_400)
    page.isRemembered.value = true
    page.zoom(1e9, NOW)
    expect(length()).toBeCloseTo(2 * 365 * 86_400)
  })

  it('turns back, and on until now, where it follows the time again', () => {
    page.show({ seconds: HOUR, at: NOW })
    page.turn(-1)
    page.turn(-1)
    expect(shown()).toEqual([-3 * HOUR, -2 * HOUR])
    page.turn(1)
    expect(shown()).toEqual([-2 * HOUR, -HOUR])
    page.turn(1)
    expect(page.time.value).toEqual({ seconds: HOUR, at: undefined })
    expect(page.isLive).toBe(true)
  })

  it('stands still while it is paused', () => {
    page.pause(true)
    const before = shown()
    clock.nowMs += 1e6
    page.zoomTo(undefined)
    expect(shown()).toEqual(before)
    page.pause(false)
    expect(shown()[1]).toBeGreaterThan(before[1] as number)
  })
})
