/**
 * The server and the receiver are killed while a notification is under way: it arrives all the same, with the same key, and what the
 * alert becomes later arrives after it. A silence outlives a kill, and what it has held back is sent when it ends.
 */
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { str, type, u64 } from '../support/bytes.ts'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'
import { decoded, type Json } from '../support/records.ts'
import { ServerProcess } from '../support/server-process.ts'

const RULES = `groups:
  - name: always
    interval: 1s
    rules:
      - alert: Always
        expr: vector(1)
        labels: { severity: page }
        annotations: { summary: 'it is {{ $value }}' }
`

interface Received {
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly body: Json
}

/** One alert each, which fires in the first second, in this order. */
const firing = (...names: readonly string[]): string =>
  `groups:\n  - name: always\n    interval: 1s\n    rules:\n` +
  names.map((name) => `      - alert: ${name}\n        expr: vector(1)\n`).join('')

let server: ServerProcess | undefined
let receiver: Server | undefined
let received: Received[] = []
/** What it answers with. */
let status = 200

afterEach(async () => {
  received = []
  status = 200
  await server?.end('SIGKILL')
  await server?.remove()
  receiver?.close()
})

async function receive(port = 0): Promise<number> {
  receiver = createServer(async (request, response) => {
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part as Buffer)
    received.push({
      url: request.url ?? '',
      headers: request.headers,
      body: JSON.parse(Buffer.concat(parts).toString()) as Json,
    })
    response.writeHead(status).end('seen')
  })
  receiver.listen(port, '127.0.0.1')
  await once(receiver, 'listening')
  return (receiver.address() as AddressInfo).port
}

it('what was stored before a kill is told after it, with the same key, and once', async () => {
  status = 503
  // It comes back to it.
  const port = await freePort()
  await receive(port)
  const killed = new ServerProcess(
    '[alerts]\nbuiltin = false\nrules = ["*.rules.yml"]\n' +
      `[[notify]]\nname = "pager"\nurl = "webhook+http://127.0.0.1:${port}/hook"\ngroup_wait = "0s"\ngroup_interval = "0s"\n`,
  )
  server = killed
  writeFileSync(join(killed.directory, 'a.rules.yml'), RULES)
  await killed.start()
  await eventually(() => expect(received.length).toBeGreaterThan(0))
  const [first] = received
  expect(first?.body).toMatchObject({
    version: '4',
    status: 'firing',
    receiver: 'pager',
    groupLabels: { alertname: 'Always' },
    groupKey: '{}:{alertname="Always"}',
    commonLabels: { alertname: 'Always', severity: 'page' },
    commonAnnotations: { summary: 'it is 1' },
    truncatedAlerts: 0,
    alerts: [{ status: 'firing', labels: { alertname: 'Always', severity: 'page' }, endsAt: '0001-01-01T00:00:00Z' }],
  })
  const key = first?.headers['idempotency-key']
  expect(key).toMatch(/^[0-9a-f-]{36}$/)
  await killed.end('SIGKILL')
  receiver?.close()
  receiver?.closeAllConnections()
  received = []
  await killed.start()
  // The rule is gone, and so is what fired: that comes after what was under way.
  writeFileSync(join(killed.directory, 'a.rules.yml'), 'groups: []\n')
  process.kill(killed.pid, 'SIGHUP')
  status = 200
  await receive(port)
  await eventually(() => expect(received).toHaveLength(2))
  expect(received[0]).toMatchObject({ headers: { 'idempotency-key': key }, body: first?.body })
  expect(received[1]?.body).toMatchObject({
    status: 'resolved',
    alerts: [{ status: 'resolved', startsAt: first?.body.alerts[0].startsAt }],
  })
  expect(received[1]?.headers['idempotency-key']).not.toBe(key)
  const seat = await killed.seat()
  await eventually(async () => {
    const log = decoded(await seat.query('producer.notifications'))
    expect(log).toMatchObject([
      { notifier: 'pager', outcome: 'delivered', answer: '200: seen', key: received[1]?.headers['idempotency-key'] },
      { notifier: 'pager', outcome: 'delivered', answer: '200: seen', key },
    ])
  })
})

