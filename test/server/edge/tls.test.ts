import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { get } from 'node:https'
import { connect as connectTcp, type Socket } from 'node:net'
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls'
import { generate } from 'selfsigned'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createWebSocketStream, WebSocket } from 'ws'
import { command, join, status, str } from '../../support/bytes.ts'
import { Authority, OperatorDirectory } from '../../support/certificates.ts'
import { offeredIn, wrapTls } from '../../support/layers.ts'
import { TestProducer } from '../../support/producer.ts'
import { RawPeer } from '../../support/raw-peer.ts'
import { Seat } from '../../support/seat.ts'
import { WebPeer } from '../../support/web-peer.ts'

const loopback = { host: '127.0.0.1', port: 0 }
const everywhere = { host: '0.0.0.0', port: 0 }
let authority: Authority
let directory: OperatorDirectory
let producer: TestProducer
const more: TestProducer[] = []
beforeAll(async () => {
  authority = await Authority.make()
  directory = new OperatorDirectory()
  const clientCa = directory.write('client-ca.pem', authority.cert)
  const clientRevoked = directory.write('revoked.txt', '# none\n')
  const tls = { ...directory.server(await authority.server()), clientCa, clientRevoked }
  producer = await TestProducer.start({
    config: { listen: { tcp: loopback, tls: loopback, http: loopback, https: loopback }, tls },
  })
})
afterEach(async () => {
  for (const one of more.splice(0)) await one.stop()
})
afterAll(async () => {
  await producer.stop()
  directory.remove()
})

const port = (listener: 'tcp' | 'tls' | 'http' | 'https', of = producer): number => of.server[listener]?.port ?? 0

async function overTls(options: ConnectionOptions = {}, of = producer): Promise<{ peer: RawPeer; socket: TLSSocket }> {
  const socket = connect({ host: '127.0.0.1', port: port('tls', of), ca: authority.cert, ...options })
  await once(socket, 'secureConnect')
  return { peer: new RawPeer(socket), socket }
}

async function overTcp(of = producer): Promise<RawPeer> {
  const socket = connectTcp({ host: '127.0.0.1', port: port('tcp', of) })
  await once(socket, 'connect')
  return new RawPeer(socket)
}

async function overWrap(options: ConnectionOptions = {}): Promise<{ peer: RawPeer; socket: TLSSocket }> {
  const peer = await overTcp()
  await peer.until('caps')
  return wrapTls(peer, { ca: authority.cert, ...options })
}

async function seat(peer: RawPeer): Promise<Seat> {
  peer.send(command.auth(0xff00, 'password', join(str('admin'), str('admin-password'))))
  const { status: answered, result } = await peer.response(0xff00)
  if (answered !== status.OK) throw new Error(`AUTH was answered with status ${answered}`)
  return new Seat(peer, result)
}

const wss = (options: ConnectionOptions = {}) =>
  new WebSocket(`wss://127.0.0.1:${port('https')}/monitor`, ['monitoring.xdr'], { ca: authority.cert, ...options })

