import { createServer, type IncomingMessage, type Server } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createWebSocketStream, WebSocketServer } from 'ws'
import { ScramClient } from '../../../auth/scram/client.ts'
import { type Consumer, listen } from '../../../client/index.ts'
import { ALL, args, command, status, str, type } from '../../support/bytes.ts'
import { Authority, type Issued, OperatorDirectory } from '../../support/certificates.ts'
import { TestProducer } from '../../support/producer.ts'
import { RawPeer } from '../../support/raw-peer.ts'
import { numberOf, Seat } from '../../support/seat.ts'
import { Callee, failed, login, redialled, SECRET, until } from '../edge/outbound/callee.ts'

const secret = ['secret', type.opaque, str(SECRET)] as const

let folder: OperatorDirectory
let issued: Issued
let ca: string
beforeAll(async () => {
  const authority = await Authority.make()
  issued = await authority.server()
  folder = new OperatorDirectory()
  ca = folder.write('ca.pem', authority.cert)
})
afterAll(() => folder.remove())

const ends: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

/** Every name means 127.0.0.1, which may be dialled. */
async function start(trusted = ca): Promise<{ producer: TestProducer; boss: Seat }> {
  const allow = ['tcp', 'tls', 'ws', 'wss'].flatMap((scheme) => [`${scheme}://*:*`, `${scheme}://127.0.0.1:*`])
  const producer = await TestProducer.start({
    config: { dial: { allow, ca: trusted === '' ? undefined : trusted }, quota: { dialsPerMinute: 0 } },
    resolve: async () => ['127.0.0.1'],
  })
  ends.push(() => producer.stop())
  await producer.addUser('boss', { role: 'admin' })
  return { producer, boss: await producer.seat('boss') }
}

async function secured(): Promise<Callee> {
  const phone = await Callee.listen('127.0.0.1', 0, issued)
  ends.push(() => phone.close())
  return phone
}

const define = (seat: Seat, url: string) => seat.ok((seq) => command.defChannel(seq, url, args(secret)))

