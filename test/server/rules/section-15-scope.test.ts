/** Section 15, Liveness: a credential that is narrower than its user, over ids and channels that the user has. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { askFor, done, newToken, tokenSeat } from '../../support/administration.ts'
import { ALL, args, command, status, str, type } from '../../support/bytes.ts'
import { TestProducer } from '../../support/producer.ts'
import { decoded } from '../../support/records.ts'
import { numberOf, type Response, type Seat } from '../../support/seat.ts'

let producer: TestProducer
let root: Seat
/** With all rights of the user. */
let wide: Seat
beforeEach(async () => {
  producer = await TestProducer.start()
  await producer.addUser('root', { role: 'admin' })
  await producer.addUser('ann', { role: 'operator' })
  root = await producer.seat('root')
  wide = await producer.seat('ann')
})
afterEach(() => producer.stop())

async function narrow(scope: string, user = 'ann'): Promise<Seat> {
  const { token, hash } = newToken()
  await done(root, 'token.add', { user, hash, scope })
  return tokenSeat(producer, token)
}

/** A channel of the user on which something is bound that a scope may cover or not. */
async function bound(...metrics: readonly string[]): Promise<{ channel: number; ids: number[] }> {
  const channel = await wide.defChannel()
  const ids: number[] = []
  for (const metric of metrics) ids.push(await wide.follow(metric, channel))
  return { channel, ids }
}

describe('COLLECT and QUERY with a scope', () => {
  it('read what it names; of the rest what is there is PERMISSION_DENIED, and what is not is not there', async () => {
    const seat = await narrow('COLLECT test.a*;COLLECT producer.stats')
    await seat.follow('test.a')
    producer.emit(1)
    expect(numberOf(await seat.value())).toBe(1)
    expect((await seat.query('producer.stats')).type).toBe(type.rec)
    const answers = async (name: string) => [
      (await seat.ask((seq) => command.collect(seq, name))).status,
      (await seat.ask((seq) => command.query(seq, name))).status,
    ]
    for (const name of ['test.b', 'producer.metrics', 'slow.value', 'test.*', '*', '*.a']) {
      expect([name, ...(await answers(name))]).toEqual([name, status.PERMISSION_DENIED, status.PERMISSION_DENIED])
    }
    expect(await answers('producer.audit')).toEqual([status.NO_SUCH_METRIC, status.NO_SUCH_METRIC])
    expect(await answers('nonsense.b')).toEqual([status.NO_SUCH_METRIC, status.NO_SUCH_METRIC])
    expect(await answers('test.a*')).toEqual([status.OK, status.OK])
  })

  it('never read what the user may not: a scope only narrows', async () => {
    const seat = await narrow('* *')
    expect((await seat.ask((seq) => command.collect(seq, 'producer.audit'))).status).toBe(status.NO_SUCH_METRIC)
    expect((await askFor(seat, 'user.list')).status).toBe(status.NO_SUCH_CONTROL)
  })
})

describe('an id of the user that the credential is not for', () => {
  it('is PERMISSION_DENIED to every command, and goes on as it was', async () => {
    const id = await wide.follow('test.b')
    const seat = await narrow('COLLECT test.a')
    const asked = [command.stop, command.subscribe, command.buffer, command.get]
    for (const make of asked) {
      for (const channel of [0, ALL]) {
        const { status: code } = await seat.ask((seq) => make(seq, id, channel))
        expect([make.name, code]).toEqual([make.name, status.PERMISSION_DENIED])
      }
    }
    producer.emit(1, 'test.b')
    expect(numberOf(await wide.value())).toBe(1)
  })
})

