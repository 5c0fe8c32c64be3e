/** The HTTP listeners: health, pages, and the Monitoring Protocol over WebSocket at /monitor [MON 13]. */
import { createServer, type RequestListener, type Server, type ServerOptions } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { Socket } from 'node:net'
import { hostname } from 'node:os'
import { TLSSocket } from 'node:tls'
import websocket from '@fastify/websocket'
import Fastify, { type FastifyInstance } from 'fastify'
import type { AuthPeer } from '../../../auth/mechanism.ts'
import { isLoopback } from '../../../auth/network.ts'
import type { Address, Network } from '../../kernel/core/address.ts'
import type { Clock } from '../../kernel/core/clock.ts'
import { listenError } from '../../kernel/core/listen.ts'
import { OpenConnections } from '../../kernel/core/open-connections.ts'
import type { Admission, ConnectionPlace } from '../../kernel/sessions/admission.ts'
import type { SessionContext } from '../../kernel/sessions/context.ts'
import type { OpenDoor } from '../../kit/door.ts'
import { showPeer, type TakePassed } from '../passed-on.ts'
import type { ConsumerListener } from '../tcp.ts'
import type { TlsFiles } from '../tls/files.ts'
import { forgetVerification, peerFacts } from '../tls/peer.ts'
import { acceptWebSocket, chooseSubprotocol, MESSAGE_LIMITS, type WebSocketOptions } from '../websocket.ts'
import { type AcknowledgingServices, serveAcknowledging } from './acknowledging.ts'
import { hardenHttp, originProblem } from './hardening.ts'
import { type MetricsServices, serveMetrics } from './metrics/route.ts'
import { Pace } from './pace.ts'
import { type PagesOptions, serveConsole, servePages } from './pages.ts'
import { servePublishing } from './publishing.ts'
import { type CatalogueServices, type QueryApi, serveQueries } from './query/route.ts'

/** Time from connecting to the end of a request, as from connecting to AUTH [MON 11]; checked at this interval. */
const REQUEST_MS = 10_000
/** An idle connection takes a place from others. These are the time until the next request, and the requests of a connection. */
const IDLE_MS = 1_000
const MAX_REQUESTS = 100
const CHECK_MS = 1_000
/** A peer that takes no byte for this long while bytes wait is disconnected [MON 15]; a WebSocket has a rule of its own. */
const STALL_MS = 30_000
/** Bytes of the URL and headers of a request; a longer one is answered with 431. */
const MAX_HEADER_BYTES = 8192

const LIMITS: ServerOptions = {
  requestTimeout: REQUEST_MS,
  headersTimeout: REQUEST_MS,
  keepAliveTimeout: IDLE_MS,
  connectionsCheckingInterval: CHECK_MS,
  maxHeaderSize: MAX_HEADER_BYTES,
}

/** Only requests that publish metrics, and forms of queries, have a body, and bounds of their own. */
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
  readonly clock: Pick<Clock, 'setTimeout' | 'setInterval' | 'clear' | 'monotonicMs'>
  readonly requestsPerMinute: number
  readonly allowedOrigins: readonly string[]
  /** Names of this server in addition to those that it knows itself. */
  readonly hosts: readonly string[]
  readonly admission: Admission
  readonly pages: PagesOptions
  /** Whether the console is served. */
  readonly console: boolean
  readonly health: Health
  readonly context: SessionContext & MetricsServices & CatalogueServices & AcknowledgingServices['context']
  /** The networks from which GET /metrics is open, as far as it is. */
  readonly openTo: () => readonly Network[]
  /** Where programs POST metrics. */
  readonly doors: readonly OpenDoor[]
  /** What is asked at /api/v1. */
  readonly queries: QueryApi
  /** What takes acknowledgements of alerts by tokens. */
  readonly acknowledging: AcknowledgingServices['acknowledging']
  /** Called when the server itself failed to accept a WebSocket. */
  readonly failed: (error: Error) => void
}

