import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ScramClient } from '../../../auth/scram/client.ts'
import { args, command, frame, join, status, str, type, u32 } from '../../support/bytes.ts'
import { TestProducer } from '../../support/producer.ts'
import type { RawPeer, Received } from '../../support/raw-peer.ts'
import { atH1 } from '../../support/seat.ts'

let producer: TestProducer
beforeAll(async () => {
  producer = await TestProducer.start()
})
afterAll(() => producer.stop())

/** What came, as words: `r4` is the response to seq 4, `v` and `g` are values and GAPs. */
function words(messages: readonly Received[]): string[] {
  return messages.flatMap((message) => {
    if (message.kind === 'response') return message.seq >= 0xfff00000 ? [] : [`r${message.seq}`]
    return message.kind === 'value' ? ['v'] : message.kind === 'gap' ? ['g'] : []
  })
}

describe('rule 1: many commands in flight', () => {
  it('are each answered exactly once, by their seq, whatever their order', async () => {
    const { peer } = await producer.login()
    const seqs = Array.from({ length: 2_000 }, (_, index) => (index * 7_919) % 4_294_967)
    const make = [
      command.nop,
      (seq: number) => command.collect(seq, 'test.a'),
      (seq: number) => command.stop(seq, 1),
      (seq: number) => command.commit(seq, 0),
      (seq: number) => command.query(seq, 'test.a'),
      (seq: number) => command.unknown(seq, 99),
      (seq: number) => frame(u32(1), u32(seq)),
    ]
    peer.send(...seqs.map((seq, index) => (make[index % make.length] as (seq: number) => Uint8Array)(seq)))
    const answered: number[] = []
    while (answered.length < seqs.length) answered.push((await peer.until('response')).seq)
    await producer.settle()
    expect(peer.pending().filter(({ kind }) => kind === 'response')).toEqual([])
    expect(answered.toSorted((a, b) => a - b)).toEqual(seqs.toSorted((a, b) => a - b))
  })

  it('may be answered in another order: what waits for the disk is overtaken', async () => {
    const { peer } = await producer.login()
    peer.send(command.collect(1, 'test.a'))
    const { result: metric } = await peer.response(1)
    producer.store.manual = true
    peer.send(command.subscribe(2, metric), command.nop(3))
    expect((await peer.until('response')).seq).toBe(3)
    producer.store.manual = false
    await producer.settle()
    producer.store.complete()
    expect((await peer.until('response')).seq).toBe(2)
  })

  it('may have the same seq: each has its response', async () => {
    const { peer } = await producer.login()
    peer.send(command.nop(5), command.collect(5, 'nothing.x'), command.nop(5))
    const statuses = [await peer.response(5), await peer.response(5), await peer.response(5)].map((each) => each.status)
    expect(statuses.toSorted()).toEqual([status.OK, status.OK, status.NO_SUCH_METRIC])
  })

  const causing: [string, (peer: RawPeer) => Promise<Uint8Array>][] = [
    ['SUBSCRIBE of a polled metric', async (peer) => command.subscribe(9, await collected(peer, 'producer.stats'))],
    [
      'SUBSCRIBE of what is BUFFERed',
      async (peer) => {
        const metric = await collected(peer, 'test.order')
        peer.send(command.buffer(2, metric))
        await peer.response(2)
        producer.emit(1, 'test.order')
        return command.subscribe(9, metric)
      },
    ],
    ['GET of a continuous metric', async (peer) => command.get(9, await collected(peer, 'producer.stats'))],
    [
      'GET of waiting values',
      async (peer) => {
        const metric = await collected(peer, 'events.thing')
        peer.send(command.buffer(2, metric))
        await peer.response(2)
        producer.things.happen(1, 1_000)
        return command.get(9, metric)
      },
    ],
    ['QUERY', async () => command.query(9, 'producer.stats')],
    ['EXECUTE', async () => command.execute(9, 'channel.purge', args(['channel', type.uint32, u32(0)]))],
  ]
  it.each(causing)('a response precedes every value that %s causes', async (_, prepare) => {
    const { peer } = await producer.login()
    const bytes = await prepare(peer)
    await producer.settle()
    peer.pending()
    producer.store.manual = true
    peer.send(bytes)
    for (let step = 0; step < 4; step++) {
      await producer.settle()
      producer.store.complete()
    }
    producer.store.manual = false
    await producer.settle()
    expect(words(peer.pending())).toEqual(['r9', 'v'])
  })

  it('a response of SET_CHANNEL precedes the values that wait on that channel', async () => {
    const seat = await producer.seat()
    const other = await seat.defChannel()
    await seat.follow('test.b', other)
    producer.emit(3, 'test.b')
    await producer.settle()
    const from = seat.peer.log.length
    const seq = seat.send((number) => command.setChannel(number, other))
    await seat.value()
    expect(words(seat.peer.log.slice(from))).toEqual([`r${seq}`, 'v'])
  })
})

