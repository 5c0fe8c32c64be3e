/** The thread of queries as the server has it: when it begins and ends, and what becomes of answers where one of the two fails. */
import { buffer } from 'node:stream/consumers'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { AskedHistory, ReadableSeries } from '../../../../../server/edge/query/asked-history.ts'
import { QueryThread } from '../../../../../server/edge/query/thread/query-thread.ts'
import { StatusError } from '../../../../../server/kernel/core/errors.ts'
import { eventually } from '../../../../support/eventually.ts'
import { FakeClock } from '../../../../support/fake-clock.ts'

let clock: FakeClock
let thread: QueryThread
beforeEach(() => {
  clock = new FakeClock()
  thread = new QueryThread(clock)
})
afterEach(() => thread.close())

const nothing: AskedHistory = { elsewhere: undefined, async *select() {}, losses: async () => [] }
const selecting = (select: AskedHistory['select']): AskedHistory => ({ ...nothing, select })

const series = (name: string, ...values: number[]): ReadableSeries => ({
  series: { name, labels: [['host', 'h']] },
  times: Float64Array.from(values, (_, at) => at * 1_000),
  values: Float64Array.from(values),
})

interface Options {
  readonly history?: AskedHistory
  readonly ended?: AbortSignal
  readonly memory?: { readonly refused: AbortSignal; took(bytes: number): void }
  readonly timeoutMs?: number
}

function ask(
  url: string,
  { history = nothing, ended = new AbortController().signal, memory, timeoutMs }: Options = {},
) {
  const [, name = ''] = /\/([a-z_]+)\?/.exec(url) ?? []
  const asked = { name: name as 'query', url, form: '', label: undefined, body: undefined }
  const bounds = { nowMs: 9_000, maxSamples: 1_000_000, timeoutMs: timeoutMs ?? 60_000, waitedMs: 0 }
  return thread.answer({ asked, tenant: 'north', ...bounds }, { history, ended, memory })
}

async function dataOf(url: string, options?: Options): Promise<unknown> {
  const { pieces } = await ask(url, options)
  return (JSON.parse(String(await buffer(pieces))) as { data: unknown }).data
}

describe('an answer', () => {
  it('is made of what the history gives', async () => {
    const history = selecting(async function* () {
      yield [series('a', 1, 2)]
      yield []
      yield [series('b', 3)]
    })
    expect(await dataOf('/query?query=sum({host="h"})', { history })).toEqual({
      resultType: 'vector',
      result: [{ metric: {}, value: [9, '5'] }],
    })
  })

  it('comes whole, however long it is', async () => {
    const { result } = (await dataOf('/query_range?query=vector(1)&start=0&end=11000&step=1')) as {
      result: { values: unknown[] }[]
    }
    expect(result[0]?.values).toHaveLength(11_001)
  })

  it.each([
    [new StatusError('INTERNAL', 'the history has failed'), { type: 'unavailable', message: 'the history has failed' }],
    [new Error('a fault'), { name: 'Error', message: 'a fault' }],
  ])('is what the history says is wrong: %s', async (error, expected) => {
    const history = selecting(async function* () {
      yield []
      throw error
    })
    await expect(ask('/query?query=a', { history })).rejects.toMatchObject(expected)
    expect(await dataOf('/query?query=1')).toMatchObject({ resultType: 'scalar' })
  })

  it('for which the history gives what cannot be sent is a fault, and costs no other', async () => {
    const history = selecting(async function* () {
      const one = series('a', 1)
      structuredClone(one.times, { transfer: [one.times.buffer as ArrayBuffer] })
      yield [
        { ...one, windows: { ends: one.times } as never },
        { ...series('b', 1), values: (() => {}) as never },
      ]
    })
    await expect(ask('/query?query=a', { history })).rejects.toMatchObject({ name: 'Error' })
    expect(await dataOf('/query?query=1')).toMatchObject({ resultType: 'scalar' })
  })

  it('that nobody wants any more ends what was asked of the history', async () => {
    const ending = new AbortController()
    let [begun, ended] = [0, 0]
    const history = selecting(async function* () {
      begun++
      try {
        for (;;) {
          await new Promise((resolve) => setImmediate(resolve))
          yield []
        }
      } finally {
        ended++
      }
    })
    const answer = ask('/query?query=a', { history, ended: ending.signal })
    answer.catch(() => {})
    await eventually(() => expect(begun).toBe(1))
    ending.abort()
    await expect(answer).rejects.toMatchObject({ type: 'canceled' })
    await eventually(() => expect(ended).toBe(1))
  })

  it('counts what it holds, and ends when that is refused', async () => {
    const refused = new AbortController()
    let bytes = 0
    const memory = {
      refused: refused.signal,
      took(more: number): void {
        bytes += more
        if (bytes > 2 ** 20) refused.abort()
      },
    }
    const history = selecting(async function* () {
      for (let n = 0; ; n++) yield [series(`a${n}`, 1, 2)]
    })
    const url = '/query_range?query={host="h"}&start=0&end=10000&step=1'
    await expect(ask(url, { history, memory })).rejects.toMatchObject({ name: 'QueryProblem', type: 'unavailable' })
    expect(bytes).toBeLessThan(8 * 2 ** 20)
  })
})

describe('the thread', () => {
  it('ends when it has had nothing to do for five minutes, and begins again', async () => {
    expect(await dataOf('/query?query=1')).toMatchObject({ resultType: 'scalar' })
    clock.advance(300_000)
    expect(await dataOf('/query?query=2')).toMatchObject({ result: [9, '2'] })
  })

  it('that is closed ends what it was about', async () => {
    const history = selecting(async function* () {
      await new Promise(() => {})
      yield []
    })
    const answer = ask('/query?query=a', { history })
    answer.catch(() => {})
    await thread.close()
    await expect(answer).rejects.toMatchObject({ type: 'unavailable' })
    await expect(ask('/query?query=1')).rejects.toMatchObject({ type: 'unavailable' })
  })

  it('that runs out of memory costs the queries of then, and the next one is answered', async () => {
    const history = selecting(async function* () {
      for (let n = 0; ; n++)
        yield [{ ...series(`a${n}`, 1), series: { name: `a${n}`, labels: [['x', 'y'.repeat(500_000)]] } }]
    })
    await expect(ask('/series?match[]={x!=""}', { history })).rejects.toMatchObject({
      message: 'queries need more memory than there is for them: ask for less',
    })
    expect(await dataOf('/query?query=2')).toMatchObject({ result: [9, '2'] })
  })
})
