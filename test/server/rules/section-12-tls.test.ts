import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { TlsFiles } from '../../../server/edge/tls/files.ts'
import { args, command, join, status, str } from '../../support/bytes.ts'
import { Authority, OperatorDirectory } from '../../support/certificates.ts'
import { connectSecurable, offeredIn, secure, wrapDeflate, wrapped, wrapTls } from '../../support/layers.ts'
import { TestProducer } from '../../support/producer.ts'
import { RawPeer } from '../../support/raw-peer.ts'
import { RfcScram } from '../../support/rfc-scram.ts'
import { Seat } from '../../support/seat.ts'

const EXPORTER = 'EXPORTER-Channel-Binding'
let producer: TestProducer
let authority: Authority
let tls: TlsFiles
const directory = new OperatorDirectory()
beforeAll(async () => {
  producer = await TestProducer.start()
  authority = await Authority.make()
  const files = directory.server(await authority.server())
  const clientCa = directory.write('client-ca.pem', authority.cert)
  tls = TlsFiles.open({ ...files, clientCa, clientRevoked: undefined }, producer.clock) as TlsFiles
})
afterAll(async () => {
  await producer.stop()
  directory.remove()
})

const password = join(str('admin'), str('admin-password'))
const trusting = () => ({ ca: authority.cert })

async function plain(): Promise<{ peer: RawPeer; offered: string[] }> {
  const peer = new RawPeer(connectSecurable(producer, tls))
  return { peer, offered: offeredIn(await peer.until('caps')) }
}

