/** Streamable HTTP: who is let in, what is refused before the protocol sees it, and what has a bound. */
import { readFileSync, writeFileSync } from 'node:fs'
import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Authority } from '../../support/certificates.ts'
import type { Child } from '../../support/child.ts'
import { compiled } from '../../support/compiled.ts'
import { eventually } from '../../support/eventually.ts'
import { runToEnd } from '../../support/run-to-end.ts'
import { AgentWorld } from './agent.ts'

const INITIALIZE = JSON.stringify({
  ...{ jsonrpc: '2.0', id: 1, method: 'initialize' },
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '1' } },
})

const world = new AgentWorld()
let door: { readonly child: Child; readonly url: string }
let token = ''
let other = ''

beforeAll(async () => {
  await world.start()
  token = await world.user('one', 'consumer')
  other = await world.user('two', 'consumer')
  door = await world.listening()
})
afterAll(() => world.remove())

interface RawAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, unknown>>
  readonly body: string
}

interface RawRequest {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly bearer?: string | undefined
  readonly ca?: string
}

/** A request whose headers are exactly these: browsers and fetch do not let a program say another `Host`. */
function ask(url: string, { method = 'POST', headers = {}, body = INITIALIZE, bearer = token, ca }: RawRequest = {}) {
  return new Promise<RawAnswer>((resolve, reject) => {
    const all = {
      ...{ accept: 'application/json, text/event-stream', 'content-type': 'application/json' },
      ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }),
      ...headers,
    }
    const answered =
      ca === undefined
        ? requestHttp(url, { method, headers: all })
        : requestHttps(url, { method, headers: all, ca, servername: 'localhost' })
    answered.once('response', (response) => {
      let text = ''
      response.on('data', (chunk) => {
        text += String(chunk)
      })
      response.once('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text }))
    })
    answered.once('error', reject)
    answered.end(method === 'POST' ? body : undefined)
  })
}

