/**
 * Renders the screen of `cinnabar top` as lines, each exactly as wide as the terminal. The functions are pure, so that only
 * lines that have changed need to be written.
 */ import { BasicType } from '../../client/index.ts'
import { formatAge, formatBytes, formatDuration, formatValue, isStale, printable } from '../format.ts'
import type { Colors } from '../terminal.ts'
import type { HostSummary, Space } from './host.ts'
import { type Content, type SortKey, sortKeys, type TopRow } from './rows.ts'
import type { Size } from './screen.ts'
import { filterOf, HELP, type TopView } from './view.ts'

export interface Picture {
  readonly view: TopView
  readonly host: HostSummary
  readonly url: string
  /** The rows that match the filter, sorted. */
  readonly rows: readonly TopRow[]
  /** The number of rows without a filter. */
  readonly total: number
  readonly isFull: boolean
  /** Returns the unit of a metric; empty if it has none. */
  readonly unitOf: (metric: string) => string
  readonly nowMs: number
  /** A problem or message, shown in the last line instead of the keys. */
  readonly message: string
  /** The metrics of the subscription, shown if the table is empty. */
  readonly patterns: readonly string[]
}

/** The heading, one row and the last line. */
const MIN_TABLE = 3
const HEAD_LINES = 5
const KEYS = 'q quit  / filter  1-4 sort  r reverse  space pause  h help'
const MAX_BAR = 30
const MIN_BAR = 8
/** Terminals disagree on the width of some characters. These are the usual ones; a wrong guess shifts only the rest of a line. */
const WIDE =
  /^[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{16fe0}-\u{18aff}\u{1aff0}-\u{1b2fb}\u{1f200}-\u{1f265}\u{20000}-\u{3fffd}\p{Emoji_Presentation}]$/u
/** Two of them make a flag. */
const HALF_A_FLAG = /^\p{Regional_Indicator}$/u
const NO_WIDTH = /^[\p{Mn}\p{Me}\u1160-\u11ff]$/u
const IS_ASCII = /^[ -~]*$/

/** The number of table rows that fit on the screen. */
export function tableHeight({ rows }: Size): number {
  return Math.max(0, rows - headHeight(rows) - 2)
}

export function render(picture: Picture, size: Size, colors: Colors): string[] {
  const { columns } = size
  const height = tableHeight(size)
  const head = hostLines(picture.host, picture.url, columns, colors)
  const body = picture.view.isHelp ? helpLines(columns) : tableLines(picture, columns, height, colors)
  const title = picture.view.isHelp ? fitToWidth('KEYS', columns) : tableHead(picture.view, columns)
  return [
    ...filled(head, headHeight(size.rows), columns),
    colors.inverse(title),
    ...filled(body, height, columns),
    lastLine(picture, height, columns, colors),
  ].slice(-size.rows)
}

/** Renders all rows for a pipe, without trailing spaces. */
export function renderPlain(picture: Picture, columns: number, colors: Colors): string {
  const table = tableLines({ ...picture, view: { ...picture.view, top: 0 } }, columns, picture.rows.length, colors)
  const head = hostLines(picture.host, picture.url, columns, colors)
  const full = picture.isFull ? [fullMessage(picture.total)] : []
  const title = colors.bold(tableHead(picture.view, columns))
  return [...head, '', title, ...table, ...full].map((line) => line.trimEnd()).join('\n')
}

/** One JSON object; time in microseconds since 1970. */
export function toJsonLine({ metric, where, content, time }: TopRow, unit: string): string {
  const value = typeof content === 'bigint' ? exact(content) : content
  const isOdd = typeof value === 'number' && !Number.isFinite(value)
  return JSON.stringify({ metric, host: where, value: isOdd ? String(value) : value, unit, time })
}

function exact(value: bigint): number | string {
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : String(value)
}

function filled(lines: readonly string[], height: number, columns: number): string[] {
  return Array.from({ length: height }, (_, i) => lines[i] ?? ' '.repeat(columns))
}

/** The lines about the host take at most half of the screen; the last ones are left out first. */
function headHeight(rows: number): number {
  return Math.max(0, Math.min(HEAD_LINES + 1, Math.floor(rows / 2), rows - MIN_TABLE))
}

