/** Notifiers that users put: whom they tell of what, what is refused, and what outlives the process. */
import { RE2JS } from 're2js'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { loadConfig } from '../../../../server/start/config.ts'
import { PutNotifiers, type PutNotifiersServices } from '../../../../server/wings/notify/put/put-notifiers.ts'
import { Sealing } from '../../../../server/wings/notify/put/sealing.ts'
import type { NotifierRow } from '../../../../storage/store.ts'
import { askFor, done, run, tokenSeat } from '../../../support/administration.ts'
import { str, type, u32 } from '../../../support/bytes.ts'
import { firing, NotifiedServer } from '../../../support/notified-server.ts'
import { PublishingProducer, tokenFor } from '../../../support/publisher.ts'
import { decoded, type Json } from '../../../support/records.ts'
import type { Seat } from '../../../support/seat.ts'

let notified: NotifiedServer
let root: Seat
let ann: Seat
beforeEach(async () => {
  notified = await NotifiedServer.start()
  root = notified.root
  ann = notified.ann
})
afterEach(() => notified.stop())

const tableOf = (name: string, more = ''): string => notified.tableOf(name, more)
const hook = (): string => `webhook+http://127.0.0.1:${notified.port}`
const passes = (): Promise<void> => notified.passes()
const tells = (...texts: readonly string[]): Promise<void> => notified.tells(...texts)

const listOf = (seat: Seat): Promise<Json[]> => done(seat, 'notify.list')

it('a notifier tells of what fires when it was put, and nobody of anything once it is removed', async () => {
  const { outcome, detail } = await run(ann, 'notify.put', { notifiers: tableOf('pager') })
  expect([outcome, detail]).toEqual(['ok', 'pager is in force'])
  await done(ann, 'rules.put', { name: 'a.yml', rules: firing('One') })
  await tells('pager firing One')
  await done(ann, 'rules.put', { name: 'a.yml', rules: firing('Two') })
  await tells('pager firing One', 'pager resolved One', 'pager firing Two')
  await done(ann, 'notify.remove', { name: 'pager' })
  expect(await listOf(ann)).toEqual([])
  await done(ann, 'rules.put', { name: 'a.yml', rules: firing('Three') })
  for (let times = 0; times < 5; times++) await passes()
  expect(notified.told).toHaveLength(3)
  expect(decoded(await root.query('producer.channels')).map(({ name }: Json) => name)).not.toContain('notify:pager:')
})

it('tells what waits for the approval of the role of whoever has put it', async () => {
  await done(ann, 'notify.put', { notifiers: tableOf('pager', 'approvals = true') })
  for (const user of ['olga', 'luis']) await notified.server.producer.addUser(user, { role: user })
  await done(root, 'role.allow', { role: 'olga', command: 'EXECUTE', object: 'role.explain', approval: 'author' })
  await done(root, 'role.allow', { role: 'luis', command: 'EXECUTE', object: 'role.explain', approval: 'chief' })
  const asked = { user: 'ann', command: 'COLLECT', object: 'test.a' }
  for (const user of ['luis', 'olga']) await askFor(await notified.server.producer.seat(user), 'role.explain', asked)
  await tells('pager firing ApprovalWaits')
  const [{ id }] = decoded(await ann.query('producer.approvals')) as [Json]
  await done(ann, 'control.approve', { id })
  await tells('pager firing ApprovalWaits', 'pager resolved ApprovalWaits')
})

