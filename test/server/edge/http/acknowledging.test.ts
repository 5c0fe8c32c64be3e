/** The button of a message of ntfy, pressed: a receiver that takes ntfy's JSON, and requests as a phone or a page sends them. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { loadConfig } from '../../../../server/start/config.ts'
import { eventually } from '../../../support/eventually.ts'
import { PublishingProducer } from '../../../support/publisher.ts'
import { decoded } from '../../../support/records.ts'

/** What ntfy documents of the JSON that it is sent: https://docs.ntfy.sh/publish/#publish-as-json. */
interface NtfyMessage {
  readonly topic: string
  readonly title: string
  readonly actions: readonly {
    readonly action: string
    readonly label: string
    readonly url: string
    readonly method?: string
    readonly body?: string
  }[]
}

const messages: NtfyMessage[] = []
const receiver = createServer(async (request, response) => {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part as Buffer)
  messages.push(JSON.parse(Buffer.concat(parts).toString()) as NtfyMessage)
  response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
})

let server: PublishingProducer
beforeEach(async () => {
  receiver.listen(0, '127.0.0.1')
  await once(receiver, 'listening')
  const { port } = receiver.address() as AddressInfo
  // A heartbeat that cannot go out, since there are no rules, is an alert of its own.
  const toml =
    `[[notify]]\nname = "outside"\nurl = "heartbeat+http://127.0.0.1:${port}/beat"\n` +
    `[[notify]]\nname = "phone"\nurl = "ntfy+http://127.0.0.1:${port}/topic"\nexternal_url = "https://c.example"\n` +
    'group_wait = "0s"\n'
  const { notify } = loadConfig({ file: 'c.toml', env: {}, readFile: () => Buffer.from(toml) })
  server = await PublishingProducer.start({ config: { notify } })
})
afterEach(async () => {
  messages.length = 0
  await server.stop()
  receiver.closeAllConnections()
  receiver.close()
})

/** What the button of the message sends, when it has come. */
async function pressed(): Promise<{ readonly path: string; readonly token: string }> {
  const { producer } = server
  await eventually(async () => {
    producer.clock.advance(10_000)
    await producer.settle()
    expect(messages).toHaveLength(1)
  })
  const [button] = messages[0]?.actions ?? []
  expect(button).toMatchObject({ action: 'http', label: 'Acknowledge', method: 'POST' })
  const { pathname, search } = new URL(button?.url ?? '')
  expect(search).toBe('')
  return { path: pathname, token: button?.body ?? '' }
}

const press = (path: string, body: string, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(server.url + path, { method: 'POST', body, headers })

it('acknowledges once, which is stored and audited with the name of the notifier', async () => {
  const { path, token } = await pressed()
  const first = await press(path, token)
  expect([first.status, await first.json()]).toEqual([200, { status: 'acknowledged' }])
  const again = await press(path, token)
  expect([again.status, await again.json()]).toEqual([200, { status: 'acknowledged already' }])
  const { root } = server
  expect(decoded(await root.query('producer.silences'))).toMatchObject([
    { kind: 'acknowledgement', author: 'notify:phone' },
  ])
  const records = await server.producer.server.parts.producer.audit.read(0)
  const [record] = records.filter(({ action }) => action === 'acknowledge')
  expect(record).toMatchObject({ actor: 'notify:phone', tenant: 'default', address: '127.0.0.1', outcome: 'ok' })
  // Nothing that is stored has the token.
  expect(JSON.stringify(records)).not.toContain(token)
})

it('is taken as a browser sends it from the origin of ntfy, which may read the answer', async () => {
  const { path, token } = await pressed()
  const headers = { origin: 'https://ntfy.sh', 'content-type': 'text/plain;charset=UTF-8' }
  const answer = await press(path, token, headers)
  expect([answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([200, '*'])
})

it('answers what is no token as if nothing were here', async () => {
  const { path, token } = await pressed()
  const nothing = await press('/nothing/here', 'x')
  const expected = [nothing.status, await nothing.json()]
  expect(expected[0]).toBe(404)
  for (const body of ['', 'x', `${token}x`, token.slice(1), `${token}.${token}`]) {
    const answer = await press(path, body)
    expect([answer.status, await answer.json()]).toEqual(expected)
  }
  expect((await fetch(`${server.url}${path}?token=${token}`)).status).toBe(404)
  expect((await press(path, 'x'.repeat(3_000))).status).toBe(413)
  expect((await press(path, token)).status).toBe(200)
})

it('says of neither press that it was taken before that is stored, and that a full disk does not store it', async () => {
  const { path, token } = await pressed()
  const { producer } = server
  producer.store.manual = true
  const answers = [press(path, token), press(path, token)]
  producer.store.full = true
  const statuses = Promise.all(answers).then((all) => all.map(({ status }) => status))
  await eventually(async () => {
    producer.clock.advance(1_000)
    expect(await Promise.race([statuses, producer.settle()])).toEqual([503, 503])
  })
  producer.store.manual = false
  producer.store.full = false
  const again = await press(path, token)
  expect([again.status, await again.json()]).toEqual([200, { status: 'acknowledged already' }])
})

it('takes 60 requests of an address in a minute', async () => {
  const { path } = await pressed()
  const statuses: number[] = []
  for (let count = 0; count < 61; count++) statuses.push((await press(path, 'x')).status)
  expect(statuses).toEqual([...Array(60).fill(404), 429])
})
