/** Notifiers that users have put, in a server: what becomes of their channels, what they begin to tell of later, their buttons, and e-mail. */
import { afterEach, expect, it } from 'vitest'
import { askFor, done, run, tokenSeat } from '../../../../support/administration.ts'
import { Authority } from '../../../../support/certificates.ts'
import { MailServer } from '../../../../support/mail-server.ts'
import { firing, NotifiedServer } from '../../../../support/notified-server.ts'
import { tokenFor } from '../../../../support/publisher.ts'
import { decoded, type Json } from '../../../../support/records.ts'

let notified: NotifiedServer
let mailServer: MailServer | undefined
afterEach(async () => {
  await notified.stop()
  await mailServer?.stop()
  mailServer = undefined
})

it('one whose user an admin removes says so, has another channel at once, and goes on from what it told', async () => {
  notified = await NotifiedServer.start()
  const { ann, root } = notified
  await done(ann, 'notify.put', { notifiers: notified.tableOf('pager') })
  await done(ann, 'rules.put', { name: 'a.yml', rules: firing('One') })
  await notified.tells('pager firing One')
  await done(root, 'user.remove', { user: 'notify:pager:' })
  expect(notified.server.producer.logged.join()).toContain('its channel was removed')
  await done(ann, 'rules.put', { name: 'a.yml', rules: firing('Two') })
  await notified.until(() => {
    expect(notified.told.slice(1).toSorted()).toEqual(['pager firing Two', 'pager resolved One'])
  })
})

it('one that is removed and put at once tells what fires', async () => {
  notified = await NotifiedServer.start()
  const { ann } = notified
  const notifiers = notified.tableOf('pager')
  await done(ann, 'notify.put', { notifiers })
  await done(ann, 'rules.put', { name: 'a.yml', rules: firing('One') })
  await notified.tells('pager firing One')
  await Promise.all([done(ann, 'notify.remove', { name: 'pager' }), done(ann, 'notify.put', { notifiers })])
  await notified.tells('pager firing One', 'pager firing One')
  await done(ann, 'rules.put', { name: 'a.yml', rules: firing('Two') })
  await notified.until(() => expect(notified.told.slice(2)).toContain('pager firing Two'))
})

it('one that begins to tell of approvals, or that somebody else puts again, tells of what waits already', async () => {
  notified = await NotifiedServer.start()
  const { ann, root, server } = notified
  await done(ann, 'notify.put', { notifiers: notified.tableOf('pager') })
  await done(ann, 'rules.put', { name: 'a.yml', rules: firing('One') })
  const told = ['pager firing One']
  await notified.tells(...told)
  await server.producer.addUser('olga', { role: 'olga' })
  await done(root, 'role.allow', { role: 'olga', command: 'EXECUTE', object: 'role.explain', approval: 'author' })
  const asked = { user: 'ann', command: 'COLLECT', object: 'test.a' }
  await askFor(await server.producer.seat('olga'), 'role.explain', asked)
  for (let times = 0; times < 3; times++) await notified.passes()
  const notifiers = notified.tableOf('pager', 'approvals = true')
  await server.producer.addUser('bob', { role: 'author' })
  for (const seat of [ann, await server.producer.seat('bob')]) {
    expect(notified.told).toEqual(told)
    await done(seat, 'notify.put', { notifiers })
    told.push('pager firing ApprovalWaits')
    await notified.tells(...told)
  }
  const [{ id }] = decoded(await ann.query('producer.approvals')) as [Json]
  await done(ann, 'control.approve', { id })
  await notified.tells(...told, 'pager resolved ApprovalWaits')
})

