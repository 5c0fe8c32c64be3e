/** The series of a server, read for hours at once. */
import { expect, it } from 'vitest'
import { LabelMatcher } from '../../../../../promql/label-matcher.ts'
import type { SourceSeries } from '../../../../../promql/series-source.ts'
import {
  type ReadServer,
  ReadSource,
  type WantedSeries,
} from '../../../../../server/wings/alerts/backtest/read-source.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const END = 24 * HOUR
const UP = [new LabelMatcher('__name__', '=', 'up')]

/** A server with a sample in each minute, whose value is the minute. */
function minutes(asked: WantedSeries[]): ReadServer {
  return async (query) => {
    asked.push(query)
    const times: number[] = []
    for (let ms = Math.ceil(query.fromMs / MINUTE) * MINUTE; ms <= query.toMs; ms += MINUTE) times.push(ms)
    const values = times.map((ms) => ms / MINUTE)
    return [{ labels: [['__name__', 'up']], times: Float64Array.from(times), values: Float64Array.from(values) }]
  }
}

async function selected(source: ReadSource, fromMs: number, toMs: number): Promise<SourceSeries[]> {
  const found: SourceSeries[] = []
  for (const series of source.select(UP, fromMs, toMs)) {
    if (series !== undefined) found.push({ ...series, times: series.times.slice(), values: series.values.slice() })
    await source.waiting
  }
  return found
}

const spanOf = ([series]: readonly SourceSeries[]): readonly (number | undefined)[] => [
  series?.times[0],
  series?.times.at(-1),
]

it('is asked for hours at once, and has both ends of what is selected', async () => {
  const asked: WantedSeries[] = []
  const source = new ReadSource(minutes(asked), END)
  for (let ms = HOUR; ms <= 7 * HOUR; ms += MINUTE)
    expect(spanOf(await selected(source, ms - 5 * MINUTE, ms))).toEqual([ms - 5 * MINUTE, ms])
  expect(asked).toMatchObject([{ fromMs: 55 * MINUTE, toMs: 7 * HOUR }])
  expect(spanOf(await selected(source, END - MINUTE, END))).toEqual([END - MINUTE, END])
  expect(asked[1]?.toMs).toBe(END)
})

it('is asked once where the same series are wanted for a short and for a long time', async () => {
  const asked: WantedSeries[] = []
  const source = new ReadSource(minutes(asked), END)
  for (let ms = 2 * HOUR; ms <= 8 * HOUR; ms += 10 * MINUTE)
    for (const back of [5 * MINUTE, HOUR])
      expect(spanOf(await selected(source, ms - back, ms))).toEqual([ms - back, ms])
  // The first was for the short time alone.
  expect(asked.length).toBe(2)
  // What is no longer needed goes.
  await selected(source, 9 * HOUR, 10 * HOUR)
  await selected(source, 17 * HOUR, 18 * HOUR)
  expect(asked.at(-1)?.fromMs).toBeGreaterThanOrEqual(7 * HOUR)
})

it('ends with what the server says is wrong', async () => {
  const source = new ReadSource(async () => {
    throw new Error('the disk failed')
  }, END)
  await expect(selected(source, 0, HOUR)).rejects.toThrow('the disk failed')
  expect(source.failure).toEqual(new Error('the disk failed'))
})
