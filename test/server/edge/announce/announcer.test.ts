/** What a main monitor hears from a server that announces itself: raw bytes, at the other end of a real connection. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join as pathOf } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { join, status, str, type } from '../../../support/bytes.ts'
import { eventually } from '../../../support/eventually.ts'
import { TestProducer } from '../../../support/producer.ts'
import { RawPeer } from '../../../support/raw-peer.ts'
import { Seat } from '../../../support/seat.ts'
import { login } from '../outbound/callee.ts'

const SECRET = '4f1d0c5b7a9e2d3c8b6a5f4e'
let directory: string
let main: Server
let peers: RawPeer[]
let producer: TestProducer

beforeEach(async () => {
  directory = mkdtempSync(pathOf(tmpdir(), 'cinnabar-announce-'))
  peers = []
  main = createServer((socket) => peers.push(new RawPeer(socket)))
  await new Promise<void>((resolve) => main.listen(0, '127.0.0.1', resolve))
  const { port } = main.address() as AddressInfo
  const secretFile = pathOf(directory, 'secret')
  writeFileSync(secretFile, `${SECRET}\n`)
  const table = { url: `tcp://127.0.0.1:${port}`, name: 'rack 1', user: 'main', secretFile, ca: undefined }
  producer = await TestProducer.start()
  await producer.addUser('main', { role: 'consumer', password: 'the-password-of-main' })
  producer.server.parts.announcer.follow([table])
})
afterEach(async () => {
  await producer.stop()
  for (const { stream } of peers) stream.destroy()
  main.close()
  rmSync(directory, { recursive: true })
})

const connected = (count: number) =>
  eventually(() => {
    producer.clock.advance(100)
    expect(peers.length).toBeGreaterThanOrEqual(count)
  })
const producerEntry = (text: string) =>
  Buffer.from(join(str('producer'), new Uint8Array([0, 0, 0, type.string]), str(text)))

describe('an announced connection', () => {
  it('begins with capabilities that say who it is, and offer SCRAM alone', async () => {
    await connected(2)
    const { id } = producer.server.parts.producer.self.name
    for (const peer of peers.slice(0, 2)) {
      const { bytes } = await peer.until('caps')
      expect(bytes.includes(producerEntry(`${id} rack 1`))).toBe(true)
      expect(bytes.includes('scram-sha-256')).toBe(true)
      for (const other of ['password', 'token', 'certificate', 'dialled', 'generation', 'below']) {
        expect(bytes.includes(other)).toBe(false)
      }
    }
  })

  it('is one of two, and a lost one is made again after a while', async () => {
    await connected(2)
    await producer.settle()
    expect(peers).toHaveLength(2)
    peers[0]?.stream.destroy()
    await connected(3)
  })

  it('is logged in to with the secret, as the user, and then is as any other', async () => {
    await connected(1)
    const peer = peers[0] as RawPeer
    expect((await login(peer, 'main', SECRET)).status).toBe(status.OK)
    const { bytes } = await peer.until('caps')
    const { id, name } = producer.server.parts.producer.self.name
    expect(bytes.includes(producerEntry(`${id} ${name}`))).toBe(true)
    producer.emit(5)
    expect((await new Seat(peer, 0).query('test.a')).value).toBeDefined()
  })

  it.each([
    ['the password of the user', 'main', 'the-password-of-main'],
    ['the secret under another name', 'admin', SECRET],
  ])('is not logged in to with %s', async (_, identity, password) => {
    await connected(1)
    const peer = peers[0] as RawPeer
    expect((await login(peer, identity, password)).status).toBe(status.AUTH_FAILED)
  })

  it('ends with its table', async () => {
    await connected(2)
    producer.server.parts.announcer.follow([])
    await eventually(() => expect(peers.every(({ closed }) => closed)).toBe(true))
    expect(producer.server.parts.announcer.statuses).toEqual([])
  })

  it('is made for nobody who is not a user', async () => {
    const table = producer.server.parts.announcer.statuses[0]?.table
    producer.server.parts.announcer.follow(table === undefined ? [] : [{ ...table, user: 'nobody' }])
    const count = peers.length
    await eventually(() => {
      const [one] = producer.server.parts.announcer.statuses
      expect(one?.status()).toMatchObject({ state: 'failed', detail: expect.stringContaining('no user nobody') })
    })
    expect(peers.length).toBe(count)
  })
})

describe('other connections', () => {
  it('do not say who the producer is before AUTH', async () => {
    const peer = producer.connect()
    const { bytes } = await peer.until('caps')
    expect(bytes.includes(Buffer.from(str('producer')))).toBe(false)
  })
})
