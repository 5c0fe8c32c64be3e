/** What paths of `/api/v1` answer from the history, and of expressions, as Prometheus' HTTP API has it: in the thread of queries. */
import { PromqlError } from '../../../../promql/errors.ts'
import { PreparedQuery, type QueryResult } from '../../../../promql/query.ts'
import { evaluate, MAX_POINTS } from '../../query/evaluate.ts'
import { invalidParameter, QueryProblem } from '../../query/problems.ts'
import type { AskedTimes } from '../../query/run.ts'
import { type QueryStatistics, resultTexts, successTexts } from './json.ts'
import { type ApiRequest, QueryParameters } from './parameters.ts'
import type { SendableAnswer } from './pieces.ts'
import { remoteRead } from './remote-read.ts'
import { labelNamesFound, labelValuesFound, seriesFound } from './series.ts'
import { syntaxTree } from './syntax-tree.ts'

async function instantQuery(request: ApiRequest): Promise<Iterable<string>> {
  const parameters = new QueryParameters(request.given)
  const limit = parameters.limit()
  const timeMs = parameters.timeMs('time', request.nowMs)
  const query = prepared(parameters)
  return evaluated(request, query, { timeMs }, parameters, limit)
}

async function rangeQuery(request: ApiRequest): Promise<Iterable<string>> {
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
  return evaluated(request, query, { startMs, endMs, stepMs }, parameters, limit)
}

async function formatQuery({ given }: ApiRequest): Promise<Iterable<string>> {
  return successTexts([JSON.stringify(prepared(new QueryParameters(given)).printed)])
}

async function parseQuery({ given }: ApiRequest): Promise<Iterable<string>> {
  return successTexts([JSON.stringify(syntaxTree(prepared(new QueryParameters(given)).expression))])
}

/** There are none; what is wrong with the question is said all the same. */
async function exemplarsFound(request: ApiRequest): Promise<Iterable<string>> {
  const parameters = new QueryParameters(request.given)
  const [startMs, endMs] = [parameters.timeMs('start', 0), parameters.timeMs('end', request.nowMs)]
  if (endMs < startMs) throw new QueryProblem('bad_data', 'end timestamp must not be before start timestamp')
  prepared(parameters)
  return successTexts(['[]'])
}

/** By the last part of their paths. Each rejects with what `problemOf` takes. */
export const answers = {
  query: instantQuery,
  query_range: rangeQuery,
  series: seriesFound,
  labels: labelNamesFound,
  values: labelValuesFound,
  read: remoteRead,
  format_query: formatQuery,
  parse_query: parseQuery,
  query_exemplars: exemplarsFound,
} as const satisfies Readonly<Record<string, (request: ApiRequest) => Promise<SendableAnswer>>>

export type AnswerName = keyof typeof answers

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

async function evaluated(
  request: ApiRequest,
  query: PreparedQuery,
  times: AskedTimes,
  parameters: QueryParameters,
  limit: number,
): Promise<Iterable<string>> {
  const lookbackMs = Math.trunc(parameters.durationMs('lookback_delta') ?? 0)
  const timeoutMs = parameters.durationMs('timeout')
  const { clock } = request.run
  const begunMs = clock.monotonicMs()
  try {
    const result = await evaluate(request, query, times, { lookbackMs, timeoutMs, limit })
    const tookMs = clock.monotonicMs() - begunMs
    const statistics = parameters.text('stats') === '' ? undefined : statisticsOf(result, request.waitedMs, tookMs)
    return successTexts(resultTexts(result.data, statistics), result)
  } catch (error) {
    throw asParameter('query', error)
  }
}

function statisticsOf({ samples, peakPoints }: QueryResult, waitedMs: number, tookMs: number): QueryStatistics {
  const [evalTotalTime, execQueueTime] = [tookMs / 1_000, waitedMs / 1_000]
  return {
    timings: { evalTotalTime, execQueueTime, execTotalTime: evalTotalTime + execQueueTime },
    samples: { totalQueryableSamples: samples, peakSamples: peakPoints },
  }
}
