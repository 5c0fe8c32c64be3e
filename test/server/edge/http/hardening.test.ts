import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { hostname, tmpdir } from 'node:os'
import { join as joinPath } from 'node:path'
import Fastify from 'fastify'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { hardenHttp } from '../../../../server/edge/http/hardening.ts'
import { command, join, str } from '../../../support/bytes.ts'
import { TestProducer } from '../../../support/producer.ts'
import { RawPeer } from '../../../support/raw-peer.ts'

const address = { host: '127.0.0.1', port: 0 }
const directory = mkdtempSync(joinPath(tmpdir(), 'cinnabar-pages-'))
writeFileSync(joinPath(directory, 'page.html'), '<!doctype html>')
const made: TestProducer[] = []
async function start(http: object = {}): Promise<{ producer: TestProducer; port: number }> {
  const config = { listen: { http: address }, http: { allowedOrigins: [], hosts: [], requestsPerMinute: 600, ...http } }
  const producer = await TestProducer.start({ config })
  made.push(producer)
  return { producer, port: producer.server.http?.port ?? 0 }
}
let port: number
beforeAll(async () => {
  port = (await start()).port
})
afterEach(async () => {
  for (const producer of made.splice(1)) await producer.stop()
})
afterAll(async () => {
  await made[0]?.stop()
  rmSync(directory, { recursive: true })
})

interface Asked {
  readonly headers?: Record<string, string>
  readonly method?: string
  readonly body?: string
  /** Of loopback, to ask from. */
  readonly from?: string
}

function ask(to: number, path: string, { headers = {}, method = 'GET', body, from }: Asked = {}) {
  return new Promise<{ status: number; headers: IncomingMessage['headers']; text: string }>((resolve, reject) => {
    const options = { host: '127.0.0.1', port: to, path, headers, method, ...(from ? { localAddress: from } : {}) }
    const asking = request(options, (response) => {
      let text = ''
      response.on('data', (chunk: Buffer) => {
        text += chunk.toString()
      })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }))
    })
    asking.on('error', reject)
    asking.end(body)
  })
}

function upgrade(to: number, path: string, headers = {}): Promise<{ status: number; text: string }> {
  return new Promise((resolve) => {
    const socket = new WebSocket(`ws://127.0.0.1:${to}${path}`, ['monitoring.json'], { headers })
    socket.on('error', () => {})
    socket.on('open', () => {
      socket.terminate()
      resolve({ status: 101, text: '' })
    })
    socket.on('unexpected-response', (_request, response: IncomingMessage) => {
      let text = ''
      response.on('data', (chunk: Buffer) => {
        text += chunk.toString()
      })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }))
    })
  })
}

/** The status with which bytes are answered, and closed. */
function raw(bytes: string): Promise<number> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port })
    let text = ''
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString()
    })
    socket.on('error', () => {})
    socket.on('close', () => resolve(Number(/^HTTP\/1.1 (\d+) /.exec(text)?.[1])))
    socket.write(bytes)
  })
}

describe('every answer', () => {
  it.each(['/healthz', '/readyz', '/client.js', '/none', '/monitor'])('%s has the headers of helmet', async (path) => {
    const { headers } = await ask(port, path)
    expect(headers).toMatchObject({
      'content-security-policy': expect.stringContaining("default-src 'self'"),
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'SAMEORIGIN',
      'referrer-policy': 'no-referrer',
    })
    expect(headers['content-security-policy']).toContain("object-src 'none'")
    // Only what was encrypted may ask for it to stay so.
    expect(headers).not.toHaveProperty('strict-transport-security')
  })

  it('lets scripts stand in pages only where the operator serves pages', async () => {
    expect((await ask(port, '/client.js')).headers['content-security-policy']).not.toContain('unsafe-inline')
    const pages = await start({ pages: directory })
    const { status, headers } = await ask(pages.port, '/page.html')
    expect(status).toBe(200)
    expect(headers['content-security-policy']).toContain("script-src 'self' 'unsafe-inline'")
    expect(headers['content-security-policy']).not.toContain('unsafe-eval')
  })
})

