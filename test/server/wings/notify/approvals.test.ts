/** What waits for approval is told by notifiers, to each kind of receiver, with a link that leads there, until it waits no more. */
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { type Control, ok } from '../../../../server/kernel/controls/control.ts'
import { loadConfig } from '../../../../server/start/config.ts'
import { askFor, done } from '../../../support/administration.ts'
import { eventually } from '../../../support/eventually.ts'
import { MailServer } from '../../../support/mail-server.ts'
import { TestProducer } from '../../../support/producer.ts'
import { decoded, type Json } from '../../../support/records.ts'
import type { Seat } from '../../../support/seat.ts'

const LINK = 'https://c.example/#/controls/approvals'
const COMMON = 'role = "lead"\napprovals = true\nmatch = [\'severity="page"\']\nexternal_url = "https://c.example"\n'

const control: Control = {
  name: 'exec.note',
  description: 'Notes a word.',
  parameters: [{ name: 'word', type: BasicType.STRING, description: 'A word.' }],
  prepare: () => () => ok(),
}

let directory: string
let receiver: Server
let mail: MailServer
let producer: TestProducer
let op: Seat
let lead: Seat
/** The bodies of requests by their paths, and the mails. */
let received: Map<string, Json[]>
let mails: string[]

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'approvals-'))
  received = new Map()
  mails = []
  receiver = createServer(async (request, response) => {
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part as Buffer)
    const path = request.url ?? ''
    received.set(path, [...of(path), JSON.parse(Buffer.concat(parts).toString()) as Json])
    response.writeHead(204).end()
  })
  receiver.listen(0, '127.0.0.1')
  await once(receiver, 'listening')
  mail = await MailServer.start((text) => void mails.push(text), { authOptional: true })
})
afterEach(async () => {
  await producer?.stop()
  await mail.stop()
  receiver.closeAllConnections()
  receiver.close()
  rmSync(directory, { recursive: true, force: true })
})

const of = (path: string): Json[] => received.get(path) ?? []
const url = (protocol: string, path: string): string =>
  `url = "${protocol}+http://127.0.0.1:${(receiver.address() as AddressInfo).port}${path}"\n`

function tables(toml: string) {
  return loadConfig({ file: 'c.toml', env: {}, readFile: () => Buffer.from(toml) }).notify
}

async function start(toml: string): Promise<void> {
  producer = await TestProducer.start({ config: { notify: tables(toml) } })
  producer.server.parts.producer.executor.add([control])
  for (const [name, role] of Object.entries({ root: 'admin', op: 'operator', lead: 'lead' }))
    await producer.addUser(name, { role })
  const root = await producer.seat('root')
  op = await producer.seat('op')
  lead = await producer.seat('lead')
  await done(root, 'role.allow', { role: 'operator', command: 'EXECUTE', object: 'exec.*', approval: 'lead' })
}

const ask = (word = 'secretive'): Promise<unknown> => askFor(op, 'exec.note', { word })
const idOf = async (): Promise<string> => decoded(await lead.query('producer.approvals')).at(-1)?.id ?? ''
const passing = (looked: () => void): Promise<void> =>
  eventually(async () => {
    producer.clock.advance(1_000)
    await producer.settle()
    looked()
  })

it('each kind of receiver is told at once who asks for what, and not with what arguments; and how that has ended', async () => {
  const template = join(directory, 'body.json')
  writeFileSync(
    template,
    '{ "text": {{ .Text | toJson }}, "title": {{ .Title | toJson }}, "link": {{ .Link | toJson }} }',
  )
  const { port } = mail
  await start(
    `[[notify]]\nname = "hook"\n${url('webhook', '/hook')}${COMMON}group_wait = "1h"\n` +
      `[[notify]]\nname = "phone"\n${url('ntfy', '/topic')}${COMMON}` +
      `[[notify]]\nname = "manager"\n${url('alertmanager', '')}${COMMON}` +
      `[[notify]]\nname = "own"\n${url('json', '/own')}${COMMON}template = ${JSON.stringify(template)}\n` +
      `[[notify]]\nname = "mail"\nurl = "smtp://127.0.0.1:${port}"\n${COMMON}from = "c@mon.example"\nto = ["ann@example.org"]\n` +
      `[[notify]]\nname = "others"\n${url('webhook', '/others')}match = ['severity="page"']\n` +
      `[[notify]]\nname = "strangers"\n${url('webhook', '/strangers')}${COMMON.replace('lead', 'stranger')}`,
  )
  await ask()
  const id = await idOf()
  const labels = { alertname: 'ApprovalWaits', asker: 'op', control: 'exec.note', id }
  const summary = expect.stringMatching(
    /^op asks to run exec\.note: it waits for the approval of a lead until \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$/,
  )
  await passing(() => {
    for (const path of ['/hook', '/', '/api/v2/alerts', '/own']) expect([path, of(path).length]).toEqual([path, 1])
    expect(mails).toHaveLength(1)
  })
  expect(of('/hook')[0]).toMatchObject({
    status: 'firing',
    receiver: 'hook',
    groupLabels: { alertname: 'ApprovalWaits' },
    alerts: [
      { status: 'firing', labels, annotations: { summary }, generatorURL: LINK, endsAt: '0001-01-01T00:00:00Z' },
    ],
  })
  expect(of('/')[0]).toEqual({
    topic: 'topic',
    title: 'Approval of exec.note',
    message: summary,
    priority: 3,
    tags: ['rotating_light'],
    click: LINK,
    actions: [{ action: 'view', label: 'Open', url: LINK, clear: false }],
  })
  expect(of('/api/v2/alerts')[0]).toMatchObject([{ labels, annotations: { summary }, generatorURL: LINK }])
  expect(of('/own')).toEqual([{ text: summary, title: 'Approval of exec.note', link: LINK }])
  expect(mails[0]).toMatch(/^Subject: Approval of exec\.note\r$/m)
  expect(mails[0]).toContain(LINK)
  const said = JSON.stringify([...received.values(), mails])
  expect(said).not.toContain('secretive')

  await done(lead, 'control.approve', { id })
  const approved = 'exec.note of op was approved by lead'
  await passing(() => {
    expect(of('/hook')[1]).toMatchObject({
      status: 'resolved',
      alerts: [{ status: 'resolved', labels, annotations: { summary: approved } }],
    })
    expect(of('/')[1]).toMatchObject({
      title: 'Resolved: Approval of exec.note',
      message: `resolved: ${approved}`,
      click: LINK,
    })
    expect(of('/api/v2/alerts').at(-1)).toMatchObject([{ labels, annotations: { summary: approved } }])
    expect(of('/own')[1]).toMatchObject({ text: `resolved: ${approved}` })
    expect(mails).toHaveLength(2)
  })
  // Neither one that tells of alerts alone, nor one whose role approves nothing of this.
  expect([of('/others'), of('/strangers')]).toEqual([[], []])
})