function tableLines({ rows, view, ...picture }: Picture, columns: number, height: number, colors: Colors): string[] {
  if (rows.length === 0) return emptyLines({ rows, view, ...picture }).map((line) => fitToWidth(line, columns))
  const widths = widthsOf(columns)
  return rows.slice(view.top, view.top + height).map((row) => {
    const [value, unit] = [contentText(row.content, widths.value), safeText(picture.unitOf(row.metric))]
    // Text is aligned to the left and uses the column of the unit, too.
    const isText = typeof row.content === 'string'
    const measured: readonly Cell[] = isText
      ? [[value, widths.unit === 0 ? widths.value : widths.value + 2 + widths.unit]]
      : [
          [value, widths.value, 'right'],
          [unit === '1' ? '' : unit, widths.unit],
        ]
    const age = row.goneMs !== undefined ? 'gone' : ageText(row.arrivedMs, picture.nowMs)
    const shown = lineOf(
      [
        [safeText(row.metric), widths.metric],
        [safeText(row.where), widths.host],
        ...measured,
        [age, widths.age, 'right'],
      ],
      columns,
    )
    const isOld = row.arrivedMs !== undefined && isStale(picture.nowMs - row.arrivedMs)
    return row.goneMs !== undefined || isOld ? colors.dim(shown) : shown
  })
}

function emptyLines({ view, patterns, total }: Picture): string[] {
  const filter = filterOf(view)
  if (total > 0) return ['', `None of the ${total} rows matches ${safeText(filter)}`]
  return [
    '',
    `No values yet for ${patterns.map(safeText).join(', ')}.`,
    "They appear here when they arrive. `cinnabar top 'host.*'` shows the metrics of the host as rows.",
  ]
}

function helpLines(columns: number): string[] {
  return ['', ...HELP.map(([keys, what]) => `  ${keys.padEnd(20)}${what}`)].map((line) => fitToWidth(line, columns))
}

function tableHead({ sort, isReversed }: TopView, columns: number): string {
  const widths = widthsOf(columns)
  const title = (name: SortKey) => {
    // By default values are sorted in descending order.
    const isDown = (name === 'value') !== isReversed
    return `${name.toUpperCase()}${name === sort ? (isDown ? ' v' : ' ^') : ''}`
  }
  const [metric, host, value, age] = sortKeys.map(title) as [string, string, string, string]
  return lineOf(
    [
      [metric, widths.metric],
      [host, widths.host],
      [value, widths.value, 'right'],
      ['UNIT', widths.unit],
      [age, widths.age, 'right'],
    ],
    columns,
  )
}

type Cell = readonly [text: string, width: number, align?: 'right']

/** Joins cells with two spaces; a cell of width 0 is left out. */
function lineOf(cells: readonly Cell[], columns: number): string {
  const fitting = cells.filter(([, width]) => width > 0).map(([text, width, align]) => fitToWidth(text, width, align))
  return fitToWidth(fitting.join('  '), columns)
}

/** Depends only on the width, so that columns stay in place. On a narrow terminal unit, age and host are left out (0). */
function widthsOf(columns: number): Readonly<Record<SortKey | 'unit', number>> {
  const age = columns < 36 ? 0 : 6
  const unit = columns < 50 ? 0 : Math.min(12, Math.floor(columns / 10))
  const value = Math.min(20, Math.max(8, Math.floor(columns / 6)))
  const taken = [age, unit, value].reduce((sum, width) => (width === 0 ? sum : sum + width + 2), 0)
  if (columns < 24) return { age, unit, value, metric: Math.max(1, columns - taken), host: 0 }
  const rest = columns - taken - 2
  const metric = Math.ceil(rest * 0.6)
  return { age, unit, value, metric, host: rest - metric }
}

function lastLine(picture: Picture, height: number, columns: number, colors: Colors): string {
  const { view, rows, total, message, isFull } = picture
  if (view.typed !== undefined) return fitToWidth(`/${safeText(view.typed)}_`, columns)
  if (message !== '') return colors.yellow(fitToWidth(safeText(message), columns))
  if (isFull) return colors.yellow(fitToWidth(fullMessage(total), columns))
  const from = Math.min(view.top + 1, rows.length)
  const parts = [
    view.isPaused ? 'PAUSED' : '',
    rows.length === total ? '' : `${rows.length} of ${total} rows match ${safeText(view.filter)}`,
    rows.length > height ? `${from}-${Math.min(view.top + height, rows.length)} of ${rows.length}` : '',
    KEYS,
  ]
  return colors.dim(fitToWidth(parts.filter((part) => part !== '').join('  '), columns))
}

function fullMessage(total: number): string {
  return `There are more than the ${total} rows shown: limit the metrics, for example cinnabar top 'gmetric.cpu_*'`
}

/** A number that does not fit is rounded, because a cut one would be wrong. */
function contentText(content: Content, width: number): string {
  if (typeof content === 'string') return safeText(content)
  const text = typeof content === 'number' ? formatValue({ type: BasicType.DOUBLE, value: content }) : String(content)
  return text.length <= width ? text : Number(content).toPrecision(Math.max(1, width - 6))
}

