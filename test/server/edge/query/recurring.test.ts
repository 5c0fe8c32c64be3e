/** Steps that are run again and again: what they asked for the last time is asked for before their turn. */
import { beforeEach, describe, expect, it } from 'vitest'
import { LabelMatcher } from '../../../../promql/label-matcher.ts'
import type { SeriesSource } from '../../../../promql/series-source.ts'
import { RecurringLabels } from '../../../../server/edge/query/history-source.ts'
import { HistoryRun } from '../../../../server/edge/query/recurring.ts'
import { FairWork } from '../../../../server/kernel/core/fair-work.ts'
import type { CurrentSelection, RememberedHistory, RememberedSelection } from '../../../../server/kit/history.ts'
import { FakeClock } from '../../../support/fake-clock.ts'

const READER = { userId: 1, tenant: 'north', role: 'user', scope: undefined } as never
const MINUTE_MS = 60_000
const TIME_MS = 1_000 * MINUTE_MS

let clock: FakeClock
let asked: { readonly how: string; readonly fromMs: number; readonly toMs: number }[]
/** What there is at once, if there is. */
let current: CurrentSelection | undefined
let isLate: boolean
let mayRead: boolean
let failure: Error | undefined
let run: HistoryRun

const one = (value: number) => ({
  series: { name: 'a', labels: [] },
  times: Float64Array.of(TIME_MS),
  values: Float64Array.of(value),
})

beforeEach(() => {
  clock = new FakeClock()
  asked = []
  current = undefined
  isLate = false
  mayRead = true
  failure = undefined
  const note = (how: string, { fromMs, toMs }: RememberedSelection) => void asked.push({ how, fromMs, toMs })
  const history: Pick<RememberedHistory, 'select' | 'current'> = {
    async *select(_, selection) {
      note('select', selection)
      if (selection.matchers[0]?.text === 'a') yield [{ ...one(1), mayRead: () => mayRead }]
    },
    async current(_, selection) {
      note('current', selection)
      if (isLate) await new Promise(() => {})
      return current
    },
  }
  run = new HistoryRun(
    () => {
      if (failure !== undefined) throw failure
      return history as RememberedHistory
    },
    {
      work: new FairWork(clock, () => {}),
      clock,
      labels: new RecurringLabels(),
      section: () => ({ timeout: 1_000 }) as never,
    },
  )
})

/** The values of the last minute, which it reads twice. */
function evaluated(timeMs: number): Promise<number[]> {
  return run.run(READER, timeMs, function* (source: SeriesSource) {
    const found: number[] = []
    for (let time = 0; time < 2; time++) {
      for (const series of source.select([new LabelMatcher('__name__', '=', 'a')], timeMs - MINUTE_MS, timeMs)) {
        if (series === undefined) yield undefined
        else found.push(...series.values)
      }
    }
    return found
  })
}

const range = (timeMs: number) => ({ fromMs: timeMs - MINUTE_MS, toMs: timeMs })

describe('what steps ask for', () => {
  beforeEach(async () => {
    expect(await evaluated(TIME_MS)).toEqual([1, 1])
    asked = []
  })

  it('is taken as it is there at their next time, and nothing is selected', async () => {
    current = { series: () => [one(2)].values() as ReturnType<CurrentSelection['series']> }
    const nextMs = TIME_MS + MINUTE_MS
    run.ask(READER, nextMs)
    expect(await evaluated(nextMs)).toEqual([2, 2])
    const how = 'current'
    expect(asked).toEqual([
      { how, ...range(nextMs) },
      { how, ...range(nextMs) },
    ])
    asked = []
    run.ask(READER, nextMs + MINUTE_MS)
    expect(await evaluated(nextMs + MINUTE_MS)).toEqual([2, 2])
    expect(asked).toHaveLength(2)
  })

  it('is selected before their turn where it is not there, and judged in their turn', async () => {
    const nextMs = TIME_MS + MINUTE_MS
    run.ask(READER, nextMs)
    for (let turn = 0; turn < 10; turn++) await undefined
    expect(asked.map(({ how }) => how)).toEqual(['current', 'current', 'select', 'select'])
    mayRead = false
    expect(await evaluated(nextMs)).toEqual([])
    expect(asked).toHaveLength(4)
  })

  it('is not given at another time', async () => {
    current = { series: () => [one(2)].values() as ReturnType<CurrentSelection['series']> }
    run.ask(READER, TIME_MS + MINUTE_MS)
    expect(await evaluated(TIME_MS + 2 * MINUTE_MS)).toEqual([1, 1])
  })

  it('is waited for as long as they may take', async () => {
    isLate = true
    run.ask(READER, TIME_MS + MINUTE_MS)
    const failed = expect(evaluated(TIME_MS + MINUTE_MS)).rejects.toThrow('timed out')
    clock.advance(1_000)
    await failed
  })

  it('is asked for before their turn as far as it is not too much', async () => {
    const read = (timeMs: number): Promise<void> =>
      run.run(READER, timeMs, function* (source: SeriesSource) {
        for (let at = 0; at < 500; at++) {
          const matchers = [new LabelMatcher('__name__', '=', `b${at}`)]
          for (const _ of source.select(matchers, timeMs - MINUTE_MS, timeMs)) yield undefined
        }
      })
    await read(TIME_MS)
    current = { series: () => [].values() as ReturnType<CurrentSelection['series']> }
    asked = []
    run.ask(READER, TIME_MS + MINUTE_MS)
    await undefined
    expect(asked).toHaveLength(64)
    await read(TIME_MS + MINUTE_MS)
    expect(asked.filter(({ how }) => how === 'select')).toHaveLength(500 - 64)
  })

  it('and cannot have counts as no work', async () => {
    run.workedMs = 5
    failure = new Error('there is no history')
    await expect(evaluated(TIME_MS + MINUTE_MS)).rejects.toThrow('there is no history')
    expect(run.workedMs).toBe(0)
  })

  it('is not asked for where there is no history, which is said when they are run', async () => {
    failure = new Error('there is no history')
    run.ask(READER, TIME_MS + MINUTE_MS)
    await expect(evaluated(TIME_MS + MINUTE_MS)).rejects.toThrow('there is no history')
  })
})
