/**
 * `cinnabar history export`: what is remembered, as a text. It is written as it comes; in OpenMetrics only a whole export ends with
 * `# EOF`, and a failure has an exit code.
 */
import { type Command, InvalidArgumentError, Option } from 'commander'
import type { LossRange, SeriesFamily, SeriesHistory } from '../../client/index.ts'
import { parseDuration } from '../../server/kernel/config/duration.ts'
import { parseAssignments, sinceOf } from '../arguments.ts'
import { ExitCode, Failure } from '../failure.ts'
import { csvField, formatCount, printable } from '../format.ts'
import type { LoginOptions } from '../login.ts'
import { type Cli, withConsumer, withLoginOptions } from '../session.ts'
import type { Terminal } from '../terminal.ts'

export const LABELS_HELP =
  'only series with these labels, as in host=web1, or with texts that match a pattern, as in host=web*'

const TIME_HELP = 'how long ago, such as 2h or 7d, or a time such as 2026-11-22T08:00'
const PROGRESS_MS = 1_000

const AFTER_EXPORT = `
Without --since everything is exported. Times are those of the samples. The format openmetrics has seconds, and is what
\`promtool tsdb create-blocks-from openmetrics\` reads; csv has a row for each sample, and one without a value where a series
ended. With --step there are windows in place of samples, also of times whose samples have gone: a row for each, at its end.
Times in which values are missing are written to the standard error. If the exit code is not 0, the export is not complete.`

/** Ranges of loss that are named. */
const MOST_LOSSES = 20
const LEAST_STEP = 300_000_000
const TOTAL = '_total'
const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/
const LABEL = /^[a-zA-Z_][a-zA-Z0-9_]*$/

interface ExportOptions extends LoginOptions {
  readonly since?: number
  readonly until?: number
  readonly step?: number
  readonly tenant?: string
  readonly format: 'openmetrics' | 'csv'
}

/** Lines of a format, which are written in their order. */
interface ExportFormat {
  readonly head: string
  readonly tail: string
  lines(series: SeriesHistory): Iterable<string>
}

export function addHistoryExport(history: Command, cli: Cli, wallMs: () => number = Date.now): void {
  const { terminal } = cli
  const time = (text: string): number => Math.floor(sinceOf(text, wallMs()))
  withLoginOptions(history.command('export'))
    .description('write what is remembered of metrics to the standard output')
    .argument('<metric>', "a metric, here or in Prometheus, or several with *: 'gmetric.*'")
    .argument('[name=value...]', LABELS_HELP)
    .option('--since <time>', `the first sample: ${TIME_HELP}`, time)
    .option('--until <time>', `the last sample: ${TIME_HELP}`, time)
    .option(
      '--step <duration>',
      'windows of this length in place of samples, at least 5m: min, max, sum, count …',
      stepOf,
    )
    .option('--tenant <tenant>', 'only the series of this tenant; an admin has to say which, if there are several')
    .addOption(new Option('--format <format>', 'how').choices(['openmetrics', 'csv']).default('openmetrics'))
    .addHelpText('after', AFTER_EXPORT)
    .action((metric: string, words: string[], options: ExportOptions) => {
      const { since = 0, until, step, tenant } = options
      if (step !== undefined && options.format !== 'csv') {
        throw new Failure(ExitCode.USAGE, 'windows have no form in OpenMetrics: with --step, choose --format csv')
      }
      checkRange(options)
      const labels = Object.fromEntries(parseAssignments(words))
      return withConsumer(cli, options, async (consumer) => {
        const format = step !== undefined ? csvOfWindows() : options.format === 'csv' ? csv() : openMetrics()
        const losses = new Losses(terminal, tenant)
        const onLoss = (loss: LossRange): void => losses.take(loss)
        const progress = new Progress(terminal)
        const one = new OneTenant()
        try {
          if (format.head !== '') await terminal.print(format.head)
          const withFamilies = options.format === 'openmetrics'
          const asked = { labels, since, until, step, onLoss, withFamilies, inPieces: true }
          for await (const piece of consumer.history(metric, asked)) {
            if (tenant !== undefined && piece.tenant !== tenant) continue
            if (tenant === undefined) one.check(piece)
            const text = [...format.lines(piece)].join('\n')
            if (text !== '') await terminal.print(text)
            progress.took(piece)
          }
          if (format.tail !== '') await terminal.print(format.tail)
        } finally {
          progress.end()
          losses.end()
        }
        if (progress.samples === 0) throw nothingFound(metric, options)
      })
    })
}

