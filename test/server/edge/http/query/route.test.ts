/** Prometheus' HTTP API over real HTTP and a real history: what is answered, to whom, and what is wrong with a request. */

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { BasicType } from '../../../../../protocol/monitor/constants.ts'
import { defaultConfig } from '../../../../../server/start/config.ts'
import { done } from '../../../../support/administration.ts'
import { eventually } from '../../../../support/eventually.ts'
import { EPOCH } from '../../../../support/producer.ts'
import { PublishingProducer, tokenFor } from '../../../../support/publisher.ts'
import { decoded } from '../../../../support/records.ts'
import { PushSensor } from '../../../../support/test-sensor.ts'

const EVER_MS = 36_500 * 86_400_000
const SECOND = 1_000_000
const START = EPOCH / SECOND

const historyOf = (...metrics: string[]) => ({
  ...defaultConfig().history,
  keepMs: EVER_MS,
  keepRollupsMs: EVER_MS,
  metrics,
  resolutionMs: 0,
})

let server: PublishingProducer
let all: string
let ann: string
let bob: string
let narrow: string

beforeAll(async () => {
  let north: PushSensor | undefined
  server = await PublishingProducer.start({
    config: { history: historyOf('test.*') },
    sensors: (hub) => {
      north = new PushSensor(hub, 'test.', { tenant: 'north' })
    },
  })
  const { producer, root } = server
  await producer.addUser('ann', { tenant: 'north' })
  await producer.addUser('bob', { role: 'limited' })
  await done(root, 'role.deny', { role: 'limited', command: 'COLLECT', object: 'test.secret' })
  await done(root, 'role.deny', { role: 'limited', command: 'COLLECT', object: 'test.a', where: 'host=h2' })
  all = await tokenFor(root, 'root', '')
  ann = await tokenFor(root, 'ann', '', 'north')
  bob = await tokenFor(root, 'bob', '')
  narrow = await tokenFor(root, 'bob', 'COLLECT test.b')
  await settled(async () => {
    const sensors = decoded(await root.query('producer.sensors')) as { name: string; state: string }[]
    expect(sensors.filter(({ name }) => name.startsWith('history/')).map(({ state }) => state)).toEqual([
      'recording',
      'recording',
    ])
  })
  const push = (sensor: PushSensor | undefined, name: string, value: number, seconds: number, host = 'h1') =>
    sensor?.push(`test.${name}`, { type: BasicType.DOUBLE, value }, EPOCH + seconds * SECOND, host)
  for (let at = 0; at <= 60; at += 10) push(producer.push, 'a', at / 10, at)
  push(producer.push, 'a', 7, 60, 'h2')
  push(producer.push, 'b', 1.5e-7, 60.25)
  push(producer.push, 'b', Number.NaN, 60.25, 'nan')
  push(producer.push, 'b', Number.POSITIVE_INFINITY, 60.25, 'inf')
  push(producer.push, 'secret', 4, 60)
  push(north, 'a', 5, 60)
  await settled(async () => {
    const channels = decoded(await root.query('producer.channels')) as unknown as Record<string, string>[]
    const ours = channels.filter(({ name }) => name === 'history:')
    expect(ours.reduce((sum, { committed }) => sum + Number(committed), 0)).toBe(13)
  })
})
afterAll(() => server.stop())

async function settled(holds: () => Promise<void>): Promise<void> {
  await eventually(async () => {
    server.producer.clock.advance(1_000)
    await server.producer.settle()
    await holds()
  })
}

type Parameters = Readonly<Record<string, string | number>>

interface Answered {
  readonly status: number
  readonly body: { readonly [key: string]: unknown; readonly data?: unknown; readonly error?: string }
}

const listOf = (parameters: Parameters) => new URLSearchParams(Object.entries(parameters).map(([k, v]) => [k, `${v}`]))

