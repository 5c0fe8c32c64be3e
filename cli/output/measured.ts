/**
 * Values of metrics, as tables, lines and JSON. The value of a pattern is a REC of what was left open (name, host, ...) and
 * `value`; an answer about a pattern is an ARRAY of those.
 */
import { BasicType, type Value, valueToJson } from '../../client/index.ts'
import { fieldOf, type Record, recordsOf, textOf } from '../records.ts'
import type { Colors } from '../terminal.ts'
import { type Column, formatTable } from './table.ts'
import { formatClock, formatTime, formatValue, printable } from './text.ts'

/** The unit of the metric of this name; empty where it has none. */
export type UnitOf = (metric: string) => string

export interface Measured {
  /** Microseconds since 1970. */
  readonly time: number
  readonly value: Value
}

/** One object for each value; the fields of a REC stand beside metric and time (microseconds). */
export function toJson(metric: string, { time, value }: Measured): readonly object[] {
  const values = recordsOf(value)?.records.map((record): Value => ({ type: BasicType.REC, value: record })) ?? [value]
  return values.map((one) => {
    const json = valueToJson(one)
    return one.type === BasicType.REC ? { metric, time, ...(json as object) } : { metric, time, value: json }
  })
}

/** A record by itself, in one line. */
export function jsonOf(record: Record): string {
  return JSON.stringify(valueToJson({ type: BasicType.REC, value: record }))
}

/** One line: time of day, name, what was left open, value. */
export function toLine(metric: string, { time, value }: Measured, colors: Colors): string {
  const record: Record = value.type === BasicType.REC ? value.value : []
  const measured = fieldOf(record, 'value')
  const open = measured ? record.filter(({ name }) => name !== 'value' && name !== 'name') : []
  const name = (measured && textOf(record, 'name')) || printable(metric)
  const parts = [
    colors.dim(formatClock(time)),
    name,
    ...open.map(formatValue),
    colors.bold(formatValue(measured ?? value)),
  ]
  return parts.join('  ')
}

/** What `get` shows: a table for a list, a line for each field of a record, else one line. */
export function toText(metric: string, { time, value }: Measured, unitOf: UnitOf, colors: Colors): string {
  const list = recordsOf(value)
  if (list) return toTable(list.records, { time, unitOf: (name) => unitOf(name || metric), colors })
  if (value.type === BasicType.REC) {
    const names = value.value.map(({ name }) => printable(name))
    const width = Math.max(...names.map((name) => name.length))
    return value.value.map((field, i) => `${names[i]!.padEnd(width)}  ${colors.bold(formatValue(field))}`).join('\n')
  }
  return [
    printable(metric),
    colors.bold(withUnit(formatValue(value), unitOf(metric))),
    colors.dim(formatTime(time)),
  ].join('  ')
}

/**
 * A column for each field that any record has. `time` is that of the answer, which is the newest of its values: with a
 * single value it stands beside it, with several below the table, since the others may be older.
 */
export function toTable(
  records: readonly Record[],
  { time, unitOf = () => '', colors }: { time?: number; unitOf?: UnitOf; colors: Colors },
): string {
  const names = [...new Set(records.flatMap((record) => record.map(({ name }) => name)))]
  const isMeasured = time !== undefined && names.includes('value')
  const isTimed = isMeasured && records.length === 1
  const columns: Column[] = names.map((name) => ({
    head: printable(name),
    align: isNumeric(records, name) ? 'right' : 'left',
  }))
  const rows = records.map((record) => {
    const unit = unitOf(textOf(record, 'name'))
    const cells = names.map((name) => (name === 'value' ? withUnit(textOf(record, name), unit) : textOf(record, name)))
    return isTimed ? [...cells, formatTime(time)] : cells
  })
  const table = formatTable(isTimed ? [...columns, { head: 'time' }] : columns, rows, colors)
  return isMeasured && !isTimed ? `${table}\n${colors.dim(`the newest is of ${formatTime(time)}`)}` : table
}

function withUnit(text: string, unit: string): string {
  // A plain number has the unit 1.
  return unit === '' || unit === '1' || text === '-' ? text : `${text} ${printable(unit)}`
}

function isNumeric(records: readonly Record[], name: string): boolean {
  return records.every((record) => /^(number|bigint|undefined)$/.test(typeof fieldOf(record, name)?.value))
}