async function collected(peer: RawPeer, metric: string): Promise<number> {
  peer.send(command.collect(1, metric))
  return (await peer.response(1)).result
}

describe('rule 2: on connect the producer defines a channel', () => {
  it('and makes it current; its id is the result of AUTH', async () => {
    const seat = await producer.seat('rule2')
    expect(await seat.ledger(0)).toMatchObject({ channel: seat.channel, state: 'connected', bindings: [] })
    expect(await seat.ok((seq) => command.setChannel(seq, seat.channel))).toBe(0)
    const metric = await seat.collect('test.a', atH1)
    await seat.ok((seq) => command.subscribe(seq, metric, seat.channel))
    producer.emit(4)
    expect(await seat.value()).toMatchObject({ metric })
  })

  it('of its own, each time', async () => {
    const [one, two] = [await producer.seat('rule2'), await producer.seat('rule2')]
    expect(one.channel).not.toBe(two.channel)
  })
})

describe('rule 3: before AUTH', () => {
  const others: [string, Uint8Array][] = [
    ['COLLECT', command.collect(1, 'test.a')],
    ['STOP', command.stop(1, 1)],
    ['SUBSCRIBE', command.subscribe(1, 1)],
    ['BUFFER', command.buffer(1, 1)],
    ['GET', command.get(1, 1)],
    ['DEF_CHANNEL', command.defChannel(1)],
    ['SET_CHANNEL', command.setChannel(1, 0)],
    ['DEL_CHANNEL', command.delChannel(1, 0)],
    ['COMMIT', command.commit(1, 0)],
    ['COMMIT through', command.commitThrough(1, 0)],
    ['EXECUTE', command.execute(1, 'channel.purge')],
    ['QUERY', command.query(1, 'test.a')],
    ['a command that does not exist', command.unknown(1, 14)],
    ['another one', command.unknown(1, 0xffffffff)],
    ['a COLLECT that does not decode', frame(u32(1), u32(1))],
    ['an EXECUTE with bytes left over', frame(u32(11), u32(1), str('x'), args(), u32(0))],
  ]
  it.each(others)('%s is NOT_AUTHENTICATED', async (_, bytes) => {
    const peer = producer.connect()
    await peer.until('caps')
    peer.send(bytes, command.nop(2))
    expect(await peer.response(1)).toMatchObject({ status: status.NOT_AUTHENTICATED, result: 0 })
    expect(await peer.response(2)).toMatchObject({ status: status.OK })
  })

  it('NOP, AUTH and WRAP are looked at', async () => {
    const peer = producer.connect()
    await peer.until('caps')
    peer.send(command.nop(1))
    expect(await peer.response(1)).toMatchObject({ status: status.OK, result: 0 })
    peer.send(command.auth(2, 'no-such-method', new Uint8Array(0)))
    expect(await peer.response(2)).toMatchObject({ status: status.UNSUPPORTED })
    peer.send(command.wrap(3, 'tls'))
    expect(await peer.response(3)).toMatchObject({ status: status.UNSUPPORTED })
  })

  it.each([0, 6, 13])('command %i that does not decode is INVALID_ARGUMENT: it is looked at', async (code) => {
    const peer = producer.connect()
    await peer.until('caps')
    peer.send(frame(u32(code), u32(1), u32(77)))
    expect(await peer.response(1)).toMatchObject({ status: status.INVALID_ARGUMENT })
  })

  it('is over with AUTH: another one is ALREADY_AUTHENTICATED, by any method, and nothing changes', async () => {
    const seat = await producer.seat()
    for (const method of ['password', 'scram-sha-256', 'none', '']) {
      const answer = await seat.ask((seq) => command.auth(seq, method, join(str('admin'), str('admin-password'))))
      expect(answer).toMatchObject({ status: status.ALREADY_AUTHENTICATED, result: 0 })
    }
    expect(await seat.ledger(0)).toMatchObject({ identity: 'tester' })
  })

  it('is not over while an exchange is under way', async () => {
    const peer = producer.connect()
    peer.send(command.auth(1, 'scram-sha-256', Buffer.from('n,,n=tester,r=abcdefgh')))
    await peer.until('auth')
    peer.send(command.collect(2, 'test.a'))
    expect(await peer.response(2)).toMatchObject({ status: status.NOT_AUTHENTICATED })
  })
})

