/** Selections that are asked for again and again: whatever happens to the history, they have what one that is read has. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { HistorySelection, ToThread } from '../../../../server/wings/history/messages.ts'
import { ThreadQueries } from '../../../../server/wings/history/queries.ts'
import { HistoryReading } from '../../../../server/wings/history/reading.ts'
import type { HistoryMatcher, HistorySamples } from '../../../../storage/history/store.ts'
import { all, HOUR_MS, linesOf, type Sample, STALE, series } from '../../../storage/history/history-model.ts'
import { TestHistory } from '../../../storage/history/test-history.ts'
import { seeds } from '../../../support/long.ts'
import { Random } from '../../../support/random.ts'

const MINUTE_MS = 60_000
const NAMES = ['a', 'b']

let test: TestHistory
let reading: HistoryReading
/** What the thread was asked. */
let asked: ToThread['kind'][]
/** Numbers of selections that it follows. */
let followed: Set<number>
let isThere: boolean

beforeEach(() => {
  test = new TestHistory()
  asked = []
  followed = new Set()
  isThere = true
  const later: (() => void)[] = []
  const queries = new ThreadQueries(
    {
      select: (query) => test.history.select(query),
      following: (query) => test.history.following(query),
      series: (query) => test.history.series(query),
      losses: () => [],
      families: () => [],
      familiesOf: () => [],
    },
    {
      answer: (answer) => {
        const copy = structuredClone(answer)
        if (copy.kind === 'news') reading.takeNews(copy)
        else if (copy.kind === 'answers') for (const one of copy.answers) reading.take(one)
        else reading.take(copy)
      },
      later: (act) => void later.push(act),
      monotonicMs: () => 0,
    },
  )
  reading = new HistoryReading(
    (message) => {
      if (!isThere) return false
      asked.push(message.kind)
      for (const one of message.kind === 'queries' ? message.queries : [message])
        if (one.kind === 'select' && one.selection.follow !== undefined) followed.add(one.selection.follow)
      if (message.kind === 'news') {
        for (const number of message.over) followed.delete(number)
        queries.news.handle(message)
      } else if (message.kind === 'queries') queries.handleAll(message.queries)
      else queries.handle(message)
      for (let act = later.shift(); act !== undefined; act = later.shift()) act()
      return true
    },
    () => test.now,
  )
})

afterEach(() => test.end())

const matching = (text: string): readonly HistoryMatcher[] => [{ label: '__name__', operator: '=', text }]

async function read(selection: HistorySelection): Promise<HistorySamples[]> {
  const found: HistorySamples[] = []
  for await (const portion of reading.select(selection)) found.push(...portion.filter(({ times }) => times.length > 0))
  return found
}

/** What the history has at once. */
function stored({ tenant, matchers, fromMs, toMs, stepMs }: HistorySelection): HistorySamples[] {
  return all(test.history.select({ tenant, matchers, fromMs, toMs, stepMs }))
}

function lastMinutes(name: string, minutes: number, rest: Partial<HistorySelection> = {}): HistorySelection {
  const toMs = rest.toMs ?? test.now
  const fromMs = toMs - minutes * MINUTE_MS
  return { tenant: 'acme', matchers: matching(name), fromMs, toMs, stepMs: 1, isRecurring: true, ...rest }
}

