import { afterEach, describe, expect, it } from 'vitest'
import { args, command, status, str, type, u64 } from '../../support/bytes.ts'
import { TestProducer } from '../../support/producer.ts'
import { numberOf, type Seat } from '../../support/seat.ts'
import { Callee, failed, redialled, SECRET, until } from '../edge/outbound/callee.ts'

const secret = ['secret', type.opaque, str(SECRET)] as const

const callees: Callee[] = []
const producers: TestProducer[] = []
afterEach(async () => {
  for (const callee of callees.splice(0)) await callee.close()
  for (const producer of producers.splice(0)) await producer.stop()
})

interface Stage {
  readonly phone: Callee
  readonly producer: TestProducer
  readonly boss: Seat
  readonly url: string
}

/** A consumer that waits for calls, and a producer that may call it. */
async function stage(dialsPerMinute = 0): Promise<Stage> {
  const phone = await Callee.listen()
  callees.push(phone)
  const url = `tcp://127.0.0.1:${phone.port}`
  const producer = await TestProducer.start({ config: { dial: { allow: [url] }, quota: { dialsPerMinute } } })
  producers.push(producer)
  await producer.addUser('boss', { role: 'admin' })
  return { phone, producer, boss: await producer.seat('boss'), url }
}

const define = (seat: Seat, url: string, ...settings: readonly (readonly [string, number, Uint8Array])[]) =>
  seat.ok((seq) => command.defChannel(seq, url, args(secret, ...settings)))

const state = async (seat: Seat, channel: number): Promise<string> => (await seat.ledger(channel)).state

/** A restart: the producer before it is not stopped a second time. */
async function restarted(producer: TestProducer): Promise<TestProducer> {
  const next = await producer.restart()
  producers.splice(producers.indexOf(producer), 1, next)
  return next
}

describe('the attempts', () => {
  it('follow each other after 1 s doubling to 60 s, of which chance takes up to a half', async () => {
    const { phone, producer, boss, url } = await stage()
    await define(boss, url)
    // A connection that came to nothing doubles it.
    for (const [index, most] of [1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000].entries()) {
      ;(await phone.call()).destroy()
      await until(() => failed(producer) === index + 1)
      const waited = redialled(producer)
      expect(waited).toBeGreaterThanOrEqual(most / 2)
      expect(waited).toBeLessThanOrEqual(most + 100)
    }
  })

  it('begin anew after a connection on which somebody proved to be the owner', async () => {
    const { phone, producer, boss, url } = await stage()
    const channel = await define(boss, url)
    for (let failures = 1; failures <= 6; failures++) {
      ;(await phone.call()).destroy()
      await until(() => failed(producer) === failures)
      redialled(producer)
    }
    const seat = await phone.answer('boss')
    seat.peer.destroy()
    await until(
      () => boss.peer.closed || producer.server.parts.producer.registry.byId(channel)?.connection === undefined,
    )
    expect(redialled(producer)).toBeLessThanOrEqual(1_100)
    await phone.answer('boss')
  })

  it('of a tenant are no more than its quota in a minute: the others wait', async () => {
    const { phone, producer, boss, url } = await stage(3)
    for (let channel = 0; channel < 5; channel++) await define(boss, url)
    for (let call = 0; call < 3; call++) await phone.answer('boss')
    producer.clock.advance(59_000)
    await producer.settle()
    expect(phone.calls).toBe(3)
    redialled(producer)
    for (let call = 0; call < 2; call++) await phone.answer('boss')
  })

  it('each stand in the audit log before the call', async () => {
    const { phone, producer, boss, url } = await stage()
    producer.store.manual = false
    const channel = await define(boss, url)
    const peer = await phone.call()
    const records = (await producer.store.audit(0, 100)).filter(({ action }) => action === 'dial')
    expect(records).toMatchObject([{ actor: 'boss', address: '127.0.0.1', object: url, outcome: 'begun' }])
    expect(JSON.parse(records[0]?.args ?? '')).toEqual({ channel })
    peer.destroy()
    await until(() => failed(producer) === 1)
    await producer.settle()
    const after = (await producer.store.audit(0, 100)).filter(({ action }) => action === 'dial')
    expect(after.map(({ outcome }) => outcome)).toEqual(['begun', 'failed'])
  })

  it('wait for that record to be durable', async () => {
    const { phone, producer, boss, url } = await stage()
    producer.store.manual = true
    const answer = define(boss, url)
    const { registry } = producer.server.parts.producer
    await until(() => [...registry.all()].some(({ row }) => row.url === url))
    await producer.settle()
    producer.store.complete()
    await answer
    await producer.settle()
    expect(phone.calls).toBe(0)
    producer.store.complete()
    await phone.call()
    producer.store.manual = false
    producer.store.complete()
  })
})

