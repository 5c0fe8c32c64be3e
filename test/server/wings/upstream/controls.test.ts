/** EXECUTE with `producer`: judged here, run there, recorded at both. Both servers run here; the connection between them is real. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { done, run } from '../../../support/administration.ts'
import { args, command, str, type } from '../../../support/bytes.ts'
import { eventually } from '../../../support/eventually.ts'
import { freePort } from '../../../support/free-port.ts'
import { TestProducer } from '../../../support/producer.ts'
import { decoded, type Json } from '../../../support/records.ts'
import type { Seat } from '../../../support/seat.ts'
import { separateStore } from '../../../support/separate-store.ts'

const PASSWORD = 'the-password-of-the-main-monitor'

let directory: string
let lower: TestProducer
let upper: TestProducer
let boss: Seat

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'cinnabar-upstream-'))
  const secretFile = join(directory, 'secret')
  writeFileSync(secretFile, `${PASSWORD}\n`)
  const port = await freePort()
  const store = await separateStore('lower')
  lower = await TestProducer.start({ config: { listen: { tcp: { host: '127.0.0.1', port } } }, store } as never)
  await lower.addUser('main', { role: 'admin', password: PASSWORD })
  const table = {
    name: 'east',
    url: `tcp://127.0.0.1:${port}`,
    tenant: 'default',
    metrics: ['*'],
    controls: ['user.*', 'sensor.fence'],
    user: 'main',
    secretFile,
    intervalMs: 60_000,
    maxSeries: 1000,
    valuesPerSecond: 0,
  }
  upper = await TestProducer.start({ config: { upstream: [table] } as never })
  await upper.addUser('boss', { role: 'admin' })
  boss = await upper.seat('boss')
  // Its controls are known before they can be run.
  await until(async () => {
    const sensors = decoded(await boss.query('producer.sensors')) as Json[]
    expect(sensors.find(({ name }) => name === 'upstream/east')).toMatchObject({ state: 'listening' })
  })
})
afterEach(async () => {
  await upper.stop()
  await lower.stop()
  rmSync(directory, { recursive: true })
})

async function until(holds: () => void | Promise<void>): Promise<void> {
  await eventually(async () => {
    upper.clock.advance(100)
    lower.clock.advance(100)
    await upper.settle()
    await holds()
  })
}

/** The result, which takes time at both servers. */
async function inTime<T>(asked: Promise<T>): Promise<T> {
  let isOver = false
  void asked
    .catch(() => {})
    .finally(() => {
      isOver = true
    })
  await until(() => expect(isOver).toBe(true))
  return asked
}

const listed = async (): Promise<Json[]> =>
  decoded(await boss.query('producer.controls', args(['producer', type.string, str('*')]))) as Json[]
const users = (): string[] => [...lower.server.parts.producer.accounts.list()].map(({ name }) => name)
const audited = async (of: TestProducer): Promise<Json[]> =>
  (await of.store.audit(0, 1000)).filter(({ object }) => object === 'user.add') as Json[]

describe('controls of an upstream', () => {
  it('are listed with their producer, those that are named in its table', async () => {
    const names = (await listed()).map(({ producer, name }) => `${producer} ${name}`)
    expect(names).toContain('east user.add')
    expect(names).not.toContain('east role.allow')
    expect(names).not.toContain('east config.reload')
  })

  it('run there, for whom they say, and are recorded at both', async () => {
    const result = await inTime(run(boss, 'user.add', { user: 'new', producer: 'east' }))
    expect(result).toMatchObject({ outcome: 'ok' })
    expect(users()).toContain('new')
    expect([...upper.server.parts.producer.accounts.list()].map(({ name }) => name)).not.toContain('new')
    const [there] = await audited(lower)
    expect(there).toMatchObject({ action: 'execute', actor: 'main' })
    expect(JSON.parse(there.args)).toMatchObject({ user: 'new', on_behalf_of: 'default/boss' })
    const [here] = await audited(upper)
    expect(here).toMatchObject({ action: 'execute', actor: 'boss' })
    expect(JSON.parse(here.args)).toMatchObject({ user: 'new', producer: 'east' })
  })

  it('fail as they do there', async () => {
    await inTime(done(boss, 'user.add', { user: 'new', producer: 'east' }))
    const again = await inTime(run(boss, 'user.add', { user: 'new', producer: 'east' }))
    expect(again).toMatchObject({ outcome: 'failed' })
  })

  it('run once with one key', async () => {
    const given = { user: 'new', producer: 'east', idempotency_key: 'k1' }
    await inTime(done(boss, 'user.add', given))
    expect(await inTime(run(boss, 'user.add', given))).toMatchObject({ outcome: 'ok' })
    expect((await audited(lower)).filter(({ action }) => action === 'execute')).toHaveLength(1)
  })

  it('without a key get one, which is recorded before they are sent, and finds their result later', async () => {
    const given = { user: 'new', producer: 'east' }
    await inTime(done(boss, 'user.add', given))
    const [here] = await audited(upper)
    const { idempotency_key } = JSON.parse(here.args) as { readonly idempotency_key: string }
    expect(idempotency_key).toMatch(/^[0-9a-f-]{36}$/)
    expect(await inTime(run(boss, 'user.add', { ...given, idempotency_key }))).toMatchObject({ outcome: 'ok' })
    expect((await audited(lower)).filter(({ action }) => action === 'execute')).toHaveLength(1)
  })

  it('are not there for those whose rules do not allow them, and none is beside those that are named', async () => {
    const ask = (seat: Seat, control: string) =>
      seat.ask((seq) => command.execute(seq, control, args(['producer', type.string, str('east')])))
    const watcher = await upper.seat('watcher')
    expect(await ask(watcher, 'user.list')).toMatchObject({ status: 10 })
    expect(await ask(boss, 'role.list')).toMatchObject({ status: 10 })
    expect(await ask(boss, 'nothing')).toMatchObject({ status: 10 })
  })

  it('are BUSY while the upstream is not connected: nothing ran', async () => {
    let isStopped = false
    const stopping = lower.server.stop().then(() => {
      isStopped = true
    })
    await until(() => expect(isStopped).toBe(true))
    await stopping
    lower = await TestProducer.start()
    await until(async () => {
      const response = await boss.ask((seq) =>
        command.execute(seq, 'user.list', args(['producer', type.string, str('east')])),
      )
      expect(response).toMatchObject({ status: 13, detail: expect.stringContaining('not connected') })
    })
  })
})
