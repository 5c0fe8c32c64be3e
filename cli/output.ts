/**
 * Values and records as tables, lines and JSON. The value of a pattern is a REC of the parts that the pattern left open (name,
 * host, ...) and of `value`; the answer to a query of a pattern is an ARRAY of those.
 */

import { BasicType, type Value, valueToJson } from '../client/index.ts'
import { isKnownLabel } from '../client/values.ts'
import {
  byNature,
  formatAge,
  formatClock,
  formatMeasured,
  formatTime,
  formatValue,
  isStale,
  jsonText,
  printable,
  unitOfField,
} from './format.ts'
import type { LoginOptions } from './login.ts'
import { type AnswerRecord, fieldsOf, fieldText, findField, toRecords } from './records.ts'
import type { Colors, Terminal } from './terminal.ts'
import { cellWidth, fitToWidth, safeText, wrapped } from './width.ts'

export const JSON_OPTION = ['--json', 'print one JSON object per line'] as const
/** The options of most commands that print. */
export interface JsonOptions extends LoginOptions {
  readonly json?: boolean
}

export const EXACT_OPTION = ['--exact', 'print numbers as they are: 25276502016 B instead of 23.5 GiB'] as const

/** Returns the unit of a metric; empty if it has none. */
type UnitOf = (metric: string) => string

interface TimedValue {
  /** Microseconds since 1970. */
  readonly time: number
  readonly value: Value
}

/** One object for each value; the fields of a REC are added to metric and time (microseconds), a `time` of its own replaces that. */
export function toJson(metric: string, { time, value }: TimedValue): readonly object[] {
  const values = toRecords(value)?.records.map((record): Value => ({ type: BasicType.REC, value: record })) ?? [value]
  return values.map((one) => {
    const json = valueToJson(one)
    return one.type === BasicType.REC ? { metric, time, ...(json as object) } : { metric, time, value: json }
  })
}

/** One record as JSON in one line. */
export function jsonOf(record: AnswerRecord): string {
  return jsonText(valueToJson({ type: BasicType.REC, value: record }))
}

/** How values are shown to people. */
export interface Showing {
  readonly unitOf: UnitOf
  readonly colors: Colors
  /** Numbers are shown as they are. */
  readonly isExact?: boolean | undefined
  /** Milliseconds since 1970: values that are old by now show their age. */
  readonly nowMs: number
  /** The width of the terminal; undefined if there is none. */
  readonly columns?: number | undefined
}

/** One line with time of day, name, the parts that a pattern left open, and value. */
export function toLine(
  metric: string,
  { time, value }: TimedValue,
  { unitOf, colors, isExact }: Pick<Showing, 'unitOf' | 'colors' | 'isExact'>,
): string {
  const record = fieldsOf(value)
  const measured = findField(record, 'value')
  const open = measured ? record.filter(({ name }) => name !== 'value' && name !== 'name') : []
  const name = (measured && fieldText(record, 'name')) || printable(metric)
  const text = formatMeasured(measured ?? value, unitOf(name), isExact)
  return [colors.dim(formatClock(time)), name, ...open.map(labelText), colors.bold(text)].join('  ')
}

/** A table for a list, a line for each field of a record, else one line. */
export function toText(metric: string, { time, value }: TimedValue, showing: Showing): string {
  const { unitOf, colors, isExact, nowMs, columns } = showing
  const list = toRecords(value)
  if (list) return toTable(list.records, { ...showing, time, unitOf: (name) => unitOf(name || metric) })
  if (value.type === BasicType.REC) {
    const facts = value.value.map((field) => [field.name, cellText(field, isExact)] as const)
    return formatFacts(facts, colors, columns)
  }
  return [
    printable(metric),
    colors.bold(formatMeasured(value, unitOf(metric), isExact)),
    whenText(time, nowMs, colors),
  ].join('  ')
}

