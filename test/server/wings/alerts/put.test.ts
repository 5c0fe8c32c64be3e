/** Rule files that users put: whose rights they read with, what is refused, and what outlives the process. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { askFor, done, newToken, run, tokenSeat } from '../../../support/administration.ts'
import { command } from '../../../support/bytes.ts'
import { eventually } from '../../../support/eventually.ts'
import { tokenFor } from '../../../support/publisher.ts'
import { decoded, type Json } from '../../../support/records.ts'
import { READING_RULES, RuledProducer } from '../../../support/ruled-producer.ts'
import type { Seat } from '../../../support/seat.ts'

const ALWAYS = `groups:
  - name: g
    interval: 10s
    rules:
      - alert: Always
        expr: vector(1)
`

let server: RuledProducer
let root: Seat
let ann: Seat
beforeEach(async () => {
  server = await RuledProducer.start({})
  root = server.root
  await done(root, 'role.allow', { role: 'author', command: 'EXECUTE', object: 'rules.*' })
  await server.producer.addUser('ann', { role: 'author' })
  ann = await server.producer.seat('ann')
})
afterEach(() => server.stop())

const filesOf = (seat: Seat): Promise<Json[]> => done(seat, 'rules.files')

it('a file is in force when it was put, until it is removed; others of the tenant get its alerts', async () => {
  const channel = await root.defChannel()
  await root.setChannel(channel)
  const id = await root.collect('alert')
  await root.ok((seq) => command.subscribe(seq, id, channel))
  const { detail } = await run(ann, 'rules.put', { name: 'a.yml', rules: ALWAYS })
  expect(detail).toBe('a.yml is in force: 1 group, 1 rule')
  const token = await tokenFor(root, 'root', '')
  await server.firing(token, 'Always')
  expect((await server.asked(token, 'rules')).groups).toMatchObject([{ file: 'put:a.yml', name: 'g' }])
  expect(await filesOf(ann)).toMatchObject([{ name: 'a.yml', author: 'ann', groups: 1, rules: 1, problem: '' }])
  expect(await done(ann, 'rules.files', { name: 'a.yml' })).toBe(ALWAYS)
  await done(ann, 'rules.put', { name: 'a.yml', rules: ALWAYS.replace('Always', 'Renamed') })
  await server.firing(token, 'Renamed')
  await done(ann, 'rules.remove', { name: 'a.yml' })
  await server.firing(token)
  expect(await filesOf(ann)).toEqual([])
  const values = (await root.values(4)).map(decoded)
  expect(values.map(({ alertname, value }: Json) => `${alertname} ${value.state}`)).toEqual([
    'Always firing',
    'Always inactive',
    'Renamed firing',
    'Renamed inactive',
  ])
  const records = await server.producer.store.audit(0, Number.POSITIVE_INFINITY)
  const puts = records.filter(({ object }) => object === 'rules.put')
  expect(puts.length).toBeGreaterThan(0)
  expect(JSON.stringify(puts)).not.toContain('vector(1)')
})

describe('what is refused', () => {
  it('a file with a mistake changes nothing, and is told with file, line, group and rule', async () => {
    await done(ann, 'rules.put', { name: 'a.yml', rules: ALWAYS })
    const wrong = ALWAYS.replace('vector(1)', 'vector(')
    const { outcome, detail } = await run(ann, 'rules.put', { name: 'a.yml', rules: wrong })
    expect(outcome).toBe('failed')
    expect(detail).toMatch(/^a\.yml:6: group "g", rule "Always": could not parse expression: /)
    expect((await run(ann, 'rules.put', { name: 'b.yml', rules: 'groups: [' })).detail).toMatch(/^b\.yml:1: not YAML: /)
    expect(await done(ann, 'rules.files', { name: 'a.yml' })).toBe(ALWAYS)
    expect(await filesOf(ann)).toHaveLength(1)
    expect(decoded(await root.query('producer.alerts'))[0]).toMatchObject({ files: 1, refused: 2, rules: 1 })
  })

  it('a long one is read in a thread, and has the same mistakes', async () => {
    const long = `${'#\n'.repeat(3_000)}${ALWAYS}`
    const { detail } = await run(ann, 'rules.put', { name: 'a.yml', rules: long.replace('vector(1)', 'vector(') })
    expect(detail).toMatch(/^a\.yml:3006: group "g", rule "Always": could not parse expression: /)
    await done(ann, 'rules.put', { name: 'a.yml', rules: long })
    await server.firing(await tokenFor(root, 'root', ''), 'Always')
  })

  it('names that are no names of files, what is too long, and whoever has no right', async () => {
    expect((await askFor(ann, 'rules.put', { name: '../a', rules: ALWAYS })).status).not.toBe(0)
    expect((await askFor(ann, 'rules.put', { name: 'a', rules: '#'.repeat(262_145) })).status).not.toBe(0)
    await server.producer.addUser('eve')
    const eve = await server.producer.seat('eve')
    for (const control of ['rules.put', 'rules.remove', 'rules.files'])
      expect(
        (await askFor(eve, control, { name: 'a.yml', ...(control === 'rules.put' && { rules: ALWAYS }) })).status,
      ).not.toBe(0)
    expect((await run(ann, 'rules.remove', { name: 'a.yml' })).detail).toBe('there is no file a.yml')
  })

  it('more rules than the quota of the tenant, but not another text of those that there are', async () => {
    await done(root, 'tenant.set', { tenant: 'default', rules: 1n })
    await done(ann, 'rules.put', { name: 'a.yml', rules: ALWAYS })
    expect((await run(ann, 'rules.put', { name: 'b.yml', rules: ALWAYS })).detail).toBe(
      'the files of the tenant would have 2 rules, and its quota is 1',
    )
    await done(ann, 'rules.put', { name: 'a.yml', rules: ALWAYS.replace('10s', '20s') })
    const [used] = await done(root, 'tenant.list')
    expect(used).toMatchObject({ tenant: 'default', used: { rules: 1 } })
  })

  it('a hundred and one files', async () => {
    const none = 'groups: []'
    for (let index = 0; index < 100; index++) await done(root, 'rules.put', { name: `f${index}`, rules: none })
    expect((await run(root, 'rules.put', { name: 'more', rules: none })).detail).toBe(
      'the tenant has 100 files, and may have 100: remove one',
    )
    await done(root, 'rules.put', { name: 'f0', rules: none })
  })
})

describe('what rules read', () => {
  it('is what their author may read at that moment, also in templates', async () => {
    const token = await tokenFor(root, 'root', '')
    await done(ann, 'rules.put', { name: 'a.yml', rules: READING_RULES })
    const open = (alerts: readonly Json[]): Json => alerts.find(({ labels }) => labels.alertname === 'Open')
    expect(open(await server.firing(token, 'Open', 'Secret'))).toMatchObject({
      labels: { read: '1 1' },
      annotations: { read: '7' },
    })
    await done(root, 'role.deny', { role: 'author', command: 'COLLECT', object: 'test.secret' })
    // An evaluation that was under way has read a part of it before.
    await eventually(async () =>
      expect(open(await server.firing(token, 'Gone', 'Open'))).toMatchObject({
        labels: { read: '0 1' },
        annotations: { read: 'nothing' },
      }),
    )
    await done(root, 'role.allow', { role: 'reader', command: 'COLLECT', object: 'test.secret' })
    await done(root, 'user.role', { user: 'ann', role: 'reader' })
    await server.firing(token, 'Open', 'Secret')
  })

  it('is bounded by the scope of the token that they were put with', async () => {
    const token = await tokenFor(root, 'root', '')
    const scoped = await tokenSeat(server.producer, await tokenFor(root, 'ann', 'EXECUTE rules.*\nCOLLECT test.open'))
    await done(scoped, 'rules.put', { name: 'a.yml', rules: READING_RULES })
    await server.firing(token, 'Gone', 'Open')
    await done(ann, 'rules.put', { name: 'a.yml', rules: READING_RULES })
    await server.firing(token, 'Open', 'Secret')
  })

  it('is nothing of another tenant, whose users see neither the rules nor the alerts', async () => {
    const token = await tokenFor(root, 'root', '')
    await server.producer.addUser('olga', { tenant: 'ops', role: 'author' })
    const olga = await server.producer.seat('olga', 'ops')
    const channel = await olga.defChannel()
    await olga.setChannel(channel)
    // Before the tenant has any rule.
    const id = await olga.collect('alert')
    await olga.ok((seq) => command.subscribe(seq, id, channel))
    await done(olga, 'rules.put', { name: 'a.yml', rules: READING_RULES })
    await server.firing(await tokenFor(root, 'olga', '', 'ops'), 'Gone')
    expect(await server.alertsOf(token)).toEqual([])
    expect((await server.asked(token, 'rules')).groups).toEqual([])
    expect(await filesOf(ann)).toEqual([])
    expect((await run(ann, 'rules.remove', { name: 'a.yml' })).outcome).toBe('failed')
    expect((await olga.values(1)).map(decoded)).toMatchObject([{ alertname: 'Gone' }])
    await done(root, 'user.remove', { user: 'olga', tenant: 'ops' })
    await done(root, 'tenant.remove', { tenant: 'ops' })
    expect(
      (await server.producer.store.copy().open({ onDurable() {}, onFull() {}, onRoom() {}, onFailed() {} })).ruleFiles,
    ).toEqual([])
  })
})

it('the rules of a user who is removed stop, which is shown and an alert, until somebody puts them again', async () => {
  const token = await tokenFor(root, 'root', '')
  await done(ann, 'rules.put', { name: 'a.yml', rules: ALWAYS })
  await server.firing(token, 'Always')
  await done(root, 'user.remove', { user: 'ann' })
  const [stopped] = await server.firing(token, 'CinnabarRulesStopped')
  expect(stopped).toMatchObject({ labels: { file: 'a.yml', severity: 'warning' } })
  expect(await filesOf(root)).toMatchObject([{ author: 'ann', problem: expect.stringContaining('no user any more') }])
  expect(decoded(await root.query('producer.alerts'))[0]).toMatchObject({ files: 1, stopped: 1 })
  await done(root, 'rules.put', { name: 'a.yml', rules: ALWAYS })
  await server.firing(token, 'Always')
})

it('the rules that were put with a token stop when it is revoked, or expires, and go on when they are put again', async () => {
  const reading = await tokenFor(root, 'root', '')
  const given = [{}, { expires_in_s: 600n }] as const
  for (const [at, more] of given.entries()) {
    const { token, hash } = newToken()
    const number = await done(root, 'token.add', { user: 'ann', hash, ...more })
    const seat = await tokenSeat(server.producer, token)
    await done(seat, 'rules.put', { name: 'a.yml', rules: ALWAYS })
    await server.firing(reading, 'Always')
    if (at === 0) await done(root, 'token.revoke', { token: number })
    else server.producer.clock.advance(600_000)
    await server.firing(reading, 'CinnabarRulesStopped')
    const stopped = { problem: expect.stringContaining('the token is revoked or has expired') }
    expect(await filesOf(root)).toMatchObject([stopped])
  }
  // Also after a start, until somebody puts them again.
  await server.crash()
  root = server.root
  await server.firing(reading, 'CinnabarRulesStopped')
  await done(root, 'rules.put', { name: 'a.yml', rules: ALWAYS })
  await server.firing(reading, 'Always')
})

it('files and alerts outlive a kill', async () => {
  await done(ann, 'rules.put', { name: 'a.yml', rules: ALWAYS.replace('vector(1)\n', 'vector(1)\n        for: 5m\n') })
  const before = await filesOf(ann)
  await eventually(async () => {
    await server.passes()
    expect(decoded(await root.query('producer.alerts'))[0]).toMatchObject({ pending: 1 })
  })
  // A token is there when all that was changed before is stored, the alert too.
  const token = await tokenFor(root, 'root', '')
  await server.crash()
  root = server.root
  expect(await filesOf(root)).toEqual(before)
  const [alert] = await server.alertsOf(token)
  expect(alert).toMatchObject({ state: 'pending', labels: { alertname: 'Always' } })
  // It is the alert from before, which does not begin anew.
  await eventually(async () => {
    await server.passes()
    expect(await server.alertsOf(token)).toMatchObject([{ state: 'firing', activeAt: alert.activeAt }])
  })
})
