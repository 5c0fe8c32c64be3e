/**
 * The paths to which programs POST metrics (`HttpDoor` of a source). Who asks, and whether he may publish anything there, is
 * decided by the headers: nothing of a refused request is read but to be discarded. Then the request waits for its tenant's
 * turn, and only then its body is read, which is bounded before and after decompression.
 */
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Asker } from '../../kernel/accounts/rights.ts'
import type { Clock } from '../../kernel/core/clock.ts'
import type { DoorAnswer, HttpDoor, OpenDoor } from '../../kit/door.ts'
import { type AskerOptions, askerByToken } from './askers.ts'
import { announcedBytes, answerNow, expectsContinue, type MissingBody, readBody } from './body.ts'
import { Turns } from './turns.ts'

/** Requests of a tenant that are read, decoded and stored at the same time. */
const MAX_AT_ONCE = 4
/** Those that wait for their turn; one more is answered with 429. */
const MAX_WAITING = 32

const inflate = promisify(gunzip)

export interface PublishingOptions extends AskerOptions {
  readonly doors: readonly OpenDoor[]
  readonly clock: Pick<Clock, 'setTimeout' | 'setInterval' | 'clear'>
}

/** Must be called after `hardenHttp`. */
export async function servePublishing(app: FastifyInstance, options: PublishingOptions): Promise<void> {
  const turns = new Turns({ atOnce: MAX_AT_ONCE, waiting: MAX_WAITING })
  const failures = app.createRateLimit()
  const { clock } = options
  for (const { door, mayPublish, family } of options.doors) {
    await app.register((scope, _options, registered) => {
      const askers = new WeakMap<FastifyRequest, Asker>()
      const send = (request: FastifyRequest, reply: FastifyReply, answer: DoorAnswer): FastifyReply =>
        answerNow(request, reply.code(answer.status).headers(answer.headers), answer.body, clock)
      const refuse = (request: FastifyRequest, reply: FastifyReply, status: number, detail: string): FastifyReply =>
        send(request, reply, door.refusal(status, detail, String(request.headers['content-type'] ?? '')))
      scope.removeAllContentTypeParsers()
      // The handler reads the body, when it is its turn.
      scope.addContentTypeParser('*', (_request, _payload, done) => done(null))
      scope.setErrorHandler((error: { statusCode?: number; message: string }, request, reply) => {
        const status = error.statusCode ?? 500
        if (status >= 500) options.context.faults.report(`POST ${door.path}`, error)
        return refuse(request, reply, status, status >= 500 ? 'the server failed; its log says why' : error.message)
      })
      scope.route({
        method: 'POST',
        url: door.path,
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
          if (!mayPublish(found)) {
            const needed = `a rule and a scope that allow PUBLISH of ${family}*`
            return refuse(request, reply, 403, `nothing may be published here without ${needed}`)
          }
          const unsupported = door.unsupported(request.headers)
          if (unsupported !== undefined) return send(request, reply, unsupported)
          if ((announcedBytes(request.raw) ?? 0) > door.maxBytes) return refuse(request, reply, 413, tooLong(door))
          askers.set(request, found)
        },
        handler: async (request, reply) => {
          const asker = askers.get(request) as Asker
          const { headers } = request
          const isGzip = headers['content-encoding']?.toLowerCase() === 'gzip'
          const take = async (): Promise<DoorAnswer | MissingBody> => {
            if (expectsContinue(request.raw)) reply.raw.writeContinue()
            const given = await readBody(request.raw, door.maxBytes, clock)
            if (typeof given === 'string') return given
            const body = isGzip ? await inflated(given, door) : given
            if (!(body instanceof Uint8Array)) return body
            return door.take({ asker, headers, body })
          }
          const answer = await turns.take(asker.identity.tenant, take)
          if (answer === undefined) {
            void reply.header('retry-after', '1')
            return refuse(request, reply, 429, 'too many requests of the tenant wait for their turn')
          }
          if (answer === 'long') return refuse(request, reply, 413, tooLong(door))
          if (typeof answer === 'string') return refuse(request, reply, 408, 'the body came too slowly')
          return send(request, reply, answer)
        },
      })
      registered()
    })
  }
}

function tooLong({ maxBytes }: HttpDoor): string {
  return `a body has at most ${maxBytes} bytes`
}

/** The body as it was before gzip; an answer if that is too long, or no gzip. */
async function inflated(body: Uint8Array, door: HttpDoor): Promise<Uint8Array | DoorAnswer> {
  try {
    return await inflate(body, { maxOutputLength: door.maxBytes })
  } catch (error) {
    const isLong = (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE'
    if (isLong) return door.refusal(413, `a body has at most ${door.maxBytes} bytes when decompressed`, '')
    return door.refusal(400, 'the body is not gzip', '')
  }
}