async function get(path: string, parameters: Parameters = {}, token = all): Promise<Answered> {
  const headers = { authorization: `Bearer ${token}` }
  const answer = await fetch(`${server.url}/api/v1/${path}?${listOf(parameters)}`, { headers })
  expect(answer.headers.get('cache-control')).toBe('no-store')
  expect(answer.headers.get('content-type')).toMatch(/^application\/json/)
  return { status: answer.status, body: (await answer.json()) as Answered['body'] }
}

const dataOf = async (...given: [path: string, parameters?: Parameters, token?: string]): Promise<unknown> =>
  (await get(...given)).body.data

const at = { time: START + 61 }

describe('query', () => {
  it('answers with a vector, letter by letter', async () => {
    const headers = { authorization: `Bearer ${all}` }
    const answer = await fetch(`${server.url}/api/v1/query?${listOf({ query: 'test_a', time: START + 60.5 })}`, {
      headers,
    })
    const [first, second] = [
      `{"metric":{"__name__":"test_a","host":"h1"},"value":[${START + 60.5}00,"6"]}`,
      `{"metric":{"__name__":"test_a","host":"h2"},"value":[${START + 60.5}00,"7"]}`,
    ]
    expect(await answer.text()).toBe(
      `{"status":"success","data":{"resultType":"vector","result":[${first},${second}]}}`,
    )
  })

  it('answers with numbers as Prometheus writes them', async () => {
    const values = (await dataOf('query', { query: 'sort(test_b)', ...at })) as { result: { value: unknown[] }[] }
    expect(values.result.map(({ value }) => value[1])).toEqual(['1.5e-07', '+Inf', 'NaN'])
  })

  it('answers with a scalar, a text and a range', async () => {
    expect(await dataOf('query', { query: '1+1', ...at })).toEqual({ resultType: 'scalar', result: [at.time, '2'] })
    expect(await dataOf('query', { query: '"x"', ...at })).toEqual({ resultType: 'string', result: [at.time, 'x'] })
    expect(await dataOf('query', { query: 'test_a{host="h1"}[20s]', ...at })).toEqual({
      resultType: 'matrix',
      result: [
        {
          metric: { __name__: 'test_a', host: 'h1' },
          values: [
            [START + 50, '5'],
            [START + 60, '6'],
          ],
        },
      ],
    })
  })

  it('takes a form, native names, RFC 3339, a limit and a lookback', async () => {
    const time = new Date((START + 61) * 1_000).toISOString()
    const form = listOf({ query: '{"test.a"}', time, limit: 1 })
    const headers = { authorization: `Bearer ${all}` }
    const answer = await fetch(`${server.url}/api/v1/query`, { method: 'POST', body: form, headers })
    expect(await answer.json()).toMatchObject({
      status: 'success',
      data: { result: [{ metric: { host: 'h1' } }] },
      warnings: ['results truncated due to limit'],
    })
    const late = { query: 'test_a', time: START + 100 }
    expect(await dataOf('query', { ...late, lookback_delta: '20s' })).toMatchObject({ result: [] })
    expect(await dataOf('query', { ...late, lookback_delta: 90 })).toMatchObject({ result: [{}, {}] })
  })

  it('says what is remarkable', async () => {
    expect((await get('query', { query: 'rate(test_a[1m])', ...at })).body['infos']).toEqual([
      expect.stringContaining('metric might not be a counter'),
    ])
  })
})

describe('statistics', () => {
  it('are there if they are asked for', async () => {
    expect(await dataOf('query', { query: 'test_a', ...at })).not.toHaveProperty('stats')
    const range = { start: START, end: START + 60, step: '30s' }
    for (const [path, parameters] of [
      ['query', at],
      ['query_range', range],
    ] as const) {
      const query = 'sum(count_over_time(test_a[1m]))'
      const { stats } = (await dataOf(path, { query, ...parameters, stats: 'all' })) as { stats: unknown }
      expect(stats).toEqual({
        timings: {
          evalTotalTime: expect.any(Number),
          execQueueTime: expect.any(Number),
          execTotalTime: expect.any(Number),
        },
        samples: { totalQueryableSamples: path === 'query' ? 7 : 8, peakSamples: expect.any(Number) },
      })
    }
  })
})

