import { type ClientRequest, get, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createWebSocketStream, WebSocket } from 'ws'
import { command, frame, join, status, str, u32 } from '../../../support/bytes.ts'
import { TestProducer } from '../../../support/producer.ts'
import { RawPeer } from '../../../support/raw-peer.ts'
import { type Closed, WebPeer } from '../../../support/web-peer.ts'

let producer: TestProducer
let authority: string
let url: string
beforeAll(async () => {
  producer = await TestProducer.start({
    config: {
      listen: { http: { host: '127.0.0.1', port: 0 } },
      http: { allowedOrigins: ['https://monitor.example:8443'] },
    },
  })
  authority = `127.0.0.1:${producer.server.http?.port}`
  url = `ws://${authority}/monitor`
})
afterAll(() => producer.stop())

/** The status with which an upgrade is answered; 101: it took place. */
function upgrade(protocols: string[], headers: Record<string, string> = {}, to = url): Promise<number> {
  return new Promise((resolve) => {
    const socket = new WebSocket(to, protocols, { headers })
    socket.on('open', () => {
      socket.close()
      resolve(101)
    })
    socket.on('unexpected-response', (request: ClientRequest, response: IncomingMessage) => {
      request.destroy()
      resolve(response.statusCode ?? 0)
    })
    socket.on('error', () => {})
  })
}

const both = ['monitoring.xdr', 'monitoring.json']

describe('the subprotocol', () => {
  it.each<[string[], string]>([
    [['monitoring.xdr'], 'monitoring.xdr'],
    [['monitoring.json'], 'monitoring.json'],
    [['monitoring.json', 'monitoring.xdr'], 'monitoring.xdr'],
    [['chat', 'monitoring.json'], 'monitoring.json'],
  ])('of %j is %s', async (offered, chosen) => {
    const socket = new WebSocket(url, offered)
    await new Promise((resolve) => socket.once('open', resolve))
    expect(socket.protocol).toBe(chosen)
    socket.close()
  })

  it('has to be there, and one of ours: 400', async () => {
    expect(await upgrade([])).toBe(400)
    expect(await upgrade(['chat'])).toBe(400)
    expect(await upgrade(['Monitoring.XDR'])).toBe(400)
  })

  it('is spoken at /monitor, and nowhere else', async () => {
    expect(await upgrade(both, {}, `ws://${authority}/nothing`)).toBe(404)
    expect(await upgrade(both, {}, `ws://${authority}/healthz`)).toBe(200)
  })

  it('needs an upgrade', async () => {
    const answered = await new Promise<number>((resolve) => {
      get(`http://${authority}/monitor`, { headers: { 'sec-websocket-protocol': 'monitoring.xdr' } }, (response) => {
        response.resume()
        resolve(response.statusCode ?? 0)
      })
    })
    expect(answered).toBe(404)
  })
})

describe('the Origin', () => {
  it('may be missing: it is no page', async () => {
    expect(await upgrade(both)).toBe(101)
  })

  it('may be the host itself, also behind something that speaks TLS for it', async () => {
    expect(await upgrade(both, { origin: `http://${authority}` })).toBe(101)
    expect(await upgrade(both, { origin: `https://${authority}` })).toBe(101)
  })

  it('may be one of the list of the operator', async () => {
    expect(await upgrade(both, { origin: 'https://monitor.example:8443' })).toBe(101)
  })

  it.each([
    'http://evil.example',
    'null',
    '',
    'http://127.0.0.1',
    'http://127.0.0.1:1',
    'ftp://HOST',
    'http://HOST.evil.example',
    'http://HOST/',
    'http://evil.example#http://HOST',
    'http://monitor.example:8443',
    'https://monitor.example',
    'https://monitor.example:8443.evil.example',
  ])('%s is refused: 403', async (origin) => {
    expect(await upgrade(both, { origin: origin.replace('HOST', authority) })).toBe(403)
  })
})

