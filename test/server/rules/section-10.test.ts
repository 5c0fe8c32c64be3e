/** Section 10: controls, their results, and what a crash makes of them. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { args, command, str, toHex, type, u32, u64 } from '../../support/bytes.ts'
import { TestProducer } from '../../support/producer.ts'
import { balance, decoded } from '../../support/records.ts'
import type { Seat, ValueMessage } from '../../support/seat.ts'

const OK = 0
const INVALID_ARGUMENT = 6
const NO_SUCH_ID = 8
const NO_SUCH_CONTROL = 10
const UNSUPPORTED = 12
const QUOTA_EXCEEDED = 16
const DAY_MS = 86_400_000

describe('Controls', () => {
  let producer: TestProducer
  let seat: Seat
  beforeEach(async () => {
    producer = await TestProducer.start()
    await producer.addUser('root', { role: 'admin' })
    seat = await producer.seat('root')
  })
  afterEach(() => producer.stop())

  const window = (channel: number, size = 100): Uint8Array =>
    args(['channel', type.uint32, u32(channel)], ['window', type.uint32, u32(size)])
  /** Takes a moment: a password is hashed. */
  const newUser = (user: string): Uint8Array =>
    args(['user', type.string, str(user)], ['password', type.string, str('secret words')])
  const execute = (control: string, list: Uint8Array) => (seq: number) => command.execute(seq, control, list)

  async function values(of: Seat = seat): Promise<ValueMessage[]> {
    await producer.settle()
    return of.rest().flatMap((message) => (message.kind === 'value' ? [message] : []))
  }

  async function resume(channel: number): Promise<Seat> {
    const next = await producer.seat('root')
    await next.setChannel(channel)
    return next
  }

  const users = (): string[] => producer.server.parts.producer.accounts.list().map(({ name }) => name)

  it.each([
    ['no control of that name', 'user.ad', newUser('x'), NO_SUCH_CONTROL],
    ['an unknown argument', 'user.list', args(['x', type.uint32, u32(1)]), INVALID_ARGUMENT],
    ['an argument that is missing', 'user.passwd', args(['user', type.string, str('x')]), INVALID_ARGUMENT],
    ['a wrong type', 'user.remove', args(['user', type.uint32, u32(1)]), INVALID_ARGUMENT],
  ])('%s is refused before anything runs: no value follows', async (_, control, list, expected) => {
    expect((await seat.ask(execute(control, list))).status).toBe(expected)
    expect(await values()).toEqual([])
    expect((await seat.ledger()).accepted).toBe(0)
  })

  it('after OK exactly one value follows: REC {outcome, detail, value}, with a transaction id, after the response', async () => {
    const id = await seat.ok(execute('channel.configure', window(0)))
    const value = await seat.value()
    const expected = args(
      ['outcome', type.string, str('ok')],
      ['detail', type.string, str('')],
      ['value', type.void, new Uint8Array(0)],
    )
    expect([value.metric, value.type, toHex(value.value)]).toEqual([id, type.rec, toHex(expected)])
    expect(value.transaction).toBeGreaterThan(0)
    expect(value.time).toBe(producer.clock.microseconds())
    const kinds = seat.peer.log.map((message) => [message.kind, message.kind === 'response' ? message.result : 0])
    expect(kinds.findIndex(([kind, result]) => kind === 'response' && result === id)).toBeLessThan(
      kinds.findIndex(([kind]) => kind === 'value'),
    )
    expect(await values()).toEqual([])
    expect(await seat.ledger()).toMatchObject({ accepted: 1, in_flight: 1 })
  })

  it('the value may be of any type', async () => {
    const { outcome, value } = await seat.execute('user.list')
    expect(outcome).toBe('ok')
    expect(value).toContainEqual({ tenant: 'default', user: 'root', role: 'admin' })
  })

  it('a control that cannot do it says so in its outcome', async () => {
    const result = await seat.execute('user.remove', ['user', type.string, str('nobody')])
    expect(result).toEqual({ outcome: 'failed', detail: 'there is no user nobody', value: null })
  })

  it('the result comes on the channel that was current when EXECUTE arrived', async () => {
    const other = await seat.defChannel()
    const first = await seat.defChannel()
    await seat.setChannel(first)
    seat.peer.send(command.execute(9001, 'user.list'), command.setChannel(9002, other))
    const { result } = await seat.response(9001)
    expect((await seat.response(9002)).status).toBe(0)
    expect(await seat.ledger(first)).toMatchObject({ accepted: 1 })
    expect(await seat.ledger(other)).toMatchObject({ accepted: 0 })
    seat.rest()
    await seat.setChannel(first)
    expect((await seat.value()).metric).toBe(result)
  })

  it('starts once "a result is to come" is stored, not before, and then OK is answered', async () => {
    await producer.settle()
    producer.store.manual = true
    const seq = seat.send(execute('user.remove', args(['user', type.string, str('admin')])))
    await producer.settle()
    expect(users()).toContain('admin')
    expect(seat.rest()).toEqual([])
    producer.store.complete()
    expect((await seat.response(seq)).status).toBe(0)
    await producer.settle()
    expect(users()).not.toContain('admin')
  })

  it('runs to its end though the connection is gone, and the result waits', async () => {
    await producer.settle()
    producer.store.manual = true
    seat.send(execute('user.remove', args(['user', type.string, str('admin')])))
    await producer.settle()
    seat.peer.destroy()
    await producer.settle()
    producer.store.manual = false
    producer.store.complete()
    await producer.settle()
    expect(users()).not.toContain('admin')
    const next = await resume(seat.channel)
    expect(decoded(await next.value()).outcome).toBe('ok')
  })

  it('a result that is stored and not committed comes again after a crash, with the same bytes', async () => {
    await seat.ok(execute('user.list', args()))
    const value = await seat.value()
    await producer.settle()
    producer = await producer.crash()
    const next = await resume(seat.channel)
    expect((await next.value()).bytes).toEqual(value.bytes)
    expect((await next.commit(value.transaction)).status).toBe(0)
    next.peer.destroy()
    await producer.settle()
    const gone = await producer.seat('root')
    // The GAP of the crash is all that is left; its id has died with the result.
    expect((await gone.ask((seq) => command.stop(seq, value.metric))).status).toBe(NO_SUCH_ID)
  })

  it('if the producer ended in between, the result is `unknown`, once', async () => {
    const id = await seat.ok(execute('user.add', newUser('late')))
    producer = await producer.crash()
    let current = await resume(seat.channel)
    const value = await current.value()
    expect(value.metric).toBe(id)
    expect(decoded(value)).toMatchObject({ outcome: 'unknown', value: null })
    expect(await values(current)).toEqual([])
    producer = await producer.crash()
    current = await resume(seat.channel)
    const again = await values(current)
    expect(again.map(({ bytes }) => bytes)).toEqual([value.bytes])
    await current.commit(value.transaction)
    expect((await current.ask((seq) => command.subscribe(seq, id))).status).toBe(NO_SUCH_ID)
  })

  describe('no limit touches a result', () => {
    const policies = ['drop-oldest', 'drop-newest', 'keep-latest']

    it.each(policies)('neither max_age nor %s, before a crash and after', async (policy) => {
      const channel = await seat.defChannel(
        ['max_bytes', type.uint32, u32(4096)],
        ['max_age_ms', type.uint32, u32(60_000)],
        ['overflow', type.string, str(policy)],
      )
      await seat.setChannel(channel)
      await seat.follow('test.a')
      for (let i = 0; i < 300; i++) producer.emit(i)
      const id = await seat.ok(execute('user.list', args()))
      seat.peer.destroy()
      await producer.settle()
      for (let round = 0; round < 2; round++) {
        for (let i = 0; i < 500; i++) producer.emit(i)
        await producer.settle()
        producer.clock.leap(DAY_MS)
        const watcher = await producer.seat('root')
        expect(await watcher.ledger(channel)).toMatchObject({ queued: 1 })
        expect(balance(await watcher.ledger(channel))).toBe(0)
        if (round === 0) producer = await producer.crash()
      }
      const next = await resume(channel)
      expect((await next.value()).metric).toBe(id)
    })
  })

  describe('on a channel with durable = false', () => {
    it('a result has transaction id 0', async () => {
      await seat.setChannel(await seat.defChannel(['durable', type.boolean, u32(0)]))
      const id = await seat.ok(execute('user.list', args()))
      expect(await seat.value()).toMatchObject({ metric: id, transaction: 0 })
      expect((await seat.ask((seq) => command.stop(seq, id))).status).toBe(NO_SUCH_ID)
    })

    it('that of a channel.configure already follows the new setting, and does not count as queued for it', async () => {
      const configure = (durable: number) =>
        execute('channel.configure', args(['channel', type.uint32, u32(0)], ['durable', type.boolean, u32(durable)]))
      await seat.ok(configure(0))
      expect((await seat.value()).transaction).toBe(0)
      await seat.ok(configure(1))
      const value = await seat.value()
      expect(value.transaction).toBeGreaterThan(0)
      await seat.commit(value.transaction)
      await seat.ok(configure(0))
      expect((await seat.value()).transaction).toBe(0)
    })
  })

  describe('a result id', () => {
    it('lives until its value is committed; SUBSCRIBE and BUFFER of it are UNSUPPORTED', async () => {
      const id = await seat.ok(execute('user.list', args()))
      const value = await seat.value()
      for (const make of [command.subscribe, command.buffer]) {
        expect((await seat.ask((seq) => make(seq, id))).status).toBe(UNSUPPORTED)
      }
      await seat.commit(value.transaction)
      for (const make of [command.subscribe, command.buffer, command.stop]) {
        expect((await seat.ask((seq) => make(seq, id))).status).toBe(NO_SUCH_ID)
      }
    })

    it('dies when its value is purged', async () => {
      const id = await seat.ok(execute('user.list', args()))
      await seat.value()
      await seat.ok(execute('channel.purge', args(['channel', type.uint32, u32(0)], ['metric', type.uint32, u32(id)])))
      expect((await seat.ask((seq) => command.stop(seq, id))).status).toBe(NO_SUCH_ID)
    })

    it('is nobody else’s', async () => {
      const id = await seat.ok(execute('user.list', args()))
      await seat.value()
      const stranger = await producer.seat('stranger')
      const refused = await stranger.ask((seq) => command.stop(seq, id))
      const unknown = await stranger.ask((seq) => command.stop(seq, 1))
      expect([refused.status, refused.detail]).toEqual([NO_SUCH_ID, unknown.detail])
    })
  })

  describe('STOP', () => {
    it('before the value came drops it, not the control', async () => {
      const id = await seat.ok(execute('user.add', newUser('late')))
      await seat.ok((seq) => command.stop(seq, id))
      while (!users().includes('late')) await producer.settle()
      expect(await values()).toEqual([])
      expect(await seat.ledger()).toMatchObject({ accepted: 0 })
      expect((await seat.ask((seq) => command.stop(seq, id))).status).toBe(NO_SUCH_ID)
    })

    it('of one in flight leaves the window; of one queued it is passed over, after a crash too', async () => {
      const sent = await seat.ok(execute('user.list', args()))
      await seat.value()
      await seat.ok((seq) => command.stop(seq, sent))
      expect(await seat.ledger()).toMatchObject({ in_flight: 0, dropped: { stopped: 1 } })

      const channel = await seat.defChannel(['window', type.uint32, u32(1)])
      await seat.setChannel(channel)
      await seat.follow('test.a')
      producer.emit(1)
      const first = await seat.value()
      const queued = await seat.ok(execute('user.list', args()))
      await seat.ok((seq) => command.stop(seq, queued))
      producer = await producer.crash()
      const next = await resume(channel)
      expect((await next.value()).transaction).toBe(first.transaction)
      await next.commit(first.transaction)
      await next.commit((await next.gap()).transaction)
      expect(await values(next)).toEqual([])
    })

    it('of all channels finds it', async () => {
      const id = await seat.ok(execute('user.list', args()))
      await seat.value()
      await seat.ok((seq) => command.stop(seq, id, 0xffffffff))
      expect(await seat.ledger()).toMatchObject({ in_flight: 0, dropped: { stopped: 1 } })
    })
  })

  it('results count in the ledger and in `through` as any value', async () => {
    await seat.follow('test.a')
    producer.emit(1)
    await seat.ok(execute('user.list', args()))
    const [, last] = await seat.values(2)
    await seat.ok((seq) => command.commitThrough(seq, last?.transaction ?? 0))
    const ledger = await seat.ledger()
    expect(ledger).toMatchObject({ accepted: 2, committed: 2 })
    expect(balance(ledger)).toBe(0)
  })

  it('`producer.controls` shows what one may run, with its arguments', async () => {
    const shown = async (of: Seat, ...list: readonly (readonly [string, number, Uint8Array])[]) =>
      decoded(await of.query('producer.controls', args(...list))).map(({ name }: { name: string }) => name)
    const channels = ['channel.configure', 'channel.delete', 'channel.purge']
    const mine = ['board.delete', 'board.save', ...channels, 'control.approve', 'control.refuse']
    const stranger = await producer.seat('stranger')
    expect(await shown(seat)).toEqual(expect.arrayContaining([...mine, 'sensor.fence', 'user.add']))
    expect(await shown(stranger)).toEqual(mine)
    expect(await shown(seat, ['match', type.string, str('user.a*')])).toEqual(['user.add'])
    const [purge] = decoded(await stranger.query('producer.controls', args(['match', type.string, str('*purge')])))
    expect(purge.parameters.map((parameter: { name: string }) => parameter.name)).toEqual([
      'channel',
      'metric',
      'through',
    ])
  })

  it('`producer.controls` declares the bounds of arguments, which EXECUTE enforces', async () => {
    const parametersOf = async (control: string) => {
      const [shown] = decoded(await seat.query('producer.controls', args(['match', type.string, str(control)])))
      return new Map(shown.parameters.map((parameter: { name: string }) => [parameter.name, parameter]))
    }
    const configure = await parametersOf('channel.configure')
    const { max } = configure.get('window') as { max: number }
    expect(configure.get('overflow')).toMatchObject({ values: 'drop-oldest\ndrop-newest\nkeep-latest' })
    expect((await parametersOf('user.passwd')).get('password')).toMatchObject({ secret: true, max_length: 72 })
    const expires = (await parametersOf('token.add')).get('expires_in_s')
    expect(expires).toMatchObject({ min: 1, max: 3_153_600_000 })
    const ask = async (control: string, list: Uint8Array) => (await seat.ask(execute(control, list))).status
    expect(await ask('channel.configure', window(0, max))).toBe(OK)
    expect(await ask('channel.configure', window(0, max + 1))).toBe(QUOTA_EXCEEDED)
    const overflow = (text: string) =>
      ask('channel.configure', args(['channel', type.uint32, u32(0)], ['overflow', type.string, str(text)]))
    expect(await overflow('drop-newest')).toBe(OK)
    expect(await overflow('drop')).toBe(INVALID_ARGUMENT)
    const token = (seconds: bigint) =>
      ask(
        'token.add',
        args(
          ['user', type.string, str('x')],
          ['hash', type.string, str('0'.repeat(64))],
          ['expires_in_s', type.uint64, u64(seconds)],
          ['dry_run', type.boolean, u32(1)],
        ),
      )
    expect(await token(1n)).toBe(OK)
    expect(await token(0n)).toBe(INVALID_ARGUMENT)
    expect(await token(3_153_600_001n)).toBe(INVALID_ARGUMENT)
  })
})
