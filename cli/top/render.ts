/**
 * The screen of `cinnabar top` as lines, each of exactly the width of the terminal, from what there is to show. Pure: the
 * same picture gives the same lines, and only lines that changed are written.
 */

import { BasicType } from '../../client/index.ts'
import { formatAge } from '../output/quantity.ts'
import { formatValue } from '../output/text.ts'
import type { Colors } from '../terminal.ts'
import { type Sort, sorts } from './arrange.ts'
import { fitted, safe } from './cells.ts'
import { headLines } from './head.ts'
import type { HostSummary } from './host.ts'
import type { Content, Row } from './rows.ts'
import type { Size } from './screen.ts'
import { filterOf, HELP, type View } from './view.ts'

export interface Picture {
  readonly view: View
  readonly host: HostSummary
  readonly url: string
  /** Those that the filter leaves, in order. */
  readonly rows: readonly Row[]
  /** How many there are without a filter. */
  readonly total: number
  readonly isFull: boolean
  /** Of a metric; empty without one. */
  readonly unitOf: (metric: string) => string
  readonly nowMs: number
  /** What stands in the last line instead of the keys: something is wrong, or was said. */
  readonly message: string
  /** What is asked for, for an empty table. */
  readonly asked: readonly string[]
}

/** Table head and last line, and one row. */
const MIN_TABLE = 3
const HEAD_LINES = 5
const KEYS = 'q quit  / filter  1-4 sort  r reverse  space pause  h help'

/** How many rows of the table fit. */
export function tableHeight({ rows }: Size): number {
  return Math.max(0, rows - headHeight(rows) - 2)
}

export function render(picture: Picture, size: Size, colors: Colors): string[] {
  const { columns } = size
  const height = tableHeight(size)
  const head = headLines(picture.host, picture.url, columns, colors)
  const body = picture.view.isHelp ? helpLines(columns) : tableLines(picture, columns, height, colors)
  const title = picture.view.isHelp ? fitted('KEYS', columns) : tableHead(picture.view, columns)
  return [
    ...filled(head, headHeight(size.rows), columns),
    colors.inverse(title),
    ...filled(body, height, columns),
    lastLine(picture, height, columns, colors),
  ].slice(-size.rows)
}

/** The same for a pipe: `columns` wide lines without blanks at the end, and every row. */
export function renderPlain(picture: Picture, columns: number, colors: Colors): string {
  const table = tableLines({ ...picture, view: { ...picture.view, top: 0 } }, columns, picture.rows.length, colors)
  const head = headLines(picture.host, picture.url, columns, colors)
  const full = picture.isFull ? [fullMessage(picture.total)] : []
  const title = colors.bold(tableHead(picture.view, columns))
  return [...head, '', title, ...table, ...full].map((line) => line.trimEnd()).join('\n')
}

/** One object; the time in microseconds since 1970. */
export function toJsonLine({ metric, where, content, time }: Row, unit: string): string {
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

/** All lines and an empty one where half of the screen is left for the table, else the first of them. */
function headHeight(rows: number): number {
  return Math.max(0, Math.min(HEAD_LINES + 1, Math.floor(rows / 2), rows - MIN_TABLE))
}

function tableLines({ rows, view, ...picture }: Picture, columns: number, height: number, colors: Colors): string[] {
  if (rows.length === 0) return emptyLines({ rows, view, ...picture }).map((line) => fitted(line, columns))
  const widths = widthsOf(columns)
  return rows.slice(view.top, view.top + height).map((row) => {
    const [value, unit] = [contentText(row.content, widths.value), safe(picture.unitOf(row.metric))]
    // Text reads from its beginning.
    const isText = typeof row.content === 'string'
    const measured: readonly Cell[] = isText
      ? [[value, widths.unit === 0 ? widths.value : widths.value + 2 + widths.unit]]
      : [
          [value, widths.value, 'right'],
          [unit === '1' ? '' : unit, widths.unit],
        ]
    const age = row.goneMs !== undefined ? 'gone' : ageText(row.arrivedMs, picture.nowMs)
    const shown = lineOf(
      [[safe(row.metric), widths.metric], [safe(row.where), widths.host], ...measured, [age, widths.age, 'right']],
      columns,
    )
    return row.goneMs === undefined ? shown : colors.dim(shown)
  })
}

function emptyLines({ view, asked, total }: Picture): string[] {
  const filter = filterOf(view)
  if (total > 0) return ['', `None of the ${total} rows contains ${safe(filter)}`]
  return [
    '',
    `Nothing has come in yet for ${asked.map(safe).join(', ')}.`,
    "It appears here by itself when it does. `cinnabar top 'host.*'` shows the host's own metrics as rows.",
  ]
}

function helpLines(columns: number): string[] {
  return ['', ...HELP.map(([keys, what]) => `  ${keys.padEnd(20)}${what}`)].map((line) => fitted(line, columns))
}

function tableHead({ sort, isReversed }: View, columns: number): string {
  const widths = widthsOf(columns)
  const title = (name: Sort) => {
    // The natural direction of values is from the largest down.
    const isDown = (name === 'value') !== isReversed
    return `${name.toUpperCase()}${name === sort ? (isDown ? ' v' : ' ^') : ''}`
  }
  const [metric, host, value, age] = sorts.map(title) as [string, string, string, string]
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

/** Two blanks apart; a width of 0 leaves a cell out. */
function lineOf(cells: readonly Cell[], columns: number): string {
  const fitting = cells.filter(([, width]) => width > 0).map(([text, width, align]) => fitted(text, width, align))
  return fitted(fitting.join('  '), columns)
}

/** Of the width only, so that columns stay where they are. Where there is little, unit, age and host give way: 0. */
function widthsOf(columns: number): Readonly<Record<Sort | 'unit', number>> {
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
  if (view.typed !== undefined) return fitted(`/${safe(view.typed)}_`, columns)
  if (message !== '') return colors.yellow(fitted(safe(message), columns))
  if (isFull) return colors.yellow(fitted(fullMessage(total), columns))
  const from = Math.min(view.top + 1, rows.length)
  const parts = [
    view.isPaused ? 'PAUSED' : '',
    rows.length === total ? '' : `${rows.length} of ${total} rows match ${safe(view.filter)}`,
    rows.length > height ? `${from}-${Math.min(view.top + height, rows.length)} of ${rows.length}` : '',
    KEYS,
  ]
  return colors.dim(fitted(parts.filter((part) => part !== '').join('  '), columns))
}

function fullMessage(total: number): string {
  return `Only ${total} rows are kept, and there are more: name what is wanted, as cinnabar top 'gmetric.cpu_*'`
}

/** A number that does not fit is rounded: cut, it would be another one. */
function contentText(content: Content, width: number): string {
  if (typeof content === 'string') return safe(content)
  const text = typeof content === 'number' ? formatValue({ type: BasicType.DOUBLE, value: content }) : String(content)
  return text.length <= width ? text : Number(content).toPrecision(Math.max(1, width - 6))
}

function ageText(arrivedMs: number | undefined, nowMs: number): string {
  if (arrivedMs === undefined) return '-'
  const ms = nowMs - arrivedMs
  return ms < 1000 ? 'now' : formatAge(ms)
}
