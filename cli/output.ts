/**
 * Values and records as tables, lines and JSON. The value of a pattern is a REC of the parts that the pattern left open (name,
 * host, ...) and of `value`; the answer to a query of a pattern is an ARRAY of those.
 */

import Table from 'cli-table3'
import { BasicType, type Value, valueToJson } from '../client/index.ts'
import { formatAge, formatClock, formatTime, formatValue, isStale, printable } from './format.ts'
import { type AnswerRecord, fieldText, findField, toRecords } from './records.ts'
import type { Colors, Terminal } from './terminal.ts'

export const JSON_OPTION = ['--json', 'print one JSON object per line'] as const

const NO_LINES = {
  top: '',
  'top-mid': '',
  'top-left': '',
  'top-right': '',
  bottom: '',
  'bottom-mid': '',
  'bottom-left': '',
  'bottom-right': '',
  left: '',
  'left-mid': '',
  mid: '',
  'mid-mid': '',
  right: '',
  'right-mid': '',
  middle: '  ',
} as const

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
  return JSON.stringify(valueToJson({ type: BasicType.REC, value: record }))
}

/** One line with time of day, name, the parts that a pattern left open, and value. */
export function toLine(metric: string, { time, value }: TimedValue, colors: Colors): string {
  const record: AnswerRecord = value.type === BasicType.REC ? value.value : []
  const measured = findField(record, 'value')
  const open = measured ? record.filter(({ name }) => name !== 'value' && name !== 'name') : []
  const name = (measured && fieldText(record, 'name')) || printable(metric)
  const parts = [
    colors.dim(formatClock(time)),
    name,
    ...open.map(formatValue),
    colors.bold(formatValue(measured ?? value)),
  ]
  return parts.join('  ')
}

/** How values are shown to people. */
export interface Showing {
  readonly unitOf: UnitOf
  readonly colors: Colors
  /** Milliseconds since 1970: values that are old by now show their age. */
  readonly nowMs: number
}

/** A table for a list, a line for each field of a record, else one line. */
export function toText(metric: string, { time, value }: TimedValue, showing: Showing): string {
  const { unitOf, colors, nowMs } = showing
  const list = toRecords(value)
  if (list) return toTable(list.records, { time, unitOf: (name) => unitOf(name || metric), colors, nowMs })
  if (value.type === BasicType.REC) {
    const names = value.value.map(({ name }) => printable(name))
    const width = Math.max(...names.map((name) => name.length))
    return value.value.map((field, i) => `${names[i]!.padEnd(width)}  ${colors.bold(formatValue(field))}`).join('\n')
  }
  return [
    printable(metric),
    colors.bold(withUnit(formatValue(value), unitOf(metric))),
    whenText(time, nowMs, colors),
  ].join('  ')
}

/** A time, and if it is long ago, how long. */
function whenText(time: number, nowMs: number, colors: Colors): string {
  const ageMs = nowMs - time / 1000
  if (!isStale(ageMs)) return colors.dim(formatTime(time))
  return colors.yellow(`${formatTime(time)}  ${formatAge(ageMs)} ago`)
}

/**
 * A table with a column for each field that any record has. The last column is the time of the values. A producer without
 * the extension `element-time` gives only that of the answer, `time`, which is that of its newest value: it is below the table,
 * since the others may be older.
 */
export function toTable(
  records: readonly AnswerRecord[],
  { time, unitOf = () => '', colors, nowMs = 0 }: Pick<Showing, 'colors'> & Partial<Showing> & { time?: number },
): string {
  const all = [...new Set(records.flatMap((record) => record.map(({ name }) => name)))]
  const isTimedValue = time !== undefined && all.includes('value')
  const times = records.map((record) => ownTime(record) ?? (records.length === 1 ? time : undefined))
  const isTimed = isTimedValue && times.some((one) => one !== undefined)
  const names = isTimed ? all.filter((name) => name !== 'time') : all
  const columns: Column[] = names.map((name) => ({
    head: printable(name),
    align: isNumeric(records, name) ? 'right' : 'left',
  }))
  const rows = records.map((record, index) => {
    const unit = unitOf(fieldText(record, 'name'))
    const cells = names.map((name) =>
      name === 'value' ? withUnit(fieldText(record, name), unit) : fieldText(record, name),
    )
    const at = times[index]
    return isTimed ? [...cells, at === undefined ? '' : whenText(at, nowMs, colors)] : cells
  })
  const table = formatTable(isTimed ? [...columns, { head: 'time' }] : columns, rows, colors)
  return isTimedValue && !isTimed ? `${table}\n${colors.dim(`newest value: ${formatTime(time)}`)}` : table
}

/** The time that a record of a pattern has right before its value, in microseconds. */
function ownTime(record: AnswerRecord): number | undefined {
  const time = record[record.findIndex(({ name }) => name === 'value') - 1]
  return time?.name === 'time' && time.type === BasicType.UINT64 ? Number(time.value) : undefined
}

function withUnit(text: string, unit: string): string {
  // The unit of a plain number is 1.
  return unit === '' || unit === '1' || text === '-' ? text : `${text} ${printable(unit)}`
}

function isNumeric(records: readonly AnswerRecord[], name: string): boolean {
  return records.every((record) => /^(number|bigint|undefined)$/.test(typeof findField(record, name)?.value))
}

export interface Column {
  readonly head: string
  readonly align?: 'left' | 'right'
}

/** A table without lines: bold headings, and columns two spaces apart. */
export function formatTable(columns: readonly Column[], rows: readonly (readonly string[])[], colors: Colors): string {
  const table = new Table({
    chars: NO_LINES,
    style: { 'padding-left': 0, 'padding-right': 0, head: [], border: [] },
    head: columns.map(({ head }) => colors.bold(head.toUpperCase())),
    colAligns: columns.map(({ align = 'left' }) => align),
  })
  table.push(...rows.map((row) => [...row]))
  return table
    .toString()
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n')
}

export interface Listing {
  /** The note if there are no records. */
  readonly none: string
  /** By default a table with a column for each field. */
  readonly toText?: (records: readonly AnswerRecord[]) => string
}

/** Prints a table for people, or with --json an object per line for programs. */
export async function printList(
  { print, note, colors }: Pick<Terminal, 'print' | 'note' | 'colors'>,
  records: readonly AnswerRecord[],
  isJson: boolean | undefined,
  { none, toText = () => toTable(records, { colors }) }: Listing,
): Promise<void> {
  if (records.length === 0) {
    if (!isJson) note(none)
  } else await print(isJson ? records.map(jsonOf).join('\n') : toText(records))
}
