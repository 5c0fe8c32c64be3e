/** Section 9.10: `producer.recent`. */
import { afterEach, beforeEach, expect, it } from 'vitest'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { done, newToken, tokenSeat } from '../../support/administration.ts'
import { args, str, type, u32 } from '../../support/bytes.ts'
import { EPOCH, TestProducer } from '../../support/producer.ts'
import { decoded } from '../../support/records.ts'
import type { Seat } from '../../support/seat.ts'

const SECOND = 1_000_000

let producer: TestProducer
let seat: Seat
beforeEach(async () => {
  producer = await TestProducer.start()
  seat = await producer.seat()
})
afterEach(() => producer.stop())

interface Recent {
  readonly name: string
  readonly host: string
  readonly times: readonly string[]
  readonly values: readonly number[]
  readonly more?: boolean
  readonly after?: string
}

async function recent(given: Record<string, string | number>, of: Seat = seat): Promise<Recent[]> {
  const list = Object.entries(given).map(([name, value]) =>
    typeof value === 'string' ? ([name, type.string, str(value)] as const) : ([name, type.uint32, u32(value)] as const),
  )
  return decoded(await of.query('producer.recent', args(...list)))
}

function push(name: string, host: string, seconds: readonly number[]): void {
  for (const second of seconds) {
    producer.push.push(name, { type: BasicType.UINT32, value: second }, EPOCH + second * SECOND, host)
  }
}

it('has a REC for each series: its labels, and times and values that belong together', async () => {
  push('test.a', 'h1', [0, 1, 2])
  push('test.a', 'h2', [5])
  push('test.b', 'h1', [6])
  const all = await recent({ metric: 'test.*' })
  expect(all.map(({ name, host, values }) => [name, host, values])).toEqual([
    ['test.a', 'h1', [0, 1, 2]],
    ['test.a', 'h2', [5]],
    ['test.b', 'h1', [6]],
  ])
  expect(Object.keys(all[0] as Recent)).toEqual(['name', 'host', 'times', 'values'])
  expect(all[0]?.times.map(Number)).toEqual([0, 1, 2].map((second) => EPOCH + second * SECOND))
  expect((await recent({ metric: 'test.a', host: 'h2' })).map(({ host }) => host)).toEqual(['h2'])
})

it('`last_ms` leaves out what is older', async () => {
  producer.clock.advance(10_000)
  push('test.a', 'h1', [1, 5, 9])
  expect(await recent({ metric: 'test.a', last_ms: 5_000 })).toMatchObject([{ values: [5, 9] }])
  expect(await recent({ metric: 'test.a', last_ms: 500 })).toEqual([])
})

it('a sample of the future hides no other', async () => {
  push('test.a', 'h1', [0, 1, 2, 3_600])
  producer.clock.advance(2_000)
  expect(await recent({ metric: 'test.a' })).toMatchObject([{ values: [0, 1, 2, 3_600] }])
  push('test.a', 'h1', [3, 4])
  expect(await recent({ metric: 'test.a', last_ms: 1_000 })).toMatchObject([{ values: [1, 2, 3_600, 3, 4] }])
})

it('what does not fit is asked for with `after`, and comes once', async () => {
  const seconds = Array.from({ length: 800 }, (_, second) => second)
  for (let n = 0; n < 200; n++) push('test.a', `h${n}`, seconds)
  const hosts: string[] = []
  let after = '0'
  for (let pages = 0; ; pages++) {
    const page = await recent({ metric: 'test.*', after })
    const last = page.at(-1) as Recent
    if (last.more !== true) {
      hosts.push(...page.map(({ host }) => host))
      expect(pages).toBeGreaterThan(0)
      break
    }
    expect(Object.keys(last)).toEqual(['more', 'after'])
    hosts.push(...page.slice(0, -1).map(({ host }) => host))
    after = last.after as string
  }
  expect(hosts).toEqual(Array.from({ length: 200 }, (_, n) => `h${n}`))
})

it('shows what a QUERY of the metric would, and to others an empty ARRAY', async () => {
  push('test.a', 'h1', [1])
  push('test.b', 'h1', [1])
  await producer.addUser('root', { role: 'admin' })
  const root = await producer.seat('root')
  await done(root, 'role.deny', { role: 'operator', command: 'COLLECT', object: 'test.b' })
  await producer.addUser('limited', { role: 'operator' })
  const limited = await producer.seat('limited')
  expect((await recent({ metric: 'test.*' }, limited)).map(({ name }) => name)).toEqual(['test.a'])
  expect((await recent({ metric: 'test.*' }, root)).map(({ name }) => name)).toEqual(['test.a', 'test.b'])
  const abroad = await producer.seat('abroad', 'north')
  for (const metric of ['test.*', 'test.a', '*']) expect(await recent({ metric }, abroad)).toEqual([])
})

it('a name of nothing is an empty ARRAY; without `metric`, or with a wrong `after`, it is refused', async () => {
  expect(await recent({ metric: 'nothing.here' })).toEqual([])
  expect(await recent({ metric: 'host.load.one' })).toEqual([])
  for (const wrong of [{}, { metric: '' }, { metric: 'test.a', after: 'x' }, { metric: 'test.a', after: '-1' }]) {
    await expect(recent(wrong)).rejects.toThrow()
  }
  const stars = '*'.repeat(9)
  for (const wrong of [{ metric: stars }, { metric: 'test.a', host: stars }]) {
    await expect(recent(wrong)).rejects.toThrow()
  }
})

it('shows a token what its scope covers', async () => {
  for (const name of ['test.a', 'test.b']) push(name, 'h1', [1])
  await producer.addUser('root', { role: 'admin' })
  await producer.addUser('ann', { role: 'operator' })
  const { token, hash } = newToken()
  const scope = 'COLLECT producer.recent;COLLECT test.a'
  await done(await producer.seat('root'), 'token.add', { user: 'ann', hash, scope })
  const ann = await tokenSeat(producer, token)
  expect((await recent({ metric: '*' }, ann)).map(({ name }) => name)).toEqual(['test.a'])
  expect(await recent({ metric: 'test.b' }, ann)).toEqual([])
})

it('is empty after a restart', async () => {
  push('test.a', 'h1', [1])
  producer = await producer.crash()
  seat = await producer.seat()
  expect(await recent({ metric: 'test.a' })).toEqual([])
})
