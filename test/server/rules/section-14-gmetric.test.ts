import { createSocket, type Socket } from 'node:dgram'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { decodePacket } from '../../../protocol/gmetric/decode.ts'
import type { GmetricPacket } from '../../../protocol/gmetric/packet.ts'
import { ALL, args, command, status, type, u32 } from '../../support/bytes.ts'
import { TestProducer } from '../../support/producer.ts'
import { balance } from '../../support/records.ts'
import type { Seat } from '../../support/seat.ts'
import { redialled, until } from '../edge/outbound/callee.ts'

let socket: Socket
let port: number
let received: GmetricPacket[]
let producer: TestProducer
let boss: Seat

beforeEach(async () => {
  received = []
  socket = createSocket('udp4')
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve))
  socket.on('message', (bytes) => received.push(decodePacket(bytes)))
  port = socket.address().port
  producer = await TestProducer.start({ config: { dial: { allow: [`gmetric://127.0.0.1:${port}`] } } })
  await producer.addUser('boss', { role: 'admin' })
  boss = await producer.seat('boss')
})
afterEach(async () => {
  await producer.stop()
  await new Promise<void>((resolve) => socket.close(resolve))
})

const define = (...settings: readonly (readonly [string, number, Uint8Array])[]) =>
  boss.ok((seq) => command.defChannel(seq, `gmetric://127.0.0.1:${port}`, args(...settings)))

const values = () => received.flatMap((packet) => (packet.kind === 'value' ? [packet.value] : []))

async function connected(channel: number): Promise<void> {
  await until(() => producer.server.parts.producer.registry.byId(channel)?.connection !== undefined)
}

describe('a channel with a gmetric:// URL', () => {
  it('sends what is subscribed on it, and commits what is written', async () => {
    const channel = await define()
    await connected(channel)
    expect(await boss.ledger(channel)).toMatchObject({ state: 'connected', url: `gmetric://127.0.0.1:${port}` })
    await boss.follow('test.a', channel)
    for (let value = 1; value <= 3; value++) producer.emit(value)
    await until(() => values().length === 3)
    expect(values()).toEqual(['1', '2', '3'])
    expect(received.map(({ kind }) => kind)).toEqual(['metadata', 'value', 'value', 'value'])
    expect(received[1]).toMatchObject({ metric: 'test.a', host: { spoofed: true, name: 'h1' } })
    await until(() => producer.server.parts.producer.registry.byId(channel)?.queue.empty === true)
    expect(await boss.ledger(channel)).toMatchObject({ accepted: 3, committed: 3, queued: 0, in_flight: 0 })
  })

  it('is not bound with all others: SUBSCRIBE and BUFFER of all channels are refused, and bind none', async () => {
    const channel = await define()
    const id = await boss.collect('test.a')
    for (const make of [command.subscribe, command.buffer]) {
      const refused = await boss.ask((seq) => make(seq, id, ALL))
      expect(refused).toMatchObject({
        status: status.UNSUPPORTED,
        detail: expect.stringContaining(`channel ${channel}`),
      })
    }
    expect((await boss.ledger()).bindings).toEqual([])
    await boss.ok((seq) => command.subscribe(seq, id, channel))
  })

  it('sends a whole backlog a few at a time, and all of it', async () => {
    const channel = await define()
    await connected(channel)
    await boss.follow('test.a', channel)
    for (let value = 1; value <= 5000; value++) producer.emit(value)
    const { registry } = producer.server.parts.producer
    let turns = 0
    while (registry.byId(channel)?.queue.empty !== true) {
      const before = received.length
      await new Promise((resolve) => setImmediate(resolve))
      turns++
      expect(received.length - before).toBeLessThan(1000)
    }
    expect(turns).toBeGreaterThan(5000 / 64)
    expect(await boss.ledger(channel)).toMatchObject({ accepted: 5000, committed: 5000 })
  })

  it('commits and counts what cannot be said in gmetric', async () => {
    const channel = await define()
    await connected(channel)
    await boss.follow('test.a', channel)
    producer.push.push('test.a', { type: 11, value: null }, 1)
    producer.emit(2)
    await until(() => values().length === 1)
    await until(() => producer.server.parts.producer.registry.byId(channel)?.queue.empty === true)
    const ledger = await boss.ledger(channel)
    expect(ledger).toMatchObject({ accepted: 2, committed: 2 })
    expect(balance(ledger)).toBe(0)
    await boss.ok((seq) => command.delChannel(seq, channel))
    await producer.settle()
    expect(producer.logged.join('')).toContain('"values":2,"unsupported":1,"errors":0')
  })

  it('goes on where nobody listens: UDP promises nothing', async () => {
    const channel = await define()
    await connected(channel)
    await new Promise<void>((resolve) => socket.close(resolve))
    await boss.follow('test.a', channel)
    for (let value = 1; value <= 200; value++) producer.emit(value)
    await until(() => producer.server.parts.producer.registry.byId(channel)?.queue.empty === true)
    expect(await boss.ledger(channel)).toMatchObject({ state: 'connected', committed: 200 })
    socket = createSocket('udp4')
  })

  it('is taken by nobody: SET_CHANNEL is UNSUPPORTED', async () => {
    const channel = await define()
    await connected(channel)
    expect((await boss.ask((seq) => command.setChannel(seq, channel))).status).toBe(status.UNSUPPORTED)
    expect((await boss.ledger(channel)).state).toBe('connected')
  })

  it('may hold no values of its own', async () => {
    const channel = await define(['durable', type.boolean, u32(0)])
    await connected(channel)
    await boss.follow('test.a', channel)
    producer.emit(9)
    await until(() => values().length === 1)
    expect(await boss.ledger(channel)).toMatchObject({ accepted: 1, committed: 1 })
  })

  it('goes on after a restart', async () => {
    const channel = await define()
    await connected(channel)
    await boss.follow('test.a', channel)
    producer = await producer.restart()
    await connected(channel)
    producer.emit(4)
    await until(() => values().length === 1)
    expect(values()).toEqual(['4'])
  })

  it('is looked for anew each hour, and judged again', async () => {
    const channel = await define()
    await connected(channel)
    producer.clock.advance(3_600_000)
    expect(redialled(producer)).toBeLessThanOrEqual(1_100)
    await connected(channel)
    await producer.settle()
    const dials = (await producer.store.audit(0, 100)).filter(({ action }) => action === 'dial')
    expect(dials.map(({ outcome }) => outcome)).toEqual(['begun', 'ok', 'begun', 'ok'])
  })

  it('sends no more once it is deleted', async () => {
    const channel = await define()
    await connected(channel)
    await boss.follow('test.a', channel)
    await boss.ok((seq) => command.delChannel(seq, channel))
    producer.emit(1)
    await producer.settle()
    expect(received).toEqual([])
  })

  it('needs groups to be named, as any address that is special', async () => {
    const other = await boss.ask((seq) => command.defChannel(seq, 'gmetric://239.2.11.71:8649', args()))
    expect(other.status).toBe(status.PERMISSION_DENIED)
  })
})