describe('a token in a URL', () => {
  it.each(['?token=cnb_secret', '?access_token=x&y=z', '?%74oken=cnb_secret'])(
    '(%s) is refused with what to do instead, and not repeated',
    async (query) => {
      const { status, text } = await upgrade(port, `/monitor${query}`)
      expect([status, text]).toEqual([400, expect.stringContaining('AUTH')])
      expect(text).not.toContain('cnb_secret')
      expect(made[0]?.logged.join('')).not.toContain('cnb_secret')
    },
  )

  it('in the path leads nowhere', async () => {
    expect((await upgrade(port, '/monitor/cnb_secret')).status).toBe(404)
  })
})

describe('a request', () => {
  it('has a URL and headers of 8 KiB at most: 431', async () => {
    expect(
      await raw(`GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\nmore: ${'x'.repeat(7_000)}\r\n\r\n`),
    ).toBe(200)
    expect(await raw(`GET /healthz HTTP/1.1\r\nhost: x\r\nmore: ${'x'.repeat(8_200)}`)).toBe(431)
    expect(await raw(`GET /${'x'.repeat(8_200)}`)).toBe(431)
  })

  it('needs no body, and may have 1 KiB at most: 413', async () => {
    const headers = { 'content-type': 'application/json' }
    const body = JSON.stringify('x'.repeat(2_000))
    expect((await ask(port, '/healthz', { method: 'POST', headers, body: '{}' })).status).toBe(404)
    expect((await ask(port, '/healthz', { method: 'POST', headers, body })).status).toBe(413)
  })

  it('that is no HTTP is answered 400 and closed', async () => {
    expect(await raw('\0\0\0\x08\0\0\0\0')).toBe(400)
  })
})

describe('requests per minute', () => {
  it('are bounded for each address by itself: 429, also for the WebSocket', async () => {
    const few = await start({ requestsPerMinute: 5 })
    for (let count = 0; count < 5; count++) expect((await ask(few.port, '/client.js')).status).toBe(200)
    const { status, text } = await ask(few.port, '/client.js')
    expect([status, text]).toEqual([429, expect.stringContaining('too many requests')])
    expect((await ask(few.port, '/none')).status).toBe(429)
    expect((await upgrade(few.port, '/monitor')).status).toBe(429)
    expect((await ask(few.port, '/client.js', { from: '127.0.0.2' })).status).toBe(200)
  })

  it('never keep what watches over the process from asking, from this machine', async () => {
    const few = await start({ requestsPerMinute: 2 })
    for (let count = 0; count < 10; count++) {
      expect((await ask(few.port, '/healthz')).status).toBe(200)
      expect((await ask(few.port, '/readyz')).status).toBe(200)
    }
    expect((await ask(few.port, '/client.js')).status).toBe(200)
  })

  it.each([
    ['192.0.2.1', '192.0.2.1', '192.0.2.2'],
    ['::ffff:192.0.2.1', '192.0.2.1', '::ffff:192.0.2.2'],
    ['2001:db8:0:1::1', '2001:db8:0:1:ffff::2', '2001:db8:0:2::1'],
  ])('from %s are those from %s, not those from %s, whatever the path and headers', async (one, same, other) => {
    const app = Fastify()
    const options = { isOwnName: () => true, encrypted: false, hasPages: false, healthPaths: ['/healthz'] }
    await hardenHttp(app, { ...options, requestsPerMinute: 1 })
    app.get('/healthz', () => ({}))
    const from = async (remoteAddress: string): Promise<number> => {
      const headers = { 'x-forwarded-for': '127.0.0.1', 'x-real-ip': '127.0.0.1', forwarded: 'for=127.0.0.1' }
      return (await app.inject({ url: '/healthz', remoteAddress, headers })).statusCode
    }
    expect([await from(one), await from(same), await from(other)]).toEqual([200, 429, 200])
    await app.close()
  })
})

