/**
 * Renders the screen of `cinnabar top` as lines, each exactly as wide as the terminal. The functions are pure, so that only
 * lines that have changed need to be written.
 */
import { BasicType, type Value } from '../../client/index.ts'
import { formatAge, formatBytes, formatDuration, formatMeasured, formatValue, isStale, jsonText } from '../format.ts'
import type { Colors } from '../terminal.ts'
import { cellWidth, fitToWidth, joinedToWidth, safeText } from '../width.ts'
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
  /** The words that begin a command line of this program. */
  readonly program: string
}

/** The heading, one row and the last line. */
const MIN_TABLE = 3
const HEAD_LINES = 5
const KEYS = ['q quit', '/ filter', '1-4 sort', 'r reverse', 'space pause', 'h help']
const PRODUCER = 'PRODUCER'
const MAX_BAR = 30
const MIN_BAR = 8

/** The number of table rows that fit on the screen. */
export function tableHeight({ rows }: Size): number {
  return Math.max(0, rows - headHeight(rows) - 2)
}

export function render(picture: Picture, size: Size, colors: Colors): string[] {
  const { columns } = size
  const height = tableHeight(size)
  const head = hostLines(picture.host, picture.url, columns, colors)
  const body = picture.view.isHelp ? helpLines(columns) : tableLines(picture, columns, height, colors)
  const title = picture.view.isHelp ? fitToWidth('KEYS', columns) : tableHead(picture, columns)
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
  const full = picture.isFull ? [fullMessage(picture)] : []
  const title = colors.bold(tableHead(picture, columns))
  return [...head, '', title, ...table, ...full].map((line) => line.trimEnd()).join('\n')
}

/** One JSON object; time in microseconds since 1970. */
export function toJsonLine({ metric, producer, where, content, time }: TopRow, unit: string): string {
  const value = typeof content === 'bigint' ? exact(content) : content
  const isOdd = typeof value === 'number' && !Number.isFinite(value)
  const place = { ...(producer !== '' && { producer }), host: where }
  return jsonText({ metric, ...place, value: isOdd ? String(value) : value, unit, time })
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
  const widths = widthsOf(rows, columns)
  return rows.slice(view.top, view.top + height).map((row) => {
    const value = contentText(row.content, picture.unitOf(row.metric), widths.value)
    const age = row.goneMs !== undefined ? 'gone' : ageText(row.arrivedMs, picture.nowMs)
    const shown = lineOf(
      [
        [safeText(row.metric), widths.metric],
        [safeText(row.producer), widths.producer],
        [safeText(row.where), widths.host],
        // Text is aligned to the left.
        typeof row.content === 'string' ? [value, widths.value] : [value, widths.value, 'right'],
        [age, widths.age, 'right'],
      ],
      columns,
    )
    const isOld = row.arrivedMs !== undefined && isStale(picture.nowMs - row.arrivedMs)
    return row.goneMs !== undefined || isOld ? colors.dim(shown) : shown
  })
}

function emptyLines({ view, patterns, program, total }: Picture): string[] {
  const filter = filterOf(view)
  if (total > 0) return ['', `None of the ${total} rows matches ${safeText(filter)}`]
  return [
    '',
    `No values yet for ${patterns.map(safeText).join(', ')}.`,
    'They appear here when they arrive.',
    `\`${program} top 'host.*'\` shows the metrics of the host as rows.`,
  ]
}

function helpLines(columns: number): string[] {
  return ['', ...HELP.map(([keys, what]) => `  ${keys.padEnd(20)}${what}`)].map((line) => fitToWidth(line, columns))
}

function tableHead({ rows, view: { sort, isReversed } }: Picture, columns: number): string {
  const widths = widthsOf(rows, columns)
  const [metric, ...others] = sortKeys.map((name): Cell => {
    // By default values are sorted in descending order.
    const isDown = (name === 'value') !== isReversed
    const title = `${name.toUpperCase()}${name === sort ? (isDown ? ' v' : ' ^') : ''}`
    return name === 'value' || name === 'age' ? [title, widths[name], 'right'] : [title, widths[name]]
  })
  return lineOf([metric as Cell, [PRODUCER, widths.producer], ...others], columns)
}

type Cell = readonly [text: string, width: number, align?: 'right']

/** Joins cells with two spaces; a cell of width 0 is left out. */
function lineOf(cells: readonly Cell[], columns: number): string {
  const fitting = cells.filter(([, width]) => width > 0).map(([text, width, align]) => fitToWidth(text, width, align))
  return fitToWidth(fitting.join('  '), columns)
}

/**
 * As wide as the names and hosts of all rows need, so that a value stands beside its name, and columns stay in place while the
 * table is scrolled. On a narrow terminal age and host are left out (0), and the producer wherever none is
 * named.
 */
