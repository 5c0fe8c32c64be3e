/** `cinnabar alerts history`: when alerts were pending and have fired, by the series `ALERTS` of the history. */
import type { Command } from 'commander'
import { type Consumer, ExpressionError } from '../../client/index.ts'
import { sinceOf } from '../arguments.ts'
import { ExitCode, Failure } from '../failure.ts'
import { formatDuration, formatTime, jsonText, printable } from '../format.ts'
import { formatTable, JSON_OPTION, type JsonOptions, labelPairs } from '../output.ts'
import { type AnswerRecord, fieldNumber, fieldText, queryAll } from '../records.ts'
import { type Cli, withConsumer, withLoginOptions } from '../session.ts'
import { withProgress } from '../terminal.ts'
import { MATCHER_HELP } from './notifications.ts'

const SECOND_US = 1_000_000
const MS_US = 1_000
const USUAL_SINCE = '24h'
/** How often an alert is evaluated whose rule is not known. */
const USUAL_INTERVAL_US = 60 * SECOND_US
const STATE = 'alertstate'
const MATCHER = /^\s*([a-zA-Z_]\w*)\s*(=~|!~|!=|=)\s*(".*"|[^"{},]*?)\s*$/s

interface HistoryOptions extends JsonOptions {
  /** Microseconds since 1970. */
  readonly since?: number
}

/** A time during which an alert was in one state; microseconds since 1970. */
interface StateSpan {
  readonly state: string
  readonly labels: Readonly<Record<string, string>>
  readonly from: number
  readonly to: number
}

export function addAlertsHistory(alerts: Command, cli: Cli, wallMs: () => number): void {
  const { terminal } = cli
  const moment = (text: string): number => sinceOf(text, wallMs())
  withLoginOptions(alerts.command('history'))
    .description('list when alerts were pending and have fired, also those that are over')
    .argument('[matcher...]', `${MATCHER_HELP}; without any, all alerts`)
    .option('--since <when>', `since when: how long ago, such as 7d, or a time (default: ${USUAL_SINCE})`, moment)
    .option(...JSON_OPTION)
    .action((matchers: readonly string[], options: HistoryOptions) =>
      withConsumer(cli, options, async (consumer) => {
        const { since = moment(USUAL_SINCE), json } = options
        const nowUs = wallMs() * MS_US
        const expr = expressionOf(matchers, Math.ceil((nowUs - since) / SECOND_US))
        const spans = await withProgress(terminal, 'reading the history', spansOf(consumer, expr, nowUs))
        if (spans.length === 0) {
          if (!json) terminal.note('no alert was pending or has fired in this time')
        } else if (json) await terminal.print(spans.map(jsonText).join('\n'))
        else await terminal.print(tableOf(spans, nowUs, cli))
      }),
    )
}

/** Throws Failure. */
function expressionOf(matchers: readonly string[], seconds: number): string {
  if (seconds < 1) throw new Failure(ExitCode.USAGE, '--since has to be a time that is over')
  return `ALERTS{${matchers.map(matcherOf).join(', ')}}[${seconds}s]`
}

/** As PromQL has it, of one as Alertmanager has it. Throws Failure. */
function matcherOf(text: string): string {
  const [, name, operator, value = ''] = MATCHER.exec(text) ?? []
  if (name === undefined)
    throw new Failure(ExitCode.USAGE, `${JSON.stringify(text)} is no matcher; write one like severity="page"`)
  const plain = value.startsWith('"') ? unescaped(value.slice(1, -1)) : value
  return `${name}${operator}${JSON.stringify(plain)}`
}

/** Every other backslash belongs to the regular expression, as Alertmanager has it. */
function unescaped(text: string): string {
  return text.replace(/\\([\\"n])/g, (_, character: string) => (character === 'n' ? '\n' : character))
}

/** In the order in which they began. */
async function spansOf(consumer: Consumer, expr: string, nowUs: number): Promise<readonly StateSpan[]> {
  const [{ series, warnings }, intervalOf] = await Promise.all([
    consumer.evaluate(expr, { at: nowUs }).catch((error: unknown) => {
      throw error instanceof ExpressionError ? new Failure(ExitCode.FAILED, error.message, { cause: error }) : error
    }),
    intervals(consumer),
  ])
  if (warnings.length > 0) throw new Failure(ExitCode.FAILED, warnings.map(printable).join('\n'))
  const spans: StateSpan[] = []
  for (const { labels: given, times } of series) {
    const { [STATE]: state = '', ...labels } = given
    const interval = intervalOf(labels['alertname'] ?? '')
    let from: number | undefined
    for (const [index, time] of times.entries()) {
      from ??= time
      const next = times[index + 1]
      // It was there until the evaluation at which it was not.
      if (next !== undefined && next - time < interval * 1.5) continue
      spans.push({ state, labels, from, to: Math.min(nowUs, time + interval) })
      from = undefined
    }
  }
  return spans.sort((one, other) => one.from - other.from)
}

/** How often the rule with a name is evaluated, in microseconds. */
async function intervals(consumer: Consumer): Promise<(name: string) => number> {
  const next = (last: AnswerRecord) => ({ after: fieldNumber(last, 'rule') })
  const rules = await queryAll(consumer, 'producer.rules', {}, next)
  const known = new Map<string, number>()
  for (const rule of rules) {
    const name = fieldText(rule, 'name')
    known.set(name, Math.max(known.get(name) ?? 0, fieldNumber(rule, 'interval')))
  }
  return (name) => known.get(name) ?? USUAL_INTERVAL_US
}

function tableOf(spans: readonly StateSpan[], nowUs: number, { terminal }: Cli): string {
  const heads = ['from', 'to', 'lasted', 'state', 'alert', 'labels'].map((head) => ({ head }))
  const rows = spans.map(({ state, labels: { alertname = '', ...labels }, from, to }) => [
    formatTime(from),
    to >= nowUs ? 'now' : formatTime(to),
    formatDuration((to - from) / MS_US),
    printable(state),
    printable(alertname),
    labelPairs(labels),
  ])
  return formatTable(heads, rows, terminal.colors, terminal.screen?.size().columns)
}
