/** Queries in the thread: each goes on when it is asked to, and ends when nobody asks. */
import { beforeEach, describe, expect, it } from 'vitest'
import type { QueryAnswer } from '../../../../server/wings/history/messages.ts'
import { ThreadQueries } from '../../../../server/wings/history/queries.ts'
import { HistoryReading } from '../../../../server/wings/history/reading.ts'
import {
  HistoryExpressionError,
  type HistoryLoss,
  HistoryReadError,
  type HistorySamples,
  type HistorySeries,
} from '../../../../storage/history/store.ts'

const SELECTION = { tenant: 'acme', matchers: [], fromMs: 0, toMs: 1 }

/** Of a, and of what only begins as it does. */
const FAMILIES = ['a_count', 'a'].map((name) => ({ name, type: 'gauge', help: '', unit: '' }))

const LOSS: HistoryLoss = { native: 'test.*', fromMs: 0, toMs: 1, count: 2, reason: 'overflow' }

let answers: QueryAnswer[]
/** Those that came together. */
let together: (readonly QueryAnswer[])[]
let later: (() => void)[]
let nowMs: number
let ended: number
let selected: number
let failure: Error | undefined
let queries: ThreadQueries

function samples(length: number): HistorySamples {
  const series = { tenant: 'acme', name: 'a', native: 'a', labels: [] } as const
  return { series, times: new Float64Array(length), values: new Float64Array(length) }
}

/** Three series, each of which fills a portion. */
function* select(): Generator<HistorySamples | undefined, void, void> {
  selected++
  try {
    for (let count = 0; count < 3; count++) {
      if (failure !== undefined) throw failure
      yield samples(100_000)
    }
  } finally {
    ended++
  }
}

/** What the index has. */
function* series(): Generator<HistorySeries | undefined, void, void> {
  yield undefined
  yield samples(0).series
}

function losses(): HistoryLoss[] {
  if (failure !== undefined) throw failure
  return [LOSS]
}

beforeEach(() => {
  answers = []
  together = []
  later = []
  nowMs = 0
  ended = 0
  selected = 0
  failure = undefined
  queries = new ThreadQueries(
    {
      select,
      series,
      losses,
      following: () => ({ news: () => undefined, found() {} }),
      families: () => [],
      familiesOf: () => FAMILIES,
    },
    {
      answer: (one) => {
        if (one.kind === 'answers') together.push(one.answers)
        else if (one.kind !== 'news') answers.push(one)
      },
      later: (act) => void later.push(act),
      monotonicMs: () => nowMs,
    },
  )
})

const next = (): QueryAnswer | undefined => {
  queries.handle({ kind: 'next', query: 1 })
  return answers.at(-1)
}

describe('a query', () => {
  beforeEach(() => queries.handle({ kind: 'select', query: 1, selection: SELECTION }))

  it('goes on portion by portion, however slowly it is asked to', () => {
    for (let portion = 0; portion < 3; portion++) {
      nowMs += 80_000
      queries.sweep()
      next()
    }
    expect(answers).toMatchObject([{ isLast: false }, { isLast: false }, { isLast: false }, { isLast: true }])
    expect(ended).toBe(1)
  })

  it('has what is known of its series, if that is asked for', () => {
    queries.handle({ kind: 'select', query: 2, selection: { ...SELECTION, withFamilies: true } })
    expect(answers).toMatchObject([{ series: [{ times: {} }] }, { series: [{ family: { name: 'a', type: 'gauge' } }] }])
    expect(answers[0]).not.toHaveProperty('series.0.family.name')
  })

  it('that nobody goes on with ends, and says so to those who come later', () => {
    nowMs += 90_000
    queries.sweep()
    expect(ended).toBe(0)
    nowMs += 1
    queries.sweep()
    expect(ended).toBe(1)
    expect(next()).toMatchObject({ kind: 'refused', query: 1, status: 'INTERNAL' })
  })

  it('that is cancelled ends', () => {
    queries.handle({ kind: 'cancel', query: 1 })
    expect(ended).toBe(1)
    expect(answers).toHaveLength(1)
  })

  it.each([
    [new HistoryReadError('the disk could not read it'), 'INTERNAL'],
    [new HistoryExpressionError('`(` is none'), 'INVALID_ARGUMENT'],
  ])('that fails says why: %s', (error, status) => {
    failure = error
    expect(next()).toEqual({ kind: 'refused', query: 1, status, detail: error.message })
    expect(ended).toBe(1)
  })

  it('whose failure nothing but a new thread can mend has it thrown', () => {
    failure = new Error('broken')
    expect(next).toThrow('broken')
  })
})

