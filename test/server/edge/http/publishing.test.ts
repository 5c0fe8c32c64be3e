/** Rights before work: what the headers of a POST decide is answered before its body is read, and its sender can read that. */
import { connect, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { eventually } from '../../../support/eventually.ts'
import { PublishingProducer, tokenFor } from '../../../support/publisher.ts'
import { decoded } from '../../../support/records.ts'

const JSON_TYPE = 'application/json'
const MIB = 1 << 20

let server: PublishingProducer
let elsewhere: string
beforeEach(async () => {
  server = await PublishingProducer.start()
  elsewhere = await tokenFor(server.root, 'app', 'PUBLISH other.*;COLLECT *')
})
afterEach(() => server.stop())

/** A sender of which every byte is under control. */
class RawSender {
  readonly socket: Socket
  text = ''
  ended = false
  error: Error | undefined

  constructor() {
    this.socket = connect({ port: server.producer.server.http?.port as number, host: '127.0.0.1', allowHalfOpen: true })
    this.socket.on('data', (bytes) => {
      this.text += bytes.toString('latin1')
    })
    this.socket.on('end', () => {
      this.ended = true
    })
    this.socket.on('error', (error) => {
      this.error = error
    })
  }

  head(headers: Record<string, string | number>, path = '/v1/metrics', token = server.token): void {
    const all = { host: '127.0.0.1', authorization: `Bearer ${token}`, 'content-type': JSON_TYPE, ...headers }
    const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
    this.socket.write(`POST ${path} HTTP/1.1\r\n${lines.join('')}\r\n`)
  }

  async answered(status: number): Promise<void> {
    await eventually(() => expect(this.text).toContain(`HTTP/1.1 ${status} `))
    expect(this.error).toBeUndefined()
  }

  /** The status of the first line that comes, which may be a 100. */
  async firstStatus(): Promise<number> {
    await eventually(() => expect(this.text).toContain('\r\n'))
    return Number(/^HTTP\/1\.1 (\d+) /.exec(this.text)?.[1])
  }

  /** Sends pieces of a body, each when the system has taken the one before. */
  async send(piece: string, times: number): Promise<void> {
    for (let sent = 0; sent < times; sent++) await new Promise<void>((taken) => this.socket.write(piece, () => taken()))
  }
}

let sender: RawSender
beforeEach(() => {
  sender = new RawSender()
})
afterEach(() => {
  sender.socket.destroy()
})

const refusals: readonly (readonly [string, number, () => Record<string, string>])[] = [
  ['that nothing allows to publish', 403, () => ({ authorization: `Bearer ${elsewhere}` })],
  ['without a valid token', 401, () => ({ authorization: 'Bearer nonsense' })],
  ['of another type', 415, () => ({ 'content-type': 'text/plain' })],
  ['that says it is too long', 413, () => ({ 'content-length': String(17 * MIB) })],
]

describe('a request', () => {
  it.each(refusals)('%s is answered with %i before its body has come', async (_, status, headers) => {
    sender.head({ 'content-length': 2 * MIB, ...headers() })
    await sender.answered(status)
    expect(sender.text).toContain('connection: close')
    // Its sender still sends, and is not cut off.
    await sender.send('x'.repeat(MIB / 4), 8)
    if (status !== 413) await eventually(() => expect(sender.ended).toBe(true))
    expect(sender.error).toBeUndefined()
    expect(sender.text.match(/HTTP\/1\.1/g)).toHaveLength(1)
  })

  it.each(refusals)('%s is answered with %i and no 100 if it waits for one', async (_, status, headers) => {
    sender.head({ 'content-length': MIB, expect: '100-continue', ...headers() })
    expect(await sender.firstStatus()).toBe(status)
  })

  it('that is allowed gets its 100, and then its answer', async () => {
    sender.head({ 'content-length': 2, expect: '100-continue' })
    await sender.answered(100)
    sender.socket.write('{}')
    await sender.answered(200)
    expect(sender.text.indexOf('HTTP/1.1 100')).toBe(0)
  })

  it('to no door gets its 100 as ever', async () => {
    sender.head({ 'content-length': 2, expect: '100-continue' }, '/elsewhere')
    await sender.answered(100)
    sender.socket.write('{}')
    await sender.answered(404)
  })

  it('that is refused and short leaves the connection to the next one', async () => {
    sender.head({ 'content-length': 4 }, '/v1/metrics', elsewhere)
    await sender.answered(403)
    expect(sender.text).not.toContain('connection: close')
    sender.socket.write('full')
    sender.head({ 'content-length': 2 })
    sender.socket.write('{}')
    await sender.answered(200)
  })

  it('that never ends is not read for ever: its sender has five seconds after the answer', async () => {
    sender.head({ 'transfer-encoding': 'chunked' }, '/v1/metrics', elsewhere)
    await sender.answered(403)
    let taken = 0
    const piece = `${(MIB / 4).toString(16)}\r\n${'x'.repeat(MIB / 4)}\r\n`
    const send = (): void => {
      sender.socket.write(piece, (error) => {
        if (error || ++taken > 400) return
        send()
      })
    }
    send()
    await eventually(() => expect(taken).toBeGreaterThanOrEqual(16))
    expect(sender.ended).toBe(false)
    server.producer.clock.advance(5_000)
    await eventually(() => expect(sender.ended || sender.socket.destroyed).toBe(true))
    // What the system keeps on the way counts too.
    expect(taken).toBeLessThan(400)
  })

  it('whose body is too slow loses its turn', async () => {
    sender.head({ 'content-length': MIB })
    await sender.send('x'.repeat(1_000), 1)
    await eventually(() => {
      server.producer.clock.advance(2_000)
      expect(sender.text).not.toBe('')
    })
    // 408 would lose it: neither exporters of OTLP nor Prometheus send again then.
    await sender.answered(503)
    expect(sender.text).toMatch(/retry-after: 1\r\n/)
  })

  it('of a tenant with too many others may be sent again', async () => {
    // Four are read and 32 wait.
    const others = Array.from({ length: 40 }, () => new RawSender())
    try {
      for (const other of others) other.head({ 'content-length': 2 })
      await eventually(() => expect(others.some(({ text }) => text !== '')).toBe(true))
      const refused = others.find(({ text }) => text !== '')
      expect(refused?.text).toMatch(/^HTTP\/1\.1 503 [\s\S]*retry-after: 1\r\n/)
      const sensors = decoded(await server.root.query('producer.sensors'))
      const sensor = sensors.find(({ name }: { name: string }) => name === 'otlp/default')
      expect(sensor.counters.refusedRequests).toBeGreaterThan(0)
    } finally {
      for (const { socket } of others) socket.destroy()
    }
  })

  it('in chunks that is longer than allowed is refused when it is', async () => {
    sender.head({ 'transfer-encoding': 'chunked', 'content-type': 'application/x-protobuf' })
    const piece = `${MIB.toString(16)}\r\n${'x'.repeat(MIB)}\r\n`
    await sender.send(piece, 17)
    await sender.answered(413)
  })
})
