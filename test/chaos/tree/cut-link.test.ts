/** A link is cut by what passes over all of its connections, so that a slow run has its cuts, too. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Random } from '../../support/random.ts'
import { CutLink } from './cut-link.ts'

const SEED = 3
/** What a connection carries in one direction: less than any link lets pass before its first cut, in most cases. */
const BYTES = Buffer.alloc(100, 7)
/** More than the first cut may be away. */
const CONNECTIONS = 200

let echo: Server
let link: CutLink

beforeEach(async () => {
  echo = createServer((socket) => void socket.on('error', () => {}).pipe(socket))
  echo.listen(0, '127.0.0.1')
  await once(echo, 'listening')
  link = await CutLink.open((echo.address() as AddressInfo).port, new Random(SEED))
})

afterEach(() => {
  link.close()
  echo.close()
})

/** A connection that sends its bytes and waits until they are back, or it has ended. Gives how many came back. */
async function carry(): Promise<number> {
  const socket: Socket = connect({ host: '127.0.0.1', port: link.port })
  let came = 0
  const over = new Promise<void>((resolve) => {
    socket.on('error', () => {})
    socket.on('close', () => resolve())
    socket.on('data', (chunk: Buffer) => {
      came += chunk.length
      if (came === BYTES.length) socket.destroy()
    })
  })
  socket.write(BYTES)
  await over
  return came
}

test('connections each of which carries little are cut all the same', async () => {
  link.isCutting = true
  let isShort = false
  for (let made = 0; made < CONNECTIONS && link.cuts === 0; made++) isShort = (await carry()) < BYTES.length
  expect(link.cuts).toBe(1)
  expect(isShort).toBe(true)
})

test('nothing is cut as long as the link is not cutting', async () => {
  for (let made = 0; made < CONNECTIONS; made++) expect(await carry()).toBe(BYTES.length)
  expect(link.cuts).toBe(0)
})