describe('query_range', () => {
  it('answers with a matrix', async () => {
    const range = { start: START, end: START + 60, step: '30s' }
    expect(await dataOf('query_range', { query: 'sum(test_a)', ...range })).toEqual({
      resultType: 'matrix',
      result: [
        {
          metric: {},
          values: [
            [START, '0'],
            [START + 30, '3'],
            [START + 60, '13'],
          ],
        },
      ],
    })
    const scalar = (await dataOf('query_range', { query: '1', ...range, step: 60 })) as { result: unknown[] }
    expect(scalar.result).toEqual([
      {
        metric: {},
        values: [
          [START, '1'],
          [START + 60, '1'],
        ],
      },
    ])
  })

  it('takes 11,000 points more than one, and no more', async () => {
    const points = { query: 'vector(1)', start: 0, end: 11_000 }
    const { result } = (await dataOf('query_range', { ...points, step: 1 })) as { result: { values: unknown[] }[] }
    expect(result[0]?.values).toHaveLength(11_001)
    expect(await get('query_range', { ...points, end: 11_001, step: 1 })).toMatchObject({
      status: 400,
      body: { errorType: 'bad_data', error: expect.stringMatching(/^exceeded maximum resolution of 11,000 points/) },
    })
  })
})

describe('a long answer', () => {
  const long = { query: 'vector(1)', start: 0, end: 10_000, step: 1 }
  const encodingOf = async (parameters: Parameters, accepted: string) => {
    const headers = { authorization: `Bearer ${all}`, 'accept-encoding': accepted }
    const answer = await fetch(`${server.url}/api/v1/query_range?${listOf(parameters)}`, { headers })
    expect(answer.headers.get('vary')).toBe('Accept-Encoding')
    const { data } = (await answer.json()) as { data: { result: { values: unknown[] }[] } }
    return [answer.headers.get('content-encoding'), data.result[0]?.values.length]
  }

  it('is compressed for those who take that, and whole', async () => {
    expect(await encodingOf(long, 'gzip')).toEqual(['gzip', 10_001])
    expect(await encodingOf(long, 'deflate, gzip;q=0.5')).toEqual(['gzip', 10_001])
    expect(await encodingOf(long, 'identity')).toEqual([null, 10_001])
    expect(await encodingOf(long, 'gzip;q=0')).toEqual([null, 10_001])
    expect(await encodingOf({ ...long, end: 10 }, 'gzip')).toEqual([null, 11])
  })
})

describe('what there is', () => {
  it('is found by selectors', async () => {
    expect(await dataOf('series', { 'match[]': 'test_a' })).toEqual([
      { __name__: 'test_a', host: 'h1' },
      { __name__: 'test_a', host: 'h2' },
    ])
    expect(await dataOf('labels')).toEqual(['__name__', 'host'])
    expect(await dataOf('label/host/values', { 'match[]': 'test_a' })).toEqual(['h1', 'h2'])
    expect(await dataOf('label/__name__/values')).toEqual(['test_a', 'test_b', 'test_secret'])
    expect(await dataOf('label/U______name____/values', { limit: 1 })).toEqual(['test_a'])
    expect(await dataOf('label/host/values', { start: START, end: START + 50 })).toEqual(['h1'])
  })

  it('is asked for by GET and POST alone', async () => {
    for (const method of ['PUT', 'PATCH', 'DELETE', 'HEAD']) {
      const headers = { authorization: `Bearer ${all}` }
      const answer = await fetch(`${server.url}/api/v1/label/host/values`, { method, headers })
      expect([answer.status, answer.headers.get('allow')], method).toEqual([405, 'GET, POST'])
      const unknown = await fetch(`${server.url}/api/v1/query?query=1`, { method })
      expect(unknown.status, method).toBe(401)
    }
  })

  it('is empty where nothing of it exists', async () => {
    expect(await dataOf('metadata', { metric: 'none' })).toEqual({})
    expect(await dataOf('query_exemplars', { query: 'test_a' })).toEqual([])
    expect(await dataOf('rules')).toEqual({ groups: [] })
    expect(await dataOf('alerts')).toEqual({ alerts: [] })
    expect(await dataOf('status/buildinfo')).toMatchObject({ version: '3.0.0' })
    expect(await dataOf('format_query', { query: 'sum  (test_a)' })).toBe('sum(test_a)')
    expect(await dataOf('parse_query', { query: '1' })).toEqual({ type: 'numberLiteral', val: '1' })
  })
})