/** The text of a label; one whose name does not follow from the metric is shown with it. */
function labelText(field: AnswerRecord[number]): string {
  return isKnownLabel(field.name) ? formatValue(field) : `${printable(field.name)}=${formatValue(field)}`
}

/** A line for each name and text, the texts below each other. */
export function formatFacts(
  facts: readonly (readonly [name: string, text: string])[],
  colors: Colors,
  columns = Number.POSITIVE_INFINITY,
): string {
  const width = Math.max(0, ...facts.map(([name]) => cellWidth(safeText(name))))
  return facts
    .flatMap(([name, text]) =>
      wrapped(text, Math.max(MIN_COLUMN, columns - width - 2)).map((line, i) =>
        `${fitToWidth(i === 0 ? safeText(name) : '', width)}  ${colors.bold(line)}`.trimEnd(),
      ),
    )
    .join('\n')
}

/** A time, and if it is long ago, how long. */
function whenText(time: number, nowMs: number, colors: Colors): string {
  const ageMs = nowMs - time / 1000
  if (!isStale(ageMs)) return colors.dim(formatTime(time))
  return colors.yellow(`${formatTime(time)}  ${formatAge(ageMs)} ago`)
}

/**
 * A table with a column for each field that any record has. Values are in natural order, and the last column is their time. A
 * producer without the extension `element-time` gives only that of the answer, `time`, which is that of its newest value: it
 * is below the table, since the others may be older.
 */
export function toTable(
  given: readonly AnswerRecord[],
  { time, unitOf = () => '', colors, isExact, nowMs = 0, columns }: TableShowing,
): string {
  const all = [...new Set(given.flatMap((record) => record.map(({ name }) => name)))]
  const isTimedValue = time !== undefined && all.includes('value')
  const records = isTimedValue ? sorted(given) : given
  const times = records.map((record) => ownTime(record) ?? (records.length === 1 ? time : undefined))
  const isTimed = isTimedValue && times.some((one) => one !== undefined)
  const labels = all.filter((name) => name !== 'value' && !(isTimed && name === 'time'))
  const names = isTimedValue ? [...labels, 'value'] : all
  const heads: Column[] = names.map((name) => ({
    head: safeText(name),
    align: isNumeric(records, name) ? 'right' : 'left',
  }))
  const rows = records.map((record, index) => {
    const unit = unitOf(fieldText(record, 'name'))
    const cells = names.map((name) => {
      const field = findField(record, name)
      if (field === undefined) return ''
      return isTimedValue && name === 'value' ? formatMeasured(field, unit, isExact) : cellText(field, isExact)
    })
    const at = times[index]
    return isTimed ? [...cells, at === undefined ? '' : whenText(at, nowMs, colors)] : cells
  })
  const table = formatTable(isTimed ? [...heads, { head: 'time' }] : heads, rows, colors, columns)
  return isTimedValue && !isTimed ? `${table}\n${colors.dim(`newest value: ${formatTime(time)}`)}` : table
}

type TableShowing = Pick<Showing, 'colors'> & Partial<Showing> & { readonly time?: number }

/** By the parts that the pattern left open, in their order. */
function sorted(records: readonly AnswerRecord[]): readonly AnswerRecord[] {
  const keys = records.map((record) =>
    record.filter(({ name }) => name !== 'time' && name !== 'value').map((field) => formatValue(field)),
  )
  const order = (a: readonly string[], b: readonly string[]): number => {
    for (const [i, part] of a.entries()) {
      const compared = byNature(part, b[i] ?? '')
      if (compared !== 0) return compared
    }
    return 0
  }
  return records
    .map((record, i) => ({ record, key: keys[i]! }))
    .sort((a, b) => order(a.key, b.key))
    .map(({ record }) => record)
}

/** A field of a record. Of records that have names, such as the parameters of a control, only the names are shown. */
function cellText(field: AnswerRecord[number], isExact: boolean | undefined): string {
  const records = toRecords(field)?.records ?? []
  if (records.length > 0 && records.every((record) => findField(record, 'name'))) {
    return records.map((record) => fieldText(record, 'name')).join(', ')
  }
  return formatMeasured(field, unitOfField(field.name), isExact)
}

