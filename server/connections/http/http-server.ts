/** Node's server under the HTTP side, with or without TLS, and what it takes of a request before anybody looks at it. */
import { createServer, type RequestListener, type Server, type ServerOptions } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { TlsFiles } from '../tls/files.ts'

/** From connecting to the end of a request, as from connecting to AUTH [MON 11]; looked at so often. */
const REQUEST_MS = 10_000
const LOOK_MS = 1_000
/** A peer that takes no byte for so long while bytes wait is closed [MON 15]; a WebSocket has a rule of its own for that. */
const STALL_MS = 30_000
/** Of a request, its URL and its headers together. More: 431. */
const MAX_HEADER_BYTES = 8192

const LIMITS: ServerOptions = {
  requestTimeout: REQUEST_MS,
  headersTimeout: REQUEST_MS,
  connectionsCheckingInterval: LOOK_MS,
  maxHeaderSize: MAX_HEADER_BYTES,
}

export function makeHttpServer(listener: RequestListener, tls: TlsFiles | undefined): Server {
  // Of a connection that is to be upgraded Node stops thinking; one that becomes a WebSocket takes this off again.
  return makeServer(listener, tls)
    .setTimeout(STALL_MS)
    .on('upgrade', ({ socket }) => socket.setTimeout(STALL_MS, () => socket.destroy()))
}

function makeServer(listener: RequestListener, tls: TlsFiles | undefined): Server {
  if (tls === undefined) return createServer(LIMITS, listener)
  const server = createSecureServer({ ...LIMITS, ...tls.options, handshakeTimeout: REQUEST_MS }, listener)
  tls.follow((options) => server.setSecureContext(options))
  return server
}