function ageText(arrivedMs: number | undefined, nowMs: number): string {
  if (arrivedMs === undefined) return '-'
  const ms = nowMs - arrivedMs
  return ms < 1000 ? 'now' : formatAge(ms)
}

/** The lines about the host, from the most to the least important one, each exactly `columns` cells wide. */
function hostLines(host: HostSummary, url: string, columns: number, colors: Colors): string[] {
  const bar = Math.min(MAX_BAR, Math.floor(columns / 4))
  const line = (label: string, part: number | undefined, text: string) => {
    const name = label.padEnd(5)
    if (bar < MIN_BAR) return fitToWidth(name + text, columns)
    return `${name}[${barOf(part, bar, colors)}] ${fitToWidth(text, columns - name.length - bar - 3)}`
  }
  return [
    titleLine(host, url, columns, colors),
    line('cpu', host.cpu.busy, cpuText(host)),
    line('mem', share(host.memory), `${spaceText(host.memory)}   swap ${spaceText(host.swap)}`),
    line(
      'disk',
      share(host.disk),
      `${spaceText(host.disk)} on /   read ${rateText(host.disk.read)}  written ${rateText(host.disk.written)}`,
    ),
    fitToWidth(`net  received ${rateText(host.net.received)}  sent ${rateText(host.net.sent)}`, columns),
  ]
}

function titleLine(host: HostSummary, url: string, columns: number, colors: Colors): string {
  const name = safeText(host.name) || 'producer'
  const parts = [
    host.uptime === undefined ? '' : `up ${formatDuration(host.uptime * 1000)}`,
    `load ${host.load.map((load) => load?.toFixed(2) ?? '-').join(' ')}`,
    host.serverUptime === undefined ? '' : `${safeText(host.software)} up ${formatDuration(host.serverUptime * 1000)}`,
    host.storage === '' || host.storage === 'ok' ? '' : `storage ${safeText(host.storage)}`,
    safeText(url),
  ]
  const text = parts.filter((part) => part !== '').join('   ')
  const shown = fitToWidth(name, Math.min(columns, cellWidth(name)))
  return colors.bold(shown) + fitToWidth(`   ${text}`, columns - cellWidth(shown))
}

function cpuText({ cpu, cpus }: HostSummary): string {
  const number = cpus === undefined ? '' : ` of ${cpus} ${cpus === 1 ? 'CPU' : 'CPUs'}`
  const iowait = cpu.iowait === undefined ? '' : `  iowait ${percent(cpu.iowait)}`
  return `${percent(cpu.busy)}${number}   user ${percent(cpu.user)}  system ${percent(cpu.system)}${iowait}`
}

function spaceText({ used, total }: Space): string {
  if (total === 0) return 'none'
  return used === undefined || total === undefined ? '-' : `${formatBytes(used)} of ${formatBytes(total)}`
}

function share({ used, total }: Space): number | undefined {
  return used === undefined || !total ? undefined : (100 * used) / total
}

function rateText(rate: number | undefined): string {
  return rate === undefined ? '-' : `${formatBytes(rate)}/s`
}

function percent(number: number | undefined): string {
  return number === undefined ? '-' : `${number.toFixed(1)} %`
}

function barOf(part: number | undefined, width: number, colors: Colors): string {
  const filled = Math.min(width, Math.round(((part ?? 0) / 100) * width))
  const color = (part ?? 0) >= 90 ? colors.red : (part ?? 0) >= 70 ? colors.yellow : colors.green
  return color('|'.repeat(filled)) + ' '.repeat(width - filled)
}

/** Removes what moves the cursor, joins characters or changes the direction of writing from a text of a source. */
export function safeText(text: string): string {
  return IS_ASCII.test(text) ? text : printable(text).replaceAll(/\p{Cf}/gu, '')
}

/** The width of a text from `safeText` in cells of the terminal. */
export function cellWidth(text: string): number {
  if (IS_ASCII.test(text)) return text.length
  let width = 0
  for (const character of text) width += widthOf(character)
  return width
}

/** Cuts or pads a text to exactly `width` cells; a cut text ends in "…". */
export function fitToWidth(text: string, width: number, align: 'left' | 'right' = 'left'): string {
  const missing = width - cellWidth(text)
  if (missing < 0) return fitToWidth(cut(text, width), width, align)
  return align === 'left' ? text + ' '.repeat(missing) : ' '.repeat(missing) + text
}

function cut(text: string, width: number): string {
  if (width < 1) return ''
  let used = 0
  let kept = ''
  for (const character of text) {
    used += widthOf(character)
    if (used > width - 1) break
    kept += character
  }
  return `${kept}…`
}

function widthOf(character: string): number {
  if (NO_WIDTH.test(character)) return 0
  return WIDE.test(character) && !HALF_A_FLAG.test(character) ? 2 : 1
}
