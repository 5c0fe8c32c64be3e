import { once } from 'node:events'
import type { Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { NodeCertificates } from '../../../server/cluster/node-certificates.ts'
import type { NodeListener, NodeListenerOptions } from '../../../server/cluster/node-listener.ts'
import type { Address } from '../../../server/kernel/core/address.ts'
import { ListenError } from '../../../server/kernel/core/listen.ts'
import { hex } from '../../support/bytes.ts'
import { Authority } from '../../support/certificates.ts'
import { eventually } from '../../support/eventually.ts'
import { connected, NODES, NodeFiles, nodeListener, type Watched } from './passing.ts'

const SIGNATURE = '0d0a0d0a000d0a515549540a'
/** From 203.0.113.7:50001 to 192.0.2.1:7650, with a TLV 0xe0. */
const withKind = (kind: string): Buffer => {
  const value = Buffer.from(kind)
  const length = 12 + 3 + value.length
  const head = hex(`${SIGNATURE} 2111 ${word(length)} cb007107 c0000201 c351 1de2 e0 ${word(value.length)}`)
  return Buffer.concat([head, value])
}
const word = (value: number): string => value.toString(16).padStart(4, '0')

interface Taken {
  readonly socket: Socket
  readonly kind: string
  readonly text: () => string
}

let files: NodeFiles
let own: NodeCertificates
let other: NodeCertificates
const opened: NodeListener[] = []
beforeAll(async () => {
  files = await NodeFiles.make()
  own = await files.of('n1')
  other = await files.of('n2')
})
afterEach(async () => {
  for (const one of opened.splice(0)) await one.close()
})
afterAll(() => files.remove())

async function listening(
  certificates: NodeCertificates | undefined,
  options: Partial<Pick<NodeListenerOptions, 'nodes'>> = {},
) {
  const taken: Taken[] = []
  const takerOf = (kind: string) => {
    if (kind !== 'tcp' && kind !== 'later') return undefined
    return (socket: Socket): void => {
      let text = ''
      socket.on('data', (chunk) => {
        text += chunk
      })
      socket.on('end', () => socket.end(`${text.length} bytes`))
      taken.push({ socket, kind, text: () => text })
    }
  }
  const made = await nodeListener({ certificates, takerOf, ...options })
  opened.push(made.part)
  return { ...made, taken }
}

async function asNode(address: Address, certificates = other): Promise<Socket> {
  const socket = certificates.connect({ ...address, allowHalfOpen: true }, NODES).on('error', () => {})
  await once(socket, 'secureConnect')
  return socket.resume()
}

/** Nothing was taken, and a reason was logged and counted. */
async function expectRefused({ part, logged }: Watched<NodeListener>, reason: string | RegExp): Promise<void> {
  await eventually(() => expect(part.counters.refused).toBe(1))
  expect(part.counters).toMatchObject({ taken: 0, untaken: 0 })
  expect(part.opening).toBe(0)
  expect(logged.map(({ reason }) => reason)).toEqual([expect.stringMatching(reason)])
}

describe('a stream of a node', () => {
  it('is taken with the address of the header, and the bytes after it', async () => {
    const listener = await listening(own)
    const socket = await asNode(listener.address)
    socket.write(Buffer.concat([withKind('tcp'), Buffer.from('hello')]))
    await eventually(() => expect(listener.taken[0]?.text()).toBe('hello'))
    const [{ socket: at, kind }] = listener.taken as [Taken]
    expect([kind, at.remoteAddress, at.remotePort, at.remoteFamily]).toEqual(['tcp', '203.0.113.7', 50_001, 'IPv4'])
    expect(listener.part.counters).toEqual({ taken: 1, untaken: 0, refused: 0, late: 0, evicted: 0 })
    expect(listener.clock.timers).toBe(0)
    socket.destroy()
  })

  it('is taken if it comes byte by byte', async () => {
    const listener = await listening(own)
    const socket = await asNode(listener.address)
    for (const byte of Buffer.concat([withKind('later'), Buffer.from('hello')])) {
      socket.write(Buffer.of(byte))
      await new Promise((resolve) => setImmediate(resolve))
    }
    await eventually(() => expect(listener.taken[0]?.text()).toBe('hello'))
    expect(listener.taken[0]?.kind).toBe('later')
    socket.destroy()
  })

  it('may end one way and go on the other way', async () => {
    const listener = await listening(own)
    const socket = await asNode(listener.address)
    let answer = ''
    socket.on('data', (chunk) => {
      answer += chunk
    })
    socket.end(Buffer.concat([withKind('tcp'), Buffer.from('hello')]))
    await once(socket, 'end')
    expect(answer).toBe('5 bytes')
    await eventually(() => expect(listener.part.connections).toBe(0))
  })

  it('is closed at once if nothing takes its kind', async () => {
    const listener = await listening(own)
    for (const kind of ['udp', 'http', '']) {
      const socket = await asNode(listener.address)
      socket.write(withKind(kind))
      await once(socket, 'end')
      socket.destroy()
    }
    expect(listener.part.counters).toMatchObject({ taken: 0, untaken: 3, refused: 0 })
  })

  it('that names loopback does not look like one of this machine', async () => {
    const listener = await listening(own)
    for (const from of [
      '2111 0012 7f000001 7f000001',
      '2121 002a 00000000000000000000000000000001 00000000000000000000000000000001',
    ]) {
      const socket = await asNode(listener.address)
      socket.write(hex(`${SIGNATURE} ${from} c351 1de2 e0 0003 746370`))
      await eventually(() => expect(listener.taken).toHaveLength(1))
      expect(listener.taken.pop()?.socket.remoteAddress).toBe('localhost@127.0.0.1')
      socket.destroy()
    }
  })

  it('ends with the listener', async () => {
    const listener = await listening(own)
    const [taken, opening] = [await asNode(listener.address), await asNode(listener.address)]
    taken.write(withKind('tcp'))
    await eventually(() => expect(listener.taken).toHaveLength(1))
    const ended = Promise.all([once(taken, 'end'), once(opening, 'end')])
    await listener.part.close()
    await ended
    for (const socket of [taken, opening]) socket.destroy()
    expect(listener.clock.timers).toBe(0)
  })
})

describe('refused is', () => {
  it.each([
    ['garbage', 'GET / HTTP/1.1\r\n\r\n', 'does not begin with a header of the PROXY protocol'],
    ['half of a header, and the end', withKind('tcp').subarray(0, 20), 'it ended before its header was complete'],
    ['nothing but the end', '', 'it ended before its header was complete'],
    ['a header of 64 KiB', Buffer.concat([hex(`${SIGNATURE} 2111 ffff`), Buffer.alloc(65_535)]), 'at most 512'],
    ['a header of the node itself', hex(`${SIGNATURE} 2000 0000`), 'does not say who connected, and what for'],
    ['a header without a kind', hex(`${SIGNATURE} 2111 000c cb007107 c0000201 c351 1de2`), 'what for'],
    [
      'a header with two kinds',
      hex(`${SIGNATURE} 2111 0014 cb007107 c0000201 c351 1de2 e0 0001 61 e0 0001 62`),
      'what for',
    ],
  ])('%s', async (_what, bytes, reason) => {
    const listener = await listening(own)
    const socket = await asNode(listener.address)
    socket.end(bytes)
    await expectRefused(listener, reason)
    await eventually(() => expect([socket.destroyed, listener.part.connections]).toEqual([true, 0]))
  })

  it('a header that does not come', async () => {
    const listener = await listening(own)
    const socket = await asNode(listener.address)
    socket.write(withKind('tcp').subarray(0, 27))
    await eventually(() => expect(listener.part.opening).toBe(1))
    listener.clock.advance(4_999)
    expect(listener.part.counters.late).toBe(0)
    listener.clock.advance(1)
    await expectRefused(listener, 'did not say within 5 s')
    expect(listener.part.counters.late).toBe(1)
    await eventually(() => expect(socket.destroyed).toBe(true))
  })

  it('a handshake that does not go on', async () => {
    const listener = await listening(own)
    const socket = await connected(listener.address)
    socket.resume().write(hex('160301'))
    await eventually(() => expect(listener.part.opening).toBe(1))
    listener.clock.advance(5_000)
    await expectRefused(listener, 'did not say within 5 s')
  })

  it('whoever does not speak TLS', async () => {
    const listener = await listening(own)
    const socket = await connected(listener.address)
    socket.resume().write(withKind('tcp'))
    await expectRefused(listener, 'its handshake of TLS failed')
  })

  it('whoever shows no certificate', async () => {
    const listener = await listening(own)
    const ca = files.authority.cert
    connectTls({ ...listener.address, ca, checkServerIdentity: () => undefined }).on('error', () => {})
    await expectRefused(listener, 'its handshake of TLS failed')
  })

  it('a certificate of another authority, even of the same name', async () => {
    const listener = await listening(own)
    const shown = await (await Authority.make('the authority of a cluster')).node(['n2'])
    const ca = files.authority.cert
    connectTls({ ...listener.address, ca, ...shown, checkServerIdentity: () => undefined }).on('error', () => {})
    await expectRefused(listener, 'its handshake of TLS failed')
  })

  it('a certificate that is for servers only', async () => {
    const listener = await listening(own)
    const shown = await files.authority.server(['n2'])
    const ca = files.authority.cert
    connectTls({ ...listener.address, ca, ...shown, checkServerIdentity: () => undefined }).on('error', () => {})
    await expectRefused(listener, 'its handshake of TLS failed')
  })

  it.each(['a user', 'another host'])('a certificate of the authority for %s', async (whose) => {
    const listener = await listening(own)
    const { authority } = files
    const shown = await (whose === 'a user'
      ? authority.client('alice')
      : authority.node(['n3', 'n1.elsewhere.example']))
    const ca = authority.cert
    connectTls({ ...listener.address, ca, ...shown, checkServerIdentity: () => undefined }).on('error', () => {})
    await expectRefused(listener, 'its certificate is of the authority of the cluster, but for none of the nodes')
  })

  it.each(['plain', 'TLS'])('whoever comes from an address that no node has, over %s', async (how) => {
    const nodes = [{ name: 'n1', host: '127.0.0.2', port: 7654 }]
    const listener = await listening(how === 'TLS' ? own : undefined, { nodes })
    const socket = await connected(listener.address)
    await once(socket.resume(), 'end')
    await expectRefused(listener, 'no node of `cluster.nodes` has its address')
    // It takes no place of those that say what they are for.
    expect(listener.part.opening).toBe(0)
  })

  it('a node from the address of another one, unless its address is a name', async () => {
    const n1 = { name: 'n1', host: '127.0.0.2', port: 7654 }
    const n2 = { name: 'n2', host: '127.0.0.3', port: 7654 }
    const listener = await listening(own, { nodes: [n1, n2] })
    const from = (localAddress: string) =>
      other.connect({ ...listener.address, allowHalfOpen: true, localAddress }, ['n1']).on('error', () => {})
    from('127.0.0.2').resume()
    await expectRefused(listener, 'its certificate is for n2, which has another address in `cluster.nodes`')
    const socket = from('127.0.0.3').resume()
    socket.write(withKind('tcp'))
    await eventually(() => expect(listener.taken).toHaveLength(1))
    socket.destroy()
    const byName = await listening(own, { nodes: [n1, { ...n2, host: 'n2.example' }] })
    const named = other.connect({ ...byName.address, localAddress: '127.0.0.9' }, ['n1']).on('error', () => {})
    named.resume().write(withKind('tcp'))
    await eventually(() => expect(byName.taken).toHaveLength(1))
    named.destroy()
  })

  it('TLS 1.1', async () => {
    const listener = await listening(own)
    const shown = await files.authority.node(['n2'])
    const old = { maxVersion: 'TLSv1.1', minVersion: 'TLSv1', ciphers: 'DEFAULT@SECLEVEL=0' } as const
    connectTls({ ...listener.address, ca: files.authority.cert, ...shown, ...old }).on('error', () => {})
    await expectRefused(listener, 'its handshake of TLS failed')
  })
})

it('connections without a header have bounded places: the oldest gives way', async () => {
  const listener = await listening(undefined)
  const first = await connected(listener.address)
  const others: Socket[] = []
  for (let i = 0; i < 1_024; i++) others.push(await connected(listener.address))
  await eventually(() => expect(listener.part.counters.evicted).toBe(1))
  await once(first.resume(), 'end')
  expect(listener.part.opening).toBe(1_024)
  others.at(-1)?.write(withKind('tcp'))
  await eventually(() => expect(listener.taken).toHaveLength(1))
  for (const socket of [first, ...others]) socket.destroy()
})

it('what is refused very often is logged once a minute, with the number of the others', async () => {
  const listener = await listening(undefined)
  for (let i = 1; i <= 3; i++) {
    ;(await connected(listener.address)).write('garbage')
    await eventually(() => expect(listener.part.counters.refused).toBe(i))
  }
  listener.clock.advance(60_000)
  ;(await connected(listener.address)).write('garbage')
  await eventually(() => expect(listener.part.counters.refused).toBe(4))
  expect(listener.logged.map(({ unlogged }) => unlogged)).toEqual([undefined, 2])
})

describe('without certificates', () => {
  it('it listens on loopback alone', async () => {
    const elsewhere = { address: { host: '0.0.0.0', port: 0 }, certificates: undefined, takerOf: () => undefined }
    await expect(nodeListener(elsewhere)).rejects.toThrow(ListenError)
    await expect(nodeListener(elsewhere)).rejects.toThrow('cluster.tls_ca')
  })

  it('streams are taken all the same', async () => {
    const listener = await listening(undefined)
    const socket = await connected(listener.address)
    socket.write(Buffer.concat([withKind('tcp'), Buffer.from('hello')]))
    await eventually(() => expect(listener.taken[0]?.text()).toBe('hello'))
    expect(listener.taken[0]?.socket.remoteAddress).toBe('203.0.113.7')
    socket.destroy()
  })
})

describe('certificates', () => {
  it('are read again when they change', async () => {
    const shown = await files.of('renewed', ['n1'])
    const listener = await listening(shown)
    expect(shown.reloadIfChanged()).toBeUndefined()
    const { cert, key } = await files.authority.node(['n1'])
    files.directory.write('renewed.key', key)
    expect(shown.reloadIfChanged()).toMatchObject({
      severity: 'error',
      detail: expect.stringContaining('cluster.tls_key'),
    })
    files.directory.write('renewed.pem', cert)
    expect(shown.reloadIfChanged()).toMatchObject({ severity: 'info' })
    const socket = await asNode(listener.address)
    const { raw } = (socket as ReturnType<NodeCertificates['connect']>).getPeerCertificate()
    expect(cert.replaceAll('\n', '')).toContain(raw.toString('base64').slice(0, 60))
    socket.destroy()
  })

  it('of a server for no node are refused by whoever connects', async () => {
    const stranger = await files.of('stranger', ['elsewhere.example'])
    const listener = await listening(stranger)
    const socket = other.connect({ ...listener.address }, ['n1', '127.0.0.1'])
    const [error] = await once(socket, 'error')
    expect(error.message).toBe('its certificate is for DNS:elsewhere.example, and not for n1 or 127.0.0.1')
  })
})