describe('what is refused changes nothing, and has a reason', () => {
  const refusal = async (notifiers: string, given: Record<string, string> = {}, seat = ann): Promise<string> => {
    const { outcome, detail } = await run(seat, 'notify.put', { notifiers, ...given })
    expect(outcome).toBe('failed')
    return detail
  }

  it.each([
    ['no TOML', 'name = ', /^notifiers:1: not TOML: /],
    ['no tables', '', /^notifiers: there is no table \[\[notify\]\]$/],
    [
      'a key that is unknown',
      '[[notify]]\nname = "a"\nurls = "x"\n',
      /`\[\[notify\]\]` a: unknown key `urls`: did you mean `url`\?/,
    ],
    ['no URL', '[[notify]]\nname = "a"\n', /`\[\[notify\]\]` a: it needs `url`: a URL like /],
    [
      'a URL with a user',
      '[[notify]]\nname = "a"\nurl = "webhook+http://u:hidden@127.0.0.1/"\n',
      /`url`: expected a URL .*, found another text \(not shown\)$/,
    ],
    [
      'a tenant',
      '[[notify]]\nname = "a"\ntenant = "ops"\nurl = "webhook+https://x.example"\n',
      /`tenant`: .*: leave this out/,
    ],
    [
      'a role',
      '[[notify]]\nname = "a"\nrole = "admin"\nurl = "webhook+https://x.example"\n',
      /`role`: .*: leave this out/,
    ],
    [
      'a file of the server',
      '[[notify]]\nname = "a"\nurl = "webhook+https://x.example"\nsecret_file = "/etc/passwd"\n',
      /`secret_file`: no file of the server is read/,
    ],
    [
      'what `dial.allow` does not permit',
      '[[notify]]\nname = "a"\nurl = "webhook+https://x.example/hidden"\n',
      /^a: `url`: `dial\.allow` of the server does not permit webhook\+https:\/\/x\.example$/,
    ],
    ['another section', '[server]\nname = "a"\n', /unknown section `server`/],
  ])('%s', async (_, notifiers, expected) => {
    const detail = await refusal(notifiers)
    expect(detail).toMatch(expected)
    expect(detail).not.toContain('hidden')
    expect(await listOf(ann)).toEqual([])
  })

  it('all of a call, if one of its notifiers has a mistake', async () => {
    const wrong = tableOf('b', 'match = ["no matcher"]')
    expect(await refusal(tableOf('a') + wrong)).toMatch(/^b: .*`match`: "no matcher" is no matcher/)
    expect(await refusal(tableOf('a') + tableOf('a'))).toMatch(/two of the tenant default are called a$/)
    expect(await listOf(ann)).toEqual([])
  })

  it('an escalation to nobody, to itself and to a heartbeat, and not to one of the same call', async () => {
    const beat = `[[notify]]\nname = "beat"\nurl = "${hook().replace('webhook', 'heartbeat')}/"\n`
    for (const target of ['nobody', 'a', 'beat'])
      expect(await refusal(tableOf('a', `escalate_to = "${target}"`) + beat)).toBe(
        `a: \`escalate_to\` has to name another notifier of the tenant: ${target} is none`,
      )
    await done(ann, 'notify.put', { notifiers: tableOf('a', 'escalate_to = "b"') + tableOf('b') })
    await done(ann, 'notify.remove', { name: 'b' })
    expect(await listOf(ann)).toMatchObject([
      { name: 'a', problem: 'nobody is told by escalation: there is no notifier b' },
    ])
  })

  it('contents of files that are none, of which nothing is repeated', async () => {
    const notifiers = tableOf('a')
    for (const secrets of ['{"a": {"token": "hidden"}}', 'hidden', '{"a": {"token_file": 7}}'])
      expect(await refusal(notifiers, { secrets })).toMatch(/^secrets: expected a JSON object like /)
    expect(await refusal(notifiers, { secrets: '{"b": {"token_file": "hidden"}}' })).toBe(
      'secrets: "b" is none of these notifiers',
    )
    expect(await refusal(notifiers, { secrets: '{"a": {"token_file": "two words"}}' })).toBe(
      'a: token_file holds no token: it is empty, or has blanks in it',
    )
    expect(await refusal(notifiers, { secrets: '{"a": {"secret_file": "hidden"}}' })).toMatch(
      /^a: secret_file has to hold 1 to 4 secrets/,
    )
    expect(await refusal(notifiers, { secrets: '{"a": {"ca": "hidden"}}' })).toBe('a: ca holds no certificate in PEM')
    expect(await listOf(ann)).toEqual([])
  })

  it('more than the quota of the tenant, but not a change of what there is', async () => {
    await done(root, 'tenant.set', { tenant: 'default', notifiers: 1n })
    await done(ann, 'notify.put', { notifiers: tableOf('a') })
    expect(await refusal(tableOf('b'))).toBe('the tenant would have 2 notifiers, and its quota is 1: remove some')
    await done(ann, 'notify.put', { notifiers: tableOf('a', 'send_resolved = false') })
    expect((await done(root, 'tenant.list'))[0]).toMatchObject({ tenant: 'default', used: { notifiers: 1 } })
  })

  it('more than the quota, before anything is made ready', async () => {
    await done(root, 'tenant.set', { tenant: 'default', notifiers: 1n })
    const compile = vi.spyOn(RE2JS, 'compile')
    const wrong = tableOf('b', `match = ['no matcher', 'a=~"b+"']`)
    expect(await refusal(tableOf('a', `match = ['a=~"b+"']`) + wrong)).toBe(
      'the tenant would have 2 notifiers, and its quota is 1: remove some',
    )
    expect(compile.mock.calls.filter(([expression]) => expression === 'b+')).toEqual([])
    compile.mockRestore()
  })

  it.each([
    ['match', `match = ['a=~"x{300}"', 'a=~"y{300}"', 'a=~"z{30}"']`],
    ['inhibit', `match = ['a=~"x{300}"']\ninhibit = [{ source = ['a="b"'], target = ['a=~"y{300}"', 'a=~"z{30}"'] }]`],
  ])('regular expressions that are too large together, before the first that is too much: %s', async (key, more) => {
    const compile = vi.spyOn(RE2JS, 'compile')
    expect(await refusal(tableOf('a', more))).toBe(
      `a: \`${key}\`: with "a=~\\"y{300}\\"", the regular expressions of \`match\` and \`inhibit\` have more than 500 parts together: write shorter ones, or several notifiers`,
    )
    const compiled = compile.mock.calls.map(([expression]) => String(expression))
    expect(compiled.filter((expression) => /^[xyz]\{/.test(expression))).toEqual(['x{300}'])
    compile.mockRestore()
  })

  it('a text that is too long, and whoever has no right', async () => {
    expect((await askFor(ann, 'notify.put', { notifiers: '#'.repeat(16_385) })).status).not.toBe(0)
    await notified.server.producer.addUser('eve')
    const eve = await notified.server.producer.seat('eve')
    for (const [control, given] of [
      ['notify.put', { notifiers: tableOf('a') }],
      ['notify.remove', { name: 'a' }],
      ['notify.list', {}],
    ] as const)
      expect((await askFor(eve, control, given)).status).not.toBe(0)
    expect((await run(ann, 'notify.remove', { name: 'a' })).detail).toBe('nobody has put a notifier a')
  })

  it('a token that may not read alerts', async () => {
    const scoped = await tokenSeat(
      notified.server.producer,
      await tokenFor(root, 'ann', 'EXECUTE notify.*\nCOLLECT test.*'),
    )
    expect(await refusal(tableOf('a'), {}, scoped)).toMatch(/does not cover `COLLECT alert`/)
  })
})

it('a dry run says what would change, and changes nothing', async () => {
  const dry = async (notifiers: string, secrets = '') => {
    const given = { notifiers, ...(secrets && { secrets }) }
    const flag = ['dry_run', type.boolean, u32(1)] as const
    const texts = Object.entries(given).map(([name, value]) => [name, type.string, str(value)] as const)
    return (await ann.execute('notify.put', ...texts, flag)) as Json
  }
  expect((await dry(tableOf('a'))).value).toEqual([{ name: 'a', change: 'new', keys: '' }])
  expect(await listOf(ann)).toEqual([])
  await done(ann, 'notify.put', { notifiers: tableOf('a') })
  expect((await dry(tableOf('a'))).value).toEqual([{ name: 'a', change: 'same', keys: '' }])
  const changed = `${tableOf('a').replace('secret-a', 'other')}match = ['severity="page"']\n`
  const { outcome, value } = await dry(changed, '{"a": {"token_file": "t0ken"}}')
  expect([outcome, value]).toEqual(['dry-run', [{ name: 'a', change: 'changed', keys: 'url match token_file' }]])
})

describe('what a notifier tells', () => {
  it('is what its author may read at that moment', async () => {
    await done(ann, 'notify.put', { notifiers: tableOf('pager') })
    await done(root, 'role.deny', { role: 'author', command: 'COLLECT', object: 'alert', where: 'alertname=Hidden' })
    await done(ann, 'rules.put', { name: 'a.yml', rules: firing('Hidden', 'Open') })
    await tells('pager firing Open')
    await done(root, 'role.allow', { role: 'reader', command: 'EXECUTE', object: 'rules.*' })
    await done(root, 'user.role', { user: 'ann', role: 'reader' })
    await tells('pager firing Open', 'pager firing Hidden')
  })

  it('is nothing that whoever had put it before was told, and its author may not read', async () => {
    await done(root, 'notify.put', { notifiers: tableOf('pager') })
    await done(root, 'role.deny', { role: 'author', command: 'COLLECT', object: 'alert', where: 'alertname=Hidden' })
    await done(root, 'rules.put', { name: 'a.yml', rules: firing('Hidden') })
    await tells('pager firing Hidden')
    await done(ann, 'notify.put', { notifiers: tableOf('pager') })
    await done(root, 'rules.put', { name: 'a.yml', rules: firing('Open') })
    await tells('pager firing Hidden', 'pager firing Open')
  })

  it('is nothing that the token with which it was put may not read', async () => {
    const scope = 'EXECUTE notify.*\nCOLLECT alert'
    const token = await tokenFor(root, 'ann', scope)
    await done(await tokenSeat(notified.server.producer, token), 'notify.put', { notifiers: tableOf('pager') })
    await done(ann, 'rules.put', { name: 'a.yml', rules: firing('One') })
    await tells('pager firing One')
    const tokens: Json[] = await done(root, 'token.list')
    await done(root, 'token.revoke', { token: tokens.find((one) => one.scope === scope).token })
    await notified.until(async () => {
      expect(await listOf(ann)).toMatchObject([{ name: 'pager', problem: expect.stringContaining('token is revoked') }])
    })
  })

  it('is nothing of another tenant, whose users do not see it, and whose it goes with', async () => {
    await notified.server.producer.addUser('olga', { tenant: 'ops', role: 'author' })
    const olga = await notified.server.producer.seat('olga', 'ops')
    await done(olga, 'notify.put', { notifiers: tableOf('pager') })
    await done(ann, 'rules.put', { name: 'a.yml', rules: firing('Mine') })
    await done(olga, 'rules.put', { name: 'a.yml', rules: firing('Theirs') })
    await tells('pager firing Theirs')
    expect(await listOf(ann)).toEqual([])
    expect((await run(ann, 'notify.remove', { name: 'pager' })).outcome).toBe('failed')
    expect((await askFor(ann, 'notify.test', { name: 'pager' })).status).not.toBe(0)
    await done(root, 'user.remove', { user: 'olga', tenant: 'ops' })
    await done(root, 'tenant.remove', { tenant: 'ops' })
    await passes()
    const { notifiers, notifyGroups, notifyAlerts, notifications, channels } = await stored()
    expect([notifiers, notifyGroups, notifyAlerts, notifications]).toEqual([[], [], [], []])
    expect(channels.map(({ name }) => name)).not.toContain('notify:pager:')
  })

  it('stops when its author is removed, which the others tell, and goes on when somebody puts it again', async () => {
    await done(root, 'notify.put', { notifiers: tableOf('other', `match = ['alertname=~"Cinnabar.*"']`) })
    await done(ann, 'notify.put', { notifiers: tableOf('pager') })
    await done(root, 'rules.put', { name: 'a.yml', rules: firing('One') })
    await tells('pager firing One')
    await done(root, 'user.remove', { user: 'ann' })
    await tells('pager firing One', 'other firing CinnabarNotifierFails')
    const sensors: Json[] = decoded(await root.query('producer.sensors'))
    expect(sensors.find(({ name }) => name === 'notify/pager')).toMatchObject({
      state: 'stopped',
      detail: expect.stringContaining('no user any more'),
    })
    await done(root, 'rules.put', { name: 'a.yml', rules: firing('Two') })
    for (let times = 0; times < 5; times++) await passes()
    expect(notified.told).toHaveLength(2)
    await done(root, 'notify.put', { notifiers: tableOf('pager') })
    await notified.until(async () => {
      expect(notified.told.slice(2).sort()).toEqual([
        'other resolved CinnabarNotifierFails',
        'pager firing Two',
        'pager resolved One',
      ])
    })
  })
})

it('a change keeps what was told, a kill and a takeover keep the notifier, and a removal forgets all of it', async () => {
  await done(ann, 'notify.put', { notifiers: tableOf('pager') })
  await done(ann, 'rules.put', { name: 'a.yml', rules: firing('One') })
  await tells('pager firing One')
  await done(ann, 'notify.put', { notifiers: tableOf('pager', 'external_url = "https://monitor.example"') })
  for (let times = 0; times < 3; times++) await passes()
  expect(notified.told).toEqual(['pager firing One'])
  const before = await listOf(ann)
  notified.server = await PublishingProducer.of(await notified.server.producer.crash())
  root = notified.root
  expect(await listOf(root)).toEqual(before)
  notified.server = await PublishingProducer.of(await notified.server.producer.takeOver('n2'))
  root = notified.root
  expect(await listOf(root)).toEqual(before)
  await done(root, 'rules.put', { name: 'a.yml', rules: firing('Two') })
  await notified.until(async () => {
    expect(notified.told.toSorted()).toEqual(['pager firing One', 'pager firing Two', 'pager resolved One'])
  })
  expect(new Set(notified.received.map(({ path }) => path))).toEqual(new Set(['/secret-pager']))
  await done(root, 'notify.remove', { name: 'pager' })
  await passes()
  const { notifiers, notifyGroups, notifyAlerts, notifications } = await stored()
  expect([notifiers, notifyGroups, notifyAlerts, notifications]).toEqual([[], [], [], []])
})

it('what is secret is sent to its destination, and nobody else sees it', async () => {
  const secret = `whsec_${Buffer.from('signing-secret-of-the-test!!').toString('base64')}`
  const secrets = JSON.stringify({ pager: { secret_file: secret }, basic: { password_file: 'pass-of-the-test' } })
  const notifiers = tableOf('pager') + tableOf('basic', 'username = "ann"')
  await done(ann, 'notify.put', { notifiers, secrets })
  for (const name of ['pager', 'basic'])
    expect((await run(ann, 'notify.test', { name })).detail).toBe('the receiver answered 204')
  expect(notified.received[0]?.headers['webhook-signature']).toMatch(/^v1,/)
  expect(notified.received[1]?.headers.authorization).toBe(
    `Basic ${Buffer.from('ann:pass-of-the-test').toString('base64')}`,
  )
  const misspelt = tableOf('x', 'password = "misspelt-secret"')
  expect((await run(ann, 'notify.put', { notifiers: misspelt })).outcome).toBe('failed')
  const shown = [
    ...(await notified.server.producer.store.audit(0, Number.POSITIVE_INFINITY)),
    ...(await listOf(root)),
    await done(root, 'notify.list', { name: 'pager' }),
    decoded(await root.query('producer.sensors')),
    decoded(await root.query('producer.notifiers')),
    ...(await stored()).notifiers.map(({ sealed, ...row }) => [row, Buffer.from(sealed).toString('latin1')]),
  ]
  const text = JSON.stringify(shown, (_, value) => (typeof value === 'bigint' ? String(value) : value))
  for (const hidden of [secret, 'signing-secret', 'pass-of-the-test', 'secret-pager', 'misspelt-secret'])
    expect(text).not.toContain(hidden)
  expect(text).toContain(`webhook+http://127.0.0.1`)
  expect(await done(root, 'notify.list', { name: 'pager' })).toMatch(/^\[\[notify\]\]\nname = "pager"\n/)
})

it('the configuration wins where it has the name, and the other goes on when that is gone', async () => {
  await done(ann, 'notify.put', { notifiers: tableOf('pager') })
  await done(ann, 'rules.put', { name: 'a.yml', rules: firing('One') })
  await tells('pager firing One')
  const toml = tableOf('pager').replace('secret-', 'configured-')
  const { notify } = loadConfig({ file: 'c.toml', env: {}, readFile: () => Buffer.from(toml) })
  notified.server.producer.config = { ...notified.configuration, notify }
  notified.server = await PublishingProducer.of(await notified.server.producer.restart())
  root = notified.root
  ann = await notified.server.producer.seat('ann')
  const [shown] = await listOf(ann)
  expect(shown).toMatchObject({ name: 'pager', problem: 'the configuration has a notifier of this name' })
  expect((await run(ann, 'notify.put', { notifiers: tableOf('pager') })).detail).toBe(
    'pager: `name`: the configuration has a notifier of this name: choose another one',
  )
  expect(decoded(await root.query('producer.sensors')).find(({ name }: Json) => name === 'notify')).toMatchObject({
    counters: { put: 1, stopped: 1, refused: 1 },
  })
  await done(ann, 'rules.put', { name: 'a.yml', rules: firing('Two') })
  await notified.until(async () => {
    expect(notified.received.slice(1).map(({ path }) => path)).toEqual(['/configured-pager', '/configured-pager'])
  })
  notified.server.producer.config = notified.configuration
  notified.server = await PublishingProducer.of(await notified.server.producer.restart())
  root = notified.root
  await done(root, 'rules.put', { name: 'a.yml', rules: firing('Three') })
  await notified.until(async () => {
    expect(notified.told.slice(3).sort()).toEqual(['pager firing Three', 'pager resolved Two'])
  })
  expect(notified.received.at(-1)?.path).toBe('/secret-pager')
})

describe('where a notifier tells', () => {
  it('is no network of the server, by whatever name, and nobody learns why', async () => {
    const { port } = notified
    const named = (host: string): string => tableOf('pager').replace('127.0.0.1', host)
    for (const host of ['inside.example', 'nowhere.example']) {
      await done(ann, 'notify.put', { notifiers: named(host) })
      expect((await run(ann, 'notify.test', { name: 'pager' })).detail).toBe(
        `the server may not connect to webhook+http://${host}:${port}, or does not find it`,
      )
    }
    expect(notified.received).toEqual([])
  })

  it('is not where a redirect leads', async () => {
    notified.status = 302
    await done(ann, 'notify.put', { notifiers: tableOf('pager') })
    expect((await run(ann, 'notify.test', { name: 'pager' })).detail).toBe('the receiver answered 302')
    expect(notified.received.map(({ path }) => path)).toEqual(['/secret-pager'])
  })
})

it('what was sealed with another secret stops, and says so', async () => {
  await done(ann, 'notify.put', { notifiers: tableOf('pager') })
  const [row] = (await stored()).notifiers as [NotifierRow]
  const sealed = new Sealing(new Uint8Array(32)).seal('default/pager', '{"url":"","contents":{}}')
  expect(new Sealing(new Uint8Array(32).fill(1)).open('default/pager', sealed)).toBeUndefined()
  expect(new Sealing(new Uint8Array(32)).open('default/other', sealed)).toBeUndefined()
  const { view, stored: peers } = {
    view: { readerOf: () => undefined, use: () => ({ notifiers: { used: 0 } }) },
    stored: { notifiers: [row] },
  }
  const kit = { log: { error() {} }, clock: { wallMs: () => 0 }, peer: { view, stored: peers } }
  const put = new PutNotifiers({
    kit: kit as unknown as PutNotifiersServices['kit'],
    sealing: new Sealing(new Uint8Array(32)),
    configured: () => [],
  })
  await put.open()
  expect(put.shown('default')).toMatchObject([
    { url: hook(), problem: expect.stringMatching(/^its secrets were sealed/) },
  ])
  expect(put.tables()).toMatchObject([{ name: 'pager', origin: { problem: expect.stringMatching(/put it again$/) } }])
})

/** What is in the store. */
const stored = () =>
  notified.server.producer.store.copy().open({ onDurable() {}, onFull() {}, onRoom() {}, onFailed() {} })
