import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { expect, it } from 'vitest'
import { Pace } from '../../../../server/edge/http/pace.ts'

const PER_TURN = 8

it('begins few requests in a turn, in their order, and nothing goes on when none waits', () => {
  const turns: (() => void)[] = []
  const pace = new Pace((turn) => turns.push(turn))
  const begun: number[] = []
  for (let request = 0; request < 20; request++) pace.begin(() => begun.push(request))
  expect(begun).toEqual(Array.from({ length: PER_TURN }, (_, request) => request))
  turns.shift()?.()
  expect(begun).toHaveLength(2 * PER_TURN)
  turns.shift()?.()
  expect(begun).toEqual(Array.from({ length: 20 }, (_, request) => request))
  // One more, which finds that its turn has room.
  pace.begin(() => begun.push(20))
  expect(begun).toHaveLength(21)
  turns.shift()?.()
  expect(turns).toEqual([])
})

it('does not begin a request inside of one that begins in the same turn beyond their number', () => {
  const turns: (() => void)[] = []
  const pace = new Pace((turn) => turns.push(turn))
  let begun = 0
  const again = (): void => {
    if (++begun < 30) pace.begin(again)
  }
  pace.begin(again)
  expect(begun).toBe(PER_TURN)
  while (turns.length > 0) turns.shift()?.()
  expect(begun).toBe(30)
})

it('drops a request whose connection has ended while it waited', async () => {
  const turns: (() => void)[] = []
  const pace = new Pace((turn) => turns.push(turn))
  for (let request = 0; request < PER_TURN; request++) pace.begin(() => {})
  const handled: (string | undefined)[] = []
  const listener = pace.paced((request, response) => {
    handled.push(request.url)
    response.end()
  })
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const ask = async (path: string): Promise<readonly [Socket, IncomingMessage]> => {
    const socket = connect(port, '127.0.0.1')
    socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
    const [request, response] = (await once(server, 'request')) as [IncomingMessage, ServerResponse]
    listener(request, response)
    return [socket, request]
  }
  const [gone, request] = await ask('/gone')
  const [stays] = await ask('/stays')
  const closed = once(request.socket, 'close')
  gone.destroy()
  await closed
  const answered = once(stays, 'data')
  turns.shift()?.()
  expect(handled).toEqual(['/stays'])
  expect(String((await answered)[0])).toMatch(/^HTTP\/1.1 200 /)
  stays.destroy()
  server.close()
})
