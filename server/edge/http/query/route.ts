/**
 * `/api/v1`: queries over the history, as Prometheus' HTTP API has them (docs/promql.md). Who asks is decided by the headers, as for
 * GET /metrics; what he sees of each series is judged as for a QUERY of its metric.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Reader } from '../../../../auth/permissions.ts'
import { type Asker, type Rights, readerOf } from '../../../kernel/accounts/rights.ts'
import type { Hub } from '../../../kernel/metrics/hub.ts'
import type { SessionContext } from '../../../kernel/sessions/context.ts'
import type { RememberedHistory } from '../../../kit/history.ts'
import type { ShownRuleGroups } from '../../../kit/rules.ts'
import type { QuerySection } from '../../config.ts'
import type { MemoryPlace } from '../../memory-room.ts'
import { ReadersHistory } from '../../query/asked-history.ts'
import { outcomeOf, type QueryOutcome, type QueryOutcomes } from '../../query/outcomes.ts'
import { CrowdedQuery, problemOf, type QueryErrorType, QueryProblem } from '../../query/problems.ts'
import type { BegunAnswer, QueryThread } from '../../query/thread/query-thread.ts'
import type { QueryTurns } from '../../query/turns.ts'
import { endOf } from '../../turns.ts'
import { type AskerOptions, askerByProof } from '../askers.ts'
import type { AnswerName } from './api.ts'
import type { KnownRequest } from './metadata.ts'
import { givenIn } from './parameters.ts'
import { answerInSteps, sendAnswer } from './sending.ts'

/** Expressions have at most 50,000 characters, of which each may take nine in a form. */
const MAX_FORM_BYTES = 512 << 10
const FORM = 'application/x-www-form-urlencoded'
const BOTH = ['GET', 'POST']
const OTHER_METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']
const PROTOBUF = 'application/x-protobuf'
const RETRY_AFTER_S = '1'

export interface QueryApi {
  /** Undefined if nothing here remembers anything. */
  readonly history: RememberedHistory | undefined
  /** Undefined if nothing here evaluates rules. */
  readonly rules: readonly ShownRuleGroups[]
  readonly turns: QueryTurns
  readonly thread: Pick<QueryThread, 'answer'>
  readonly outcomes: Pick<QueryOutcomes, 'ended'>
  /** The section in force. */
  readonly section: () => QuerySection
}

/** What the catalogue of metrics is made of. */
export interface CatalogueServices {
  readonly rights: Rights
  readonly hub: Pick<Hub, 'sensors'>
}

export interface QueryRouteOptions extends AskerOptions, QueryApi {
  readonly context: SessionContext & CatalogueServices
  /** Time without a byte after which a connection is ended. */
  readonly stallMs: number
}

/** What is answered in the thread of queries. What asks the history waits for a turn. */
const IN_THREAD: Readonly<Record<string, { readonly name: AnswerName; readonly isAsking: boolean }>> = {
  '/query': { name: 'query', isAsking: true },
  '/query_range': { name: 'query_range', isAsking: true },
  '/series': { name: 'series', isAsking: true },
  '/labels': { name: 'labels', isAsking: true },
  '/label/:label/values': { name: 'values', isAsking: true },
  '/format_query': { name: 'format_query', isAsking: false },
  '/parse_query': { name: 'parse_query', isAsking: false },
  // Exemplars do not exist here; whoever asks for them goes on when there are none.
  '/query_exemplars': { name: 'query_exemplars', isAsking: false },
}

type Known = (request: KnownRequest) => Promise<Iterable<string>>

/** What the server knows itself. */
const KNOWN: Readonly<Record<string, Known>> = {
  '/status/buildinfo': async (request) => (await import('./metadata.ts')).buildInformation(request),
  '/metadata': async (request) => (await import('./metadata.ts')).metadataFound(request),
  '/rules': async (request) => (await import('./rules.ts')).rulesFound(request),
  '/alerts': async (request) => (await import('./rules.ts')).alertsFound(request),
}