/** A raw peer over binary messages: each `send` is one message. */
async function xdr(): Promise<RawPeer> {
  const socket = new WebSocket(url, ['monitoring.xdr'])
  const peer = new RawPeer(createWebSocketStream(socket))
  await peer.until('caps')
  return peer
}

async function admin(): Promise<RawPeer> {
  const peer = await xdr()
  await logIn(peer)
  return peer
}

async function logIn(peer: RawPeer): Promise<void> {
  peer.send(command.auth(1, 'password', join(str('admin'), str('admin-password'))))
  expect(await peer.response(1)).toMatchObject({ status: status.OK })
}

describe('monitoring.xdr', () => {
  it('concatenates the payloads of its messages, whatever their borders', async () => {
    const peer = await admin()
    const frames = join(...Array.from({ length: 50 }, (_, seq) => command.query(100 + seq, 'producer.stats')))
    for (let at = 0; at < frames.length; at += 7) peer.send(frames.subarray(at, at + 7))
    for (let seq = 100; seq < 150; seq++) expect(await peer.response(seq)).toMatchObject({ status: status.OK })
    peer.send(frames)
    for (let seq = 100; seq < 150; seq++) expect(await peer.response(seq)).toMatchObject({ status: status.OK })
    peer.destroy()
  })

  it('takes messages without bytes', async () => {
    const peer = await xdr()
    peer.send(new Uint8Array(0))
    peer.send(command.nop(2))
    expect(await peer.response(2)).toMatchObject({ status: status.OK })
    peer.destroy()
  })

  it('takes a frame of 1 MiB after AUTH, in one message', async () => {
    const peer = await admin()
    peer.send(frame(u32(0), u32(2), new Uint8Array((1 << 20) - 8)))
    expect(await peer.response(2)).toMatchObject({ status: status.INVALID_ARGUMENT })
    peer.destroy()
  })

  it('holds little of a message that does not end before AUTH', async () => {
    const socket = new WebSocket(url, ['monitoring.xdr'])
    socket.on('error', () => {})
    const peer = new RawPeer(createWebSocketStream(socket))
    await peer.until('caps')
    for (let i = 0; i < 200; i++) socket.send(new Uint8Array(1024), { fin: false, binary: true })
    expect(await peer.next()).toEqual({ kind: 'closed' })
  })

  it('holds no more for a message that comes in pieces of one byte', async () => {
    const { port } = new URL(url)
    const socket = connect({ host: '127.0.0.1', port: Number(port), noDelay: true })
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.on('error', () => {})
    socket.write(
      `GET /monitor HTTP/1.1\r\nHost: ${authority}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
        `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${Buffer.alloc(16).toString('base64')}\r\n` +
        'Sec-WebSocket-Protocol: monitoring.xdr\r\n\r\n',
    )
    await new Promise((resolve) => socket.once('data', resolve))
    socket.resume()
    // The beginning of a frame of 32 KiB; then a byte at a time, each after the last has arrived.
    const { sessions } = producer.server
    const open = sessions.count
    socket.write(Uint8Array.of(0x82, 0xfe, 0x80, 0, 0, 0, 0, 0))
    let sent = 0
    while (sessions.count >= open && sent < 20_000) {
      await new Promise<void>((written) => socket.write(Uint8Array.of(0), () => written()))
      await new Promise((resolve) => setImmediate(resolve))
      sent++
    }
    expect(sent).toBeGreaterThan(200)
    expect(sent).toBeLessThan(20_000)
    await closed
  })

  it('takes a message of 128 fragments', async () => {
    const socket = new WebSocket(url, ['monitoring.xdr'])
    const peer = new RawPeer(createWebSocketStream(socket))
    await peer.until('caps')
    for (let seq = 1; seq <= 128; seq++) socket.send(command.nop(seq), { fin: seq === 128, binary: true })
    for (let seq = 1; seq <= 128; seq++) expect((await peer.until('response')).seq).toBe(seq)
    peer.destroy()
  })

  it('tells a protocol error and closes', async () => {
    const peer = await xdr()
    peer.send(u32(3))
    expect(await peer.until('notice')).toMatchObject({ code: 6 })
    expect(await peer.next()).toEqual({ kind: 'closed' })
  })

  const closes: [string, number, (socket: WebSocket) => void][] = [
    ['text', 1003, (socket) => socket.send('{"cmd":"NOP","seq":1}')],
    ['a message above 1 MiB and the length field', 1009, (socket) => socket.send(new Uint8Array((1 << 20) + 5))],
    ['a message far above it', 1009, (socket) => socket.send(new Uint8Array(8 << 20))],
    [
      'a message of more fragments than anybody needs',
      1008,
      (socket) => {
        for (let i = 0; i < 129; i++) socket.send(new Uint8Array(1), { fin: false, binary: true })
      },
    ],
  ]
  it.each(closes)('is closed by %s: %i', async (_, code, send) => {
    const peer = await WebPeer.open(url, ['monitoring.xdr'])
    send(peer.socket)
    expect((await peer.end()).code).toBe(code)
  })
})

describe('every 15 s', () => {
  const connect = async (autoPong: boolean): Promise<WebPeer> => {
    const peer = new WebPeer(new WebSocket(url, ['monitoring.json'], { autoPong }))
    await peer.until('caps')
    await peer.ask({ cmd: 'AUTH', seq: 1, method: 'password', identity: 'admin', password: 'admin-password' })
    return peer
  }
  const passed = async (peer: WebPeer): Promise<void> => {
    const pinged = new Promise((resolve) => peer.socket.once('ping', resolve))
    producer.clock.advance(15_000)
    await pinged
    await peer.ask({ cmd: 'NOP', seq: 2 })
  }

  it('a client is pinged, and stays while it answers', async () => {
    const peer = await connect(true)
    for (let times = 0; times < 4; times++) await passed(peer)
    peer.socket.terminate()
  })

  it('a client that did not answer the last ping is given up, and its channel is left', async () => {
    const peer = await connect(false)
    const sessions = producer.server.sessions.count
    await passed(peer)
    producer.clock.advance(14_999)
    await peer.ask({ cmd: 'NOP', seq: 3 })
    producer.clock.advance(1)
    expect((await peer.end()).code).toBe(1006)
    await producer.settle()
    expect(producer.server.sessions.count).toBe(sessions - 1)
  })
})

describe('a client that never reads', () => {
  const commands = join(...new Array<Uint8Array>(1_700).fill(command.query(1, 'producer.metrics')))
  const text = JSON.stringify(new Array(1_000).fill({ cmd: 'QUERY', seq: 1, metric: 'producer.metrics' }))

  it.each<[string, Uint8Array | string]>([
    ['monitoring.xdr', commands],
    ['monitoring.json', text],
  ])('of %s is not read any more, and closed after 30 s', async (protocol, message) => {
    const peer = await WebPeer.open(url, [protocol])
    const login = { cmd: 'AUTH', seq: 1, method: 'password', identity: 'admin', password: 'admin-password' }
    const xdrLogin = command.auth(1, 'password', join(str('admin'), str('admin-password')))
    peer.socket.send(protocol === 'monitoring.xdr' ? xdrLogin : JSON.stringify(login))
    // The capabilities, the response and the capabilities again; in one message less where that is possible.
    while (peer.log.length < (protocol === 'monitoring.xdr' ? 2 : 3)) await peer.next()
    peer.socket.pause()
    const messages = 400
    for (let sent = 0; sent < messages; sent++) peer.socket.send(message)
    let left = 0
    for (let still = 0; still < 50; still = left === peer.socket.bufferedAmount ? still + 1 : 0) {
      left = peer.socket.bufferedAmount
      await producer.settle()
    }
    // What lies between here and there are the buffers of the kernel.
    expect(left).toBeGreaterThan((messages * message.length) / 2)
    const ended: Promise<Closed> = peer.end()
    for (let second = 0; second < 31; second++) {
      producer.clock.advance(1_000)
      await producer.settle()
    }
    peer.socket.resume()
    expect((await ended).code).toBe(1006)
  })
})
