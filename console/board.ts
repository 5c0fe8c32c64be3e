/**
 * Boards: charts that are pinned, as the URL has them, so that a board can be bookmarked and sent. The server keeps those that were
 * given a name (kept-boards.ts), this browser the one that was shown last.
 *
 * A chart is text: its metrics with their arguments, `gmetric.load_one;host=web1,gmetric.load_five;host=web1`, and after a `/` how
 * it is drawn, `/rate` or `/total`, if not by its kind. Other characters than letters, digits and those of names are escaped as in a URL.
 */
import type { BrowserStorage } from './browser-storage.ts'
import { TIME_ARGUMENTS } from './chart-time.ts'
import { expressionArgs } from './expressions.ts'
import { labelsText, namingOf } from './labels.ts'
import { linkTo } from './route.ts'
import type { LineArguments } from './series-watch.ts'

/** A metric in a chart. */
export interface Line {
  readonly metric: string
  readonly args: LineArguments
}

/** Values are drawn as what they grow by per second, or as they are. */
export type Scale = 'rate' | 'total'

export interface ChartSpec {
  /** None if an expression is drawn. */
  readonly lines: readonly Line[]
  /** An expression of Prometheus' language, in place of lines. */
  readonly expr?: string | undefined
  /** What somebody has chosen for all lines; without it, metrics that only grow are drawn as rates, and others as they are. */
  readonly scale?: Scale | undefined
}

export const MAX_LINES_OF_CHART = 8
export const MAX_CHARTS = 40
/** These arguments of a URL concern the chart, and are no parameters of its metric. */
const RATE = '.rate'
const WITH = '.with'
const OWN_ARGUMENTS: ReadonlySet<string> = new Set([RATE, WITH, ...TIME_ARGUMENTS])
/** Boards under names, which earlier versions kept here. */
const STORED = 'cinnabar.boards'
/** The board that charts are pinned to, whether it has a name or not. */
const OPEN = 'cinnabar.board'

export function encodeChart({ lines, scale, expr }: ChartSpec): string {
  if (expr !== undefined) return `=${encodeURIComponent(expr)}`
  const text = lines.map(encodeLine).join(',')
  return scale === undefined ? text : `${text}/${scale}`
}

/** Undefined if the text is no chart. */
export function decodeChart(text: string): ChartSpec | undefined {
  const [all = '', ...options] = text.split('/')
  try {
    if (text.startsWith('=')) return { lines: [], expr: decodeURIComponent(text.slice(1)) }
    const lines = all.split(',').slice(0, MAX_LINES_OF_CHART).map(decodeLine)
    if (lines.some(({ metric }) => metric === '')) return undefined
    return withScale(lines, options.find(isScale))
  } catch {
    return undefined
  }
}

function isScale(text: string): text is Scale {
  return text === 'rate' || text === 'total'
}

function withScale(lines: readonly Line[], scale: Scale | undefined): ChartSpec {
  return { lines, ...(scale !== undefined && { scale }) }
}

