/**
 * Where another server answers expressions (`history.engine`): what is asked of it, restricted to the tenant of the reader by the
 * parsed expression and never by its text, and its answers as if the expression had been evaluated here.
 */
import type { Expression } from '../../../promql/expression.ts'
import { LabelMatcher } from '../../../promql/label-matcher.ts'
import { LabelSet } from '../../../promql/label-set.ts'
import { floatOf } from '../../../promql/parse/numbers.ts'
import { printExpression } from '../../../promql/print.ts'
import type { PreparedQuery, QueryResult, ResultData } from '../../../promql/query.ts'
import { restrictExpression } from '../../../promql/restrict.ts'
import type { Steps } from '../../kernel/core/fair-work.ts'
import type { RememberedSelection } from '../../kit/history.ts'
import type { ScopedEngine } from './asked-history.ts'
import { JsonElements } from './json-elements.ts'
import { CrowdedQuery, type QueryErrorType, QueryProblem } from './problems.ts'
import type { AskedTimes, QueryRequest } from './run.ts'

/** Of an answer: its bytes, and the characters of one series of it. */
const [MOST_BYTES, MOST_CHARACTERS] = [64 << 20, 4 << 20]
/** What becomes of a byte of an answer takes about as many. */
const BYTES_OF_BYTE = 4
/** Of what an answer says is wrong. */
const MOST_SAID = 1_000

const FORBIDDEN =
  'the history is asked at another server, which knows no rules of this one: only who may read all metrics of the tenant may ask there'

type Matchers = RememberedSelection['matchers']
/** Milliseconds since 1970. */
type Point = readonly [timeMs: number, value: number]

interface Rest {
  readonly status?: unknown
  readonly data?: unknown
  readonly warnings?: unknown
  readonly infos?: unknown
  readonly error?: unknown
  readonly errorType?: unknown
}

interface Series {
  readonly labels: LabelSet
  /** Of a vector. */
  readonly point: Point | undefined
  readonly points: readonly Point[]
}

/** Rejects with QueryProblem. */
export async function evaluateElsewhere(
  request: QueryRequest,
  engine: ScopedEngine,
  query: PreparedQuery,
  times: AskedTimes,
  { lookbackMs }: { readonly lookbackMs: number },
): Promise<QueryResult> {
  const form = new URLSearchParams({ query: restricted(engine, query.expression) })
  if ('timeMs' in times) form.set('time', seconds(times.timeMs))
  else {
    form.set('start', seconds(times.startMs))
    form.set('end', seconds(times.endMs))
    form.set('step', seconds(times.stepMs))
  }
  if (lookbackMs > 0) form.set('lookback_delta', seconds(lookbackMs))
  form.set('timeout', seconds(request.run.timeoutMs))
  const all: Series[] = []
  const rest = await ask(request, engine, 'timeMs' in times ? 'query' : 'query_range', form, (series) => {
    all.push(seriesOf(series))
  })
  const data = dataOf(rest.data, all)
  return {
    data,
    warnings: texts(rest.warnings),
    infos: texts(rest.infos),
    samples: 0,
    series: all.length,
    peakPoints: 0,
  }
}

/** The labels of each series that matches; `take` is given them one by one. Rejects with QueryProblem. */
export async function seriesElsewhere(
  request: QueryRequest,
  engine: ScopedEngine,
  selections: readonly Matchers[],
  range: { readonly fromMs: number; readonly toMs: number },
  take: (pairs: [name: string, text: string][]) => void,
): Promise<void> {
  const form = matching(request, engine, selections, range)
  await ask(request, engine, 'series', form, (labels) => take(pairsOf(labels)))
}

/** The names of labels, or the texts of one. Rejects with QueryProblem. */
export async function textsElsewhere(
  request: QueryRequest,
  engine: ScopedEngine,
  label: string | undefined,
  selections: readonly Matchers[],
  range: { readonly fromMs: number; readonly toMs: number },
): Promise<readonly string[]> {
  const form = matching(request, engine, selections, range)
  const path = label === undefined ? 'labels' : `label/${encodeURIComponent(label)}/values`
  return texts((await ask(request, engine, path, form, () => {})).data)
}

