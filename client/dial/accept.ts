/** The listening socket for producers that connect to us [MON 14], over TCP or TLS. They prove their identity later. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer, type TLSSocket } from 'node:tls'
import { ConnectionError } from '../errors.ts'
import type { OpenInboundListener } from '../listen.ts'
import type { TlsOptions, TransportSecurity } from '../transport.ts'
import { deflatable } from './deflate.ts'
import { exporterOf, SOCKET_OPTIONS, securityOf, streamTransport } from './stream.ts'
import { readPem } from './tls.ts'
import { hostOf, parseUrl } from './url.ts'

const HANDSHAKE_MS = 10_000

/** Throws ConnectionError BAD_URL, BAD_TLS, UNREACHABLE. */
export const openInboundListener: OpenInboundListener = async (text, { tls, wrap = [] }, accepted, refused) => {
  const url = parseUrl(text, ['tcp:', 'tls:'])
  if (url.port === '') throw new ConnectionError('BAD_URL', `${url.href} has no port; port 0 takes a free one`)
  const accept = (socket: Socket, security: TransportSecurity) => {
    const from = `${socket.remoteAddress ?? 'an unknown address'}:${socket.remotePort ?? 0}`
    const transport = streamTransport(socket, security)
    accepted(wrap.includes('deflate') ? deflatable(transport) : transport, from)
  }
  const server =
    url.protocol === 'tls:'
      ? (await tlsServer(url, tls)).on('secureConnection', (socket: TLSSocket) =>
          // Somebody in between would need our key: the producer has verified our certificate.
          accept(socket, { ...securityOf(socket), encrypted: true, exporter: exporterOf(socket) }),
        )
      : createServer(SOCKET_OPTIONS, (socket) => accept(socket, securityOf(socket)))
  server.on('tlsClientError', (cause: Error) => {
    refused(
      new ConnectionError('UNREACHABLE', `${text}: the TLS handshake of a connection failed: ${cause.message}`, {
        cause,
      }),
    )
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
    throw new ConnectionError('BAD_TLS', `${url.href}: listening for TLS needs \`tls.cert\` and \`tls.key\``)
  }
  const pem = await readPem({ ca, cert, key })
  const clients = { requestCert: ca !== undefined, rejectUnauthorized: ca !== undefined && rejectUnauthorized }
  try {
    return createTlsServer({
      ...pem,
      ...clients,
      ...SOCKET_OPTIONS,
      minVersion: 'TLSv1.2',
      handshakeTimeout: HANDSHAKE_MS,
    })
  } catch (error) {
    throw new ConnectionError('BAD_TLS', `${url.href}: ${(error as Error).message}`, { cause: error })
  }
}

async function listening(server: Server, url: URL): Promise<void> {
  try {
    server.listen(Number(url.port), hostOf(url))
    await once(server, 'listening')
  } catch (error) {
    const why = (error as Error).message
    throw new ConnectionError('UNREACHABLE', `cannot listen on ${url.href}: ${why}`, { cause: error })
  }
}
