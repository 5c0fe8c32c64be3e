/** E-mail to a real SMTP server: what is in a mail, threads, logins, TLS, and what is sent again. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { SMTPServerOptions } from 'smtp-server'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { loadConfig } from '../../../../server/start/config.ts'
import { emailDestination } from '../../../../server/wings/notify/email.ts'
import type { Notification } from '../../../../server/wings/notify/notification.ts'
import { Authority } from '../../../support/certificates.ts'
import { MailServer } from '../../../support/mail-server.ts'

const AT = Date.parse('2026-11-30T05:00:00Z')

interface Mail {
  readonly isSecure: boolean
  readonly user: string
  readonly to: readonly string[]
  readonly text: string
}

let directory: string
let server: MailServer
let mails: Mail[]

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'email-'))
  mails = []
})
afterEach(async () => {
  await server.stop()
  rmSync(directory, { recursive: true, force: true })
})

/** `answer`: what the server says to a mail; undefined if it takes it. */
async function serve(options: SMTPServerOptions, answer?: () => Error | undefined): Promise<number> {
  server = await MailServer.start((text, session) => {
    const refusal = answer?.()
    if (refusal === undefined)
      mails.push({
        isSecure: session.secure === true,
        user: String(session.user ?? ''),
        to: session.envelope.rcptTo.map(({ address }) => address),
        text,
      })
    return refusal
  }, options)
  return server.port
}

function destination(url: string, more = '') {
  const toml = `[[notify]]\nname = "mail"\nurl = "${url}"\nfrom = "Cinnabar <c@mon.example>"\nto = ["ann@example.org", "bob@example.org"]\nexternal_url = "https://c.example"\n${more}`
  const [table] = loadConfig({ file: 'c.toml', env: {}, readFile: () => Buffer.from(toml) }).notify
  if (table === undefined) throw new Error('there is no table')
  return emailDestination({ ...table })
}

function notification(state: 'firing' | 'resolved', key: string): Notification {
  const labels = [
    ['alertname', 'Full'],
    ['host', 'wéb<1>'],
  ] as const
  const alert = {
    labels,
    annotations: [['summary', 'wéb<1> is full & hot']] as const,
    state,
    value: '1',
    sinceMs: AT,
    firedMs: AT,
    endedMs: state === 'firing' ? 0 : AT + 1_000,
    group: 'g',
    rule: 'Full',
    fingerprint: 'f0',
  }
  return { key, groupLabels: [['alertname', 'Full']], atMs: AT, alerts: [alert], truncated: 0 }
}

/** A header of a mail, unfolded. */
function headerOf({ text }: Mail, name: string): string {
  const head = text.slice(0, text.indexOf('\r\n\r\n')).replace(/\r\n[ \t]+/g, ' ')
  return new RegExp(`^${name}: (.*)$`, 'im').exec(head)?.[1] ?? ''
}

/** The parts of a mail, decoded. */
function bodyOf({ text }: Mail): string {
  const decoded = text.replace(/=\r\n/g, '').replace(/((?:=[0-9A-F]{2})+)/g, (hex) => {
    return Buffer.from(hex.replaceAll('=', ''), 'hex').toString()
  })
  return decoded.replaceAll('\r\n', '\n')
}

it('has a text and HTML, and the mails of a group are one thread', async () => {
  const port = await serve({})
  const mail = destination(`smtp://127.0.0.1:${port}`)
  const answer = await mail.send(notification('firing', 'k1'))
  expect(answer).toEqual({ verdict: 'taken', detail: expect.stringMatching(/^250 /), waitMs: 0 })
  await mail.send(notification('resolved', 'k2'))
  const [first, second] = mails
  if (first === undefined || second === undefined) throw new Error('there are no mails')
  expect(first.to).toEqual(['ann@example.org', 'bob@example.org'])
  expect(headerOf(first, 'From')).toBe('Cinnabar <c@mon.example>')
  expect(headerOf(first, 'Subject')).toBe('Full')
  expect(headerOf(second, 'Subject')).toBe('Resolved: Full')
  expect(headerOf(first, 'Auto-Submitted')).toBe('auto-generated')
  expect(headerOf(first, 'Date')).toBe('Mon, 30 Nov 2026 05:00:00 +0000')
  expect(headerOf(first, 'Message-ID')).toBe('<k1.mail@mon.example>')
  expect(headerOf(second, 'Message-ID')).toBe('<k2.mail@mon.example>')
  const thread = headerOf(first, 'References')
  expect(thread).toMatch(/^<[0-9a-f]{16}\.mail@mon\.example>$/)
  expect([headerOf(first, 'In-Reply-To'), headerOf(second, 'References')]).toEqual([thread, thread])
  const body = bodyOf(first)
  expect(body).toContain('Content-Type: text/plain')
  expect(body).toContain('\nwéb<1> is full & hot\n\nhttps://c.example\n')
  expect(body).toContain('wéb&lt;1&gt; is full &amp; hot')
  expect(body).toContain('<a href="https://c.example">Open</a>')
})

