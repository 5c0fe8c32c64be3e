/** The HTTP side: health, and the Monitoring Protocol over WebSocket at /monitor [MON 13]. */
import websocket from '@fastify/websocket'
import Fastify, { type FastifyInstance } from 'fastify'
import { isLoopback } from '../../auth/throttle.ts'
import type { Address } from '../config.ts'
import { listenError } from '../listeners/errors.ts'
import type { Listening } from '../listeners/tcp.ts'
import { acceptWebSocket, chooseSubprotocol } from '../listeners/websocket.ts'
import type { Arrival } from '../sessions/sessions.ts'
import { type Health, health } from './health.ts'
import { originProblem } from './origin.ts'

/** A message carries commands: one frame of 1 MiB, or as much JSON. */
const MAX_MESSAGE_BYTES = (1 << 20) + 4

export interface HttpOptions {
  readonly address: Address
  readonly allowedOrigins: readonly string[]
  readonly accept: (arrival: Arrival) => void
  readonly health: Health
}

/** Rejects with ListenError. */
export async function listenHttp(options: HttpOptions): Promise<Listening> {
  const app = Fastify({ logger: false, bodyLimit: 1 << 16, forceCloseConnections: true })
  await app.register(websocket, {
    options: {
      maxPayload: MAX_MESSAGE_BYTES,
      perMessageDeflate: false,
      handleProtocols: chooseSubprotocol,
    },
    errorHandler: (_error, socket) => socket.terminate(),
  })
  health(app, options.health)
  monitor(app, options)
  try {
    await app.listen({ host: options.address.host, port: options.address.port })
  } catch (error) {
    await app.close()
    throw listenError(error, options.address, 'listen.http')
  }
  const at = app.server.address()
  const address = at !== null && typeof at === 'object' ? { host: at.address, port: at.port } : options.address
  return { address, close: () => app.close() }
}

function monitor(app: FastifyInstance, { address, allowedOrigins, accept }: HttpOptions): void {
  const loopback = isLoopback(address.host)
  app.get(
    '/monitor',
    {
      websocket: true,
      preValidation: async (request, reply) => {
        const problem = originProblem(request.headers.origin, request.headers.host, allowedOrigins)
        if (problem !== undefined) return reply.code(403).send({ error: problem })
        if (chooseSubprotocol(protocolsOf(request.headers['sec-websocket-protocol'])) === false) {
          return reply.code(400).send({ error: 'ask for the subprotocol monitoring.xdr or monitoring.json' })
        }
      },
    },
    (socket, request) =>
      acceptWebSocket(socket, { address: request.socket.remoteAddress ?? '', loopback, encrypted: false }, accept),
  )
}

function protocolsOf(header: string | undefined): Set<string> {
  return new Set((header ?? '').split(',').map((name) => name.trim()))
}
