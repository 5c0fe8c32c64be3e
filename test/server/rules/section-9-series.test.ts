/** Section 9.11: `producer.series`. */
import { afterEach, beforeEach, expect, it } from 'vitest'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { done, newToken, tokenSeat } from '../../support/administration.ts'
import { args, str, type, u32 } from '../../support/bytes.ts'
import { EPOCH, TestProducer } from '../../support/producer.ts'
import { decoded } from '../../support/records.ts'
import type { Seat } from '../../support/seat.ts'
import { OpenSensor } from '../../support/test-sensor.ts'

let producer: TestProducer
let seat: Seat
beforeEach(async () => {
  producer = await TestProducer.start()
  seat = await producer.seat()
})
afterEach(() => producer.stop())

interface Shown {
  readonly name: string
  readonly host: string
  readonly time: string
  readonly more?: boolean
  readonly after?: string
}

async function series(given: Record<string, string | number>, of: Seat = seat): Promise<Shown[]> {
  const list = Object.entries(given).map(([name, value]) =>
    typeof value === 'string' ? ([name, type.string, str(value)] as const) : ([name, type.uint32, u32(value)] as const),
  )
  return decoded(await of.query('producer.series', args(...list)))
}

const push = (name: string, host: string, time = 1): void =>
  producer.push.push(name, { type: BasicType.UINT32, value: 1 }, EPOCH + time, host)

const namesOf = (shown: readonly Shown[]): string[] => shown.map(({ name, host }) => `${name} ${host}`)

it('has a REC for each series, ascending by name and host, with the time of its last value', async () => {
  for (const [name, host] of [
    ['test.b', 'h1'],
    ['test.a', 'h2'],
    ['test.a', 'h1'],
    ['test.a', 'h10'],
  ] as const)
    push(name, host)
  push('test.b', 'h1', 77)
  const shown = await series({ match: 'test.*' })
  expect(namesOf(shown)).toEqual(['test.a h1', 'test.a h10', 'test.a h2', 'test.b h1'])
  expect(Object.keys(shown[0] as Shown)).toEqual(['name', 'host', 'time'])
  expect(Number(shown[3]?.time)).toBe(EPOCH + 77)
  expect(namesOf(await series({ host: 'h1*', match: 'test.*' }))).toEqual(['test.a h1', 'test.a h10', 'test.b h1'])
  expect(await series({ match: 'test.c' })).toEqual([])
})

it('`with` leaves out series without a label', async () => {
  push('test.a', 'h1')
  push('test.a', '')
  const open = new OpenSensor(producer.server.parts.hub)
  open.push('open.a', { host: 'h2' }, { type: BasicType.UINT32, value: 1 }, EPOCH)
  open.push('open.a', { job: 'h2' }, { type: BasicType.UINT32, value: 1 }, EPOCH)
  const withHost = await series({ with: 'host' })
  expect(namesOf(withHost)).toEqual(expect.arrayContaining(['open.a h2', 'test.a h1', 'host.load.one n1']))
  expect(withHost.filter(({ host }) => (host ?? '') === '')).toEqual([])
  expect(namesOf(await series({ with: 'host', host: 'h*' }))).toEqual(['open.a h2', 'test.a h1'])
  expect((await series({ with: 'job' })).map(({ name }) => name)).toEqual(['open.a'])
  expect(await series({ with: 'nothing' })).toEqual([])
})

it('has what is measured on request once, and no lists', async () => {
  const names = (await series({})).map(({ name }) => name)
  expect(names).toContain('host.load.one')
  expect(names).toContain('producer.stats')
  expect(names).not.toContain('producer.metrics')
  expect(new Set(names).size).toBe(names.length)
})

it.each([
  ['`limit`', 700],
  ['the size of a frame', undefined],
])('what is beyond %s is asked for with `after`, and comes once, also if others come and go', async (_, limit) => {
  const all: string[] = []
  for (let n = 0; n < 3_000; n++) {
    const host = `a-host-with-a-name-of-some-length-so-that-fewer-fit-${'x'.repeat(150)}-${String(n).padStart(5, '0')}`
    for (const name of ['test.a', 'test.b']) {
      push(name, host)
      all.push(`${name} ${host}`)
    }
  }
  const found: string[] = []
  for (let page: Shown[], after = '', pages = 0; ; ) {
    page = await series({ match: 'test.*', after, ...(limit !== undefined && { limit }) })
    const last = page.at(-1) as Shown
    found.push(...namesOf(last.more === true ? page.slice(0, -1) : page))
    if (last.more !== true) break
    if (limit !== undefined) expect(page).toHaveLength(limit + 1)
    expect(Object.keys(last)).toEqual(['more', 'after'])
    after = last.after as string
    push('test.a', 'a-host-that-comes-before')
    expect(pages++).toBeLessThan(20)
  }
  expect(found).toEqual(all.sort())
})

it('shows what a QUERY of the metric would', async () => {
  push('test.a', 'h1')
  push('test.b', 'h1')
  await producer.addUser('root', { role: 'admin' })
  const root = await producer.seat('root')
  await done(root, 'role.deny', { role: 'operator', command: 'COLLECT', object: 'test.*', where: 'host=h1' })
  await producer.addUser('limited', { role: 'operator' })
  push('test.a', 'h2')
  expect(namesOf(await series({ match: 'test.*' }, await producer.seat('limited')))).toEqual(['test.a h2'])
  expect(await series({ match: 'test.*' }, await producer.seat('abroad', 'north'))).toEqual([])
  expect(namesOf(await series({ match: 'test.*' }))).toHaveLength(3)
})

it('refuses an `after` that it has not given', async () => {
  for (const after of ['x', '[]', '["a"]', '[1,2]', '["a","b"]', '{"0":"a"}'])
    await expect(series({ after })).rejects.toThrow()
  await expect(series({ host: '*'.repeat(9) })).rejects.toThrow()
})

it('refuses a `limit` of 0, which would lead nowhere', async () => {
  await expect(series({ limit: 0 })).rejects.toThrow()
})

it('shows a token what its scope covers', async () => {
  for (const name of ['test.a', 'test.b']) push(name, 'h1')
  await producer.addUser('root', { role: 'admin' })
  await producer.addUser('ann', { role: 'operator' })
  const { token, hash } = newToken()
  await done(await producer.seat('root'), 'token.add', {
    user: 'ann',
    hash,
    scope: 'COLLECT producer.series;COLLECT test.a',
  })
  const shown = await series({}, await tokenSeat(producer, token))
  expect(shown.map(({ name }) => name)).toEqual(['test.a'])
})

it('shows what is measured on request if some arguments make it readable', async () => {
  await producer.addUser('root', { role: 'admin' })
  const root = await producer.seat('root')
  await done(root, 'role.deny', { role: 'operator', command: 'COLLECT', object: 'slow.value' })
  await done(root, 'role.allow', {
    role: 'operator',
    command: 'COLLECT',
    object: 'slow.value',
    where: 'which=1',
  })
  await producer.addUser('limited', { role: 'operator' })
  const shown = await series({ match: 'slow.*' }, await producer.seat('limited'))
  expect(shown.map(({ name }) => name)).toEqual(['slow.value'])
})

it('an `after` whose labels are all quotes has the room that is kept for it', async () => {
  for (const first of 'ab') push('test.a', first + '"'.repeat(254))
  const [, last] = await series({ match: 'test.a', limit: 1 })
  expect(last?.after?.length).toBeLessThan(8192 / 11)
  const rest = await series({ match: 'test.a', after: last?.after as string })
  expect(rest.map(({ host }) => host[0])).toEqual(['b'])
})
