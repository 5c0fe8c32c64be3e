/** Lists of what users have put into force: rule files, and notifiers. */
import { printControlList } from './control.ts'
import { formatTime } from './format.ts'
import { formatTable, type JsonOptions } from './output.ts'
import { type AnswerRecord, fieldNumber, fieldText } from './records.ts'
import type { Cli } from './session.ts'
import { safeText } from './width.ts'

export interface PutList {
  /** The control that lists them. */
  readonly control: string
  /** What is said if there are none. */
  readonly none: string
  /** The fields that are shown; `put` is the time at which it was put. */
  readonly heads: readonly string[]
}

export function printPutList(cli: Cli, options: JsonOptions, { control, none, heads }: PutList): Promise<void> {
  const toText = (records: readonly AnswerRecord[], width?: number): string => {
    const textOf = (record: AnswerRecord, head: string): string =>
      head === 'put' ? formatTime(fieldNumber(record, head)) : safeText(fieldText(record, head))
    const rows = records.map((record) => heads.map((head) => textOf(record, head)))
    const columns = heads.map((head) => ({ head }))
    return formatTable(columns, rows, cli.terminal.colors, width)
  }
  return printControlList(cli, options, control, { none, toText })
}
