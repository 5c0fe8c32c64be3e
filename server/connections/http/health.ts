/** /healthz: the process answers. /readyz: it also takes in and stores. */
import type { FastifyInstance } from 'fastify'

export const HEALTH_PATHS = ['/healthz', '/readyz']

export interface Health {
  /** Why it is not ready, or undefined. */
  unready(): string | undefined
}

export function health(app: FastifyInstance, { unready }: Health): void {
  app.get('/healthz', () => ({ status: 'ok' }))
  app.get('/readyz', (_request, reply) => {
    const reason = unready()
    return reason === undefined ? { status: 'ready' } : reply.code(503).send({ status: 'not ready', reason })
  })
}
