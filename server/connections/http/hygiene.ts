/**
 * What holds for every request: headers that keep browsers from more than they need, and how many requests one address may
 * make. To be registered first: routes that are there already would be left out.
 */
import { isIPv6 } from 'node:net'
import helmet from '@fastify/helmet'
import rateLimit from '@fastify/rate-limit'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { isLoopback, networkPrefix } from '../../../auth/network.ts'

const MINUTE_MS = 60_000
/** Addresses that are counted at once; the ones heard of longest ago are forgotten. */
const MAX_ADDRESSES = 16_384
/** 180 days. */
const HSTS_SECONDS = 15_552_000

export interface HygieneOptions {
  readonly encrypted: boolean
  /** The operator serves pages, whose scripts may stand in them. */
  readonly hasPages: boolean
  readonly requestsPerMinute: number
  /** What watches over this process, from this machine: it is never refused for having asked too often. */
  readonly healthPaths: readonly string[]
}

export async function keepClean(app: FastifyInstance, options: HygieneOptions): Promise<void> {
  const { encrypted, hasPages, requestsPerMinute, healthPaths } = options
  const inline = hasPages ? ["'unsafe-inline'"] : []
  await app.register(helmet, {
    contentSecurityPolicy: {
      useDefaults: false,
      directives: {
        defaultSrc: ["'self'"],
        scriptSrc: ["'self'", ...inline],
        styleSrc: ["'self'", ...inline],
        imgSrc: ["'self'", 'data:'],
        // The WebSocket of the same host is "self" too.
        connectSrc: ["'self'"],
        objectSrc: ["'none'"],
        baseUri: ["'none'"],
        formAction: ["'self'"],
        frameAncestors: ["'self'"],
      },
    },
    strictTransportSecurity: encrypted && { maxAge: HSTS_SECONDS, includeSubDomains: false },
  })
  await app.register(rateLimit, {
    max: requestsPerMinute,
    timeWindow: MINUTE_MS,
    cache: MAX_ADDRESSES,
    keyGenerator: (request) => counted(request.ip),
    allowList: (request: FastifyRequest) => healthPaths.includes(request.url) && isLoopback(request.ip),
    errorResponseBuilder: (_request, { statusCode }) =>
      Object.assign(new Error('too many requests from this address within a minute; wait and ask less often'), {
        statusCode,
      }),
  })
  app.setNotFoundHandler({ preHandler: app.rateLimit() }, (_request, reply) => {
    reply.code(404).send({ error: 'there is nothing here' })
  })
}

/** One IPv4 address; of IPv6 the network, in which a host has as many addresses as it likes. */
function counted(address: string): string {
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, '')
  return isIPv6(plain) ? networkPrefix(plain) : plain
}