describe('which series there are', () => {
  const ever = { ...SELECTION, toMs: 8.64e15, isWithoutSamples: true }

  it('at any time is read of the index, and no page is', () => {
    queries.handle({ kind: 'select', query: 1, selection: ever })
    expect(answers).toMatchObject([{ isLast: true, series: [{ times: { length: 0 } }] }])
    expect(selected).toBe(0)
  })

  it.each([{ fromMs: 1 }, { toMs: 5 }])('between two times is read of what they have: %j', (range) => {
    queries.handle({ kind: 'select', query: 1, selection: { ...ever, ...range } })
    expect(answers).toMatchObject([{ isLast: true, series: [{ times: { length: 0 } }, {}, {}] }])
    expect(selected).toBe(1)
  })
})

describe('losses', () => {
  it('are answered at once, or why they cannot be read', () => {
    queries.handle({ kind: 'losses', query: 7, selection: SELECTION })
    failure = new HistoryReadError('the disk failed')
    queries.handle({ kind: 'losses', query: 8, selection: SELECTION })
    expect(answers).toEqual([
      { kind: 'lost', query: 7, losses: [LOSS] },
      { kind: 'refused', query: 8, status: 'INTERNAL', detail: 'the disk failed' },
    ])
  })
})

describe('series that are asked for again and again', () => {
  it('come as texts, each as one object to those who ask', async () => {
    const reading = new HistoryReading(
      (message) => {
        if (message.kind === 'select') queries.handle(message)
        for (const answer of answers.splice(0)) reading.take(structuredClone(answer))
        return true
      },
      () => SELECTION.toMs,
    )
    const seriesOf = async (isRecurring: boolean) => {
      for await (const portion of reading.select({ ...SELECTION, isRecurring })) return portion[0]?.series
      return undefined
    }
    const first = await seriesOf(true)
    expect(first).toEqual(samples(0).series)
    expect(await seriesOf(true)).toBe(first)
    expect(await seriesOf(false)).toEqual(first)
    expect(await seriesOf(false)).not.toBe(first)
  })
})

describe('queries that were asked together', () => {
  const select = (query: number) => ({ kind: 'select', query, selection: SELECTION }) as const

  it('are answered together', () => {
    queries.handleAll([select(1), select(2), { kind: 'losses', query: 3, selection: SELECTION }])
    expect(together).toMatchObject([
      [
        { kind: 'portion', query: 1 },
        { kind: 'portion', query: 2 },
        { kind: 'lost', query: 3 },
      ],
    ])
    expect([answers, later]).toEqual([[], []])
  })

  it('have memory of their own, which may be handed on', () => {
    queries.handleAll([select(1), select(2)])
    const [one, other] = together.flat()
    if (one?.kind !== 'portion' || other?.kind !== 'portion') throw new Error('two portions were asked for')
    structuredClone(one, { transfer: [one.series[0]?.times.buffer as ArrayBuffer] })
    expect(one.series[0]?.times).toHaveLength(0)
    expect(other.series[0]?.times).toHaveLength(100_000)
  })

  it('let others have their turn after a slice', () => {
    failure = new HistoryReadError('the disk could not read it')
    const slow = [1, 2, 3].map(select)
    Object.defineProperty(slow[0], 'query', {
      get() {
        nowMs += 25
        return 1
      },
    })
    queries.handleAll(slow)
    expect(together.flat().map(({ query }) => query)).toEqual([1])
    later.shift()?.()
    expect(together.flat().map(({ query }) => query)).toEqual([1, 2, 3])
    expect(later).toEqual([])
  })
})
