/** Section 11: a token whose scope is WATCH reads what that names on the channel of its connection, and does nothing else. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { askFor, done, newToken, tokenSeat } from '../../support/administration.ts'
import { ALL, args, command, status, str, type } from '../../support/bytes.ts'
import { TestProducer } from '../../support/producer.ts'
import { decoded } from '../../support/records.ts'
import { numberOf, type Seat } from '../../support/seat.ts'

const SCOPE = 'WATCH test.a;WATCH producer.metrics;WATCH producer.recent'

describe('a token that only watches', () => {
  let producer: TestProducer
  /** An admin, whose token it is. */
  let root: Seat
  let watcher: Seat
  let number: number
  const watching = async (): Promise<Seat> => {
    const { token, hash } = newToken()
    number = await done(root, 'token.add', { user: 'root', hash, scope: SCOPE })
    return await tokenSeat(producer, token)
  }
  beforeEach(async () => {
    producer = await TestProducer.start()
    await producer.addUser('root', { role: 'admin' })
    root = await producer.seat('root')
    watcher = await watching()
  })
  afterEach(() => producer.stop())

  it('reads what its scope names', async () => {
    await watcher.follow('test.a')
    producer.emit(1)
    expect(numberOf(await watcher.value())).toBe(1)
    for (const name of ['test.b', 'test.*', '*', 'producer.channels', 'producer.audit', 'producer.connections']) {
      const codes = [
        (await watcher.ask((seq) => command.collect(seq, name))).status,
        (await watcher.ask((seq) => command.query(seq, name))).status,
      ]
      expect([name, ...codes]).toEqual([name, status.PERMISSION_DENIED, status.PERMISSION_DENIED])
    }
  })

  it('is named no other metric by the catalogue', async () => {
    for (const name of ['test.a', 'test.b']) producer.emit(1, name)
    const listed = decoded(await watcher.query('producer.metrics')).map(({ name }: { name: string }) => name)
    expect(listed).toEqual(['producer.metrics', 'producer.recent', 'test.a'])
  })

  it('runs no control, whatever its user may, and not on its own channel either', async () => {
    const channel = watcher.channel
    for (const control of ['channel.configure', 'channel.purge', 'channel.delete']) {
      for (const given of [{ channel }, { channel: 0 }, { channel: root.channel }]) {
        expect([control, (await askFor(watcher, control, given)).status]).toEqual([control, status.PERMISSION_DENIED])
      }
    }
    for (const [control, given] of [
      ['token.add', { user: 'root', hash: newToken().hash }],
      ['user.add', { user: 'eve' }],
      ['token.revoke', { token: number }],
      ['sensor.fence', { sensor: 'test' }],
    ] as const) {
      const { status: code } = await askFor(watcher, control, given)
      expect([status.PERMISSION_DENIED, status.NO_SUCH_CONTROL]).toContain(code)
    }
    expect(producer.server.parts.producer.accounts.list().map(({ name }) => name)).not.toContain('eve')
  })

  it('defines no channel, and finds none of its user but that of its connection', async () => {
    const other = await root.defChannel()
    await root.follow('test.a', other)
    producer.emit(7)
    await producer.settle()
    const before = await root.ledger(other)
    for (const list of [args(), args(['name', type.string, str('mine')])]) {
      expect((await watcher.ask((seq) => command.defChannel(seq, '', list))).status).toBe(status.PERMISSION_DENIED)
    }
    const id = await watcher.follow('test.a')
    for (const channel of [other, root.channel]) {
      for (const make of [command.setChannel, command.delChannel]) {
        const { status: code } = await watcher.ask((seq) => make(seq, channel))
        expect([make.name, code]).toEqual([make.name, status.NO_SUCH_CHANNEL])
      }
      for (const make of [command.subscribe, command.buffer, command.get, command.stop]) {
        const { status: code } = await watcher.ask((seq) => make(seq, id, channel))
        expect([make.name, code]).toEqual([make.name, status.NO_SUCH_CHANNEL])
      }
    }
    for (const make of [command.subscribe, command.stop]) await watcher.ask((seq) => make(seq, id, ALL))
    expect(await root.ledger(other)).toEqual(before)
    producer.emit(8)
    expect(numberOf(await watcher.value())).toBe(8)
  })

  it('leaves nothing: its channel is not durable, and ends with the connection', async () => {
    await watcher.follow('test.a')
    producer.emit(1)
    const { transaction } = await watcher.value()
    expect(transaction).toBe(0)
    const shown: Record<string, unknown> = await root.ledger(watcher.channel)
    expect(shown['durable']).toBe(false)
    watcher.peer.destroy()
    await producer.settle()
    expect(await root.ledger(watcher.channel)).toBeUndefined()
  })

  it('says so in PRODUCER_CAPS, and ends within a second when the token is revoked', async () => {
    const last = ({ peer }: Seat) => peer.log.findLast((message) => message.kind === 'caps')?.bytes.toString('latin1')
    expect(last(watcher)).toContain('watch-only')
    expect(last(root)).not.toContain('watch-only')
    await done(root, 'token.revoke', { token: number })
    producer.clock.leap(1_000)
    await expect(watcher.value()).rejects.toThrow('ended')
  })

  it('is given by nobody who may give less', async () => {
    await producer.addUser('ann', { role: 'operator' })
    const { token, hash } = newToken()
    await done(root, 'token.add', { user: 'root', hash, scope: 'COLLECT test.*;EXECUTE token.add' })
    const narrow = await tokenSeat(producer, token)
    const given = (scope: string) => ({ user: 'root', hash: newToken().hash, scope })
    expect((await askFor(narrow, 'token.add', given('WATCH test.a'))).status).toBe(status.OK)
    expect((await askFor(narrow, 'token.add', given('WATCH host.*'))).status).toBe(status.PERMISSION_DENIED)
  })
})