describe('tls://', () => {
  it.each(['127.0.0.1', 'localhost'])('calls a consumer whose certificate names %s', async (host) => {
    const phone = await secured()
    const { producer, boss } = await start()
    const channel = await define(boss, `tls://${host}:${phone.port}`)
    const seat = await phone.answer('boss')
    await boss.follow('test.a', channel)
    producer.emit(3)
    expect(numberOf(await seat.value())).toBe(3)
  })

  it('lets the consumer bind its proof to the connection', async () => {
    const phone = await secured()
    const { boss } = await start()
    const channel = await define(boss, `tls://localhost:${phone.port}`)
    const peer = await phone.call()
    expect((await peer.until('caps')).bytes.toString('latin1')).toContain('scram-sha-256-plus')
    const socket = peer.stream as TLSSocket
    const channelBinding = socket.exportKeyingMaterial(32, 'EXPORTER-Channel-Binding', Buffer.alloc(0))
    const scram = new ScramClient({ identity: 'boss', password: SECRET, channelBinding })
    peer.send(command.auth(1, 'scram-sha-256-plus', scram.first()))
    peer.send(command.auth(2, '', await scram.final((await peer.until('auth')).data)))
    scram.verify((await peer.until('auth')).data)
    peer.send(command.auth(3, '', new Uint8Array(0)))
    expect(await peer.response(3)).toMatchObject({ status: status.OK, result: channel })
  })

  it('never speaks to one whose certificate names another host', async () => {
    const phone = await secured()
    const { producer, boss } = await start()
    const channel = await define(boss, `tls://other.example.org:${phone.port}`)
    await until(() => failed(producer) === 1)
    expect(producer.logged.join('')).toContain("Hostname/IP does not match certificate's altnames")
    expect((await boss.ledger(channel)).state).toBe('waiting')
  })

  it('never speaks to one whose certificate nobody vouches for', async () => {
    const phone = await secured()
    const { producer, boss } = await start(folder.write('others.pem', (await Authority.make('a stranger')).cert))
    await define(boss, `tls://localhost:${phone.port}`)
    await until(() => failed(producer) === 1)
    expect(producer.logged.join('')).toMatch(/"detail":"unable to (verify|get local issuer)/)
  })

  it('never goes on in the clear with one that speaks no TLS', async () => {
    const phone = await Callee.listen()
    ends.push(() => phone.close())
    const { producer, boss } = await start()
    await define(boss, `tls://localhost:${phone.port}`)
    const peer = await phone.call()
    peer.stream.write('no handshake')
    await until(() => failed(producer) === 1)
    expect(peer.log.every(({ kind }) => kind !== 'caps')).toBe(true)
  })
})

/** A WebSocket server; `came` gets each connection as a peer, with the request that it began as. */
async function web(
  server: Server,
  protocol: string | false,
): Promise<{ port: number; came: Promise<[RawPeer, IncomingMessage]> }> {
  const sockets = new WebSocketServer({ server, handleProtocols: () => protocol })
  const came = new Promise<[RawPeer, IncomingMessage]>((resolve) => {
    sockets.on('connection', (socket, request) => resolve([new RawPeer(createWebSocketStream(socket)), request]))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  ends.push(() => {
    for (const socket of sockets.clients) socket.terminate()
    return new Promise((resolve) => server.close(resolve))
  })
  return { port: (server.address() as AddressInfo).port, came }
}

describe('ws:// and wss://', () => {
  it.each(['ws', 'wss'] as const)('%s calls a consumer by a WebSocket', async (scheme) => {
    const { producer, boss } = await start()
    const server = scheme === 'ws' ? createServer() : createSecureServer(issued)
    const { port, came } = await web(server, 'monitoring.xdr')
    const channel = await define(boss, `${scheme}://localhost:${port}/a/path`)
    const [peer, request] = await came
    expect([request.url, request.headers.host]).toEqual(['/a/path', `localhost:${port}`])
    expect(await login(peer, 'boss', SECRET)).toMatchObject({ status: status.OK, result: channel })
    await boss.follow('test.a', channel)
    producer.emit(5)
    expect(numberOf(await new Seat(peer, channel).value())).toBe(5)
  })

  it('wss never speaks to one whose certificate names another host', async () => {
    const { producer, boss } = await start()
    const { port } = await web(createSecureServer(issued), 'monitoring.xdr')
    await define(boss, `wss://other.example.org:${port}/`)
    await until(() => failed(producer) === 1)
    expect(producer.logged.join('')).toContain("Hostname/IP does not match certificate's altnames")
  })

  it('do not speak to one that chooses no subprotocol', async () => {
    const { producer, boss } = await start()
    const { port } = await web(createServer(), false)
    await define(boss, `ws://localhost:${port}`)
    await until(() => failed(producer) === 1)
  })

  it.each([301, 302, 303, 307, 308])('follow no redirect: %i leads nowhere', async (code) => {
    const canary = await Callee.listen()
    ends.push(() => canary.close())
    const { producer, boss } = await start()
    let asked = 0
    const server = createServer()
    server.on('upgrade', (_, socket) => {
      asked++
      socket.end(`HTTP/1.1 ${code} Elsewhere\r\nLocation: ws://127.0.0.1:${canary.port}/\r\nContent-Length: 0\r\n\r\n`)
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    ends.push(() => new Promise((resolve) => server.close(resolve)))
    const channel = await define(boss, `ws://localhost:${(server.address() as AddressInfo).port}/`)
    await until(() => failed(producer) === 1)
    expect([asked, canary.calls, (await boss.ledger(channel)).state]).toEqual([1, 0, 'waiting'])
  })
})

describe('a channel without a secret', () => {
  const plainly = (seat: Seat, url: string) => seat.ask((seq) => command.defChannel(seq, url, args()))

  it('begins as after AUTH: values flow to one whose certificate has its name, and COMMITs come back', async () => {
    const phone = await secured()
    const { producer, boss } = await start()
    const { result: channel } = await plainly(boss, `tls://localhost:${phone.port}`)
    const peer = await phone.call()
    const caps = (await peer.until('caps')).bytes.toString('latin1')
    expect(['auth', 'scram', 'layer', 'dialled', 'channel'].filter((word) => caps.includes(word))).toEqual([
      'dialled',
      'channel',
    ])
    const seat = new Seat(peer, channel)
    const metric = await boss.follow('test.a', channel)
    producer.emit(3)
    const value = await seat.value()
    expect([value.metric, numberOf(value)]).toEqual([metric, 3])
    expect((await seat.commit(value.transaction)).status).toBe(status.OK)
    expect(await boss.ledger(channel)).toMatchObject({ state: 'connected', accepted: 1, committed: 1 })
  })

  it('is called again: what was not committed comes again', async () => {
    const phone = await secured()
    const { producer, boss } = await start()
    const { result: channel } = await plainly(boss, `tls://localhost:${phone.port}`)
    await boss.follow('test.a', channel)
    producer.emit(3)
    const first = await new Seat(await phone.call(), channel).value()
    phone.hangUp()
    await until(() => producer.server.parts.producer.registry.byId(channel)?.connection === undefined)
    redialled(producer)
    expect((await new Seat(await phone.call(), channel).value()).bytes).toEqual(first.bytes)
  })

  it('is called after a restart, too', async () => {
    const phone = await secured()
    const { producer, boss } = await start()
    const { result: channel } = await plainly(boss, `tls://localhost:${phone.port}`)
    await phone.call()
    const again = await producer.crash()
    ends.pop()
    ends.push(() => again.stop())
    await (await phone.call()).until('caps')
    await until(() => again.server.parts.producer.registry.byId(channel)?.connection !== undefined)
  })

  it('takes NOP, COMMIT, and GET of what is bound there; the rest is PERMISSION_DENIED', async () => {
    const phone = await secured()
    const { producer, boss } = await start()
    const { result: channel } = await plainly(boss, `tls://localhost:${phone.port}`)
    const seat = new Seat(await phone.call(), channel)
    const bound = await boss.hoard('test.a', channel)
    const elsewhere = await boss.follow('test.b')
    producer.emit(4)
    await seat.ok((seq) => command.get(seq, bound))
    expect(numberOf(await seat.value())).toBe(4)
    await seat.ok((seq) => command.get(seq, bound, channel))
    await seat.ok((seq) => command.nop(seq))
    const refused: ((seq: number) => Uint8Array)[] = [
      (seq) => command.get(seq, elsewhere),
      (seq) => command.get(seq, 12345),
      (seq) => command.get(seq, bound, ALL),
      (seq) => command.get(seq, bound, boss.channel),
      (seq) => command.collect(seq, 'test.a'),
      (seq) => command.query(seq, 'producer.channels'),
      (seq) => command.subscribe(seq, bound),
      (seq) => command.buffer(seq, bound),
      (seq) => command.stop(seq, bound),
      (seq) => command.defChannel(seq, '', args()),
      (seq) => command.setChannel(seq, boss.channel),
      (seq) => command.setChannel(seq, 0),
      (seq) => command.delChannel(seq, 0),
      (seq) => command.execute(seq, 'channel.purge', args()),
      (seq) => command.wrap(seq, 'deflate'),
    ]
    for (const make of refused) expect((await seat.ask(make)).status).toBe(status.PERMISSION_DENIED)
    const auth = await seat.ask((seq) => command.auth(seq, 'scram-sha-256', new Uint8Array(4)))
    expect(auth.status).toBe(status.ALREADY_AUTHENTICATED)
  })

  it('goes to a WebSocket over TLS as well', async () => {
    const { producer, boss } = await start()
    const { port, came } = await web(createSecureServer(issued), 'monitoring.xdr')
    const { result: channel } = await plainly(boss, `wss://localhost:${port}/`)
    const [peer] = await came
    await boss.follow('test.a', channel)
    producer.emit(5)
    expect(numberOf(await new Seat(peer, channel).value())).toBe(5)
  })

  it('is called at growing intervals while its connections do not last', async () => {
    const phone = await secured()
    const { producer, boss } = await start()
    const { result: channel } = await plainly(boss, `tls://localhost:${phone.port}`)
    const connection = (): unknown => producer.server.parts.producer.registry.byId(channel)?.connection
    /** How long after the end of a connection that lasted `ms` the next call comes. */
    const calledAfter = async (ms: number): Promise<number> => {
      const peer = await phone.call()
      await until(() => connection() !== undefined)
      producer.clock.advance(ms)
      peer.destroy()
      await until(() => connection() === undefined)
      return redialled(producer)
    }
    const waits: number[] = []
    for (let n = 0; n < 7; n++) waits.push(await calledAfter(0))
    // Jitter takes up to a half.
    for (const [index, wait] of waits.entries()) {
      const most = Math.min(60_000, 1_000 * 2 ** index)
      expect(wait).toBeGreaterThanOrEqual(most / 2)
      expect(wait).toBeLessThanOrEqual(most + 100)
    }
    expect(await calledAfter(10_000)).toBeLessThanOrEqual(1_100)
  })

  it('needs TLS, and authorities of the operator: else there is no channel without a secret', async () => {
    const { boss } = await start()
    for (const scheme of ['tcp', 'ws']) {
      expect((await plainly(boss, `${scheme}://localhost:9`)).status).toBe(status.INVALID_ARGUMENT)
    }
    const { boss: other } = await start('')
    expect((await plainly(other, 'tls://localhost:9')).status).toBe(status.INVALID_ARGUMENT)
  })

  it('sends nothing to one whose certificate names another host, or that nobody vouches for', async () => {
    const phone = await secured()
    const { producer, boss } = await start()
    await plainly(boss, `tls://other.example.org:${phone.port}`)
    await until(() => failed(producer) === 1)
    expect(producer.logged.join('')).toContain("Hostname/IP does not match certificate's altnames")
    const strangers = await start(folder.write('others.pem', (await Authority.make('a stranger')).cert))
    await plainly(strangers.boss, `tls://localhost:${phone.port}`)
    await until(() => failed(strangers.producer) === 1)
    expect(strangers.producer.logged.join('')).toMatch(/"detail":"unable to (verify|get local issuer)/)
  })

  it('is a consumer of the library, which keeps it over another connection', async () => {
    const [cert, key] = [folder.write('consumer.pem', issued.cert), folder.write('consumer.key', issued.key)]
    const calls = await listen({ url: 'tls://127.0.0.1:0', tls: { cert, key } })
    ends.push(() => calls.close())
    const { producer, boss } = await start()
    const { result: channel } = await plainly(boss, `tls://localhost:${calls.address.port}`)
    await boss.follow('test.a', channel)
    const { value: consumer } = await calls[Symbol.asyncIterator]().next()
    expect(consumer?.channel).toBe(channel)
    const samples = (consumer as Consumer)[Symbol.asyncIterator]()
    const next = async (): Promise<unknown> => {
      const { value } = await samples.next()
      return value?.kind === 'value' ? value.plain : value
    }
    producer.emit(1)
    expect(await next()).toBe(1)
    const connection = (): unknown => producer.server.parts.producer.registry.byId(channel)?.connection
    producer.server.parts.producer.registry.byId(channel)?.connection?.end()
    await until(() => connection() === undefined)
    redialled(producer)
    producer.emit(2)
    expect(await next()).toBe(2)
  })

  it('is nothing for a consumer that has a secret: the caller has to prove that it knows it', async () => {
    const [cert, key] = [folder.write('consumer.pem', issued.cert), folder.write('consumer.key', issued.key)]
    const refused: string[] = []
    const tls = { cert, key }
    const options = { url: 'tls://127.0.0.1:0', tls, identity: 'boss', secret: SECRET }
    const calls = await listen({ ...options, refused: ({ code }) => void refused.push(code) })
    ends.push(() => calls.close())
    const { boss } = await start()
    await plainly(boss, `tls://localhost:${calls.address.port}`)
    await until(() => refused.length === 1)
    expect(refused).toEqual(['NO_METHOD'])
  })

  it('ends when the owner is removed', async () => {
    const phone = await secured()
    const { producer, boss } = await start()
    await producer.addUser('owner', { role: 'admin' })
    await plainly(await producer.seat('owner'), `tls://localhost:${phone.port}`)
    const peer = await phone.call()
    await peer.until('caps')
    await boss.execute('user.remove', ['user', type.string, str('owner')])
    await until(() => peer.closed)
  })
})

describe("the producer's own listeners", () => {
  it.each(['127.0.0.1', 'localhost', '127.0.0.9', '[::ffff:127.0.0.1]'])('are never dialled as %s', async (host) => {
    const allow = ['tcp://127.0.0.0/8:*', 'tcp://localhost:*', 'tcp://[::ffff:0:0/96]:*']
    const producer = await TestProducer.start({
      config: { dial: { allow }, listen: { tcp: { host: '127.0.0.1', port: 0 } } },
      resolve: async () => ['127.0.0.1'],
    })
    ends.push(() => producer.stop())
    await producer.addUser('boss', { role: 'admin' })
    const boss = await producer.seat('boss')
    const channel = await define(boss, `tcp://${host}:${producer.server.tcp?.port}`)
    await until(() => failed(producer) === 1)
    expect((await boss.ledger(channel)).state).toBe('waiting')
    expect(producer.server.sessions.count).toBe(1)
  })
})
