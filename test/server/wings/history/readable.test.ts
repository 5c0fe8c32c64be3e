/** Ranges of loss that somebody may know of: those of the tenant and of the server, of series that match and may be read. */
import { expect, it } from 'vitest'
import type { HistorySelection } from '../../../../server/wings/history/messages.ts'
import { ReadableHistory, type ReadableServices } from '../../../../server/wings/history/readable.ts'
import type { HistorySamples } from '../../../../storage/history/store.ts'

const NONE = new Float64Array(0)
const ANN = { userId: 1, tenant: 'north', role: 'user' } as never

function seriesOf(native: string): HistorySamples {
  return { series: { native, name: native.replace('.', '_'), labels: [] }, times: NONE, values: NONE } as never
}

/** What there is of each tenant. `asked`: what was. */
function historyOf(asked: HistorySelection[], more: Partial<ReadableServices> = {}): ReadableHistory {
  const natives: Readonly<Record<string, readonly string[]>> = { '': ['host.up'], north: ['test.a', 'test.secret'] }
  const services: ReadableServices = {
    reading: {
      async *select(selection) {
        asked.push(selection)
        yield (natives[selection.tenant] ?? []).map(seriesOf)
      },
      current: async () => undefined,
      async *families() {},
      losses: async () =>
        ['', 'test.*', 'test.secret', 'other.a'].map((native, at) => ({
          native,
          fromMs: at,
          toMs: at + 1,
          count: 5,
          reason: 'overflow',
        })),
    },
    readRights: () => ({ mayReadRemembered: (_: unknown, native: string) => native !== 'test.secret' }) as never,
    problem: () => undefined,
    caughtUp: async () => {},
    backUp: async () => undefined,
    ...more,
  }
  return new ReadableHistory(services)
}

it('are those of metrics that a series has which may be read, and those of unknown metrics', async () => {
  const asked: HistorySelection[] = []
  const matchers = [{ label: '__name__', operator: '=', text: 'test_a' }] as const
  const losses = await historyOf(asked).losses(ANN, { matchers, fromMs: 0, toMs: 9 })
  expect(losses).toEqual([
    { tenant: '', metric: '', fromMs: 0, toMs: 1, count: 5, reason: 'overflow' },
    { tenant: 'north', metric: '', fromMs: 0, toMs: 1, count: 5, reason: 'overflow' },
    { tenant: 'north', metric: 'test.*', fromMs: 1, toMs: 2, count: 5, reason: 'overflow' },
  ])
  expect(asked.map(({ tenant, isWithoutSamples }) => [tenant, isWithoutSamples])).toEqual([
    ['', true],
    ['north', true],
  ])
  for (const { matchers: given } of asked) expect(given).toEqual(matchers)
})

it('what is there of a selection is what may be read of it, of the server and of the tenant, each once', async () => {
  const natives: Readonly<Record<string, readonly string[]>> = {
    '': ['host.up', 'server.secret'],
    north: ['test.a', 'host.up', 'test.secret'],
  }
  let isThere = true
  const reading = {
    current: async ({ tenant }: HistorySelection) => ({
      has: () => isThere,
      read: () => (natives[tenant] ?? []).map(seriesOf).values(),
    }),
  }
  const mayReadRemembered = (_: unknown, native: string): boolean => !native.endsWith('secret')
  const rights = { mayReadRemembered, mayReadAll: () => false, maySee: () => true }
  const namesFor = async (of: Partial<typeof rights>): Promise<string[]> => {
    const more = { reading: reading as never, readRights: () => ({ ...rights, ...of }) as never }
    const current = await historyOf([], more).current(ANN, { matchers: [], fromMs: 0, toMs: 9 })
    return Array.from(current?.series() ?? []).flatMap((one) => one?.series.name ?? [])
  }
  expect(await namesFor({})).toEqual(['host_up', 'test_a'])
  expect(await namesFor({ mayReadAll: () => true })).toEqual(['host_up', 'server_secret', 'test_a', 'test_secret'])
  expect(await namesFor({ mayReadAll: () => true, maySee: () => false })).toEqual(['host_up', 'test_a'])
  isThere = false
  const current = await historyOf([], { reading: reading as never }).current(ANN, { matchers: [], fromMs: 0, toMs: 9 })
  expect(current?.series()).toBeUndefined()
})

it('what is there of a selection is judged in steps', async () => {
  let judged = 0
  const reading = {
    current: async () => ({ has: () => true, read: () => new Array(500).fill(seriesOf('a')).values() }),
  }
  const mayReadRemembered = (): boolean => ++judged < 0
  const rights = { mayReadRemembered, mayReadAll: () => false, maySee: () => true }
  const more = { reading: reading as never, readRights: () => rights as never }
  const current = await historyOf([], more).current(ANN, { matchers: [], fromMs: 0, toMs: 9 })
  const ends = Array.from(current?.series() ?? [], () => judged)
  const steps = [...ends, judged].map((end, at) => end - (ends[at - 1] ?? 0))
  expect(judged).toBe(1_000)
  expect(Math.max(...steps)).toBeLessThan(100)
})

it('what is there of a selection is unknown as long as it is of one of the two', async () => {
  const reading = { current: async ({ tenant }: HistorySelection) => (tenant === '' ? undefined : { read: () => [] }) }
  const history = historyOf([], { reading: reading as never })
  expect(await history.current(ANN, { matchers: [], fromMs: 0, toMs: 9 })).toBeUndefined()
})

it('a history that has failed is unreadable also if an engine answers what is asked', () => {
  const failed = { problem: () => 'the history has failed' }
  const { problem, unreadable } = historyOf([], { ...failed, engine: {} as never })
  expect([problem, unreadable]).toEqual([undefined, 'the history has failed'])
  expect(historyOf([], failed)).toMatchObject({ problem: 'the history has failed' })
})
