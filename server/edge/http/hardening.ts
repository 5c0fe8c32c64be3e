/**
 * Rules for every request: the host that it may name, headers that restrict browsers, the number of
 * requests from one address, and the origins that may open the WebSocket.
 */
import { isIP, isIPv6 } from 'node:net'
import helmet from '@fastify/helmet'
import rateLimit from '@fastify/rate-limit'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { isLoopback, networkPrefix, unmapped } from '../../../auth/network.ts'

const MINUTE_MS = 60_000
/** Addresses that are counted at the same time; the least recently seen ones are forgotten. */
const MAX_ADDRESSES = 16_384
/** 180 days. */
const HSTS_SECONDS = 15_552_000

export interface HardeningOptions {
  /** Whether a name, in lower case, is one of this server. */
  readonly isOwnName: (name: string) => boolean
  readonly encrypted: boolean
  /** True if the operator serves pages, which may contain inline scripts. */
  readonly hasPages: boolean
  readonly requestsPerMinute: number
  /** Requests for these paths come from what supervises the server: for any host, and those of this machine in any number. */
  readonly healthPaths: readonly string[]
}

/** Must be called before routes are registered: it does not apply to routes that exist already. */
export async function hardenHttp(app: FastifyInstance, options: HardeningOptions): Promise<void> {
  const { isOwnName, encrypted, hasPages, requestsPerMinute, healthPaths } = options
  const isHealth = ({ url }: FastifyRequest): boolean => healthPaths.includes(url.replace(/\?.*$/s, ''))
  const inline = hasPages ? ["'unsafe-inline'"] : []
  await app.register(helmet, {
    contentSecurityPolicy: {
      useDefaults: false,
      directives: {
        defaultSrc: ["'self'"],
        scriptSrc: ["'self'", ...inline],
        styleSrc: ["'self'", ...inline],
        imgSrc: ["'self'", 'data:'],
        // "self" includes the WebSocket of the same host.
        connectSrc: ["'self'"],
        objectSrc: ["'none'"],
        baseUri: ["'none'"],
        formAction: ["'self'"],
        frameAncestors: ["'self'"],
      },
    },
    // Browsers ignore these two on pages that come without TLS, and complain.
    crossOriginOpenerPolicy: encrypted,
    originAgentCluster: encrypted,
    strictTransportSecurity: encrypted && { maxAge: HSTS_SECONDS, includeSubDomains: false },
  })
  await app.register(rateLimit, {
    max: requestsPerMinute,
    timeWindow: MINUTE_MS,
    cache: MAX_ADDRESSES,
    keyGenerator: (request) => countedAs(request.ip),
    allowList: (request: FastifyRequest) => isHealth(request) && isLoopback(request.ip),
    errorResponseBuilder: (_request, { statusCode }) =>
      Object.assign(new Error('too many requests from this address within a minute; wait, and send fewer requests'), {
        statusCode,
      }),
  })
  // A later hook than that of the limit, so that refused requests are counted too.
  app.addHook('preValidation', async (request, reply) => {
    const { host, origin, upgrade } = request.headers
    // A page cannot open a WebSocket without an origin, nor set the header by itself.
    const isProgram = upgrade !== undefined && origin === undefined
    const problem = isProgram || isHealth(request) ? undefined : hostProblem(host, isOwnName)
    return problem === undefined ? undefined : reply.code(421).send({ error: problem })
  })
  app.setNotFoundHandler({ preHandler: app.rateLimit() }, (_request, reply) => {
    reply.code(404).send({ error: 'there is nothing here' })
  })
}

/** An IPv4 address counts by itself; an IPv6 address counts as its network, in which a host may have any number of addresses. */
function countedAs(address: string): string {
  const plain = unmapped(address)
  return isIPv6(plain) ? networkPrefix(plain) : plain
}

/**
 * The reason why a request for a host is refused; undefined if it is not. Under a name of its own, which a name server of its
 * own resolves to this server's address, any page of the web could otherwise pass for a page of this server. An address is
 * resolved by nobody, and a request without a host does not come from a browser.
 */
export function hostProblem(host: string | undefined, isOwnName: (name: string) => boolean): string | undefined {
  if (host === undefined) return undefined
  const name = host.replace(/:\d*$/, '').toLowerCase()
  const address = name.startsWith('[') && name.endsWith(']') ? name.slice(1, -1) : name
  if (isIP(address) !== 0 || isOwnName(name)) return undefined
  return 'this server does not answer under the host name of the request; its operator can add the name to `http.hosts`'
}

/**
 * The reason why a page of an origin may not open the WebSocket [MON 13]; undefined if it may. Pages of the same host may, and
 * those on the operator's list. A request without an origin does not come from a page, because browsers always send it. `host`
 * is the Host header. Without TLS (`encrypted` is false) both schemes count as the same host, because a proxy may add TLS.
 */
export function originProblem(
  origin: string | undefined,
  host: string | undefined,
  encrypted: boolean,
  allowed: readonly string[],
): string | undefined {
  if (origin === undefined) return undefined
  if (allowed.includes(origin)) return undefined
  const schemes = encrypted ? ['https'] : ['http', 'https']
  const isSameHost = host !== undefined && host !== '' && schemes.some((scheme) => origin === `${scheme}://${host}`)
  return isSameHost ? undefined : 'pages of this origin may not connect; see `http.allowed_origins`'
}
