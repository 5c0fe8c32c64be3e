/** Tables without lines: columns two blanks apart, a bold head. */
import Table from 'cli-table3'
import type { Colors } from '../terminal.ts'

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

export interface Column {
  readonly head: string
  readonly align?: 'left' | 'right'
}

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
