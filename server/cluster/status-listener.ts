/**
 * The listener of the node itself (`cluster.status`), which is open whether the node leads or follows: health for load balancers,
 * the node's own figures for Prometheus, and for the command line on this machine the state of the cluster, the founding of a log
 * and the copying of a database. Connections to all other listeners of a follower are passed on to the leader, so these cannot say anything of the follower.
 */
import type { Socket } from 'node:net'
import { hostname } from 'node:os'
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { isLoopback } from '../../auth/network.ts'
import { BasicType } from '../../protocol/monitor/constants.ts'
import { valueToJson } from '../../protocol/monitor/json-value.ts'
import { contentTypes } from '../../protocol/prometheus/exposition.ts'
import { createHttpServer, type Health } from '../edge/http/app.ts'
import { hardenHttp } from '../edge/http/hardening.ts'
import type { OpenListener } from '../edge/tcp.ts'
import { type Address, formatAddress, type Network } from '../kernel/core/address.ts'
import type { Clock } from '../kernel/core/clock.ts'
import { listenError } from '../kernel/core/listen.ts'
import type { Logger } from '../kernel/core/log.ts'
import { AllowedSenders } from '../kit/by-tenant.ts'
import type { ClusterControl } from './control.ts'
import { healthProblem, readinessProblem } from './health.ts'
import { clusterFields } from './metric.ts'
import { NodePass } from './node-pass.ts'
import { type FeedFigures, type NodeTraffic, nodeExposition } from './own-figures.ts'

/** Load balancers, Prometheus and the command line need a few. One more, and the oldest gives way. */
const MAX_CONNECTIONS = 256
const REQUESTS_PER_MINUTE = 6_000
/** No request has a body that is read. */
const MAX_BODY_BYTES = 1024
const HEALTH_PATHS = ['/healthz', '/readyz']
const [REFUSED_FROM, REFUSED_TO] = [400, 499]
const CONFLICT = 409

export interface StatusListenerOptions {
  readonly address: Address
  /** Where the pass for the command line is written. */
  readonly dataDir: string
  readonly cluster: Pick<ClusterControl, 'state' | 'found' | 'copy' | 'copyState'>
  /** Whether consumers can connect here: to the server while this node leads, to its front while it follows. */
  readonly health: Health
  /** The networks from which /metrics may be read without the pass. */
  readonly openTo: () => readonly Network[]
  readonly traffic: () => NodeTraffic
  /** Undefined if there are no feeds. */
  readonly feeds?: (() => FeedFigures) | undefined
  readonly clock: Pick<Clock, 'wallMs' | 'monotonicMs'>
  readonly log: Pick<Logger, 'warn'>
}

/** Rejects with ListenError, or with the error of the file system if the pass cannot be written. */
export async function listenStatus(options: StatusListenerOptions): Promise<OpenListener> {
  const { address, dataDir } = options
  const pass = new NodePass(dataDir)
  const counts = { refusedRequests: 0, refusedConnections: 0 }
  const app = Fastify({
    logger: false,
    bodyLimit: MAX_BODY_BYTES,
    forceCloseConnections: true,
    serverFactory: (listener) => {
      const open = new Set<Socket>()
      return createHttpServer(listener, undefined).on('connection', (socket: Socket) => {
        open.add(socket.once('close', () => open.delete(socket)))
        const [oldest] = open
        if (open.size <= MAX_CONNECTIONS || oldest === undefined) return
        counts.refusedConnections++
        oldest.destroy()
        open.delete(oldest)
      })
    },
  })
  app.addHook('onResponse', async (_request, { statusCode }) => {
    if (statusCode >= REFUSED_FROM && statusCode <= REFUSED_TO && statusCode !== CONFLICT) counts.refusedRequests++
  })
  const ownNames = ['localhost', hostname(), hostname().split('.')[0], address.host].map((name) => name?.toLowerCase())
  await hardenHttp(app, {
    isOwnName: (name) => ownNames.includes(name),
    encrypted: false,
    hasPages: false,
    requestsPerMinute: REQUESTS_PER_MINUTE,
    healthPaths: HEALTH_PATHS,
  })
  serveNodeHealth(app, options)
  serveOwnFigures(app, options, pass, counts)
  serveNode(app, options, pass)
  try {
    await app.listen({ host: address.host, port: address.port })
  } catch (error) {
    await app.close()
    throw listenError(error, address, 'cluster.status')
  }
  const at = app.server.address()
  const bound = at !== null && typeof at === 'object' ? { host: at.address, port: at.port } : address
  const close = (): Promise<void> => {
    pass.remove()
    return app.close()
  }
  try {
    pass.write(urlOf(bound))
  } catch (error) {
    await close()
    throw error
  }
  return { address: bound, close }
}

