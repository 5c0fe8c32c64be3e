import { once } from 'node:events'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createHttpServer } from '../../../../server/edge/http/app.ts'

const server = createHttpServer(() => {}, undefined)
beforeAll(() => new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve)))
afterAll(() => server.close())

it.each([
  ['whose answer is not taken', 'GET / HTTP/1.1\r\nHost: x\r\n\r\n', 'request'],
  [
    'whose upgrade came to nothing',
    'GET / HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n',
    'upgrade',
  ],
])('a connection %s is closed when nothing has moved on it for 30 s', async (_, asked, event) => {
  const arrived = once(server, 'connection') as Promise<[Socket]>
  const answering = once(server, event)
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => {})
  client.write(asked)
  const [socket] = await arrived
  await answering
  expect(socket.timeout).toBe(30_000)
  socket.emit('timeout')
  expect(socket.destroyed).toBe(true)
  client.destroy()
})
