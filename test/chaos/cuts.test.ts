/** Every fourteenth byte in the long form, every one with `npm run chaos -- --cuts`. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { isLong, times } from '../support/long.ts'
import { cuts, Stage } from './cuts.ts'
import type { Direction, Passage } from './proxy.ts'

const STEP = times({ short: 42, long: 14 })

it('a conversation that is cut or reset at any byte loses nothing, and does nothing by half', async () => {
  const totals = await cuts({ seed: 20_260, count: Number.POSITIVE_INFINITY, step: STEP, say: () => {} })
  expect(totals).toMatchObject({ lost: 0, unexpected: 0, reused: 0 })
  expect(totals['cuts']).toBeGreaterThan(1_750 / STEP)
  expect(totals['again']).toBeGreaterThan(700 / STEP)
})

describe('a conversation', () => {
  let stage: Stage
  let bytes: Passage['passed']
  beforeAll(async () => {
    stage = await Stage.open()
    const { whole, passed } = await stage.play({})
    expect(whole).toBe(true)
    bytes = passed
  })
  afterAll(() => stage.close())

  it('that comes one byte at a time in both directions is the same', async () => {
    expect(await stage.play({ slice: 1 })).toEqual({ whole: true, passed: bytes })
  })

  const eleven = Array.from({ length: 11 }, (_, tenth) => tenth)
  const tenths = isLong ? eleven : [0, 3, 7, 10]
  const cases = (['up', 'down'] as Direction[]).flatMap((direction) =>
    tenths.map((tenth) => [direction, tenth] as const),
  )
  const at = (direction: Direction, tenth: number): number => Math.floor((bytes[direction] * tenth) / 10)

  it.each(cases)('that stalls %s after %i tenths goes on when the stall ends', async (direction, tenth) => {
    const fault = { direction, after: at(direction, tenth), how: 'stall' } as const
    const played = await stage.play({ fault }, async (passage) => {
      while (passage.passed[direction] < fault.after) await stage.producer.settle()
      // Whoever is beside it is served.
      expect((await stage.producer.seat('other')).channel).toBeGreaterThan(0)
      passage.release()
    })
    expect(played).toEqual({ whole: true, passed: bytes })
  })

  it.each(cases)('that stalls %s after %i tenths and never goes on loses nothing', async (direction, tenth) => {
    const fault = { direction, after: at(direction, tenth), how: 'stall' } as const
    const { whole } = await stage.play({ fault }, async (passage) => {
      while (passage.passed[direction] < fault.after) await stage.producer.settle()
      await stage.producer.settle()
      passage.destroy()
    })
    if (tenth < 10) expect(whole).toBe(false)
  })

  it.each(cases)('that is half closed %s after %i tenths loses nothing', async (direction, tenth) => {
    const fault = { direction, after: at(direction, tenth), how: 'half-close' } as const
    const { passed } = await stage.play({ fault })
    expect(passed[direction]).toBe(fault.after)
    // What was asked before is answered all the same.
    if (direction === 'up' && tenth === 10) expect(passed.down).toBeGreaterThan(bytes.down - 100)
  })
})
