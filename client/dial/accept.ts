/** The door through which producers call [MON 14], over TCP or TLS. Who they are is not known here. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer, type TLSSocket } from 'node:tls'
import { ConnectionError } from '../errors.ts'
import type { OpenDoor } from '../listen.ts'
import type { TlsOptions } from '../security.ts'
import { deflatable } from './deflate.ts'
import { readPem } from './pem.ts'
import { exporterOf, type StreamFacts, socketFacts, streamTransport } from './stream.ts'
import { hostOf, KEEP_ALIVE } from './tcp.ts'
import { parseUrl } from './url.ts'

const HANDSHAKE_MS = 10_000

/** Throws ConnectionError BAD_URL, BAD_TLS, UNREACHABLE. */
export const openDoor: OpenDoor = async (text, { tls, wrap = [] }, called, refused) => {
  const url = parseUrl(text, ['tcp:', 'tls:'])
  if (url.port === '') throw new ConnectionError('BAD_URL', `${url.href} names no port; 0 takes any that is free`)
  const take = (socket: Socket, facts: StreamFacts) => {
    const from = `${socket.remoteAddress ?? 'nowhere'}:${socket.remotePort ?? 0}`
    const transport = streamTransport(socket, facts)
    called(wrap.includes('deflate') ? deflatable(transport) : transport, from)
  }
  const server =
    url.protocol === 'tls:'
      ? (await tlsServer(url, tls)).on('secureConnection', (socket: TLSSocket) =>
          // Whoever is between would need our key: the caller has verified our certificate, not we its.
          take(socket, { ...socketFacts(socket), encrypted: true, exporter: exporterOf(socket) }),
        )
      : createServer(KEEP_ALIVE, (socket) => take(socket, socketFacts(socket)))
  server.on('tlsClientError', (cause: Error) => {
    refused(new ConnectionError('UNREACHABLE', `${text}: a call failed at TLS: ${cause.message}`, { cause }))
  })
  await listening(server, url)
  const { address: host, port } = server.address() as AddressInfo
  return {
    address: { host, port },
    close: () => new Promise((resolve) => server.close(() => resolve())),
  }
}

async function tlsServer(url: URL, tls: TlsOptions = {}): Promise<Server> {
  const { ca, cert, key, rejectUnauthorized = true } = tls
  if (cert === undefined || key === undefined) {
    throw new ConnectionError(
      'BAD_TLS',
      `${url.href}: to be called over TLS takes a certificate: \`tls.cert\`, \`tls.key\``,
    )
  }
  const pem = await readPem({ ca, cert, key })
  const callers = { requestCert: ca !== undefined, rejectUnauthorized: ca !== undefined && rejectUnauthorized }
  try {
    return createTlsServer({ ...pem, ...callers, ...KEEP_ALIVE, minVersion: 'TLSv1.2', handshakeTimeout: HANDSHAKE_MS })
  } catch (error) {
    throw new ConnectionError('BAD_TLS', `${url.href}: ${(error as Error).message}`, { cause: error })
  }
}

async function listening(server: Server, url: URL): Promise<void> {
  try {
    server.listen(Number(url.port), hostOf(url))
    await once(server, 'listening')
  } catch (error) {
    throw new ConnectionError('UNREACHABLE', `cannot listen on ${url.href}: ${(error as Error).message}`, {
      cause: error,
    })
  }
}