describe('a request', () => {
  it('needs a token that the server accepts', async () => {
    const without = await ask(door.url, { headers: { authorization: '' } })
    expect(without).toMatchObject({ status: 401, headers: { 'www-authenticate': 'Bearer' } })
    const wrong = await ask(door.url, { bearer: `cnb_${'x'.repeat(43)}` })
    expect(wrong.status).toBe(401)
    expect(wrong.body).toContain('does not accept the token')
    const right = await ask(door.url)
    expect(right).toMatchObject({ status: 200, headers: { 'mcp-session-id': expect.stringMatching(/^[\w-]{36}$/) } })
  })

  it.each([
    ['another host', { host: 'evil.example.com' }, 403],
    ['another host with our port', { host: 'evil.example.com:PORT' }, 403],
    ['another port', { host: '127.0.0.1:1' }, 403],
    ['a page from elsewhere', { origin: 'http://evil.example.com' }, 403],
    ['a page that hides where it is from', { origin: 'null' }, 403],
    ['a page of another server of this machine', { origin: 'http://localhost:1' }, 403],
    ['this server by another name of this machine', { host: 'localhost:PORT' }, 200],
    ['a page of this server', { origin: 'http://127.0.0.1:PORT' }, 200],
  ] as const)('that names %s', async (_, headers, status) => {
    const { port } = new URL(door.url)
    const named = Object.fromEntries(Object.entries(headers).map(([name, text]) => [name, text.replace('PORT', port)]))
    expect((await ask(door.url, { headers: named })).status).toBe(status)
  })

  it('is for /mcp, is JSON, and has at most 1 MiB, or 64 KiB if it begins a session', async () => {
    expect((await ask(door.url.replace('/mcp', '/'))).status).toBe(404)
    expect((await ask(door.url, { body: '{' })).status).toBe(400)
    expect((await ask(door.url, { body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}' })).status).toBe(400)
    expect((await ask(door.url, { method: 'GET' })).status).toBe(400)
    expect((await ask(door.url, { body: JSON.stringify('x'.repeat(65_536)) })).status).toBe(413)
    const { headers: begun } = await ask(door.url)
    const headers = { 'mcp-session-id': String(begun['mcp-session-id']), 'mcp-protocol-version': '2025-11-25' }
    const ping = (text: string) => ({
      headers,
      body: JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'ping', params: { _meta: { text } } }),
    })
    expect((await ask(door.url, ping('x'.repeat(65_536)))).status).toBe(200)
    expect((await ask(door.url, ping('x'.repeat(1 << 20)))).status).toBe(413)
  })

  it('belongs to the token that began its session', async () => {
    const { headers } = await ask(door.url)
    const of = { 'mcp-session-id': String(headers['mcp-session-id']), 'mcp-protocol-version': '2025-11-25' }
    const body = '{"jsonrpc":"2.0","id":2,"method":"ping"}'
    expect((await ask(door.url, { headers: of, body, bearer: other })).status).toBe(404)
    expect((await ask(door.url, { headers: of, body })).status).toBe(200)
    expect((await ask(door.url, { headers: { 'mcp-session-id': 'made-up' }, body })).status).toBe(404)
    expect((await ask(door.url, { headers: of, method: 'DELETE' })).status).toBe(200)
    expect((await ask(door.url, { headers: of, body })).status).toBe(404)
  })
})

it('each client has the rights of its own token', async () => {
  await world.token('one', 'narrow', 'COLLECT host.load.*\nCOLLECT producer.connections')
  const narrow = await world.overHttp(door.url, readFileSync(world.tokenFile('narrow'), 'utf8').trim())
  expect((await narrow.call('metrics_read', { metric: 'host.load.one' })).answer).toBeDefined()
  expect((await narrow.call('metrics_read', { metric: 'host.mem.free' })).text).toMatch(
    /NO_SUCH_METRIC|PERMISSION_DENIED/,
  )
  const wide = await world.overHttp(door.url, token)
  expect((await wide.call('metrics_read', { metric: 'producer.stats.uptime' })).answer).toBeDefined()
  const mine = await narrow.call('explain', { command: 'COLLECT', object: 'producer.stats' })
  expect(mine.answer).toMatchObject({ identity: 'one', allowed: false })
  await narrow.close()
  await wide.close()
})

it('a session ends when its token is revoked', async () => {
  const revoked = await world.user('three', 'consumer')
  const agent = await world.overHttp(door.url, revoked)
  expect((await agent.call('metrics_read', { metric: 'host.load.one' })).answer).toBeDefined()
  await world.run('user.remove', { user: 'three' })
  await eventually(() => expect(door.child.errors).toMatch(/has ended: the server has ended its login/))
  await expect(agent.call('metrics_read', { metric: 'host.load.one' })).rejects.toThrow(/no such session/)
  await agent.client.close()
})

it('with --token-file only that token is let in', async () => {
  const { url } = await world.listening(['--token-file', world.tokenFile('one')])
  expect((await ask(url, { bearer: other })).status).toBe(401)
  expect((await ask(url)).status).toBe(200)
})

it('one session more than there may be ends the one that was left alone for longest', async () => {
  const { url } = await world.listening(['--max-sessions', '2'])
  const sessions: Record<string, string>[] = []
  for (let begun = 0; begun < 3; begun++) {
    const { headers } = await ask(url)
    sessions.push({ 'mcp-session-id': String(headers['mcp-session-id']), 'mcp-protocol-version': '2025-11-25' })
  }
  const pings = sessions.map((headers) => ask(url, { headers, body: '{"jsonrpc":"2.0","id":2,"method":"ping"}' }))
  expect((await Promise.all(pings)).map(({ status }) => status)).toEqual([404, 200, 200])
})

it('guesses of tokens are slowed down', async () => {
  const { url } = await world.listening()
  const statuses: number[] = []
  for (let guess = 0; guess < 32; guess++) statuses.push((await ask(url, { bearer: `guess-${guess}` })).status)
  expect(statuses).toEqual([...Array(30).fill(401), 429, 429])
})

it('calls with one token have a limit, over all its sessions', async () => {
  const { url } = await world.listening(['--calls-per-minute', '3'])
  const agents = [await world.overHttp(url, token), await world.overHttp(url, token)]
  const texts: string[] = []
  for (const agent of [...agents, ...agents]) {
    const { answer, text } = await agent.call('metrics_read', { metric: 'host.load.one' })
    texts.push(answer === undefined ? text : 'answered')
  }
  expect(texts).toEqual([
    'answered',
    'answered',
    'answered',
    expect.stringMatching(/3 calls a minute: try again in \d+ s/),
  ])
  const another = await world.overHttp(url, other)
  expect((await another.call('metrics_read', { metric: 'host.load.one' })).answer).toBeDefined()
  for (const agent of [...agents, another]) await agent.close()
})

it('an answer that is too long is cut, and says so', async () => {
  const { url } = await world.listening(['--max-answer', '4096'])
  const agent = await world.overHttp(url, token)
  const { answer, text } = await agent.call('metrics_search', { pattern: '*', limit: 1_000 })
  expect(Buffer.byteLength(text)).toBeLessThanOrEqual(4_096)
  expect(answer?.['cut']).toMatch(/^metrics: the first \d+ of \d+ are here: an answer has at most 4096 bytes/)
  expect(answer).not.toHaveProperty('next')
  await agent.close()
})

it('other machines are served under TLS alone', async () => {
  const program = compiled('packages/mcp/cinnabar-mcp.ts')
  const open = await runToEnd(process.execPath, [program, '--listen', '0.0.0.0:0'], {})
  expect(open).toMatchObject({ code: 2, out: expect.stringMatching(/others could read the tokens/) })
  const authority = await Authority.make()
  const { cert, key } = await authority.server()
  const files = Object.entries({ cert, key }).map(([name, text]) => {
    const path = join(world.server.directory, `${name}.pem`)
    writeFileSync(path, text, { mode: 0o600 })
    return path
  })
  const { url } = await world.listening([
    '--tls-cert',
    files[0] ?? '',
    '--tls-key',
    files[1] ?? '',
    '--allow-host',
    'mcp.example',
  ])
  expect(url).toMatch(/^https:/)
  const here = url.replace('127.0.0.1', 'localhost')
  expect((await ask(here, { ca: authority.cert })).status).toBe(200)
  expect((await ask(here, { ca: authority.cert, headers: { host: 'mcp.example' } })).status).toBe(200)
  expect((await ask(here, { ca: authority.cert, headers: { host: 'other.example' } })).status).toBe(403)
})

it('no log has a token', () => {
  expect(door.child.errors).toMatch(/session mcp-[0-9a-f]{12} has begun/)
  for (const secret of [token, other]) expect(door.child.errors).not.toContain(secret)
})
