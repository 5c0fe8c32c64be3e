/** Queries over HTTP whose connection ends, whose time is over, or that find no turn or no history; and a real client, promtool. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer, get, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { RememberedHistory } from '../../../../../server/kit/history.ts'
import { eventually } from '../../../../support/eventually.ts'
import { EPOCH } from '../../../../support/producer.ts'
import { PublishingProducer, tokenFor } from '../../../../support/publisher.ts'
import { decoded } from '../../../../support/records.ts'

let server: PublishingProducer
let token: string
beforeEach(async () => {
  server = await PublishingProducer.start({ config: { query: { maxConcurrent: 1, maxSamples: 1_000 } } })
  token = await tokenFor(server.root, 'root', '')
})
afterEach(() => server.stop())

const headers = () => ({ authorization: `Bearer ${token}` })
const ask = async (path: string) => {
  const answer = await fetch(`${server.url}/api/v1/${path}`, { headers: headers() })
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> }
}

/** The history of the server gives these portions. */
function remember(select: RememberedHistory['select']): void {
  const { sources } = server.producer.server.parts
  const history = sources.find(({ remembered }) => remembered !== undefined)?.remembered
  if (history === undefined) throw new Error('there is no history')
  Object.defineProperties(history, { problem: { value: undefined }, select: { value: select } })
}

it('says how the history is switched on where it is off', async () => {
  for (const path of ['query?query=1', 'query_range', 'series', 'labels', 'label/a/values']) {
    expect(await ask(path)).toEqual({
      status: 503,
      body: { status: 'error', errorType: 'unavailable', error: expect.stringContaining('keep = "30d"') },
    })
  }
  expect(await ask('status/buildinfo')).toMatchObject({ status: 200 })
})

describe('a query that waits for the history', () => {
  let [begun, ended] = [0, 0]
  beforeEach(() => {
    ;[begun, ended] = [0, 0]
    remember(async function* () {
      begun++
      try {
        for (;;) {
          await new Promise((resolve) => setImmediate(resolve))
          yield []
        }
      } finally {
        ended++
      }
    })
  })

  it('ends when its connection does, and gives its turn to the next', async () => {
    const cut = get(`${server.url}/api/v1/query?query=a`, { headers: headers() }).on('error', () => {})
    await eventually(() => expect(begun).toBe(1))
    const next = ask('query?query=1')
    cut.destroy()
    expect(await next).toMatchObject({ status: 200 })
    await eventually(() => expect(ended).toBe(1))
    expect(decoded(await server.root.query('producer.queries'))).toMatchObject([{ served: 1, cancelled: 1 }])
  })

  it('ends when its time is over', async () => {
    // The thread of queries has a clock of its own.
    expect(await ask('query?query=a&timeout=10ms')).toEqual({
      status: 503,
      body: { status: 'error', errorType: 'timeout', error: 'query timed out in expression evaluation' },
    })
    await eventually(() => expect(ended).toBe(1))
    expect(decoded(await server.root.query('producer.queries'))).toMatchObject([{ timed_out: 1, cancelled: 0 }])
  })
})

it('of 66 of a tenant one finds no turn, and each is counted', async () => {
  let end = (): void => {}
  const held = new Promise<void>((resolve) => {
    end = resolve
  })
  remember(async function* () {
    await held
    yield []
  })
  const all = Array.from({ length: 66 }, () => fetch(`${server.url}/api/v1/query?query=a`, { headers: headers() }))
  const refused = await Promise.race(all)
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1'])
  const error = 'too many queries of the tenant wait for their turn'
  expect(await refused.json()).toEqual({ status: 'error', errorType: 'unavailable', error })
  end()
  const statuses = (await Promise.all(all)).map(({ status }) => status)
  expect(statuses.filter((status) => status === 200)).toHaveLength(65)
  const [counts] = decoded(await server.root.query('producer.queries'))
  expect(counts).toMatchObject({ tenant: 'default', served: 65, refused: 1 })
})

