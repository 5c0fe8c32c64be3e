/**
 * What waits for approval is told to a real receiver by a real server that is killed after each step: nothing is lost, an end comes after
 * its beginning, and what is sent twice has the same key.
 */
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, it } from 'vitest'
import { askFor, done } from '../support/administration.ts'
import { eventually } from '../support/eventually.ts'
import { isLong } from '../support/long.ts'
import { decoded, type Json } from '../support/records.ts'
import { PASSWORD, ServerProcess } from '../support/server-process.ts'

const ROUNDS = isLong ? 20 : 3

let server: ServerProcess | undefined
let receiver: Server | undefined

afterEach(async () => {
  await server?.remove()
  receiver?.closeAllConnections()
  receiver?.close()
})

it('each approval that waits is told, and how it has ended, over kills of the server', async () => {
  const taken: { readonly key: string; readonly body: Json }[] = []
  let status = 200
  receiver = createServer(async (request, response) => {
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part as Buffer)
    const body = JSON.parse(Buffer.concat(parts).toString()) as Json
    if (status === 200) taken.push({ key: String(request.headers['idempotency-key']), body })
    response.writeHead(status).end()
  })
  receiver.listen(0, '127.0.0.1')
  await once(receiver, 'listening')
  const { port } = receiver.address() as AddressInfo
  server = new ServerProcess(
    '[[exec]]\nname = "exec.true"\nargv = ["true"]\ndry_run_argv = ["echo", "nothing"]\n' +
      `[[notify]]\nname = "leads"\nurl = "webhook+http://127.0.0.1:${port}/"\nrole = "lead"\napprovals = true\ngroup_interval = "0s"\n`,
  )
  await server.start()
  const root = await server.seat()
  await done(root, 'role.allow', { role: 'lead', command: 'COLLECT', object: 'host.*' })
  for (const [user, role] of Object.entries({ op: 'operator', lead: 'lead' }))
    await done(root, 'user.add', { user, role, password: PASSWORD })
  await done(root, 'role.allow', { role: 'operator', command: 'EXECUTE', object: 'exec.*', approval: 'lead' })

  const killed = async (running: ServerProcess): Promise<void> => {
    await running.end('SIGKILL')
    await running.start()
  }
  /** What was taken of one, in order. */
  const statesOf = (id: string): string[] =>
    taken.flatMap(({ body }) =>
      body.alerts.filter(({ labels }: Json) => labels.id === id).map(({ status }: Json) => String(status)),
    )
  const ids: string[] = []
  for (let round = 0; round < ROUNDS; round++) {
    // In every other round nobody takes anything until after the kill.
    status = round % 2 === 0 ? 200 : 503
    await askFor(await server.seat('op'), 'exec.true')
    await killed(server)
    status = 200
    const lead = await server.seat('lead')
    const [waiting] = decoded(await lead.query('producer.approvals'))
    const id = String(waiting?.id)
    ids.push(id)
    await eventually(() => expect(statesOf(id)).toContain('firing'))
    await eventually(async () => {
      expect(decoded(await lead.query('producer.approvals'))[0]?.dry_run).toBeDefined()
    })
    status = round % 2 === 0 ? 503 : 200
    await done(lead, 'control.approve', { id })
    await killed(server)
    status = 200
    await eventually(() => expect(statesOf(id)).toContain('resolved'))
  }
  expect(new Set(ids).size).toBe(ROUNDS)
  for (const id of ids) expect([...new Set(statesOf(id))]).toEqual(['firing', 'resolved'])
  const bodies = new Map<string, Json>()
  for (const { key, body } of taken) {
    expect(bodies.get(key) ?? body).toEqual(body)
    bodies.set(key, body)
  }
  // Each with another key was made once: two for each that has waited.
  expect(bodies.size).toBe(2 * ROUNDS)
})