describe('everything is judged again at each attempt', () => {
  it('the owner: who was removed has no channels', async () => {
    const { phone, producer, boss, url } = await stage()
    await producer.addUser('other', { role: 'admin' })
    const other = await producer.seat('other')
    await define(other, url)
    ;(await phone.call()).destroy()
    await until(() => failed(producer) === 1)
    expect(await boss.execute('user.remove', ['user', type.string, str('other')])).toMatchObject({ outcome: 'ok' })
    producer.clock.advance(60_000)
    await producer.settle()
    expect(phone.calls).toBe(1)
  })

  it("the operator's list: after a restart without the destination the channel is shown as waiting", async () => {
    const { phone, producer, boss, url } = await stage()
    const channel = await define(boss, url)
    ;(await phone.answer('boss')).peer.destroy()
    const config = { dial: { allow: [] } }
    await producers.pop()?.stop()
    const strict = await TestProducer.start({ store: producer.store, clock: producer.clock, config })
    producers.push(strict)
    await until(() => failed(strict) === 1)
    expect(strict.server.parts.producer.registry.byId(channel)?.state).toBe('waiting')
    expect(phone.calls).toBe(1)
  })
})

describe('the right to dial', () => {
  const allow = (control: string, object: string) =>
    [
      control,
      ['role', type.string, str('operator')],
      ['command', type.string, str('DEF_CHANNEL')],
      ['object', type.string, str(object)],
    ] as const

  it('is nobody else’s but by a rule, and is answered like any destination that may not be dialled', async () => {
    const { phone, producer, boss, url } = await stage()
    await producer.addUser('worker', { role: 'operator' })
    const worker = await producer.seat('worker')
    expect(await worker.ask((seq) => command.defChannel(seq, url, args(secret)))).toMatchObject({
      status: status.PERMISSION_DENIED,
      detail: 'this destination may not be dialled',
    })
    await boss.execute(...allow('role.allow', 'tcp://127.0.0.1:*'))
    const channel = await define(worker, url)
    expect((await phone.answer('worker')).channel).toBe(channel)
  })

  it('that is taken away ends the connection within a second, and the channel is shown as waiting', async () => {
    const { phone, producer, boss, url } = await stage()
    await producer.addUser('worker', { role: 'operator' })
    await boss.execute(...allow('role.allow', 'tcp://127.0.0.1:*'))
    const worker = await producer.seat('worker')
    const channel = await define(worker, url)
    const seat = await phone.answer('worker')
    await boss.execute(...allow('role.deny', url))
    producer.clock.advance(1000)
    expect(await seat.notice()).toMatchObject({ code: 4, channel })
    await seat.closed()
    redialled(producer)
    await until(() => failed(producer) === 1)
    expect(await state(worker, channel)).toBe('waiting')
    expect(phone.calls).toBe(1)
    await producer.settle()
    const dials = (await producer.store.audit(0, 100)).filter(({ action }) => action === 'dial')
    expect(dials.map(({ outcome }) => outcome)).toEqual(['begun', 'ok', 'refused'])
  })
})

describe('a user who is removed while the verifier of its secret is computed', () => {
  it('leaves no channel behind', async () => {
    const { producer, boss, url } = await stage()
    await producer.addUser('worker', { role: 'admin' })
    const worker = await producer.seat('worker')
    const { accounts, dialler, registry } = producer.server.parts.producer
    const id = accounts.find('default', 'worker')?.id ?? 0
    const verifier = await dialler.verifierOf(new Uint8Array(16))
    let made: () => void = () => {}
    Object.assign(dialler, { verifierOf: () => new Promise((resolve) => (made = () => resolve(verifier))) })
    worker.send((seq) => command.defChannel(seq, url, args(secret)))
    await producer.settle()
    await boss.execute('user.remove', ['user', type.string, str('worker')])
    made()
    await producer.settle()
    expect(registry.of(id).size).toBe(0)
  })
})

describe('who took a channel by SET_CHANNEL', () => {
  it('keeps it when it may not be dialled any more', async () => {
    const { phone, producer, boss, url } = await stage()
    await producer.addUser('worker', { role: 'operator' })
    const rule = [
      ['role', type.string, str('operator')],
      ['command', type.string, str('DEF_CHANNEL')],
      ['object', type.string, str(url)],
    ] as const
    await boss.execute('role.allow', ...rule)
    const worker = await producer.seat('worker')
    const channel = await define(worker, url)
    await phone.answer('worker')
    await worker.setChannel(channel)
    await boss.execute('role.deny', ...rule)
    producer.clock.advance(2000)
    await producer.settle()
    expect(await state(worker, channel)).toBe('connected')
  })
})

