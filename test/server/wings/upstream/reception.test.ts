/** Upstreams that cannot be reached and announce themselves: two servers with real connections, and raw bytes that pretend to be one. */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join as pathOf } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { defaultConfig } from '../../../../server/start/config.ts'
import { args, command, frame, join, status, str, type, u32 } from '../../../support/bytes.ts'
import { Authority, OperatorDirectory } from '../../../support/certificates.ts'
import { CommonTime } from '../../../support/common-time.ts'
import { boundTo, TestProducer } from '../../../support/producer.ts'
import { decoded, type Json } from '../../../support/records.ts'
import type { Seat } from '../../../support/seat.ts'
import { separateStore } from '../../../support/separate-store.ts'

const SECRET = '4f1d0c5b7a9e2d3c8b6a5f4e'
const LISTEN = { host: '127.0.0.1', port: 0 }

let directory: string
let upper: TestProducer
let lower: TestProducer | undefined
let time: CommonTime
/** Of those who look, one at each server: a login at each look would take longer than all else. */
const lookers = new Map<TestProducer, Seat>()

const fileOf = (name: string, text: string): string => {
  const path = pathOf(directory, name)
  writeFileSync(path, text)
  return path
}
const table = (more: object = {}) => ({
  name: 'edge',
  listen: LISTEN,
  where: 'announced',
  tenant: 'default',
  metrics: ['*'],
  controls: [],
  user: 'main',
  secretFile: fileOf('upper.secret', `${SECRET}\n`),
  intervalMs: 60_000,
  maxSeries: 1000,
  valuesPerSecond: 0,
  ...more,
})
const port = (): number => boundTo(upper.server, 'upstream.listen')?.port ?? 0
const announce = (more: object = {}) => ({
  url: `tcp://127.0.0.1:${port()}`,
  name: 'edge',
  user: 'main',
  secretFile: fileOf('lower.secret', `${SECRET}\n`),
  ca: undefined,
  ...more,
})

async function startLower(more: object = {}): Promise<TestProducer> {
  const store = await separateStore('edge')
  const made = await TestProducer.start({ clock: time.clock, config: { announce: [announce(more)] } as never, store })
  await made.addUser('main', { role: 'consumer' })
  lower = made
  return made
}

const until = (holds: () => void | Promise<void>) => time.until(holds)

async function statusOf(name: string, of = upper): Promise<Json | undefined> {
  const looker = lookers.get(of) ?? (await of.seat('looker'))
  lookers.set(of, looker)
  const sensors = decoded(await looker.query('producer.sensors')) as Json[]
  return sensors.find((sensor) => String(sensor.name).startsWith(name))
}

beforeEach(async () => {
  directory = mkdtempSync(pathOf(tmpdir(), 'cinnabar-announce-'))
  time = new CommonTime({ overSockets: true })
  upper = await TestProducer.start({ clock: time.clock, config: { upstream: [table()] } as never })
})
afterEach(async () => {
  await lower?.stop()
  lower = undefined
  await upper.stop()
  lookers.clear()
  time.end()
  rmSync(directory, { recursive: true })
})

const isUp = () => until(async () => expect(await statusOf('upstream/edge')).toMatchObject({ state: 'listening' }))
const h1 = ['host', type.string, str('h1')] as const
const ofEdge = args(['producer', type.string, str('edge')], h1)

