/** A server that consumes another one: names, values, and what is asked for there. Both run here; the connection between them is real. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { args, command, str, type } from '../../../support/bytes.ts'
import { eventually } from '../../../support/eventually.ts'
import { TestProducer } from '../../../support/producer.ts'
import { decoded, type Json } from '../../../support/records.ts'
import type { Seat } from '../../../support/seat.ts'

const PASSWORD = 'the-password-of-the-main-monitor'

let directory: string
let lower: TestProducer
let upper: TestProducer
let seat: Seat

const table = (port: number, more: object = {}) => ({
  name: 'east',
  url: `tcp://127.0.0.1:${port}`,
  tenant: 'default',
  metrics: ['*'],
  user: 'main',
  tokenFile: undefined,
  secretFile: join(directory, 'secret'),
  ca: undefined,
  cert: undefined,
  key: undefined,
  serverName: undefined,
  intervalMs: 60_000,
  maxSeries: 1000,
  valuesPerSecond: 0,
  ...more,
})

const startLower = () => TestProducer.start({ config: { listen: { tcp: { host: '127.0.0.1', port: 0 } } } })

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'cinnabar-upstream-'))
  writeFileSync(join(directory, 'secret'), `${PASSWORD}\n`)
  lower = await startLower()
  await lower.addUser('main', { role: 'consumer', password: PASSWORD })
  upper = await TestProducer.start({ config: { upstream: [table(portOf(lower))] } as never })
  await until(async () => expect(await upstream()).toMatchObject({ state: 'listening' }))
  seat = await upper.seat('watcher')
})
afterEach(async () => {
  await upper.stop()
  await lower.stop()
  rmSync(directory, { recursive: true })
})

function portOf({ server }: TestProducer): number {
  return server.tcp?.port as number
}

/** The other connection is real, so nothing says when all of it has come. */
async function until(holds: () => void | Promise<void>): Promise<void> {
  await eventually(async () => {
    upper.clock.advance(100)
    lower.clock.advance(100)
    await upper.settle()
    await holds()
  })
}

/** What `producer.sensors` says of it. */
async function upstream(): Promise<Json | undefined> {
  const watcher = await upper.seat('looker')
  const sensors = decoded(await watcher.query('producer.sensors')) as Json[]
  watcher.peer.destroy()
  return sensors.find((sensor) => sensor.name === 'upstream/east')
}

const of = (producer: string, ...more: readonly (readonly [string, number, Uint8Array])[]) =>
  args(['producer', type.string, str(producer)], ...more)
const h1 = ['host', type.string, str('h1')] as const

describe('QUERY with `producer`', () => {
  it('asks the upstream, and nobody else', async () => {
    upper.emit(1)
    lower.emit(2)
    expect((await seat.query('test.a', args(h1))).value).toMatchObject({ value: 1 })
    expect((await seat.query('test.a', of('east', h1))).value).toMatchObject({ value: 2 })
  })

  it('gives the records of a pattern with their producers, this one among them', async () => {
    upper.emit(1)
    lower.emit(2)
    lower.emit(3, 'test.b')
    expect(decoded(await seat.query('test.*', of('east')))).toMatchObject([
      { name: 'test.a', host: 'h1', value: 2 },
      { name: 'test.b', host: 'h1', value: 3 },
    ])
    expect(decoded(await seat.query('test.*', of('*')))).toMatchObject([
      { name: 'test.a', producer: 'east', host: 'h1', value: 2 },
      { name: 'test.b', producer: 'east', host: 'h1', value: 3 },
      { name: 'test.a', producer: 'n1', host: 'h1', value: 1 },
    ])
  })
})

describe('SUBSCRIBE with `producer`', () => {
  it('follows what the upstream gets', async () => {
    const id = await seat.collect('test.*', of('*'))
    await seat.ok((seq) => command.subscribe(seq, id, 0))
    await until(() => expect([...lower.server.parts.producer.instances.all()]).toHaveLength(1))
    lower.emit(5)
    upper.emit(6)
    await until(() => {})
    const values = [await seat.value(), await seat.value()].map((value) => decoded(value))
    expect(values).toContainEqual({ name: 'test.a', producer: 'east', host: 'h1', value: 5 })
    expect(values).toContainEqual({ name: 'test.a', producer: 'n1', host: 'h1', value: 6 })
  })
})
