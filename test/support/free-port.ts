/** A port for a server that has to be named before it listens. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer } from 'node:net'

/** Below the ports that Linux gives to whoever asks for any: nobody gets one of these while its server is not up. */
const FIRST = 10_000
/** Each process of vitest has a share of its own: two that run at the same time never choose the same one. */
const SHARE = 2_750
const SHARES = 8
/** A test with three nodes has twenty of them, most of which nobody listens on yet: two would be the same in every fifteenth run. */
const given = new Set<number>()

/** A port of loopback that nobody has just now, neither for TCP nor for UDP, and that this process has not given before. */
export async function freePort(): Promise<number> {
  const share = (Number(process.env['VITEST_POOL_ID'] ?? 0) % SHARES) * SHARE
  if (given.size > SHARE / 2) given.clear()
  for (;;) {
    const port = FIRST + share + Math.floor(Math.random() * SHARE)
    if (given.has(port)) continue
    given.add(port)
    if ((await isFreeForTcp(port)) && (await isFreeForUdp(port))) return port
  }
}

async function isFreeForTcp(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1')
  const isFree = await succeeds(once(server, 'listening'))
  if (isFree) await new Promise((resolve) => server.close(resolve))
  return isFree
}

async function isFreeForUdp(port: number): Promise<boolean> {
  const socket = createSocket('udp4').bind(port, '127.0.0.1')
  const isFree = await succeeds(once(socket, 'listening'))
  await new Promise<void>((resolve) => socket.close(resolve))
  return isFree
}

async function succeeds(attempt: Promise<unknown>): Promise<boolean> {
  return attempt.then(
    () => true,
    () => false,
  )
}