describe('a channel with a binding that the credential is not for', () => {
  let hidden: { channel: number; ids: number[] }
  let open: { channel: number; ids: number[] }
  let seat: Seat
  let mine: number
  beforeEach(async () => {
    hidden = await bound('test.a', 'test.b')
    open = await bound('test.a')
    seat = await narrow('COLLECT test.a;COLLECT producer.channels;EXECUTE channel.*')
    mine = await seat.follow('test.a')
  })

  const answers = (channel: number): Promise<Response[]> =>
    Promise.all([
      seat.ask((seq) => command.setChannel(seq, channel)),
      seat.ask((seq) => command.delChannel(seq, channel)),
      seat.ask((seq) => command.subscribe(seq, mine, channel)),
      seat.ask((seq) => command.buffer(seq, mine, channel)),
      seat.ask((seq) => command.get(seq, mine, channel)),
      seat.ask((seq) => command.stop(seq, mine, channel)),
      askFor(seat, 'channel.configure', { channel, window: 1 }),
      askFor(seat, 'channel.purge', { channel }),
    ])
  const plain = ({ status, detail, result }: Response) => ({ status, detail, result })

  it('is NO_SUCH_CHANNEL everywhere, with the answer of one that never was', async () => {
    const before = await wide.ledger(hidden.channel)
    const refused = await answers(hidden.channel)
    expect(refused.map(plain)).toEqual((await answers(0x7ffffffe)).map(plain))
    for (const { status: code } of refused) expect(code).toBe(status.NO_SUCH_CHANNEL)
    expect(await wide.ledger(hidden.channel)).toEqual(before)
  })

  it('is not in producer.channels, neither asked for by its id nor in the list', async () => {
    expect(await seat.ledger(hidden.channel)).toBeUndefined()
    const shown = decoded(await seat.query('producer.channels')).map(({ channel }: { channel: number }) => channel)
    expect(shown.sort()).toEqual([seat.channel, open.channel].concat(wide.channel).sort())
    const all = decoded(await wide.query('producer.channels')).map(({ channel }: { channel: number }) => channel)
    expect(all).toContain(hidden.channel)
  })

  it('is passed over by "all channels"', async () => {
    const [first = 0] = hidden.ids
    await wide.ok((seq) => command.subscribe(seq, first, open.channel))
    await seat.ok((seq) => command.stop(seq, first, ALL))
    const bindings = async (channel: number) => (await wide.ledger(channel)).bindings.length
    expect([await bindings(hidden.channel), await bindings(open.channel)]).toEqual([2, 1])
    seat.send((seq) => command.delChannel(seq, ALL))
    await seat.closed()
    await producer.settle()
    wide = await producer.seat('ann')
    expect(await wide.ledger(hidden.channel)).toBeDefined()
    expect(await wide.ledger(open.channel)).toBeUndefined()
  })

  it('where all is covered is open', async () => {
    producer.emit(7)
    await seat.setChannel(open.channel)
    expect(numberOf(await seat.value())).toBe(7)
  })

  it('that the narrower connection has when the binding comes is taken from it, with NOTICE 4', async () => {
    const id = await wide.collect('test.b', args(['host', type.string, str('h1')]))
    for (const make of [command.subscribe, command.buffer]) {
      const other = await narrow('COLLECT test.a')
      await other.follow('test.a')
      await wide.ok((seq) => make(seq, id, other.channel))
      expect(await other.notice()).toMatchObject({ code: 4, channel: other.channel })
      await other.closed()
    }
    producer.emit(1, 'test.b')
    await producer.settle()
  })
})

describe('a token that is made with a token', () => {
  it('cannot be good for more', async () => {
    const seat = await narrow('EXECUTE token.add;COLLECT host.*', 'root')
    const add = async (scope?: string) => {
      const given = { user: 'ann', hash: newToken().hash, ...(scope === undefined ? {} : { scope }) }
      return (await askFor(seat, 'token.add', given)).status
    }
    for (const scope of [undefined, '* *', 'COLLECT *', '* host.*', 'EXECUTE *', 'COLLECT host.*;COLLECT test.a']) {
      expect([scope, await add(scope)]).toEqual([scope, status.PERMISSION_DENIED])
    }
    expect(await add('COLLECT host.load*')).toBe(status.OK)
    expect((await askFor(seat, 'token.revoke', { token: 1 })).status).toBe(status.PERMISSION_DENIED)
  })

  it('lets values in only if that one names PUBLISH, whatever its * stands for', async () => {
    const add = async (own: string, scope: string) => {
      const seat = await narrow(own, 'root')
      return (await askFor(seat, 'token.add', { user: 'ann', hash: newToken().hash, scope })).status
    }
    expect(await add('* *', '* host.*')).toBe(status.OK)
    expect(await add('* *', 'PUBLISH otlp.*')).toBe(status.PERMISSION_DENIED)
    expect(await add('* *;PUBLISH otlp.*', 'PUBLISH otlp.requests')).toBe(status.OK)
    expect(await add('* *;PUBLISH otlp.*', 'PUBLISH *')).toBe(status.PERMISSION_DENIED)
  })
})

describe('users that are administered with a token that has a scope', () => {
  it('get no password and no role by which anybody could do more than it', async () => {
    await done(root, 'role.allow', { role: 'operator', command: 'EXECUTE', object: 'user.*' })
    const password = 'of no use'
    for (const user of ['root', 'ann']) {
      const seat = await narrow('EXECUTE user.*', user)
      for (const [control, given] of [
        ['user.passwd', { user: 'ann', password }],
        ['user.passwd', { user: 'root', password }],
        ['user.role', { user: 'ann', role: 'operator' }],
        ['user.add', { user: 'new', password }],
        ['user.add', { user: 'new', role: 'admin' }],
      ] as const) {
        const { status: answer } = await askFor(seat, control, given)
        expect([user, control, answer]).toEqual([user, control, status.PERMISSION_DENIED])
      }
      expect(await done(seat, 'user.list')).not.toContainEqual(expect.objectContaining({ user: 'new' }))
    }
  })

  it('can be added and removed', async () => {
    const seat = await narrow('EXECUTE user.*', 'root')
    await done(seat, 'user.add', { user: 'new' })
    await done(seat, 'user.remove', { user: 'new' })
  })
})
