/** Section 10: what rules on controls of administration do not reach. Nobody gives more than they have. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Arguments, askFor, done, newToken, run } from '../../support/administration.ts'
import { status } from '../../support/bytes.ts'
import { TestProducer } from '../../support/producer.ts'
import { decoded } from '../../support/records.ts'
import type { Seat } from '../../support/seat.ts'

let producer: TestProducer
let root: Seat
let op: Seat
beforeEach(async () => {
  producer = await TestProducer.start()
  await producer.addUser('root', { role: 'admin' })
  await producer.addUser('eve', { tenant: 'globex', role: 'operator' })
  await producer.addUser('bob', { tenant: 'acme' })
  root = await producer.seat('root')
  op = await producer.seat('eve', 'globex')
})
afterEach(() => producer.stop())

const allow = (object: string, role = 'operator', effect = 'allow', command = 'EXECUTE') =>
  done(root, `role.${effect}`, { role, command, object })
const roleOf = (name: string) => producer.server.parts.producer.accounts.find('globex', name)?.role

describe('with a rule that allows every control', () => {
  beforeEach(() => allow('*'))

  it.each([
    ['tenant.add', { tenant: 'mine' }],
    ['tenant.set', { tenant: 'acme', connections: 1n }],
    ['tenant.set', { tenant: 'globex', connections: 0n }],
    ['tenant.remove', { tenant: 'acme' }],
    ['role.allow', { role: 'operator', command: 'COLLECT', object: 'producer.audit' }],
    ['role.deny', { role: 'night', command: '*', object: '*' }],
    ['role.forget', { rule: 1 }],
    ['role.remove', { role: 'operator' }],
    ['role.list', {}],
  ] as [string, Arguments][])('%s does not exist for those who are no admins', async (control, given) => {
    expect(await askFor(op, control, given)).toMatchObject({ status: status.NO_SUCH_CONTROL })
    const shown = decoded(await op.query('producer.controls')).map(({ name }: { name: string }) => name)
    expect([shown.includes(control), shown.includes('user.add')]).toEqual([false, true])
    expect(producer.server.parts.producer.quotas.of('acme').connections.limit).toBe(1_000)
  })

  it('tenant.list shows a tenant itself, and nothing more', async () => {
    const names = async (of: Seat) => (await done(of, 'tenant.list')).map(({ tenant }: { tenant: string }) => tenant)
    expect(await names(op)).toEqual(['globex'])
    expect(await names(root)).toEqual(['acme', 'default', 'globex'])
  })
})

describe('with rules on user.* and token.*', () => {
  beforeEach(async () => {
    await allow('user.*')
    await allow('token.*')
    await allow('exec.reboot', 'strong')
    await producer.addUser('strong', { tenant: 'globex', role: 'strong' })
    await producer.addUser('weak', { tenant: 'globex' })
  })
  const mine = { tenant: 'globex' }

  it('nobody makes a user whose role may do what their own may not', async () => {
    for (const [control, user] of [
      ['user.add', 'new'],
      ['user.role', 'weak'],
    ] as const) {
      expect(await askFor(op, control, { ...mine, user, role: 'strong' })).toMatchObject({
        status: status.PERMISSION_DENIED,
        detail: expect.stringContaining('the role strong may do more than yours'),
      })
    }
    expect([roleOf('new'), roleOf('weak')]).toEqual([undefined, 'consumer'])
  })

  it.each([
    ['user.passwd', { password: 'a new password' }],
    ['user.role', { role: 'consumer' }],
    ['user.remove', {}],
    ['token.add', { hash: newToken().hash }],
  ] as [string, Arguments][])('nobody takes over such a user by %s', async (control, more) => {
    expect(await run(op, control, { ...mine, user: 'strong', ...more })).toMatchObject({
      outcome: 'failed',
      detail: expect.stringContaining('may do more than yours'),
    })
    expect(roleOf('strong')).toBe('strong')
  })

  it('token.revoke neither', async () => {
    const token = await done(root, 'token.add', { ...mine, user: 'strong', hash: newToken().hash })
    expect(await run(op, 'token.revoke', { token })).toMatchObject({ outcome: 'failed' })
  })

  it('users whose role may do no more are administered as before', async () => {
    await done(op, 'user.add', { ...mine, user: 'new', role: 'operator' })
    await done(op, 'user.role', { ...mine, user: 'new', role: 'consumer' })
    await done(op, 'token.add', { ...mine, user: 'weak', hash: newToken().hash })
    await done(op, 'user.remove', { ...mine, user: 'weak' })
    expect([roleOf('new'), roleOf('weak')]).toEqual(['consumer', undefined])
  })

  it('a denial of their own role is not got round by a role without it', async () => {
    await allow('gmetric.salary*', 'operator', 'deny', 'COLLECT')
    expect(await askFor(op, 'user.add', { ...mine, user: 'new' })).toMatchObject({ status: status.PERMISSION_DENIED })
    expect(await run(op, 'user.passwd', { ...mine, user: 'weak', password: 'a new password' })).toMatchObject({
      outcome: 'failed',
    })
  })
})