describe('rule 4: AUTH_NEEDED', () => {
  it('is followed by exactly one AUTH message, and the consumer goes on with an empty method', async () => {
    const peer = producer.connect()
    await peer.until('caps')
    const scram = new ScramClient({ identity: 'admin', password: 'admin-password' })
    peer.send(command.auth(1, 'scram-sha-256', scram.first()))
    expect(await peer.next()).toMatchObject({ kind: 'response', seq: 1, status: status.AUTH_NEEDED, result: 0 })
    const first = await peer.next()
    if (first.kind !== 'auth') throw new Error('no AUTH message')
    expect(first.data.toString()).toMatch(/^r=.+,s=.+,i=\d+$/)
    await producer.settle()
    expect(peer.pending()).toEqual([])
    peer.send(command.auth(2, '', await scram.final(first.data)))
    expect(await peer.next()).toMatchObject({ kind: 'response', seq: 2, status: status.AUTH_NEEDED })
    const final = await peer.next()
    if (final.kind !== 'auth') throw new Error('no AUTH message')
    expect(final.data.toString()).toMatch(/^v=/)
    await producer.settle()
    expect(peer.pending()).toEqual([])
    peer.send(command.auth(3, '', new Uint8Array(0)))
    expect(await peer.next()).toMatchObject({ kind: 'response', seq: 3, status: status.OK })
    expect((await peer.next()).kind).toBe('caps')
  })

  it('is followed by no AUTH message where the exchange failed', async () => {
    const peer = producer.connect()
    peer.send(command.auth(1, 'scram-sha-256', Buffer.from('not scram')))
    expect(await peer.response(1)).toMatchObject({ status: status.AUTH_FAILED })
    await producer.settle()
    expect(peer.pending()).toEqual([])
  })
})

describe('rule 5: COLLECT', () => {
  it('makes an instance, and nothing is measured until somebody wants it', async () => {
    const seat = await producer.seat()
    const asked = producer.slow.asked.length
    const metric = await seat.collect('slow.value', args(['which', type.uint32, u32(5)]))
    producer.clock.advance(60_000)
    await producer.settle()
    expect(producer.slow.asked.length).toBe(asked)
    await seat.ok((seq) => command.get(seq, metric))
    expect(producer.slow.asked.length).toBe(asked + 1)
  })

  it('always makes another id, for the same metric too', async () => {
    const seat = await producer.seat()
    expect(await seat.collect('test.a', atH1)).not.toBe(await seat.collect('test.a', atH1))
  })
})
