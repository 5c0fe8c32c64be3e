/** Remote read over real HTTP: what is read, by whom, within which bounds, and what is wrong with a request. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { BasicType } from '../../../../../protocol/monitor/constants.ts'
import { defaultConfig } from '../../../../../server/start/config.ts'
import { done } from '../../../../support/administration.ts'
import { eventually } from '../../../../support/eventually.ts'
import { EPOCH } from '../../../../support/producer.ts'
import { PublishingProducer, tokenFor } from '../../../../support/publisher.ts'
import { decoded } from '../../../../support/records.ts'
import { type AskedQuery, READ_HEADERS, readRequest, readResponse } from '../../../../support/remote-read.ts'
import { PushSensor } from '../../../../support/test-sensor.ts'

const SECOND = 1_000_000
const START_MS = EPOCH / 1_000
const EVER_MS = 36_500 * 86_400_000

let server: PublishingProducer
let all: string
let bob: string
let ann: string
beforeEach(async () => {
  const history = { ...defaultConfig().history, keepMs: EVER_MS, metrics: ['test.*'], resolutionMs: 0 }
  let north: PushSensor | undefined
  server = await PublishingProducer.start({
    config: { history, query: { maxSamples: 10 } },
    sensors: (hub) => {
      north = new PushSensor(hub, 'test.', { tenant: 'north' })
    },
  })
  const { producer, root } = server
  await producer.addUser('ann', { tenant: 'north' })
  await producer.addUser('bob', { role: 'limited' })
  await done(root, 'role.deny', { role: 'limited', command: 'COLLECT', object: 'test.secret' })
  ;[all, bob, ann] = await Promise.all([
    tokenFor(root, 'root', ''),
    tokenFor(root, 'bob', ''),
    tokenFor(root, 'ann', '', 'north'),
  ])
  const settled = (holds: () => Promise<void>): Promise<void> =>
    eventually(async () => {
      producer.clock.advance(1_000)
      await producer.settle()
      await holds()
    })
  await settled(async () => {
    const sensors = decoded(await root.query('producer.sensors')) as { name: string; state: string }[]
    expect(sensors.filter(({ name }) => name.startsWith('history/')).map(({ state }) => state)).toEqual([
      'recording',
      'recording',
    ])
  })
  for (let at = 0; at < 8; at++)
    producer.push.push('test.a', { type: BasicType.DOUBLE, value: at }, EPOCH + at * SECOND, 'h1')
  producer.push.push('test.a', { type: BasicType.DOUBLE, value: 9 }, EPOCH, 'h2')
  producer.push.push('test.secret', { type: BasicType.DOUBLE, value: 4 }, EPOCH, 'h1')
  north?.push('test.a', { type: BasicType.DOUBLE, value: 5 }, EPOCH, 'h9')
  await settled(async () => {
    const channels = decoded(await root.query('producer.channels')) as unknown as Record<string, string>[]
    const ours = channels.filter(({ name }) => name === 'history:')
    expect(ours.reduce((sum, { committed }) => sum + Number(committed), 0)).toBe(11)
  })
})
afterEach(() => server.stop())

const query = (...matchers: AskedQuery['matchers']): AskedQuery => ({
  fromMs: START_MS,
  toMs: START_MS + 60_000,
  matchers,
})

async function read(queries: readonly AskedQuery[], token = all): Promise<string[][]> {
  const answer = await server.post('/api/v1/read', readRequest(queries, [1, 0]), READ_HEADERS, token)
  expect([answer.status, answer.headers.get('content-type'), answer.headers.get('content-encoding')]).toEqual([
    200,
    'application/x-protobuf',
    'snappy',
  ])
  expect(answer.headers.get('cache-control')).toBe('no-store')
  const results = readResponse(new Uint8Array(await answer.arrayBuffer()))
  return results.map((series) =>
    series.map(({ labels, samples }) => `${labels.get('__name__')} ${labels.get('host')} ${samples.length}`).sort(),
  )
}

async function refusal(
  body: Uint8Array<ArrayBuffer>,
  headers: Record<string, string> = READ_HEADERS,
): Promise<unknown> {
  const answer = await server.post('/api/v1/read', body, headers, all)
  const { errorType, error } = (await answer.json()) as Record<string, unknown>
  return [answer.status, errorType, error]
}

describe('remote read', () => {
  it('gives the series that match, for each query', async () => {
    const short = { ...query(['__name__', '=', 'test_a']), fromMs: START_MS + 2_000, toMs: START_MS + 4_000 }
    expect(await read([short, query(['__name__', '=~', 'test_s.*']), query(['host', '=', 'none'])])).toEqual([
      ['test_a h1 3'],
      ['test_secret h1 1'],
      [],
    ])
    expect(await read([query(['host', '!=', 'h1'], ['__name__', '=~', 'test_.*'])])).toEqual([['test_a h2 1']])
    expect(
      await read([query(['host', '!~', 'h2'], ['__name__', '!=', 'test_a'], ['__name__', '=~', 'test_.*'])]),
    ).toEqual([['test_secret h1 1']])
    expect(await read([])).toEqual([])
  })

  it('gives each what the user may COLLECT of its tenant', async () => {
    expect(await read([query(['__name__', '=~', 'test_.*'])], bob)).toEqual([['test_a h1 8', 'test_a h2 1']])
    expect(await read([query(['__name__', '=~', 'test_.*'])], ann)).toEqual([['test_a h9 1']])
    const answer = await fetch(`${server.url}/api/v1/read`, {
      method: 'POST',
      headers: READ_HEADERS,
      body: readRequest([]),
    })
    expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([401, 'Bearer'])
  })

  it('has the bounds of a query', async () => {
    const every = query(['__name__', '=', 'test_a'])
    expect(await refusal(readRequest([every, every]))).toEqual([
      422,
      'execution',
      'more than 10 samples: read a shorter time or fewer series',
    ])
    expect(await refusal(readRequest(Array.from({ length: 101 }, () => query())))).toEqual([
      400,
      'bad_data',
      '101 queries in one request, at most 100 are allowed',
    ])
    expect(decoded(await server.root.query('producer.queries'))).toMatchObject([{ tenant: 'default', failed: 2 }])
  })

  it.each<[what: string, body: Uint8Array<ArrayBuffer>, error: string]>([
    ['answers in chunks alone', readRequest([], [1]), 'streamed chunks are not sent here'],
    ['no Snappy', Uint8Array.of(4, 0xff, 0xff), 'the request cannot be read: Snappy'],
    ['nothing', new Uint8Array(0), 'the request cannot be read: Snappy'],
    ['an expression that is none', readRequest([query(['a', '=~', '('])]), 'missing closing )'],
    ['a label without a name', readRequest([query(['', '=', 'a'])]), 'invalid label name: ""'],
    ['an operator that does not exist', readRequest([query(['a', 'like', 'b'])]), 'a matcher of the type 4'],
  ])('refuses %s', async (_what, body, error) => {
    expect(await refusal(body)).toEqual([400, 'bad_data', expect.stringContaining(error)])
  })

  it('takes nothing but its own form, by POST', async () => {
    const form = { 'content-type': 'application/x-www-form-urlencoded' }
    expect(await refusal(readRequest([]), form)).toEqual([415, 'bad_data', 'Unsupported Media Type'])
    expect((await server.post('/api/v1/query', readRequest([]), READ_HEADERS, all)).status).toBe(415)
    const headers = { authorization: `Bearer ${all}` }
    const answer = await fetch(`${server.url}/api/v1/read`, { headers })
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'POST'])
  })
})
