/** Answers as JSON, letter by letter as Prometheus writes them, in small texts: whoever sends them stops between two. */
import { plainNumber } from '../../../../promql/parse/numbers.ts'
import type { ResultData } from '../../../../promql/query.ts'

/** Points of a series that are one text. */
const POINTS_PER_TEXT = 256

export interface Remarks {
  readonly warnings?: readonly string[]
  readonly infos?: readonly string[]
}

/** A whole answer. `data`: the texts of its part of that name. */
export function* successTexts(data: Iterable<string>, { warnings = [], infos = [] }: Remarks = {}): Generator<string> {
  yield '{"status":"success","data":'
  yield* data
  if (warnings.length > 0) yield `,"warnings":${JSON.stringify(warnings)}`
  if (infos.length > 0) yield `,"infos":${JSON.stringify(infos)}`
  yield '}'
}

export function* listTexts(elements: Iterable<string>): Generator<string> {
  let before = '['
  for (const element of elements) {
    yield before + element
    before = ','
  }
  yield before === '[' ? '[]' : ']'
}

/** What a query has taken, by the names of Prometheus. Seconds. */
export interface QueryStatistics {
  readonly timings: { readonly evalTotalTime: number; readonly execQueueTime: number; readonly execTotalTime: number }
  readonly samples: { readonly totalQueryableSamples: number; readonly peakSamples: number }
}

export function* resultTexts(data: ResultData, statistics?: QueryStatistics): Generator<string> {
  yield `{"resultType":"${data.type}","result":`
  if (data.type === 'scalar') yield point(data.timeMs, data.value)
  else if (data.type === 'string') yield `[${jsonTime(data.timeMs)},${JSON.stringify(data.text)}]`
  else if (data.type === 'vector') yield* listTexts(vectorTexts(data))
  else yield* matrixTexts(data)
  yield statistics === undefined ? '}' : `,"stats":${JSON.stringify(statistics)}}`
}

function* vectorTexts({ timeMs, samples }: Extract<ResultData, { type: 'vector' }>): Generator<string> {
  for (const { labels, value } of samples) yield `{"metric":${jsonLabels(labels)},"value":${point(timeMs, value)}}`
}

function* matrixTexts({ series }: Extract<ResultData, { type: 'matrix' }>): Generator<string> {
  let before = '['
  for (const { labels, times, values } of series) {
    let text = `${before}{"metric":${jsonLabels(labels)},"values":[`
    for (let index = 0; index < times.length; index++) {
      if (index > 0) text += ','
      text += point(times[index] ?? 0, values[index] ?? 0)
      if ((index + 1) % POINTS_PER_TEXT !== 0) continue
      yield text
      text = ''
    }
    yield `${text}]}`
    before = ','
  }
  yield before === '[' ? '[]' : ']'
}

export function jsonLabels(labels: Iterable<readonly [name: string, text: string]>): string {
  const pairs = [...labels].map(([name, text]) => `${JSON.stringify(name)}:${JSON.stringify(text)}`)
  return `{${pairs.join(',')}}`
}

function point(timeMs: number, value: number): string {
  return `[${jsonTime(timeMs)},"${jsonNumber(value)}"]`
}

/** Seconds, with three digits after the point unless all are 0. */
export function jsonTime(ms: number): string {
  if (ms % 1_000 === 0) return String(ms / 1_000 + 0)
  const positive = Math.abs(ms)
  return `${ms < 0 ? '-' : ''}${Math.floor(positive / 1_000)}.${String(positive % 1_000).padStart(3, '0')}`
}

/** With an exponent of at least two digits where it is shorter, as Go writes it. */
export function jsonNumber(value: number): string {
  const size = Math.abs(value)
  // JavaScript writes these as Go does.
  if (size >= 1e-6 && size < 1e21) return String(value)
  if (!Number.isFinite(value) || size === 0) return plainNumber(value)
  const [mantissa = '', exponent = ''] = value.toExponential().split('e')
  return `${mantissa}e${exponent.slice(0, 1)}${exponent.slice(1).padStart(2, '0')}`
}
