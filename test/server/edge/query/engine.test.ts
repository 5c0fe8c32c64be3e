/** Where another server answers expressions: what it is asked, for whom, and what becomes of its answers. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { defaultConfig } from '../../../../server/start/config.ts'
import { done } from '../../../support/administration.ts'
import { eventually } from '../../../support/eventually.ts'
import { PublishingProducer, tokenFor } from '../../../support/publisher.ts'
import { READ_HEADERS, readRequest } from '../../../support/remote-read.ts'

interface Asked {
  readonly path: string
  readonly authorization: string | undefined
  readonly form: Readonly<Record<string, string>>
}

let directory: string
let elsewhere: Server
let asked: Asked[]
let answering: (response: ServerResponse) => void
let server: PublishingProducer
let root: string
let ann: string

beforeEach(async () => {
  asked = []
  directory = mkdtempSync(join(tmpdir(), 'cinnabar-engine-'))
  writeFileSync(join(directory, 'token'), 'hunter2\n')
  elsewhere = createServer(async (request, response) => {
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part)
    const [path = '', inUrl = ''] = (request.url ?? '').split('?')
    // As Prometheus: texts of labels are asked for in the URL alone, all else in a form.
    const isRight = request.method === (path.includes('/label/') ? 'GET' : 'POST')
    const form = Object.fromEntries(new URLSearchParams(`${Buffer.concat(parts)}${inUrl}`))
    asked.push({ path: isRight ? path : '', authorization: request.headers.authorization, form })
    answering(response)
  })
  await new Promise<void>((resolve) => elsewhere.listen(0, '127.0.0.1', resolve))
  const { port } = elsewhere.address() as AddressInfo
  const engine = {
    href: `http://127.0.0.1:${port}/prometheus/`,
    tenantLabel: 'tenant',
    tokenFile: join(directory, 'token'),
    username: '',
    passwordFile: undefined,
    ca: undefined,
  }
  server = await PublishingProducer.start({ config: { history: { ...defaultConfig().history, keepMs: 0, engine } } })
  const { producer, root: seat } = server
  await producer.addUser('ann', { tenant: 'north' })
  await producer.addUser('bob', { role: 'limited' })
  await done(seat, 'role.deny', { role: 'limited', command: 'COLLECT', object: 'test.a', where: 'host=h2' })
  root = await tokenFor(seat, 'root', 'COLLECT *')
  ann = await tokenFor(seat, 'ann', '', 'north')
})
afterEach(async () => {
  await server.stop()
  elsewhere.closeAllConnections()
  await new Promise((resolve) => elsewhere.close(resolve))
  rmSync(directory, { recursive: true })
})

const gives = (body: unknown, status = 200): void => {
  answering = (response) => response.writeHead(status).end(typeof body === 'string' ? body : JSON.stringify(body))
}
const succeeds = (data: unknown, more: object = {}): void => gives({ status: 'success', data, ...more })

async function get(path: string, given: Record<string, string>, token = root): Promise<[number, unknown]> {
  const headers = { authorization: `Bearer ${token}` }
  const answer = await fetch(`${server.url}/api/v1/${path}?${new URLSearchParams(given)}`, { headers })
  return [answer.status, await answer.json()]
}

const vector = {
  resultType: 'vector',
  result: [
    { metric: { __name__: 'up', tenant: 'default' }, value: [1_700_000_000.5, '1'] },
    { metric: { __name__: 'up', tenant: 'default', job: 'b' }, value: [1_700_000_000.5, '+Inf'] },
  ],
}

describe('an expression', () => {
  it('is asked with the tenant in every selector, and with the credentials of the configuration', async () => {
    succeeds(vector, { warnings: ['w'], infos: ['i'] })
    const given = { query: 'sum(rate(up{tenant="north"}[5m])) / {job="x"}', time: '1700000000.5', timeout: '5s' }
    expect(await get('query', given)).toEqual([200, { status: 'success', data: vector, warnings: ['w'], infos: ['i'] }])
    await get('query', { query: 'up', time: '1', lookback_delta: '2m' }, ann)
    expect(asked).toEqual([
      {
        path: '/prometheus/api/v1/query',
        authorization: 'Bearer hunter2',
        form: {
          query: 'sum(rate(up{tenant="default",tenant="north"}[5m])) / {tenant="default",job="x"}',
          time: '1700000000.5',
          timeout: '5',
        },
      },
      expect.objectContaining({
        form: { query: 'up{tenant="north"}', time: '1', lookback_delta: '120', timeout: '120' },
      }),
    ])
  })

  it('over a range has its values, up to the limit', async () => {
    const values = [
      [1, '0'],
      [31, 'NaN'],
    ]
    succeeds({
      resultType: 'matrix',
      result: [
        { metric: { a: '1' }, values },
        { metric: { a: '2' }, values },
      ],
    })
    const given = { query: 'up', start: '1', end: '31', step: '30s', limit: '1' }
    expect(await get('query_range', given)).toEqual([
      200,
      {
        status: 'success',
        data: { resultType: 'matrix', result: [{ metric: { a: '1' }, values }] },
        warnings: ['results truncated due to limit'],
      },
    ])
    expect(asked[0]?.form).toEqual({ query: 'up{tenant="default"}', start: '1', end: '31', step: '30', timeout: '120' })
  })

  it('can be a scalar or a text', async () => {
    for (const resultType of ['scalar', 'string']) {
      succeeds({ resultType, result: [5, '2'] })
      expect(await get('query', { query: '2', time: '5' })).toEqual([
        200,
        { status: 'success', data: { resultType, result: [5, '2'] } },
      ])
    }
  })

  it('that is wrong is asked nowhere', async () => {
    expect(await get('query', { query: 'sum(' })).toMatchObject([400, { errorType: 'bad_data' }])
    expect(await get('query', { query: 'mad_over_time(up[5m])' })).toMatchObject([400, { errorType: 'bad_data' }])
    expect(asked).toEqual([])
  })
})

it('series, labels and their texts are those of the tenant', async () => {
  succeeds([
    { __name__: 'up', job: 'b' },
    { __name__: 'up', job: 'a' },
  ])
  expect(await get('series', { 'match[]': 'up', start: '1', end: '2' })).toEqual([
    200,
    {
      status: 'success',
      data: [
        { __name__: 'up', job: 'a' },
        { __name__: 'up', job: 'b' },
      ],
    },
  ])
  succeeds(['b', 'a'])
  expect(await get('labels', { start: '1', end: '2' })).toEqual([200, { status: 'success', data: ['a', 'b'] }])
  expect(await get('label/job/values', { 'match[]': '{a=~"x|y"}', start: '1', end: '2' })).toMatchObject([200, {}])
  const range = { start: '1', end: '2' }
  expect(asked.map(({ path, form }) => [path, form])).toEqual([
    ['/prometheus/api/v1/series', { ...range, 'match[]': 'up{tenant="default"}' }],
    ['/prometheus/api/v1/labels', { ...range, 'match[]': '{tenant="default"}' }],
    ['/prometheus/api/v1/label/job/values', { ...range, 'match[]': '{tenant="default",a=~"x|y"}' }],
  ])
})

it('only who may read all of the tenant is answered', async () => {
  succeeds(vector)
  const bob = await tokenFor(server.root, 'bob', '')
  const narrow = await tokenFor(server.root, 'root', 'COLLECT host.*')
  for (const token of [bob, narrow]) {
    for (const path of ['query', 'series', 'labels', 'label/a/values']) {
      expect(await get(path, { query: 'up', 'match[]': 'up' }, token)).toMatchObject([
        403,
        { errorType: 'forbidden', error: expect.stringContaining('only who may read all metrics of the tenant') },
      ])
    }
  }
  expect(asked).toEqual([])
})

describe('what goes wrong there', () => {
  it.each<[what: string, body: unknown, status: number, expected: [number, object]]>([
    ['is wrong', { status: 'error', errorType: 'x', error: 'e' }, 400, [400, { errorType: 'bad_data', error: 'e' }]],
    ['fails', { status: 'error', errorType: '422', error: 'e' }, 422, [422, { errorType: 'execution', error: 'e' }]],
    ['takes long', { status: 'error', error: 'e' }, 503, [503, { errorType: 'timeout', error: 'e' }]],
    ['is refused', { status: 'error', error: 'e' }, 401, [503, { errorType: 'unavailable' }]],
    ['is a redirect', {}, 302, [503, { errorType: 'unavailable' }]],
    ['is no JSON', '<html>', 200, [503, { errorType: 'unavailable' }]],
    ['is cut off', '{"status":"success","data":{', 200, [503, { errorType: 'unavailable' }]],
    ['is unknown', { status: 'success', data: { resultType: 'x' } }, 200, [503, { errorType: 'unavailable' }]],
  ])('is said: %s', async (_what, body, status, expected) => {
    gives(body, status)
    expect(await get('query', { query: 'up' })).toMatchObject(expected)
  })

  it.each<[what: string, resultType: string, result: unknown]>([
    ['no labels but a text', 'vector', [{ metric: 'x', value: [1, '1'] }]],
    ['a label that is a number', 'vector', [{ metric: { a: 1 }, value: [1, '1'] }]],
    ['no value', 'vector', [{ metric: {} }]],
    ['a value that is a number', 'vector', [{ metric: {}, value: [1, 1] }]],
    ['a value that is no number', 'vector', [{ metric: {}, value: [1, 'one'] }]],
    ['no time', 'vector', [{ metric: {}, value: ['now', '1'] }]],
    ['no list of values', 'matrix', [{ metric: {}, values: 1 }]],
    ['values without a time', 'matrix', [{ metric: {}, values: [null] }]],
    ['no scalar', 'scalar', null],
    ['no text', 'string', [1]],
  ])('is said where an answer has %s', async (_what, resultType, result) => {
    succeeds({ resultType, result })
    expect(await get('query', { query: 'up' })).toMatchObject([
      503,
      { errorType: 'unavailable', error: expect.stringContaining('gave an answer that cannot be read') },
    ])
  })

  it('is said where labels of series are no texts', async () => {
    succeeds([{ __name__: 1 }])
    expect(await get('series', { 'match[]': 'up' })).toMatchObject([503, { errorType: 'unavailable' }])
  })

  it('is said where it is not there, or a file is missing, without a secret', async () => {
    elsewhere.closeAllConnections()
    answering = (response) => response.destroy()
    const [status, body] = await get('query', { query: 'up' })
    expect([status, body]).toMatchObject([503, { errorType: 'unavailable' }])
    rmSync(join(directory, 'token'))
    const [, missing] = await get('query', { query: 'up' })
    expect(missing).toMatchObject({ error: 'history.engine gives no answer: ENOENT; the log of the server says more' })
    for (const hidden of ['hunter2', directory, '127.0.0.1'])
      expect(JSON.stringify([body, missing])).not.toContain(hidden)
  })

  it('is an answer without end, which is given up, whether its series or one of them never ends', async () => {
    const endless = (begin: string, more: string): void => {
      answering = (response) => {
        response.writeHead(200).write(`{"status":"success","data":{"resultType":"vector","result":[${begin}`)
        const write = (): void => {
          while (!response.destroyed && response.write(more));
          if (!response.destroyed) response.once('drain', write)
        }
        response.on('close', () => ended++)
        write()
      }
    }
    let ended = 0
    const one = `{"metric":{"a":"${'x'.repeat(1_000)}"},"value":[1,"1"]},`
    endless('', one.repeat(100))
    expect(await get('query', { query: 'up' })).toMatchObject([
      503,
      { errorType: 'unavailable', error: expect.stringContaining('too much memory') },
    ])
    endless('{"metric":{"a":"', 'x'.repeat(100_000))
    expect(await get('query', { query: 'up' })).toMatchObject([
      503,
      { errorType: 'unavailable', error: expect.stringContaining('an element of more than') },
    ])
    await eventually(() => expect(ended).toBe(2))
  })

  it('takes no longer than a query may, and ends with its connection', async () => {
    let ended = 0
    answering = (response) => void response.on('close', () => ended++)
    // The thread of queries has a clock of its own.
    expect(await get('query', { query: 'up', timeout: '100ms' })).toMatchObject([503, { errorType: 'timeout' }])
    const before = asked.length
    const aborted = new AbortController()
    const headers = { authorization: `Bearer ${root}` }
    const gone = fetch(`${server.url}/api/v1/query?query=up`, { headers, signal: aborted.signal }).catch(() => 'gone')
    await eventually(() => expect(asked).toHaveLength(before + 1))
    aborted.abort()
    expect(await gone).toBe('gone')
    await eventually(() => expect(ended).toBe(before + 1))
  })
})

it('remote read is not passed on', async () => {
  const answer = await server.post('/api/v1/read', readRequest([]), READ_HEADERS, root)
  expect([answer.status, await answer.json()]).toMatchObject([
    503,
    { errorType: 'unavailable', error: expect.stringContaining('read from that server') },
  ])
})
