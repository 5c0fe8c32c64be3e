/** Section 8, Ledger: accepted = committed + in flight + queued + dropped, at every moment, and who is shown it. */
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { args, command, join, str, toHex, type, u32, u64 } from '../../support/bytes.ts'
import { EPOCH, TestProducer } from '../../support/producer.ts'
import { balance, decoded } from '../../support/records.ts'
import type { Seat } from '../../support/seat.ts'

describe('Ledger', () => {
  let producer: TestProducer
  let seat: Seat
  beforeEach(async () => {
    producer = await TestProducer.start()
    seat = await producer.seat()
  })
  afterEach(() => producer.stop())

  it('is one ARRAY of RECs with these fields in this order, and these types', async () => {
    const channel = await seat.defChannel()
    const id = await seat.follow('test.a', channel)
    const waiting = await seat.hoard('test.b', channel)
    producer.emit(1)
    producer.emit(2)
    await producer.settle()
    const shown = await seat.query('producer.channels', args(['channel', type.string, str(String(channel))]))
    const field = (name: string, of: number, value: Uint8Array): Uint8Array => join(str(name), u32(of), value)
    const count = (name: string, value: number | bigint): Uint8Array => field(name, type.uint64, u64(value))
    const reasons = ['overflow', 'superseded', 'expired', 'damaged', 'purged', 'stopped', 'full']
    const binding = (metric: number, name: string, mode: string): Uint8Array =>
      join(
        u32(3),
        field('metric', type.uint32, u32(metric)),
        field('name', type.string, str(name)),
        field('mode', type.string, str(mode)),
      )
    // The only number that is random: where the ids of the channel begin.
    const at = Buffer.from(shown.value).indexOf('stored')
    const stored = Buffer.from(shown.value).readBigUInt64BE(at + 12)
    const expected = join(
      u32(type.rec),
      u32(1),
      u32(25),
      field('channel', type.uint32, u32(channel)),
      field('identity', type.string, str('tester')),
      field('name', type.string, str('')),
      field('url', type.string, str('')),
      field('state', type.string, str('waiting')),
      field('durable', type.boolean, u32(1)),
      count('accepted', 2),
      count('committed', 0),
      count('in_flight', 0),
      count('queued', 2),
      count('queued_bytes', 64),
      count('stored', stored),
      count('unstored', 0),
      count('gaps', 0),
      count('oldest', EPOCH + 1),
      field('dropped', type.rec, join(u32(reasons.length), ...reasons.map((reason) => count(reason, 0)))),
      field(
        'bindings',
        type.array,
        join(u32(type.rec), u32(2), binding(id, 'test.a', 'subscribe'), binding(waiting, 'test.b', 'buffer')),
      ),
      field('bound', type.uint32, u32(2)),
      field('results', type.uint32, u32(0)),
      field('window', type.uint32, u32(65_536)),
      count('window_bytes', 8_388_608),
      count('max_bytes', 67_108_864),
      count('max_age_ms', 604_800_000),
      count('expire_ms', 604_800_000),
      field('overflow', type.string, str('drop-oldest')),
    )
    expect(shown.type).toBe(type.array)
    expect(toHex(shown.value)).toBe(toHex(expected))
  })

  it('balances through any mix of what can happen', async () => {
    const channel = await seat.defChannel(['max_bytes', type.uint32, u32(4096)], ['window', type.uint32, u32(20)])
    await seat.setChannel(channel)
    let id = await seat.follow('test.a')
    const waiting = await seat.hoard('test.b')
    const watcher = await producer.seat()
    let current = seat
    const step = fc.constantFrom('emit', 'burst', 'wait', 'commit', 'get', 'stop', 'purge', 'leave', 'age', 'copy')
    const [steps] = fc.sample(fc.array(step, { minLength: 120, maxLength: 120 }), { seed: 8, numRuns: 1 }) as [string[]]
    let clock = 0
    for (const next of steps) {
      const last = current.peer.log.findLast((message) => message.kind === 'value' && message.transaction > 0)
      if (next === 'emit') producer.emit(clock++)
      else if (next === 'burst') for (let i = 0; i < 200; i++) producer.emit(clock++)
      else if (next === 'wait') producer.emit(clock++, 'test.b')
      else if (next === 'commit' && last?.kind === 'value') await current.commit(last.transaction)
      else if (next === 'get') await current.ok((seq) => command.get(seq, waiting))
      else if (next === 'age') producer.clock.leap(2 * 86_400_000)
      else if (next === 'copy') await current.ok((seq) => command.subscribe(seq, id, watcher.channel))
      else if (next === 'stop') {
        await current.ok((seq) => command.stop(seq, id))
        id = await current.follow('test.a')
      } else if (next === 'purge') {
        const list = args(['channel', type.uint32, u32(0)])
        await current.ok((seq) => command.execute(seq, 'channel.purge', list))
      } else if (next === 'leave') {
        current.peer.destroy()
        await producer.settle()
        current = await producer.seat()
        await current.setChannel(channel)
      }
      for (const each of [channel, watcher.channel])
        expect([next, balance(await watcher.ledger(each))]).toEqual([next, 0])
    }
  })

  it('a copy counts as accepted on its destination', async () => {
    const other = await producer.seat()
    const id = await seat.follow('test.a')
    producer.emit(1)
    await seat.value()
    await seat.ok((seq) => command.subscribe(seq, id, other.channel))
    expect((await seat.ledger()).accepted).toBe(1)
    expect((await other.ledger()).accepted).toBe(1)
  })

  it('in flight becomes queued when the connection ends, and when it leaves by SET_CHANNEL', async () => {
    const channel = await seat.defChannel()
    await seat.follow('test.a', channel)
    await seat.setChannel(channel)
    producer.emit(1)
    await seat.value()
    expect(await seat.ledger()).toMatchObject({ state: 'connected', in_flight: 1, queued: 0 })
    const other = await seat.defChannel()
    await seat.setChannel(other)
    expect(await seat.ledger(channel)).toMatchObject({ state: 'waiting', in_flight: 0, queued: 1 })
    await seat.setChannel(channel)
    await seat.value()
    seat.peer.destroy()
    await producer.settle()
    const watcher = await producer.seat()
    expect(await watcher.ledger(channel)).toMatchObject({ state: 'waiting', in_flight: 0, queued: 1, queued_bytes: 32 })
  })

  it('counts what STOP discards, waiting values at once, queued ones when they are passed over at the latest', async () => {
    await seat.follow('test.z')
    const sent = await seat.follow('test.a')
    const waiting = await seat.hoard('test.b')
    producer.emit(1)
    producer.emit(2, 'test.b')
    await seat.value()
    await seat.ok((seq) => command.stop(seq, waiting))
    expect(await seat.ledger()).toMatchObject({ queued: 0, in_flight: 1, dropped: { stopped: 1 } })
    await seat.ok((seq) => command.stop(seq, sent))
    expect(await seat.ledger()).toMatchObject({ queued: 0, in_flight: 0, dropped: { stopped: 2 } })
  })

  it('GAPs are counted apart', async () => {
    await seat.setChannel(await seat.defChannel(['max_bytes', type.uint32, u32(1024)]))
    await seat.follow('test.a')
    producer.push.push('test.a', { type: 7, value: 'x'.repeat(2000) }, EPOCH)
    await seat.gap()
    expect(await seat.ledger()).toMatchObject({
      accepted: 1,
      in_flight: 0,
      queued: 0,
      gaps: 1,
      dropped: { overflow: 1 },
    })
  })

  describe('`producer.channels`', () => {
    async function shown(of: Seat, ...list: readonly (readonly [string, number, Uint8Array])[]): Promise<number[]> {
      const answer = decoded(await of.query('producer.channels', args(...list)))
      return answer.map(({ channel }: { channel: number }) => channel)
    }

    it('shows an identity its own channels, and the role admin all, ascending', async () => {
      const mine = [seat.channel, await seat.defChannel(), await seat.defChannel()].sort((a, b) => a - b)
      const stranger = await producer.seat('stranger')
      await producer.addUser('root', { role: 'admin' })
      const root = await producer.seat('root')
      await producer.addUser('abroad', { tenant: 'other' })
      const abroad = await producer.seat('abroad', 'other')
      expect(await shown(seat)).toEqual(mine)
      expect(await shown(stranger)).toEqual([stranger.channel])
      expect(await shown(abroad)).toEqual([abroad.channel])
      const all = [...mine, stranger.channel, root.channel, abroad.channel].sort((a, b) => a - b)
      expect(await shown(root)).toEqual(all)
      const identities = decoded(await root.query('producer.channels')).map(
        ({ identity }: { identity: string }) => identity,
      )
      expect(new Set(identities)).toEqual(new Set(['tester', 'stranger', 'root', 'other/abroad']))
    })

    it('`channel` selects one, "0" the current; one that is not shown is an empty ARRAY', async () => {
      const other = await seat.defChannel()
      const stranger = await producer.seat('stranger')
      const one = (channel: number | string) => shown(seat, ['channel', type.string, str(String(channel))])
      expect(await one(other)).toEqual([other])
      expect(await one('0')).toEqual([seat.channel])
      await seat.setChannel(other)
      expect(await one('0')).toEqual([other])
      expect(await one(stranger.channel)).toEqual([])
      expect(await one(1)).toEqual([])
    })

    it('what is neither an id nor a name is INVALID_ARGUMENT, to QUERY and to COLLECT', async () => {
      for (const bad of ['', '12345678901', 'a\n', 'x'.repeat(256)]) {
        const list = args(['channel', type.string, str(bad)])
        for (const make of [command.query, command.collect]) {
          expect((await seat.ask((seq) => make(seq, 'producer.channels', list))).status).toBe(6)
        }
      }
      const number = args(['channel', type.uint32, u32(0)])
      expect((await seat.ask((seq) => command.query(seq, 'producer.channels', number))).status).toBe(6)
    })

    it('`after` continues; what does not fit one frame is left out, and the last REC says so', async () => {
      const name = `test.${'n'.repeat(240)}`
      const channels = [seat.channel]
      for (let i = 0; i < 7; i++) channels.push(await seat.defChannel())
      channels.sort((a, b) => a - b)
      for (let i = 0; i < 700; i++) {
        const id = await seat.collect(name)
        await Promise.all(channels.map((channel) => seat.ok((seq) => command.subscribe(seq, id, channel))))
      }
      const seen: number[] = []
      let more = true
      for (let after = 0; more; after = seen.at(-1) as number) {
        const answer = await seat.query('producer.channels', args(['after', type.uint32, u32(after)]))
        expect(answer.bytes.length).toBeLessThanOrEqual(1 << 20)
        const list = decoded(answer)
        more = list.at(-1).more === true
        if (more) expect(list.pop()).toEqual({ more: true })
        // Full means full: another channel would not have fitted.
        if (more) expect(answer.bytes.length).toBeGreaterThan((1 << 20) - answer.bytes.length / list.length)
        seen.push(...list.map(({ channel }: { channel: number }) => channel))
      }
      expect(seen).toEqual(channels)
    })
  })
})