describe('connections without a handshake', () => {
  it.each(['https', 'tls'] as const)('over %s give way to others, and do no harm', async (listener) => {
    const files = { cert: `${directory.path}/server.pem`, key: `${directory.path}/server.key` }
    const config = { listen: { https: loopback, tls: loopback }, tls: files, limits: { connections: 10 } }
    const small = await TestProducer.start({ config })
    more.push(small)
    const { admission } = small.server.sessions
    const idle = Array.from({ length: 30 }, () => {
      const socket = connectTcp({ host: '127.0.0.1', port: port(listener, small) }).on('error', () => {})
      // The beginning of a handshake.
      socket.write(Buffer.from('160301', 'hex'))
      return socket.resume()
    })
    while (admission.evicted < 20 || idle.filter(({ destroyed }) => destroyed).length < 20) {
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(admission).toMatchObject({ open: 10, unauthenticated: 10, evicted: 20, refused: 0 })
    await (await seat((await overTls({}, small)).peer)).ok((seq) => command.nop(seq))
    for (const socket of idle) socket.destroy()
  })
})

describe('a Host', () => {
  it('may be a name of the certificate', async () => {
    const issued = await authority.server(['localhost', 'monitor.example', '*.pages.example'])
    const tls = { cert: directory.write('named.pem', issued.cert), key: directory.write('named.key', issued.key) }
    const named = await TestProducer.start({ config: { listen: { https: loopback }, tls } })
    more.push(named)
    const answerTo = (host: string): Promise<number> => {
      const options = { host: '127.0.0.1', port: port('https', named), path: '/client.js', headers: { host } }
      return new Promise((resolve, reject) => {
        get({ ...options, ca: authority.cert, checkServerIdentity: () => undefined }, (response) => {
          response.resume()
          resolve(response.statusCode ?? 0)
        }).on('error', reject)
      })
    }
    const hosts = ['monitor.example', 'a.pages.example:443', 'evil.example', 'a.b.pages.example']
    expect(await Promise.all(hosts.map(answerTo))).toEqual([200, 200, 421, 421])
  })
})

describe('a client with TLS 1.2', () => {
  const agreed = async (ciphers: string, of = producer): Promise<string> => {
    const options = { ca: authority.cert, maxVersion: 'TLSv1.2', ciphers, rejectUnauthorized: false } as const
    const socket = connect({ host: '127.0.0.1', port: port('tls', of), ...options })
    const name = await once(socket, 'secureConnect').then(
      () => socket.getCipher().name,
      ({ code }) => String(code),
    )
    socket.destroy()
    return name
  }
  // OpenSSL 3.0, of Node 20, names the alert after SSL 3; OpenSSL 3.5, of Node 22 and newer, after SSL and TLS.
  const REFUSED = expect.stringMatching(/^ERR_SSL_(SSLV3|SSL\/TLS)_ALERT_HANDSHAKE_FAILURE$/)

  it.each([
    ['ECDHE-ECDSA-AES128-GCM-SHA256', 'ECDHE-ECDSA-AES128-GCM-SHA256'],
    ['ECDHE-ECDSA-CHACHA20-POLY1305', 'ECDHE-ECDSA-CHACHA20-POLY1305'],
    // Not authenticated as a whole.
    ['ECDHE-ECDSA-AES128-SHA', REFUSED],
    ['ECDHE-ECDSA-AES256-SHA384', REFUSED],
  ])('that has only %s agrees on %s', async (ciphers, name) => {
    expect(await agreed(ciphers)).toEqual(name)
  })

  it('gets no suite without forward secrecy from a server with a key of RSA', async () => {
    const made = await generate([{ name: 'commonName', value: 'localhost' }], { keySize: 2048, algorithm: 'sha256' })
    const cert = directory.write('rsa.pem', made.cert)
    const key = directory.write('rsa.key', made.private)
    const rsa = await TestProducer.start({ config: { listen: { tls: loopback }, tls: { cert, key } } })
    more.push(rsa)
    for (const suite of ['AES128-SHA', 'AES128-GCM-SHA256', 'ECDHE-RSA-AES128-SHA', 'DHE-RSA-AES128-GCM-SHA256']) {
      expect(await agreed(suite, rsa)).toEqual(REFUSED)
    }
    expect(await agreed('ECDHE-RSA-AES128-GCM-SHA256', rsa)).toBe('ECDHE-RSA-AES128-GCM-SHA256')
  })
})

describe('what is offered', () => {
  const PLAIN = ['auth scram-sha-256', 'auth token', 'auth password']
  const SAFE = ['auth scram-sha-256-plus', ...PLAIN]

  it('over TCP on loopback: what goes by password, and the layer tls', async () => {
    expect(offeredIn(await (await overTcp()).until('caps'))).toEqual([...PLAIN, 'layer tls'])
  })

  it('over TCP on all addresses: nothing that shows a secret, until it is wrapped', async () => {
    const files = { cert: `${directory.path}/server.pem`, key: `${directory.path}/server.key` }
    const open = await TestProducer.start({ config: { listen: { tcp: everywhere }, tls: files } })
    more.push(open)
    const peer = await overTcp(open)
    expect(offeredIn(await peer.until('caps'))).toEqual(['auth scram-sha-256', 'layer tls'])
    const { peer: safe } = await wrapTls(peer, { ca: authority.cert })
    expect(offeredIn(await safe.until('caps'))).toEqual(SAFE)
  })

  it('over TCP without a certificate: no layer', async () => {
    const open = await TestProducer.start({ config: { listen: { tcp: everywhere } } })
    more.push(open)
    const peer = await overTcp(open)
    expect(offeredIn(await peer.until('caps'))).toEqual(['auth scram-sha-256'])
    peer.send(command.wrap(1, 'tls'))
    expect(await peer.response(1)).toMatchObject({ status: status.UNSUPPORTED })
  })

  it('over TCP and WRAP, and over the TLS listener: the same, no layer but deflate after AUTH', async () => {
    const { peer: wrapped } = await overWrap()
    const { peer: direct } = await overTls()
    for (const peer of [wrapped, direct]) {
      expect(offeredIn(await peer.until('caps'))).toEqual(SAFE)
      await seat(peer)
      expect(offeredIn(await peer.until('caps'))).toEqual([...SAFE, 'layer deflate'])
    }
  })

  it('over TLS 1.2: no binding to the channel', async () => {
    const { peer } = await overTls({ maxVersion: 'TLSv1.2' })
    expect(offeredIn(await peer.until('caps'))).toEqual(PLAIN)
  })

  it('with a client certificate: that too', async () => {
    const { peer } = await overTls(await authority.client('admin'))
    expect(offeredIn(await peer.until('caps'))).toEqual(['auth certificate', ...SAFE])
  })

  it('with a certificate that does not verify: as without one, also if its authority has the name of ours', async () => {
    const same = await (await Authority.make()).client('admin')
    const another = await (await Authority.make('another authority')).client('admin')
    for (const shown of [same, another]) {
      for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
        const options = { ...shown, maxVersion }
        const offered = maxVersion === 'TLSv1.2' ? PLAIN : SAFE
        const webSocket = new RawPeer(createWebSocketStream(wss(options)))
        for (const peer of [(await overTls(options)).peer, (await overWrap(options)).peer, webSocket]) {
          expect(offeredIn(await peer.until('caps'))).toEqual(offered)
          await seat(peer)
          peer.destroy()
        }
      }
    }
  })

  it('over WebSocket in the clear: no layer before AUTH', async () => {
    const socket = new WebSocket(`ws://127.0.0.1:${port('http')}/monitor`, ['monitoring.xdr'])
    const peer = new RawPeer(createWebSocketStream(socket))
    expect(offeredIn(await peer.until('caps'))).toEqual(PLAIN)
    peer.destroy()
  })

  it('over WebSocket under TLS: all of it', async () => {
    const peer = new RawPeer(createWebSocketStream(wss()))
    expect(offeredIn(await peer.until('caps'))).toEqual(SAFE)
    const known = new RawPeer(createWebSocketStream(wss(await authority.client('admin'))))
    expect(offeredIn(await known.until('caps'))).toEqual(['auth certificate', ...SAFE])
    known.send(command.auth(1, 'certificate', new Uint8Array(0)))
    expect(await known.response(1)).toMatchObject({ status: status.OK })
    peer.destroy()
    known.destroy()
  })

  it('over WebSocket under TLS: nothing to a page of the same host that came without', async () => {
    const from = (scheme: string) => wss({ headers: { origin: `${scheme}://127.0.0.1:${port('https')}` } } as object)
    const page = from('https')
    await once(page, 'open')
    page.terminate()
    await expect(once(from('http'), 'open')).rejects.toThrow('403')
  })

  it('in JSON under TLS: no layer either', async () => {
    const socket = new WebSocket(`wss://127.0.0.1:${port('https')}/monitor`, ['monitoring.json'], {
      ca: authority.cert,
    })
    const peer = new WebPeer(socket)
    expect(await peer.until('caps')).toMatchObject({ layer: [] })
    socket.terminate()
  })
})

