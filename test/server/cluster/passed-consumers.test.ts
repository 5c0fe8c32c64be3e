/** Consumers that come by a node that follows: they get what they would get at the node that leads, except what is for its machine. */
import { once } from 'node:events'
import { get as getPlain, type IncomingMessage } from 'node:http'
import { get as getSecure } from 'node:https'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createWebSocketStream, WebSocket } from 'ws'
import { ScramClient } from '../../../auth/scram/client.ts'
import { makeSecretVerifier } from '../../../auth/verifiers.ts'
import { encodeProxyHeader } from '../../../protocol/proxy/header.ts'
import type { Front } from '../../../server/cluster/front.ts'
import type { NodeCertificates } from '../../../server/cluster/node-certificates.ts'
import type { NodeListener } from '../../../server/cluster/node-listener.ts'
import type { ListenerName } from '../../../server/edge/passed-on.ts'
import type { Address } from '../../../server/kernel/core/address.ts'
import { command, join, status, str } from '../../support/bytes.ts'
import { eventually } from '../../support/eventually.ts'
import { offeredIn, wrapTls } from '../../support/layers.ts'
import { TestProducer } from '../../support/producer.ts'
import { RawPeer } from '../../support/raw-peer.ts'
import { decoded } from '../../support/records.ts'
import { Seat } from '../../support/seat.ts'
import {
  connected,
  frontBefore,
  LOOPBACK,
  NODES,
  NodeFiles,
  nodeListener,
  SaidLeadership,
  type Watched,
} from './passing.ts'

const EVERYWHERE = { tcp: LOOPBACK, tls: LOOPBACK, http: LOOPBACK, https: LOOPBACK }
const SECRET = 'a secret of the machine'

let files: NodeFiles
let ofLeader: NodeCertificates
let ofFront: NodeCertificates
let producer: TestProducer
let listener: Watched<NodeListener> & { readonly address: Address }
let front: Watched<Front> & { readonly listening: { readonly [N in ListenerName]: Address | undefined } }
let leads = true

beforeAll(async () => {
  files = await NodeFiles.make()
  ofLeader = await files.of('n1')
  ofFront = await files.of('n2')
})
afterAll(() => files.remove())

beforeEach(async () => {
  leads = true
  const { authority, directory } = files
  const tls = {
    ...directory.server(await authority.server()),
    clientCa: directory.write('client-ca.pem', authority.cert),
  }
  producer = await TestProducer.start({ config: { listen: EVERYWHERE, tls } })
  const verifier = await makeSecretVerifier(SECRET)
  producer.server.parts.producer.accounts.add({
    tenant: 'default',
    name: 'of-machine',
    role: 'admin',
    bcrypt: undefined,
    scram: verifier,
    loopbackOnly: true,
  })
  listener = await nodeListener({
    certificates: ofLeader,
    takerOf: (kind) => (leads ? producer.server.passedOn.get(kind as ListenerName) : undefined),
  })
  const leadership = new SaidLeadership()
  leadership.say({ name: 'n1', address: listener.address })
  front = await frontBefore(leadership, { listen: EVERYWHERE, certificates: ofFront })
})
afterEach(async () => {
  await front.part.close()
  await listener.part.close()
  await producer.stop()
})

const tcp = async (): Promise<RawPeer> => new RawPeer(await connected(front.listening.tcp))

async function tls(options: ConnectionOptions = {}): Promise<RawPeer> {
  const socket = connectTls({ ...front.listening.tls, ca: files.authority.cert, ...options })
  await once(socket, 'secureConnect')
  return new RawPeer(socket)
}

async function webSocket(scheme: 'ws' | 'wss'): Promise<RawPeer> {
  const { host, port } = front.listening[scheme === 'ws' ? 'http' : 'https'] as Address
  const socket = new WebSocket(`${scheme}://${host}:${port}/monitor`, ['monitoring.xdr'], { ca: files.authority.cert })
  const peer = new RawPeer(createWebSocketStream(socket))
  await once(socket, 'open')
  return peer
}

