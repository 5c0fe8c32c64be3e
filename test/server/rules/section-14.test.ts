import { afterEach, describe, expect, it } from 'vitest'
import { done } from '../../support/administration.ts'
import { args, command, status, str, toHex, type, u32 } from '../../support/bytes.ts'
import { EPOCH, TestProducer } from '../../support/producer.ts'
import type { Seat } from '../../support/seat.ts'
import { Callee, failed, login, redialled, SECRET, until } from '../edge/outbound/callee.ts'

const secretOf = (text: string) => ['secret', type.opaque, str(text)] as const
const secret = secretOf(SECRET)

const open: { close(): Promise<void> }[] = []
const producers: TestProducer[] = []
afterEach(async () => {
  for (const callee of open.splice(0)) await callee.close()
  for (const producer of producers.splice(0)) await producer.stop()
})

async function callee(address?: string): Promise<Callee> {
  const listening = await Callee.listen(address)
  open.push(listening)
  return listening
}

/** A producer that may dial what is listed, with an administrator on it. */
async function start(allow: readonly string[], quota = 0): Promise<{ producer: TestProducer; boss: Seat }> {
  const config = { dial: { allow }, quota: { dialsPerMinute: quota } }
  const producer = await TestProducer.start({ config })
  producers.push(producer)
  await producer.addUser('boss', { role: 'admin' })
  return { producer, boss: await producer.seat('boss') }
}

const textual = (given: Readonly<Record<string, string>>): Uint8Array =>
  args(...Object.entries(given).map(([name, text]) => [name, type.string, str(text)] as const))

const define = (seat: Seat, url: string, ...settings: readonly (readonly [string, number, Uint8Array])[]) =>
  seat.ask((seq) => command.defChannel(seq, url, args(...settings)))

const state = async (seat: Seat, channel: number): Promise<string> => (await seat.ledger(channel)).state

describe('a channel with a tcp:// URL', () => {
  it('is called: the consumer proves itself with the secret, and gets what is subscribed on it', async () => {
    const phone = await callee()
    const { producer, boss } = await start([`tcp://127.0.0.1:${phone.port}`])
    const { result: channel } = await define(boss, `tcp://127.0.0.1:${phone.port}`, secret)
    const seat = await phone.answer('boss')
    expect(seat.channel).toBe(channel)
    expect(await boss.ledger(channel)).toMatchObject({ state: 'connected', url: `tcp://127.0.0.1:${phone.port}` })
    await boss.follow('test.a', channel)
    producer.emit(1)
    const value = await seat.value()
    expect([value.time, toHex(value.value)]).toEqual([EPOCH + 1, '00000001'])
    await seat.commit(value.transaction)
    expect(await boss.ledger(channel)).toMatchObject({ accepted: 1, committed: 1 })
  })

  it('may be worked with from the connection that was dialled, which has its channel as the current one', async () => {
    const phone = await callee()
    const { producer, boss } = await start([`tcp://127.0.0.1:${phone.port}`])
    await define(boss, `tcp://127.0.0.1:${phone.port}`, secret)
    const seat = await phone.answer('boss')
    await seat.follow('test.a')
    producer.emit(7)
    expect(toHex((await seat.value()).value)).toBe('00000007')
  })

  it('is shown waiting, never dialling, while it is tried and between attempts', async () => {
    const phone = await callee()
    const { boss, producer } = await start([`tcp://127.0.0.1:${phone.port}`])
    const { result: channel } = await define(boss, `tcp://127.0.0.1:${phone.port}`, secret)
    const peer = await phone.call()
    await peer.until('caps')
    expect(await state(boss, channel)).toBe('waiting')
    peer.destroy()
    await until(() => failed(producer) === 1)
    expect(await state(boss, channel)).toBe('waiting')
  })

  it('sends nothing but its capabilities before the consumer has proven itself', async () => {
    const phone = await callee()
    const { producer, boss } = await start([`tcp://127.0.0.1:${phone.port}`])
    const { result: channel } = await define(boss, `tcp://127.0.0.1:${phone.port}`, secret)
    await boss.follow('test.a', channel)
    producer.emit(1)
    const peer = await phone.call()
    await peer.until('caps')
    peer.send(command.collect(5, 'test.a'), command.setChannel(6, channel), command.execute(7, 'channel.purge'))
    for (const seq of [5, 6, 7]) expect((await peer.response(seq)).status).toBe(status.NOT_AUTHENTICATED)
    await producer.settle()
    expect(peer.log.filter(({ kind }) => kind !== 'response').map(({ kind }) => kind)).toEqual(['caps'])
  })

  it('gives the consumer 10 s', async () => {
    const phone = await callee()
    const { producer, boss } = await start([`tcp://127.0.0.1:${phone.port}`])
    await define(boss, `tcp://127.0.0.1:${phone.port}`, secret)
    const peer = await phone.call()
    await peer.until('caps')
    producer.clock.advance(10_000)
    await until(() => peer.closed)
    expect(peer.log.at(-1)).toMatchObject({ kind: 'notice', code: 6 })
  })
})