describe('WRAP tls', () => {
  it('is offered before AUTH where there is a certificate; what passwords go by comes with it', async () => {
    const { peer, offered } = await plain()
    expect(offered).toEqual(['auth scram-sha-256', 'layer tls'])
    const { peer: safe } = await wrapTls(peer, trusting())
    expect(offeredIn(await safe.until('caps'))).toEqual([
      'auth scram-sha-256-plus',
      'auth scram-sha-256',
      'auth token',
      'auth password',
    ])
    safe.send(command.auth(1, 'password', password))
    expect(await safe.response(1)).toMatchObject({ status: status.OK })
    expect(offeredIn(await safe.until('caps'))).toContain('layer deflate')
  })

  it('offers certificate to a peer that shows a good one, and to nobody else', async () => {
    const good = await authority.client('admin')
    const bad = await (await Authority.make('another')).client('admin')
    for (const [shown, is] of [
      [good, true],
      [bad, false],
    ] as const) {
      const { peer } = await wrapTls((await plain()).peer, { ...trusting(), ...shown })
      expect(offeredIn(await peer.until('caps')).includes('auth certificate')).toBe(is)
      peer.send(command.auth(1, 'certificate', new Uint8Array(0)))
      expect(await peer.response(1)).toMatchObject({ status: is ? status.OK : status.UNSUPPORTED })
    }
  })

  it('takes TLS 1.2, which is too old for the binding to the channel, and nothing older', async () => {
    const { peer, socket } = await wrapTls((await plain()).peer, { ...trusting(), maxVersion: 'TLSv1.2' })
    expect(socket.getProtocol()).toBe('TLSv1.2')
    expect(offeredIn(await peer.until('caps'))).toEqual(['auth scram-sha-256', 'auth token', 'auth password'])
    for (const version of ['TLSv1', 'TLSv1.1'] as const) {
      const old = { ...trusting(), minVersion: version, maxVersion: version, ciphers: 'DEFAULT:@SECLEVEL=0' }
      await expect(wrapTls((await plain()).peer, old)).rejects.toThrow()
    }
    expect((await wrapTls((await plain()).peer, trusting())).socket.getProtocol()).toBe('TLSv1.3')
  })

  it('lets an independent SCRAM bind itself to the channel, and refuses one that is bound to another', async () => {
    const login = async (flip: number): Promise<number> => {
      const { peer, socket } = await wrapTls((await plain()).peer, trusting())
      const exporter = socket.exportKeyingMaterial(32, EXPORTER, Buffer.alloc(0))
      exporter.writeUInt8(exporter.readUInt8(0) ^ flip, 0)
      const scram = new RfcScram({ username: 'admin', password: 'admin-password', exporter })
      peer.send(command.auth(1, 'scram-sha-256-plus', scram.clientFirst()))
      await peer.response(1)
      peer.send(command.auth(2, '', scram.clientFinal((await peer.until('auth')).data)))
      if ((await peer.response(2)).status !== status.AUTH_NEEDED) return status.AUTH_FAILED
      expect(scram.isProvenBy((await peer.until('auth')).data)).toBe(true)
      peer.send(command.auth(3, '', new Uint8Array(0)))
      return (await peer.response(3)).status
    }
    expect(await login(0)).toBe(status.OK)
    expect(await login(1)).toBe(status.AUTH_FAILED)
  })

  it('is offered once, and not after AUTH', async () => {
    const { peer } = await wrapTls((await plain()).peer, trusting())
    peer.send(command.wrap(1, 'tls'))
    expect(await peer.response(1)).toMatchObject({ status: status.UNSUPPORTED })
    peer.send(command.auth(2, 'password', password))
    await peer.response(2)
    peer.send(command.wrap(3, 'tls'))
    expect(await peer.response(3)).toMatchObject({ status: status.UNSUPPORTED })
  })

  it('carries deflate above it', async () => {
    const { peer } = await wrapTls((await plain()).peer, trusting())
    peer.send(command.auth(1, 'password', password))
    const { result } = await peer.response(1)
    await peer.until('caps')
    const seat = new Seat(await wrapDeflate(peer), result)
    await seat.follow('test.a')
    producer.emit(7)
    const value = await seat.value()
    expect(await seat.commit(value.transaction)).toMatchObject({ status: status.OK })
    expect(await seat.ledger()).toMatchObject({ channel: result, committed: 1 })
  })

  it('takes a handshake and commands that come byte by byte', async () => {
    const { peer } = await plain()
    const stream = await wrapped(peer, 'tls')
    const write = stream._write.bind(stream)
    stream._write = (chunk: Buffer, encoding, done) => {
      const next = (at: number): void => {
        if (at < chunk.length) write(chunk.subarray(at, at + 1), encoding, () => next(at + 1))
        else done()
      }
      next(0)
    }
    const slow = new RawPeer(await secure(stream, trusting()))
    await slow.until('caps')
    slow.send(command.nop(1))
    expect(await slow.response(1)).toMatchObject({ status: status.OK })
  })

  it.each([
    ['is no handshake', Buffer.from(command.nop(2))],
    ['is the beginning of none', Buffer.from('160301', 'hex')],
  ])('after which comes what %s ends the connection, and no other', async (_, bytes) => {
    const other = await producer.seat()
    const sessions = producer.server.sessions.count
    const { peer } = await plain()
    const stream = await wrapped(peer, 'tls')
    const closed = new Promise((resolve) => stream.once('close', resolve))
    stream.resume()
    stream.end(bytes)
    await producer.settle()
    producer.clock.advance(10_000)
    await closed
    expect(producer.server.sessions.count).toBeLessThanOrEqual(sessions)
    expect(await other.ok((seq) => command.nop(seq))).toBe(0)
  })

  it('says nothing while the handshake is not done', async () => {
    const stream = await wrapped((await plain()).peer, 'tls')
    let bytes = 0
    stream.on('data', (chunk: Buffer) => {
      bytes += chunk.length
    })
    await producer.settle()
    producer.clock.advance(9_999)
    await producer.settle()
    expect([bytes, stream.destroyed]).toEqual([0, false])
    producer.clock.advance(1)
    await producer.settle()
    expect([bytes, stream.destroyed]).toEqual([0, true])
  })

  it('gives 10 s anew, once', async () => {
    const { peer } = await plain()
    producer.clock.advance(9_000)
    const { peer: safe } = await wrapTls(peer, trusting())
    await safe.until('caps')
    producer.clock.advance(9_999)
    safe.send(command.nop(1))
    await safe.response(1)
    producer.clock.advance(1)
    expect(await safe.until('notice')).toMatchObject({ code: 6 })
    expect(await safe.next()).toEqual({ kind: 'closed' })
  })

  it('ends what a peer has authenticated half', async () => {
    const { peer } = await plain()
    peer.send(command.auth(1, 'scram-sha-256', Buffer.from('n,,n=admin,r=abcdefgh')))
    await peer.until('auth')
    const { peer: safe } = await wrapTls(peer, trusting())
    safe.send(command.auth(2, '', Buffer.from('c=biws,r=x,p=x')))
    expect(await safe.response(2)).toMatchObject({ status: status.INVALID_ARGUMENT })
  })

  it('stays over SET_CHANNEL, half a close, and last words', async () => {
    const { peer } = await wrapTls((await plain()).peer, trusting())
    peer.send(command.auth(1, 'password', password))
    const { result } = await peer.response(1)
    const seat = new Seat(peer, result)
    const other = await seat.defChannel()
    await seat.setChannel(other)
    expect(await seat.ledger()).toMatchObject({ channel: other })
    peer.send(command.nop(90), command.query(91, 'producer.stats', args()))
    peer.stream.end()
    expect(await peer.response(91)).toMatchObject({ status: status.OK })
    await seat.closed()
  })

  it('is not to be renegotiated', async () => {
    const { peer, socket } = await wrapTls((await plain()).peer, { ...trusting(), maxVersion: 'TLSv1.2' })
    await peer.until('caps')
    const failed = new Promise((resolve) => {
      socket.renegotiate({ rejectUnauthorized: false }, resolve)
      socket.once('close', () => resolve('closed'))
    })
    expect(await failed).not.toBe(null)
  })

  it('takes no session up again: who shows a certificate shows it each time', async () => {
    const tickets: Buffer[] = []
    for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
      const { peer, socket } = await wrapTls((await plain()).peer, { ...trusting(), maxVersion })
      socket.on('session', (ticket: Buffer) => tickets.push(ticket))
      await peer.until('caps')
      await producer.settle()
      const again = await wrapTls((await plain()).peer, {
        ...trusting(),
        maxVersion,
        session: tickets.at(-1) ?? socket.getSession(),
      })
      expect(again.socket.isSessionReused()).toBe(false)
    }
  })
})

