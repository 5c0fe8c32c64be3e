/** A port for a server that has to be named before it listens. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer } from 'node:net'

/** Below the ports that Linux gives to whoever asks for any: nobody gets one of these while its server is not up. */
const FIRST = 10_000
const LAST = 32_000

/** A port of loopback that nobody has just now, neither for TCP nor for UDP. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = FIRST + Math.floor(Math.random() * (LAST - FIRST))
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
