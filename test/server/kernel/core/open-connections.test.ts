/** The end of a listener, whose connections may be those of peers that take nothing. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { OpenConnections } from '../../../../server/kernel/core/open-connections.ts'
import { FakeClock } from '../../../support/fake-clock.ts'

/** More than the system keeps of what a peer does not read. */
const MUCH = Buffer.alloc(64 * 2 ** 20)

let server: Server
let clock: FakeClock
let open: OpenConnections
const peers: Socket[] = []

beforeEach(async () => {
  clock = new FakeClock()
  open = new OpenConnections(clock)
  server = createServer((socket) => open.add(socket.on('error', () => {}))).listen(0, '127.0.0.1')
  await once(server, 'listening')
})

afterEach(() => {
  for (const peer of peers.splice(0)) peer.destroy()
  server.close()
})

/** A peer that reads nothing, and the server's side of its connection. */
async function connected(): Promise<Socket> {
  const accepted = once(server, 'connection')
  peers.push(connect((server.address() as AddressInfo).port, '127.0.0.1').pause())
  const [socket] = (await accepted) as [Socket]
  return socket
}

const closed = (): Promise<void> => new Promise((resolve) => server.close(() => resolve()))

it('cuts off a peer that takes nothing, after two seconds', async () => {
  const socket = await connected()
  socket.write(MUCH)
  const ended = open.end(closed())
  socket.end()
  clock.advance(1_999)
  expect(socket.destroyed).toBe(false)
  clock.advance(1)
  expect(socket.destroyed).toBe(true)
  await ended
})

it('waits for nobody when all have ended', async () => {
  const socket = await connected()
  socket.destroy()
  await once(socket, 'close')
  await expect(open.end(closed())).resolves.toBeUndefined()
})