describe('a connection that is TLS from the first byte on', () => {
  it('speaks as after WRAP: capabilities after the handshake, no layer tls', async () => {
    const peer = new RawPeer(await secure(connectSecurable(producer, tls, true), trusting()))
    const offered = offeredIn(await peer.until('caps'))
    expect(offered).toContain('auth scram-sha-256-plus')
    expect(offered).not.toContain('layer tls')
  })

  it('counts as a connection, and against the 10 s, before the handshake is done', async () => {
    const sessions = producer.server.sessions.count
    const stream = connectSecurable(producer, tls, true)
    expect(producer.server.sessions.count).toBe(sessions + 1)
    producer.clock.advance(5_000)
    const peer = new RawPeer(await secure(stream, trusting()))
    await peer.until('caps')
    producer.clock.advance(5_000)
    expect(await peer.until('notice')).toMatchObject({ code: 6 })
    const silent = connectSecurable(producer, tls, true)
    producer.clock.advance(10_000)
    await producer.settle()
    expect(silent.destroyed).toBe(true)
    expect(producer.server.sessions.count).toBeLessThanOrEqual(sessions)
  })

  it('that begins with a command in the clear is closed without a word', async () => {
    const stream = connectSecurable(producer, tls, true)
    let words = Buffer.alloc(0)
    stream.on('data', (chunk: Buffer) => {
      words = Buffer.concat([words, chunk])
    })
    const closed = new Promise((resolve) => stream.once('close', resolve))
    stream.write(command.nop(1))
    await closed
    // An alert at most: 7 bytes of TLS, nothing of ours.
    expect(words.length).toBeLessThanOrEqual(7)
  })
})
