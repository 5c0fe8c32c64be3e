/** The HTTP listeners: health, pages, and the Monitoring Protocol over WebSocket at /monitor [MON 13]. */
import { createServer, type RequestListener, type Server, type ServerOptions } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { TLSSocket } from 'node:tls'
import websocket from '@fastify/websocket'
import Fastify, { type FastifyInstance } from 'fastify'
import { isLoopback } from '../../../auth/network.ts'
import type { Address } from '../../core/address.ts'
import { listenError } from '../../core/listen.ts'
import type { OpenListener } from '../tcp.ts'
import type { TlsFiles } from '../tls/files.ts'
import { peerFacts } from '../tls/peer.ts'
import { acceptWebSocket, chooseSubprotocol, type WebSocketOptions } from '../websocket.ts'
import { hardenHttp, originProblem } from './hardening.ts'
import { type PagesOptions, servePages } from './pages.ts'

/** Time from connecting to the end of a request, as from connecting to AUTH [MON 11]; checked at this interval. */
const REQUEST_MS = 10_000
const CHECK_MS = 1_000
/** A peer that takes no byte for this long while bytes wait is disconnected [MON 15]; a WebSocket has a rule of its own. */
const STALL_MS = 30_000
/** Bytes of the URL and headers of a request; a longer one is answered with 431. */
const MAX_HEADER_BYTES = 8192

const LIMITS: ServerOptions = {
  requestTimeout: REQUEST_MS,
  headersTimeout: REQUEST_MS,
  connectionsCheckingInterval: CHECK_MS,
  maxHeaderSize: MAX_HEADER_BYTES,
}

/** A message contains commands: a frame of 1 MiB, or the same amount of JSON. */
const MAX_MESSAGE_BYTES = (1 << 20) + 4
/** Each piece of an incomplete message costs an object; these allow 1 MiB in fragments of 64 bytes, or in chunks of 256. */
const MAX_FRAGMENTS = 1 << 14
const MAX_CHUNKS = 1 << 12
/** No request has a body. */
const MAX_BODY_BYTES = 1024
const HEALTH_PATHS = ['/healthz', '/readyz']

export interface Health {
  /** The reason why the server is not ready; undefined if it is ready. */
  unready(): string | undefined
}

export interface HttpOptions extends WebSocketOptions {
  readonly address: Address
  /** The key of the configuration. */
  readonly key: 'listen.http' | 'listen.https'
  /** The certificate of `listen.https`; undefined for `listen.http`. */
  readonly tls?: TlsFiles | undefined
  readonly requestsPerMinute: number
  readonly allowedOrigins: readonly string[]
  readonly pages: PagesOptions
  readonly health: Health
  /** Called when the server itself failed to accept a WebSocket. */
  readonly failed: (error: Error) => void
}

/** Rejects with ListenError. */
export async function listenHttp(options: HttpOptions): Promise<OpenListener> {
  const { tls, pages } = options
  const app = Fastify({
    logger: false,
    bodyLimit: MAX_BODY_BYTES,
    forceCloseConnections: true,
    serverFactory: (listener) => createHttpServer(listener, tls),
  })
  await hardenHttp(app, {
    encrypted: tls !== undefined,
    hasPages: pages.directory !== undefined,
    requestsPerMinute: options.requestsPerMinute,
    healthPaths: HEALTH_PATHS,
  })
  // Before the WebSocket plugin, which takes the upgrade of every route that is registered after it.
  serveHealth(app, options.health)
  await servePages(app, pages)
  await app.register(websocket, {
    options: {
      maxPayload: MAX_MESSAGE_BYTES,
      maxFragments: MAX_FRAGMENTS,
      maxBufferedChunks: MAX_CHUNKS,
      perMessageDeflate: false,
      handleProtocols: chooseSubprotocol,
    },
    // After a fault of the peer the library already closes the connection with a reason.
    errorHandler(error, socket) {
      if (socket.readyState !== socket.OPEN) return
      options.failed(error)
      socket.terminate()
    },
  })
  monitor(app, options)
  try {
    await app.listen({ host: options.address.host, port: options.address.port })
  } catch (error) {
    await app.close()
    throw listenError(error, options.address, options.key)
  }
  return { address: addressOf(app) ?? options.address, close: () => app.close() }
}

function addressOf(app: FastifyInstance): Address | undefined {
  const at = app.server.address()
  return at !== null && typeof at === 'object' ? { host: at.address, port: at.port } : undefined
}

function monitor(app: FastifyInstance, options: HttpOptions): void {
  app.get(
    '/monitor',
    {
      websocket: true,
      preValidation: async (request, reply) => {
        // URLs are in the logs of every proxy on the way.
        if (request.url.includes('?')) {
          return reply.code(400).send({ error: 'a token or password does not belong in a URL: send it with AUTH' })
        }
        const { origin, host } = request.headers
        const problem = originProblem(origin, host, options.tls !== undefined, options.allowedOrigins)
        if (problem !== undefined) return reply.code(403).send({ error: problem })
        if (chooseSubprotocol(protocolsOf(request.headers['sec-websocket-protocol'])) === false) {
          return reply.code(400).send({ error: 'ask for the subprotocol monitoring.xdr or monitoring.json' })
        }
      },
    },
    (socket, request) => {
      // The address that is bound, because the configuration may contain a name.
      const loopback = isLoopback(addressOf(app)?.host ?? '')
      const { socket: stream } = request
      const facts = options.tls && stream instanceof TLSSocket ? peerFacts(stream, options.tls) : { encrypted: false }
      const peer = { address: stream.remoteAddress ?? '', loopback, encrypted: false, ...facts }
      acceptWebSocket({ socket, stream, peer }, options)
    },
  )
}

function protocolsOf(header: string | undefined): Set<string> {
  return new Set((header ?? '').split(',').map((name) => name.trim()))
}

/** Serves /healthz: the process answers; and /readyz: it also accepts and stores values. */
function serveHealth(app: FastifyInstance, { unready }: Health): void {
  app.get('/healthz', () => ({ status: 'ok' }))
  app.get('/readyz', (_request, reply) => {
    const reason = unready()
    return reason === undefined ? { status: 'ready' } : reply.code(503).send({ status: 'not ready', reason })
  })
}

/** Node's server below fastify, with or without TLS, and its limits. */
export function createHttpServer(listener: RequestListener, tls: TlsFiles | undefined): Server {
  // Node drops its timeout when a connection is upgraded; a WebSocket removes this one again.
  return createLimitedServer(listener, tls)
    .setTimeout(STALL_MS)
    .on('upgrade', ({ socket }) => socket.setTimeout(STALL_MS, () => socket.destroy()))
}

function createLimitedServer(listener: RequestListener, tls: TlsFiles | undefined): Server {
  if (tls === undefined) return createServer(LIMITS, listener)
  const server = createSecureServer({ ...LIMITS, ...tls.options, handshakeTimeout: REQUEST_MS }, listener)
  tls.onRenewal((options) => server.setSecureContext(options))
  return server
}
