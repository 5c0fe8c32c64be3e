import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { afterEach, expect, it, vi } from 'vitest'
import { parseDestination } from '../../../../server/edge/outbound/destination.ts'
import { openConnection } from '../../../../server/edge/outbound/open-connection.ts'
import { hex } from '../../../support/bytes.ts'
import { Authority } from '../../../support/certificates.ts'
import { FakeClock } from '../../../support/fake-clock.ts'
import { Callee } from './callee.ts'

afterEach(() => void vi.unstubAllEnvs())

const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'

it('a consumer that answers with a broken frame right after the handshake loses its connection, and nothing else', async () => {
  const server = createServer((socket) => {
    let head = ''
    socket.on('error', () => {})
    socket.on('data', (chunk) => {
      head += chunk.toString('latin1')
      const key = /Sec-WebSocket-Key: (.*)\r\n/i.exec(head)?.[1]
      if (key === undefined || !head.includes('\r\n\r\n')) return
      const accept = createHash('sha1')
        .update(key + GUID)
        .digest('base64')
      const lines = ['HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket', 'Connection: Upgrade']
      lines.push(`Sec-WebSocket-Accept: ${accept}`, 'Sec-WebSocket-Protocol: monitoring.xdr', '', '')
      // RSV2 and RSV3 are set.
      socket.write(Buffer.concat([Buffer.from(lines.join('\r\n')), hex('ffff00ff')]))
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const destination = parseDestination(`ws://127.0.0.1:${port}/`)
  const caller = { clock: new FakeClock(), ca: undefined }
  // An error that nobody hears would end the test run.
  const reached = await openConnection(destination, '127.0.0.1', caller, new AbortController().signal)
  const closed = new Promise<void>((resolve) => {
    reached.handOver(({ link }) => link.listen({ data() {}, finished() {}, closed: resolve }))
  })
  await closed
  expect(reached.socket.destroyed).toBe(true)
  await new Promise((resolve) => server.close(resolve))
})

it.each(['tls', 'wss'])('no environment variable makes %s accept a certificate of somebody else', async (scheme) => {
  vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0')
  const stranger = await (await Authority.make()).server()
  const callee = await Callee.listen('127.0.0.1', 0, stranger)
  const destination = parseDestination(`${scheme}://127.0.0.1:${callee.port}`)
  const caller = { clock: new FakeClock(), ca: undefined }
  const attempt = openConnection(destination, '127.0.0.1', caller, new AbortController().signal)
  await expect(attempt).rejects.toThrow('unable to verify the first certificate')
  await callee.close()
})