/** Where programs on this machine find a listener. */
function urlOf({ host, port }: Address): string {
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  return `http://${formatAddress({ host: reachable, port })}`
}

function serveNodeHealth(app: FastifyInstance, { cluster, health }: StatusListenerOptions): void {
  app.get('/healthz', (_request, reply) => {
    const reason = healthProblem(cluster.state())
    return reason === undefined ? { status: 'ok' } : reply.code(503).send({ status: 'not ok', reason })
  })
  app.get('/readyz', (_request, reply) => {
    const reason = readinessProblem(cluster.state(), health)
    return reason === undefined ? { status: 'ready' } : reply.code(503).send({ status: 'not ready', reason })
  })
}

function serveOwnFigures(
  app: FastifyInstance,
  { cluster, clock, openTo, traffic, feeds }: StatusListenerOptions,
  pass: NodePass,
  counts: { readonly refusedRequests: number; readonly refusedConnections: number },
): void {
  const started = clock.monotonicMs()
  app.get('/metrics', (request, reply) => {
    const query = new URLSearchParams(/\?(.*)$/s.exec(request.url)?.[1] ?? '')
    if ([...query].some(([name, value]) => name !== 'node' || value !== 'self')) {
      const detail = '`node=self` is all that this listener takes: the metrics of the cluster are at `listen.http`'
      return reply.code(400).send({ error: detail })
    }
    const isOpen = new AllowedSenders(openTo()).check(request.ip).allowed
    if (!isOpen && !pass.isIn(request.headers.authorization)) {
      const error = 'this network is not in `metrics.open_to`'
      return reply.code(401).header('www-authenticate', 'Bearer').send({ error })
    }
    const now = { wallMs: clock.wallMs(), uptimeMs: clock.monotonicMs() - started }
    const { user, system } = process.cpuUsage()
    const used = { cpuSeconds: (user + system) / 1e6, residentBytes: process.memoryUsage.rss() }
    const figures = { ...used, ...counts, traffic: traffic(), feeds: feeds?.() }
    const text = [...nodeExposition(cluster.state(), figures, now).text()].join('')
    return reply.header('content-type', contentTypes.prometheus).send(text)
  })
}

function serveNode(app: FastifyInstance, { cluster, log }: StatusListenerOptions, pass: NodePass): void {
  let isFounding = false
  const guarded = { preHandler: (request: FastifyRequest, reply: FastifyReply) => onlyWithPass(request, reply, pass) }
  const state = (): unknown => valueToJson({ type: BasicType.REC, value: clusterFields(cluster.state()) })
  app.get('/cluster', guarded, () => state())
  app.post('/found', guarded, async (_request, reply) => {
    if (isFounding) return reply.code(CONFLICT).send({ error: 'a log is being founded already: wait for its end' })
    isFounding = true
    try {
      await cluster.found()
      return state()
    } catch (error) {
      log.warn({ err: error }, 'no log was founded')
      return reply.code(CONFLICT).send(refusal(error))
    } finally {
      isFounding = false
    }
  })
  app.get('/copy', guarded, () => cluster.copyState)
  // It may take long, so it is not waited for.
  app.post('/copy', guarded, async (_request, reply) => {
    try {
      await cluster.copy()
      return reply.code(202).send(cluster.copyState)
    } catch (error) {
      return reply.code(CONFLICT).send(refusal(error))
    }
  })
}

function refusal(error: unknown): { readonly error: string } {
  return { error: error instanceof Error ? error.message : String(error) }
}

/** Whether both ends of a connection are on one machine. */
export function isWithinMachine({ remoteAddress = '', localAddress }: Pick<Socket, 'remoteAddress' | 'localAddress'>) {
  return isLoopback(remoteAddress) || remoteAddress === localAddress
}

/** Plain HTTP: what crosses a network could be read there, so the pass counts on this machine only. */
async function onlyWithPass(
  { headers, socket }: FastifyRequest,
  reply: FastifyReply,
  pass: NodePass,
): Promise<unknown> {
  if (!isWithinMachine(socket)) {
    return reply.code(403).send({ error: 'only programs on the machine of this node may ask for this' })
  }
  if (pass.isIn(headers.authorization)) return undefined
  const error = 'the pass is missing or wrong: it is in the data directory of this node'
  return reply.code(401).header('www-authenticate', 'Bearer').send({ error })
}
