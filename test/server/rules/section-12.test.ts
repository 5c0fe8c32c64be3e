import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createWebSocketStream, WebSocket } from 'ws'
import { command, join, status, str } from '../../support/bytes.ts'
import { DeafPeer } from '../../support/deaf-peer.ts'
import { deflated, offeredIn, wrapDeflate, wrapped } from '../../support/layers.ts'
import { TestProducer } from '../../support/producer.ts'
import { RawPeer } from '../../support/raw-peer.ts'
import { numberOf, Seat } from '../../support/seat.ts'
import { WebPeer } from '../../support/web-peer.ts'

let producer: TestProducer
let users = 0
let seat: Seat
beforeAll(async () => {
  producer = await TestProducer.start({ config: { listen: { http: { host: '127.0.0.1', port: 0 } } } })
})
beforeEach(async () => {
  seat = await producer.seat(`user${++users}`)
})
afterAll(() => producer.stop())

const sameUser = () => producer.seat(`user${users}`)

describe('WRAP', () => {
  const connect = async () => {
    const peer = producer.connect()
    await peer.until('caps')
    return peer
  }

  it.each(['tls', 'deflate', 'brotli', 'zstd', 'x'])('of %s is UNSUPPORTED where it is not offered', async (layer) => {
    const peer = await connect()
    peer.send(command.wrap(1, layer))
    expect(await peer.response(1)).toMatchObject({ status: status.UNSUPPORTED, result: 0 })
    peer.send(command.nop(2))
    expect(await peer.response(2)).toMatchObject({ status: status.OK })
    if (layer === 'deflate') return
    expect(await seat.ask((seq) => command.wrap(seq, layer))).toMatchObject({ status: status.UNSUPPORTED })
    expect(await seat.ok((seq) => command.nop(seq))).toBe(0)
  })

  it.each<[string, Uint8Array]>([
    ['a whole command', command.nop(2)],
    ['one byte', new Uint8Array(1)],
  ])('%s after it before its response is a protocol error and closes', async (_, behind) => {
    const peer = await connect()
    peer.send(join(command.wrap(1, 'deflate'), behind))
    expect(await peer.next()).toMatchObject({ kind: 'notice', code: 6 })
    expect(await peer.next()).toEqual({ kind: 'closed' })
  })

  it('waits for the responses owed before it, and what arrives meanwhile closes', async () => {
    const metric = await seat.collect('test.a')
    producer.store.manual = true
    seat.peer.send(join(command.subscribe(100, metric), command.wrap(101, 'deflate')))
    await producer.settle()
    expect(seat.peer.pending()).toEqual([])
    const impatient = await sameUser()
    const id = await impatient.collect('test.a')
    impatient.peer.send(join(command.subscribe(100, id), command.wrap(101, 'deflate')))
    await producer.settle()
    impatient.peer.send(command.nop(102))
    expect(await impatient.notice()).toMatchObject({ code: 6 })
    await impatient.closed()
    producer.store.manual = false
    producer.store.complete()
    expect(await seat.peer.next()).toMatchObject({ kind: 'response', seq: 100, status: status.OK })
    const last = await seat.peer.next()
    expect(last).toMatchObject({ kind: 'response', seq: 101, status: status.OK, result: 0xfffffffe })
  })

  it('is answered before anything more is looked at', () => {
    const peer = new DeafPeer(producer)
    const before = peer.waiting
    peer.send(command.wrap(1, 'deflate'))
    expect(peer.waiting).toBeGreaterThan(before)
    peer.destroy()
  })

  it('ends an AUTH exchange under way', async () => {
    const peer = await connect()
    peer.send(command.auth(1, 'scram-sha-256', Buffer.from('n,,n=admin,r=abcdefgh')))
    await peer.until('auth')
    peer.send(command.wrap(2, 'tls'))
    await peer.response(2)
    peer.send(command.auth(3, '', Buffer.from('c=biws,r=x,p=x')))
    expect(await peer.response(3)).toMatchObject({ status: status.INVALID_ARGUMENT })
  })

  it('that does not decode is INVALID_ARGUMENT, ends no exchange, and accepts bytes after it as ever', async () => {
    const peer = await connect()
    peer.send(join(command.wrap(1, ''), command.auth(2, 'password', join(str('x'), str('y')))))
    expect(await peer.response(1)).toMatchObject({ status: status.INVALID_ARGUMENT })
    expect(await peer.response(2)).toMatchObject({ status: status.AUTH_FAILED })
  })
})