describe('a server that announces itself', () => {
  it('is consumed as any other', async () => {
    const below = await startLower()
    await isUp()
    const seat = await upper.seat('watcher')
    below.emit(1)
    expect(decoded(await seat.query('test.a', ofEdge))).toBe(1)
    const id = await seat.collect('test.a', ofEdge)
    await seat.ok((seq) => command.subscribe(seq, id, 0))
    await until(() => {
      const channels = [...below.server.parts.producer.registry.all()]
      expect(channels.find(({ row }) => row.name.startsWith('upstream:'))?.bindings.size).toBe(1)
    })
    below.emit(2)
    expect(decoded(await seat.value())).toBe(2)
    await until(async () => {
      expect(await statusOf('announce/', below)).toMatchObject({ state: 'ok', counters: { open: 2 } })
      expect(await statusOf('upstream.listen/')).toMatchObject({ state: 'listening', counters: { open: 2, failed: 0 } })
    })
  })

  it('comes back when either side was away', async () => {
    const below = await startLower()
    const counters = async () => (await statusOf('upstream.listen/'))?.counters
    // Both connections, not just the one that makes it up.
    await until(async () => expect(await counters()).toMatchObject({ open: 2, connections: 2 }))
    lower = await time.over(below.restart())
    await until(async () => expect(await counters()).toMatchObject({ open: 2, connections: 4 }))
    await isUp()
    lower.emit(3)
    const seat = await upper.seat('watcher')
    expect(decoded(await seat.query('test.a', ofEdge))).toBe(3)
  })

  it.each([
    ['is unknown', { name: 'other' }, undefined, { unknown: expect.any(Number), failed: 0 }],
    ['has another secret', {}, 'another secret of the same length', { unknown: 0, failed: expect.any(Number) }],
    ['lets another user in', { user: 'admin' }, undefined, { unknown: 0, failed: expect.any(Number) }],
  ])('and %s is closed, and says so', async (_, more, secret, counters) => {
    await startLower({ ...more, ...(secret && { secretFile: fileOf('other.secret', secret) }) })
    await until(async () =>
      expect(await statusOf('announce/', lower)).toMatchObject({
        state: 'failed',
        detail: expect.stringContaining('without a login'),
      }),
    )
    const status = await statusOf('upstream.listen/')
    expect(status).toMatchObject({ counters: { ...counters, connections: 0 } })
    expect(Number(status?.counters.unknown) + Number(status?.counters.failed)).toBeGreaterThan(0)
    await until(async () =>
      expect(await statusOf('upstream/edge')).toMatchObject({
        detail: expect.stringContaining('does not announce itself'),
      }),
    )
  })

  it('has no secret that could be guessed', async () => {
    await startLower({ secretFile: fileOf('short.secret', 'fifteen-letters') })
    await until(async () =>
      expect(await statusOf('announce/', lower)).toMatchObject({ detail: expect.stringContaining('less than 16') }),
    )
  })

  it('is asked nothing with a secret that could be guessed', async () => {
    fileOf('upper.secret', 'fifteen-letters')
    await startLower()
    await until(() => expect(upper.logged.join('\n')).toContain('less than 16 characters'))
    expect(upper.logged.join('\n')).not.toContain('fifteen-letters')
  })

  it('does so under TLS, and trusts only what it was told to', async () => {
    const files = new OperatorDirectory()
    const authority = await Authority.make()
    const tls = files.server(await authority.server())
    await upper.stop()
    upper = await TestProducer.start({ clock: time.clock, config: { upstream: [table()], tls } as never })
    const url = `tls://127.0.0.1:${port()}`
    const below = await startLower({ url, ca: files.write('other.pem', (await Authority.make('another')).cert) })
    await until(async () => {
      const status = await statusOf('announce/', below)
      expect(status).toMatchObject({ state: 'failed', detail: expect.stringContaining('certificate') })
    })
    below.server.parts.announcer.follow([announce({ url, ca: files.write('ca.pem', authority.cert) })])
    await isUp()
    below.emit(4)
    expect(decoded(await (await upper.seat('watcher')).query('test.a', ofEdge))).toBe(4)
    files.remove()
  })
})