it('a button does what the author of the notifier may do at that moment, and is not there otherwise', async () => {
  notified = await NotifiedServer.start()
  const { ann, root, server } = notified
  const phone = notified.tableOf('phone', 'external_url = "https://monitor.example"', 'ntfy')
  const fires = async (name: string): Promise<string> => {
    const before = notified.received.length
    await done(ann, 'rules.put', { name: `${name}.yml`, rules: firing(name) })
    await notified.until(() => expect(notified.received).toHaveLength(before + 1))
    const { title, actions } = JSON.parse(notified.received[before]?.body ?? '') as Json
    expect(title).toBe(name)
    return actions.find(({ action }: Json) => action === 'http')?.body ?? ''
  }
  const press = async (body: string): Promise<number> => {
    const answer = await fetch(`${server.url}/alerts/acknowledge`, { method: 'POST', body })
    return answer.status
  }
  await done(ann, 'notify.put', { notifiers: phone })
  expect(await fires('One')).toBe('')
  const acknowledge = { role: 'author', command: 'EXECUTE', object: 'alert.acknowledge' }
  const withApproval = await done(root, 'role.allow', { ...acknowledge, approval: 'lead' })
  expect(await fires('Two')).toBe('')
  await done(root, 'role.forget', { rule: Number(withApproval) })
  await done(root, 'role.allow', acknowledge)
  const pressed = await fires('Three')
  const late = await fires('Four')
  expect(await press(pressed)).toBe(200)
  const denied = await done(root, 'role.deny', acknowledge)
  expect(await press(late)).toBe(404)
  const [silence, ...others] = decoded(await root.query('producer.silences')) as Json[]
  expect(silence).toMatchObject({ author: 'notify:phone', matchers: expect.stringContaining('alertname="Three"') })
  expect(others).toEqual([])
  // Nor does what a token may not do.
  await done(root, 'role.forget', { rule: Number(denied) })
  expect(await press(late)).toBe(200)
  const token = await tokenFor(root, 'ann', 'EXECUTE notify.*\nCOLLECT alert')
  await done(await tokenSeat(server.producer, token), 'notify.put', { notifiers: phone })
  expect(await fires('Five')).toBe('')
})

it('nothing of a text that is no JSON is in a refusal', async () => {
  notified = await NotifiedServer.start()
  const { detail } = await run(notified.ann, 'notify.put', {
    notifiers: notified.tableOf('own', '', 'json'),
    secrets: JSON.stringify({ own: { template: '{ "routing_key": hunter2 }' } }),
  })
  expect(detail).toBe('own: `template`: its text is no JSON: `toJson` makes JSON of a text, with its quotes')
})

it('e-mail goes to the server that may be connected to, over TLS, with the login and the authority that were put', async () => {
  const mails: { readonly user: string; readonly text: string }[] = []
  const authority = await Authority.make()
  mailServer = await MailServer.start(
    (text, { user }) => {
      mails.push({ user: String(user), text })
      return undefined
    },
    {
      secure: true,
      authOptional: false,
      ...(await authority.server()),
      onAuth: ({ username, password }, _session, done) =>
        password === 'hunter2' ? done(null, { user: username }) : done(new Error('wrong')),
    },
  )
  const [at, inside] = ['127.0.0.1', 'inside.example'].map((host) => `smtps://${host}:${mailServer?.port}`) as [
    string,
    string,
  ]
  notified = await NotifiedServer.start([at, inside])
  const { ann, server } = notified
  const table = (url: string): string =>
    `[[notify]]\nname = "mail"\nurl = "${url}"\nfrom = "c@mon.example"\nto = ["ann@example.org"]\nusername = "cinnabar"\ngroup_wait = "0s"\n`
  const secrets = (ca: string): string => JSON.stringify({ mail: { password_file: 'hunter2', ca } })
  await done(ann, 'notify.put', { notifiers: table(inside), secrets: secrets(authority.cert) })
  expect((await run(ann, 'notify.test', { name: 'mail' })).detail).toMatch(/^the server may not connect to smtps:/)
  await done(ann, 'notify.put', { notifiers: table(at), secrets: secrets(authority.cert) })
  await done(ann, 'rules.put', { name: 'a.yml', rules: firing('One') })
  await notified.until(() => expect(mails).toHaveLength(1))
  expect(mails[0]?.user).toBe('cinnabar')
  expect(mails[0]?.text).toMatch(/^Subject: One\r$/m)
  // One that is signed by somebody else is not trusted.
  const other = await Authority.make()
  await done(ann, 'notify.put', { notifiers: table(at), secrets: secrets(other.cert) })
  const { outcome, detail } = await run(ann, 'notify.test', { name: 'mail' })
  expect(outcome).toBe('failed')
  expect(detail).not.toContain('hunter2')
  expect(mails).toHaveLength(1)
  expect(server.producer.logged.join()).not.toContain('hunter2')
})