async function byScram(peer: RawPeer, identity: string, password: string) {
  const scram = new ScramClient({ identity, password })
  peer.secrets.add(password)
  peer.send(command.auth(0xfff00000, 'scram-sha-256', scram.first()))
  const first = await peer.until('auth')
  peer.send(command.auth(0xfff00001, '', await scram.final(first.data)))
  for (;;) {
    const answer = await peer.next()
    if (answer.kind === 'auth') break
    if (answer.kind !== 'response') throw new Error(`a ${answer.kind} came instead of a proof`)
    if (answer.status !== status.AUTH_NEEDED) return answer
  }
  peer.send(command.auth(0xfff00002, '', new Uint8Array(0)))
  return peer.response(0xfff00002)
}

const byPassword = (peer: RawPeer) => {
  peer.send(command.auth(1, 'password', join(str('admin'), str('admin-password'))))
  return peer.response(1)
}

async function get(url: string): Promise<{ readonly status: number | undefined; readonly text: string }> {
  const request = url.startsWith('https:') ? getSecure(url, { ca: files.authority.cert, agent: false }) : getPlain(url)
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  let text = ''
  for await (const chunk of response) text += chunk
  return { status: response.statusCode, text }
}

const urlOf = (name: 'http' | 'https', path: string): string =>
  `${name}://127.0.0.1:${front.listening[name]?.port}${path}`

describe('a consumer that comes by a front logs in', () => {
  it('over TCP, by SCRAM', async () => {
    const peer = await tcp()
    await peer.until('caps')
    const { status: answered, result } = await byScram(peer, 'admin', 'admin-password')
    expect(answered).toBe(status.OK)
    await new Seat(peer, result).ok((seq) => command.nop(seq))
    peer.destroy()
  })

  it('over TCP that is put under TLS', async () => {
    const plain = await tcp()
    await plain.until('caps')
    const { peer } = await wrapTls(plain, { ca: files.authority.cert })
    await peer.until('caps')
    expect((await byPassword(peer)).status).toBe(status.OK)
    peer.destroy()
  })

  it('over TLS, whose channel it can bind to, and with its certificate', async () => {
    const peer = await tls({ ...(await files.authority.client('admin')) })
    expect(offeredIn(await peer.until('caps'))).toEqual(
      expect.arrayContaining(['auth certificate', 'auth scram-sha-256-plus', 'auth password']),
    )
    peer.send(command.auth(1, 'certificate', new Uint8Array(0)))
    expect((await peer.response(1)).status).toBe(status.OK)
    peer.destroy()
  })

  it('over TLS 1.2', async () => {
    const peer = await tls({ maxVersion: 'TLSv1.2' })
    await peer.until('caps')
    expect((await byPassword(peer)).status).toBe(status.OK)
    peer.destroy()
  })

  it('over a WebSocket', async () => {
    const peer = await webSocket('ws')
    await peer.until('caps')
    expect((await byScram(peer, 'admin', 'admin-password')).status).toBe(status.OK)
    peer.destroy()
  })

  it('over a WebSocket under TLS', async () => {
    const peer = await webSocket('wss')
    await peer.until('caps')
    expect((await byPassword(peer)).status).toBe(status.OK)
    peer.destroy()
  })
})

it.each(['consumer', 'node'])('nothing is left of a connection that the %s has ended', async (side) => {
  const peers = [await tcp(), await tls(), await webSocket('ws'), await webSocket('wss')]
  for (const peer of peers) await peer.until('caps')
  expect([front.part.passing, listener.part.connections]).toEqual([4, 4])
  if (side === 'consumer') for (const peer of peers) peer.destroy()
  else producer.server.sessions.shutDown()
  await eventually(() => expect(producer.server.sessions.admission.open).toBe(0))
  for (const peer of peers) peer.destroy()
  await eventually(() => expect([front.part.passing, listener.part.connections]).toEqual([0, 0]))
  await eventually(() => expect([front.clock.timers, listener.clock.timers]).toEqual([0, 0]))
})

