import type { Duplex } from 'node:stream'
import { afterAll, beforeAll, beforeEach, describe, expect, it, type MockInstance, vi } from 'vitest'
import { TlsFiles } from '../../../server/edge/tls/files.ts'
import { Session } from '../../../server/kernel/sessions/session.ts'
import { command, join, str } from '../../support/bytes.ts'
import { Authority, OperatorDirectory } from '../../support/certificates.ts'
import { eventually } from '../../support/eventually.ts'
import { connectSecurable, deflated, secure, wrapped } from '../../support/layers.ts'
import { TestProducer } from '../../support/producer.ts'
import { RawPeer } from '../../support/raw-peer.ts'
import { Seat } from '../../support/seat.ts'

let producer: TestProducer
let authority: Authority
let tls: TlsFiles
const directory = new OperatorDirectory()
beforeAll(async () => {
  producer = await TestProducer.start()
  authority = await Authority.make()
  const files = directory.server(await authority.server())
  tls = TlsFiles.open({ ...files, clientCa: undefined, clientRevoked: undefined }, producer.clock) as TlsFiles
})
afterAll(async () => {
  await producer.stop()
  directory.remove()
})

interface Consumer {
  readonly seat: Seat
  /** The lowest stream, below all layers: where a peer stops taking bytes. */
  readonly bottom: Duplex
}

async function admitted(peer: RawPeer): Promise<Seat> {
  peer.send(command.auth(1, 'password', join(str('admin'), str('admin-password'))))
  const { result } = await peer.response(1)
  await peer.until('caps')
  return new Seat(peer, result)
}

async function underTls(): Promise<Consumer> {
  const bottom = connectSecurable(producer, tls, true)
  return { bottom, seat: await admitted(new RawPeer(await secure(bottom, { ca: authority.cert }))) }
}

async function underDeflate({ bottom, seat }: Consumer): Promise<Consumer> {
  const upper = new RawPeer(deflated(await wrapped(seat.peer, 'deflate')))
  await upper.until('caps')
  return { bottom, seat: new Seat(upper, seat.channel) }
}

async function plain(): Promise<Consumer> {
  const { peer, channel } = await producer.login()
  return { bottom: peer.stream, seat: new Seat(peer, channel) }
}

const makers: [string, () => Promise<Consumer>][] = [
  ['tls', underTls],
  ['deflate', async () => underDeflate(await plain())],
  ['tls and deflate', async () => underDeflate(await underTls())],
]

/** Many times what the buffers between a consumer and the server hold, and what the server answers before it is behind. */
const BATCHES = 400
const BATCH_COMMANDS = 500

/** QUERYs with seqs that deflate cannot predict: what can be deflated to nothing would fit into any buffer. */
function batch(index: number): Uint8Array {
  const seqs = Array.from(
    { length: BATCH_COMMANDS },
    (_, n) => ((index * BATCH_COMMANDS + n) * 2_654_435_761) % 2 ** 32,
  )
  return join(...seqs.map((seq) => command.query(seq, 'producer.metrics')))
}

function lastCall({ mock }: MockInstance): number {
  return mock.invocationCallOrder.at(-1) ?? 0
}

describe.each(makers)('a consumer under %s', (_, make) => {
  let consumer: Consumer
  beforeEach(async () => {
    consumer = await make()
  })

  it('that takes no byte for 30 s is closed, and its channel stays', async () => {
    const { bottom, seat } = consumer
    const channel = await seat.defChannel()
    await seat.setChannel(channel)
    await seat.follow('test.a')
    bottom.pause()
    const closed = new Promise((resolve) => bottom.once('close', resolve))
    // What can be deflated to nothing would fit into any buffer: each value is another name's.
    for (let value = 0; value < 60_000; value++) producer.emit((value * 2_654_435_761) % 4_000_000_000)
    for (let second = 0; second < 32; second++) {
      await producer.settle()
      producer.clock.advance(1_000)
    }
    await closed
    const { registry } = producer.server.parts.producer
    // A deflater ends in a thread of its own.
    while (registry.byId(channel)?.connection !== undefined) await producer.settle()
    expect(registry.byId(channel)?.deleted).toBe(false)
  })

  it('that asks and does not take the answers is not read on', async () => {
    const { bottom, seat } = consumer
    const session = producer.server.parts.producer.registry.byId(seat.channel)?.connection
    if (!(session instanceof Session)) throw new Error('no session has the channel')
    const [pause, resume] = [vi.spyOn(session.link, 'pause'), vi.spyOn(session.link, 'resume')]
    bottom.pause()
    let taken = 0
    // One batch at a time: TLS would hand over all that wait as one piece, as no socket does, and reading stops only between pieces.
    const send = (): void => {
      seat.peer.stream.write(batch(taken), (error) => {
        if (!error && ++taken < BATCHES) send()
      })
    }
    send()
    // Once nothing more leaves the server, it stays behind and paused for good: what it has not taken by then it never takes.
    await eventually(() => {
      const isFull = bottom.readableLength >= bottom.readableHighWaterMark
      const state = { isFull, isBehind: session.behind, isPaused: lastCall(pause) > lastCall(resume) }
      if (taken < BATCHES) expect(state).toEqual({ isFull: true, isBehind: true, isPaused: true })
    })
    const other = await producer.seat()
    expect(await other.ok((seq) => command.nop(seq))).toBe(0)
    other.peer.destroy()
    expect(taken).toBeLessThan(BATCHES)
    bottom.destroy()
    await producer.settle()
  })

  it('gets everything in order however slowly it takes it', async () => {
    const { bottom, seat } = consumer
    await seat.follow('test.b')
    bottom.pause()
    for (let value = 0; value < 5_000; value++) producer.emit(value, 'test.b')
    await producer.settle()
    bottom.resume()
    const values = await seat.values(5_000)
    expect(values.every(({ value }, index) => value.readUInt32BE(0) === index)).toBe(true)
    seat.peer.destroy()
  })
})

it('a handshake that is never finished holds nothing back from others, and ends', async () => {
  const streams = Array.from({ length: 50 }, () => connectSecurable(producer, tls, true))
  const { seat } = await underTls()
  for (const stream of streams.slice(0, 25)) stream.destroy()
  producer.clock.advance(10_000)
  await producer.settle()
  expect(streams.every(({ destroyed }) => destroyed)).toBe(true)
  expect(await seat.ok((seq) => command.nop(seq))).toBe(0)
})
