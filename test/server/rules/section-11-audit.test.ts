import { X509Certificate } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { TlsFiles } from '../../../server/edge/tls/files.ts'
import { command, join, status, str } from '../../support/bytes.ts'
import { Authority, OperatorDirectory } from '../../support/certificates.ts'
import { connectSecurable, secure } from '../../support/layers.ts'
import { TestProducer } from '../../support/producer.ts'
import { RawPeer } from '../../support/raw-peer.ts'

let producer: TestProducer
beforeAll(async () => {
  producer = await TestProducer.start()
  // The password costs bcrypt's time: SCRAM is what fails here.
  await producer.addUser('known', { password: 'the right one' })
})
afterAll(() => producer.stop())

/** Fails as soon as it begins. */
const failing = (seq: number) => command.auth(seq, 'scram-sha-256', Buffer.from('no scram'))

async function connect(): Promise<RawPeer> {
  const peer = producer.connect()
  await peer.until('caps')
  return peer
}

describe('an AUTH that fails', () => {
  it('is answered when the failure is stored in the audit log, not before', async () => {
    const peer = await connect()
    const before = (await producer.store.audit(0, 1000)).length
    producer.store.manual = true
    peer.send(failing(1))
    await producer.settle()
    expect(peer.pending()).toEqual([])
    producer.store.complete()
    expect(await peer.response(1)).toMatchObject({ status: status.AUTH_FAILED })
    producer.store.manual = false
    const records = await producer.store.audit(0, 1000)
    expect(records.length).toBe(before + 1)
    expect(records.at(-1)).toMatchObject({ action: 'auth', object: 'scram-sha-256', outcome: 'failed' })
  })

  it('under a name that nobody has is recorded without it: it may be a password', async () => {
    const [typed, known] = [await connect(), await connect()]
    typed.send(command.auth(1, 'password', join(str('my secret words'), str('x'))))
    expect(await typed.response(1)).toMatchObject({ status: status.AUTH_FAILED })
    known.send(command.auth(1, 'password', join(str('known'), str('x'))))
    expect(await known.response(1)).toMatchObject({ status: status.AUTH_FAILED })
    const records = await producer.store.audit(0, 1000)
    expect(records.slice(-2).map(({ actor }) => actor)).toEqual(['unknown', 'known'])
    expect(JSON.stringify(records) + producer.logged.join('')).not.toContain('my secret words')
  })

  it('is answered all the same where the disk is full, and while it is waited for', async () => {
    const [waiting, late] = [await connect(), await connect()]
    producer.store.full = true
    waiting.send(failing(1))
    await producer.settle()
    producer.clock.advance(1_000)
    expect(await waiting.response(1)).toMatchObject({ status: status.AUTH_FAILED })
    late.send(failing(1))
    expect(await late.response(1)).toMatchObject({ status: status.AUTH_FAILED })
    expect(producer.logged.join('')).toContain('the disk is full: an AUTH failure')
    producer.store.full = false
    await producer.settle()
  })
})

describe('every second', () => {
  it('a session whose certificate has expired gets a notice and ends', async () => {
    const directory = new OperatorDirectory()
    const authority = await Authority.make()
    const clientCa = directory.write('ca.pem', authority.cert)
    const files = directory.server(await authority.server())
    const tls = TlsFiles.open({ ...files, clientCa, clientRevoked: undefined }, producer.clock) as TlsFiles
    // The clock of the tests is behind that of the handshake: it is moved to a second before the end.
    const issued = await authority.client('known')
    const until = Date.parse(new X509Certificate(issued.cert).validTo)
    const socket = await secure(connectSecurable(producer, tls, true), { ...issued, ca: authority.cert })
    const peer = new RawPeer(socket)
    peer.send(command.auth(1, 'certificate', new Uint8Array(0)))
    expect(await peer.response(1)).toMatchObject({ status: status.OK })
    await peer.until('caps')
    producer.clock.jumpWall(until - producer.clock.wallMs() - 1_000)
    await producer.settle()
    expect(peer.closed).toBe(false)
    producer.clock.advance(1_000)
    expect(await peer.until('notice')).toMatchObject({ code: 4, detail: 'the certificate has expired' })
    expect(await peer.next()).toEqual({ kind: 'closed' })
    directory.remove()
  })

  it('a session of a user who was removed gets a notice and ends', async () => {
    const { peer } = await producer.login('leaving')
    const { accounts } = producer.server.parts.producer
    const account = accounts.find('default', 'leaving')
    if (account !== undefined) accounts.remove(account)
    producer.clock.advance(1_000)
    expect(await peer.until('notice')).toMatchObject({ code: 4, detail: 'the user was removed' })
    expect(await peer.next()).toEqual({ kind: 'closed' })
  })

  it('a session that has not authenticated has nothing to lose', async () => {
    const peer = await connect()
    producer.clock.advance(5_000)
    peer.send(command.nop(1), command.auth(2, 'password', join(str('x'), str('y'))))
    expect(await peer.response(1)).toMatchObject({ status: status.OK })
    expect(await peer.response(2)).toMatchObject({ status: status.AUTH_FAILED })
  })
})
