/** Runs one evaluation of a script, and says what is wrong with its result, in one line; undefined if nothing is. */
import { PromqlError } from '../../../promql/errors.ts'
import { compareLabelSets } from '../../../promql/label-set.ts'
import { finished } from '../../../promql/memory-source.ts'
import { HISTOGRAM } from '../../../promql/parse/series-notation.ts'
import { printExpression } from '../../../promql/print.ts'
import { PreparedQuery, type QueryResult, type ResultData } from '../../../promql/query.ts'
import type { SeriesSource } from '../../../promql/series-source.ts'
import { timesFor, withAt } from './at-modifiers.ts'
import type { Evaluation } from './script.ts'

const EPSILON = 0.000001

/** Throws PromqlError if the language has something here that is not supported. */
export function judge(evaluation: Evaluation, source: SeriesSource): string | undefined {
  const { text, startMs, endMs, stepMs } = evaluation
  if (stepMs !== undefined)
    return outcome(
      evaluation,
      text,
      (query) => finished(query.range(source, startMs, endMs, stepMs)),
      (result) => differsFromMatrix(evaluation, result.data, startMs, stepMs),
    )
  const first = judgeInstant(evaluation, text, startMs, source)
  if (first !== undefined || evaluation.expectations.some(({ of }) => of === 'fail')) return first
  const at = withAt(new PreparedQuery(text).expression, startMs)
  if (at === undefined) return undefined
  const printed = printExpression(at)
  for (const ms of timesFor(startMs)) {
    const problem = judgeInstant(evaluation, printed, ms, source)
    if (problem !== undefined) return `at ${ms} ms: ${printed}: ${problem}`
  }
  return undefined
}

function judgeInstant(evaluation: Evaluation, text: string, ms: number, source: SeriesSource): string | undefined {
  const { rangeVector, string } = evaluation
  const problem = outcome(
    evaluation,
    text,
    (query) => finished(query.instant(source, ms)),
    ({ data }) => {
      if (rangeVector !== undefined) return differsFromMatrix(evaluation, data, rangeVector.startMs, rangeVector.stepMs)
      return differsFromInstant(evaluation, data)
    },
  )
  const isFailure = evaluation.expectations.some(({ of }) => of === 'fail')
  if (problem !== undefined || isFailure || rangeVector !== undefined || string !== undefined) return problem
  return differsInTheMiddle(evaluation, text, ms, source)
}

/** In the middle of a range the result is the same. */
function differsInTheMiddle(
  evaluation: Evaluation,
  text: string,
  ms: number,
  source: SeriesSource,
): string | undefined {
  if (evaluation.isOrdered) return undefined
  const query = new PreparedQuery(text)
  const { data } = finished(query.range(source, ms - 60_000, ms + 60_000, 60_000))
  if (data.type !== 'matrix') return `in a range: got a ${data.type}`
  const samples = data.series.flatMap(({ labels, times, values }) => {
    const index = times.indexOf(ms)
    return index < 0 ? [] : [{ labels, value: values[index] ?? 0 }]
  })
  const found: ResultData =
    evaluation.scalar === undefined
      ? { type: 'vector', timeMs: ms, samples }
      : { type: 'scalar', timeMs: ms, value: samples[0]?.value ?? Number.NaN }
  const problem = differsFromInstant(evaluation, found)
  return problem === undefined ? undefined : `in a range: ${problem}`
}

function outcome(
  evaluation: Evaluation,
  text: string,
  run: (query: PreparedQuery) => QueryResult,
  differs: (result: QueryResult) => string | undefined,
): string | undefined {
  const failure = evaluation.expectations.find(({ of }) => of === 'fail')
  let result: QueryResult
  try {
    result = run(new PreparedQuery(text))
  } catch (error) {
    if (!(error instanceof PromqlError) || error.feature !== undefined) throw error
    if (failure === undefined) return `failed: ${error.message}`
    const matching = evaluation.expectations.filter(({ of }) => of === 'fail')
    return matching.every(({ matches }) => matches(error.message)) ? undefined : `failed otherwise: ${error.message}`
  }
  if (failure !== undefined) return 'did not fail'
  return differsInAnnotations(evaluation, result) ?? differs(result)
}

