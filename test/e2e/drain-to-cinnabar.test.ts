/** What one Cinnabar delivers to another arrives there with its labels, types and times, by either protocol. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { BasicType } from '../../protocol/monitor/constants.ts'
import { args, command, str, type } from '../support/bytes.ts'
import { eventually } from '../support/eventually.ts'
import { EPOCH, TestProducer } from '../support/producer.ts'
import { PublishingProducer, tokenFor } from '../support/publisher.ts'
import { decoded } from '../support/records.ts'

let above: PublishingProducer
let below: TestProducer | undefined
let directory = ''
beforeEach(async () => {
  above = await PublishingProducer.start()
  directory = mkdtempSync(join(tmpdir(), 'cinnabar-drain-'))
})
afterEach(async () => {
  await below?.stop()
  await above.stop()
  rmSync(directory, { recursive: true, force: true })
})

async function start(
  protocol: 'otlp' | 'prometheus',
  path: string,
  { token = above.token, metrics = ['test.*'] } = {},
): Promise<TestProducer> {
  const tokenFile = join(directory, 'token')
  writeFileSync(tokenFile, `${token}\n`)
  const href = above.url + path
  const table = {
    name: 'up',
    url: { protocol, href, text: `${protocol}+${href}` },
    metrics,
    tenant: 'default',
    tenantLabel: '',
    role: 'consumer',
    tokenFile,
    username: '',
    passwordFile: undefined,
    secretFile: undefined,
    ca: undefined,
    cert: undefined,
    key: undefined,
    batchSize: 100,
    batchAgeMs: 100,
    timeoutMs: 30_000,
  }
  below = await TestProducer.start({ config: { drain: [table] } })
  return below
}

/** Time goes on below until it holds. */
async function until(holds: () => Promise<void>): Promise<void> {
  await eventually(async () => {
    below?.clock.advance(200)
    await below?.settle()
    await holds()
  })
}

it('by OTLP: histograms and times exact to the microsecond, and each value to a durable consumer there', async () => {
  const seat = await above.producer.seat('root')
  const id = await seat.collect('otlp.test.took')
  await seat.ok((seq) => command.subscribe(seq, id))
  const { push } = await start('otlp', '/v1/metrics')
  const fields = [
    { name: 'delta', type: BasicType.BOOLEAN, value: false },
    { name: 'start', type: BasicType.UINT64, value: BigInt(EPOCH) },
    { name: 'count', type: BasicType.UINT64, value: 3n },
    { name: 'sum', type: BasicType.DOUBLE, value: 4.5 },
    { name: 'bounds', type: BasicType.ARRAY, value: { element: BasicType.DOUBLE, items: [1] } },
    { name: 'counts', type: BasicType.ARRAY, value: { element: BasicType.UINT64, items: [1n, 2n] } },
  ] as const
  push.push('test.took', { type: BasicType.REC, value: fields }, EPOCH + 123_457, 'web1')
  push.push('test.big', { type: BasicType.INT64, value: 2n ** 60n }, EPOCH, 'web1')
  await until(async () => {
    expect(decoded(await above.root.query('otlp.test.big'))).toEqual([
      { host: 'web1', time: EPOCH, value: (2n ** 60n).toString() },
    ])
  })
  const value = await seat.value()
  expect(value.time).toBe(EPOCH + 123_457)
  expect(decoded(value)).toMatchObject({ host: 'web1', value: { count: 3, sum: 4.5, bounds: [1], counts: [1, 2] } })
})

it('by remote write: names as Prometheus has them, times in milliseconds', async () => {
  const { push } = await start('prometheus', '/api/v1/write')
  push.push('test.load-1', { type: BasicType.DOUBLE, value: 0.5 }, EPOCH + 123_457, 'web1')
  await until(async () => {
    expect(decoded(await above.root.query('prometheus.test_load_1'))).toEqual([
      { host: 'web1', time: EPOCH + 123_000, value: 0.5 },
    ])
  })
})

it('by remote write: what a metric is, and its description and unit', async () => {
  await start('prometheus', '/api/v1/write', { metrics: ['host.mem.free'] })
  const known = async () => {
    const list = args(['match', type.string, str('prometheus.host_*')])
    return decoded(await above.root.query('producer.metrics', list)) as { name: string }[]
  }
  await until(async () => {
    expect((await known()).find(({ name }) => name === 'prometheus.host_mem_free')).toMatchObject({
      unit: 'B',
      description: expect.stringMatching(/memory/i),
    })
  })
})

it('what may not be published there is refused there, and counted as such', async () => {
  const narrow = await tokenFor(above.root, 'app', 'PUBLISH prometheus.other')
  const { push } = await start('prometheus', '/api/v1/write', { token: narrow })
  push.push('test.a', { type: BasicType.DOUBLE, value: 1 }, EPOCH)
  const root = await below!.addUser('root', { role: 'admin' }).then(() => below!.seat('root'))
  await until(async () => {
    const sensors = decoded(await root.query('producer.sensors')) as {
      name: string
      counters: Record<string, number>
    }[]
    // A request without values is taken: so it is this one that may not be written.
    expect(sensors.find(({ name }) => name === 'drain/up')?.counters).toMatchObject({ refusedForbidden: 1 })
  })
})