describe('WRAP deflate', () => {
  const wrap = async (): Promise<Seat> => new Seat(await wrapDeflate(seat.peer), seat.channel)

  it('is offered after AUTH only, once; its result says that the capabilities changed, and they follow', async () => {
    const peer = producer.connect()
    expect(offeredIn(await peer.until('caps'))).not.toContain('layer deflate')
    const { peer: admitted } = await producer.login()
    const [first, second] = admitted.log.filter((message) => message.kind === 'caps')
    expect(offeredIn(first!)).not.toContain('layer deflate')
    expect(offeredIn(second!)).toContain('layer deflate')
    const upper = await wrapDeflate(admitted)
    const next = await upper.next()
    if (next.kind !== 'caps') throw new Error(`a ${next.kind} follows WRAP`)
    expect(offeredIn(next)).toEqual(offeredIn(second!).filter((word) => word !== 'layer deflate'))
    upper.send(command.wrap(1, 'deflate'))
    expect(await upper.response(1)).toMatchObject({ status: status.UNSUPPORTED })
  })

  it('carries commands and values both ways, and stays over SET_CHANNEL', async () => {
    const wrapped = await wrap()
    const other = await wrapped.defChannel()
    await wrapped.setChannel(other)
    await wrapped.follow('test.a')
    for (let value = 0; value < 100; value++) {
      producer.emit(value)
      expect(numberOf(await wrapped.value())).toBe(value)
    }
    for (let value = 100; value < 2_000; value++) producer.emit(value)
    const values = await wrapped.values(1_900)
    expect(values.map(numberOf)).toEqual(Array.from({ length: 1_900 }, (_, index) => index + 100))
    await wrapped.ok((seq) => command.commitThrough(seq, values.at(-1)?.transaction ?? 0))
    expect(await wrapped.ledger(other)).toMatchObject({ committed: 2_000, queued: 0 })
  })

  it('is understood however the stream is cut', async () => {
    const under = await wrapped(seat.peer, 'deflate')
    const write = under._write.bind(under)
    under._write = (chunk: Buffer, encoding, done) => {
      const next = (at: number): void => {
        if (at < chunk.length) write(chunk.subarray(at, at + 1), encoding, () => next(at + 1))
        else done()
      }
      next(0)
    }
    const upper = new RawPeer(deflated(under))
    upper.send(...Array.from({ length: 50 }, (_, seq) => command.nop(seq + 1)))
    for (let seq = 1; seq <= 50; seq++) expect(await upper.response(seq)).toMatchObject({ status: status.OK })
  })

  it('is read to its end where the peer sends no more, and answered', async () => {
    const wrapped = await wrap()
    wrapped.peer.send(command.nop(1), command.query(2, 'producer.stats'))
    wrapped.peer.stream.end()
    expect(await wrapped.peer.response(1)).toMatchObject({ status: status.OK })
    expect(await wrapped.peer.response(2)).toMatchObject({ status: status.OK })
    await wrapped.closed()
  })

  it('ends with the reason said under it', async () => {
    const wrapped = await wrap()
    const taker = await sameUser()
    await taker.setChannel(seat.channel)
    expect(await wrapped.notice()).toMatchObject({ code: 2, channel: seat.channel })
    await wrapped.closed()
  })

  it('with data that is not deflate gets a notice, under the layer, and is closed', async () => {
    const other = await sameUser()
    const under = await wrapped(seat.peer, 'deflate')
    const upper = new RawPeer(deflated(under))
    under.write(Buffer.from('ffffffffffffffff', 'hex'))
    expect(await upper.until('notice')).toMatchObject({ code: 6 })
    expect(await upper.next()).toEqual({ kind: 'closed' })
    expect(await other.ok((seq) => command.nop(seq))).toBe(0)
  })

  it('with a bomb gets a notice and is closed, and nobody else is affected', async () => {
    const other = await sameUser()
    const wrapped = await wrap()
    // 64 MiB of NOPs with the same seq: about 1,000 times what is sent.
    wrapped.peer.send(Buffer.alloc(64 << 20, command.nop(1)))
    expect(await wrapped.notice()).toMatchObject({ code: 6, detail: expect.stringContaining('100 times') })
    await wrapped.closed()
    expect(await other.ok((seq) => command.nop(seq))).toBe(0)
  })

  it('with a frame above the limit is refused from its length', async () => {
    const wrapped = await wrap()
    wrapped.peer.send(Buffer.from('00100004', 'hex'))
    expect(await wrapped.notice()).toMatchObject({ code: 6, detail: expect.stringContaining('1048580') })
    await wrapped.closed()
  })
})

describe('over WebSocket', () => {
  const url = () => `ws://127.0.0.1:${producer.server.http?.port}/monitor`

  it('xdr can be deflated', async () => {
    const peer = new RawPeer(createWebSocketStream(new WebSocket(url(), ['monitoring.xdr'])))
    peer.send(command.auth(1, 'password', join(str('admin'), str('admin-password'))))
    await peer.response(1)
    expect(offeredIn(await peer.until('caps'))).toContain('layer deflate')
    const upper = await wrapDeflate(peer)
    await upper.until('caps')
    upper.send(...Array.from({ length: 100 }, (_, seq) => command.nop(seq + 1)))
    for (let seq = 1; seq <= 100; seq++) expect(await upper.response(seq)).toMatchObject({ status: status.OK })
    upper.destroy()
  })

  it('json cannot be wrapped, and is not offered it', async () => {
    const peer = await WebPeer.open(url())
    const login = { cmd: 'AUTH', method: 'password', identity: 'admin', password: 'admin-password' }
    expect(await peer.ask({ ...login, seq: 1 })).toMatchObject({ status: 'OK' })
    expect(await peer.until('caps')).toMatchObject({ layer: [] })
    expect(await peer.ask({ cmd: 'WRAP', seq: 2, layer: 'deflate' })).toMatchObject({ status: 'UNSUPPORTED' })
    peer.socket.terminate()
  })
})