interface GivenRange {
  readonly since?: number
  readonly until?: number
}

/** Throws Failure if the range ends before it begins. */
export function checkRange({ since, until }: GivenRange): void {
  if (since === undefined || until === undefined || since <= until) return
  throw new Failure(
    ExitCode.USAGE,
    `--since is ${isoTime(since)}, which is later than --until, ${isoTime(until)}: nothing is between them`,
  )
}

export function nothingFound(metric: string, { since, until }: GivenRange): Failure {
  const when = since === undefined && until === undefined ? '' : ' in that time'
  return new Failure(ExitCode.FAILED, `nothing is remembered${when} that matches ${metric}`)
}

/** The series of two tenants may have the same names and labels, and are not mixed; others belong to no tenant. */
export class OneTenant {
  #tenant = ''

  /** Throws Failure if a series is of another tenant than those before. */
  check({ tenant }: SeriesHistory): void {
    if (tenant === '') return
    if (this.#tenant !== '' && this.#tenant !== tenant) {
      throw new Failure(
        ExitCode.USAGE,
        `the series of the tenants ${this.#tenant} and ${tenant} would be mixed: choose one with --tenant`,
      )
    }
    this.#tenant = tenant
  }
}

/** What was written, for people who watch. */
class Progress {
  readonly #timer: NodeJS.Timeout
  #metric = ''
  samples = 0

  constructor(terminal: Pick<Terminal, 'isWatched' | 'note'>) {
    this.#timer = setInterval(() => {
      if (terminal.isWatched) terminal.note(`${formatCount(this.samples)} samples; ${printable(this.#metric)} …`)
    }, PROGRESS_MS)
  }

  took({ metric, times, windows }: SeriesHistory): void {
    this.#metric = metric
    this.samples += times.length + (windows?.ends.length ?? 0)
  }

  end(): void {
    clearInterval(this.#timer)
  }
}

/** Says which values are missing. */
class Losses {
  readonly #terminal: Pick<Terminal, 'note'>
  readonly #tenant: string | undefined
  #count = 0

  constructor(terminal: Pick<Terminal, 'note'>, tenant: string | undefined) {
    this.#terminal = terminal
    this.#tenant = tenant
  }

