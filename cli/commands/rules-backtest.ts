/** `cinnabar rules backtest`: what the rules of a file would have done, evaluated here over what a server has stored. */
import { type Command, InvalidArgumentError } from 'commander'
import { parseDuration } from '../../server/kernel/config/duration.ts'
import type { BacktestEvent } from '../../server/start/rules.ts'
import { API_URL, postRead } from '../api.ts'
import { sinceOf } from '../arguments.ts'
import { ExitCode, Failure } from '../failure.ts'
import { formatDuration, jsonText, printable } from '../format.ts'
import { httpUrlOf } from '../http.ts'
import { resolveToken, type TokenOptions, withTokenOptions } from '../login.ts'
import { formatTable, JSON_OPTION, labelPairs } from '../output.ts'
import type { Cli } from '../session.ts'
import type { Terminal } from '../terminal.ts'
import { safeText } from '../width.ts'

const TIME_HELP = 'how long ago, such as 2h or 7d, or a time such as 2026-11-22T08:00'
const MINUTE_MS = 60_000
const PROGRESS_MS = 1_000
/** Rows of the table; a JSON object is printed for each transition there is. */
const MOST_ROWS = 10_000

const AFTER_BACKTEST = `
The rules are evaluated here, at the times at which the server would have evaluated them, over the samples that the server has by
now; the token has to have the right COLLECT of these. There are no alerts at the beginning: one that held before is pending then.
Without --pending only the transitions to firing, and to inactive after that, are listed.`

interface BacktestCommandOptions extends TokenOptions {
  readonly since: number
  readonly until?: number
  readonly interval: number
  readonly pending?: boolean
  readonly json?: boolean
}

type AlertEvent = BacktestEvent & { readonly alert: NonNullable<BacktestEvent['alert']> }

export function addRulesBacktest(rules: Command, { terminal }: Cli, wallMs: () => number = () => Date.now()): void {
  const time = (text: string): number => Math.floor(sinceOf(text, wallMs()) / 1_000)
  withTokenOptions(rules.command('backtest'), API_URL)
    .description('say when alerts of rule files would have fired')
    .argument('<file...>', 'rule files in YAML')
    .requiredOption('--since <time>', `from then on: ${TIME_HELP}`, time)
    .option('--until <time>', `until then (default: now): ${TIME_HELP}`, time)
    .option('--interval <duration>', 'of groups that name none (default: 1m)', interval, MINUTE_MS)
    .option('--pending', 'list what was pending, too')
    .option(...JSON_OPTION)
    .addHelpText('after', AFTER_BACKTEST)
    .action(async (files: readonly string[], options: BacktestCommandOptions) => {
      const { since: fromMs, until: toMs = wallMs(), interval: intervalMs } = options
      if (fromMs >= toMs) throw new Failure(ExitCode.USAGE, '--since has to be before --until')
      const { token, from, tls } = await resolveToken(options, terminal, 'COLLECT *')
      const url = await httpUrlOf(options, terminal, 'samples are read from')
      const { backtestRules } = await import('#server/rules')
      const interrupted = new AbortController()
      const undo = terminal.onInterrupt(() => interrupted.abort())
      const { signal } = interrupted
      const report = new Report(terminal, options, toMs)
      const progress = new Progress(terminal, fromMs, toMs)
      try {
        const events = backtestRules(files, {
          ...{ fromMs, toMs, intervalMs, signal },
          post: (body) => postRead({ url, token, tls }, body, from, signal),
          took: (samples) => report.took(samples),
          reached: (timeMs) => progress.reached(timeMs),
        })
        for (;;) {
          const { done, value } = await events.next()
          if (done !== true) await report.take(value)
          else if (value.length > 0) throw new Failure(ExitCode.FAILED, value.map(printable).join('\n'))
          else break
        }
      } catch (error) {
        if (error instanceof RangeError) throw new Failure(ExitCode.FAILED, error.message)
        throw error
      } finally {
        progress.end()
        undo()
      }
      await report.end()
    })
}

/** Throws InvalidArgumentError. */
function interval(text: string): number {
  const ms = parseDuration(text)
  if (ms !== undefined && ms >= 1) return ms
  throw new InvalidArgumentError('Expected a duration such as 15s or 1m.')
}

