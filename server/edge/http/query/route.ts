/**
 * `/api/v1`: queries over the history, as Prometheus' HTTP API has them (docs/promql.md). Who asks is decided by the headers, as for
 * GET /metrics; what he sees of each series is judged as for a QUERY of its metric.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type Asker, type Rights, readerOf } from '../../../kernel/accounts/rights.ts'
import type { Hub } from '../../../kernel/metrics/hub.ts'
import type { SessionContext } from '../../../kernel/sessions/context.ts'
import type { RememberedHistory } from '../../../kit/history.ts'
import type { ShownRules } from '../../../kit/rules.ts'
import type { QuerySection } from '../../config.ts'
import type { MemoryPlace } from '../../memory-room.ts'
import { outcomeOf, type QueryOutcome, type QueryOutcomes } from '../../query/outcomes.ts'
import { CrowdedQuery, type QueryErrorType, QueryProblem } from '../../query/problems.ts'
import type { QueryTurns } from '../../query/turns.ts'
import { endOf } from '../../turns.ts'
import { type AskerOptions, askerByProof } from '../askers.ts'
import type { ApiRequest } from './parameters.ts'
import { type SendableAnswer, sendAnswer } from './sending.ts'

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
  readonly rules: ShownRules | undefined
  readonly turns: QueryTurns
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

type Api = typeof import('./api.ts')
type Answer = (api: Api, request: ApiRequest) => Promise<SendableAnswer>

/** What asks the history: these wait for a turn. */
const ASKING: Readonly<Record<string, Answer>> = {
  '/query': (api, request) => api.instantQuery(request),
  '/query_range': (api, request) => api.rangeQuery(request),
  '/series': (api, request) => api.seriesFound(request),
  '/labels': (api, request) => api.labelNamesFound(request),
  '/label/:label/values': (api, request) => api.labelValuesFound(request),
}

/** What does not. Exemplars do not exist here; whoever asks for them goes on when there are none. */
const OTHERS: Readonly<Record<string, Answer>> = {
  '/format_query': (api, request) => api.formatQuery(request),
  '/parse_query': (api, request) => api.parseQuery(request),
  '/status/buildinfo': (api, request) => api.buildInformation(request),
  '/metadata': (api, request) => api.metadataFound(request),
  '/query_exemplars': (api, request) => api.exemplarsFound(request),
  '/rules': (api, request) => api.rulesFound(request),
  '/alerts': (api, request) => api.alertsFound(request),
}

/** Must be called after `hardenHttp`. */
export async function serveQueries(app: FastifyInstance, options: QueryRouteOptions): Promise<void> {
  const { context, turns, outcomes, section } = options
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
    const answer = async (request: FastifyRequest, reply: FastifyReply, by: Answer, isAsking: boolean) => {
      const { history } = options
      const problem = history === undefined ? NO_HISTORY : history.problem
      if (history === undefined || (isAsking && problem !== undefined))
        return refuse(reply, new QueryProblem('unavailable', problem ?? NO_HISTORY))
      const reader = readerOf(askers.get(request) as Asker)
      const { tenant } = reader
      const { maxSamples, timeout: timeoutMs } = section()
      const ended = endOf(reply.raw)
      const given = givenIn(request)
      const arrivedMs = clock.monotonicMs()
      let isCounted = !isAsking
      const count = (outcome: QueryOutcome, begunMs: number): void => {
        // An answer that breaks off on its way has been counted.
        if (isCounted) return
        isCounted = true
        const times = { waitedMs: begunMs - arrivedMs, tookMs: clock.monotonicMs() - begunMs }
        outcomes.ended({ reader, path: request.url.replace(/\?.*/s, ''), given, outcome, ...times })
      }
      const act = async (memory?: MemoryPlace): Promise<void> => {
        const begunMs = clock.monotonicMs()
        const api = await import('./api.ts')
        try {
          // Nothing is sent until there is an answer.
          request.socket.setTimeout(timeoutMs + options.stallMs)
          const { label } = request.params as { readonly label?: string }
          const found = await by(api, {
            reader,
            given,
            label,
            body: request.body instanceof Uint8Array ? request.body : undefined,
            history,
            rules: options.rules,
            nowMs: clock.wallMs(),
            maxSamples,
            run: { tenant, work, clock, timeoutMs, ended, memory },
            waitedMs: begunMs - arrivedMs,
            software,
            catalogue,
          })
          if (memory?.refused.aborted === true) throw new CrowdedQuery()
          count('served', begunMs)
          request.socket.setTimeout(options.stallMs)
          // An answer that is fetched slowly is in memory, too.
          memory?.refused.addEventListener('abort', () => reply.raw.destroy())
          await sendAnswer(reply, found, { tenant, work })
        } catch (error) {
          const problem = api.problemOf(error)
          count(outcomeOf(problem), begunMs)
          if (problem === undefined) throw error
          refuse(reply, problem)
          return
        }
        if (!ended.aborted) await new Promise((resolve) => ended.addEventListener('abort', resolve))
      }
      // Until it has its turn nothing is sent either way: how long that may be, the turns say.
      request.socket.setTimeout(0)
      if (!isAsking) await act()
      else if (!(await turns.take(tenant, ended, act))) {
        count(ended.aborted ? 'cancelled' : 'refused', clock.monotonicMs())
        request.socket.setTimeout(options.stallMs)
        void reply.header('retry-after', RETRY_AFTER_S)
        return refuse(reply, new QueryProblem('unavailable', 'too many queries of the tenant wait for their turn'))
      }
      return reply
    }
    const routeTo = (
      to: FastifyInstance,
      path: string,
      method: readonly string[],
      by: Answer,
      isAsking: boolean,
    ): void => {
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
    for (const path of [...Object.keys(ASKING), ...Object.keys(OTHERS)]) refuseOthers(scope, path, BOTH)
    for (const [path, by] of Object.entries(ASKING)) routeTo(scope, path, BOTH, by, true)
    for (const [path, by] of Object.entries(OTHERS)) routeTo(scope, path, BOTH, by, false)
    scope.register((inner, _nothing, added) => {
      inner.removeAllContentTypeParsers()
      inner.addContentTypeParser(PROTOBUF, { parseAs: 'buffer', bodyLimit: MAX_FORM_BYTES }, (_request, body, done) =>
        done(null, body),
      )
      refuseOthers(inner, '/read', ['POST'])
      routeTo(inner, '/read', ['POST'], (api, request) => api.remoteRead(request), true)
      added()
    })
    registered()
  })
}

const NO_PROOF = 'a token is needed, Authorization: Bearer <token>, or the certificate of a user'
const OTHER_FORM = `a body has the type ${FORM}`
const NO_HISTORY = 'this server has no history'

/** Of the form first, as Go's FormValue has it. */
function givenIn({ body, url }: FastifyRequest): URLSearchParams {
  const inForm = new URLSearchParams(typeof body === 'string' ? body : '')
  for (const [name, text] of new URLSearchParams(/\?(.*)$/s.exec(url)?.[1] ?? '')) inForm.append(name, text)
  return inForm
}

function answered(reply: FastifyReply): FastifyReply {
  return reply.header('cache-control', 'no-store').type('application/json')
}

function refuse(reply: FastifyReply, problem: QueryProblem, status = problem.status): FastifyReply {
  if (status === 401) void reply.header('www-authenticate', 'Bearer')
  return answered(reply.code(status)).send(problem.body)
}