  take({ tenant, metric, from, to, count, reason }: LossRange): void {
    if (this.#tenant !== undefined && tenant !== this.#tenant) return
    if (++this.#count > MOST_LOSSES) return
    const values = count === 0 ? 'values' : count === 1 ? '1 value' : `${count} values`
    const of = metric === '' ? '' : ` of ${printable(metric)}`
    this.#terminal.note(`missing from ${isoTime(from)} to ${isoTime(to)}: ${values}${of} (${printable(reason)})`)
  }

  end(): void {
    const more = this.#count - MOST_LOSSES
    if (more > 0) this.#terminal.note(`values are missing in ${more} more ${more === 1 ? 'range' : 'ranges'} of time`)
  }
}

/** OpenMetrics 1.0. The ends of series have no form there. */
function openMetrics(): ExportFormat {
  const heads = new FamilyHeads()
  return {
    head: '',
    tail: '# EOF',
    *lines({ name, labels, times, values, family }) {
      if (times.length === 0) return
      yield* heads.before(name, family)
      const series = seriesText(name, labels)
      for (const [at, time] of times.entries()) yield `${series} ${numberText(values[at])} ${secondsText(time)}`
    },
  }
}

/** What is written above the samples of a family, once. */
class FamilyHeads {
  /** The name of the first sample of each family. */
  readonly #written = new Map<string, string>()
  #name = ''

  before(name: string, known: SeriesFamily | undefined): readonly string[] {
    if (name === this.#name) return []
    this.#name = name
    const { name: family, type, help, unit } = this.#familyOf(name, known)
    // The samples of a histogram have several names.
    if (this.#written.has(family)) return []
    this.#written.set(family, name)
    const shown = NAME.test(family) ? family : quoted(family)
    return [
      `# TYPE ${shown} ${type}`,
      ...(unit !== '' && family.endsWith(`_${unit}`) ? [`# UNIT ${shown} ${unit}`] : []),
      ...(help === '' ? [] : [`# HELP ${shown} ${escaped(help)}`]),
    ]
  }

  /** A counter of OpenMetrics is called as its samples are, without `_total`; one that is not called so is none there. */
  #familyOf(name: string, known: SeriesFamily | undefined): SeriesFamily {
    if (known === undefined) return { name, type: 'unknown', help: '', unit: '' }
    if (known.type !== 'counter') return known
    const base = name.endsWith(TOTAL) ? name.slice(0, -TOTAL.length) : ''
    const isTaken = (this.#written.get(base) ?? name) !== name
    return base === '' || isTaken ? { ...known, type: 'unknown' } : { ...known, name: base }
  }
}

/** RFC 4180 with a head; times as ISO 8601. */
function csv(): ExportFormat {
  return {
    head: 'tenant,metric,name,labels,time,value',
    tail: '',
    *lines({ tenant, metric, name, labels, times, values, ended }) {
      const series = [tenant, metric, name, labelsText(labels)].map(csvField).join(',')
      const row = (time: number, value: string): string => `${series},${isoTime(time)},${value}`
      let over = 0
      for (const [at, time] of times.entries()) {
        for (; (ended[over] ?? time) < time; over++) yield row(ended[over] as number, '')
        yield row(time, numberText(values[at]))
      }
      for (const time of ended.slice(over)) yield row(time, '')
    },
  }
}

/** The same with a row for each window. */
function csvOfWindows(): ExportFormat {
  return {
    head: 'tenant,metric,name,labels,time,min,max,sum,count,first,last',
    tail: '',
    *lines({ tenant, metric, name, labels, windows }) {
      if (windows === undefined) return
      const series = [tenant, metric, name, labelsText(labels)].map(csvField).join(',')
      const { min, max, sum, count, first, last } = windows
      for (const [at, end] of windows.ends.entries()) {
        const numbers = [min, max, sum, count, first, last].map((column) => numberText(column[at]))
        yield `${series},${isoTime(end)},${numbers.join(',')}`
      }
    },
  }
}

/** Microseconds. */
function stepOf(text: string): number {
  const ms = parseDuration(text)
  if (ms !== undefined && ms * 1_000 >= LEAST_STEP) return ms * 1_000
  throw new InvalidArgumentError('Expected a duration of at least 5m, such as 1h.')
}

function isoTime(microseconds: number): string {
  return new Date(microseconds / 1_000).toISOString()
}

function labelsText(labels: Readonly<Record<string, string>>): string {
  const texts = Object.entries(labels).map(([name, text]) => `${name}=${quoted(text)}`)
  return texts.length === 0 ? '' : `{${texts.join(',')}}`
}

/** A name that is none of Prometheus 2 stands in quotes, as its labels do: `{"x.y","é"="a"}`. */
function seriesText(name: string, labels: Readonly<Record<string, string>>): string {
  if (NAME.test(name) && Object.keys(labels).every((label) => LABEL.test(label))) return `${name}${labelsText(labels)}`
  const texts = Object.entries(labels).map(
    ([label, text]) => `${LABEL.test(label) ? label : quoted(label)}=${quoted(text)}`,
  )
  return `{${[quoted(name), ...texts].join(',')}}`
}

function quoted(text: string): string {
  return `"${escaped(text)}"`
}

function escaped(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}

function numberText(value = Number.NaN): string {
  if (Number.isFinite(value) || Number.isNaN(value)) return Object.is(value, -0) ? '-0' : String(value)
  return value > 0 ? '+Inf' : '-Inf'
}

/** Times are whole milliseconds. */
function secondsText(microseconds: number): string {
  const ms = Math.round(microseconds / 1_000)
  const rest = String(ms % 1_000).padStart(3, '0')
  return `${Math.floor(ms / 1_000)}${rest === '000' ? '' : `.${rest}`}`
}