describe('what was read', () => {
  const [one, other] = [series('a', { host: '1' }), series('a', { host: '2' })]

  it('is asked for no more: only what has come since', async () => {
    test.store([
      [one, test.now - 1, 1],
      [other, test.now - 1, STALE],
    ])
    await read(lastMinutes('a', 5))
    test.pass(1_000)
    test.store([[other, test.now, STALE]])
    asked = []
    const selection = lastMinutes('a', 5)
    expect(linesOf(await read(selection))).toEqual(linesOf(stored(selection)))
    expect(asked).toEqual(['news'])
  })

  it('is one object for each series, as often as it is asked for', async () => {
    test.store([[one, test.now - 1, 1]])
    const [first] = await read(lastMinutes('a', 5))
    const [second] = await read(lastMinutes('a', 5))
    expect(second?.series).toBe(first?.series)
  })

  it('has what was there already of later times', async () => {
    test.store([
      [one, test.now - 1, 1],
      [one, test.now + 1_000, 2],
      [other, test.now + 1_000, 3],
    ])
    await read(lastMinutes('a', 5))
    test.pass(1_000)
    asked = []
    expect((await read(lastMinutes('a', 5))).map(({ values }) => [...values])).toEqual([[1, 2], [3]])
    expect(asked).toEqual(['news'])
  })

  it('of a time that is long past is read each time, up to that time, and nothing else is followed less by that', async () => {
    test.store([[one, test.now - 1, 1]])
    await read(lastMinutes('a', 5))
    const past = lastMinutes('a', 5, { toMs: test.now - 200 * MINUTE_MS })
    for (let times = 0; times < 2; times++) {
      asked = []
      await read(past)
      expect(asked.filter((kind) => kind === 'news')).toEqual([])
      expect(await reading.current(past)).toBeUndefined()
    }
    asked = []
    expect((await read(lastMinutes('a', 5))).map(({ values }) => [...values])).toEqual([[1]])
    expect(asked).toEqual(['news'])
  })

  it('up to a time has no series that begins later', async () => {
    test.store([[one, test.now - 1, 1]])
    test.store([[other, test.now + 1_000, 1]])
    const found: HistorySamples[] = []
    for await (const portion of reading.select(lastMinutes('a', 5))) found.push(...portion)
    expect(found.map(({ series }) => series)).toEqual([one])
  })

  it('of a selection that is long is read each time', async () => {
    test.store([[one, test.now - 1, 1]])
    const matchers = [...matching('a'), { label: 'x', operator: '!=', text: 'x'.repeat(4_000) }] as const
    for (let times = 0; times < 2; times++) {
      asked = []
      const selection = lastMinutes('a', 5, { matchers })
      expect(await reading.current(selection)).toBeUndefined()
      expect(await read(selection)).toHaveLength(1)
      expect([asked.includes('select'), asked.includes('news'), followed.size]).toEqual([true, false, 0])
    }
  })

  it('stays as it was given out, whatever comes', async () => {
    test.store([[one, test.now - 1, 1]])
    await read(lastMinutes('a', 5))
    const given = await read(lastMinutes('a', 5))
    const lines = linesOf(given)
    for (let late = 2; late < 20; late++) {
      test.store([
        [one, test.now - late, late],
        [one, test.now - 1, late],
      ])
      await read(lastMinutes('a', 5))
    }
    expect(linesOf(given)).toEqual(lines)
  })

  it('of a tenant without a history is nothing, until there is one', async () => {
    expect([await read(lastMinutes('a', 5)), await read(lastMinutes('a', 5))]).toEqual([[], []])
    expect(asked).toEqual(['select', 'news'])
    test.store([[one, test.now, 1]])
    expect(await read(lastMinutes('a', 5))).toHaveLength(1)
  })

  it('is read anew by a thread that takes the place of another one, and without one it is refused', async () => {
    await read(lastMinutes('a', 5))
    reading.ended()
    await read(lastMinutes('a', 5))
    expect(asked).toEqual(['select', 'select'])
    isThere = false
    await expect(read(lastMinutes('a', 5))).rejects.toThrow('the history is not there')
  })

  it('that would be windows is read each time', async () => {
    test.store([[one, test.now - 1, 1]])
    for (const stepMs of [300_000, undefined]) {
      asked = []
      for (let time = 0; time < 2; time++) await read(lastMinutes('a', 5, { stepMs }))
      expect(asked.filter((kind) => kind === 'select')).toHaveLength(2)
      expect(asked).not.toContain('news')
    }
  })
})

