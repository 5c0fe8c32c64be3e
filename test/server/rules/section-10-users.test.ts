/** Section 10, Controls: the users. Only the role admin is shown these; no password is ever seen again. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ScramClient } from '../../../auth/scram/client.ts'
import { args, command, join, str, type, u32 } from '../../support/bytes.ts'
import { TestProducer } from '../../support/producer.ts'
import { decoded } from '../../support/records.ts'
import type { Response, Seat } from '../../support/seat.ts'

const AUTH_FAILED = 2
const INVALID_ARGUMENT = 6
const NO_SUCH_CHANNEL = 9
const NO_SUCH_CONTROL = 10
const WITHDRAWN = 4
/** Of a drain, of the history, and of notifiers that the configuration has and that an admin has put: nobody can log in as them. */
const OWN_USERS = ['drain:pg', 'history:', 'notify:mail', 'notify:mail:']

describe('Controls of users', () => {
  let producer: TestProducer
  let root: Seat
  beforeEach(async () => {
    producer = await TestProducer.start()
    await producer.addUser('root', { role: 'admin' })
    root = await producer.seat('root')
  })
  afterEach(() => producer.stop())

  type Text = Readonly<Record<string, string>>
  const list = (given: Text) => Object.entries(given).map(([name, text]) => [name, type.string, str(text)] as const)
  const run = (control: string, given: Text = {}, of = root) => of.execute(control, ...list(given))
  const ask = (control: string, given: Text = {}, of = root): Promise<Response> =>
    of.ask((seq) => command.execute(seq, control, args(...list(given))))

  async function withPassword(identity: string, password: string): Promise<number> {
    const peer = producer.connect()
    peer.send(command.auth(1, 'password', join(str(identity), str(password))))
    return (await peer.response(1)).status
  }

  async function withScram(identity: string, password: string): Promise<number> {
    const peer = producer.connect()
    const scram = new ScramClient({ identity, password })
    peer.send(command.auth(1, 'scram-sha-256', scram.first()))
    peer.send(command.auth(2, '', await scram.final((await peer.until('auth')).data)))
    const second = await peer.response(2)
    if (second.status !== 1) return second.status
    peer.send(command.auth(3, '', new Uint8Array(0)))
    return (await peer.response(3)).status
  }

  async function bothWays(identity: string, password: string): Promise<number[]> {
    return [await withPassword(identity, password), await withScram(identity, password)]
  }

  it('are for the role admin alone: for others there are no such controls', async () => {
    await producer.addUser('op', { role: 'operator' })
    const given: Record<string, Text> = {
      'user.add': { user: 'x', password: 'secret words' },
      'user.passwd': { user: 'root', password: 'secret words' },
      'user.remove': { user: 'root' },
      'user.list': {},
    }
    for (const of of [await producer.seat(), await producer.seat('op')]) {
      for (const [control, texts] of Object.entries(given)) {
        const refused = await ask(control, texts, of)
        const unknown = await ask('user.nonsense', texts, of)
        expect(refused.status).toBe(NO_SUCH_CONTROL)
        expect(refused.detail).toBe(unknown.detail.replace('user.nonsense', control))
      }
    }
    expect(await withPassword('x', 'secret words')).toBe(AUTH_FAILED)
  })

  it('user.add: the user logs in by every method, in the tenant that it made, and survives a crash', async () => {
    expect(await run('user.add', { user: 'ann', password: 'secret words' })).toMatchObject({ outcome: 'ok' })
    const given = { user: 'ann', tenant: 'north', password: 'other words', role: 'operator' }
    expect(await run('user.add', given)).toMatchObject({ outcome: 'ok' })
    for (let round = 0; round < 2; round++) {
      expect(await bothWays('ann', 'secret words')).toEqual([0, 0])
      expect(await bothWays('north/ann', 'other words')).toEqual([0, 0])
      expect(await bothWays('north/ann', 'secret words')).toEqual([AUTH_FAILED, AUTH_FAILED])
      if (round === 0) producer = await producer.crash()
    }
    expect(producer.server.parts.producer.accounts.find('default', 'ann')?.role).toBe('consumer')
    expect(producer.server.parts.producer.accounts.find('north', 'ann')?.role).toBe('operator')
  })

  it('user.add of one that is there changes nothing', async () => {
    const before = producer.server.parts.producer.accounts.list()
    expect(await run('user.add', { user: 'admin', password: 'secret words' })).toMatchObject({ outcome: 'failed' })
    expect(producer.server.parts.producer.accounts.list()).toEqual(before)
  })

  it('two user.add of the same name at once make one user', async () => {
    const adding = ['secret one', 'secret two'].map((password) =>
      root.ok((seq) => command.execute(seq, 'user.add', args(...list({ user: 'twin', password })))),
    )
    await Promise.all(adding)
    const results = (await root.values(2)).map((value) => decoded(value).outcome)
    expect(results.sort()).toEqual(['failed', 'ok'].sort())
  })

  it('user.passwd: both methods accept the new one and refuse the old one, after a crash too', async () => {
    await run('user.add', { user: 'ann', password: 'secret words' })
    expect(await run('user.passwd', { user: 'ann', password: 'newer words' })).toMatchObject({ outcome: 'ok' })
    for (let round = 0; round < 2; round++) {
      expect(await bothWays('ann', 'newer words')).toEqual([0, 0])
      expect(await bothWays('ann', 'secret words')).toEqual([AUTH_FAILED, AUTH_FAILED])
      if (round === 0) producer = await producer.crash()
    }
  })

  it.each([
    ['of more than 72 bytes', 'x'.repeat(73)],
    ['of more than 72 bytes in fewer characters', 'ü'.repeat(37)],
    ['that is empty', ''],
    ['of less than 8 characters', '7 chars'],
    ['of less than 8 characters in more bytes', 'ü'.repeat(7)],
    ['that cannot be typed reliably', 'bell \u0007 inside'],
  ])('a password %s is refused before anything runs', async (_, password) => {
    for (const control of ['user.add', 'user.passwd']) {
      const refused = await ask(control, { user: control === 'user.add' ? 'new' : 'admin', password })
      expect(refused.status).toBe(INVALID_ARGUMENT)
      if (password !== '') expect(refused.detail).not.toContain(password)
    }
    expect(producer.logged.join('')).not.toContain('a control failed')
  })

  it('a password of 72 bytes is a password', async () => {
    const password = 'x'.repeat(72)
    await run('user.add', { user: 'long', password })
    expect(await bothWays('long', password)).toEqual([0, 0])
    expect(await bothWays('long', password.slice(1))).toEqual([AUTH_FAILED, AUTH_FAILED])
  })

  it.each([
    ['an empty name', { user: '', password: 'secret words' }],
    ['a name with a slash', { user: 'a/b', password: 'secret words' }],
    ['a tenant with a slash', { user: 'a', tenant: 'b/c', password: 'secret words' }],
    ['a role that there is not', { user: 'a', role: 'king', password: 'secret words' }],
  ])('%s is INVALID_ARGUMENT', async (_, given) => {
    expect((await ask('user.add', given)).status).toBe(INVALID_ARGUMENT)
  })

  it('user.list shows all users of all tenants, and nothing secret', async () => {
    await producer.addUser('zoe', { tenant: 'north' })
    const { value } = await run('user.list')
    expect(value).toEqual([
      { tenant: 'default', user: 'admin', role: 'admin' },
      { tenant: 'default', user: 'local', role: 'admin' },
      { tenant: 'default', user: 'root', role: 'admin' },
      { tenant: 'north', user: 'zoe', role: 'consumer' },
    ])
  })

  it('what concerns a user that is not there, or the command line’s own, fails', async () => {
    for (const [control, user] of [
      ['user.remove', 'nobody'],
      ['user.remove', 'local'],
      ['user.passwd', 'nobody'],
      ['user.passwd', 'local'],
    ] as const) {
      const given = control === 'user.remove' ? { user } : { user, password: 'secret words' }
      expect([control, user, (await run(control, given)).outcome]).toEqual([control, user, 'failed'])
    }
    expect(await withScram('local', 'secret words')).toBe(AUTH_FAILED)
  })

  describe('user.remove', () => {
    it('ends the user’s sessions at once with NOTICE 4, and nobody else’s', async () => {
      await producer.addUser('ann')
      const sessions = [await producer.seat('ann'), await producer.seat('ann')]
      const other = await producer.seat('other')
      await run('user.remove', { user: 'ann' })
      for (const session of sessions) {
        expect(await session.notice()).toMatchObject({ code: WITHDRAWN, channel: session.channel })
        await session.closed()
      }
      expect((await other.ask((seq) => command.nop(seq))).status).toBe(0)
      expect(await withPassword('ann', 'whatever')).toBe(AUTH_FAILED)
    })

    it('destroys channels and ids; the same name later is another user, who sees nothing of it', async () => {
      await producer.addUser('ann')
      const ann = await producer.seat('ann')
      const channel = await ann.defChannel()
      const id = await ann.follow('test.a', channel)
      await ann.setChannel(channel)
      producer.emit(1)
      await ann.value()
      const { accounts } = producer.server.parts.producer
      const before = accounts.find('default', 'ann')?.id ?? 0
      await run('user.remove', { user: 'ann' })
      expect(decoded(await root.query('producer.channels')).map(({ channel }: { channel: number }) => channel)).toEqual(
        [root.channel],
      )
      await run('user.add', { user: 'ann', password: 'secret words' })
      for (let round = 0; round < 2; round++) {
        const book = producer.server.parts.producer.accounts
        expect(book.find('default', 'ann')?.id).toBeGreaterThan(before)
        const peer = producer.connect()
        peer.send(command.auth(1, 'password', join(str('ann'), str('secret words'))))
        expect((await peer.response(1)).status).toBe(0)
        peer.send(command.setChannel(2, channel), command.get(3, id))
        expect((await peer.response(2)).status).toBe(NO_SUCH_CHANNEL)
        expect((await peer.response(3)).status).toBe(8)
        if (round === 0) producer = await producer.crash()
      }
    })

    it('an id is not given again, not even when the last user was removed and the producer restarted', async () => {
      await producer.addUser('ann')
      const { accounts } = producer.server.parts.producer
      const before = accounts.find('default', 'ann')?.id ?? 0
      await run('user.remove', { user: 'ann' })
      producer = await producer.restart(1000)
      await producer.addUser('bob')
      expect(producer.server.parts.producer.accounts.find('default', 'bob')?.id).toBeGreaterThan(before)
    })

    it('of a user in the middle of an AUTH: it is not admitted', async () => {
      await run('user.add', { user: 'ann', password: 'secret words' })
      const peer = producer.connect()
      const scram = new ScramClient({ identity: 'ann', password: 'secret words' })
      peer.send(command.auth(1, 'scram-sha-256', scram.first()))
      peer.send(command.auth(2, '', await scram.final((await peer.until('auth')).data)))
      expect((await peer.response(2)).status).toBe(1)
      await run('user.remove', { user: 'ann' })
      peer.send(command.auth(3, '', new Uint8Array(0)))
      expect((await peer.response(3)).status).toBe(AUTH_FAILED)
    })

    it('of oneself is refused: the last admin would lock everybody out', async () => {
      expect(await run('user.remove', { user: 'root' })).toMatchObject({ outcome: 'failed' })
      expect(producer.server.parts.producer.accounts.find('default', 'root')).toBeDefined()
    })
  })

  it.each([
    ['user.remove', {}],
    ['user.role', { role: 'consumer' }],
  ])('two admins that do %s to each other at once leave one who can log in', async (control, more) => {
    await run('user.remove', { user: 'admin' })
    for (const name of OWN_USERS) await producer.addUser(name, { role: 'admin' })
    await producer.addUser('boss', { role: 'admin' })
    const boss = await producer.seat('boss')
    producer.store.manual = true
    for (const [seat, user] of [
      [root, 'boss'],
      [boss, 'root'],
    ] as const) {
      seat.send((seq) => command.execute(seq, control, args(...list({ user, ...more }))))
    }
    await producer.settle()
    producer.store.manual = false
    producer.store.complete()
    await producer.settle()
    const admins = producer.server.parts.producer.accounts.list().filter(({ role }) => role === 'admin')
    expect(admins.map(({ name }) => name).sort()).toEqual([...OWN_USERS, 'local', 'root'].sort())
  })

  it.each(OWN_USERS)('%s is a user of the server: none is added, logs in, or gets a password', async (user) => {
    const password = 'secret words'
    expect(await ask('user.add', { user, password })).toMatchObject({ status: INVALID_ARGUMENT })
    // As if it had been added before that was refused.
    await producer.addUser(user, { password })
    expect(await bothWays(user, password)).toEqual([AUTH_FAILED, AUTH_FAILED])
    const isOwn = { outcome: 'failed', detail: `${user} is a user of the server itself` }
    expect(await run('user.passwd', { user, password })).toMatchObject(isOwn)
    expect(await run('token.add', { user, hash: 'ab'.repeat(32) })).toMatchObject(isOwn)
  })

  it('no password is in the log, in a response, in a value or in the catalogue', async () => {
    const secrets = ['hunter2 first', 'hunter2 second', `hunter2 ${'x'.repeat(80)}`, 'hunter2 \u0007']
    await run('user.add', { user: 'ann', password: secrets[0] as string })
    await run('user.add', { user: 'ann', password: secrets[1] as string })
    await run('user.passwd', { user: 'ann', password: secrets[1] as string })
    for (const password of secrets.slice(2)) await ask('user.add', { user: 'bob', password })
    await ask('user.add', { user: 'bob', passwort: secrets[0] as string })
    const asNumber = args(['user', type.string, str('bob')], ['password', type.uint32, u32(271828)])
    const refused = await root.ask((seq) => command.execute(seq, 'user.add', asNumber))
    expect(refused.detail).not.toContain('271828')
    await withPassword('ann', secrets[0] as string)
    await withScram('ann', secrets[0] as string)
    for (const password of secrets.slice(0, 2)) await withPassword('nobody', password)
    await producer.settle()
    expect(producer.logged.length).toBeGreaterThan(0)
    expect(producer.logged.join('')).not.toContain('hunter2')
    for (const message of root.peer.log) {
      if (message.kind !== 'closed') expect(message.bytes.includes('hunter2')).toBe(false)
    }
  })
})
