/** `cinnabar query`: what is asked of a server, and how its answer is printed. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { runCli } from '../fake-cli.ts'

interface Asked {
  readonly path: string
  readonly authorization: string | undefined
  readonly form: Readonly<Record<string, string>>
}

let server: Server
let url: string
let asked: Asked[]
let answer: { status: number; body: string }
beforeEach(async () => {
  asked = []
  server = createServer(async (request: IncomingMessage, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    const form = Object.fromEntries(new URLSearchParams(body))
    asked.push({ path: request.url ?? '', authorization: request.headers.authorization, form })
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(answer.body)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterEach(() => new Promise((resolve) => server.close(resolve)))

const gives = (resultType: string, result: unknown, remarks: object = {}) => {
  answer = { status: 200, body: JSON.stringify({ status: 'success', data: { resultType, result }, ...remarks }) }
}
const query = (...words: string[]) =>
  runCli(['query', ...words], undefined, { env: { CINNABAR_URL: url, CINNABAR_TOKEN: 't0' } })

const vector = [
  { metric: { __name__: 'up', job: 'a' }, value: [1_700_000_000, '1'] },
  { metric: { __name__: 'up', job: 'b,"c"' }, value: [1_700_000_000, 'NaN'] },
]
const matrix = [
  {
    metric: {},
    values: [
      [0, '1'],
      [30, '+Inf'],
      [60, '3'],
    ],
  },
]

it('writes names that are no plain ones in quotes, as PromQL does', async () => {
  const metrics = [{ __name__: 'host.load' }, { __name__: 'up', 'a.b': 'x' }, { __name__: 'a b', c: 'y' }, {}]
  gives(
    'vector',
    metrics.map((metric) => ({ metric, value: [0, '1'] })),
  )
  const { out } = await query('x')
  const names = out.slice(1).map((row) => row.replace(/ +1$/, ''))
  expect(names).toEqual(['{"host.load"}', 'up{"a.b"="x"}', '{"a b", c="y"}', '{}'])
})

describe('what is asked', () => {
  it('is the value at a time', async () => {
    gives('vector', [])
    await query('up', '--at', '2023-11-14T22:13:20Z')
    expect(asked).toEqual([
      { path: '/api/v1/query', authorization: 'Bearer t0', form: { query: 'up', time: '1700000000' } },
    ])
  })

  it('begins with a minus after --', async () => {
    gives('vector', [])
    await query('--at', '2023-11-14T22:13:20Z', '--', '-up')
    expect(asked.map(({ form }) => form)).toEqual([{ query: '-up', time: '1700000000' }])
  })

  it('is a range, with a step for 120 points unless it says otherwise', async () => {
    gives('matrix', [])
    const [since, until] = ['2023-11-14T20:00:00Z', '2023-11-14T22:00:00Z']
    await query('up', '--since', since, '--until', until)
    await query('up', '--since', since, '--until', until, '--step', '15s')
    await query('up', '--until', until, '--plot')
    const end = String(Date.parse(until) / 1_000)
    const start = String(Date.parse(since) / 1_000)
    expect(asked.map(({ form }) => form)).toEqual([
      { query: 'up', start, end, step: '60' },
      { query: 'up', start, end, step: '15' },
      { query: 'up', start: String(Number(end) - 3_600), end, step: '30' },
    ])
    expect(asked.every(({ path }) => path === '/api/v1/query_range')).toBe(true)
  })

  it.each([
    [['up', '--at', '1h', '--step', '15s'], /--at is for one time/],
    [['up', '--since', '1h', '--until', '2h'], /--since has to be before --until/],
    [['up', '--json', '--csv'], /give one of --json, --csv and --plot/],
    [['up', '--step', 'soon'], /Expected a duration such as 15s/],
    [['up', '--at', 'soon'], /Expected how long ago/],
    [['up', '--url', 'tcp://127.0.0.1:7650'], /--url does not begin with http:\/\/ or https:\/\/: queries go to/],
    [['up', '--url', 'http://192.0.2.1:7651'], /others could read it: use https:/],
    [['up', '--url', 'http://a:b@127.0.0.1:1'], /without a user or password/],
  ])('%j is wrong usage', async (words, message) => {
    const { code, err } = await query(...words)
    expect([code, err.join('\n'), asked]).toEqual([2, expect.stringMatching(message), []])
    expect(err.join('\n')).not.toContain('a:b')
  })
})

describe('what is printed', () => {
  it('is a table of series', async () => {
    gives('vector', vector, { warnings: ['look out\u001b'], infos: ['by the way'] })
    const { code, out, err } = await query('up')
    expect([code, out]).toEqual([
      0,
      ['SERIES                 VALUE', 'up{job="a"}                1', 'up{job="b,\\"c\\""}        NaN'].map((row) =>
        expect.stringMatching(row.replace(/ {2,}/, ' +').replace(/[{}\\]/g, '\\$&')),
      ),
    ])
    expect(err).toEqual(['look out\\x1b', 'by the way'])
  })

  it('is a table of points, a number, or a text', async () => {
    gives('matrix', matrix)
    expect((await query('up', '--since', '1h')).out.map((row) => row.replace(/ +/g, ' '))).toEqual([
      'SERIES TIME VALUE',
      '{} 1970-01-01T00:00:00.000Z 1',
      '{} 1970-01-01T00:00:30.000Z +Inf',
      '{} 1970-01-01T00:01:00.000Z 3',
    ])
    gives('scalar', [0, '2'])
    expect((await query('1+1')).out).toEqual(['2'])
    gives('string', [0, 'a\u001b'])
    expect((await query('"a"')).out).toEqual(['a\\x1b'])
  })

  it('is JSON, an object per series', async () => {
    gives('vector', vector)
    expect((await query('up', '--json')).out.map((row) => JSON.parse(row))).toEqual(vector)
    gives('scalar', [0, '2'])
    expect((await query('2', '--json')).out).toEqual(['{"metric":{},"value":[0,"2"]}'])
  })

  it('is CSV', async () => {
    gives('vector', vector)
    expect((await query('up', '--csv')).out).toEqual([
      'time,__name__,job,value',
      '1700000000,up,a,1',
      '1700000000,up,"b,""c""",NaN',
    ])
    gives('vector', [])
    expect(await query('up', '--csv')).toMatchObject({ out: ['time,value'], err: [] })
  })

  it('is a drawing', async () => {
    gives('matrix', matrix)
    const { out } = await query('up', '--since', '1970-01-01T00:00:00Z', '--until', '1970-01-01T00:01:00Z', '--plot')
    expect(out).toHaveLength(18)
    expect([out[0], out.at(-1)]).toEqual([expect.stringMatching(/^3 ┤ +\S$/), '━ {}'])
  })

  it('is a note where nothing matches', async () => {
    gives('vector', [])
    expect(await query('up')).toMatchObject({ code: 0, out: [], err: ['nothing matches'] })
  })
})

describe('what is wrong', () => {
  it.each<[number, string, number, RegExp]>([
    [400, JSON.stringify({ status: 'error', error: '1:3: parse error: x' }), 2, /1:3: parse error: x/],
    [422, JSON.stringify({ status: 'error', error: 'too many' }), 1, /too many/],
    [401, JSON.stringify({ status: 'error', error: 'the token is not valid' }), 1, /not valid\nThe token was revoked/],
    [404, '<html>', 1, /HTTP 404, and no answer of such a server\nThe address must be/],
    [200, '[]', 1, /HTTP 200, and no answer/],
  ])('is said: HTTP %i %s', async (status, body, code, message) => {
    answer = { status, body }
    const outcome = await query('up')
    expect([outcome.code, outcome.err.join('\n')]).toEqual([code, expect.stringMatching(message)])
    expect(outcome.err.join('\n')).toContain(`Used: ${url}, token from CINNABAR_TOKEN`)
  })

  it('is that nobody listens, or that there is no token', async () => {
    const nobody = await query('up', '--url', 'http://127.0.0.1:1')
    expect([nobody.code, nobody.err.join('\n')]).toEqual([1, expect.stringMatching(/cannot reach.*\n.*`listen\.http`/)])
    const { code, err } = await runCli(['query', 'up'], undefined, { env: { CINNABAR_URL: url } })
    expect([code, err.join('\n')]).toEqual([2, expect.stringMatching(/a token is needed.*\n.*--scope 'COLLECT \*'/)])
  })
})

describe('completion', () => {
  const complete = (...words: string[]) =>
    runCli(['complete', 'expression', '--', 'query', ...words], undefined, {
      env: { CINNABAR_URL: url, CINNABAR_TOKEN: 't0' },
    })
  beforeEach(() => {
    answer = { status: 200, body: JSON.stringify({ status: 'success', data: ['host_load_one', 'host:a', 'host ä'] }) }
  })

  it('offers the expression with each name that its last word begins', async () => {
    const { code, out, err } = await complete("'sum by (host) (rate(ho")
    expect({ code, out, err }).toEqual({
      code: 0,
      out: ['sum by (host) (rate(host_load_one', 'sum by (host) (rate(host:a'],
      err: [],
    })
    const form = { 'match[]': '{__name__=~"ho.*"}', limit: '1000' }
    expect(asked).toEqual([{ path: '/api/v1/label/__name__/values', authorization: 'Bearer t0', form }])
    expect((await complete('')).out).toEqual(['host_load_one', 'host:a'])
  })

  it('says nothing where nothing is found', async () => {
    answer = { status: 401, body: JSON.stringify({ status: 'error', error: 'no' }) }
    expect(await complete('ho')).toMatchObject({ code: 0, out: [], err: [] })
    expect(await complete('--url', 'tcp://h:1', 'ho')).toMatchObject({ code: 0, out: [], err: [] })
  })
})