function widthsOf(rows: readonly TopRow[], columns: number): Readonly<Record<SortKey | 'producer', number>> {
  const age = columns < 36 ? 0 : 6
  const value = Math.min(24, Math.max(8, Math.floor(columns / 6)))
  const longest = (textOf: (row: TopRow) => string, head: number) =>
    rows.reduce((most, row) => Math.max(most, cellWidth(safeText(textOf(row)))), head)
  const isNamed = columns >= 48 && rows.some((row) => row.producer !== '')
  const most = Math.max(PRODUCER.length, Math.floor(columns / 5))
  const producer = isNamed
    ? Math.min(
        most,
        longest((row) => row.producer, PRODUCER.length),
      )
    : 0
  const room = columns - value - 2 - (age === 0 ? 0 : age + 2) - (producer === 0 ? 0 : producer + 2)
  if (columns < 24) return { age, value, metric: Math.max(1, room), producer, host: 0 }
  const hosts = longest(({ where }) => where, 'HOST ^'.length)
  const metric = Math.min(
    longest(({ metric }) => metric, 'METRIC ^'.length),
    Math.max(Math.ceil((room - 2) * 0.6), room - 2 - hosts),
  )
  const host = Math.min(hosts, room - 2 - metric)
  // Text gets the room that is left.
  const texts = longest(({ content }) => (typeof content === 'string' ? content : ''), value)
  return { age, value: Math.min(texts, value + room - 2 - metric - host), metric, producer, host }
}

function lastLine(picture: Picture, height: number, columns: number, colors: Colors): string {
  const { view, rows, total, message, isFull } = picture
  if (view.typed !== undefined) return fitToWidth(`/${safeText(view.typed)}_`, columns)
  if (message !== '') return colors.yellow(fitToWidth(safeText(message), columns))
  if (isFull) return colors.yellow(fitToWidth(fullMessage(picture), columns))
  const from = Math.min(view.top + 1, rows.length)
  const parts = [
    view.isPaused ? 'PAUSED' : '',
    rows.length === total ? '' : `${rows.length} of ${total} rows match ${safeText(view.filter)}`,
    rows.length > height ? `${from}-${Math.min(view.top + height, rows.length)} of ${rows.length}` : '',
    ...KEYS,
  ]
  return colors.dim(fitToWidth(joinedToWidth(parts, columns), columns))
}

function fullMessage({ total, program }: Picture): string {
  return `There are more than the ${total} rows shown. Show fewer: \`${program} top 'gmetric.cpu_*'\``
}

/** A number that does not fit loses its unit, and then digits, because a cut one would be wrong. */
function contentText(content: Content, unit: string, width: number): string {
  if (typeof content === 'string') return safeText(content)
  if (typeof content === 'boolean') return String(content)
  const value: Value =
    typeof content === 'number' ? { type: BasicType.DOUBLE, value: content } : { type: BasicType.INT64, value: content }
  const texts = [safeText(formatMeasured(value, unit)), formatValue(value)]
  return texts.find((text) => cellWidth(text) <= width) ?? Number(content).toPrecision(Math.max(1, width - 6))
}

function ageText(arrivedMs: number | undefined, nowMs: number): string {
  if (arrivedMs === undefined) return '-'
  const ms = nowMs - arrivedMs
  return ms < 1000 ? 'now' : formatAge(ms)
}

/** The lines about the host, from the most to the least important one, each exactly `columns` cells wide. */
function hostLines(host: HostSummary, url: string, columns: number, colors: Colors): string[] {
  const bar = Math.min(MAX_BAR, Math.floor(columns / 4))
  const fitted = (name: string, parts: readonly string[], width: number) =>
    name + fitToWidth(joinedToWidth(parts, width - name.length), width - name.length)
  const line = (label: string, part: number | undefined, texts: readonly string[]) => {
    const name = label.padEnd(5)
    if (bar < MIN_BAR) return fitToWidth(fitted(name, texts, columns), columns)
    return fitted(`${name}[${' '.repeat(bar)}] `, texts, columns).replace(' '.repeat(bar), barOf(part, bar, colors))
  }
  return [
    titleLine(host, url, columns, colors),
    line('cpu', host.cpu.busy, cpuTexts(host)),
    line('mem', share(host.memory), [spaceText(host.memory), `swap ${spaceText(host.swap)}`]),
    line('disk', share(host.disk), [
      `${spaceText(host.disk)} on /`,
      `read ${rateText(host.disk.read)}`,
      `written ${rateText(host.disk.written)}`,
    ]),
    fitToWidth(
      joinedToWidth([`net  received ${rateText(host.net.received)}`, `sent ${rateText(host.net.sent)}`], columns),
      columns,
    ),
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
  const shown = fitToWidth(name, Math.min(columns, cellWidth(name)))
  const room = columns - cellWidth(shown)
  return colors.bold(shown) + fitToWidth(`   ${joinedToWidth(parts, room - 3)}`, room)
}

function cpuTexts({ cpu, cpus }: HostSummary): string[] {
  const number = cpus === undefined ? '' : ` of ${cpus} ${cpus === 1 ? 'CPU' : 'CPUs'}`
  const iowait = cpu.iowait === undefined ? '' : `iowait ${percent(cpu.iowait)}`
  return [percent(cpu.busy) + number, `user ${percent(cpu.user)}`, `system ${percent(cpu.system)}`, iowait]
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
