/**
 * The paths to which programs POST metrics (`HttpDoor` of a source). Who asks, and whether he may publish anything there, is
 * decided by the headers: nothing of a refused request is read but to be discarded. Then the request waits for its tenant's
 * turn, and only then its body is read, within bounds of bytes and time.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Asker } from '../../kernel/accounts/rights.ts'
import type { Clock } from '../../kernel/core/clock.ts'
import type { DoorAnswer, HttpDoor, OpenDoor } from '../../kit/door.ts'
import { MemoryRoom } from '../memory-room.ts'
import { endOf, Turns } from '../turns.ts'
import { type AskerOptions, askerByToken } from './askers.ts'
import { announcedBytes, answerNow, expectsContinue, type MissingBody, readBody } from './body.ts'

/** Requests of a tenant that are read, decoded and stored at the same time. */
const MAX_AT_ONCE = 4
/** Those that wait for their turn, and for how long. */
const MAX_WAITING = 32
const PATIENCE_MS = 5_000
/** What bodies of all tenants may have together while they are read and worked on. */
const MAX_BODIES_BYTES = 128 << 20
/** From the headers to the end of the body. After ten seconds the listener ends the connection with 408 by itself. */
const WHOLE_MS = 9_000
/** Refusals that leave a request as good as before. 408 and 429 would lose it: hardly any sender sends it again after those. */
const NOT_NOW = 503

export interface PublishingOptions extends AskerOptions {
  readonly doors: readonly OpenDoor[]
  readonly clock: Pick<Clock, 'setTimeout' | 'setInterval' | 'clear' | 'monotonicMs'>
}

/** Must be called after `hardenHttp`. */
export async function servePublishing(app: FastifyInstance, options: PublishingOptions): Promise<void> {
  const { clock } = options
  const turns = new Turns({ atOnce: MAX_AT_ONCE, waiting: MAX_WAITING, patienceMs: PATIENCE_MS, clock })
  const room = new MemoryRoom(MAX_BODIES_BYTES)
  const failures = app.createRateLimit()
  for (const { door, mayPublish, notNow, family } of options.doors) {
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
          const ended = endOf(reply.raw)
          const lastMs = clock.monotonicMs() + WHOLE_MS
          const { tenant } = asker.identity
          const take = async (): Promise<DoorAnswer | MissingBody> => {
            if (expectsContinue(request.raw)) reply.raw.writeContinue()
            const place = room.enter(tenant)
            try {
              const given = await readBody(request.raw, { most: door.maxBytes, lastMs, clock, place })
              if (typeof given === 'string') return given
              return await door.take({ asker, headers, body: given, isOver: () => ended.aborted })
            } finally {
              place.leave()
            }
          }
          const answer = await turns.take(tenant, ended, take)
          if (answer === 'long') return refuse(request, reply, 413, tooLong(door))
          if (answer !== undefined && typeof answer !== 'string') return send(request, reply, answer)
          void reply.header('retry-after', '1')
          if (answer !== 'gone') notNow(asker)
          return refuse(request, reply, NOT_NOW, answer === undefined ? NO_TURN : whyMissing[answer])
        },
      })
      registered()
    })
  }
}

const NO_TURN = 'too many requests of the tenant wait for their turn'
const whyMissing = {
  slow: 'the body came too slowly',
  gone: 'the body did not come',
  crowded: 'the requests that are worked on have too many bytes, most of them of the tenant',
} as const

function tooLong({ maxBytes }: HttpDoor): string {
  return `a body has at most ${maxBytes} bytes`
}