describe('a destination that may not be dialled', () => {
  it('is in the audit log with who asked for it, from where; a flood of them is counted', async () => {
    const { producer, boss } = await start(['tcp://127.0.0.1:9'])
    const worker = await producer.seat('worker')
    for (const seat of [worker, boss]) await define(seat, 'tcp://10.0.0.1', secret)
    for (let count = 0; count < 100; count++) await define(worker, 'tcp://10.0.0.1', secret)
    producer.clock.advance(60_000)
    await define(worker, 'tcp://127.0.0.1:9', secret)
    await producer.settle()
    const records = (await producer.store.audit(0, 1000)).filter(({ action }) => action === 'refused')
    expect(records.length).toBe(63)
    const refused = { action: 'refused', address: '127.0.0.1', outcome: 'PERMISSION_DENIED' }
    expect(records.slice(0, 2)).toMatchObject([
      { ...refused, actor: 'worker', object: 'tcp://10.0.0.1:7650' },
      { ...refused, actor: 'boss', object: 'tcp://10.0.0.1:7650' },
    ])
    expect(records.at(-1)).toMatchObject({ ...refused, actor: 'worker', object: 'tcp://127.0.0.1:9' })
    expect(records.at(-2)).toMatchObject({ ...refused, actor: 'worker', args: '{"count":41}' })
  })
})

describe('a rule about hosts', () => {
  it('is not met by a path: the forbidden address is never dialled', async () => {
    const phone = await callee()
    const { producer, boss } = await start(['ws://*:*', 'ws://127.0.0.0/8:*'])
    await producer.addUser('worker', { role: 'operator' })
    await done(boss, 'role.allow', { role: 'operator', command: 'DEF_CHANNEL', object: 'ws://*.partner.example:*' })
    const worker = await producer.seat('worker')
    for (const path of ['/', '/.partner.example:1/', '/.partner.example:1']) {
      const { status: outcome } = await define(worker, `ws://127.0.0.1:${phone.port}${path}`, secret)
      expect([path, outcome]).toEqual([path, status.PERMISSION_DENIED])
    }
    expect((await define(worker, 'ws://a.partner.example:9/any', secret)).status).toBe(status.OK)
    expect(phone.calls).toBe(0)
  })
})

describe('the secret', () => {
  it.each([
    ['is needed', []],
    ['of 15 bytes is too short', [secretOf('fifteen bytes..')]],
    ['of 1025 bytes is too long', [secretOf('x'.repeat(1025))]],
    ['is no string', [['secret', type.string, str(SECRET)] as const]],
  ])('%s', async (_, settings) => {
    const { boss } = await start(['tcp://127.0.0.1:*'])
    const answer = await define(boss, 'tcp://127.0.0.1:9', ...settings)
    expect(answer.status).toBe(status.INVALID_ARGUMENT)
    expect(answer.detail).not.toContain(SECRET)
  })

  it('of 16 bytes will do', async () => {
    const { boss } = await start(['tcp://127.0.0.1:*'])
    expect((await define(boss, 'tcp://127.0.0.1:9', secretOf('x'.repeat(16)))).status).toBe(status.OK)
  })

  it('goes neither with an empty URL nor with gmetric', async () => {
    const { boss } = await start(['gmetric://127.0.0.1:*'])
    for (const url of ['', 'gmetric://127.0.0.1:9']) {
      expect((await define(boss, url, secret)).status).toBe(status.INVALID_ARGUMENT)
    }
  })

  it('and the owner are what is accepted there: no other secret, no password, no other user', async () => {
    const phone = await callee()
    const { producer } = await start([`tcp://127.0.0.1:${phone.port}`])
    await producer.addUser('other', { role: 'admin', password: SECRET })
    await producer.addUser('owner', { role: 'admin', password: 'the password of the owner' })
    const owner = await producer.seat('owner')
    await define(owner, `tcp://127.0.0.1:${phone.port}`, secret)
    let failures = 0
    for (const [identity, proof] of [
      ['owner', 'the password of the owner'],
      ['owner', 'another secret of 16 bytes'],
      ['other', SECRET],
      ['nobody', SECRET],
    ] as const) {
      const peer = await phone.call()
      expect((await login(peer, identity, proof)).status).toBe(status.AUTH_FAILED)
      peer.destroy()
      failures++
      await until(() => failed(producer) === failures)
      redialled(producer)
    }
    expect((await phone.answer('owner')).channel).toBeGreaterThan(0)
  })

  it('is the only method there', async () => {
    const phone = await callee()
    const { boss } = await start([`tcp://127.0.0.1:${phone.port}`])
    await define(boss, `tcp://127.0.0.1:${phone.port}`, secret)
    const peer = await phone.call()
    const caps = (await peer.until('caps')).bytes.toString('latin1')
    expect(['scram-sha-256', 'password', 'token'].filter((method) => caps.includes(method))).toEqual(['scram-sha-256'])
    peer.send(command.auth(1, 'password', new Uint8Array([...str('boss'), ...str(SECRET)])))
    expect((await peer.response(1)).status).toBe(status.UNSUPPORTED)
  })

  it('is worth nothing elsewhere', async () => {
    const { producer, boss } = await start(['tcp://127.0.0.1:9'])
    await define(boss, 'tcp://127.0.0.1:9', secret)
    expect((await login(producer.connect(), 'boss', SECRET)).status).toBe(status.AUTH_FAILED)
  })

  it('is written nowhere: not in the log, not in the audit log', async () => {
    const phone = await callee()
    const { producer, boss } = await start([`tcp://127.0.0.1:${phone.port}`])
    await define(boss, `tcp://127.0.0.1:${phone.port}`, secret)
    await phone.answer('boss')
    await producer.settle()
    const records = await producer.store.audit(0, 1000)
    expect(records.filter(({ action }) => action === 'dial').map(({ outcome }) => outcome)).toEqual(['begun', 'ok'])
    expect(JSON.stringify([records, producer.logged])).not.toContain(SECRET)
  })
})