/** How often an alert has fired, and for how long. */
interface Fired {
  count: number
  togetherMs: number
  longestMs: number
}

class Report {
  readonly #terminal: Terminal
  readonly #options: BacktestCommandOptions
  readonly #toMs: number
  readonly #rows: string[][] = []
  #more = 0
  #samples = 0
  /** By the names of rules. */
  readonly #fired = new Map<string, Fired>()
  /** Those that fire, by the place and labels. */
  readonly #firing = new Map<string, AlertEvent>()
  readonly #failures: string[] = []

  constructor(terminal: Terminal, options: BacktestCommandOptions, toMs: number) {
    this.#terminal = terminal
    this.#options = options
    this.#toMs = toMs
  }

  took(samples: number): void {
    this.#samples += samples
  }

  async take(event: BacktestEvent): Promise<void> {
    const { alert, timeMs, group, rule, failure } = event
    const at = new Date(timeMs).toISOString()
    if (alert === undefined) {
      this.#failures.push(`${at}: group ${JSON.stringify(group)}, rule ${JSON.stringify(rule)}: ${failure}`)
      return
    }
    const { state, value, labels, annotations, firedMs } = alert
    const key = JSON.stringify([group, rule, ...labels])
    if (state === 'firing') this.#firing.set(key, { ...event, alert })
    else if (this.#firing.delete(key)) this.#count(rule, timeMs - (firedMs ?? timeMs))
    if (this.#options.json) {
      const plain = { labels: Object.fromEntries(labels), annotations: Object.fromEntries(annotations) }
      const text = { time: at, state, group, rule, value: String(value), ...plain }
      return this.#terminal.print(jsonText(text))
    }
    if (firedMs === undefined && this.#options.pending !== true) return
    const { alertname = '', ...others } = Object.fromEntries(labels)
    if (this.#rows.length < MOST_ROWS)
      this.#rows.push([at, state, safeText(alertname), String(value), labelPairs(others)])
    else this.#more++
  }

  /** Rejects with Failure if rules have failed. */
  async end(): Promise<void> {
    if (this.#samples === 0)
      this.#terminal.note('the server has no samples that the rules need and the token may COLLECT')
    for (const { rule, alert } of this.#firing.values()) this.#count(rule, this.#toMs - (alert.firedMs ?? this.#toMs))
    const { colors, screen } = this.#terminal
    if (!this.#options.json) {
      const heads = ['time', 'state', 'alert', 'value', 'labels'].map((head) => ({ head }))
      if (this.#rows.length > 0)
        await this.#terminal.print(formatTable(heads, this.#rows, colors, screen?.size().columns))
      if (this.#more > 0) this.#terminal.note(`${this.#more} more transitions are not shown: --json prints all`)
      for (const [rule, { count, togetherMs, longestMs }] of this.#fired)
        await this.#terminal.print(
          `${safeText(rule)} fired ${count} time${count === 1 ? '' : 's'}, for ${formatDuration(togetherMs)} together, ${formatDuration(longestMs)} at the longest`,
        )
      if (this.#fired.size === 0) this.#terminal.note('no alert would have fired')
    }
    if (this.#failures.length > 0) throw new Failure(ExitCode.FAILED, this.#failures.map(printable).join('\n'))
  }

  #count(rule: string, ms: number): void {
    const fired = this.#fired.get(rule) ?? { count: 0, togetherMs: 0, longestMs: 0 }
    fired.count++
    fired.togetherMs += ms
    fired.longestMs = Math.max(fired.longestMs, ms)
    this.#fired.set(rule, fired)
  }
}

/** How far it has come, for people who watch. */
class Progress {
  readonly #timer: NodeJS.Timeout
  #timeMs: number

  constructor(terminal: Pick<Terminal, 'isWatched' | 'note'>, fromMs: number, toMs: number) {
    this.#timeMs = fromMs
    this.#timer = setInterval(() => {
      const part = Math.floor((100 * (this.#timeMs - fromMs)) / (toMs - fromMs))
      if (terminal.isWatched) terminal.note(`${part} %: ${new Date(this.#timeMs).toISOString()} …`)
    }, PROGRESS_MS)
  }

  reached(timeMs: number): void {
    this.#timeMs = timeMs
  }

  end(): void {
    clearInterval(this.#timer)
  }
}