function matching(
  request: QueryRequest,
  engine: ScopedEngine,
  selections: readonly Matchers[],
  { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
): URLSearchParams {
  const form = new URLSearchParams({ start: seconds(fromMs) })
  // Up to now by its own clock, if nothing else is asked for.
  if (toMs < request.nowMs) form.set('end', seconds(toMs))
  const place = { range: { start: 0, end: 0 }, offsetMs: 0, at: undefined, metric: undefined }
  for (const selection of selections) {
    const matchers = selection.map(({ label, operator, text }) => new LabelMatcher(label, operator, text))
    form.append('match[]', restricted(engine, { kind: 'selector', ...place, matchers }))
  }
  return form
}

/** Throws QueryProblem. */
function restricted({ scope }: ScopedEngine, expression: Expression): string {
  if (scope === undefined) throw new QueryProblem('forbidden', FORBIDDEN)
  return printExpression(restrictExpression(expression, new LabelMatcher(scope.label, '=', scope.text)))
}

/** Gives what stands around the objects of lists, which `take` is given. Rejects with QueryProblem. */
async function ask(
  { run }: QueryRequest,
  engine: ScopedEngine,
  path: string,
  form: URLSearchParams,
  take: (element: unknown) => void,
): Promise<Rest> {
  const { work, tenant, clock, timeoutMs, ended, memory } = run
  const late = new AbortController()
  const timer = clock.setTimeout(() => late.abort(), timeoutMs)
  try {
    const { status, pieces } = await engine.ask(path, form, AbortSignal.any([ended, late.signal]))
    const elements = new JsonElements(MOST_CHARACTERS, take)
    const decoder = new TextDecoder()
    let bytes = 0
    for await (const piece of pieces) {
      bytes += piece.length
      if (bytes > MOST_BYTES) throw new QueryProblem('execution', `the answer has more than ${MOST_BYTES} bytes`)
      memory?.took(BYTES_OF_BYTE * piece.length)
      if (memory?.refused.aborted) throw new CrowdedQuery()
      await work.run({ tenant }, added(elements, decoder.decode(piece, { stream: true })))
    }
    const rest = Object(elements.rest()) as Rest
    if (status === 200 && rest.status === 'success') return rest
    throw refusalOf(status, rest)
  } catch (error) {
    if (error instanceof QueryProblem) throw error
    if (ended.aborted) throw new QueryProblem('canceled', 'query was canceled')
    if (late.signal.aborted) throw new QueryProblem('timeout', 'query timed out in expression evaluation')
    if (error instanceof SyntaxError) throw unreadable(error)
    if (error instanceof Error)
      throw new QueryProblem('unavailable', `history.engine gives no answer: ${error.message}`)
    throw error
  } finally {
    clock.clear(timer)
  }
}

// biome-ignore lint/correctness/useYield: to read one piece is one step
function* added(elements: JsonElements, piece: string): Steps<void> {
  elements.add(piece)
}

const TYPES: Readonly<Record<number, QueryErrorType>> = { 400: 'bad_data', 422: 'execution', 503: 'timeout' }

function refusalOf(status: number, { error }: Rest): QueryProblem {
  const type = TYPES[status]
  if (type !== undefined && typeof error === 'string') return new QueryProblem(type, error.slice(0, MOST_SAID))
  return new QueryProblem('unavailable', `history.engine answered with the status ${status}`)
}

/** Throws QueryProblem. */
function dataOf(data: unknown, all: readonly Series[]): ResultData {
  const { resultType: type, result } = Object(data) as { readonly resultType?: unknown; readonly result?: unknown }
  try {
    switch (type) {
      case 'scalar': {
        const [timeMs, value] = pointOf(result)
        return { type, timeMs, value }
      }
      case 'string': {
        const [timeMs, text] = pairOf(result)
        return { type, timeMs, text }
      }
      case 'vector': {
        const samples = all.map(({ labels, point }) => ({ labels, value: needed(point)[1] }))
        return { type, timeMs: all[0]?.point?.[0] ?? 0, samples }
      }
      case 'matrix': {
        const series = all.map(({ labels, points }) => ({
          labels,
          times: Float64Array.from(points, ([timeMs]) => timeMs),
          values: Float64Array.from(points, ([, value]) => value),
        }))
        return { type, series }
      }
    }
  } catch (error) {
    throw error instanceof SyntaxError ? unreadable(error) : error
  }
  throw new QueryProblem('unavailable', 'history.engine gave a result of an unknown type')
}

function unreadable({ message }: SyntaxError): QueryProblem {
  return new QueryProblem('unavailable', `history.engine gave an answer that cannot be read: ${message}`)
}

// Each of these throws SyntaxError.

function seriesOf(element: unknown): Series {
  const { metric = {}, value, values = [] } = Object(element) as Readonly<Record<string, unknown>>
  if (!Array.isArray(values)) throw new SyntaxError('the values of a series are no list')
  return {
    labels: LabelSet.of(pairsOf(metric)),
    point: value === undefined ? undefined : pointOf(value),
    points: values.map(pointOf),
  }
}

function pairsOf(labels: unknown): [name: string, text: string][] {
  const pairs: [name: string, text: unknown][] = Object.entries(Object(labels))
  if (typeof labels !== 'object' || !pairs.every((pair): pair is [string, string] => typeof pair[1] === 'string'))
    throw new SyntaxError('a label is no text')
  return pairs
}

function pointOf(point: unknown): Point {
  const [timeMs, text] = pairOf(point)
  const value = floatOf(text)
  if (value === undefined) throw new SyntaxError('a value is no number')
  return [timeMs, value]
}

function pairOf(pair: unknown): [timeMs: number, text: string] {
  const [seconds, text] = Array.isArray(pair) ? (pair as readonly unknown[]) : []
  const timeMs = typeof seconds === 'number' ? Math.round(seconds * 1_000) : Number.NaN
  if (!Number.isSafeInteger(timeMs) || typeof text !== 'string') throw new SyntaxError('no time and value')
  return [timeMs, text]
}

function needed(point: Point | undefined): Point {
  if (point === undefined) throw new SyntaxError('a series has no value')
  return point
}

function seconds(ms: number): string {
  return String(ms / 1_000)
}

function texts(list: unknown): readonly string[] {
  return Array.isArray(list) ? list.filter((one) => typeof one === 'string') : []
}