it('has the Message-ID that it had when it is sent again', async () => {
  let answers = 0
  const busy = (): Error | undefined =>
    answers++ === 0 ? Object.assign(new Error('come later'), { responseCode: 451 }) : undefined
  const port = await serve({}, busy)
  const mail = destination(`smtp://127.0.0.1:${port}`)
  const one = notification('firing', 'k1')
  expect(await mail.send(one)).toMatchObject({ verdict: 'failed', detail: expect.stringContaining('451 come later') })
  expect(await mail.send(one)).toMatchObject({ verdict: 'taken' })
  expect(mails.map((sent) => headerOf(sent, 'Message-ID'))).toEqual(['<k1.mail@mon.example>'])
})

it('a mail that the server will never take is refused', async () => {
  const port = await serve({}, () => Object.assign(new Error('too odd'), { responseCode: 554 }))
  const answer = await destination(`smtp://127.0.0.1:${port}`).send(notification('firing', 'k1'))
  expect(answer).toMatchObject({ verdict: 'refused', detail: expect.stringContaining('554 too odd') })
})

it('an address that the server does not take is named, and the others get the mail', async () => {
  const port = await serve({
    onRcptTo: ({ address }, _session, done) => done(address === 'bob@example.org' ? new Error('no bob') : undefined),
  })
  const answer = await destination(`smtp://127.0.0.1:${port}`).send(notification('firing', 'k1'))
  expect(answer).toMatchObject({ verdict: 'taken', detail: expect.stringMatching(/, and not for bob@example\.org$/) })
  expect(mails[0]?.to).toEqual(['ann@example.org'])
})

it('logs in over TLS with the password of its file, and trusts the authority of `ca` alone', async () => {
  const authority = await Authority.make()
  const issued = await authority.server()
  const port = await serve({
    secure: true,
    authOptional: false,
    ...issued,
    onAuth: ({ username, password }, _session, done) =>
      password === 'hunter2' ? done(null, { user: username }) : done(new Error('wrong')),
  })
  const path = (name: string, text: string): string => {
    writeFileSync(join(directory, name), text)
    return join(directory, name)
  }
  const login = `username = "cinnabar"\npassword_file = "${path('password', 'hunter2\n')}"\n`
  const trusting = destination(`smtps://localhost:${port}`, `${login}ca = "${path('ca.pem', authority.cert)}"\n`)
  expect(await trusting.send(notification('firing', 'k1'))).toMatchObject({ verdict: 'taken' })
  expect(mails).toMatchObject([{ isSecure: true, user: 'cinnabar' }])
  path('password', 'hunter3\n')
  const refused = await trusting.send(notification('firing', 'k1'))
  expect(refused.verdict).toBe('failed')
  expect(refused.detail).not.toContain('hunter')
  const distrusting = await destination(`smtps://localhost:${port}`, login).send(notification('firing', 'k1'))
  expect(distrusting).toMatchObject({ verdict: 'failed', detail: expect.stringMatching(/certificate/) })
})

it('goes to no other machine without TLS', async () => {
  const port = await serve({ hideSTARTTLS: true, disabledCommands: ['STARTTLS', 'AUTH'] })
  // Not the name of this machine, but it leads there.
  const answer = await destination(`smtp://0.0.0.0:${port}`).send(notification('firing', 'k1'))
  expect(answer).toMatchObject({ verdict: 'failed', detail: expect.stringMatching(/STARTTLS/i) })
  expect(mails).toEqual([])
})