describe('requests that come by a front are answered', () => {
  it.each(['http', 'https'] as const)('over %s', async (name) => {
    expect(await get(urlOf(name, '/healthz'))).toEqual({ status: 200, text: '{"status":"ok"}' })
    expect((await get(urlOf(name, '/client.js'))).status).toBe(200)
  })

  it.each(['http', 'https'] as const)('over %s without the figures that are open to this machine', async (name) => {
    expect((await get(urlOf(name, '/metrics'))).status).toBe(401)
  })

  it('with places at the node that leads, which end with the connections', async () => {
    const { admission } = producer.server.sessions
    const idle = await Promise.all([connected(front.listening.http), connected(front.listening.https)])
    await eventually(() => expect(admission.open).toBe(2))
    for (const socket of idle) socket.destroy()
    await eventually(() => expect(admission.open).toBe(0))
  })
})

describe('who comes by a front is not on this machine', () => {
  it('and cannot be a user for this machine alone, over any listener', async () => {
    const direct = new RawPeer(await connected(producer.server.tcp))
    await direct.until('caps')
    expect((await byScram(direct, 'of-machine', SECRET)).status).toBe(status.OK)
    direct.destroy()
    for (const peer of [await tcp(), await tls(), await webSocket('ws'), await webSocket('wss')]) {
      await peer.until('caps')
      expect(await byScram(peer, 'of-machine', SECRET)).toMatchObject({ status: status.AUTH_FAILED })
      peer.destroy()
    }
  })

  it('and has no place that is kept for it', async () => {
    const { admission } = producer.server.sessions
    const places: string[] = []
    const enter = admission.enter.bind(admission)
    admission.enter = (address, close) => {
      const place = enter(address, close)
      places.push(`${place?.address} ${place?.isInside}`)
      return place
    }
    for (const name of ['tcp', 'tls', 'http', 'https'] as const) (await connected(front.listening[name])).destroy()
    await eventually(() => expect(places).toHaveLength(4))
    expect(places).toEqual(Array(4).fill('localhost@127.0.0.1 false'))
  })
})

/** A stream as another front sends it. */
async function streamFrom(from: { address: string; port: number }, kind: string, isOfLoopback = false) {
  const socket = ofFront.connect({ ...listener.address, allowHalfOpen: true }, NODES).on('error', () => {})
  await once(socket, 'secureConnect')
  const to = { address: from.address.includes(':') ? '::1' : '127.0.0.1', port: 7650 }
  const ofLoopback = isOfLoopback ? [{ type: 0xe2, value: Buffer.alloc(0) }] : []
  socket.write(
    encodeProxyHeader({ route: { from, to }, tlvs: [{ type: 0xe0, value: Buffer.from(kind) }, ...ofLoopback] }),
  )
  return socket
}

describe('a password or token without TLS', () => {
  const CLEAR = ['auth password', 'auth token']

  it.each(['tcp', 'http'] as const)(
    'is taken over %s of the loopback of the front, as at the node that leads',
    async (name) => {
      const direct = new RawPeer(await connected(producer.server.tcp))
      const peer = name === 'tcp' ? await tcp() : await webSocket('ws')
      const methods = (offered: readonly string[]) => offered.filter((each) => each.startsWith('auth '))
      const offered = methods(offeredIn(await peer.until('caps')))
      expect(offered).toEqual(methods(offeredIn(await direct.until('caps'))))
      expect(offered).toEqual(expect.arrayContaining(CLEAR))
      expect((await byPassword(peer)).status).toBe(status.OK)
      for (const each of [direct, peer]) each.destroy()
    },
  )

  it('is taken in a request to the loopback of the front', async () => {
    const asked = getPlain(urlOf('http', '/metrics'), { headers: { authorization: 'Bearer nobody' } })
    const [response] = (await once(asked, 'response')) as [IncomingMessage]
    // It was looked at; where it may not be sent, the answer is 403.
    expect(response.statusCode).toBe(401)
    response.resume()
  })

  it.each([
    ['from another machine', '203.0.113.7', false],
    ['from another machine, whatever it connected to', '203.0.113.7', true],
    ['from the machine of the front, to a listener that is not bound to loopback', '127.0.0.1', false],
  ])('is not taken %s', async (_, address, isOfLoopback) => {
    const peer = new RawPeer(await streamFrom({ address, port: 50_001 }, 'tcp', isOfLoopback))
    expect(offeredIn(await peer.until('caps'))).toEqual(['auth scram-sha-256', 'layer tls'])
    expect((await byPassword(peer)).status).toBe(status.UNSUPPORTED)
    peer.destroy()
  })

  it('is not taken from a front that is open to all, as it may be that of a proxy on its machine', async () => {
    const leadership = new SaidLeadership()
    leadership.say({ name: 'n1', address: listener.address })
    const tcp = { host: '0.0.0.0', port: 0 }
    const open = await frontBefore(leadership, { listen: { ...EVERYWHERE, tcp }, certificates: ofFront })
    const { port = 0 } = open.listening.tcp ?? {}
    const peer = new RawPeer(await connected({ host: '127.0.0.1', port }))
    expect(offeredIn(await peer.until('caps'))).toEqual(['auth scram-sha-256', 'layer tls'])
    peer.destroy()
    await open.part.close()
  })

  it('is not taken in a request from another machine', async () => {
    const socket = await streamFrom({ address: '203.0.113.7', port: 50_001 }, 'http')
    socket.write('GET /metrics HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer x\r\nconnection: close\r\n\r\n')
    let text = ''
    for await (const chunk of socket) text += chunk
    expect(text).toMatch(/^HTTP\/1.1 403 /)
  })
})