describe('a form', () => {
  it.each<[path: string, parameters: Parameters]>([
    ['query', { query: 'test_a', ...at }],
    ['query_range', { query: 'test_a', start: START, end: START + 60, step: 30 }],
    ['series', { 'match[]': 'test_a' }],
    ['labels', { 'match[]': 'test_a' }],
    ['label/host/values', { 'match[]': 'test_a' }],
    ['metadata', { metric: 'test_a' }],
    ['query_exemplars', { query: 'test_a', start: START, end: START + 60 }],
    ['format_query', { query: 'test_a  + 1' }],
    ['parse_query', { query: 'test_a + 1' }],
    ['status/buildinfo', {}],
    ['rules', {}],
    ['alerts', {}],
  ])('is answered as a URL is: %s', async (path, parameters) => {
    const headers = { authorization: `Bearer ${all}` }
    const answer = await fetch(`${server.url}/api/v1/${path}`, { method: 'POST', body: listOf(parameters), headers })
    expect([answer.status, answer.headers.get('cache-control')]).toEqual([200, 'no-store'])
    expect(await answer.json()).toEqual((await get(path, parameters)).body)
  })
})

it('takes parameters of the URL from those who send no body and call it JSON', async () => {
  const headers = { authorization: `Bearer ${all}`, 'content-type': 'application/json' }
  const answer = await fetch(`${server.url}/api/v1/query?${listOf({ query: '1', ...at })}`, { method: 'POST', headers })
  expect(await answer.json()).toMatchObject({ data: { result: [at.time, '1'] } })
})

describe('rights', () => {
  const seen = async (token: string) => {
    const [vector, matrix, series, names, hosts] = await Promise.all([
      dataOf('query', { query: '{__name__=~"test_.+"}', ...at }, token),
      dataOf('query_range', { query: '{__name__=~"test_.+"}', start: at.time, end: at.time, step: 1 }, token),
      dataOf('series', { 'match[]': '{__name__=~"test_.+"}' }, token),
      dataOf('label/__name__/values', {}, token),
      dataOf('label/host/values', {}, token),
    ])
    const shown = (metric: unknown) => {
      const { __name__, host } = metric as Record<string, string>
      return `${__name__} ${host}`
    }
    const results = [vector, matrix].map((data) =>
      (data as { result: { metric: unknown }[] }).result.map(({ metric }) => shown(metric)).toSorted(),
    )
    return [...results, (series as unknown[]).map(shown), names, hosts]
  }

  it('show each what the same user may COLLECT of its tenant', async () => {
    const ofBob = ['test_a h1', 'test_b h1', 'test_b inf', 'test_b nan']
    expect(await seen(bob)).toEqual([ofBob, ofBob, ofBob, ['test_a', 'test_b'], ['h1', 'inf', 'nan']])
    expect(await seen(ann)).toEqual([['test_a h1'], ['test_a h1'], ['test_a h1'], ['test_a'], ['h1']])
    const ofNarrow = ofBob.slice(1)
    expect(await seen(narrow)).toEqual([ofNarrow, ofNarrow, ofNarrow, ['test_b'], ['h1', 'inf', 'nan']])
    expect(await dataOf('query', { query: 'sum(test_a)', ...at }, ann)).toMatchObject({
      result: [{ value: [at.time, '5'] }],
    })
  })

  it.each(['query?query=1', 'query_range', 'series', 'labels', 'label/a/values', 'status/buildinfo', 'rules'])(
    'need a token: %s',
    async (path) => {
      for (const authorization of ['', 'Bearer wrong']) {
        const answer = await fetch(`${server.url}/api/v1/${path}`, {
          ...(authorization && { headers: { authorization } }),
        })
        expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([401, 'Bearer'])
        expect(await answer.json()).toMatchObject({ status: 'error', errorType: 'unauthorized' })
      }
    },
  )
})

