/** What a tenant may have, on every path that takes some of it [S-14]. Feeds are in test/server/kit/by-tenant.test.ts. */
import { afterEach, describe, expect, it } from 'vitest'
import { defaultConfig } from '../../../server/start/config.ts'
import { ALL, args, command, status, str, type, u32, u64 } from '../../support/bytes.ts'
import { EPOCH, TestProducer } from '../../support/producer.ts'
import { decoded } from '../../support/records.ts'
import { atH1, type Seat } from '../../support/seat.ts'
import { PushSensor } from '../../support/test-sensor.ts'

type Quota = ReturnType<typeof defaultConfig>['quota']
let producer: TestProducer
let acme: PushSensor

afterEach(() => producer.stop())

async function started(quota: Partial<Quota>): Promise<void> {
  producer = await TestProducer.start({ config: { quota: { ...defaultConfig().quota, ...quota } } })
  acme = new PushSensor(producer.server.parts.hub, 'test.', { tenant: 'acme' })
  for (const name of ['bob', 'eve']) await producer.addUser(name, { tenant: 'acme' })
}

const bob = (): Promise<Seat> => producer.seat('bob', 'acme')
const eve = (): Promise<Seat> => producer.seat('eve', 'acme')

/** A value of both tenants. */
function emit(value: number, name = 'test.a'): void {
  producer.emit(value, name)
  acme.push(name, { type: 2, value }, EPOCH + value)
}

describe('connections', () => {
  it('of a tenant are bounded, over all its users; those of others and of admins are not', async () => {
    await started({ connections: 2 })
    const first = await bob()
    await eve()
    await expect(bob()).rejects.toThrow('AUTH was answered with status 16: tenant acme: connections: 2 exist')
    await producer.seat('ann')
    await producer.addUser('boss', { tenant: 'acme', role: 'admin' })
    await producer.seat('boss', 'acme')
    first.peer.destroy()
    await producer.settle()
    await bob()
  })
})

describe('channels', () => {
  it('are refused above it by DEF_CHANNEL, by a first binding, by EXECUTE; one that is deleted makes room', async () => {
    await started({ channels: 2 })
    const seat = await bob()
    const mine = await seat.defChannel()
    await (await eve()).defChannel()
    const id = await seat.collect('test.a', atH1)
    const refused: ((seq: number) => Uint8Array)[] = [
      (seq) => command.defChannel(seq, '', args()),
      (seq) => command.subscribe(seq, id, 0),
      (seq) => command.buffer(seq, id, 0),
      (seq) => command.execute(seq, 'channel.purge', args(['channel', type.uint32, new Uint8Array(4)])),
    ]
    for (const make of refused) expect((await seat.ask(make)).status).toBe(status.QUOTA_EXCEEDED)
    // On one that is there all of it goes on.
    await seat.ok((seq) => command.subscribe(seq, id, mine))
    await seat.ok((seq) => command.delChannel(seq, mine))
    await seat.defChannel()
  })

  it('are refused above it to `channel.configure`, whichever channel gets the result', async () => {
    await started({ channels: 1 })
    const seats = [await bob(), await bob(), await bob()]
    const configure = async (seat: Seat, channel: number, durable: number) => {
      const list = args(['channel', type.uint32, u32(channel)], ['durable', type.boolean, u32(durable)])
      return (await seat.ask((seq) => command.execute(seq, 'channel.configure', list))).status
    }
    // Not durable, none of them is kept.
    for (const seat of seats) expect(await configure(seat, 0, 0)).toBe(status.OK)
    const [first, second, third] = seats as [Seat, Seat, Seat]
    expect(await configure(first, 0, 1)).toBe(status.OK)
    expect(await configure(second, 0, 1)).toBe(status.QUOTA_EXCEEDED)
    expect(await configure(first, third.channel, 1)).toBe(status.QUOTA_EXCEEDED)
    expect(await configure(first, 0, 1)).toBe(status.OK)
  })

  it('that are counted take a binding again when they have none left', async () => {
    await started({ channels: 1 })
    const seat = await bob()
    const id = await seat.follow('test.a')
    await seat.ok((seq) => command.stop(seq, id, 0))
    await seat.follow('test.a')
  })

  it('are refused above it to two who ask for the last one at once', async () => {
    producer = await TestProducer.start({
      config: { quota: { ...defaultConfig().quota, channels: 1 }, dial: { allow: ['tcp://127.0.0.1:9'] } },
    })
    await producer.addUser('bob', { tenant: 'acme', role: 'admin' })
    const { dialler } = producer.server.parts.producer
    const verifier = await dialler.verifierOf(new Uint8Array(16))
    const makings: (() => void)[] = []
    Object.assign(dialler, { verifierOf: () => new Promise((done) => makings.push(() => done(verifier))) })
    const secret = args(['secret', type.opaque, str('sixteen and more')])
    const asked = [await bob(), await bob()].map((seat) => {
      return seat.ask((seq) => command.defChannel(seq, 'tcp://127.0.0.1:9', secret))
    })
    await producer.settle()
    expect(makings.length).toBe(2)
    for (const make of makings) make()
    const answers = (await Promise.all(asked)).map((answer) => answer.status)
    expect(answers).toEqual([status.OK, status.QUOTA_EXCEEDED])
  })

  it('that come back from the store count', async () => {
    await started({ channels: 1 })
    await (await bob()).defChannel()
    producer = await producer.crash()
    expect((await (await eve()).ask((seq) => command.defChannel(seq, '', args()))).status).toBe(status.QUOTA_EXCEEDED)
  })
})

