import type { Socket } from 'node:dgram'
import { EventEmitter } from 'node:events'
import { expect, it } from 'vitest'
import { NodeSocket } from '../../../../../server/kit/io/datagrams/node-socket.ts'

it('drops and counts datagrams that find no room', () => {
  const raw = Object.assign(new EventEmitter(), { address: () => ({ address: '127.0.0.1', port: 8649 }) })
  let received = 0
  const failed = (error: Error): never => expect.unreachable(error.message)
  const socket = new NodeSocket(raw as unknown as Socket, { received: () => void received++, failed })
  const come = (port: number, bytes = 1) =>
    raw.emit('message', Buffer.alloc(bytes), { address: '127.0.0.1', port, family: 'IPv4', size: bytes })
  for (let port = 0; port < 5000; port++) come(port)
  expect([received, socket.dropped]).toEqual([4096, 5000 - 4096])
  for (let port = 0; port < 4096; port++) expect(socket.next()?.port).toBe(port)
  expect([socket.isEmpty, socket.next()]).toEqual([true, undefined])
  for (let n = 0; n < 100; n++) come(n, 60_000)
  expect(socket.dropped).toBe(5000 - 4096 + 100 - 70)
})
