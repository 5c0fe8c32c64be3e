/** `publish()`: what a server stores of it, and what becomes of its answers. */
import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { type ConnectionError, PublishError, publish } from '../../client/index.ts'
import { publisher } from '../../client/publish.ts'
import { Authority } from '../support/certificates.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { PublishingProducer } from '../support/publisher.ts'
import { decoded } from '../support/records.ts'

const credentials = { token: 'cnb_secret' }
const values = [{ name: 'a', value: 1 }]
const ends: (() => unknown)[] = []
afterEach(async () => {
  for (const end of ends.splice(0)) await end()
})

async function listening(server: Server, scheme: string): Promise<string> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  ends.push(() => server.closeAllConnections())
  ends.push(() => server.close())
  return `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`
}
const answering = (listener: RequestListener) => listening(createServer(listener), 'http')
const problem = (publishing: Promise<void>): Promise<unknown> =>
  publishing.then(
    () => undefined,
    (error: unknown) => error,
  )

describe('a server', () => {
  it('stores doubles, integers and sums with their labels, times and units', async () => {
    const server = await PublishingProducer.start()
    ends.push(() => server.stop())
    const { url, token } = server
    await publish(url, { token: async () => token }, [
      { name: 'room', value: 21.5, labels: { floor: '1' }, time: 1_600_000_000_123_456, unit: 'Cel' },
      { name: 'room', value: Number.NEGATIVE_INFINITY, labels: { floor: '2' } },
      { name: 'jobs', value: 2n ** 60n, isCounter: true, description: 'All jobs.' },
    ])
    const rows = decoded(await server.root.query('otlp.room'))
    expect(rows).toEqual([
      { floor: '1', time: 1_600_000_000_123_456, value: 21.5 },
      { floor: '2', time: expect.any(Number), value: expect.anything() },
    ])
    expect(decoded(await server.root.query('otlp.jobs'))).toMatchObject([{ value: String(2n ** 60n) }])
  })

  it('that answers 101 has not taken them', async () => {
    const url = await answering((request) => {
      request.socket.end('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n')
    })
    expect(await problem(publish(url, credentials, values))).toMatchObject({ status: 101 })
  })

  it('that takes some of them says which it does not', async () => {
    const server = await PublishingProducer.start()
    ends.push(() => server.stop())
    const bad = { name: 'b', value: 1, labels: { long: 'x'.repeat(2_000) } }
    const error = await problem(publish(server.url, { token: server.token }, [...values, bad]))
    expect(error).toBeInstanceOf(PublishError)
    expect(error).toMatchObject({ status: 200, rejected: 1, retryAfterS: undefined })
    expect((error as Error).message).toMatch(/^1 of the values was not taken: .*more than 1024 bytes.* \(HTTP 200\)$/)
    expect(decoded(await server.root.query('otlp.a'))).toHaveLength(1)
  })
})

describe('an answer', () => {
  it.each([
    [503, { 'retry-after': '30' }, '{"message":"the disk is full"}', { detail: 'the disk is full', retryAfterS: 30 }],
    [429, { 'retry-after': 'Fri, 01 Jan 2027 00:00:00 GMT' }, '{}', { detail: '', retryAfterS: undefined }],
    [404, {}, '<html>', { detail: '', retryAfterS: undefined }],
    [302, { location: 'http://192.0.2.1/' }, '', { detail: '', retryAfterS: undefined }],
  ])('with status %i is an error that has it', async (status, headers, body, expected) => {
    const url = await answering((_request, response) => void response.writeHead(status, headers).end(body))
    expect(await problem(publish(url, credentials, values))).toMatchObject({ ...expected, status, rejected: 1 })
  })

  it('that does not come in time is unknown', async () => {
    const clock = new FakeClock()
    const never = publisher((_url, _headers, _body, signal) => {
      const ended = new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      clock.advance(500)
      return ended
    }, clock)
    const error = await problem(never('http://127.0.0.1:1', credentials, values, { deadlineMs: 500 }))
    expect(error).toMatchObject({ code: 'TIMEOUT', message: expect.stringContaining('it is unknown') })
    expect(clock.timers).toBe(0)
  })

  it('is not asked for, and no timer waits for it, if the signal is aborted before', async () => {
    const clock = new FakeClock()
    const publishing = publisher(async () => expect.fail('nothing is sent'), clock)
    const signal = AbortSignal.abort(new Error('we left'))
    const publishingTo = publishing('http://127.0.0.1:1', credentials, values, { signal })
    expect(await problem(publishingTo)).toMatchObject({ message: 'we left' })
    expect(clock.timers).toBe(0)
  })

  it('is not waited for any more once the signal is aborted', async () => {
    const leave = new AbortController()
    const url = await answering(() => leave.abort(new Error('we leave')))
    expect(await problem(publish(url, credentials, values, { signal: leave.signal }))).toMatchObject({
      message: 'we leave',
    })
  })
})

describe('the token', () => {
  it('is sent over TLS to a server whose certificate is verified', async () => {
    const authority = await Authority.make()
    const issued = await authority.server()
    const server = createTlsServer(issued, ({ headers, url }, response) => {
      expect([headers.authorization, headers['content-type'], url]).toEqual([
        'Bearer cnb_secret',
        'application/json',
        '/v1/metrics',
      ])
      response.end('{}')
    })
    const url = (await listening(server, 'https')).replace('127.0.0.1', 'localhost')
    await publish(url, credentials, values, { tls: { ca: authority.cert } })
    const error = await problem(publish(url, credentials, values))
    expect((error as ConnectionError).code).toBe('UNTRUSTED')
  })

  it.each([
    ['http://192.0.2.1:7651', {}],
    ['https://192.0.2.1:7653', { tls: { rejectUnauthorized: false } }],
  ])('is not sent to %s, %o', async (url, options) => {
    const error = await problem(publish(url, credentials, values, options))
    expect(error).toMatchObject({ code: 'NO_METHOD' })
    expect(String(error)).not.toContain('cnb_secret')
  })

  it('stands in no error, and neither do parts of a URL that may be secret', async () => {
    const error = await problem(publish('http://user:pass@127.0.0.1:1', credentials, values))
    expect(error).toMatchObject({ code: 'BAD_URL' })
    expect(String(error)).not.toContain('pass@')
    expect(await problem(publish('http://127.0.0.1:1', credentials, values))).toMatchObject({ code: 'UNREACHABLE' })
  })
})
