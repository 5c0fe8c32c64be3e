/** Lists that a command prints: a table for people, with --json an object per line for programs. */
import type { Record } from '../records.ts'
import type { Terminal } from '../terminal.ts'
import { jsonOf, toTable } from './measured.ts'

export const JSON_OPTION = ['--json', 'one JSON object per line'] as const

interface Listing {
  /** Said where there is nothing. */
  readonly none: string
  /** A column for each field unless given. */
  readonly toText?: (records: readonly Record[]) => string
}

export async function printList(
  { print, note, colors }: Pick<Terminal, 'print' | 'note' | 'colors'>,
  records: readonly Record[],
  isJson: boolean | undefined,
  { none, toText = () => toTable(records, { colors }) }: Listing,
): Promise<void> {
  if (records.length === 0) {
    if (!isJson) note(none)
  } else await print(isJson ? records.map(jsonOf).join('\n') : toText(records))
}