it('that reads more samples than it may ends', async () => {
  remember(async function* () {
    const times = Float64Array.from({ length: 1_001 }, (_, at) => at)
    yield [{ series: { name: 'a', labels: [] }, times, values: times, mayRead: () => true }]
  })
  expect(await ask('query?query=a&time=2')).toMatchObject({ status: 422, body: { errorType: 'execution' } })
})

it('of queries that hold too much memory together the last one of the tenant that holds most is refused', async () => {
  await server.stop()
  server = await PublishingProducer.start({ config: { query: { maxConcurrent: 3 } } })
  token = await tokenFor(server.root, 'root', '')
  const steps = 11_000
  let end = (): void => {}
  const held = new Promise<void>((resolve) => {
    end = resolve
  })
  // Each series is a column of 97 KiB: a query holds 45 MiB, and waits then.
  remember(async function* () {
    for (let n = 0; n < 470; n++) {
      const [times, values] = [Float64Array.of(0, 1e6 * steps), Float64Array.of(1, 1)]
      yield [{ series: { name: `a${n}`, labels: [] }, times, values, mayRead: () => true }]
    }
    await held
  })
  const path = `query_range?query={__name__=~"a.*"}&start=0&end=${steps}&step=1&limit=1`
  const all = [ask(path), ask(path), ask(path)]
  expect(await Promise.race(all)).toEqual({
    status: 503,
    body: {
      status: 'error',
      errorType: 'unavailable',
      error: 'queries hold too much memory together: ask again later, or for less',
    },
  })
  end()
  const statuses = (await Promise.all(all)).map(({ status }) => status)
  expect(statuses.toSorted()).toEqual([200, 200, 503])
  expect(decoded(await server.root.query('producer.queries'))).toMatchObject([{ served: 2, refused: 1, failed: 0 }])
})

// Without promtool there is no real client to ask with.
describe.skipIf(spawnSync('promtool', ['--version']).status !== 0)('promtool (apt install prometheus)', () => {
  it('gets what is there', async () => {
    const proxy = await withToken()
    const timeMs = EPOCH / 1_000
    remember(async function* () {
      const times = Float64Array.of(timeMs)
      yield [{ series: { name: 'a', labels: [['job', 'x']] }, times, values: Float64Array.of(7), mayRead: () => true }]
    })
    const at = String(timeMs / 1_000)
    const range = [`--start=${at}`, `--end=${timeMs / 1_000 + 1}`]
    const output = (kind: string, ...args: string[]) => outputOf(['query', kind, ...args])
    try {
      expect(await output('instant', `--time=${at}`, proxy.url, 'a')).toBe(`a{job="x"} => 7 @[${at}]\n`)
      expect(await output('range', ...range, '--step=10s', proxy.url, 'a')).toBe(`a{job="x"} =>\n7 @[${at}]\n`)
      expect(await output('series', '--match=a', ...range, proxy.url)).toBe('{__name__="a", job="x"}\n')
      expect(await output('labels', ...range, proxy.url, 'job')).toBe('x\n')
      expect(await output('instant', proxy.url, 'a{')).toContain('parse error')
    } finally {
      await proxy.stop()
    }
  })
})

/** Passes requests on, and adds the token: promtool has no option for one yet. */
async function withToken(): Promise<{ url: string; stop: () => Promise<unknown> }> {
  const proxy = createServer((incoming, outgoing) => {
    const { method, url = '', headers: given } = incoming
    const passed = request(server.url + url, { method, headers: { ...given, ...headers() } }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 0, answer.headers)
      answer.pipe(outgoing)
    })
    incoming.pipe(passed)
  }).listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  const { port } = proxy.address() as AddressInfo
  const stop = (): Promise<unknown> => {
    proxy.closeAllConnections()
    return new Promise((resolve) => proxy.close(resolve))
  }
  return { url: `http://127.0.0.1:${port}`, stop }
}

function outputOf(args: readonly string[]): Promise<string> {
  return new Promise((resolve) => {
    let text = ''
    const child = spawn('promtool', args)
    child.stdout.on('data', (chunk) => (text += chunk))
    child.stderr.on('data', (chunk) => (text += chunk))
    child.on('close', () => resolve(text))
  })
}