describe('a Host that is no name of this server', () => {
  const host = 'evil.example:7651'

  it('is answered 421 with the key to set, for pages and the WebSocket; health is for everybody', async () => {
    const pages = await start({ pages: directory })
    for (const path of ['/page.html', '/client.js', '/none', '/monitor']) {
      const { status, text } = await ask(pages.port, path, { headers: { host } })
      expect([status, text]).toEqual([421, expect.stringContaining('http.hosts')])
    }
    for (const path of ['/healthz', '/readyz', '/healthz?from=balancer']) {
      expect((await ask(pages.port, path, { headers: { host } })).status).toBe(200)
    }
    const rebound = { host, origin: `http://${host}` }
    expect((await upgrade(pages.port, '/monitor', rebound)).status).toBe(421)
    // That is a program.
    expect((await upgrade(pages.port, '/monitor', { host })).status).toBe(101)
  })

  it.each(['localhost', hostname(), 'Monitor.Example', '127.0.0.1', '[::1]', '192.0.2.1'])(
    'is not %s: it is known, or in `http.hosts`',
    async (name) => {
      const pages = await start({ pages: directory, hosts: ['monitor.example'] })
      const named = { host: `${name}:7651` }
      expect((await ask(pages.port, '/page.html', { headers: named })).status).toBe(200)
      expect((await upgrade(pages.port, '/monitor', { ...named, origin: `http://${named.host}` })).status).toBe(101)
    },
  )
})

describe('connections', () => {
  /** A connection whose request never ends. */
  const unfinished = (to: number): Promise<Socket> => {
    return new Promise((resolve) => {
      const socket = connect({ host: '127.0.0.1', port: to }, () => resolve(socket))
      socket.on('error', () => {})
      socket.write('GET /healthz HTTP/1.1\r\nhost: x\r\n')
    })
  }
  /** Waits for something that other connections do. */
  const until = async (isSo: () => boolean): Promise<void> => {
    while (!isSo()) await new Promise((resolve) => setImmediate(resolve))
  }

  it('of HTTP count with all others, and the oldest gives way to whoever logs in', async () => {
    const config = { listen: { http: address, tcp: address }, limits: { connections: 10 } }
    const producer = await TestProducer.start({ config })
    made.push(producer)
    const { http, tcp, sessions } = producer.server
    const idle: Socket[] = []
    for (let n = 0; n < 30; n++) idle.push(await unfinished(http?.port ?? 0))
    await until(() => sessions.admission.evicted === 20 && idle.filter(({ destroyed }) => destroyed).length === 20)
    const peer = new RawPeer(connect({ host: '127.0.0.1', port: tcp?.port ?? 0 }))
    await peer.until('caps')
    peer.send(command.auth(1, 'password', join(str('admin'), str('admin-password'))))
    expect(await peer.response(1)).toMatchObject({ status: 0 })
    for (let n = 0; n < 30; n++) idle.push(await unfinished(http?.port ?? 0))
    expect(sessions.admission).toMatchObject({ open: 10, unauthenticated: 9, refused: 0 })
    peer.send(command.nop(2))
    expect(await peer.response(2)).toMatchObject({ status: 0 })
    peer.destroy()
    for (const socket of idle) socket.destroy()
    await until(() => sessions.admission.open === 0)
  })

  it('of WebSocket have the place of their request', async () => {
    const { producer, port: to } = await start()
    const socket = new WebSocket(`ws://127.0.0.1:${to}/monitor`, ['monitoring.json'])
    await new Promise((resolve) => socket.once('message', resolve))
    const { admission } = producer.server.sessions
    expect(admission).toMatchObject({ open: 1, unauthenticated: 1 })
    socket.send('{"cmd":"AUTH","seq":1,"method":"password","identity":"admin","password":"admin-password"}')
    await new Promise((resolve) => socket.once('message', resolve))
    expect(admission).toMatchObject({ open: 1, unauthenticated: 0 })
    socket.terminate()
    await until(() => admission.open === 0)
  })

  it('of HTTP are idle for a second at most, and have a hundred requests', async () => {
    const { headers } = await ask(port, '/healthz', { headers: { connection: 'keep-alive' } })
    expect(headers['keep-alive']).toBe('timeout=1, max=100')
  })
})
