/** An expression is evaluated over the history, as far as the reader may read it and within the bounds of a query. */
import { QUERY_LIMITS } from '../../../promql/evaluate/budget.ts'
import { selectorsOf } from '../../../promql/expression.ts'
import { PreparedQuery, QUERY_OPTIONS, type QueryOptions, type QueryResult } from '../../../promql/query.ts'
import type { RememberedLoss } from '../../kit/history.ts'
import { evaluateElsewhere } from './engine.ts'
import { HistorySource, plainMatchers } from './history-source.ts'
import { QueryProblem } from './problems.ts'
import { type AskedTimes, MAX_BYTES, type QueryRequest, runQuery } from './run.ts'

/** Steps between the first time of a range and the last one. */
export const MAX_POINTS = 11_000
export const TRUNCATED = 'results truncated due to limit'

export interface EvaluateOptions {
  /** None and less are the default. */
  readonly lookbackMs?: number
  readonly timeoutMs?: number | undefined
  /** The most elements of the result: the rest is left out, with a warning. */
  readonly limit: number
}

/** Rejects with PromqlError, QueryProblem and StatusError. */
export async function evaluate(
  request: QueryRequest,
  query: PreparedQuery,
  times: AskedTimes,
  { lookbackMs = 0, timeoutMs = Number.POSITIVE_INFINITY, limit }: EvaluateOptions,
): Promise<QueryResult> {
  const { history, run, maxSamples } = request
  const { elsewhere } = history
  if (elsewhere !== undefined) {
    const asked = { ...request, run: { ...run, timeoutMs: Math.min(run.timeoutMs, timeoutMs) } }
    return shown(await evaluateElsewhere(asked, elsewhere, query, times, { lookbackMs }), limit)
  }
  const options: QueryOptions = {
    ...QUERY_OPTIONS,
    ...(lookbackMs > 0 && { lookbackMs }),
    limits: { ...QUERY_LIMITS, maxSamples, maxBytes: MAX_BYTES },
    maxSteps: MAX_POINTS + 1,
    onHeld: (bytes) => run.memory?.took(bytes),
  }
  // Whoever says how far to look back means it.
  const source = new HistorySource((selection) => history.select(selection), lookbackMs <= 0)
  const steps =
    'timeMs' in times
      ? query.instant(source, times.timeMs, options)
      : query.range(source, times.startMs, times.endMs, times.stepMs, options)
  const result = await runQuery(steps, source, { ...run, timeoutMs: Math.min(run.timeoutMs, timeoutMs) })
  return shown(result, limit)
}

function shown(result: QueryResult, limit: number): QueryResult {
  const data = limited(result.data, limit)
  return data === result.data ? result : { ...result, data, warnings: [...result.warnings, TRUNCATED] }
}

/** As `evaluate` does. */
export async function evaluateText(
  request: QueryRequest,
  text: string,
  times: AskedTimes,
  options: EvaluateOptions,
): Promise<QueryResult> {
  return evaluate(request, new PreparedQuery(text), times, options)
}

/**
 * Ranges of loss that overlap the times and concern what the selectors of an expression ask for, as far as the reader may read it: each
 * once, ascending. Another server, where one answers expressions, knows of none. Rejects as `evaluate` does.
 */
export async function lossesOf(
  { history, run }: QueryRequest,
  text: string,
  times: AskedTimes,
): Promise<readonly RememberedLoss[]> {
  if (history.elsewhere !== undefined) return []
  const [fromMs, toMs] = 'timeMs' in times ? [times.timeMs, times.timeMs] : [times.startMs, times.endMs]
  const lastMs = run.clock.monotonicMs() + run.timeoutMs
  const found = new Map<string, RememberedLoss>()
  const asked = new Set<string>()
  for (const selector of selectorsOf(new PreparedQuery(text).expression)) {
    const matchers = plainMatchers(selector.matchers)
    const key = JSON.stringify(matchers)
    if (asked.has(key) || run.ended.aborted) continue
    asked.add(key)
    // Each selector may walk all series.
    if (run.clock.monotonicMs() >= lastMs) throw new QueryProblem('timeout', 'query timed out in looking for losses')
    for (const loss of await history.losses({ matchers, fromMs, toMs })) found.set(JSON.stringify(loss), loss)
  }
  return [...found.values()].sort((a, b) => a.fromMs - b.fromMs)
}

function limited(data: QueryResult['data'], limit: number): QueryResult['data'] {
  if (data.type === 'vector' && data.samples.length > limit) return { ...data, samples: data.samples.slice(0, limit) }
  if (data.type === 'matrix' && data.series.length > limit) return { ...data, series: data.series.slice(0, limit) }
  return data
}
