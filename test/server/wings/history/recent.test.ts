/** `producer.recent` of a server with a history: what that records comes from there, and everything else from memory. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { defaultConfig } from '../../../../server/start/config.ts'
import type { SourcesConfig } from '../../../../server/start/wings.ts'
import type { HistorySection } from '../../../../server/wings/history/config.ts'
import { done } from '../../../support/administration.ts'
import { args, str, type, u32 } from '../../../support/bytes.ts'
import { eventually } from '../../../support/eventually.ts'
import { EPOCH, TestProducer } from '../../../support/producer.ts'
import { decoded } from '../../../support/records.ts'
import type { Seat } from '../../../support/seat.ts'

const EVER_MS = 36_500 * 86_400_000
const ON: HistorySection = {
  ...defaultConfig().history,
  keepMs: EVER_MS,
  keepRollupsMs: EVER_MS,
  metrics: ['test.kept*'],
}

interface Recent {
  readonly name: string
  readonly host: string
  readonly times: readonly string[]
  readonly values: readonly number[]
  readonly more?: boolean
  readonly after?: string
}

let producer: TestProducer
let seat: Seat
beforeEach(async () => {
  producer = await TestProducer.start({ config: { history: ON } })
  seat = await producer.seat()
  // The channel of the history binds what is wanted before values come.
  await recorded('test.kept', 'probe', [0])
})
afterEach(() => producer.stop())

async function page(given: Record<string, string | number>, of: Seat = seat): Promise<Recent[]> {
  const list = Object.entries(given).map(([name, value]) =>
    typeof value === 'string' ? ([name, type.string, str(value)] as const) : ([name, type.uint32, u32(value)] as const),
  )
  return decoded(await of.query('producer.recent', args(...list)))
}

/** All pages. */
async function recent(given: Record<string, string | number>, of: Seat = seat): Promise<Recent[]> {
  const all: Recent[] = []
  let asked = given
  for (;;) {
    const records = await page(asked, of)
    const last = records.at(-1)
    if (last?.more !== true) return [...all, ...records]
    all.push(...records.slice(0, -1))
    asked = { ...given, after: last.after as string }
  }
}

function push(name: string, host: string, seconds: readonly number[]): void {
  for (const second of seconds) {
    producer.push.push(name, { type: BasicType.UINT32, value: second }, EPOCH + second * 1_000_000, host)
  }
}

async function recorded(name: string, host: string, seconds: readonly number[]): Promise<void> {
  push(name, host, seconds)
  await eventually(async () => {
    producer.clock.advance(1_000)
    await producer.settle()
    const [found] = await recent({ metric: name, host })
    expect(found?.values).toEqual(seconds)
  })
}

function reload(history: HistorySection): void {
  const config = { ...defaultConfig(), history } as unknown as SourcesConfig
  for (const source of producer.server.parts.sources) source.reload?.(config)
}

const shown = (records: readonly Recent[]) => records.map(({ name, host, values }) => [name, host, values])

it('has a REC for each series, as from memory, also after a restart', async () => {
  await recorded('test.kept', 'h1', [1, 2, 3])
  const before = await recent({ metric: 'test.kept', host: 'h1' })
  expect(Object.keys(before[0] as Recent)).toEqual(['name', 'host', 'times', 'values'])
  expect(before[0]?.times.map(Number)).toEqual([1, 2, 3].map((second) => EPOCH + second * 1_000_000))
  producer = await producer.restart()
  seat = await producer.seat()
  expect(await recent({ metric: 'test.kept', host: 'h1' })).toEqual(before)
})

it('a pattern has what is in memory and then what is recorded, each once', async () => {
  push('test.other', 'h1', [1, 2])
  await recorded('test.kept', 'h1', [1, 2])
  const all = [
    ['test.other', 'h1', [1, 2]],
    ['test.kept', 'h1', [1, 2]],
  ]
  expect(shown(await recent({ metric: 'test.*', host: 'h1' }))).toEqual(all)
  expect((await page({ metric: 'test.*', host: 'h1' })).map(({ name, after }) => name ?? after)).toEqual([
    'test.other',
    'h0.0',
  ])
  expect(shown(await recent({ metric: 'test.other', host: 'h*' }))).toEqual([all[0]])
})

it('`last_ms` leaves out what is older', async () => {
  producer.clock.advance(200_000)
  const nowS = Math.floor((producer.clock.microseconds() - EPOCH) / 1_000_000)
  await recorded('test.kept', 'h1', [nowS - 100, nowS])
  expect((await recent({ metric: 'test.kept', host: 'h1', last_ms: 80_000 }))[0]?.values).toEqual([nowS])
})

it('a list that does not fit goes on after a place', async () => {
  producer.clock.advance(3_000_000)
  const hosts = Array.from({ length: 30 }, (_, n) => `h${n}`)
  for (const host of hosts)
    push(
      'test.kept_many',
      host,
      Array.from({ length: 3_000 }, (_, second) => second),
    )
  await eventually(async () => {
    producer.clock.advance(1_000)
    await producer.settle()
    const found = await recent({ metric: 'test.kept_many' })
    expect(found.map(({ host, values }) => [host, values.length])).toEqual(hosts.map((host) => [host, 3_000]))
  })
  const given = { metric: 'test.kept*', host: 'h*' }
  const some = await page(given)
  const { more, after = '' } = some.at(-1) as Recent
  expect(more).toBe(true)
  // What begins meanwhile, before the place or after it, shifts nothing.
  await recorded('test.kept', 'h', [3_000])
  const others = await recent({ ...given, after })
  expect([...some.slice(0, -1), ...others].map(({ host }) => host)).toEqual(hosts)
})

describe('rights', () => {
  it('are those of each metric, and of each tenant', async () => {
    await recorded('test.kept_b', 'h1', [1])
    await producer.addUser('root', { role: 'admin' })
    const root = await producer.seat('root')
    await done(root, 'role.deny', { role: 'operator', command: 'COLLECT', object: 'test.kept_b' })
    await producer.addUser('limited', { role: 'operator' })
    const limited = await producer.seat('limited')
    expect(shown(await recent({ metric: 'test.*' }, limited))).toEqual([['test.kept', 'probe', [0]]])
    const abroad = await producer.seat('abroad', 'north')
    for (const metric of ['test.*', 'test.kept', '*']) expect(await recent({ metric }, abroad)).toEqual([])
  })
})

it('is kept in memory again while the history is off', async () => {
  reload({ ...ON, keepMs: 0 })
  await producer.settle()
  push('test.kept', 'h2', [7])
  push('test.kept', 'probe', [8])
  await producer.settle()
  expect(shown(await recent({ metric: 'test.kept' }))).toEqual([
    ['test.kept', 'h2', [7]],
    ['test.kept', 'probe', [8]],
  ])
})

it('what makes no sense is refused', async () => {
  for (const wrong of [{}, { metric: 'test.kept', after: 'h' }, { metric: 'test.kept', after: 'x1' }]) {
    await expect(page(wrong)).rejects.toThrow()
  }
  await expect(page({ after: 'h0.3' })).rejects.toThrow()
})
