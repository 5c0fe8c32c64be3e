/**
 * What the paths of `/api/v1` answer, as Prometheus' HTTP API has it. It is loaded with the first request, and the language of
 * Prometheus with it.
 */
import { PromqlError } from '../../../../promql/errors.ts'
import { QUERY_LIMITS } from '../../../../promql/evaluate/budget.ts'
import { PreparedQuery, QUERY_OPTIONS, type QueryOptions, type QueryResult } from '../../../../promql/query.ts'
import { StatusError } from '../../../kernel/core/errors.ts'
import { HistorySource } from './history-source.ts'
import { resultTexts, successTexts } from './json.ts'
import { QueryParameters } from './parameters.ts'
import { invalidParameter, QueryProblem } from './problems.ts'
import { type ApiRequest, runQuery } from './run.ts'

/** Columns that a query holds at one time, its result included. */
const MAX_BYTES = 64 * 2 ** 20
const MAX_POINTS = 11_000
const TRUNCATED = 'results truncated due to limit'

/** Each answers with texts, to be written in steps, and rejects with what `problemOf` takes. */
export async function instantQuery(request: ApiRequest): Promise<Iterable<string>> {
  const parameters = new QueryParameters(request.given)
  const limit = parameters.limit()
  const timeMs = parameters.timeMs('time', request.nowMs)
  const query = prepared(parameters)
  const options = optionsOf(parameters, request)
  return evaluated(request, parameters, limit, (source) => query.instant(source, timeMs, options))
}

export async function rangeQuery(request: ApiRequest): Promise<Iterable<string>> {
  const parameters = new QueryParameters(request.given)
  const limit = parameters.limit()
  const [startMs, endMs] = [parameters.timeMs('start'), parameters.timeMs('end')]
  if (endMs < startMs) throw invalidParameter('end', 'end timestamp must not be before start time')
  const stepMs = Math.trunc(parameters.neededDurationMs('step'))
  if (stepMs < 1)
    throw invalidParameter(
      'step',
      'zero or negative query resolution step widths are not accepted. Try a positive integer',
    )
  if (Math.floor((endMs - startMs) / stepMs) > MAX_POINTS)
    throw new QueryProblem(
      'bad_data',
      'exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the query resolution (?step=XX)',
    )
  const query = prepared(parameters)
  const options = optionsOf(parameters, request)
  return evaluated(request, parameters, limit, (source) => query.range(source, startMs, endMs, stepMs, options))
}

export async function formatQuery({ given }: ApiRequest): Promise<Iterable<string>> {
  return successTexts([JSON.stringify(prepared(new QueryParameters(given)).printed)])
}

/** The language of an expression is that of this version. */
const PROMETHEUS_VERSION = '3.0.0'

export async function buildInformation({ software }: ApiRequest): Promise<Iterable<string>> {
  const [application = '', revision = ''] = software.split('/')
  const facts = { version: PROMETHEUS_VERSION, revision, branch: '', buildUser: '', buildDate: '', goVersion: '' }
  return successTexts([JSON.stringify({ application, ...facts })])
}

export async function nothing(data: string): Promise<Iterable<string>> {
  return successTexts([data])
}

export { labelNamesFound, labelValuesFound, seriesFound } from './series.ts'

/** As far as an error is one of the request, or of its evaluation; undefined if it is a fault. */
export function problemOf(error: unknown): QueryProblem | undefined {
  if (error instanceof QueryProblem) return error
  if (error instanceof PromqlError) return new QueryProblem(error.type, error.message)
  if (!(error instanceof StatusError)) return undefined
  return new QueryProblem(error.status === 'INVALID_ARGUMENT' ? 'bad_data' : 'unavailable', error.message)
}

/** Throws QueryProblem. */
function prepared(parameters: QueryParameters): PreparedQuery {
  try {
    return new PreparedQuery(parameters.text('query'))
  } catch (error) {
    throw asParameter('query', error)
  }
}

function asParameter(name: string, error: unknown): unknown {
  return error instanceof PromqlError && error.type === 'bad_data' ? invalidParameter(name, error.message) : error
}

function optionsOf(parameters: QueryParameters, { maxSamples }: ApiRequest): QueryOptions {
  const lookbackMs = Math.trunc(parameters.durationMs('lookback_delta') ?? 0)
  return {
    ...QUERY_OPTIONS,
    // As there, none and less are the default.
    ...(lookbackMs > 0 && { lookbackMs }),
    limits: { ...QUERY_LIMITS, maxSamples, maxBytes: MAX_BYTES },
    maxSteps: MAX_POINTS + 1,
  }
}

async function evaluated(
  { reader, history, run }: ApiRequest,
  parameters: QueryParameters,
  limit: number,
  steps: (source: HistorySource) => Generator<unknown, QueryResult, void>,
): Promise<Iterable<string>> {
  const asked = parameters.durationMs('timeout')
  const timeoutMs = Math.min(run.timeoutMs, asked ?? Number.POSITIVE_INFINITY)
  const source = new HistorySource((selection) => history.select(reader, selection))
  try {
    const { data, warnings, infos } = await runQuery(steps(source), source, { ...run, timeoutMs })
    const { shown, isCut } = limited(data, limit)
    return successTexts(resultTexts(shown), { warnings: isCut ? [...warnings, TRUNCATED] : warnings, infos })
  } catch (error) {
    throw asParameter('query', error)
  }
}

function limited(data: QueryResult['data'], limit: number): { shown: QueryResult['data']; isCut: boolean } {
  if (data.type === 'vector' && data.samples.length > limit)
    return { shown: { ...data, samples: data.samples.slice(0, limit) }, isCut: true }
  if (data.type === 'matrix' && data.series.length > limit)
    return { shown: { ...data, series: data.series.slice(0, limit) }, isCut: true }
  return { shown: data, isCut: false }
}
