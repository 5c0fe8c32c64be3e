/** Notifiers in a server: one that fails is told by another one. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it } from 'vitest'
import { loadConfig } from '../../../../server/start/config.ts'
import { done } from '../../../support/administration.ts'
import { eventually } from '../../../support/eventually.ts'
import { PublishingProducer, tokenFor } from '../../../support/publisher.ts'
import { decoded, type Json } from '../../../support/records.ts'

it('a heartbeat that cannot go out for five minutes is an alert, of which a webhook is told', async () => {
  const received: Json[] = []
  const receiver = createServer(async (request, response) => {
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part as Buffer)
    received.push(JSON.parse(Buffer.concat(parts).toString()) as Json)
    response.writeHead(204).end()
  })
  receiver.listen(0, '127.0.0.1')
  await once(receiver, 'listening')
  const { port } = receiver.address() as AddressInfo
  const toml =
    `[[notify]]\nname = "outside"\nurl = "heartbeat+http://127.0.0.1:${port}/beat"\n` +
    `[[notify]]\nname = "pager"\nurl = "webhook+http://127.0.0.1:${port}/hook"\ngroup_wait = "0s"\n`
  const { notify } = loadConfig({ file: 'c.toml', env: {}, readFile: () => Buffer.from(toml) })
  const server = await PublishingProducer.start({ config: { notify } })
  try {
    const { producer } = server
    await eventually(async () => {
      producer.clock.advance(10_000)
      await producer.settle()
      expect(received).toHaveLength(1)
    })
    expect(received[0]).toMatchObject({
      status: 'firing',
      receiver: 'pager',
      commonLabels: { alertname: 'CinnabarNotifierFails', notifier: 'outside', severity: 'warning' },
      commonAnnotations: { summary: expect.stringMatching(/ tells nobody: nothing is sent: no rules are evaluated$/) },
    })
    const asked = async (path: string, user: string): Promise<Json> => {
      const authorization = `Bearer ${await tokenFor(server.root, user, '')}`
      const answer = await fetch(`${server.url}/api/v1/${path}`, { headers: { authorization } })
      return ((await answer.json()) as Json).data
    }
    const { alerts } = await asked('alerts', 'root')
    expect(alerts).toMatchObject([
      {
        state: 'firing',
        labels: { alertname: 'CinnabarNotifierFails', notifier: 'outside', severity: 'warning' },
        annotations: { summary: expect.stringContaining('no rules are evaluated') },
      },
    ])
    expect((await asked('rules', 'root')).groups).toMatchObject([{ name: 'notifiers', file: 'notify' }])
    await done(server.root, 'role.deny', { role: 'limited', command: 'COLLECT', object: 'alert' })
    await producer.addUser('bob', { role: 'limited' })
    expect(await asked('alerts', 'bob')).toEqual({ alerts: [] })
    const [outside, pager] = decoded(await server.root.query('producer.notifiers'))
    expect(outside).toMatchObject({ name: 'outside', problem: 'nothing is sent: no rules are evaluated' })
    expect(producer.clock.microseconds() - Number(outside.failing_since)).toBeGreaterThanOrEqual(300_000_000)
    expect(pager).toMatchObject({ name: 'pager', problem: '', failing_since: 0 })
  } finally {
    await server.stop()
    receiver.closeAllConnections()
    receiver.close()
  }
})
