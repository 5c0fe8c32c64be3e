/** The HTTP side: health, pages, and the Monitoring Protocol over WebSocket at /monitor [MON 13]. */
import { TLSSocket } from 'node:tls'
import websocket from '@fastify/websocket'
import Fastify, { type FastifyInstance } from 'fastify'
import { isLoopback } from '../../../auth/network.ts'
import type { Address } from '../../core/address.ts'
import { listenError } from '../../core/listen.ts'
import type { Listening } from '../tcp.ts'
import type { TlsFiles } from '../tls/files.ts'
import { peerFacts } from '../tls/peer.ts'
import { acceptWebSocket, chooseSubprotocol, type WebSocketOptions } from '../websocket.ts'
import { HEALTH_PATHS, type Health, health } from './health.ts'
import { makeHttpServer } from './http-server.ts'
import { keepClean } from './hygiene.ts'
import { originProblem } from './origin.ts'
import { type PagesOptions, servePages } from './pages.ts'

/** A message carries commands: one frame of 1 MiB, or as much JSON. */
const MAX_MESSAGE_BYTES = (1 << 20) + 4
/** Each piece of a message that is not whole costs an object: 1 MiB in fragments of 64 bytes, in segments of 256. */
const MAX_FRAGMENTS = 1 << 14
const MAX_CHUNKS = 1 << 12
/** No request has a body. */
const MAX_BODY_BYTES = 1024

export interface HttpOptions extends WebSocketOptions {
  readonly address: Address
  /** Of the configuration. */
  readonly key: 'listen.http' | 'listen.https'
  /** Of `https`. */
  readonly tls?: TlsFiles | undefined
  readonly requestsPerMinute: number
  readonly allowedOrigins: readonly string[]
  readonly pages: PagesOptions
  readonly health: Health
  /** Something of ours failed while a connection was taken. */
  readonly failed: (error: Error) => void
}

/** Rejects with ListenError. */
export async function listenHttp(options: HttpOptions): Promise<Listening> {
  const { tls, pages } = options
  const app = Fastify({
    logger: false,
    bodyLimit: MAX_BODY_BYTES,
    forceCloseConnections: true,
    serverFactory: (listener) => makeHttpServer(listener, tls),
  })
  await keepClean(app, {
    encrypted: tls !== undefined,
    hasPages: pages.directory !== undefined,
    requestsPerMinute: options.requestsPerMinute,
    healthPaths: HEALTH_PATHS,
  })
  // Before the plugin: it takes the upgrade of every route that comes behind it.
  health(app, options.health)
  await servePages(app, pages)
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
        // What stands in a URL stands in the logs of every proxy on the way.
        if (request.url.includes('?')) {
          return reply.code(400).send({ error: 'a URL is no place for a token or password: send it with AUTH' })
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
      // What the listener is bound to: a name in the configuration says nothing.
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
