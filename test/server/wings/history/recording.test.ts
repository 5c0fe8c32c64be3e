/** The history of a server: which values come into it, who has one, and what becomes of it when something is wrong. */
import { cpSync, existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { defaultConfig } from '../../../../server/start/config.ts'
import type { SourcesConfig } from '../../../../server/start/wings.ts'
import type { HistorySection } from '../../../../server/wings/history/config.ts'
import { History } from '../../../../storage/history/history.ts'
import type { HistoryLoss } from '../../../../storage/history/store.ts'
import { done, run } from '../../../support/administration.ts'
import { eventually } from '../../../support/eventually.ts'
import { EPOCH, TestProducer, type TestProducerOptions } from '../../../support/producer.ts'
import { decoded } from '../../../support/records.ts'
import type { Seat } from '../../../support/seat.ts'
import { PushSensor } from '../../../support/test-sensor.ts'

let producer: TestProducer
let north: PushSensor | undefined
afterEach(async () => {
  await producer?.stop()
})

const EVER_MS = 36_500 * 86_400_000
const ON: HistorySection = {
  ...defaultConfig().history,
  keepMs: EVER_MS,
  keepRollupsMs: EVER_MS,
  metrics: ['test.*'],
}
const OFF: HistorySection = { ...ON, keepMs: 0 }

async function start(history: HistorySection, more: TestProducerOptions = {}): Promise<Seat> {
  producer = await TestProducer.start({
    ...more,
    config: { ...more.config, history },
    sensors: (hub) => {
      north = new PushSensor(hub, 'test.', { tenant: 'north' })
    },
  })
  await producer.addUser('root', { role: 'admin' })
  return producer.seat('root')
}

function reload(history: HistorySection): void {
  const config = { ...defaultConfig(), history } as unknown as SourcesConfig
  for (const source of producer.server.parts.sources) source.reload?.(config)
}

function push(name: string, value: number, seconds: number, sensor: PushSensor | undefined = producer.push): void {
  sensor?.push(`test.${name}`, { type: BasicType.DOUBLE, value }, EPOCH + seconds * 1_000_000, 'h')
}

/** Time goes on until it holds; the thread has times of its own. */
async function until(holds: () => void | Promise<void>): Promise<void> {
  await eventually(async () => {
    producer.clock.advance(1_000)
    await producer.settle()
    await holds()
  })
}

const directory = (): string => join(producer.dataDir, 'history')

/** The channels of the history that are not committed up to their ends, by tenant. */
async function waiting(seat: Seat): Promise<Record<string, number>> {
  const channels = decoded(await seat.query('producer.channels')) as unknown as Record<string, never>[]
  const ours = channels.filter(({ name }) => name === 'history:')
  return Object.fromEntries(ours.map((one) => [one['identity'], Number(one['queued']) + Number(one['in_flight'])]))
}

/** Time goes on until everything that was accepted is stored. */
async function stored(seat: Seat, accepted: number): Promise<void> {
  await until(async () => {
    const channels = decoded(await seat.query('producer.channels')) as unknown as Record<string, never>[]
    const ours = channels.filter(({ name }) => name === 'history:')
    const sum = (field: string): number => ours.reduce((total, one) => total + Number(one[field]), 0)
    expect({ accepted: sum('accepted'), committed: sum('committed') }).toEqual({ accepted, committed: accepted })
  })
}

/** The files, after the thread has left them. */
async function opened(): Promise<History> {
  reload(OFF)
  const { keepMs, keepRollupsMs } = ON
  const limits = { keepMs, keepRollupsMs, maxBytes: 2 ** 40, quotas: new Map() }
  let history: History | undefined
  // It waits for the thread to end.
  await eventually(() => {
    history = History.open({ directory: directory(), limits, clock: Date.now })
  })
  return history as History
}

async function losses(): Promise<readonly HistoryLoss[]> {
  const history = await opened()
  const found = history.losses({ tenant: 'default', fromMs: 0, toMs: EVER_MS })
  history.close()
  return found
}

/** What stands in the files, as `name{labels} value seconds`. */
async function samples(tenant = 'default'): Promise<string[]> {
  const history = await opened()
  const found: string[] = []
  const matchers = [{ label: '__name__', operator: '=~', text: '.*' }] as const
  for (const one of history.select({ tenant, matchers, fromMs: 0, toMs: EVER_MS })) {
    if (one === undefined) continue
    const { name, labels } = one.series
    const texts = labels.map(([label, text]) => `${label}=${text}`).join(',')
    for (const [at, time] of one.times.entries())
      found.push(`${name}{${texts}} ${one.values[at]} ${(time * 1_000 - EPOCH) / 1_000_000}`)
  }
  history.close()
  return found
}

async function status(seat: Seat, tenant = 'default'): Promise<{ state: string; detail: string; counters: object }> {
  const sensors = decoded(await seat.query('producer.sensors')) as { name: string }[]
  return sensors.find(({ name }) => name === `history/${tenant}`) as never
}

it('values are stored once, and committed then; one of each second', async () => {
  const seat = await start(ON)
  for (const [value, seconds] of [1, 1.5, 2, 5, 3].entries()) push('a', value, seconds)
  await stored(seat, 4)
  expect(await status(seat)).toMatchObject({ state: 'recording' })
  expect(await samples()).toEqual([
    'test_a{host=h} 0 1',
    'test_a{host=h} 2 2',
    'test_a{host=h} 4 3',
    'test_a{host=h} 3 5',
  ])
})

it('who waits until everything is stored waits for no sweep, also for what was accepted just now', async () => {
  const seat = await start(ON)
  await until(async () => expect(await status(seat)).toMatchObject({ state: 'recording' }))
  const remembered = producer.server.parts.sources.find((source) => source.remembered !== undefined)?.remembered
  // The clock stands still.
  for (let second = 1; second <= 3; second++) {
    push('a', second, second)
    await remembered?.caughtUp('default')
    expect(await waiting(seat)).toEqual({ 'history:': 0 })
  }
})

it('without it there is no file and no channel; it is switched on and off while the server runs', async () => {
  const seat = await start(OFF)
  push('a', 1, 1)
  await until(() => {})
  expect(existsSync(directory())).toBe(false)
  expect(await waiting(seat)).toEqual({})
  reload(ON)
  await until(async () => expect(await status(seat)).toMatchObject({ state: 'recording' }))
  push('a', 2, 2)
  await stored(seat, 1)
  reload(OFF)
  await until(async () => expect(await status(seat)).toBeUndefined())
  push('a', 3, 3)
  reload(ON)
  await until(async () => expect(await status(seat)).toMatchObject({ state: 'recording' }))
  push('a', 4, 4)
  await stored(seat, 2)
  expect(await samples()).toEqual(['test_a{host=h} 2 2', 'test_a{host=h} 4 4'])
})

it('after a restart it goes on where it was', async () => {
  let seat = await start(ON)
  push('a', 1, 1)
  await stored(seat, 1)
  push('a', 2, 2)
  producer = await producer.restart()
  seat = await producer.seat('root')
  push('a', 3, 3)
  await until(async () => expect(await waiting(seat)).toEqual({ 'history:': 0 }))
  expect(await samples()).toEqual(['test_a{host=h} 1 1', 'test_a{host=h} 2 2', 'test_a{host=h} 3 3'])
})

it('whose files are replaced by older ones has a range of loss for what they lack', async () => {
  const seat = await start(ON)
  const closed = async (): Promise<void> => {
    reload(OFF)
    await until(() => expect(existsSync(join(directory(), 'fresh.db-wal'))).toBe(false))
  }
  push('a', 1, 1)
  await stored(seat, 1)
  await closed()
  const older = join(producer.dataDir, 'older')
  cpSync(directory(), older, { recursive: true })
  reload(ON)
  await until(async () => expect(await status(seat)).toMatchObject({ state: 'recording' }))
  push('a', 2, 2)
  push('a', 3, 3)
  await stored(seat, 3)
  await closed()
  rmSync(directory(), { recursive: true })
  cpSync(older, directory(), { recursive: true })
  reload(ON)
  await until(async () => expect(await status(seat)).toMatchObject({ state: 'recording' }))
  push('a', 4, 4)
  await stored(seat, 4)
  expect(await samples()).toEqual(['test_a{host=h} 1 1', 'test_a{host=h} 4 4'])
  expect(await losses()).toMatchObject([{ count: 2, reason: 'older files of the history' }])
})

it('each tenant has its own, and takes it along when it is removed', async () => {
  const seat = await start(ON)
  await producer.addUser('ann', { tenant: 'north' })
  await until(async () => expect(await status(seat, 'north')).toMatchObject({ state: 'recording' }))
  push('a', 1, 1)
  push('b', 2, 1, north)
  await stored(seat, 2)
  const ann = await producer.seat('ann', 'north')
  await until(async () => {
    const shown = decoded(await ann.query('producer.history')) as { tenant: string; samples: string }[]
    expect(shown.map(({ tenant, samples }) => `${tenant} ${samples}`)).toContain('north 1')
    expect(shown.map(({ tenant }) => tenant)).not.toContain('default')
  })
  await done(seat, 'user.remove', { user: 'ann', tenant: 'north' })
  await done(seat, 'tenant.remove', { tenant: 'north' })
  await until(async () => expect(await waiting(seat)).toEqual({ 'history:': 0 }))
  await producer.addUser('bob', { tenant: 'north' })
  await until(async () => expect(await status(seat, 'north')).toMatchObject({ state: 'recording' }))
  push('b', 3, 3, north)
  await stored(seat, 2)
  expect(await samples('north')).toEqual(['test_b{host=h} 3 3'])
})

it('nobody else can be the user that it has', async () => {
  const seat = await start(OFF)
  expect(await run(seat, 'user.list')).toMatchObject({ outcome: 'ok' })
  await expect(run(seat, 'user.add', { user: 'history:', password: 'a-long-password' })).rejects.toThrow('end with ":"')
})

it('files that cannot be opened stop it and nothing else, and it goes on by itself', async () => {
  const seat = await start(OFF)
  writeFileSync(directory(), 'in the way')
  reload(ON)
  await until(async () => expect(await status(seat)).toMatchObject({ state: 'failed' }))
  push('a', 1, 1)
  expect(await waiting(seat)).toEqual({ 'history:': 1 })
  rmSync(directory())
  await stored(seat, 1)
  await until(async () => expect(await status(seat)).toMatchObject({ state: 'recording', detail: '' }))
  expect(await samples()).toEqual(['test_a{host=h} 1 1'])
})

it('series over the quota of the tenant are counted, and the others recorded', async () => {
  const seat = await start(ON, { config: { quota: { ...defaultConfig().quota, historySeries: 1 } } })
  push('a', 1, 1)
  push('b', 1, 1)
  await stored(seat, 2)
  await until(async () => expect(await status(seat)).toMatchObject({ counters: { samples: 1, refused: 1 } }))
  expect(await samples()).toEqual(['test_a{host=h} 1 1'])
})
