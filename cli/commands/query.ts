/** `cinnabar query`: an expression of PromQL over the history of a server, at a time or over a range. */
import { type Command, InvalidArgumentError } from 'commander'
import { parseDuration } from '../../server/kernel/config/duration.ts'
import { API_URL, askApi } from '../api.ts'
import { sinceOf } from '../arguments.ts'
import { ExitCode, Failure } from '../failure.ts'
import { csvField, jsonText, printable } from '../format.ts'
import { type FormRequest, httpUrlOf } from '../http.ts'
import { resolveToken, type TokenOptions, withTokenOptions } from '../login.ts'
import { formatTable } from '../output.ts'
import { plot } from '../plot.ts'
import type { Cli } from '../session.ts'
import type { Terminal } from '../terminal.ts'
import { safeText } from '../width.ts'

const HOUR_MS = 3_600_000
/** Points of a series, if no step is given. */
const USUAL_POINTS = 120
/** The drawing of --plot: characters, at least and at most, and where there is no terminal. */
const PLOT = { least: 40, most: 160, usual: 80, rows: 16 }

interface QueryCommandOptions extends TokenOptions {
  readonly at?: number
  readonly since?: number
  readonly until?: number
  readonly step?: number
  readonly json?: boolean
  readonly csv?: boolean
  readonly plot?: boolean
}

type Sample = readonly [seconds: number, value: string]
type Metric = Readonly<Record<string, string>>

type Data =
  | { readonly resultType: 'scalar'; readonly result: Sample }
  | { readonly resultType: 'string'; readonly result: Sample }
  | { readonly resultType: 'vector'; readonly result: readonly SeriesOfAnswer[] }
  | { readonly resultType: 'matrix'; readonly result: readonly SeriesOfAnswer[] }

type SeriesOfAnswer =
  | { readonly metric: Metric; readonly value: Sample }
  | { readonly metric: Metric; readonly values: readonly Sample[] }

export function addQuery(program: Command, { terminal }: Cli, wallMs: () => number = () => Date.now()): void {
  const moment = (text: string): number => sinceOf(text, wallMs()) / 1_000
  withTokenOptions(program.command('query'), API_URL)
    .description('evaluate an expression of PromQL over the history, at a time or over a range')
    .argument(
      '<expression>',
      "the expression, in quotes: 'sum by (host) (rate(host_net_received_bytes[5m]))'; after -- if it begins with -",
    )
    .option(
      '--at <when>',
      'at this time: how long ago, such as 2h, or a time such as 2026-11-22T08:00 (default: now)',
      moment,
    )
    .option('--since <when>', 'over a range that begins then', moment)
    .option('--until <when>', 'over a range that ends then (default: now)', moment)
    .option(
      '--step <duration>',
      `from one point of the range to the next, such as 15s (default: for ${USUAL_POINTS})`,
      stepMs,
    )
    .option('--json', 'print a JSON object per series')
    .option('--csv', 'print comma-separated values: the time in seconds, the labels, the value')
    .option('--plot', 'draw the range in the terminal, by default that of the last hour')
    .action(async (expression: string, options: QueryCommandOptions) => {
      const asked = requestOf(expression, options, wallMs())
      const { token, from, tls } = await resolveToken(options, terminal, 'COLLECT *')
      const to = await httpUrlOf(options, terminal, 'queries go to')
      const request: FormRequest = { url: to, path: asked.path, token, tls }
      const data = (await askApi(request, asked.form, from, terminal)) as Data
      const text = textOf(data, options, asked, terminal)
      if (text !== '') await terminal.print(text)
      else if (options.json !== true && options.csv !== true) terminal.note('nothing matches')
    })
}

/** Throws InvalidArgumentError. */
function stepMs(text: string): number {
  const ms = parseDuration(text)
  if (ms !== undefined && ms >= 1) return ms
  throw new InvalidArgumentError('Expected a duration such as 15s, 1m or 500ms.')
}

interface Asked {
  readonly path: string
  readonly form: URLSearchParams
  /** Seconds; undefined at one time. */
  readonly range: { readonly from: number; readonly to: number } | undefined
}