describe('the thread', () => {
  const settled = async (): Promise<void> => {
    for (let turn = 0; turn < 10; turn++) await undefined
  }

  it('follows what is followed here, and nothing that was not read to its end, or is read anew', async () => {
    test.store([[series('a', {}), test.now - 1, 1]])
    await read(lastMinutes('a', 5))
    await read(lastMinutes('b', 5))
    expect(followed.size).toBe(2)
    for await (const _ of reading.select(lastMinutes('a', 6))) break
    await settled()
    expect(followed.size).toBe(2)
    test.store([[series('a', { host: 'new' }), test.now - 1, 1]])
    await read(lastMinutes('a', 5))
    await settled()
    expect(followed.size).toBe(2)
  })

  it('follows no selection that has given way to others', async () => {
    const long = (at: number) => matching(`n${at}_${'x'.repeat(3_900)}`)
    for (let at = 0; at < 4_400; at++) await read(lastMinutes('', 5, { matchers: long(at) }))
    await settled()
    expect(followed.size).toBeGreaterThan(4_000)
    expect(followed.size).toBeLessThan(4_400)
    asked = []
    await read(lastMinutes('', 5, { matchers: long(0) }))
    await read(lastMinutes('', 5, { matchers: long(4_399) }))
    expect(asked).toEqual(expect.arrayContaining(['select', 'news']))
  })

  it('knows the series of what it follows, also when others were read since', async () => {
    const [one] = [series('a', { host: '1' })]
    test.store([[one, test.now - 1, 1]])
    await read(lastMinutes('a', 5))
    const range = { tenant: 'acme', fromMs: test.now - 1, toMs: test.now, stepMs: 1 }
    for (let at = 0; at < 2_200; at++)
      all(test.history.select({ ...range, matchers: matching(`n${at}_${'x'.repeat(4_000)}`) }))
    test.store([[one, test.now, 2]])
    asked = []
    expect((await read(lastMinutes('a', 5))).map(({ values }) => [...values])).toEqual([[1, 2]])
    expect(asked).toEqual(['news'])
  })
})

/** As a rule looks back: the samples of a few minutes, and the two before them. */
function lookingBack(name: string): HistorySelection {
  return lastMinutes(name, 55, { twoBeforeMs: test.now - 5 * MINUTE_MS })
}

/** The samples of each series that a rule which looks back may look at. */
function looked(found: readonly HistorySamples[], sinceMs: number): string[] {
  return found.flatMap((one) => {
    const first = one.times.findIndex((ms) => ms >= sinceMs)
    const from = Math.max(0, (first < 0 ? one.times.length : first) - 2)
    return linesOf([{ ...one, times: one.times.subarray(from), values: one.values.subarray(from) }])
  })
}

it.each(seeds({ short: 4, long: 60 }))(
  'samples come, late and again, series come and go, pages are made: seed %i',
  async (seed) => {
    const random = new Random(seed)
    const hosts = Array.from({ length: 6 }, (_, at) => String(at))
    let current = 0
    for (let step = 0; step < 120; step++) {
      const act = random.below(20)
      if (act === 0) test.pass(random.below(HOUR_MS))
      else if (act === 1) for (const _ of test.history.drop({ tenant: 'acme', matchers: matching('a') }));
      else if (act === 2 && random.below(4) === 0) test.history.removeTenant('acme')
      else if (act === 3)
        test.history.limit({
          keepMs: HOUR_MS * 48,
          keepRollupsMs: HOUR_MS * 96,
          maxBytes: 1 << (10 + random.below(30)),
          quotas: new Map(),
        })
      else if (act < 15) {
        test.now += random.below(MINUTE_MS)
        const samples = Array.from({ length: 1 + random.below(8) }, (): Sample => {
          const lateMs =
            random.below(6) === 0 ? random.below(90 * MINUTE_MS) : -random.below(2) * random.below(MINUTE_MS)
          const value = random.below(5) === 0 ? STALE : random.below(100)
          // A few at times that there were already.
          const ms = test.now - lateMs
          const of = series(random.pick(NAMES), { host: random.pick(hosts) })
          return [of, random.below(3) === 0 ? ms - (ms % MINUTE_MS) : ms, value]
        })
        test.store(samples)
      }
      const name = random.pick(NAMES)
      asked = []
      // Some times come later than their time, with what is there of later ones.
      const whole = lastMinutes(name, 10, random.below(4) === 0 ? {} : { toMs: test.now - random.below(3) * MINUTE_MS })
      expect(linesOf(await read(whole))).toEqual(linesOf(stored(whole)))
      const back = lookingBack(name)
      const sinceMs = back.twoBeforeMs as number
      expect(looked(await read(back), sinceMs)).toEqual(looked(stored(back), sinceMs))
      if (!asked.includes('select')) current++
      expect(followed.size).toBeLessThanOrEqual(2 * NAMES.length + 1)
    }
    expect(current).toBeGreaterThan(10)
  },
)