describe('queued bytes', () => {
  it('of a tenant are bounded over all its channels; what is lost is reported; another tenant loses nothing', async () => {
    await started({})
    await producer.addUser('boss', { role: 'admin' })
    const boss = await producer.seat('boss')
    await boss.execute('tenant.set', ['tenant', type.string, str('acme')], ['queued_bytes', type.uint64, u64(4_000)])
    const other = await producer.seat('ann')
    const [one, two] = [await bob(), await eve()]
    for (const seat of [other, one, two]) {
      await seat.setChannel(await seat.defChannel())
      await seat.hoard('test.a')
    }
    for (let value = 0; value < 200; value++) emit(value)
    const ledgers = await Promise.all([other, one, two].map((seat) => seat.ledger()))
    expect(ledgers.map(({ accepted }) => accepted)).toEqual([200, 200, 200])
    expect(ledgers[0]).toMatchObject({ queued: 200, dropped: { overflow: 0 } })
    expect(ledgers[1].queued_bytes + ledgers[2].queued_bytes).toBeLessThanOrEqual(4_000)
    for (const { queued, dropped } of ledgers.slice(1)) expect(queued + dropped.overflow).toBe(200)
  })
})

describe('queued bytes on a disk that fills', () => {
  it('are half of the file system by default, as `tenant.list` shows', async () => {
    producer = await TestProducer.start({ diskSpace: { sizeBytes: 10_000, freeBytes: 9_000 } })
    await producer.addUser('boss', { role: 'admin' })
    const boss = await producer.seat('boss')
    const { value } = await boss.execute('tenant.list')
    expect(value[0].quota.queued_bytes).toBe(5_000)
  })

  it('with less than a tenth free whoever fills it gets GAPs of overflow, and the other tenant loses nothing', async () => {
    await started({})
    const [greedy, modest] = [await producer.seat('ann'), await bob()]
    for (const seat of [greedy, modest]) {
      await seat.setChannel(await seat.defChannel())
      await seat.hoard('test.a')
    }
    for (let value = 0; value < 300; value++) producer.emit(value)
    await producer.settle()
    const held = (await greedy.ledger()).queued_bytes
    producer.diskSpace = { sizeBytes: 10 * held, freeBytes: held * 0.9 }
    for (let value = 300; value < 600; value++) {
      emit(value)
      await producer.settle()
    }
    expect((await greedy.ledger()).queued_bytes).toBeLessThanOrEqual(held * 1.02)
    expect((await greedy.ledger()).dropped.overflow).toBeGreaterThan(250)
    expect(await modest.ledger()).toMatchObject({ queued: 300, dropped: { overflow: 0, full: 0 } })
    producer.diskSpace = { sizeBytes: 10 * held, freeBytes: held * 5 }
    const before = (await greedy.ledger()).dropped.overflow
    emit(600)
    await producer.settle()
    for (let value = 601; value < 650; value++) emit(value)
    await producer.settle()
    expect((await greedy.ledger()).dropped.overflow).toBeLessThanOrEqual(before + 60)
    expect((await greedy.ledger()).queued_bytes).toBeGreaterThan(held)
  })
})