/** Throws Failure. */
function requestOf(query: string, options: QueryCommandOptions, nowMs: number): Asked {
  const { at, since, until, step, json, csv, plot: isPlot = false } = options
  if ([json, csv, isPlot].filter((one) => one === true).length > 1) throw usage('give one of --json, --csv and --plot')
  const isRange = isPlot || since !== undefined || until !== undefined || step !== undefined
  if (!isRange) {
    const form = new URLSearchParams({ query, time: seconds(at ?? nowMs) })
    return { path: '/api/v1/query', form, range: undefined }
  }
  if (at !== undefined) throw usage('--at is for one time, and --since, --until, --step and --plot are for a range')
  const endMs = until ?? nowMs
  const startMs = since ?? endMs - HOUR_MS
  if (startMs >= endMs) throw usage('--since has to be before --until')
  const usualStepMs = Math.max(1_000, Math.ceil((endMs - startMs) / USUAL_POINTS / 1_000) * 1_000)
  const form = new URLSearchParams({ query, start: seconds(startMs), end: seconds(endMs) })
  form.set('step', seconds(step ?? usualStepMs))
  return { path: '/api/v1/query_range', form, range: { from: startMs / 1_000, to: endMs / 1_000 } }
}

function usage(message: string): Failure {
  return new Failure(ExitCode.USAGE, message)
}

function seconds(ms: number): string {
  return String(Math.round(ms) / 1_000)
}

function textOf(data: Data, options: QueryCommandOptions, { range }: Asked, { colors, screen }: Terminal): string {
  const columns = screen?.size().columns
  if (data.resultType === 'scalar' || data.resultType === 'string') {
    const [, value] = data.result
    if (options.json) return jsonText({ metric: {}, value: data.result })
    return options.csv ? csvOf([{ metric: {}, values: [data.result] }]) : printable(value)
  }
  const { result } = data
  if (options.json) return result.map(jsonText).join('\n')
  const series = result.map((one) => ({ metric: one.metric, values: 'value' in one ? [one.value] : one.values }))
  if (options.csv) return csvOf(series)
  if (series.length === 0) return ''
  if (options.plot && range !== undefined) {
    const lines = series.map(({ metric, values }) => ({
      name: nameOf(metric),
      times: values.map(([time]) => time),
      values: values.map(([, value]) => numberOf(value)),
    }))
    const width = Math.min(PLOT.most, Math.max(PLOT.least, columns ?? PLOT.usual))
    return plot(lines, { columns: width, rows: PLOT.rows, ...range, colors })
  }
  const isTimed = data.resultType === 'matrix'
  const heads = [{ head: 'series' }, ...(isTimed ? [{ head: 'time' }] : []), { head: 'value', align: 'right' as const }]
  const rows = series.flatMap(({ metric, values }) =>
    values.map(([time, value]) => [
      safeText(nameOf(metric)),
      ...(isTimed ? [new Date(time * 1_000).toISOString()] : []),
      value,
    ]),
  )
  return formatTable(heads, rows, colors, columns)
}

/** Names that PromQL takes without quotes. */
const PLAIN_NAME = /^[a-z_:][a-z0-9_:]*$/i
const PLAIN_LABEL = /^[a-z_][a-z0-9_]*$/i

/** As PromQL writes it. */
function nameOf({ __name__: name = '', ...labels }: Metric): string {
  const pairs = Object.entries(labels).map(
    ([label, text]) => `${PLAIN_LABEL.test(label) ? label : JSON.stringify(label)}=${JSON.stringify(text)}`,
  )
  const isPlain = PLAIN_NAME.test(name)
  const inside = name === '' || isPlain ? pairs : [JSON.stringify(name), ...pairs]
  return isPlain && pairs.length === 0 ? name : `${isPlain ? name : ''}{${inside.join(', ')}}`
}

function numberOf(text: string): number {
  return text === '+Inf' ? Number.POSITIVE_INFINITY : text === '-Inf' ? Number.NEGATIVE_INFINITY : Number(text)
}

interface CsvSeries {
  readonly metric: Metric
  readonly values: readonly Sample[]
}

/** As RFC 4180 has it, with a head, and lines as they are here. */
function csvOf(series: readonly CsvSeries[]): string {
  const labels = [...new Set(series.flatMap(({ metric }) => Object.keys(metric)))].sort()
  const rows = series.flatMap(({ metric, values }) =>
    values.map(([time, value]) => [String(time), ...labels.map((label) => metric[label] ?? ''), value]),
  )
  return [['time', ...labels, 'value'], ...rows].map((row) => row.map(csvField).join(',')).join('\n')
}
