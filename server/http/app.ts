/** The HTTP side: health, pages, and the Monitoring Protocol over WebSocket at /monitor [MON 13]. */
import websocket from '@fastify/websocket'
import Fastify, { type FastifyInstance } from 'fastify'
import { isLoopback } from '../../auth/throttle.ts'
import type { Address } from '../config.ts'
import { listenError } from '../listeners/errors.ts'
import type { Listening } from '../listeners/tcp.ts'
import { acceptWebSocket, chooseSubprotocol, type WebSocketOptions } from '../listeners/websocket.ts'
import { type Health, health } from './health.ts'
import { originProblem } from './origin.ts'
import { type PagesOptions, servePages } from './pages.ts'

/** A message carries commands: one frame of 1 MiB, or as much JSON. */
const MAX_MESSAGE_BYTES = (1 << 20) + 4
/** Each piece of a message that is not whole costs an object: 1 MiB in fragments of 64 bytes, in segments of 256. */
const MAX_FRAGMENTS = 1 << 14
const MAX_CHUNKS = 1 << 12
/** From connecting to the end of a request, as from connecting to AUTH [MON 11]; looked at so often. */
const REQUEST_MS = 10_000
const LOOK_MS = 1_000

export interface HttpOptions extends WebSocketOptions {
  readonly address: Address
  readonly allowedOrigins: readonly string[]
  readonly pages: PagesOptions
  readonly health: Health
  /** Something of ours failed while a connection was taken. */
  readonly failed: (error: Error) => void
}

/** Rejects with ListenError. */
export async function listenHttp(options: HttpOptions): Promise<Listening> {
  const app = Fastify({
    logger: false,
    bodyLimit: 1 << 16,
    forceCloseConnections: true,
    requestTimeout: REQUEST_MS,
    http: { headersTimeout: REQUEST_MS, connectionsCheckingInterval: LOOK_MS },
  })
  // Before the plugin: it takes the upgrade of every route that comes behind it.
  health(app, options.health)
  await servePages(app, options.pages)
  await app.register(websocket, {
    options: {
      maxPayload: MAX_MESSAGE_BYTES,
      maxFragments: MAX_FRAGMENTS,
      maxBufferedChunks: MAX_CHUNKS,
      perMessageDeflate: false,
      handleProtocols: chooseSubprotocol,
    },
    // After a fault of the peer the library is closing already, and says why.
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
    throw listenError(error, options.address, 'listen.http')
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
        const problem = originProblem(request.headers.origin, request.headers.host, options.allowedOrigins)
        if (problem !== undefined) return reply.code(403).send({ error: problem })
        if (chooseSubprotocol(protocolsOf(request.headers['sec-websocket-protocol'])) === false) {
          return reply.code(400).send({ error: 'ask for the subprotocol monitoring.xdr or monitoring.json' })
        }
      },
    },
    (socket, request) => {
      // What the listener is bound to: a name in the configuration says nothing.
      const loopback = isLoopback(addressOf(app)?.host ?? '')
      const peer = { address: request.socket.remoteAddress ?? '', loopback, encrypted: false }
      acceptWebSocket({ socket, stream: request.socket, peer }, options)
    },
  )
}

function protocolsOf(header: string | undefined): Set<string> {
  return new Set((header ?? '').split(',').map((name) => name.trim()))
}