describe('the address of a consumer', () => {
  const FROM = { address: '203.0.113.7', port: 50_001 }

  it('is that of the header: in the list of connections, and in the audit log', async () => {
    const stranger = new RawPeer(await streamFrom(FROM, 'tcp'))
    await stranger.until('caps')
    expect(await byScram(stranger, 'admin', 'wrong')).toMatchObject({ status: status.AUTH_FAILED })
    stranger.destroy()
    const peer = new RawPeer(await streamFrom({ address: '2001:db8::5', port: 50_002 }, 'tcp'))
    await peer.until('caps')
    const { result } = await byScram(peer, 'admin', 'admin-password')
    const [shown] = decoded(await new Seat(peer, result).query('producer.connections'))
    expect(shown).toMatchObject({ address: '2001:db8::5', transport: 'tcp' })
    const records = (await producer.store.audit(0, 1_000)).filter(({ action }) => action === 'auth')
    expect(records).toMatchObject([{ actor: 'admin', address: FROM.address, outcome: 'failed' }])
    peer.destroy()
  })

  it('is that of the header where places and requests are counted', async () => {
    const places: string[] = []
    const { admission } = producer.server.sessions
    const enter = admission.enter.bind(admission)
    admission.enter = (address, close) => {
      places.push(address)
      return enter(address, close)
    }
    const request = async (kind: string): Promise<string> => {
      let socket = await streamFrom(FROM, kind)
      if (kind === 'https') {
        socket = connectTls({ socket, ca: files.authority.cert, servername: 'localhost' })
        await once(socket, 'secureConnect')
      }
      socket.write('GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n')
      let text = ''
      for await (const chunk of socket) text += chunk
      return text
    }
    expect(await request('http')).toMatch(/^HTTP\/1.1 401 /)
    expect(await request('https')).toMatch(/^HTTP\/1.1 401 /)
    expect(places).toEqual([FROM.address, FROM.address])
  })
})

it('a node that does not lead takes no streams of consumers, which wait for one that does', async () => {
  leads = false
  const peer = await tcp()
  await eventually(() => expect(front.part.counters.failed).toBe(1))
  expect(listener.part.counters).toMatchObject({ taken: 0, untaken: 1, refused: 0 })
  leads = true
  front.clock.advance(250)
  expect((await peer.until('caps')).kind).toBe('caps')
  expect(listener.part.counters).toMatchObject({ taken: 1, untaken: 1 })
})

it('a node that stops ends the streams of consumers, those of requests too', async () => {
  const web = await webSocket('wss')
  const idle = await connected(front.listening.https)
  await web.until('caps')
  const ended = once(idle.resume(), 'close')
  idle.on('end', () => idle.end())
  await eventually(() => expect(producer.server.sessions.admission.open).toBe(2))
  producer = await producer.restart()
  await expect(web.until('caps')).rejects.toThrow('the connection ended')
  await ended
})
