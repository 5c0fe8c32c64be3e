/**
 * The paths to which programs POST metrics (`HttpDoor` of a source): who they are is known before their bodies are read, bodies
 * are bounded before and after decompression, and few requests of a tenant are in memory at the same time.
 */
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Asker } from '../../kernel/accounts/rights.ts'
import type { DoorAnswer, HttpDoor } from '../../kit/door.ts'
import { type AskerOptions, askerByToken } from './askers.ts'
import { Turns } from './turns.ts'

/** Requests of a tenant that are decoded and stored at the same time. */
const MAX_AT_ONCE = 4
/** Those that wait for their turn; one more is answered with 429. */
const MAX_WAITING = 32

const inflate = promisify(gunzip)

export interface PublishingOptions extends AskerOptions {
  readonly doors: readonly HttpDoor[]
}

/** Must be called after `hardenHttp`. */
export async function servePublishing(app: FastifyInstance, options: PublishingOptions): Promise<void> {
  const turns = new Turns({ atOnce: MAX_AT_ONCE, waiting: MAX_WAITING })
  const failures = app.createRateLimit()
  for (const door of options.doors) {
    await app.register((scope, _options, registered) => {
      const askers = new WeakMap<FastifyRequest, Asker>()
      const refuse = (request: FastifyRequest, reply: FastifyReply, status: number, detail: string): FastifyReply =>
        send(reply, door.refusal(status, detail, String(request.headers['content-type'] ?? '')))
      scope.removeAllContentTypeParsers()
      scope.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
      scope.setErrorHandler((error: { statusCode?: number; message: string }, request, reply) => {
        const status = error.statusCode ?? 500
        if (status >= 500) options.context.faults.report(`POST ${door.path}`, error)
        const detail = status === 413 ? `a body has at most ${door.maxBytes} bytes` : error.message
        return refuse(request, reply, status, status >= 500 ? 'the server failed; its log says why' : detail)
      })
      scope.route({
        method: 'POST',
        url: door.path,
        bodyLimit: door.maxBytes,
        // Senders have many requests a minute: those with a token are not limited, others are by what came before.
        config: { rateLimit: false },
        onRequest: async (request, reply) => {
          const before = await failures(request, { increment: false })
          if (!before.isAllowed && before.remaining <= 0) {
            void reply.header('retry-after', String(before.ttlInSeconds))
            return refuse(request, reply, 429, 'too many requests without a valid token from this address')
          }
          const found = await askerByToken(request, options)
          if ('refused' in found) {
            await failures(request)
            if (found.status === 401) void reply.header('www-authenticate', 'Bearer')
            return refuse(request, reply, found.status, found.refused)
          }
          askers.set(request, found)
        },
        handler: async (request, reply) => {
          const asker = askers.get(request) as Asker
          const { headers } = request
          const given = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0)
          const isGzip = headers['content-encoding']?.toLowerCase() === 'gzip'
          const take = async (): Promise<DoorAnswer> => {
            const body = isGzip ? await inflated(given, door) : given
            if (!(body instanceof Uint8Array)) return body
            return door.take({ asker, headers, body })
          }
          const answer = turns.take(asker.identity.tenant, take)
          if (answer !== undefined) return send(reply, await answer)
          void reply.header('retry-after', '1')
          return refuse(request, reply, 429, 'too many requests of the tenant wait for their turn')
        },
      })
      registered()
    })
  }
}

function send(reply: FastifyReply, { status, headers, body }: DoorAnswer): FastifyReply {
  const content = typeof body === 'string' ? body : Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  return reply.code(status).headers(headers).send(content)
}

/** The body as it was before gzip; an answer if that is too long, or no gzip. */
async function inflated(body: Buffer, door: HttpDoor): Promise<Uint8Array | DoorAnswer> {
  try {
    return await inflate(body, { maxOutputLength: door.maxBytes })
  } catch (error) {
    const isLong = (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE'
    if (isLong) return door.refusal(413, `a body has at most ${door.maxBytes} bytes when decompressed`, '')
    return door.refusal(400, 'the body is not gzip', '')
  }
}