describe('on a connection that was dialled', () => {
  it.each<[string, (seq: number, channel: number) => Uint8Array]>([
    ['EXECUTE', (seq) => command.execute(seq, 'channel.configure', args(['channel', type.uint32, u32(0)]))],
    ['EXECUTE of what is not there', (seq) => command.execute(seq, 'no.such')],
    ['DEF_CHANNEL', (seq) => command.defChannel(seq)],
    ['DEF_CHANNEL with a URL', (seq) => command.defChannel(seq, 'tcp://127.0.0.1:9', args(secret))],
    ['SET_CHANNEL', (seq, channel) => command.setChannel(seq, channel)],
    ['SET_CHANNEL to the current one', (seq) => command.setChannel(seq, 0)],
    ['SET_CHANNEL to what is not there', (seq) => command.setChannel(seq, 12345)],
  ])('%s is PERMISSION_DENIED', async (_, make) => {
    const phone = await callee()
    const { boss } = await start(['tcp://127.0.0.1:*'])
    await define(boss, `tcp://127.0.0.1:${phone.port}`, secret)
    const seat = await phone.answer('boss')
    expect((await seat.ask((seq) => make(seq, boss.channel))).status).toBe(status.PERMISSION_DENIED)
    await seat.ok((seq) => command.nop(seq))
  })

  it('EXECUTE needs a rule that names the destination, for admins too', async () => {
    const phone = await callee()
    const { producer, boss } = await start(['tcp://127.0.0.1:*'])
    await producer.addUser('worker', { role: 'worker' })
    const url = `tcp://127.0.0.1:${phone.port}`
    const purge = (seat: Seat) =>
      seat.ask((seq) => command.execute(seq, 'channel.purge', args(['channel', type.uint32, u32(seat.channel)])))
    await done(boss, 'role.allow', { role: 'worker', command: 'DEF_CHANNEL', object: url })
    // Neither a default nor a rule without the destination is enough.
    await done(boss, 'role.allow', { role: 'worker', command: 'EXECUTE', object: 'channel.*' })
    for (const [name, role] of [
      ['worker', 'worker'],
      ['boss', 'admin'],
    ] as const) {
      const owner = await producer.seat(name)
      const { result: channel } = await define(owner, url, secret)
      const seat = await phone.answer(name)
      expect((await purge(seat)).status).toBe(status.PERMISSION_DENIED)
      const rule = { role, command: 'EXECUTE', object: 'channel.purge' }
      await done(boss, 'role.allow', { ...rule, where: 'destination=tcp://127.0.0.1:9' })
      expect((await purge(seat)).status).toBe(status.PERMISSION_DENIED)
      await done(boss, 'role.allow', { ...rule, where: `destination=${url}` })
      expect((await purge(seat)).status).toBe(status.OK)
      for (const [at, allowed] of [
        [url, true],
        ['tcp://127.0.0.1:10', false],
      ] as const) {
        const asked = { user: name, command: 'EXECUTE', object: 'channel.purge', where: `destination=${at}` }
        expect(await done(boss, 'role.explain', asked)).toMatchObject({ allowed })
      }
      // One destination has many spellings.
      const spelled = url.replace('tcp://127.0.0.1', 'TCP://0x7f.1')
      const asked = { user: name, command: 'EXECUTE', object: 'channel.purge', where: `destination=${spelled}` }
      expect(await done(boss, 'role.explain', asked)).toMatchObject({ allowed: true })
      if (role !== 'admin') {
        await done(boss, 'role.deny', { ...rule, where: `destination=${spelled}` })
        expect((await purge(seat)).status).toBe(status.PERMISSION_DENIED)
      }
      // It is about this destination alone, and about this control.
      const configure = args(['channel', type.uint32, u32(channel)], ['window', type.uint32, u32(9)])
      const other = await seat.ask((seq) => command.execute(seq, 'channel.configure', configure))
      expect(other.status).toBe(status.PERMISSION_DENIED)
      await owner.ok((seq) => command.delChannel(seq, channel))
      await seat.closed()
    }
    const denied = { role: 'admin', command: 'EXECUTE', object: 'user.*' }
    expect((await boss.ask((seq) => command.execute(seq, 'role.allow', textual(denied)))).status).toBe(
      status.INVALID_ARGUMENT,
    )
  })
})
