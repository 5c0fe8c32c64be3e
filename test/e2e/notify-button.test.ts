/**
 * The button of a message of ntfy, over kills of the server: it acknowledges once, the acknowledgement outlives the kill, and its token
 * is written down nowhere.
 */
import { once } from 'node:events'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
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
`

const messages: Json[] = []
const receiver = createServer(async (request, response) => {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part as Buffer)
  messages.push(JSON.parse(Buffer.concat(parts).toString()))
  response.writeHead(200).end('{}')
})

let server: ServerProcess | undefined
afterEach(async () => {
  await server?.remove()
  receiver.close()
})

it('works once over kills, and its token is in no file and no log', async () => {
  receiver.listen(0, '127.0.0.1')
  await once(receiver, 'listening')
  const { port } = receiver.address() as AddressInfo
  const http = await freePort()
  const toml =
    `[alerts]\nbuiltin = false\nrules = ["*.rules.yml"]\n[[notify]]\nname = "phone"\nurl = "ntfy+http://127.0.0.1:${port}/topic"\n` +
    `external_url = "http://127.0.0.1:${http}"\ngroup_wait = "0s"\n`
  const killed = new ServerProcess(toml, { http })
  server = killed
  writeFileSync(join(killed.directory, 'a.rules.yml'), RULES)
  await killed.start()
  await eventually(() => expect(messages).toHaveLength(1))
  expect(messages[0]).toMatchObject({ topic: 'topic', title: 'Always', priority: 5 })
  const { url, method, body: token } = messages[0].actions[0]
  const press = async () => {
    const answer = await fetch(url, { method, body: token })
    return [answer.status, await answer.json()]
  }
  await killed.end('SIGKILL')
  await killed.start()
  expect(await press()).toEqual([200, { status: 'acknowledged' }])
  // It is stored before it is answered.
  await killed.end('SIGKILL')
  await killed.start()
  expect(await press()).toEqual([200, { status: 'acknowledged already' }])
  const seat = await killed.seat()
  const silences = decoded(await seat.query('producer.silences'))
  expect(silences).toMatchObject([{ kind: 'acknowledgement', author: 'notify:phone' }])
  await eventually(async () =>
    expect(decoded(await seat.query('producer.alerts.active'))).toMatchObject([
      { state: 'firing', labels: { alertname: 'Always' }, silence: silences[0].id, told: 'phone' },
    ]),
  )
  // The one that was under way at a kill comes again as it was, with the same button; nobody is told anything else.
  for (const message of messages) expect(message).toEqual(messages[0])
  const [said, mac] = token.split('.')
  const data = join(killed.directory, 'data')
  const files = readdirSync(data, { withFileTypes: true, recursive: true }).filter((entry) => entry.isFile())
  expect(files.length).toBeGreaterThan(3)
  const texts = files.map(({ parentPath, name }) => readFileSync(join(parentPath, name), 'latin1'))
  for (const text of [...texts, killed.errors])
    for (const part of [said, mac]) expect(text.includes(part), 'the token is written down').toBe(false)
})
