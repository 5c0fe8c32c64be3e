/** What fires at a server below: a rule of the one above is about it, as docs/alerts.md has it, and its notifier tells when it begins and ends. */
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { tokenFor } from '../support/publisher.ts'
import type { Json } from '../support/records.ts'
import { ServerProcess } from '../support/server-process.ts'

const RULES = '[alerts]\nbuiltin = false\nrules = ["*.rules.yml"]\n'
const rulesOf = (rule: string): string => `groups: [{ name: g, interval: 1s, rules: [${rule}] }]\n`

const servers: ServerProcess[] = []
const received: Json[] = []
const receiver = createServer(async (request, response) => {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part as Buffer)
  received.push(JSON.parse(Buffer.concat(parts).toString()) as Json)
  response.writeHead(204).end()
})
afterEach(async () => {
  for (const server of servers) await server.remove()
  receiver.close()
})

async function started(name: string, toml: string, rule: string): Promise<ServerProcess> {
  const server = new ServerProcess(RULES + toml, { name })
  servers.push(server)
  writeFileSync(join(server.directory, 'a.rules.yml'), rulesOf(rule))
  await server.start()
  return server
}

it('a notifier above tells of it', async () => {
  receiver.listen(0, '127.0.0.1')
  await once(receiver, 'listening')
  const { port } = receiver.address() as AddressInfo
  const rack = await started('rack1', '', '{ alert: Full, expr: vector(1), labels: { severity: page } }')
  const token = join(rack.directory, 'above.token')
  writeFileSync(token, await tokenFor(await rack.seat(), 'admin', ''), { mode: 0o600 })
  await started(
    'main',
    `[history]\nbelow = true\nresolution = "0"\n` +
      `[[upstream]]\nname = "rack1"\nurl = "tcp://127.0.0.1:${rack.tcpPort}"\ntoken_file = "${token}"\n` +
      `[[notify]]\nname = "pager"\nurl = "webhook+http://127.0.0.1:${port}/"\ngroup_wait = "0s"\ngroup_interval = "0s"\n`,
    `{ alert: Below, expr: 'ALERTS{alertstate="firing", producer!="", alertname!="Below"}', labels: { of: '{{ $labels.alertname }}' } }`,
  )
  await eventually(() => expect(received).toHaveLength(1))
  expect(received[0]).toMatchObject({
    status: 'firing',
    alerts: [{ labels: { alertname: 'Below', of: 'Full', producer: 'rack1', severity: 'page' } }],
  })
  writeFileSync(join(rack.directory, 'a.rules.yml'), 'groups: []\n')
  rack.signal('SIGHUP')
  await eventually(() => expect(received).toHaveLength(2))
  expect(received[1]).toMatchObject({ status: 'resolved', alerts: [{ labels: { alertname: 'Below', of: 'Full' } }] })
})
