/** Section 10, Controls: the rules of roles, and what `role.explain` says of them. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Arguments, askFor, done, run } from '../../support/administration.ts'
import { status } from '../../support/bytes.ts'
import { execTables } from '../../support/exec-tables.ts'
import { TestProducer } from '../../support/producer.ts'
import type { Seat } from '../../support/seat.ts'
import { PushSensor } from '../../support/test-sensor.ts'

let producer: TestProducer
let root: Seat
beforeEach(async () => {
  producer = await TestProducer.start()
  await producer.addUser('root', { role: 'admin' })
  await producer.addUser('op', { tenant: 'north', role: 'operator' })
  root = await producer.seat('root')
})
afterEach(() => producer.stop())

const rule = { role: 'operator', command: 'EXECUTE', object: 'user.list' }

describe('Rules', () => {
  it('are listed as they were given, and survive a crash with their numbers', async () => {
    const one = await done(root, 'role.allow', { ...rule, where: ' a=1*  b= ' })
    const two = await done(root, 'role.deny', { role: 'night', command: '*', object: 'smon.*' })
    const expected = [
      { role: 'night', rule: two, effect: 'deny', command: '*', object: 'smon.*', where: '', approval: '' },
      {
        role: 'operator',
        rule: one,
        effect: 'allow',
        command: 'EXECUTE',
        object: 'user.list',
        where: 'a=1* b=',
        approval: '',
      },
    ]
    expect(await done(root, 'role.list')).toEqual(expected)
    await done(root, 'role.forget', { rule: two })
    producer = await producer.crash()
    root = await producer.seat('root')
    expect(await done(root, 'role.list')).toEqual(expected.slice(1))
    expect(await done(root, 'role.allow', rule)).toBeGreaterThan(two)
  })

  it('of a role that is new say so, since it may be misspelt', async () => {
    const about = { command: 'EXECUTE', object: 'exec.*' }
    const detail = async (role: string) => (await run(root, 'role.allow', { ...about, role })).detail
    expect(await detail('opertor')).toMatch(/exec\.\*; the role opertor is new: did you mean `operator`\?$/)
    expect(await detail('night')).toMatch(/; the role night is new$/)
    for (const role of ['operator', 'night']) expect(await detail(role)).not.toContain('is new')
  })

  it('are in force at once, on connections that are open', async () => {
    const op = await producer.seat('op', 'north')
    expect((await askFor(op, 'user.list')).status).toBe(status.NO_SUCH_CONTROL)
    const number = await done(root, 'role.allow', rule)
    expect(await run(op, 'user.list')).toMatchObject({ outcome: 'ok' })
    await done(root, 'role.forget', { rule: number })
    expect((await askFor(op, 'user.list')).status).toBe(status.NO_SUCH_CONTROL)
  })

  it('with a condition show the control, and refuse other arguments', async () => {
    const op = await producer.seat('op', 'north')
    await done(root, 'role.allow', { ...rule, object: 'user.remove', where: 'user=temp-*' })
    expect((await askFor(op, 'user.remove', { user: 'ann', tenant: 'north' })).status).toBe(status.PERMISSION_DENIED)
    expect(await run(op, 'user.remove', { user: 'temp-1', tenant: 'north' })).toMatchObject({ outcome: 'failed' })
  })

  it('about a destination are kept in its one spelling: another one would deny nothing', async () => {
    const about = { role: 'operator', command: 'DEF_CHANNEL' }
    const given = ['TLS://A.example', 'TLS://A.example*:*', 'tcp://127.0.0.1*:9/', '*']
    for (const object of given) await done(root, 'role.deny', { ...about, object })
    await done(root, 'role.deny', { ...about, command: '*', object: 'WS://[::0:1]:*' })
    const objects = (await done(root, 'role.list')).map(({ object }: { object: string }) => object)
    expect(objects).toEqual(['tls://a.example:7650', 'tls://a.example*:*', 'tcp://127.0.0.1*:9', '*', 'ws://[::1]:*'])
    for (const object of ['a.example', 'tcp://127.0.0.*', 'tcp://0177.0.0.*:*', 'http://*:*', 'tcp://*:*/path']) {
      expect(await askFor(root, 'role.deny', { ...about, object })).toMatchObject({
        status: status.INVALID_ARGUMENT,
        detail: expect.stringContaining('destination'),
      })
    }
  })

  it('a role with users cannot be removed', async () => {
    await done(root, 'role.allow', rule)
    expect(await run(root, 'role.remove', { role: 'operator' })).toMatchObject({ outcome: 'failed' })
    await done(root, 'user.remove', { user: 'op', tenant: 'north' })
    await done(root, 'role.remove', { role: 'operator' })
    expect(await done(root, 'role.list')).toEqual([])
    for (const [control, given] of [
      ['role.remove', { role: 'operator' }],
      ['role.forget', { rule: 1 }],
    ] as [string, Arguments][]) {
      expect(await run(root, control, given)).toMatchObject({ outcome: 'failed' })
    }
  })

  it.each([
    ['for admin', { role: 'admin' }],
    ['for consumer', { role: 'consumer' }],
    ['for a role without a name', { role: '' }],
    ['for a role that could be a path', { role: 'a/b' }],
    ['about a command that is judged as another', { command: 'QUERY' }],
    ['about nothing', { object: '' }],
    ['about two things', { object: 'a b' }],
    ['with a condition without a name', { where: '=x' }],
    ['with a condition that is none', { where: 'x' }],
    ['with one condition twice', { where: 'x=1 x=2' }],
  ] satisfies [string, Arguments][])('%s are INVALID_ARGUMENT', async (_, wrong) => {
    expect(await askFor(root, 'role.allow', { ...rule, ...wrong })).toMatchObject({ status: status.INVALID_ARGUMENT })
    expect(await done(root, 'role.list')).toEqual([])
  })
})