describe('the versions of TLS', () => {
  it.each(['TLSv1', 'TLSv1.1'] as const)('%s is refused, on every listener', async (version) => {
    const old = { minVersion: version, maxVersion: version, ciphers: 'DEFAULT:@SECLEVEL=0' }
    await expect(overTls(old)).rejects.toThrow()
    await expect(overWrap(old)).rejects.toThrow()
    await expect(once(wss(old), 'open')).rejects.toThrow()
  })

  it.each(['TLSv1.2', 'TLSv1.3'] as const)('%s is taken', async (version) => {
    const only = { minVersion: version, maxVersion: version }
    expect((await overTls(only)).socket.getProtocol()).toBe(version)
    expect((await overWrap(only)).socket.getProtocol()).toBe(version)
    const socket = wss(only)
    await once(socket, 'open')
    socket.terminate()
  })
})

it('https has the pages and health of http, and asks browsers to stay with it', async () => {
  const { get } = await import('node:https')
  const headers = await new Promise<Record<string, unknown>>((resolve, reject) => {
    get({ host: '127.0.0.1', port: port('https'), path: '/healthz', ca: authority.cert }, (response) => {
      response.resume()
      resolve({ status: response.statusCode, ...response.headers })
    }).on('error', reject)
  })
  expect(headers).toMatchObject({ status: 200, 'strict-transport-security': 'max-age=15552000' })
})