describe('a channel that is dialled', () => {
  it('keeps what is not committed, and goes on with it at the next call', async () => {
    const { phone, producer, boss, url } = await stage()
    const channel = await define(boss, url)
    const first = await phone.answer('boss')
    await boss.follow('test.a', channel)
    for (let value = 1; value <= 3; value++) producer.emit(value)
    const values = await first.values(3)
    await first.commit((values[0] as { transaction: number }).transaction)
    first.peer.destroy()
    await producer.settle()
    producer.emit(4)
    await until(() => producer.server.parts.producer.registry.byId(channel)?.connection === undefined)
    redialled(producer)
    const second = await phone.answer('boss')
    expect((await second.values(3)).map(numberOf)).toEqual([2, 3, 4])
  })

  it('is dialled again after the producer was killed', async () => {
    const { phone, producer, boss, url } = await stage()
    const channel = await define(boss, url)
    const first = await phone.answer('boss')
    await boss.follow('test.a', channel)
    producer.emit(1)
    await first.value()
    producer.server.parts.dialler.stop()
    const next = await producer.crash()
    producers.splice(0, 1, next)
    phone.hangUp()
    const second = await phone.answer('boss')
    expect(second.channel).toBe(channel)
    expect(numberOf(await second.value())).toBe(1)
  })

  it('is dialled again after the producer was stopped', async () => {
    const { phone, producer, boss, url } = await stage()
    const channel = await define(boss, url)
    const first = await phone.answer('boss')
    const next = await restarted(producer)
    expect((await first.notice()).code).toBe(3)
    const second = await phone.answer('boss')
    expect(second.channel).toBe(channel)
    expect(await state(await next.seat('boss'), channel)).toBe('connected')
  })

  it('may be taken by SET_CHANNEL from elsewhere: dialling rests until that connection ends', async () => {
    const { phone, producer, boss, url } = await stage()
    const channel = await define(boss, url)
    const seat = await phone.answer('boss')
    const { peer } = await producer.login('boss')
    peer.send(command.setChannel(1, channel))
    expect((await peer.response(1)).status).toBe(status.OK)
    expect(await seat.notice()).toMatchObject({ code: 2, channel })
    producer.clock.advance(120_000)
    await producer.settle()
    expect(phone.calls).toBe(1)
    peer.destroy()
    await until(() => producer.server.parts.producer.registry.byId(channel)?.connection === undefined)
    expect(redialled(producer)).toBeLessThanOrEqual(1_100)
    expect((await phone.answer('boss')).channel).toBe(channel)
  })

  it('that is taken while a consumer is about to prove itself lets that one in no more', async () => {
    const { phone, producer, boss, url } = await stage()
    const channel = await define(boss, url)
    const peer = await phone.call()
    await peer.until('caps')
    await boss.setChannel(channel)
    await until(() => peer.closed)
    expect(await state(boss, channel)).toBe('connected')
    producer.clock.advance(60_000)
    await producer.settle()
    expect(phone.calls).toBe(1)
  })

  it('is dialled no more once it is deleted', async () => {
    const { phone, producer, boss, url } = await stage()
    const channel = await define(boss, url)
    const seat = await phone.answer('boss')
    await boss.ok((seq) => command.delChannel(seq, channel))
    expect(await seat.notice()).toMatchObject({ code: 5 })
    await seat.closed()
    producer.clock.advance(120_000)
    await producer.settle()
    expect(phone.calls).toBe(1)
  })

  it('that is deleted while it is being dialled is not connected', async () => {
    const { phone, producer, boss, url } = await stage()
    const channel = await define(boss, url)
    const peer = await phone.call()
    await boss.ok((seq) => command.delChannel(seq, channel))
    await until(() => peer.closed)
    producer.clock.advance(120_000)
    await producer.settle()
    expect(phone.calls).toBe(1)
  })

  it('expires when it was not connected for that long, however often it was tried', async () => {
    const { phone, producer, boss, url } = await stage()
    const channel = await define(boss, url, ['expire_ms', type.uint64, u64(30_000)])
    ;(await phone.answer('boss')).peer.destroy()
    await until(() => producer.server.parts.producer.registry.byId(channel)?.connection === undefined)
    await phone.close()
    callees.splice(0)
    for (let second = 0; second < 32; second++) {
      producer.clock.advance(1000)
      await producer.settle()
    }
    expect(await boss.ledger(channel)).toBeUndefined()
  })
})
