import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Fastify from 'fastify'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { hardenHttp } from '../../../../server/connections/http/hardening.ts'
import { TestProducer } from '../../../support/producer.ts'

const address = { host: '127.0.0.1', port: 0 }
const directory = mkdtempSync(join(tmpdir(), 'cinnabar-pages-'))
writeFileSync(join(directory, 'page.html'), '<!doctype html>')
const made: TestProducer[] = []
async function start(http: object = {}): Promise<{ producer: TestProducer; port: number }> {
  const config = { listen: { http: address }, http: { allowedOrigins: [], requestsPerMinute: 600, ...http } }
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

function upgrade(to: number, path: string): Promise<{ status: number; text: string }> {
  return new Promise((resolve) => {
    const socket = new WebSocket(`ws://127.0.0.1:${to}${path}`, ['monitoring.json'])
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
