/** Turns of queries: a tenant has few at once, all tenants together not too many, and a queue that is full refuses. */
import { beforeEach, expect, it } from 'vitest'
import { QueryTurns } from '../../../../server/edge/query/turns.ts'
import { FakeClock } from '../../../support/fake-clock.ts'

let clock: FakeClock
let turns: QueryTurns
beforeEach(() => {
  clock = new FakeClock()
  turns = new QueryTurns(2, clock)
})

interface Query {
  begun: boolean
  end: () => void
  readonly ended: AbortController
  readonly taken: Promise<boolean>
}

/** A query that takes until it is ended. */
function query(tenant: string): Query {
  const ended = new AbortController()
  const state = { begun: false, end: () => {}, ended }
  const taken = turns.take(tenant, ended.signal, () => {
    state.begun = true
    return new Promise((resolve) => {
      state.end = resolve
    })
  })
  return Object.assign(state, { taken })
}
const settled = () => new Promise((resolve) => setImmediate(resolve))
const begun = (queries: readonly Query[]) => queries.filter((one) => one.begun).length

it('a tenant has so many at once, 64 more wait, and the next is refused', async () => {
  const all = Array.from({ length: 66 }, () => query('a'))
  await settled()
  expect(begun(all)).toBe(2)
  expect(await query('a').taken).toBe(false)
  // Others do not notice.
  const other = query('b')
  await settled()
  expect(other.begun).toBe(true)
  all[0]?.end()
  await settled()
  expect([begun(all), await all[0]?.taken]).toEqual([3, true])
})

it('one that has waited for 30 s gets none', async () => {
  const [first, second, late] = [query('a'), query('a'), query('a')]
  await settled()
  clock.advance(29_999)
  second.end()
  first.end()
  await settled()
  expect(late.begun).toBe(true)
  const others = [query('a'), query('a')]
  await settled()
  clock.advance(30_000)
  expect([others[0]?.begun, await others[1]?.taken]).toEqual([true, false])
})

it('all tenants together have 16, and the others wait for 10 s', async () => {
  const all = Array.from({ length: 16 }, (_, index) => query(`t${index >> 1}`))
  await settled()
  expect(begun(all)).toBe(16)
  const [next, late] = [query('x'), query('y')]
  await settled()
  expect([next.begun, late.begun]).toEqual([false, false])
  all[0]?.end()
  await settled()
  expect([next.begun, late.begun]).toEqual([true, false])
  clock.advance(10_000)
  expect(await late.taken).toBe(false)
})

it('whoever has gone while waiting gets none, and the next does', async () => {
  const [first, , gone, next] = [query('a'), query('a'), query('a'), query('a')]
  await settled()
  gone.ended.abort()
  expect(await gone.taken).toBe(false)
  first.end()
  await settled()
  expect([gone.begun, next.begun]).toEqual([false, true])
})