/** How a path is answered. */
type By = { readonly name: AnswerName } | { readonly known: Known }

/** Must be called after `hardenHttp`. */
export async function serveQueries(app: FastifyInstance, options: QueryRouteOptions): Promise<void> {
  const { context, turns, thread, outcomes, section } = options
  const { faults, clock, work, software } = context
  const catalogue = { sensors: () => context.hub.sensors, rights: context.rights }
  const failures = app.createRateLimit()
  await app.register((scope, _options, registered) => {
    const askers = new WeakMap<FastifyRequest, Asker>()
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser(FORM, { parseAs: 'string', bodyLimit: MAX_FORM_BYTES }, (_request, body, done) =>
      done(null, body),
    )
    // Some give their parameters in the URL alone, and a type for the body that they do not send.
    scope.addContentTypeParser('*', { parseAs: 'string', bodyLimit: MAX_FORM_BYTES }, (_request, body, done) =>
      body === '' ? done(null, undefined) : done(Object.assign(new Error(OTHER_FORM), { statusCode: 415 })),
    )
    scope.setErrorHandler((error: { statusCode?: number; message: string }, request, reply) => {
      const { statusCode = 500, message } = error
      if (statusCode < 500) return refuse(reply, new QueryProblem('bad_data', message), statusCode)
      faults.report(`${request.method} ${request.routeOptions.url}`, error)
      return refuse(reply, new QueryProblem('internal', 'the server failed; its log says why'))
    })
    const onRequest = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> => {
      const before = await failures(request, { increment: false })
      if (!before.isAllowed && before.remaining <= 0) {
        void reply.header('retry-after', String(before.ttlInSeconds))
        const problem = new QueryProblem('unavailable', 'too many requests without a valid token from this address')
        return refuse(reply, problem, 429)
      }
      const asker = await askerByProof(request, options)
      if (asker !== undefined && !('refused' in asker)) {
        askers.set(request, asker)
        return undefined
      }
      await failures(request)
      const type: QueryErrorType = asker?.status === 403 ? 'forbidden' : 'unauthorized'
      return refuse(reply, new QueryProblem(type, asker?.refused ?? NO_PROOF))
    }
    const answer = async (request: FastifyRequest, reply: FastifyReply, by: By, isAsking: boolean) => {
      const { history } = options
      const problem = history === undefined ? NO_HISTORY : history.problem
      if (history === undefined || (isAsking && problem !== undefined))
        return refuse(reply, new QueryProblem('unavailable', problem ?? NO_HISTORY))
      const reader = readerOf(askers.get(request) as Asker)
      const { tenant } = reader
      const { maxSamples, timeout: timeoutMs } = section()
      const ended = endOf(reply.raw)
      const given = { url: request.url, form: typeof request.body === 'string' ? request.body : '' }
      const arrivedMs = clock.monotonicMs()
      let isCounted = !isAsking
      const count = (outcome: QueryOutcome, begunMs: number): void => {
        // An answer that breaks off on its way has been counted.
        if (isCounted) return
        isCounted = true
        const times = { waitedMs: begunMs - arrivedMs, tookMs: clock.monotonicMs() - begunMs }
        outcomes.ended({
          reader,
          path: request.url.replace(/\?.*/s, ''),
          given: () => givenIn(given),
          outcome,
          ...times,
        })
      }
      const act = async (memory?: MemoryPlace): Promise<void> => {
        const begunMs = clock.monotonicMs()
        try {
          // Nothing is sent until there is an answer.
          request.socket.setTimeout(timeoutMs + options.stallMs)
          const { label } = request.params as { readonly label?: string }
          const body = request.body instanceof Uint8Array ? request.body : undefined
          const found = await ('known' in by
            ? known(by.known, history, reader, givenIn(given))
            : thread.answer(
                {
                  asked: { ...given, name: by.name, label, body },
                  tenant,
                  nowMs: clock.wallMs(),
                  maxSamples,
                  timeoutMs,
                  waitedMs: begunMs - arrivedMs,
                },
                { history: new ReadersHistory(history, reader, work), ended, memory },
              ))
          if (memory?.refused.aborted === true) throw new CrowdedQuery()
          count('served', begunMs)
          request.socket.setTimeout(options.stallMs)
          // An answer that is fetched slowly is in memory, too.
          memory?.refused.addEventListener('abort', () => reply.raw.destroy())
          sendAnswer(reply, found)
        } catch (error) {
          const problem = problemOf(error)
          count(outcomeOf(problem), begunMs)
          if (problem === undefined) throw error
          refuse(reply, problem)
          return
        }
        if (!ended.aborted) await new Promise((resolve) => ended.addEventListener('abort', resolve))
      }
      // Until it has its turn nothing is sent either way: how long that may be, the turns say.
      request.socket.setTimeout(0)
      if ('known' in by) await act()
      else if (!(await turns.take(tenant, ended, act))) {
        count(ended.aborted ? 'cancelled' : 'refused', clock.monotonicMs())
        request.socket.setTimeout(options.stallMs)
        void reply.header('retry-after', RETRY_AFTER_S)
        return refuse(reply, new QueryProblem('unavailable', 'too many queries of the tenant wait for their turn'))
      }
      return reply
    }
    const known = async (
      by: Known,
      history: RememberedHistory,
      reader: Reader,
      given: URLSearchParams,
    ): Promise<BegunAnswer> => {
      const { tenant } = reader
      const { rules } = options
      return answerInSteps(await by({ reader, given, history, rules, software, catalogue, tenant, work }), {
        tenant,
        work,
      })
    }
    const routeTo = (to: FastifyInstance, path: string, method: readonly string[], by: By, isAsking: boolean): void => {
      to.route({
        method: [...method],
        url: `/api/v1${path}`,
        exposeHeadRoute: false,
        // Those with a token are not limited, others are by what came before.
        config: { rateLimit: false },
        onRequest,
        handler: (request, reply) => answer(request, reply, by, isAsking),
      })
    }
    const refuseOthers = (to: FastifyInstance, path: string, allowed: readonly string[]): void => {
      const method = OTHER_METHODS.filter((one) => !allowed.includes(one))
      const handler = (_: FastifyRequest, reply: FastifyReply): FastifyReply => {
        const problem = new QueryProblem('bad_data', `this path takes ${allowed.join(' and ')}`)
        return refuse(reply.header('allow', allowed.join(', ')), problem, 405)
      }
      to.route({
        method,
        url: `/api/v1${path}`,
        exposeHeadRoute: false,
        config: { rateLimit: false },
        onRequest,
        handler,
      })
    }
    for (const path of [...Object.keys(IN_THREAD), ...Object.keys(KNOWN)]) refuseOthers(scope, path, BOTH)
    for (const [path, { name, isAsking }] of Object.entries(IN_THREAD)) routeTo(scope, path, BOTH, { name }, isAsking)
    for (const [path, known] of Object.entries(KNOWN)) routeTo(scope, path, BOTH, { known }, false)
    scope.register((inner, _nothing, added) => {
      inner.removeAllContentTypeParsers()
      inner.addContentTypeParser(PROTOBUF, { parseAs: 'buffer', bodyLimit: MAX_FORM_BYTES }, (_request, body, done) =>
        done(null, body),
      )
      refuseOthers(inner, '/read', ['POST'])
      routeTo(inner, '/read', ['POST'], { name: 'read' }, true)
      added()
    })
    registered()
  })
}

const NO_PROOF = 'a token is needed, Authorization: Bearer <token>, or the certificate of a user'
const OTHER_FORM = `a body has the type ${FORM}`
const NO_HISTORY = 'this server has no history'

function answered(reply: FastifyReply): FastifyReply {
  return reply.header('cache-control', 'no-store').type('application/json')
}

function refuse(reply: FastifyReply, problem: QueryProblem, status = problem.status): FastifyReply {
  if (status === 401) void reply.header('www-authenticate', 'Bearer')
  return answered(reply.code(status)).send(problem.body)
}