function differsInAnnotations(evaluation: Evaluation, { warnings, infos }: QueryResult): string | undefined {
  for (const [of, found] of [['warn', warnings] as const, ['info', infos] as const]) {
    const expected = evaluation.expectations.filter((expectation) => expectation.of === of)
    if (expected.length === 0) continue
    const missing = expected.some(({ matches }) => !found.some(matches))
    const isMore = found.some((message) => !expected.some(({ matches }) => matches(message)))
    if (missing || isMore) return `${of}: ${found.join('; ') || 'nothing was said'}`
  }
  if (evaluation.isWithoutWarning && warnings.length > 0) return `warned: ${warnings.join('; ')}`
  if (evaluation.isWithoutInfo && infos.length > 0) return `informed: ${infos.join('; ')}`
  return undefined
}

function differsFromInstant(evaluation: Evaluation, data: ResultData): string | undefined {
  if (data.type === 'string') return data.text === evaluation.string ? undefined : `got the text ${data.text}`
  if (data.type === 'scalar') {
    const { scalar } = evaluation
    return scalar !== undefined && isAlmost(data.value, scalar) ? undefined : `got ${data.value}`
  }
  if (data.type !== 'vector') return `got a ${data.type}`
  if (evaluation.scalar !== undefined) return 'got a vector'
  const expected = new Map(evaluation.series.map(({ labels, values }, index) => [labels.key, { values, index }]))
  for (const [index, { labels, value }] of data.samples.entries()) {
    const wanted = expected.get(labels.key)
    if (wanted === undefined) return `got ${labels} ${value} as well`
    if (evaluation.isOrdered && wanted.index !== index) return `${labels} is at ${index}, not at ${wanted.index}`
    const number = wanted.values[0]
    if (typeof number !== 'number' || !isAlmost(value, number)) return `${labels} is ${value}, not ${String(number)}`
  }
  if (data.samples.length === expected.size) return undefined
  return `got ${data.samples.length} series, not ${expected.size}`
}

function differsFromMatrix(
  { series }: Evaluation,
  data: ResultData,
  startMs: number,
  stepMs: number,
): string | undefined {
  if (data.type !== 'matrix') return `got a ${data.type}`
  const expected = new Map(series.map(({ labels, values }) => [labels.key, values]))
  for (const [index, { labels, times, values }] of data.series.entries()) {
    const before = data.series[index - 1]
    if (before !== undefined && compareLabelSets(before.labels, labels) >= 0) return `${labels} is not in its order`
    const wanted = expected.get(labels.key)
    if (wanted === undefined) return `got ${labels} ${[...values].join(' ')} as well`
    const points = wanted.flatMap((value, step) =>
      typeof value === 'number' ? [[startMs + step * stepMs, value] as const] : [],
    )
    const isSame =
      points.length === times.length &&
      points.every(([ms, value], point) => times[point] === ms && isAlmost(values[point] ?? 0, value))
    if (!isSame) return `${labels} is ${[...values].join(' ')} at ${[...times].join(' ')}`
  }
  return data.series.length === expected.size ? undefined : `got ${data.series.length} series, not ${expected.size}`
}

/** Whether the script itself speaks of native histograms. */
export function expectsHistograms({ series }: Evaluation): boolean {
  return series.some(({ values }) => values.includes(HISTOGRAM))
}

function isAlmost(left: number, right: number): boolean {
  if (Number.isNaN(left) && Number.isNaN(right)) return true
  if (left === right) return true
  const sum = Math.abs(left) + Math.abs(right)
  const difference = Math.abs(left - right)
  if (left === 0 || right === 0 || sum < 2 ** -1022) return difference < EPSILON * 2 ** -1022
  return difference / Math.min(sum, Number.MAX_VALUE) < EPSILON
}
