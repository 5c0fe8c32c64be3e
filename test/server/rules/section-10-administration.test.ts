/** Section 10, Controls: users, tokens and tenants, by admins and by those whom a rule allows some of it. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Arguments, askFor, done, newToken, run, tokenSeat } from '../../support/administration.ts'
import { status } from '../../support/bytes.ts'
import { TestProducer } from '../../support/producer.ts'
import { decoded } from '../../support/records.ts'
import type { Seat } from '../../support/seat.ts'

let producer: TestProducer
let root: Seat
beforeEach(async () => {
  producer = await TestProducer.start()
  await producer.addUser('root', { role: 'admin' })
  root = await producer.seat('root')
})
afterEach(() => producer.stop())

const accounts = () => producer.server.parts.producer.accounts
const users = () =>
  accounts()
    .list()
    .map(({ tenant, name, role }) => `${tenant}/${name} ${role}`)
async function shown(seat: Seat): Promise<string[]> {
  return decoded(await seat.query('producer.controls')).map(({ name }: { name: string }) => name)
}

describe('Users', () => {
  it('user.add without a password: nobody logs in by one, a token does', async () => {
    await done(root, 'user.add', { user: 'bot', tenant: 'north', role: 'operator' })
    expect(accounts().find('north', 'bot')).toMatchObject({ bcrypt: undefined, scram: undefined, role: 'operator' })
    const { token, hash } = newToken()
    await done(root, 'token.add', { user: 'bot', tenant: 'north', hash })
    const seat = await tokenSeat(producer, token)
    expect(await seat.ledger(seat.channel)).toMatchObject({ identity: 'north/bot' })
  })

  it('a role is one of the built-in ones or has a rule', async () => {
    expect(await askFor(root, 'user.add', { user: 'x', role: 'night' })).toMatchObject({
      status: status.INVALID_ARGUMENT,
    })
    await done(root, 'role.allow', { role: 'night', command: 'EXECUTE', object: 'user.list' })
    await done(root, 'user.add', { user: 'x', role: 'night' })
    expect(users()).toContain('default/x night')
  })

  it.each([
    ['user.remove', {}],
    ['user.role', { role: 'consumer' }],
  ] as [string, Arguments][])('two admins that %s each other at once leave one', async (control, more) => {
    await done(root, 'user.remove', { user: 'admin' })
    await producer.addUser('two', { role: 'admin' })
    const two = await producer.seat('two')
    // Both are judged before either runs.
    producer.store.manual = true
    askFor(root, control, { user: 'two', ...more }).catch(() => {})
    askFor(two, control, { user: 'root', ...more }).catch(() => {})
    await producer.settle()
    producer.store.manual = false
    producer.store.complete()
    await producer.settle()
    expect(users().filter((user) => user.endsWith(' admin') && !user.startsWith('default/local'))).toHaveLength(1)
  })

  it('nobody changes its own role', async () => {
    await producer.addUser('two', { role: 'admin' })
    expect(await run(root, 'user.role', { user: 'root', role: 'consumer' })).toMatchObject({ outcome: 'failed' })
    expect(users()).toContain('default/root admin')
  })
})

describe('Tokens', () => {
  it('are listed without their hashes, with name, scope and times', async () => {
    const { hash } = newToken()
    await producer.addUser('ann', { tenant: 'north' })
    const given = { user: 'ann', tenant: 'north', hash, name: 'grafana', scope: 'COLLECT host.*;COLLECT test.*' }
    const id = await done(root, 'token.add', { ...given, expires_in_s: 60n })
    const made = Math.round(producer.clock.wallMs() * 1000)
    const expected = {
      token: id,
      tenant: 'north',
      user: 'ann',
      name: 'grafana',
      scope: 'COLLECT host.*\nCOLLECT test.*',
    }
    const [listed] = await done(root, 'token.list')
    expect(listed).toMatchObject(expected)
    expect(Number(listed.expires) - Number(listed.made)).toBe(60_000_000)
    expect(Math.abs(Number(listed.made) - made)).toBeLessThan(1_000_000)
    expect(JSON.stringify(listed)).not.toContain(hash.slice(0, 16))
    expect(await done(root, 'token.list', { user: 'ann' })).toEqual([])
    expect(await done(root, 'token.list', { tenant: 'north' })).toHaveLength(1)
    expect(producer.logged.join('')).not.toContain(hash)
  })

  it('survive a crash, and so does that they were revoked', async () => {
    await producer.addUser('ann')
    const [kept, gone] = [newToken(), newToken()]
    await done(root, 'token.add', { user: 'ann', hash: kept.hash })
    const id = await done(root, 'token.add', { user: 'ann', hash: gone.hash })
    await done(root, 'token.revoke', { token: id })
    producer = await producer.crash()
    await tokenSeat(producer, kept.token)
    await expect(tokenSeat(producer, gone.token)).rejects.toThrow('status 2')
  })

  it('end when they expire', async () => {
    await producer.addUser('ann')
    const { token, hash } = newToken()
    await done(root, 'token.add', { user: 'ann', hash, expires_in_s: 60n })
    const seat = await tokenSeat(producer, token)
    producer.clock.advance(61_000)
    expect(await seat.notice()).toMatchObject({ code: 4 })
    await expect(tokenSeat(producer, token)).rejects.toThrow('status 2')
  })

  it.each([
    ['a hash that is none', { hash: 'abc' }],
    ['a scope that is none', { scope: 'everything' }],
    ['a name that cannot be shown', { name: 'bell \u0007' }],
    ['a time that is over at once', { expires_in_s: 0n }],
  ] satisfies [string, Arguments][])('with %s are INVALID_ARGUMENT', async (_, wrong) => {
    const given = { user: 'root', hash: newToken().hash, ...wrong }
    expect(await askFor(root, 'token.add', given)).toMatchObject({ status: status.INVALID_ARGUMENT })
  })

  it('go with their user: the name that comes back has none, and the same token may be added anew', async () => {
    const { token, hash } = newToken()
    for (let time = 0; time < 2; time++) {
      await done(root, 'user.add', { user: 'bot' })
      await expect(tokenSeat(producer, token)).rejects.toThrow('status 2')
      await done(root, 'token.add', { user: 'bot', hash })
      await tokenSeat(producer, token)
      await done(root, 'user.remove', { user: 'bot' })
    }
  })

  it('cannot be of nobody, of the command line’s user, or the same twice', async () => {
    const { hash } = newToken()
    await done(root, 'token.add', { user: 'root', hash })
    for (const user of ['nobody', 'local', 'root']) {
      expect([user, (await run(root, 'token.add', { user, hash })).outcome]).toEqual([user, 'failed'])
    }
    expect(await run(root, 'token.revoke', { token: 99 })).toMatchObject({ outcome: 'failed' })
  })
})

describe('Tenants', () => {
  it('have their own limits where they have any, and the configuration’s elsewhere', async () => {
    await done(root, 'tenant.add', { tenant: 'north', channels: 5n, dials_per_minute: 0n })
    await done(root, 'tenant.set', { tenant: 'north', channels: 6n, instances: 7n })
    const quota = { connections: 1_000, channels: 6, instances: 7, dials_per_minute: 0 }
    const ofNorth = (list: { tenant: string }[]) => list.find(({ tenant }) => tenant === 'north')
    expect(ofNorth(await done(root, 'tenant.list'))).toMatchObject({ users: 0, quota, used: { channels: 0 } })
    producer = await producer.crash()
    root = await producer.seat('root')
    expect(ofNorth(await done(root, 'tenant.list'))).toMatchObject({ users: 0, quota })
  })

  it('are removed when they have no users', async () => {
    await done(root, 'user.add', { user: 'ann', tenant: 'north' })
    expect(await run(root, 'tenant.remove', { tenant: 'north' })).toMatchObject({ outcome: 'failed' })
    await done(root, 'user.remove', { user: 'ann', tenant: 'north' })
    await done(root, 'tenant.remove', { tenant: 'north' })
    for (const control of ['tenant.remove', 'tenant.set']) {
      expect(await run(root, control, { tenant: 'north' })).toMatchObject({ outcome: 'failed' })
    }
    expect(await run(root, 'tenant.add', { tenant: 'default' })).toMatchObject({ outcome: 'failed' })
  })
})

describe('Whoever is no admin, and is allowed to administer', () => {
  let op: Seat
  beforeEach(async () => {
    await producer.addUser('op', { tenant: 'north', role: 'operator' })
    await producer.addUser('boss', { tenant: 'north', role: 'admin' })
    await producer.addUser('ann', { tenant: 'north' })
    await producer.addUser('bob', { tenant: 'south' })
    op = await producer.seat('op', 'north')
    expect(await shown(op)).toEqual([
      'board.delete',
      'board.save',
      'channel.configure',
      'channel.delete',
      'channel.purge',
      'control.approve',
      'control.refuse',
    ])
    for (const object of ['user.*', 'token.*']) {
      await done(root, 'role.allow', { role: 'operator', command: 'EXECUTE', object })
    }
  })

  it('is shown what it may run, and no more', async () => {
    const names = await shown(op)
    expect(names.filter((name) => /^(user|token)[.]/.test(name))).toHaveLength(8)
    expect(names.filter((name) => /^(tenant|role|sensor)[.]/.test(name))).toEqual([])
  })

  it('sees and changes the users of its tenant', async () => {
    await done(op, 'user.add', { user: 'eve', tenant: 'north', password: 'secret words' })
    await done(op, 'user.role', { user: 'eve', tenant: 'north', role: 'operator' })
    await done(op, 'token.add', { user: 'eve', tenant: 'north', hash: newToken().hash })
    const named = (list: { user: string }[]) => list.map(({ user }) => user)
    expect(named(await done(op, 'user.list'))).toEqual(['ann', 'boss', 'eve', 'op'])
    expect(named(await done(op, 'token.list'))).toEqual(['eve'])
    await done(op, 'user.remove', { user: 'eve', tenant: 'north' })
  })

  it('is answered about another tenant exactly as about one that there is not', async () => {
    const theirs = await done(root, 'token.add', { user: 'bob', tenant: 'south', hash: newToken().hash })
    const before = users()
    const common = { hash: newToken().hash, role: 'consumer', password: 'secret words' }
    const controls: Record<string, readonly (keyof typeof common)[]> = {
      'user.add': ['password'],
      'user.passwd': ['password'],
      'user.role': ['role'],
      'user.remove': [],
      'token.add': ['hash'],
    }
    for (const [control, more] of Object.entries(controls)) {
      const given = Object.fromEntries(more.map((name) => [name, common[name]]))
      const foreign = await run(op, control, { user: 'bob', tenant: 'south', ...given })
      const absent = await run(op, control, { user: 'bob', tenant: 'nowhere', ...given })
      expect(foreign.outcome).toBe('failed')
      expect([control, foreign.detail.replaceAll('south', 'T')]).toEqual([
        control,
        absent.detail.replaceAll('nowhere', 'T'),
      ])
    }
    const [foreign, absent] = [
      await run(op, 'token.revoke', { token: theirs }),
      await run(op, 'token.revoke', { token: 99 }),
    ]
    expect(foreign.detail.replace(String(theirs), '99')).toBe(absent.detail)
    expect(await done(op, 'token.list', { tenant: 'south' })).toEqual([])
    expect(users()).toEqual(before)
  })

  it('touches no admin and makes none, itself included', async () => {
    const { hash } = newToken()
    const before = users()
    for (const [control, more] of [
      ['user.passwd', { password: 'secret words' }],
      ['user.role', { role: 'consumer' }],
      ['user.remove', {}],
      ['token.add', { hash }],
    ] as [string, Arguments][]) {
      const given = { user: 'boss', tenant: 'north', ...more }
      expect([control, (await run(op, control, given)).outcome]).toEqual([control, 'failed'])
    }
    for (const [control, user] of [
      ['user.add', 'eve'],
      ['user.role', 'ann'],
      ['user.role', 'op'],
    ] as const) {
      const given = { user, tenant: 'north', role: 'admin' }
      expect((await askFor(op, control, given)).status).toBe(status.PERMISSION_DENIED)
    }
    expect(await run(op, 'user.role', { user: 'op', tenant: 'north', role: 'consumer' })).toMatchObject({
      outcome: 'failed',
    })
    expect(users()).toEqual(before)
  })
})