describe('a peer that hangs up', () => {
  /** With nobody else's connections. */
  let quiet: TestProducer
  beforeEach(async () => {
    const files = { cert: `${directory.path}/server.pem`, key: `${directory.path}/server.key` }
    quiet = await TestProducer.start({ config: { listen: { tls: loopback }, tls: files } })
    more.push(quiet)
  })
  const open = async (count: number): Promise<void> => {
    while (quiet.server.sessions.count !== count) await quiet.settle()
  }
  const broken = async (bytes: string): Promise<Socket> => {
    const socket = connectTcp({ host: '127.0.0.1', port: port('tls', quiet) })
    await once(socket, 'connect')
    socket.write(Buffer.from(bytes, 'hex'))
    await open(1)
    await quiet.settle()
    return socket
  }
  const HANDSHAKES = ['', '16', '160301', '160301000501000001']

  it.each(HANDSHAKES)('in the handshake, after %j, is gone at once', async (bytes) => {
    const socket = await broken(bytes)
    socket.resetAndDestroy()
    await open(0)
  })

  it.each(HANDSHAKES)('but only says that it sends no more, after %j, is gone within the 10 s', async (bytes) => {
    const socket = await broken(bytes)
    socket.end()
    await quiet.settle()
    quiet.clock.advance(10_000)
    await open(0)
  })

  it('after the handshake, with or without a word of TLS, is gone at once', async () => {
    const [rude, polite] = [await overTls({}, quiet), await overTls({}, quiet)]
    for (const { peer } of [rude, polite]) await peer.until('caps')
    await open(2)
    rude.socket.destroy()
    await open(1)
    polite.socket.end()
    await open(0)
  })
})

describe('half a close', () => {
  it('leaves the answers to come', async () => {
    const { peer } = await overTls()
    const mine = await seat(peer)
    peer.send(command.defChannel(1), command.nop(2))
    peer.stream.end()
    expect(await peer.response(1)).toMatchObject({ status: status.OK })
    expect(await peer.response(2)).toMatchObject({ status: status.OK })
    await mine.closed()
  })
})

