import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ALL, args, command, opaque, status, type, u32 } from '../../support/bytes.ts'
import { TestProducer } from '../../support/producer.ts'
import type { Seat } from '../../support/seat.ts'
import { atH1 } from '../../support/seat.ts'

let producer: TestProducer
beforeAll(async () => {
  producer = await TestProducer.start()
})
afterAll(() => producer.stop())

/** The arglist of a PRODUCER_CAPS, by the table of section 3.2; uint32s as numbers. */
function capsOf(bytes: Buffer): { major: number; minor: number; entries: [string, string | number][] } {
  let at = 16
  const entries: [string, string | number][] = []
  const text = (): string => {
    const length = bytes.readUInt32BE(at)
    const found = bytes.subarray(at + 4, at + 4 + length).toString('utf8')
    at += 4 + length + (-length & 3)
    return found
  }
  for (let left = bytes.readUInt32BE(12); left > 0; left--) {
    const name = text()
    const basicType = bytes.readUInt32BE(at)
    at += 4
    if (basicType === type.string) {
      entries.push([name, text()])
    } else if (basicType === type.uint32) {
      entries.push([name, bytes.readUInt32BE(at)])
      at += 4
    } else {
      throw new Error(`no entry of PRODUCER_CAPS has the type ${basicType}`)
    }
  }
  if (at !== bytes.length) throw new Error('bytes are left over after the arglist')
  return { major: bytes.readUInt32BE(4), minor: bytes.readUInt32BE(8), entries }
}