describe('bound metrics', () => {
  it('count each match of a pattern, and SUBSCRIBE and BUFFER are refused above it', async () => {
    await started({ instances: 3 })
    for (const name of ['test.a', 'test.b', 'test.c', 'test.d']) emit(1, name)
    const seat = await bob()
    const all = await seat.collect('test.*')
    for (const make of [command.subscribe, command.buffer]) {
      const refused = await seat.ask((seq) => make(seq, all, 0))
      expect(refused).toMatchObject({ status: status.QUOTA_EXCEEDED, detail: expect.stringContaining('bound metrics') })
    }
    await seat.follow('test.a')
    await seat.follow('test.b')
    const third = await seat.follow('test.c')
    const fourth = await seat.collect('test.d', atH1)
    expect((await seat.ask((seq) => command.subscribe(seq, fourth, 0))).status).toBe(status.QUOTA_EXCEEDED)
    await seat.ok((seq) => command.stop(seq, third, 0))
    await seat.ok((seq) => command.subscribe(seq, fourth, 0))
  })

  it('are bound on all channels or on none', async () => {
    await started({ instances: 3 })
    const seat = await bob()
    const others = [await seat.defChannel(), await seat.defChannel()]
    await seat.follow('test.b')
    const id = await seat.collect('test.a', atH1)
    for (const make of [command.subscribe, command.buffer]) {
      expect((await seat.ask((seq) => make(seq, id, ALL))).status).toBe(status.QUOTA_EXCEEDED)
    }
    for (const channel of others) expect((await seat.ledger(channel)).bindings).toEqual([])
    await seat.ok((seq) => command.subscribe(seq, id, others[0]))
    // Where it is bound already there is nothing to count.
    await seat.ok((seq) => command.subscribe(seq, id, others[1]))
    expect((await seat.ask((seq) => command.subscribe(seq, id, ALL))).status).toBe(status.QUOTA_EXCEEDED)
  })

  it('that are born above it stay out, the tenant is notified, and they come when there is room', async () => {
    await started({ instances: 3 })
    const [seat, other] = [await bob(), await eve()]
    const notices = await other.collect('producer.notices')
    await other.ok((seq) => command.subscribe(seq, notices, 0))
    const all = await seat.collect('test.*', atH1)
    await seat.ok((seq) => command.subscribe(seq, all, 0))
    for (const name of ['test.a', 'test.b', 'test.c']) emit(1, name)
    emit(2, 'test.c')
    expect((await seat.values(2)).map(decoded)).toMatchObject([{ name: 'test.a' }, { name: 'test.b' }])
    producer.clock.advance(1_000)
    expect(decoded(await other.value()).detail).toContain('1 matches of patterns were left out')
    await other.ok((seq) => command.stop(seq, notices, 0))
    producer.clock.advance(1_000)
    await producer.settle()
    emit(3, 'test.c')
    expect(decoded(await seat.value())).toMatchObject({ name: 'test.c', value: 3 })
    expect(seat.rest()).toEqual([])
  })
})

describe('controls', () => {
  it('in a minute are bounded over all users of a tenant', async () => {
    await started({ controlsPerMinute: 2 })
    const [seat, other] = [await bob(), await eve()]
    await seat.setChannel(await seat.defChannel())
    const configure = (seq: number): Uint8Array =>
      command.execute(seq, 'channel.configure', args(['channel', type.uint32, new Uint8Array(4)]))
    await seat.ok(configure)
    await other.ok(configure)
    expect(await seat.ask(configure)).toMatchObject({ status: status.QUOTA_EXCEEDED })
    producer.clock.advance(60_000)
    await seat.ok(configure)
  })
})

describe('limits of a tenant', () => {
  it('are changed by tenant.set at once, and shown with what there is', async () => {
    await started({})
    await producer.addUser('boss', { role: 'admin' })
    const boss = await producer.seat('boss')
    const seat = await bob()
    await seat.defChannel()
    const tenant = ['tenant', type.string, str('acme')] as const
    await boss.execute('tenant.set', tenant, ['channels', type.uint64, u64(1)])
    expect((await seat.ask((seq) => command.defChannel(seq, '', args()))).status).toBe(status.QUOTA_EXCEEDED)
    const { value } = await boss.execute('tenant.list')
    const acme = value.find((row: { tenant: string }) => row.tenant === 'acme')
    expect(acme).toMatchObject({ users: 2, quota: { channels: 1 }, used: { channels: 1, connections: 1 } })
    await boss.execute('tenant.set', tenant, ['channels', type.uint64, u64(0)])
    await seat.defChannel()
  })
})