describe('new files', () => {
  /** The certificate that a new connection is shown. */
  const shown = async (connecting: Promise<TLSSocket>): Promise<string> => {
    const socket = await connecting
    const certificate = socket.getPeerX509Certificate() as X509Certificate
    socket.destroy()
    return certificate.serialNumber
  }
  const overWss = async (): Promise<TLSSocket> => {
    const socket = connect({ host: '127.0.0.1', port: port('https'), ca: authority.cert })
    await once(socket, 'secureConnect')
    return socket
  }
  const everyListener = async (): Promise<string[]> => [
    await shown(overTls().then(({ socket }) => socket)),
    await shown(overWrap().then(({ socket }) => socket)),
    await shown(overWss()),
  ]

  it('are used for every handshake a second later, and no connection that is open is dropped', async () => {
    const open = await seat((await overTls()).peer)
    await open.follow('test.a')
    for (let turn = 0; turn < 20; turn++) {
      const next = await authority.server()
      directory.server(next)
      producer.clock.advance(1_000)
      const { serialNumber } = new X509Certificate(next.cert)
      expect(await everyListener()).toEqual([serialNumber, serialNumber, serialNumber])
      producer.emit(turn)
      expect((await open.value()).value.readUInt32BE(0)).toBe(turn)
    }
    expect(open.peer.closed).toBe(false)
  })

  it('that are no good are reported, and the previous contents stay in force', async () => {
    const before = await everyListener()
    const watcher = await seat(await overTcp())
    const notices = await watcher.collect('producer.notices')
    await watcher.ok((seq) => command.subscribe(seq, notices))
    const good = readFileSync(`${directory.path}/server.key`, 'utf8')
    for (const bad of ['', 'no PEM', good.slice(0, 60), (await authority.server()).key]) {
      directory.write('server.key', bad)
      producer.clock.advance(1_000)
      expect((await watcher.value()).value.toString('latin1')).toMatch(/server\.key.*tls\.key.*stay in force/s)
      expect(await everyListener()).toEqual(before)
    }
    const sensors = await watcher.query('producer.sensors')
    expect(sensors.value.toString('latin1')).toContain('server.key')
    expect(producer.logged.join('')).not.toContain(good.slice(40, 80))
    directory.write('server.key', good)
    producer.clock.advance(1_000)
    expect((await watcher.value()).value.toString('latin1')).toContain('read again')
  })
})

describe('a client certificate', () => {
  const login = async (issued: { cert: string; key: string }): Promise<Seat> => {
    const { peer } = await overTls(issued)
    peer.send(command.auth(1, 'certificate', new Uint8Array(0)))
    const { status: answered, result } = await peer.response(1)
    if (answered !== status.OK) throw new Error(`AUTH was answered with status ${answered}`)
    return new Seat(peer, result)
  }

  it('that is revoked ends what was opened with it within a second, and nothing else', async () => {
    const [lost, kept] = [await authority.client('admin'), await authority.client('admin')]
    const [ending, staying] = [await login(lost), await login(kept)]
    directory.write('revoked.txt', `# lost\n${new X509Certificate(lost.cert).serialNumber.toLowerCase()}\n`)
    producer.clock.advance(1_000)
    expect(await ending.notice()).toMatchObject({ code: 4, detail: 'the certificate is no longer trusted' })
    await ending.closed()
    expect(await staying.ok((seq) => command.nop(seq))).toBe(0)
    await expect(login(lost)).rejects.toThrow('status 12')
    directory.write('revoked.txt', `${new X509Certificate(kept.cert).fingerprint256}\n`)
    producer.clock.advance(1_000)
    await staying.closed()
  })

  it('of an authority that is gone is good no more', async () => {
    const mine = await login(await authority.client('admin'))
    directory.write('client-ca.pem', (await Authority.make('the next')).cert)
    producer.clock.advance(1_000)
    expect(await mine.notice()).toMatchObject({ code: 4 })
    await mine.closed()
    directory.write('client-ca.pem', authority.cert)
    producer.clock.advance(1_000)
  })
})

describe('GET /metrics', () => {
  const scrape = (options: ConnectionOptions = {}): Promise<[status: number | undefined, text: string]> =>
    new Promise((resolve, reject) => {
      const url = `https://127.0.0.1:${port('https')}/metrics?metric=host.load.one`
      get(url, { ca: authority.cert, agent: false, ...options }, (response) => {
        let text = ''
        response.setEncoding('utf8').on('data', (piece: string) => {
          text += piece
        })
        response.once('end', () => resolve([response.statusCode, text]))
      }).once('error', reject)
    })

  it('takes the certificate of a user in the place of a token', async () => {
    await producer.addUser('scraper', { role: 'operator' })
    const { cert, key } = await authority.client('scraper')
    const [code, text] = await scrape({ cert, key })
    expect([code, text]).toEqual([200, expect.stringMatching(/^host_load_one\{host="n1"\} /m)])
    expect((await scrape())[0]).toBe(401)
  })

  it('refuses that of nobody', async () => {
    const { cert, key } = await authority.client('nobody')
    expect(await scrape({ cert, key })).toEqual([401, 'the certificate is not valid\n'])
  })
})