describe('PRODUCER_CAPS', () => {
  it('is the first thing on a connection, and tells what this connection is offered', async () => {
    const first = await producer.connect().next()
    if (first.kind !== 'caps') throw new Error(`the first message is a ${first.kind}`)
    const { major, minor, entries } = capsOf(first.bytes)
    expect([major, minor]).toEqual([1, 1])
    expect(entries.filter(([name]) => name !== 'software')).toEqual([
      ['auth', 'scram-sha-256'],
      ['auth', 'token'],
      ['auth', 'password'],
      ['extension', 'channel-name'],
      ['extension', 'commit-through'],
      ['extension', 'element-time'],
      ['extension', 'gap'],
      ['extension', 'notice'],
      ['max_frame', 65_536],
    ])
    expect(entries.filter(([name]) => name === 'software')).toEqual([
      ['software', expect.stringMatching(/^cinnabar\//)],
    ])
  })

  it('is first even where the peer has spoken before, and where what it said was no frame', async () => {
    const polite = producer.connect()
    polite.send(command.nop(1))
    expect((await polite.next()).kind).toBe('caps')
    const rude = producer.connect()
    rude.send(u32(3))
    expect((await rude.next()).kind).toBe('caps')
  })

  it('comes again directly after the response to AUTH, with the limit now in force', async () => {
    const { peer } = await producer.login()
    const response = peer.log.findIndex((message) => message.kind === 'response' && message.seq === 0xfff00002)
    const next = peer.log[response + 1]
    if (next?.kind !== 'caps') throw new Error(`a ${next?.kind} follows the response of AUTH`)
    expect(capsOf(next.bytes).entries).toContainEqual(['max_frame', 1_048_576])
    expect(peer.log.filter(({ kind }) => kind === 'caps')).toHaveLength(2)
  })
})

describe('a RESPONSE', () => {
  it('has a detail if and only if it is neither OK nor AUTH_NEEDED', async () => {
    const peer = producer.connect()
    await peer.until('caps')
    peer.send(command.nop(1), command.auth(2, 'scram-sha-256', Buffer.from('n,,n=x,r=abcdefgh')))
    expect((await peer.response(1)).bytes).toHaveLength(16)
    expect(await peer.response(2)).toMatchObject({ status: status.AUTH_NEEDED, result: 0 })
    peer.send(command.collect(3, 'test.a'))
    const refused = await peer.response(3)
    expect(refused.detail.length).toBeGreaterThan(0)
    expect(refused.bytes).toHaveLength(20 + refused.detail.length + (-refused.detail.length & 3))
  })
})

describe('what is not yours and what is not there give the same status and detail', () => {
  let alice: Seat
  let bob: Seat
  let mine: number
  let bobs: { channel: number; metric: number; result: number; transaction: number }
  const NONE = 0x7ffffff0
  beforeAll(async () => {
    alice = await producer.seat('alice')
    bob = await producer.seat('bob')
    mine = await alice.collect('test.a', atH1)
    const metric = await bob.follow('test.a')
    producer.emit(1)
    const { transaction } = await bob.value()
    const result = await bob.ok((seq) => command.execute(seq, 'channel.purge', channelArgument(0)))
    bobs = { channel: bob.channel, metric, result, transaction }
  })

  const channelArgument = (channel: number) => args(['channel', type.uint32, u32(channel)])
  const same = async (make: (seq: number, id: number) => Uint8Array, id: number, none: number, expected: number) => {
    const theirs = await alice.ask((seq) => make(seq, id))
    const nobodys = await alice.ask((seq) => make(seq, none))
    expect(theirs.status).toBe(expected)
    expect([theirs.status, theirs.result, theirs.detail]).toEqual([nobodys.status, nobodys.result, nobodys.detail])
  }

  it.each<[string, (seq: number, channel: number) => Uint8Array]>([
    ['SET_CHANNEL', (seq, channel) => command.setChannel(seq, channel)],
    ['DEL_CHANNEL', (seq, channel) => command.delChannel(seq, channel)],
    ['STOP', (seq, channel) => command.stop(seq, mine, channel)],
    ['SUBSCRIBE', (seq, channel) => command.subscribe(seq, mine, channel)],
    ['BUFFER', (seq, channel) => command.buffer(seq, mine, channel)],
    ['GET', (seq, channel) => command.get(seq, mine, channel)],
    ['channel.configure', (seq, channel) => command.execute(seq, 'channel.configure', channelArgument(channel))],
    ['channel.purge', (seq, channel) => command.execute(seq, 'channel.purge', channelArgument(channel))],
  ])('the channel of %s', async (_, make) => {
    await same(make, bobs.channel, NONE, status.NO_SUCH_CHANNEL)
  })

  it.each<[string, (seq: number, metric: number) => Uint8Array]>([
    ['STOP', (seq, metric) => command.stop(seq, metric)],
    ['SUBSCRIBE', (seq, metric) => command.subscribe(seq, metric)],
    ['BUFFER', (seq, metric) => command.buffer(seq, metric)],
    ['GET', (seq, metric) => command.get(seq, metric)],
  ])('the metric id of %s, that of a result too', async (_, make) => {
    await same(make, bobs.metric, NONE, status.NO_SUCH_ID)
    await same(make, bobs.result, NONE, status.NO_SUCH_ID)
  })

  it('the transaction id of COMMIT', async () => {
    await same((seq, id) => command.commit(seq, id), bobs.transaction, 3, status.NO_SUCH_TRANSACTION)
    await same((seq, id) => command.commitThrough(seq, id), bobs.transaction, 3, status.NO_SUCH_TRANSACTION)
    expect(await bob.ledger()).toMatchObject({ committed: 0 })
  })

  it('the destination of DEF_CHANNEL', async () => {
    const secret = args(['secret', type.opaque, opaque(new Uint8Array(16))])
    const urls = ['tcp://127.0.0.1:1', 'tcp://10.0.0.1:7650', 'wss://monitor.example/monitor']
    const answers = await Promise.all(urls.map((url) => alice.ask((seq) => command.defChannel(seq, url, secret))))
    expect(new Set(answers.map((answer) => `${answer.status} ${answer.detail}`)).size).toBe(1)
    expect(answers[0]).toMatchObject({ status: status.PERMISSION_DENIED })
  })

  it('and nothing of bob was touched', async () => {
    expect(bob.peer.closed).toBe(false)
    expect(await bob.ledger()).toMatchObject({
      channel: bobs.channel,
      in_flight: 1,
      bindings: [{ metric: bobs.metric }],
    })
  })
})

describe('ids', () => {
  it('of metrics, results and channels are from 1 to 0x7fffffff, all different, and not given again soon', async () => {
    const { peer, channel } = await producer.login()
    const ids = [channel]
    for (let seq = 1; seq <= 3_000; seq += 3) {
      peer.send(command.collect(seq, 'test.a'), command.query(seq + 1, 'test.a'), command.defChannel(seq + 2))
      for (const each of [seq, seq + 1, seq + 2]) ids.push((await peer.response(each)).result)
      peer.send(command.stop(seq, ids.at(-3) as number), command.delChannel(seq, ids.at(-1) as number))
    }
    expect(new Set(ids).size).toBe(ids.length)
    expect(ids.every((id) => id >= 1 && id <= 0x7fffffff)).toBe(true)
  })
})

describe('channel 0xffffffff', () => {
  it('is INVALID_ARGUMENT to SET_CHANNEL', async () => {
    const seat = await producer.seat()
    const refused = await seat.ask((seq) => command.setChannel(seq, ALL))
    expect(refused).toMatchObject({ status: status.INVALID_ARGUMENT })
  })

  it('is to STOP every channel of the identity on which the id is bound', async () => {
    const seat = await producer.seat('all-stop')
    const other = await seat.defChannel()
    const metric = await seat.follow('test.a')
    await seat.ok((seq) => command.subscribe(seq, metric, other))
    expect(await seat.ok((seq) => command.stop(seq, metric, ALL))).toBe(0)
    expect(await seat.ask((seq) => command.stop(seq, metric))).toMatchObject({ status: status.NO_SUCH_ID })
    expect((await seat.ledger(other)).bindings).toEqual([])
  })

  it('is to GET every channel on which the id is bound, and no other', async () => {
    const seat = await producer.seat('all-get')
    const [first, second, third] = [await seat.defChannel(), await seat.defChannel(), await seat.defChannel()]
    const metric = await seat.collect('events.thing')
    for (const channel of [first, second]) await seat.ok((seq) => command.buffer(seq, metric, channel))
    producer.things.happen(1, 1_000_000)
    await seat.ok((seq) => command.get(seq, metric, ALL))
    for (const channel of [first, second]) {
      await seat.setChannel(channel)
      expect(await seat.value()).toMatchObject({ metric, time: 1_000_000 })
    }
    expect(await seat.ledger(third)).toMatchObject({ accepted: 0 })
  })

  it('is to DEL_CHANNEL every channel of the identity, and of no other', async () => {
    const [seat, second, stranger] = [
      await producer.seat('all-del'),
      await producer.seat('all-del'),
      await producer.seat('stranger'),
    ]
    const defined = await seat.defChannel()
    const metric = await seat.follow('test.a', defined)
    const seq = seat.send((number) => command.delChannel(number, ALL))
    expect(await seat.response(seq)).toMatchObject({ status: status.OK, result: 0 })
    expect(await seat.notice()).toMatchObject({ code: 5, channel: seat.channel })
    await seat.closed()
    expect(await second.notice()).toMatchObject({ code: 5, channel: second.channel })
    await second.closed()
    const again = await producer.seat('all-del')
    for (const channel of [seat.channel, second.channel, defined]) {
      expect(await again.ask((number) => command.setChannel(number, channel))).toMatchObject({
        status: status.NO_SUCH_CHANNEL,
      })
    }
    expect(await again.ask((number) => command.stop(number, metric))).toMatchObject({ status: status.NO_SUCH_ID })
    expect(await stranger.ask((number) => command.nop(number))).toMatchObject({ status: status.OK })
  })
})

describe('channel 0', () => {
  it('is the current channel, for every command that takes one', async () => {
    const seat = await producer.seat('zero')
    const other = await seat.defChannel()
    await seat.setChannel(other)
    const metric = await seat.collect('test.a', atH1)
    await seat.ok((seq) => command.buffer(seq, metric, 0))
    expect((await seat.ledger(other)).bindings).toEqual([{ metric, name: 'test.a', mode: 'buffer' }])
    await seat.ok((seq) => command.subscribe(seq, metric, 0))
    expect((await seat.ledger(other)).bindings).toEqual([{ metric, name: 'test.a', mode: 'subscribe' }])
    await seat.ok((seq) => command.get(seq, metric, 0))
    expect(await seat.value()).toMatchObject({ metric, transaction: 0 })
    await seat.ok((seq) => command.stop(seq, metric, 0))
    expect((await seat.ledger(other)).bindings).toEqual([])
    await seat.ok((seq) => command.setChannel(seq, 0))
    await seat.ok((seq) => command.delChannel(seq, 0))
    expect(await seat.notice()).toMatchObject({ code: 5, channel: other })
  })

  it('and a channel by its id are the same', async () => {
    const seat = await producer.seat('zero')
    const metric = await seat.collect('test.a', atH1)
    await seat.ok((seq) => command.subscribe(seq, metric, seat.channel))
    expect((await seat.ledger(seat.channel)).bindings).toEqual([{ metric, name: 'test.a', mode: 'subscribe' }])
    expect(await seat.ledger(0)).toMatchObject({ channel: seat.channel })
  })
})
