/**
 * `POST /alerts/acknowledge`: alerts are acknowledged by the token that came with a notification, which is the body. Nobody logs in:
 * whoever has the token may do what it is good for. What it is not good for looks as if nothing were here.
 */
import type { FastifyInstance, FastifyReply } from 'fastify'
import type { AuditLog } from '../../kernel/accounts/audit/log.ts'
import { whenStoredOrFull } from '../../kernel/channels/journal.ts'
import type { SessionContext } from '../../kernel/sessions/context.ts'
import { ACKNOWLEDGE_PATH, type Acknowledged, type Acknowledging } from '../../kit/acknowledging.ts'

const MAX_TOKEN_BYTES = 2_048
/** Of one address, besides the limit of all requests. */
const LIMIT = { max: 60, timeWindow: 60_000 }

const DISK_FULL = 'the disk is full, so this cannot be stored: others may be notified again'

const ANSWERS: Readonly<Record<Acknowledged['outcome'], { readonly status: number; readonly text: string }>> = {
  acknowledged: { status: 200, text: 'acknowledged' },
  repeated: { status: 200, text: 'acknowledged already' },
  ended: { status: 410, text: 'it does not fire any more' },
  full: { status: 503, text: 'there are as many silences as there may be: end some' },
}

export interface AcknowledgingServices {
  /** Undefined if nothing here has notified anybody. */
  readonly acknowledging: Acknowledging | undefined
  readonly context: Pick<SessionContext, 'faults' | 'journal' | 'host' | 'clock'> & {
    readonly audit: Pick<AuditLog, 'record'>
  }
}

/** Must be called after `hardenHttp`. */
export async function serveAcknowledging(app: FastifyInstance, services: AcknowledgingServices): Promise<void> {
  const { acknowledging, context } = services
  if (acknowledging === undefined) return
  await app.register((scope, _options, registered) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', { parseAs: 'string', bodyLimit: MAX_TOKEN_BYTES }, (_request, body, done) =>
      done(null, body),
    )
    scope.setErrorHandler((error: { statusCode?: number; message: string }, _request, reply) => {
      const { statusCode = 500 } = error
      if (statusCode >= 500) context.faults.report(`POST ${ACKNOWLEDGE_PATH}`, error)
      return reply.code(statusCode).send({ error: statusCode < 500 ? error.message : 'the server failed' })
    })
    scope.post(ACKNOWLEDGE_PATH, { config: { rateLimit: LIMIT } }, async (request, reply): Promise<FastifyReply> => {
      const { body, ip } = request
      // The web app of ntfy sends it from its own origin. Nothing of what browsers add by themselves counts here.
      void reply.header('access-control-allow-origin', '*').header('cache-control', 'no-store')
      const done = typeof body === 'string' ? acknowledging.acknowledge(body.trim()) : undefined
      if (done === undefined) return reply.code(404).send({ error: 'there is nothing here' })
      const { tenant, author, outcome, id, matchers } = done
      const { status, text } = ANSWERS[outcome]
      if (outcome === 'acknowledged') {
        context.audit.record({
          action: 'acknowledge',
          identity: { tenant, name: author },
          address: ip,
          object: id,
          args: { matchers: matchers.join(', ') },
          outcome: 'ok',
          detail: 'by the button of a notification',
        })
      }
      // Who presses again while the first press is being stored has no other answer before that.
      if (status === 200 && !(await whenStoredOrFull(context))) return reply.code(503).send({ error: DISK_FULL })
      return reply.code(status).send(status === 200 ? { status: text } : { error: text })
    })
    registered()
  })
}
