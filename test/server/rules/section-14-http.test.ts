/** DEF_CHANNEL with a URL to which values are delivered by HTTP [MON 14]. */
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { decodeWriteRequest, decompress } from '../../../protocol/prometheus/remote-write.ts'
import { finish } from '../../../server/kernel/core/fair-work.ts'
import { args, command, opaque, status, type } from '../../support/bytes.ts'
import { eventually } from '../../support/eventually.ts'
import { TestProducer } from '../../support/producer.ts'
import { decoded } from '../../support/records.ts'
import type { Seat } from '../../support/seat.ts'

const BEARER = 'a-token-that-nobody-may-see'
const LIMITS = { bytes: 1 << 20, elements: 100_000 }

let destination: Server
let requests: { headers: IncomingMessage['headers']; path: string; body: Buffer }[]
let answer = 204
let url = ''
let producer: TestProducer
let boss: Seat

beforeEach(async () => {
  requests = []
  answer = 204
  destination = createServer((request, response) => {
    const parts: Buffer[] = []
    request.on('data', (part: Buffer) => parts.push(part))
    request.on('end', () => {
      requests.push({ headers: request.headers, path: request.url ?? '', body: Buffer.concat(parts) })
      response.writeHead(answer).end('what the destination answers')
    })
  })
  await new Promise<void>((resolve) => destination.listen(0, '127.0.0.1', resolve))
  const { port } = destination.address() as AddressInfo
  url = `prometheus+http://127.0.0.1:${port}/api/v1/write`
  const allow = [`prometheus+http://127.0.0.1:${port}`, 'otlp+https://*.example']
  producer = await TestProducer.start({ config: { dial: { allow } } })
  await producer.addUser('boss', { role: 'admin' })
  boss = await producer.seat('boss')
})
afterEach(async () => {
  await producer.stop()
  destination.closeAllConnections()
  await new Promise((resolve) => destination.close(resolve))
})

const bearer = (text = BEARER) => ['bearer', type.opaque, opaque(Buffer.from(text))] as const
const define = (to: string, ...given: readonly (readonly [string, number, Uint8Array])[]) =>
  boss.ask((seq) => command.defChannel(seq, to, args(...given)))

async function until(holds: () => void | Promise<void>): Promise<void> {
  await eventually(async () => {
    producer.clock.advance(500)
    await producer.settle()
    await holds()
  })
}

describe('a channel with such a URL', () => {
  it('delivers what is bound on it with its bearer, and commits what was taken', async () => {
    const { result: channel } = await define(url, bearer())
    await boss.follow('test.a', channel)
    producer.emit(1)
    await until(async () => expect(await boss.ledger(channel)).toMatchObject({ accepted: 1, committed: 1, url }))
    expect(requests[0]).toMatchObject({ path: '/api/v1/write', headers: { authorization: `Bearer ${BEARER}` } })
    const [series] = finish(decodeWriteRequest(decompress(requests[0]?.body as Buffer, LIMITS), LIMITS)).series
    expect(series).toMatchObject({ name: 'test_a', labels: [['host', 'h1']], samples: [{ value: 1 }] })
  })

  it('keeps its values and its bearer over a crash, and shows neither what answers nor the bearer', async () => {
    answer = 500
    const { result: channel } = await define(url, bearer())
    await boss.follow('test.a', channel)
    producer.emit(1)
    await until(() => expect(requests.length).toBeGreaterThan(1))
    // Its numbers, the random id among them, may contain anything.
    const shown = JSON.stringify(decoded(await boss.query('producer.channels'))).replace(/\d{4,}/g, '')
    expect(shown).not.toMatch(/a-token|what the destination|500/)
    answer = 204
    requests.length = 0
    producer = await producer.crash()
    boss = await producer.seat('boss')
    await until(async () => expect(await boss.ledger(channel)).toMatchObject({ accepted: 1, committed: 1 }))
    expect(requests[0]?.headers.authorization).toBe(`Bearer ${BEARER}`)
    expect(producer.logged.join('\n')).not.toContain(BEARER)
  })

  it('takes another bearer by its name, from the next request on', async () => {
    const name = ['name', type.string, Buffer.from([0, 0, 0, 1, 110, 0, 0, 0])] as const
    const { result: channel } = await define(url, name, bearer('first'))
    expect((await define(url, name, bearer('second'))).result).toBe(channel)
    expect((await define(url, name)).result).toBe(channel)
    await boss.follow('test.a', channel)
    producer.emit(1)
    await until(() => expect(requests[0]?.headers.authorization).toBe('Bearer second'))
  })

  it('needs no bearer', async () => {
    const { result: channel } = await define(url)
    await boss.follow('test.a', channel)
    producer.emit(1)
    await until(() => expect(requests).not.toHaveLength(0))
    expect(requests[0]?.headers.authorization).toBeUndefined()
  })

  it('is one-way: no consumer takes it', async () => {
    const { result: channel } = await define(url)
    const taken = await boss.ask((seq) => command.setChannel(seq, channel))
    expect(taken.status).toBe(status.UNSUPPORTED)
  })
})

describe('DEF_CHANNEL', () => {
  it('refuses a destination that is not on the list of the operator', async () => {
    for (const other of ['prometheus+http://127.0.0.1:1/', 'otlp+http://a.example/', 'prometheus+https://a.example/']) {
      expect((await define(other)).status).toBe(status.PERMISSION_DENIED)
    }
    expect((await define('otlp+https://a.example/v1/metrics', bearer())).status).toBe(status.OK)
  })

  it.each([
    ['otlp+http://a.example/', bearer(), /in clear/],
    ['tcp://127.0.0.1', bearer(), /delivered by HTTP/],
    ['', bearer(), /goes with a URL/],
    ['otlp+https://a.example/', bearer('two words'), /`bearer` has 1 to 4096 bytes/],
    ['otlp+https://a.example/', bearer(''), /`bearer` has 1 to 4096 bytes/],
    ['otlp+https://a.example/?token=x', bearer(), /query/],
    ['otlp+https://a.example/', ['secret', type.opaque, opaque(Buffer.alloc(16))] as const, /leave `secret` out/],
  ])('to %s with %j is INVALID_ARGUMENT', async (to, given, detail) => {
    const refused = await define(to, given)
    expect(refused).toMatchObject({ status: status.INVALID_ARGUMENT, detail: expect.stringMatching(detail) })
  })
})