it('a refusal and the end of the time are told as well, and what ends before anybody was told is not', async () => {
  await start(`[[notify]]\nname = "hook"\n${url('webhook', '/hook')}${COMMON}`)
  const summaries = (): string[] =>
    of('/hook').flatMap(({ alerts }) => alerts.map((alert: Json) => alert.annotations.summary))
  await ask()
  await passing(() => expect(of('/hook')).toHaveLength(1))
  await done(lead, 'control.refuse', { id: await idOf(), reason: 'the reason is nobody else' })
  await passing(() => expect(summaries()[1]).toBe('exec.note of op was refused by lead'))
  await ask()
  await passing(() => expect(of('/hook')).toHaveLength(3))
  producer.clock.advance(3_600_000)
  await passing(() => expect(summaries().at(-1)).toBe('exec.note of op was approved by nobody in time'))
  expect(JSON.stringify(of('/hook'))).not.toContain('the reason')
})

it('what comes and goes within ten seconds after something was told is told to nobody', async () => {
  await start(`[[notify]]\nname = "hook"\n${url('webhook', '/hook')}${COMMON}`)
  await ask('a')
  await passing(() => expect(of('/hook')).toHaveLength(1))
  await ask('b')
  await done(op, 'control.refuse', { id: await idOf(), reason: 'a mistake' })
  await producer.settle()
  await ask('c')
  await passing(() => expect(of('/hook')).toHaveLength(2))
  expect(of('/hook')[1]?.alerts.map(({ status }: Json) => status)).toEqual(['firing', 'firing'])
})

it('neither a silence, an acknowledgement nor an inhibition is about it, and it is no alert that is shown', async () => {
  await start(
    `[[notify]]\nname = "hook"\n${url('webhook', '/hook')}${COMMON}inhibit = [{ source = ['control=~".+"'], target = ['alertname=~".+"'] }]\n`,
  )
  const root = await producer.seat('root')
  await done(root, 'alert.silence', { matchers: 'alertname=~".+"', seconds: 3_600n })
  await ask('a')
  await ask('b')
  await passing(() => expect(of('/hook')[0]?.alerts.length).toBeGreaterThan(0))
  await passing(() => expect(of('/hook').at(-1)?.alerts).toHaveLength(2))
  expect(decoded(await root.query('producer.alerts.active'))).toEqual([])
})

it('a notifier goes on after a restart, and ends what it has told if it is to tell of approvals no more', async () => {
  const toml = `[[notify]]\nname = "hook"\n${url('webhook', '/hook')}${COMMON}`
  await start(toml)
  await ask()
  const id = await idOf()
  await passing(() => expect(of('/hook')).toHaveLength(1))
  producer = await producer.restart()
  producer.server.parts.producer.executor.add([control])
  for (let second = 0; second < 60; second++) {
    producer.clock.advance(1_000)
    await producer.settle()
  }
  expect(of('/hook')).toHaveLength(1)
  producer.config = { notify: tables(toml.replace('approvals = true', 'approvals = false')) }
  producer = await producer.restart()
  await passing(() => expect(of('/hook')).toHaveLength(2))
  expect(of('/hook')[1]).toMatchObject({
    status: 'resolved',
    alerts: [{ labels: { id }, annotations: { summary: 'exec.note of op does not wait for approval any more' } }],
  })
})