describe('what is wrong', () => {
  const range = { query: '1', start: 0, end: 10, step: 1 }
  it.each<[path: string, parameters: Parameters, error: string]>([
    ['query', {}, 'invalid parameter "query": '],
    ['query', { query: 'sum(' }, 'invalid parameter "query": 1:5: parse error: '],
    ['query', { query: '1', time: 'noon' }, 'invalid parameter "time": cannot parse "noon" to a valid timestamp'],
    ['query', { query: '1', timeout: 'x' }, 'invalid parameter "timeout": cannot parse "x" to a valid duration'],
    ['query', { query: '1', limit: -1 }, 'invalid parameter "limit": limit must be non-negative'],
    ['query_range', { ...range, start: '' }, 'invalid parameter "start": cannot parse "" to a valid timestamp'],
    ['query_range', { ...range, end: -1 }, 'invalid parameter "end": end timestamp must not be before start time'],
    ['query_range', { ...range, step: 0 }, 'invalid parameter "step": zero or negative'],
    ['query_range', { ...range, step: 'x' }, 'invalid parameter "step": cannot parse "x" to a valid duration'],
    ['query_range', { ...range, query: 'a[1m]' }, 'invalid parameter "query": invalid expression type "range vector"'],
    ['series', {}, 'no match[] parameter provided'],
    ['series', { 'match[]': 'sum(a)' }, 'invalid parameter "match[]": '],
    ['series', { 'match[]': 'a{' }, 'invalid parameter "match[]": 1:3: parse error: '],
    ['label/U__/values', {}, 'invalid label name'],
    ['parse_query', { query: 'a{' }, 'invalid parameter "query": 1:3: parse error: '],
    ['format_query', {}, 'invalid parameter "query": '],
    ['query_exemplars', {}, 'invalid parameter "query": '],
    ['query_exemplars', { query: 'a', start: 'x' }, 'invalid parameter "start": cannot parse "x"'],
    ['query_exemplars', { query: 'a', start: 2, end: 1 }, 'end timestamp must not be before start timestamp'],
  ])('is said: %s %j', async (path, parameters, error) => {
    const { status, body } = await get(path, parameters)
    expect([status, body]).toEqual([
      400,
      { status: 'error', errorType: 'bad_data', error: expect.stringContaining(error) },
    ])
  })

  it('texts of match[] are no longer together than one expression may be', async () => {
    const half = `{a="${'x'.repeat(25_000)}"}`
    const headers = { authorization: `Bearer ${all}` }
    const body = new URLSearchParams([half, half].map((text) => ['match[]', text]))
    const answer = await fetch(`${server.url}/api/v1/series`, { method: 'POST', body, headers })
    const error = 'invalid parameter "match[]": all have 50012 characters together, at most 50000 are allowed'
    expect(await answer.json()).toEqual({ status: 'error', errorType: 'bad_data', error })
  })

  it('with the data is an error of the execution', async () => {
    expect(await get('query', { query: 'test_a + on() test_a', ...at })).toMatchObject({
      status: 422,
      body: { status: 'error', errorType: 'execution' },
    })
  })

  it('is a form of another type, or one that is too long', async () => {
    const post = (body: string, type: string) =>
      fetch(`${server.url}/api/v1/query`, {
        method: 'POST',
        body,
        headers: { authorization: `Bearer ${all}`, 'content-type': type },
      })
    const other = await post('{}', 'application/json')
    expect([other.status, await other.json()]).toEqual([
      415,
      { status: 'error', errorType: 'bad_data', error: 'a body has the type application/x-www-form-urlencoded' },
    ])
    expect((await post(`query=${'1'.repeat(600_000)}`, 'application/x-www-form-urlencoded')).status).toBe(413)
  })
})
