/** The history as a source: portions are asked for ahead, and whoever stops ends the query. */
import { describe, expect, it } from 'vitest'
import { LabelMatcher } from '../../../../promql/label-matcher.ts'
import type { ReadableSeries } from '../../../../server/edge/query/asked-history.ts'
import { HistorySource } from '../../../../server/edge/query/history-source.ts'
import type { RememberedSelection } from '../../../../server/kit/history.ts'

const series = (name: string): ReadableSeries => ({
  series: { name, labels: [['host', 'h']] },
  times: Float64Array.of(1),
  values: Float64Array.of(2),
})

/** A history whose portions come when the test gives them. */
class Portions {
  readonly selections: RememberedSelection[] = []
  asked = 0
  ended = 0
  #give: ((portion: readonly ReadableSeries[] | undefined | Error) => void)[] = []
  readonly source = new HistorySource((selection) => this.#select(selection))

  async *#select(selection: RememberedSelection): AsyncGenerator<readonly ReadableSeries[], void, void> {
    this.selections.push(selection)
    try {
      for (;;) {
        this.asked++
        const portion = await new Promise<readonly ReadableSeries[] | undefined | Error>((give) => {
          this.#give.push(give)
        })
        if (portion instanceof Error) throw portion
        if (portion === undefined) return
        yield portion
      }
    } finally {
      this.ended++
    }
  }

  async give(portion: readonly ReadableSeries[] | undefined | Error): Promise<void> {
    const { waiting } = this.source
    this.#give.shift()?.(portion)
    await waiting
    await new Promise((resolve) => setImmediate(resolve))
  }
}

const range = { matchers: [], fromMs: 0, toMs: 10 }

/** The names that come until the source waits or ends. */
function namesOf(steps: ReturnType<HistorySource['remembered']>, source: HistorySource): string[] {
  const names: string[] = []
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return [...names, 'end']
    if (value !== undefined) names.push(value.series.name)
    else if (source.waiting !== undefined) return names
  }
}

describe('portions', () => {
  it('are asked for while the one before is worked on, and no more than one ahead', async () => {
    const portions = new Portions()
    const steps = portions.source.remembered(range)
    expect([namesOf(steps, portions.source), portions.asked]).toEqual([[], 1])
    await portions.give([series('a'), series('b')])
    expect(portions.source.waiting).toBeUndefined()
    expect([steps.next().value?.series.name, portions.asked]).toEqual(['a', 2])
    expect([namesOf(steps, portions.source), portions.asked]).toEqual([['b'], 2])
    await portions.give([])
    expect([namesOf(steps, portions.source), portions.asked]).toEqual([[], 3])
    await portions.give(undefined)
    expect(namesOf(steps, portions.source)).toEqual(['end'])
    expect(portions.ended).toBe(1)
  })

  it('that fail end it with their error', async () => {
    const portions = new Portions()
    const steps = portions.source.remembered(range)
    namesOf(steps, portions.source)
    await portions.give(new Error('the history is gone'))
    expect(() => steps.next()).toThrow('the history is gone')
    expect(portions.ended).toBe(1)
  })
})

it('ends the query in the history when its own steps are ended', async () => {
  const portions = new Portions()
  const steps = portions.source.remembered(range)
  namesOf(steps, portions.source)
  await portions.give([series('a'), series('b')])
  steps.next()
  steps.return()
  await portions.give([])
  expect(portions.ended).toBe(1)
})

it.each([
  [-5, 10, { fromMs: 0, toMs: 10 }],
  [0, Number.MAX_SAFE_INTEGER, { fromMs: 0, toMs: 8.64e15 }],
  [5, 4, undefined],
  [-10, -5, undefined],
])('of %d to %d it asks for what can be stored', (fromMs, toMs, asked) => {
  const portions = new Portions()
  portions.source.remembered({ matchers: [], fromMs, toMs }).next()
  expect(portions.selections).toEqual(asked === undefined ? [] : [{ matchers: [], ...asked }])
})

it('gives series as the language has them, with the name as a label', async () => {
  const portions = new Portions()
  const steps = portions.source.select([new LabelMatcher('__name__', '=', 'a')], 0, 10)
  steps.next()
  expect(portions.selections[0]?.matchers).toEqual([{ label: '__name__', operator: '=', text: 'a' }])
  await portions.give([series('a')])
  expect(steps.next().value).toEqual({
    labels: [
      ['__name__', 'a'],
      ['host', 'h'],
    ],
    times: Float64Array.of(1),
    values: Float64Array.of(2),
  })
})
