/**
 * A port of loopback for a server that has to be named before it listens, or that comes back to its port after a kill. Where a
 * program can say which port it got, it listens on port 0 instead.
 *
 * A port that is only looked at may be gone when it is used. This one is reserved, until this process ends:
 * - The kernel gives the name of an abstract socket to one process of a network namespace, as it does with a port. Whoever has the
 *   name of a port may use the port: no other worker does, and no other run of the tests on this machine. When the process ends,
 *   however it does, the kernel takes the name back.
 * - The ports are below those that Linux gives to whoever asks for any (net.ipv4.ip_local_port_range), so that no connection and
 *   no server on port 0 gets one while the server that it is for is down.
 * - A port that another program of this machine listens on is passed over; such a program does not come and go.
 */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer, type ListenOptions } from 'node:net'

const FIRST = 10_000
const PORTS = 22_000
const HOST = '127.0.0.1'

/** For TCP and for UDP. `inARow`: that many ports, of which this is the first. */
export async function freePort(inARow = 1): Promise<number> {
  for (;;) {
    const first = FIRST + Math.floor(Math.random() * (PORTS - inARow))
    const row = Array.from({ length: inARow }, (_, index) => first + index)
    const areFree = await Promise.all(row.map(async (port) => (await isReserved(port)) && (await isUnused(port))))
    if (areFree.every(Boolean)) return first
  }
}

/** The socket stays open, and keeps neither this process nor a test from ending. */
async function isReserved(port: number): Promise<boolean> {
  return (await listening({ path: `\0cinnabar-test-port-${port}` })) !== undefined
}

async function isUnused(port: number): Promise<boolean> {
  const server = await listening({ host: HOST, port })
  if (server === undefined) return false
  await new Promise((resolve) => server.close(resolve))
  return isUnusedByUdp(port)
}

async function listening(where: ListenOptions): Promise<ReturnType<typeof createServer> | undefined> {
  const server = createServer().unref().listen(where)
  return succeeds(once(server, 'listening')).then((isOpen) => (isOpen ? server : undefined))
}

async function isUnusedByUdp(port: number): Promise<boolean> {
  const socket = createSocket('udp4').bind(port, HOST)
  const isOpen = await succeeds(once(socket, 'listening'))
  await new Promise<void>((resolve) => socket.close(resolve))
  return isOpen
}

async function succeeds(attempt: Promise<unknown>): Promise<boolean> {
  return attempt.then(
    () => true,
    () => false,
  )
}