/** The time that a record of a pattern has right before its value, in microseconds. */
function ownTime(record: AnswerRecord): number | undefined {
  const time = record[record.findIndex(({ name }) => name === 'value') - 1]
  return time?.name === 'time' && time.type === BasicType.UINT64 ? Number(time.value) : undefined
}

/** Among values, a short text may stand in a column of numbers. */
const SHORT_TEXT = 24

function isNumeric(records: readonly AnswerRecord[], name: string): boolean {
  const values = records.map((record) => findField(record, name)?.value)
  const isNumber = (value: unknown): boolean => /^(number|bigint|undefined)$/.test(typeof value)
  if (name !== 'value') return values.every(isNumber)
  const texts = values.filter((value) => !isNumber(value))
  return texts.length < values.length && texts.every((text) => typeof text === 'string' && text.length <= SHORT_TEXT)
}

export interface Column {
  readonly head: string
  readonly align?: 'left' | 'right'
}

/** What a column of text keeps where there is little room. */
const MIN_COLUMN = 10

/**
 * A table without lines: bold headings, and columns two spaces apart. Where `width` has no room for them, the widest columns of
 * text get narrower, and their cells have several lines.
 */
export function formatTable(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  colors: Colors,
  width = Number.POSITIVE_INFINITY,
): string {
  const heads = columns.map(({ head }) => head.toUpperCase())
  const widths = heads.map((head, i) => {
    return rows.reduce((most, row) => Math.max(most, cellWidth(row[i] ?? '')), cellWidth(head))
  })
  narrow(widths, columns, width)
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, i) => fitToWidth(cell, widths[i]!, columns[i]!.align))
      .join('  ')
      .trimEnd()
  const lines = rows.flatMap((row) => {
    const cells = columns.map((_, i) => wrapped(row[i] ?? '', widths[i]!))
    const height = Math.max(...cells.map((cell) => cell.length))
    return Array.from({ length: height }, (_, at) => line(cells.map((cell) => cell[at] ?? '')))
  })
  return [boldWords(line(heads), colors), ...lines].join('\n')
}

/** Takes from the widest columns of text until all have room, or until they are as narrow as may be. */
function narrow(widths: number[], columns: readonly Column[], width: number): void {
  const isText = columns.map(({ align }) => align !== 'right')
  let excess = widths.reduce((sum, one) => sum + one + 2, -2) - width
  while (excess > 0) {
    const widest = Math.max(...widths.filter((_, i) => isText[i]))
    if (widest <= MIN_COLUMN) return
    widths[widths.findLastIndex((one, i) => isText[i] && one === widest)]!--
    excess--
  }
}

function boldWords(heads: string, colors: Colors): string {
  return heads.replaceAll(/\S+(?: \S+)*/g, (head) => colors.bold(head))
}

export interface Listing {
  /** The note if there are no records. */
  readonly none: string
  /** By default a table with a column for each field. `columns` is the width of the terminal; undefined if there is none. */
  readonly toText?: (records: readonly AnswerRecord[], columns: number | undefined) => string
}

/** Prints a table for people, or with --json an object per line for programs. */
export async function printList(
  { print, note, colors, screen }: Pick<Terminal, 'print' | 'note' | 'colors' | 'screen'>,
  records: readonly AnswerRecord[],
  isJson: boolean | undefined,
  { none, toText = (all, columns) => toTable(all, { colors, columns }) }: Listing,
): Promise<void> {
  if (records.length === 0) {
    if (!isJson) note(none)
  } else await print(isJson ? records.map(jsonOf).join('\n') : toText(records, screen?.size().columns))
}

/** `host=web1 severity=page`. */
export function labelPairs(texts: Readonly<Record<string, string>>): string {
  return Object.entries(texts)
    .map(([name, text]) => `${safeText(name)}=${safeText(text)}`)
    .join(' ')
}
