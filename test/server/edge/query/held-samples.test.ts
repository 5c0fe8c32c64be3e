/** Series that send rarely: what is held, for how long, and that nothing else is. */
import { describe, expect, it } from 'vitest'
import { PreparedQuery, type QueryResult } from '../../../../promql/query.ts'
import { StaleMarkers } from '../../../../promql/series-source.ts'
import { heldSamples, READ_BACK_MS, withRepeated } from '../../../../server/edge/query/held-samples.ts'
import { HistorySource } from '../../../../server/edge/query/history-source.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
/** In minutes, after this time. */
const START_MS = 1_000 * HOUR_MS

type Sample = readonly [minute: number, value: number | 'stale']

function columns(samples: readonly Sample[]) {
  const values = Float64Array.from(samples, ([, value]) => (value === 'stale' ? Number.NaN : value))
  const markers = new StaleMarkers(values)
  for (const [index, [, value]] of samples.entries()) if (value === 'stale') markers.set(index)
  return { times: Float64Array.from(samples, ([minute]) => START_MS + minute * MINUTE_MS), values }
}

/** What is stored, as the history gives it. */
function source(samples: readonly Sample[], holdsRare = true): HistorySource {
  const { times, values } = columns(samples)
  return new HistorySource(async function* ({ fromMs, toMs }) {
    const from = times.findIndex((ms) => ms >= fromMs)
    const to = times.findLastIndex((ms) => ms <= toMs) + 1
    const part = { times: times.slice(from, to), values: values.slice(from, to) }
    if (from >= 0 && from < to) yield [{ series: { name: 'a', labels: [] }, ...part, mayRead: () => true }]
  }, holdsRare)
}

async function run(steps: ReturnType<PreparedQuery['range']>, of: HistorySource): Promise<QueryResult['data']> {
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value.data
    await of.waiting
  }
}

/** The value at each minute, as a range query and as instant queries have it, which are the same; `.` where there is none. */
async function minutes(samples: readonly Sample[], count: number, text = 'a', holdsRare = true): Promise<string> {
  const query = new PreparedQuery(text)
  const one = source(samples, holdsRare)
  const endMs = START_MS + count * MINUTE_MS
  const data = await run(query.range(one, START_MS, endMs, MINUTE_MS), one)
  if (data.type !== 'matrix') throw new Error('a range query gives a matrix')
  const shown = Array.from({ length: count + 1 }, () => '.')
  for (const { times, values } of data.series) {
    for (const [index, ms] of times.entries()) shown[(ms - START_MS) / MINUTE_MS] = String(values[index])
  }
  for (const [minute, value] of shown.entries()) {
    const again = source(samples, holdsRare)
    const instant = await run(query.instant(again, START_MS + minute * MINUTE_MS), again)
    const found = instant.type === 'vector' ? instant.samples.map((sample) => String(sample.value)) : ['?']
    expect([minute, found]).toEqual([minute, value === '.' ? [] : [value]])
  }
  return shown.join('')
}

const often = (from: number, to: number): Sample[] =>
  Array.from({ length: to - from + 1 }, (_, at): Sample => [from + at, 1])

describe('whoever looks back', () => {
  it('finds a series that sends every twenty minutes all the time, also if it is a little late', async () => {
    const samples: Sample[] = [
      [0, 1],
      [20, 2],
      [44, 3],
    ]
    expect(await minutes(samples, 75)).toBe(`${'1'.repeat(20)}${'2'.repeat(24)}${'3'.repeat(25)}.......`)
  })

  it('finds nothing after the end of a series', async () => {
    const samples: Sample[] = [
      [0, 1],
      [10, 2],
      [12, 'stale'],
      [20, 3],
      [21, 'stale'],
    ]
    expect(await minutes(samples, 30)).toBe('111111111122........3..........')
  })

  it('does not find a series that has sent often for longer than the lookback, as in Prometheus', async () => {
    expect(await minutes([...often(0, 9), [20, 2], [21, 3]], 30)).toBe('11111111111111......233333.....')
  })

  it('says when a sample was taken', async () => {
    const first = START_MS / 1_000
    expect(
      await minutes(
        [
          [0, 1],
          [6, 1],
        ],
        7,
        `timestamp(a) - ${first}`,
      ),
    ).toBe('000000360360')
  })

  it('finds nothing longer than it has asked for itself', async () => {
    expect(
      await minutes(
        [
          [0, 1],
          [10, 2],
        ],
        16,
        'a',
        false,
      ),
    ).toBe('11111.....22222..')
  })

  it('counts what was stored', async () => {
    expect(
      await minutes(
        [
          [0, 1],
          [10, 2],
        ],
        16,
        'count_over_time(a[9m])',
      ),
    ).toBe('111111111.1111111')
  })
})

describe('samples', () => {
  it('are held by what stands up to fifty minutes before a range', () => {
    const { times, values } = columns([
      [0, 1],
      [20, 2],
      [40, 3],
      [41, 4],
      [42, 5],
    ])
    for (const [from, value] of values.entries()) {
      // All that is read of it.
      const fromMs = (times[from] ?? 0) + 1
      const begin = times.findIndex((ms) => ms >= fromMs - READ_BACK_MS)
      const part = heldSamples({ times: times.subarray(begin), values: values.subarray(begin) }, fromMs)
      const first = value < 3 ? value : value + 1
      expect([...part.values].at(0)).toBe(value === 5 ? undefined : first)
    }
  })

  it('of which rollups are left are not held for being five minutes apart', () => {
    const { times, values } = columns([
      [0, 1],
      [5, 2],
      [14, 3],
      [25, 4],
    ])
    const { heldMs } = heldSamples({ times, values, thinnedMs: times[3] }, START_MS)
    expect([...(heldMs ?? [])].map((ms) => ms / MINUTE_MS)).toEqual([25, 0, 0, 25])
  })

  it('are repeated every four minutes for a reader that looks back by itself, within the range', () => {
    const { times, values } = columns([
      [0, 1],
      [20, 2],
      [21, 3],
      [29, Number.NaN],
      [31, 'stale'],
    ])
    const fromMs = START_MS + 6 * MINUTE_MS
    const shown = withRepeated(heldSamples({ times, values }, fromMs), fromMs, START_MS + 35 * MINUTE_MS)
    const markers = new StaleMarkers(shown.values)
    const list = [...shown.times].map((ms, index) => {
      return [(ms - START_MS) / MINUTE_MS, markers.has(index) ? 'stale' : shown.values[index]]
    })
    expect(list).toEqual([
      [8, 1],
      [12, 1],
      [16, 1],
      [20, 2],
      [21, 3],
      [29, Number.NaN],
      [31, 'stale'],
    ])
  })
})
