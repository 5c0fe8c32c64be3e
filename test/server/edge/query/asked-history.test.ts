/** What one reader may ask of the history: what may not be read never comes, and rights are judged in steps. */
import { expect, it } from 'vitest'
import { ReadersHistory } from '../../../../server/edge/query/asked-history.ts'
import type { Steps } from '../../../../server/kernel/core/fair-work.ts'
import type { RememberedHistory, RememberedSeries } from '../../../../server/kit/history.ts'

const reader = { userId: 1, tenant: 'north', name: 'ann', role: 'consumer' }
const selection = { matchers: [], fromMs: 0, toMs: 10 }

function series(name: string, isReadable: boolean): RememberedSeries {
  const columns = { times: Float64Array.of(1), values: Float64Array.of(2) }
  return { series: { name, labels: [] }, ...columns, mayRead: () => isReadable }
}

function historyOf(...portions: readonly (readonly RememberedSeries[])[]): RememberedHistory {
  return {
    async *select(who: unknown) {
      expect(who).toBe(reader)
      yield* portions
    },
  } as Pick<RememberedHistory, 'select'> as RememberedHistory
}

it('leaves out what may not be read, and stops for a moment where that is much', async () => {
  const secrets = Array.from({ length: 64 }, () => series('secret', false))
  const steps: number[] = []
  const run = <T>(party: { readonly tenant: string }, work: Steps<T>): T => {
    expect(party.tenant).toBe('north')
    for (let count = 1; ; count++) {
      const { done, value } = work.next()
      if (done !== true) continue
      steps.push(count)
      return value
    }
  }
  const history = new ReadersHistory(historyOf([...secrets, series('a', true)], [series('b', true)]), reader, { run })
  const names: string[][] = []
  for await (const portion of history.select(selection)) {
    for (const one of portion) expect(one).not.toHaveProperty('mayRead')
    names.push(portion.map(({ series: { name } }) => name))
  }
  expect(names).toEqual([['a'], ['b']])
  expect(steps).toEqual([3, 1])
})