/** Rejects with ListenError. */
export async function listenHttp(options: HttpOptions): Promise<ConsumerListener> {
  const { tls, pages, doors, context, openTo } = options
  const places: Places = new Map()
  const open = new OpenConnections(options.clock)
  const pace = new Pace()
  const app = Fastify({
    logger: false,
    bodyLimit: MAX_BODY_BYTES,
    forceCloseConnections: true,
    serverFactory: (routing) => {
      const listener = pace.paced(routing)
      return createHttpServer(listener, tls)
        .on('connection', (socket) => {
          open.add(socket)
          admit(socket, places, options.admission)
        })
        .on('checkContinue', (request, response) => {
          // A door says itself when it wants a body.
          if (!doors.some(({ door }) => door.path === request.url)) response.writeContinue()
          listener(request, response)
        })
    },
  })
  // An upgrade does not come through the listener.
  app.addHook('onRequest', ({ headers }, _reply, done) => (headers.upgrade === undefined ? done() : pace.begin(done)))
  await hardenHttp(app, {
    isOwnName: (host) => isOwnName(host, options),
    encrypted: tls !== undefined,
    hasPages: pages.directory !== undefined,
    requestsPerMinute: options.requestsPerMinute,
    healthPaths: HEALTH_PATHS,
  })
  // Before the WebSocket plugin, which takes the upgrade of every route that is registered after it.
  serveHealth(app, options.health)
  const passed: Passed = new Map()
  const peerOf = (socket: Socket): AuthPeer => {
    // The address that is bound, because the configuration may contain a name.
    const isBoundToLoopback = isLoopback(addressOf(app)?.host ?? '')
    const loopback = isBoundToLoopback && !passed.has(socket)
    const nodeLoopback = isBoundToLoopback && passed.get(socket) === true
    const facts = tls && socket instanceof TLSSocket ? peerFacts(socket, tls) : {}
    return { address: socket.remoteAddress ?? '', loopback, nodeLoopback, encrypted: false, ...facts }
  }
  await servePublishing(app, { doors, context, peerOf, clock: options.clock })
  serveMetrics(app, { context, peerOf, openTo })
  await serveQueries(app, { ...options.queries, context, peerOf, stallMs: STALL_MS })
  await serveAcknowledging(app, options)
  await servePages(app, pages)
  if (options.console) await serveConsole(app, pages.directory)
  await app.register(websocket, {
    options: {
      ...MESSAGE_LIMITS,
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
  monitor(app, places, peerOf, options)
  try {
    await app.listen({ host: options.address.host, port: options.address.port })
  } catch (error) {
    await app.close()
    throw listenError(error, options.address, options.key)
  }
  const close = async (): Promise<void> => {
    const closed = app.close()
    for (const socket of passed.keys()) socket.destroy()
    await open.end(closed)
  }
  return { address: addressOf(app) ?? options.address, take: takerOf(app.server, places, passed, options), close }
}

/** Connections that another node passes on, and whether each came to that over loopback. */
type Passed = Map<Socket, boolean>

/** Takes connections that another node passes on, and keeps them in `passed` while they are open. */
function takerOf(server: Server, places: Places, passed: Passed, { tls, admission, clock }: HttpOptions): TakePassed {
  const keep = (socket: Socket, isLocalThere: boolean): void => {
    passed.set(socket, isLocalThere)
    socket.once('close', () => passed.delete(socket))
  }
  return (socket, isLocalThere) => {
    keep(socket, isLocalThere)
    if (tls === undefined) {
      server.emit('connection', socket)
      return
    }
    // The handshake of the server itself would lead to a socket that shows the address of the node.
    admit(socket, places, admission)
    if (socket.destroyed) return
    // As for connections to the listener itself: whoever has ended before the handshake is gone.
    socket.allowHalfOpen = false
    const late = clock.setTimeout(() => socket.destroy(), REQUEST_MS)
    const end = (): void => clock.clear(late)
    socket.once('close', end)
    tls.handshake(socket, (secured) => {
      end()
      showPeer(secured, socket)
      keep(secured, isLocalThere)
      server.emit('secureConnection', secured)
    })
  }
}

function addressOf(app: FastifyInstance): Address | undefined {
  const at = app.server.address()
  return at !== null && typeof at === 'object' ? { host: at.address, port: at.port } : undefined
}

/** The places of the connections of one listener, by the other end's address and port. */
type Places = Map<string, ConnectionPlace>

/** Every connection counts, before TLS and before its first request; a WebSocket takes over the place of its request. */
function admit(socket: Socket, places: Places, admission: Admission): void {
  const place = admission.enter(socket.remoteAddress ?? '', () => socket.destroy())
  if (place === undefined) {
    socket.destroy()
    return
  }
  const end = otherEnd(socket)
  places.set(end, place)
  socket.once('close', () => {
    places.delete(end)
    admission.leave(place)
  })
}

/** The same for a socket and for TLS over it. */
function otherEnd({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`
}

function isOwnName(name: string, { address, hosts, tls }: HttpOptions): boolean {
  const own = ['localhost', hostname(), hostname().split('.')[0], address.host, ...hosts]
  return own.some((each) => each?.toLowerCase() === name) || tls?.isFor(name) === true
}

function monitor(
  app: FastifyInstance,
  places: Places,
  peerOf: (socket: Socket) => AuthPeer,
  options: HttpOptions,
): void {
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
      const { socket: stream } = request
      acceptWebSocket({ socket, stream, peer: peerOf(stream), place: places.get(otherEnd(stream)) }, options)
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
  const server = createLimitedServer(listener, tls)
  server.maxRequestsPerSocket = MAX_REQUESTS
  return server.setTimeout(STALL_MS).on('upgrade', ({ socket }) => socket.setTimeout(STALL_MS, () => socket.destroy()))
}

function createLimitedServer(listener: RequestListener, tls: TlsFiles | undefined): Server {
  if (tls === undefined) return createServer(LIMITS, listener)
  const server = createSecureServer({ ...LIMITS, ...tls.options, handshakeTimeout: REQUEST_MS }, listener)
  tls.onRenewal((options) => server.setSecureContext(options))
  return server.on('secureConnection', forgetVerification)
}
