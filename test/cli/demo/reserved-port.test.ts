import { once } from 'node:events'
import { createServer } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { ReservedPort } from '../../../cli/demo/reserved-port.ts'

const ports: ReservedPort[] = []
afterEach(() => {
  for (const port of ports.splice(0)) port.release()
})

async function reserved(): Promise<number> {
  const port = await ReservedPort.reserve()
  ports.push(port)
  return port.number
}

/** A server that begins and ends. */
async function listens(port: number): Promise<void> {
  const server = createServer().listen(port, '127.0.0.1')
  await once(server, 'listening')
  await new Promise((resolve) => server.close(resolve))
}

test('a server listens on a port that is reserved for it, and does so again', async () => {
  const port = await reserved()
  await listens(port)
  await listens(port)
})

test('ports that are reserved at the same time differ, and nobody who asks for any port gets one', async () => {
  const held = new Set(await Promise.all(Array.from({ length: 100 }, reserved)))
  expect(held.size).toBe(100)
  const servers = Array.from({ length: 1_000 }, () => createServer().listen(0, '127.0.0.1'))
  await Promise.all(servers.map((server) => once(server, 'listening')))
  const given = servers.map((server) => (server.address() as { port: number }).port)
  expect(given.filter((port) => held.has(port))).toEqual([])
  for (const server of servers) server.close()
})

test('a port that is given back belongs to nobody', async () => {
  const port = await ReservedPort.reserve()
  port.release()
  await listens(port.number)
})