describe('role.explain', () => {
  const explain = (given: Arguments, of = root) => done(of, 'role.explain', given)

  it('says whether, and by which rule or default', async () => {
    const user = 'north/op'
    const asked = { user, command: 'EXECUTE', object: 'user.list' }
    expect(await explain(asked)).toMatchObject({ allowed: false, because: expect.stringContaining('default') })
    const number = await done(root, 'role.allow', { ...rule, where: 'x=1' })
    expect(await explain({ ...asked, where: 'x=1' })).toEqual({
      allowed: true,
      because: `rule ${number}: allow EXECUTE user.list where x=1`,
    })
    expect(await explain({ ...asked, where: 'x=2' })).toMatchObject({ allowed: false })
    expect(await explain({ user: 'root', command: 'EXECUTE', object: 'user.list' })).toMatchObject({ allowed: true })
    expect(await explain({ user, command: 'DEF_CHANNEL', object: 'tcp://h:1' })).toMatchObject({ allowed: false })
    expect(await explain({ user, command: 'COMMIT', object: '1' })).toMatchObject({ allowed: true })
  })

  it('knows of PUBLISH that no rule lets values into what has a source of its own', async () => {
    await done(root, 'role.allow', { role: 'operator', command: 'PUBLISH', object: '*', where: 'env=prod' })
    for (const user of ['north/op', 'root']) {
      for (const object of ['host.load.one', 'producer.stats', 'test.a', 'nothing.at.all', '*']) {
        expect(await explain({ user, command: 'PUBLISH', object, where: 'env=prod' })).toEqual({
          allowed: false,
          because: 'no metric of that name takes published values, whatever the rules say',
        })
      }
    }
  })

  it('takes any spelling of a destination, and knows what the operator leaves out', async () => {
    await producer.stop()
    producer = await TestProducer.start({ config: { dial: { allow: ['tls://a.example:*'] } } })
    await producer.addUser('op', { tenant: 'north', role: 'operator' })
    await producer.addUser('root', { role: 'admin' })
    root = await producer.seat('root')
    const left = await explain({ user: 'root', command: 'DEF_CHANNEL', object: 'tcp://10.0.0.1:1' })
    expect(left).toEqual({ allowed: false, because: expect.stringContaining('`dial.allow`') })
    await done(root, 'role.allow', { role: 'operator', command: 'DEF_CHANNEL', object: 'tls://a.example:7650' })
    const asked = { user: 'north/op', command: 'DEF_CHANNEL' }
    expect(await explain({ ...asked, object: 'tls://A.example.' })).toMatchObject({ allowed: true })
    expect(await explain({ ...asked, object: 'tls://A.example:1' })).toMatchObject({ allowed: false })
    expect(await explain({ ...asked, object: 'tls://*:*' })).toMatchObject({ allowed: false })
  })

  it('knows whose a control is, and tells nobody else', async () => {
    await producer.stop()
    const exec = execTables('[[exec]]\nname = "exec.south"\nargv = ["true"]\ntenants = ["south"]\n')
    producer = await TestProducer.start({ config: { exec } })
    for (const tenant of ['north', 'south']) await producer.addUser('op', { tenant, role: 'operator' })
    await producer.addUser('root', { role: 'admin' })
    root = await producer.seat('root')
    await done(root, 'role.allow', { ...rule, object: '*' })
    const asked = (tenant: string, control = 'exec.south') => {
      return { user: `${tenant}/op`, command: 'EXECUTE', object: control }
    }
    expect(await explain(asked('south'))).toMatchObject({ allowed: true })
    expect(await explain(asked('north'))).toMatchObject({ allowed: false })
    const north = await producer.seat('op', 'north')
    expect(await explain(asked('north'), north)).toEqual(await explain(asked('north', 'exec.absent'), north))
  })

  it('compares destinations part by part, as DEF_CHANNEL does', async () => {
    await done(root, 'role.allow', { role: 'operator', command: 'DEF_CHANNEL', object: 'ws://*.partner.example:*' })
    await done(root, 'role.allow', { role: 'operator', command: 'DEF_CHANNEL', object: 'tcp://*:*' })
    await done(root, 'role.deny', { role: 'operator', command: 'DEF_CHANNEL', object: 'TCP://127.0.0.*:*' })
    const because = async (object: string): Promise<string> =>
      (await explain({ user: 'north/op', command: 'DEF_CHANNEL', object })).because
    expect(await because('ws://a.partner.example:1/x')).toContain('rule 1: allow')
    expect(await because('ws://127.0.0.1:1/.partner.example:1/')).toMatch(/^default: /)
    expect(await because('tcp://127.1:9')).toContain('rule 3: deny DEF_CHANNEL tcp://127.0.0.*:*')
    expect(await because('tcp://10.0.0.1:9')).toContain('rule 2: allow')
  })

  it('knows which controls are for admins, whatever a rule says', async () => {
    await done(root, 'role.allow', { ...rule, object: '*' })
    const asked = { command: 'EXECUTE', object: 'tenant.set' }
    expect(await explain({ user: 'north/op', ...asked })).toEqual({
      allowed: false,
      because: 'the control is for admins',
    })
    expect(await explain({ user: 'root', ...asked })).toMatchObject({ allowed: true })
    expect(await explain({ user: 'north/op', ...asked, object: 'tenant.list' })).toMatchObject({ allowed: true })
  })

  it('judges reading by whichever command, and knows whose a metric is', async () => {
    const feed = new PushSensor(producer.server.parts.hub, 'south.', { tenant: 'south' })
    feed.push('south.a', { type: 2, value: 1 }, 1)
    for (const command of ['COLLECT', 'QUERY', 'SUBSCRIBE', 'BUFFER', 'GET']) {
      expect(await explain({ user: 'north/op', command, object: 'producer.stats' })).toMatchObject({ allowed: true })
      expect(await explain({ user: 'north/op', command, object: 'south.a' })).toMatchObject({ allowed: false })
      expect(await explain({ user: 'root', command, object: 'south.a' })).toMatchObject({ allowed: true })
    }
  })

  it('of nobody fails, and of another tenant’s user likewise unless an admin asks', async () => {
    await done(root, 'role.allow', { ...rule, object: 'role.explain' })
    const op = await producer.seat('op', 'north')
    const asked = { command: 'COLLECT', object: 'x' }
    const foreign = await run(op, 'role.explain', { user: 'root', ...asked })
    const absent = await run(op, 'role.explain', { user: 'nobody', ...asked })
    expect(foreign.detail.replace('root', 'nobody')).toBe(absent.detail)
    expect([foreign.outcome, absent.outcome]).toEqual(['failed', 'failed'])
    expect(await explain({ user: 'north/op', ...asked }, op)).toMatchObject({ allowed: false })
    expect((await askFor(root, 'role.explain', { user: 'op', command: 'FETCH', object: 'x' })).status).toBe(
      status.INVALID_ARGUMENT,
    )
  })
})
