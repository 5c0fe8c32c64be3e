/** Section 8.1, Names: DEF_CHANNEL with `name` finds the channel of an identity again, or makes it. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { done, newToken, tokenSeat } from '../../support/administration.ts'
import { args, command, status, str, type, u32, u64 } from '../../support/bytes.ts'
import { TestProducer } from '../../support/producer.ts'
import { decoded } from '../../support/records.ts'
import { numberOf, type Seat } from '../../support/seat.ts'
import { Callee, failed, redialled, SECRET, until } from '../edge/outbound/callee.ts'

type Setting = readonly [string, number, Uint8Array]
const named = (name: string): Setting => ['name', type.string, str(name)]
const DAY_MS = 86_400_000
const [expired, purged] = [2, 4]

let producer: TestProducer
let seat: Seat
beforeEach(async () => {
  producer = await TestProducer.start()
  seat = await producer.seat()
})
afterEach(() => producer.stop())

const define = (from: Seat, name: string, ...settings: readonly Setting[]) =>
  from.ask((seq) => command.defChannel(seq, '', args(named(name), ...settings)))

async function leave(from: Seat): Promise<void> {
  from.peer.destroy()
  await producer.settle()
}

describe('a name', () => {
  it('finds the channel again, with what waits on it; a channel without a name is always a new one', async () => {
    const channel = await seat.defChannel(named('billing'))
    await seat.follow('test.a', channel)
    producer.emit(7)
    expect(await seat.defChannel(named('billing'))).toBe(channel)
    await leave(seat)
    const later = await producer.seat()
    expect(await later.defChannel(named('billing'))).toBe(channel)
    await later.setChannel(channel)
    expect(numberOf(await later.value())).toBe(7)
    expect(await later.defChannel()).not.toBe(await later.defChannel())
  })

  it('is reported by `producer.channels`, which finds the channel by it too', async () => {
    const channel = await seat.defChannel(named('billing'))
    expect(await seat.ledger(channel)).toMatchObject({ name: 'billing' })
    expect(await seat.ledger()).toMatchObject({ name: '' })
    expect(await seat.ledger('billing')).toMatchObject({ channel, name: 'billing' })
    expect(await seat.ledger('biling')).toBeUndefined()
  })

  it('belongs to one identity: that of another finds another channel', async () => {
    const channel = await seat.defChannel(named('billing'))
    const other = await producer.seat('bob')
    expect(await other.defChannel(named('billing'))).not.toBe(channel)
    expect(await other.ledger(channel)).toBeUndefined()
  })

  it('has 1 to 255 bytes, no control characters, and not only digits', async () => {
    for (const bad of ['', '0', '1234567890123', 'a\n', 'é'.repeat(128), 'x'.repeat(256)]) {
      expect(await define(seat, bad), bad).toMatchObject({ status: status.INVALID_ARGUMENT, result: 0 })
    }
    for (const good of ['é'.repeat(127), 'x'.repeat(255), '1a', ' ', 'Ⅳ', 'a b=c/d', '-1']) {
      expect(await define(seat, good), good).toMatchObject({ status: status.OK })
    }
    const number = args(['name', type.uint32, u32(7)])
    expect(await seat.ask((seq) => command.defChannel(seq, '', number))).toMatchObject({
      status: status.INVALID_ARGUMENT,
    })
    expect(seat.peer.closed).toBe(false)
  })

  it('survives a restart, with the channel', async () => {
    const channel = await seat.defChannel(named('billing'))
    producer = await producer.restart()
    const later = await producer.seat()
    expect(await later.ledger(channel)).toMatchObject({ name: 'billing' })
    expect(await later.defChannel(named('billing'))).toBe(channel)
  })

  it('is answered when it is stored, also where it was there before and a restart would forget it', async () => {
    producer.store.manual = true
    const first = seat.send((seq) => command.defChannel(seq, '', args(named('billing'))))
    const second = seat.send((seq) => command.defChannel(seq, '', args(named('billing'))))
    await producer.settle()
    expect(seat.rest()).toEqual([])
    producer.store.manual = false
    producer.store.complete()
    expect((await seat.response(second)).result).toBe((await seat.response(first)).result)
  })

  it('is free again for its owner, who deletes the channel, without a GAP', async () => {
    const channel = await seat.defChannel(named('billing'))
    await seat.ok((seq) => command.delChannel(seq, channel))
    const next = await seat.defChannel(named('billing'))
    expect(next).not.toBe(channel)
    await seat.setChannel(next)
    await seat.follow('test.a')
    producer.emit(1)
    expect((await seat.value()).kind).toBe('value')
    expect(seat.rest()).toEqual([])
  })

  it('is one channel for two connections: the second supersedes the first', async () => {
    const channel = await seat.defChannel(named('billing'))
    await seat.setChannel(channel)
    const second = await producer.seat()
    await second.setChannel(await second.defChannel(named('billing')))
    expect(await seat.notice()).toMatchObject({ code: 2, channel })
    await seat.closed()
    expect(await second.ledger(0)).toMatchObject({ channel, state: 'connected' })
  })

  it('is made once by two connections at the same moment', async () => {
    const second = await producer.seat()
    const asked = [seat, second].map((one) => one.defChannel(named('billing')))
    const [a, b] = await Promise.all(asked)
    expect(a).toBe(b)
  })
})

describe('settings that come with a known name', () => {
  it('change the channel as `channel.configure` does; those left out stay', async () => {
    const maxBytes = (bytes: number): Setting => ['max_bytes', type.uint64, u64(bytes)]
    const window: Setting = ['window', type.uint32, u32(1)]
    const channel = await seat.defChannel(named('billing'), window)
    await seat.setChannel(channel)
    await seat.follow('test.a')
    producer.emit(1)
    producer.emit(2)
    expect(numberOf(await seat.value())).toBe(1)
    await producer.settle()
    expect(seat.rest()).toEqual([])
    // `window` is left out, and stays.
    expect(await seat.defChannel(named('billing'), maxBytes(20_000_000))).toBe(channel)
    await producer.settle()
    expect(seat.rest()).toEqual([])
    expect(await seat.defChannel(named('billing'), ['window', type.uint32, u32(2)])).toBe(channel)
    expect(numberOf(await seat.value())).toBe(2)
  })

  it('change nothing for whoever may not run `channel.configure`', async () => {
    await producer.addUser('boss', { role: 'admin' })
    const denied = { role: 'clerk', command: 'EXECUTE', object: 'channel.configure' }
    await done(await producer.seat('boss'), 'role.deny', denied)
    await producer.addUser('clark', { role: 'clerk' })
    const clerk = await producer.seat('clark')
    const channel = await clerk.defChannel(named('billing'), ['window', type.uint32, u32(7)])
    const other: Setting = ['window', type.uint32, u32(8)]
    expect(await define(clerk, 'billing', other)).toMatchObject({ status: status.PERMISSION_DENIED })
    expect(await clerk.defChannel(named('billing'), ['window', type.uint32, u32(7)])).toBe(channel)
  })

  it('refuse the whole command where `channel.configure` would be refused', async () => {
    const channel = await seat.defChannel(named('billing'), ['window', type.uint32, u32(1)])
    await seat.follow('test.a', channel)
    producer.emit(1)
    producer.emit(2)
    const wide: Setting = ['window', type.uint32, u32(2)]
    const volatile: Setting = ['durable', type.boolean, u32(0)]
    expect(await define(seat, 'billing', wide, volatile)).toMatchObject({ status: status.BUSY })
    expect(await define(seat, 'billing', wide, ['max_bytes', type.uint64, u64(2 ** 40)])).toMatchObject({
      status: status.QUOTA_EXCEEDED,
    })
    expect(await define(seat, 'billing', wide, ['overflow', type.string, str('explode')])).toMatchObject({
      status: status.INVALID_ARGUMENT,
    })
    await seat.setChannel(channel)
    expect(numberOf(await seat.value())).toBe(1)
    await producer.settle()
    expect(seat.rest()).toEqual([])
  })

  it('are not needed where there is no room: a channel that is there takes none', async () => {
    const small = await TestProducer.start({ config: { limits: { channelsPerIdentity: 1 } } })
    const one = await small.seat()
    const channel = await one.defChannel(named('billing'))
    expect(await define(one, 'other')).toMatchObject({ status: status.QUOTA_EXCEEDED })
    small.store.low = true
    await small.settle()
    expect(await one.defChannel(named('billing'))).toBe(channel)
    await small.stop()
  })
})

describe('a URL that comes with a known name', () => {
  it('has to be that of the channel', async () => {
    const phone = await Callee.listen()
    const url = `tcp://127.0.0.1:${phone.port}`
    const dialling = await TestProducer.start({ config: { dial: { allow: [url, 'tcp://127.0.0.1:9'] } } })
    await dialling.addUser('boss', { role: 'admin' })
    const boss = await dialling.seat('boss')
    const secret: Setting = ['secret', type.opaque, str(SECRET)]
    const call = (to: string, ...settings: readonly Setting[]) =>
      boss.ask((seq) => command.defChannel(seq, to, args(named('billing'), ...settings)))
    const { result: channel } = await call(url, secret)
    expect(channel).toBeGreaterThan(0)
    for (const other of ['', 'tcp://127.0.0.1:9']) {
      const answer = await call(other, ...(other === '' ? [] : [secret]))
      expect(answer).toMatchObject({ status: status.INVALID_ARGUMENT, result: 0 })
      expect(answer.detail).toContain(url)
    }
    // Without a secret it keeps the one that it has.
    expect(await call(url)).toMatchObject({ status: status.OK, result: channel })
    const callee = await phone.answer('boss')
    expect(callee.channel).toBe(channel)
    await dialling.stop()
    await phone.close()
  })

  it('gives the channel another secret, by which its consumer proves itself from the next call on', async () => {
    const phone = await Callee.listen()
    const url = `tcp://127.0.0.1:${phone.port}`
    const dialling = await TestProducer.start({ config: { dial: { allow: [url] } } })
    await dialling.addUser('boss', { role: 'admin' })
    const boss = await dialling.seat('boss')
    const call = (secret: string) =>
      boss.ok((seq) => command.defChannel(seq, url, args(named('billing'), ['secret', type.opaque, str(secret)])))
    const channel = await call(SECRET.replace(/./g, 'x'))
    const before = await phone.call()
    expect(await call(SECRET)).toBe(channel)
    before.destroy()
    await until(() => failed(dialling) === 1)
    redialled(dialling)
    const callee = await phone.answer('boss')
    expect(callee.channel).toBe(channel)
    await dialling.stop()
    await phone.close()
  })

  it('leaves the later of two secrets in force, as it is stored, in whatever order the commands are answered', async () => {
    const phone = await Callee.listen()
    const url = `tcp://127.0.0.1:${phone.port}`
    const dialling = await TestProducer.start({ config: { dial: { allow: [url] } } })
    await dialling.addUser('boss', { role: 'admin' })
    const [one, two] = [await dialling.seat('boss'), await dialling.seat('boss')]
    const call = (from: Seat, secret: string): number =>
      from.send((seq) => command.defChannel(seq, url, args(named('billing'), ['secret', type.opaque, str(secret)])))
    const { journal } = dialling.server.parts.producer
    const change = journal.change.bind(journal)
    let stored = 0
    journal.change = (given) => {
      if ('put' in given && given.put === 'dial') stored++
      change(given)
    }
    dialling.store.manual = true
    // From now on its responses come first.
    two.send((seq) => command.defChannel(seq, ''))
    await dialling.settle()
    const first = call(one, SECRET.replace(/./g, 'x'))
    // Their verifiers take a while.
    await until(() => stored === 1)
    const second = call(two, SECRET)
    await until(() => stored === 2)
    dialling.store.manual = false
    dialling.store.complete()
    expect((await one.response(first)).result).toBe((await two.response(second)).result)
    const callee = await phone.answer('boss')
    expect(callee.channel).toBe((await two.ledger('billing')).channel)
    await dialling.stop()
    await phone.close()
  })
})

describe('the successor of a channel that its owner has not deleted', () => {
  const firstOf = async (from: Seat): Promise<unknown> => {
    await from.setChannel(await from.defChannel(named('billing')))
    const { reason, count, metric, from: begin, to } = await from.gap()
    return { reason, count, metric, times: [begin, to] }
  }

  it('begins with a GAP if that expired, also after a restart', async () => {
    await seat.defChannel(named('billing'))
    await leave(seat)
    producer.clock.leap(7 * DAY_MS + 2_000)
    await producer.settle()
    producer = await producer.restart()
    const later = await producer.seat()
    expect(await later.ledger('billing')).toBeUndefined()
    expect(await firstOf(later)).toEqual({ reason: expired, count: 0, metric: 0, times: [0, 0] })
  })

  it('begins with a GAP if an admin deleted that, once', async () => {
    const channel = await seat.defChannel(named('billing'))
    await producer.addUser('boss', { role: 'admin' })
    const boss = await producer.seat('boss')
    await boss.execute('channel.delete', ['channel', type.uint32, u32(channel)])
    expect(await firstOf(seat)).toEqual({ reason: purged, count: 0, metric: 0, times: [0, 0] })
    const later = await producer.seat()
    const successor = await later.defChannel(named('billing'))
    await later.ok((seq) => command.delChannel(seq, successor))
    await later.setChannel(await later.defChannel(named('billing')))
    await producer.settle()
    expect(later.rest()).toEqual([])
  })

  it('begins with a GAP also if it is not durable, until a connection has taken it', async () => {
    const volatile: Setting = ['durable', type.boolean, u32(0)]
    await seat.defChannel(named('billing'))
    await leave(seat)
    producer.clock.leap(7 * DAY_MS + 2_000)
    await producer.settle()
    const define = async (): Promise<Seat> => {
      const one = await producer.seat()
      await one.defChannel(named('billing'), volatile)
      return one
    }
    await leave(await define())
    for (const again of [() => producer.restart(), () => producer.crash()]) {
      producer = await again()
      await producer.settle()
    }
    const later = await define()
    expect(await firstOf(later)).toMatchObject({ reason: expired, count: 0 })
    await leave(later)
    producer = await producer.restart()
    const last = await define()
    await last.setChannel(await last.defChannel(named('billing')))
    await producer.settle()
    expect(last.rest()).toEqual([])
  })

  it('knows the last 1,024 names of an identity; those that are forgotten are counted', async () => {
    const expire: Setting = ['expire_ms', type.uint64, u64(1_000)]
    const many = await TestProducer.start({ config: { limits: { channelsPerIdentity: 2_000 } } })
    const one = await many.seat()
    for (let index = 0; index <= 1024; index++) await one.defChannel(named(`n${index}`), expire)
    many.clock.advance(3_000)
    await many.settle()
    many.clock.advance(3_000)
    await many.settle()
    await one.setChannel(await one.defChannel(named('n0')))
    await many.settle()
    expect(one.rest()).toEqual([])
    await one.setChannel(await one.defChannel(named('n1')))
    expect((await one.gap()).reason).toBe(expired)
    await many.addUser('boss', { role: 'admin' })
    expect(decoded(await (await many.seat('boss')).query('producer.stats'))).toMatchObject({ forgotten_names: 1 })
    await many.stop()
  })
})

describe('a credential with a scope', () => {
  it('does not find a channel that binds more, and cannot take its name', async () => {
    const channel = await seat.defChannel(named('billing'))
    await seat.follow('test.a', channel)
    await producer.addUser('boss', { role: 'admin' })
    const { token, hash } = newToken()
    await done(await producer.seat('boss'), 'token.add', { user: 'tester', hash, scope: 'COLLECT test.b' })
    const narrow = await tokenSeat(producer, token)
    expect(await define(narrow, 'billing')).toMatchObject({ status: status.PERMISSION_DENIED, result: 0 })
    expect(await narrow.defChannel(named('other'))).toBeGreaterThan(0)
  })
})