it('a silence holds back what fires, also over a kill, and what still fires when it ends is told', async () => {
  const port = await receive()
  const killed = new ServerProcess(
    '[alerts]\nbuiltin = false\nrules = ["*.rules.yml"]\n' +
      `[[notify]]\nname = "pager"\nurl = "webhook+http://127.0.0.1:${port}/hook"\ngroup_wait = "0s"\ngroup_interval = "0s"\n`,
  )
  server = killed
  const evaluate = (...names: readonly string[]): void => {
    writeFileSync(join(killed.directory, 'a.rules.yml'), firing(...names))
    process.kill(killed.pid, 'SIGHUP')
  }
  // What is under way at the kill is sent twice, with the same key.
  const told = (): string[] => {
    const byKey = new Map(received.map(({ headers, body }) => [headers['idempotency-key'], body]))
    return [...byKey.values()].map(({ commonLabels, status }) => `${commonLabels.alertname} ${status}`)
  }
  await killed.start()
  const first = await killed.seat()
  const { value: id } = await first.execute(
    'alert.silence',
    ['matchers', type.string, str('alertname="Silenced"')],
    ['seconds', type.uint64, u64(3_600)],
    ['comment', type.string, str('new disks')],
  )
  // Notifications are sent one after the other, in the order in which alerts fire.
  evaluate('Silenced', 'Loud')
  await eventually(() => expect(told()).toEqual(['Loud firing']))
  expect(decoded(await first.query('producer.alerts'))).toMatchObject([{ firing: 2 }])
  await killed.end('SIGKILL')
  await killed.start()
  const again = await killed.seat()
  evaluate('Silenced', 'Loud', 'Later')
  await eventually(() => expect(told()).toEqual(['Loud firing', 'Later firing']))
  expect(decoded(await again.query('producer.silences'))).toMatchObject([{ id, author: 'admin', comment: 'new disks' }])
  expect(await again.execute('alert.unsilence', ['id', type.string, str(id)])).toMatchObject({ detail: `ended ${id}` })
  await eventually(() => expect(told()).toEqual(['Loud firing', 'Later firing', 'Silenced firing']))
  expect(decoded(await again.query('producer.silences'))).toEqual([])
})

it('what nobody acknowledges is told to the next notifier, once, over a kill', async () => {
  const port = await receive()
  const quick = 'group_wait = "0s"\ngroup_interval = "0s"\n'
  const killed = new ServerProcess(
    '[alerts]\nbuiltin = false\nrules = ["*.rules.yml"]\n' +
      `[[notify]]\nname = "first"\nurl = "webhook+http://127.0.0.1:${port}/first"\n${quick}escalate_to = "second"\nescalate_after = "1s"\n` +
      `[[notify]]\nname = "second"\nurl = "webhook+http://127.0.0.1:${port}/second"\n${quick}match = ['severity="nobody"']\n`,
  )
  server = killed
  const told = (): string[] => {
    const byKey = new Map(received.map(({ url, headers, body }) => [headers['idempotency-key'], { url, body }]))
    return [...byKey.values()].map(({ url, body }) => `${url} ${body.receiver} ${body.status}`)
  }
  writeFileSync(join(killed.directory, 'a.rules.yml'), RULES)
  await killed.start()
  await eventually(() => expect(told()).toEqual(['/first first firing', '/second second firing']))
  await killed.end('SIGKILL')
  await killed.start()
  // What the first one is told of later comes after everything that would have been told twice.
  writeFileSync(join(killed.directory, 'a.rules.yml'), firing('Later'))
  process.kill(killed.pid, 'SIGHUP')
  await eventually(() => expect(told().filter((text) => text.startsWith('/second'))).toHaveLength(3))
  expect(
    told()
      .filter((text) => text.startsWith('/second'))
      .toSorted(),
  ).toEqual(['/second second firing', '/second second firing', '/second second resolved'])
  const seat = await killed.seat()
  expect(decoded(await seat.query('producer.notifiers'))).toMatchObject([
    { name: 'first', escalated: 1 },
    { name: 'second' },
  ])
})