function encodeLine({ metric, args }: Line): string {
  const given = Object.entries(args).map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`)
  return [encodeURIComponent(metric), ...given].join(';')
}

function decodeLine(text: string): Line {
  const [metric = '', ...given] = text.split(';')
  const args = given.map((pair) => {
    const [name = '', value = ''] = pair.split('=', 2)
    return [decodeURIComponent(name), decodeURIComponent(value)] as const
  })
  return { metric: decodeURIComponent(metric), args: Object.fromEntries(args.filter(([name]) => name !== '')) }
}

/** A line as people read it: `gmetric.load_one host=web1`. */
export function lineText({ metric, args }: Line): string {
  return [metric, labelsText(args)].filter(Boolean).join(' ')
}

/** A chart as people read it; arguments that all lines have alike are said once: `gmetric.load_one, gmetric.load_five host=web1`. */
export function chartText({ lines, expr }: ChartSpec): string {
  if (expr !== undefined) return expr
  const { names, common } = namingOf(lines.map(({ metric, args }) => ({ metric, args: {}, labels: args })))
  const [first = ''] = new Set(lines.map(({ metric }) => metric))
  const all = names.join(', ')
  return [all.startsWith(first) ? '' : first, all, common].filter(Boolean).join(' ')
}

/** The URL of a chart in the view of its first metric, or of its expression. */
export function chartLink({ lines: [first = { metric: '', args: {} }, ...others], scale, expr }: ChartSpec): string {
  if (expr !== undefined) return linkTo('query', '', expressionArgs([{ expr, show: 'chart' }]))
  return linkTo('metrics', first.metric, {
    ...first.args,
    ...(others.length > 0 && { [WITH]: encodeChart({ lines: others }) }),
    ...(scale !== undefined && { [RATE]: scale === 'rate' ? '1' : '0' }),
  })
}

/** The chart that the view of a metric shows for the arguments of its URL. */
export function chartOfUrl(metric: string, args: URLSearchParams): ChartSpec {
  const own = [...args].filter(([name, value]) => !OWN_ARGUMENTS.has(name) && value !== '')
  const others = decodeChart(args.get(WITH) ?? '')?.lines ?? []
  const lines = [{ metric, args: Object.fromEntries(own) }, ...others].slice(0, MAX_LINES_OF_CHART)
  const rate = args.get(RATE)
  return withScale(lines, rate === null ? undefined : rate === '0' ? 'total' : 'rate')
}

/** Which board of the server it is, and the version that was opened; without a version, the newest is to be opened. */
export interface KeptPlace {
  readonly board: number
  readonly version?: number | undefined
}

/** A board as the arguments of a URL. */
export function boardArgs(charts: readonly ChartSpec[], name: string, place?: KeptPlace): string[][] {
  return [
    ...(name === '' ? [] : [['name', name]]),
    ...(place === undefined ? [] : [['board', String(place.board)]]),
    ...(place?.version === undefined ? [] : [['version', String(place.version)]]),
    ...chartArgs(charts),
  ]
}

function chartArgs(charts: readonly ChartSpec[]): string[][] {
  return charts.map((chart) => ['chart', encodeChart(chart)])
}

/** The charts as the server keeps them. */
export function chartsText(charts: readonly ChartSpec[]): string {
  return new URLSearchParams(chartArgs(charts)).toString()
}

export function placeOf(args: URLSearchParams): KeptPlace | undefined {
  const [board, version] = ['board', 'version'].map((name) => {
    const number = Number(args.get(name) ?? Number.NaN)
    return Number.isInteger(number) && number > 0 && number < 2 ** 32 ? number : undefined
  })
  return board === undefined ? undefined : { board, version }
}

/** What is no chart is left out. */
export function chartsOf(args: URLSearchParams): readonly ChartSpec[] {
  return args
    .getAll('chart')
    .slice(0, MAX_CHARTS)
    .map(decodeChart)
    .filter((chart) => chart !== undefined)
}

/** The boards that the browser keeps. Somebody else may have written them. */
export class Boards {
  readonly #storage: BrowserStorage

  constructor(storage: BrowserStorage) {
    this.#storage = storage
  }

  /** Of those that an earlier version has kept here. */
  get names(): readonly string[] {
    return Object.keys(this.#all()).toSorted((a, b) => a.localeCompare(b))
  }

  /** The arguments of its URL; undefined if there is none of this name. */
  get(name: string): string | undefined {
    const all = this.#all()
    return Object.hasOwn(all, name) ? all[name] : undefined
  }

  /** Returns why it cannot be done; empty if it is. */
  delete(name: string): string {
    const rest = Object.entries(this.#all()).filter(([one]) => one !== name)
    return this.#write(STORED, JSON.stringify(Object.fromEntries(rest)))
  }

  /** The arguments of the board that was shown last. */
  get last(): string {
    return this.#storage.read(OPEN)
  }

  opened(args: string): string {
    return this.#write(OPEN, args)
  }

  /** Adds a chart to the board that was shown last, once. Returns why that cannot be done; empty if it is. */
  pin(chart: ChartSpec): string {
    const args = new URLSearchParams(this.last)
    const charts = chartsOf(args)
    if (charts.some((one) => encodeChart(one) === encodeChart(chart))) return ''
    if (charts.length >= MAX_CHARTS) return `A board has at most ${MAX_CHARTS} charts: remove one first.`
    const pinned = boardArgs([...charts, chart], args.get('name') ?? '', placeOf(args))
    return this.opened(new URLSearchParams(pinned).toString())
  }

  #all(): Readonly<Record<string, string>> {
    try {
      const all: unknown = JSON.parse(this.#storage.read(STORED) || '{}')
      if (all === null || typeof all !== 'object') return {}
      return Object.fromEntries(Object.entries(all).filter(([, query]) => typeof query === 'string'))
    } catch {
      return {}
    }
  }

  #write(key: string, text: string): string {
    if (this.#storage.write(key, text)) return ''
    return 'The browser does not keep it: its storage is full, or switched off for this page.'
  }
}