describe('somebody who connects where upstreams announce themselves', () => {
  const sockets: Socket[] = []
  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy()
  })
  const guest = async (): Promise<{ socket: Socket; heard: Buffer[]; closed: Promise<unknown> }> => {
    const socket = connect(port(), '127.0.0.1').on('error', () => {})
    sockets.push(socket)
    const heard: Buffer[] = []
    socket.on('data', (bytes: Buffer) => heard.push(bytes))
    const closed = new Promise((resolve) => socket.once('close', resolve))
    await once(socket, 'connect')
    return { socket, heard, closed }
  }
  const greeting = (...names: readonly string[]) =>
    frame(
      u32(0xfffffffe),
      u32(1),
      u32(1),
      u32(1 + names.length),
      str('auth'),
      u32(type.string),
      str('scram-sha-256'),
      ...names.flatMap((name) => [str('producer'), u32(type.string), str(name)]),
    )

  it.each([
    ['does not say who it is', greeting()],
    ['is unknown', greeting('00112233445566aa nobody')],
    ['sends a frame that is too long', u32(0x4004)],
    ['speaks HTTP', new TextEncoder().encode('GET / HTTP/1.1\r\n\r\n')],
    ['sends something else first', join(frame(u32(7), u32(0), u32(0)), greeting('00112233445566aa edge'))],
    ['sends noise', new Uint8Array(randomBytes(256))],
  ])('and %s is closed, without a byte', async (_, bytes) => {
    const { socket, heard, closed } = await guest()
    socket.write(bytes)
    await closed
    expect(heard).toEqual([])
    const { counters } = (await statusOf('upstream.listen/')) as Json
    expect(Number(counters.unknown) + Number(counters.nameless)).toBe(1)
  })

  it('and says nothing is closed after 10 s', async () => {
    const { heard, closed } = await guest()
    await until(async () => expect(await statusOf('upstream.listen/')).toMatchObject({ counters: { open: 1 } }))
    upper.clock.advance(10_000)
    await closed
    expect(heard).toEqual([])
    expect(await statusOf('upstream.listen/')).toMatchObject({ counters: { open: 0, nameless: 1 } })
  })

  it('and sends its name byte by byte is asked for a proof', async () => {
    const { socket, heard } = await guest()
    for (const byte of greeting('00112233445566aa edge')) socket.write(Uint8Array.of(byte))
    await until(() => expect(Buffer.concat(heard).toString('latin1')).toContain('scram-sha-256'))
    expect(Buffer.concat(heard).toString('latin1')).toContain('n=main')
  })

  it('and has much computed for the proof is refused at once', async () => {
    const { socket, heard, closed } = await guest()
    socket.write(greeting('00112233445566aa edge'))
    await until(() => expect(heard.length).toBeGreaterThan(0))
    const first = Buffer.concat(heard)
    const nonce = /r=([^,\0]+)/.exec(first.toString('latin1'))?.[1]
    const challenge = `r=${nonce}more,s=${Buffer.from('a salt of 16 byte').toString('base64')},i=10000000`
    socket.write(
      join(
        frame(u32(0xffffffff), u32(first.readUInt32BE(8)), u32(status.AUTH_NEEDED), u32(0)),
        frame(u32(0xfffffffd), str(challenge)),
      ),
    )
    await closed
    expect(Buffer.concat(heard).length).toBe(first.length)
    expect(upper.logged.join('\n')).toContain('the server asks for 10000000 iterations')
  })

  it('and admits without a proof is closed', async () => {
    const { socket, heard, closed } = await guest()
    socket.write(greeting('00112233445566aa edge'))
    await until(() => expect(heard.length).toBeGreaterThan(0))
    const seq = Buffer.concat(heard).readUInt32BE(8)
    socket.write(frame(u32(0xffffffff), u32(seq), u32(0), u32(7)))
    await closed
    expect(await statusOf('upstream.listen/')).toMatchObject({ counters: { connections: 0, failed: 1 } })
  })
})

describe('a reload', () => {
  const reload = (upstream: readonly object[]): void => {
    for (const source of upper.server.parts.sources)
      source.reload?.({ ...defaultConfig(), upstream: upstream as never })
  }

  it('opens and closes the place, and ends what came in there', async () => {
    await startLower()
    await isUp()
    const at = port()
    reload([])
    await until(async () => expect(await statusOf('announce/', lower)).toMatchObject({ state: 'failed' }))
    expect(await statusOf('upstream.listen/')).toBeUndefined()
    reload([table({ listen: { host: '127.0.0.1', port: at } })])
    await isUp()
  })

  it('says that the place is taken, and takes it when it is free', async () => {
    const other = createServer()
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
    const listen = { host: '127.0.0.1', port: (other.address() as AddressInfo).port }
    reload([table({ listen })])
    await until(async () =>
      expect(await statusOf('upstream.listen/')).toMatchObject({
        state: 'failed',
        detail: expect.stringContaining('another program listens there already'),
      }),
    )
    await new Promise((resolve) => other.close(resolve))
    reload([table({ listen })])
    await until(async () =>
      expect(await statusOf('upstream.listen/')).toMatchObject({ state: 'listening', detail: '' }),
    )
  })
})
