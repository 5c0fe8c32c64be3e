/** A table that is declared by its columns. Long ones are cut into pages; virtual-table.tsx draws those with thousands of rows. */
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { formatCount } from '../units.ts'

export interface Column<T> {
  /** A table whose columns have no title has no head. */
  readonly title?: string
  /** Classes of the head and of the cells: `number`, or `wide` for what a narrow screen does not show. */
  readonly look?: string
  /** Classes of the cells alone, such as `code`. */
  readonly cellLook?: string
  /** Whether the cell is the head of its row. */
  readonly isRowHead?: boolean
  readonly cell: (row: T) => ComponentChildren
}

interface TableProps<T> {
  readonly rows: readonly T[]
  readonly keyOf: (row: T) => string | number
  readonly columns: readonly Column<T>[]
  /** Classes of the table: `stacked` lays the cells of a row out as lines on a narrow screen. */
  readonly look?: string
  /** Shown in place of a table without rows; without it the head is shown. */
  readonly empty?: ComponentChildren
}

export function Table<T>({ rows, keyOf, columns, look, empty }: TableProps<T>) {
  if (rows.length === 0 && empty !== undefined) return <>{empty}</>
  return (
    <table class={look}>
      {columns.some(({ title = '' }) => title !== '') ? (
        <thead>
          <tr>
            <Heads columns={columns} />
          </tr>
        </thead>
      ) : null}
      <tbody>
        {rows.map((row) => (
          <tr key={keyOf(row)}>
            <Cells columns={columns} row={row} />
          </tr>
        ))}
      </tbody>
    </table>
  )
}

interface PagedTableProps<T> extends TableProps<T> {
  /** How many rows are shown at first, and how many more with each press of the button after the table. */
  readonly page: number
  /** Stands above the table; it is given how many rows are shown. */
  readonly status?: (shown: number) => ComponentChildren
}

export function PagedTable<T>({ page, status, rows, ...table }: PagedTableProps<T>) {
  const [pages, setPages] = useState(1)
  const shown = rows.slice(0, pages * page)
  const left = rows.length - shown.length
  return (
    <>
      {status?.(shown.length)}
      <Table {...table} rows={shown} />
      {left === 0 ? null : (
        <div class="actions">
          <button type="button" onClick={() => setPages(pages + 1)}>
            Show {formatCount(Math.min(page, left))} more
          </button>
        </div>
      )}
    </>
  )
}

/** The cells of the head; a column without a title has an empty one. */
export function Heads<T>({ columns }: { readonly columns: readonly Column<T>[] }) {
  return (
    <>
      {columns.map(({ title = '', look }, index) =>
        title === '' ? (
          <td key={index} />
        ) : (
          <th key={index} class={look}>
            {title}
          </th>
        ),
      )}
    </>
  )
}

/** The cells of a row. */
export function Cells<T>({ columns, row }: { readonly columns: readonly Column<T>[]; readonly row: T }) {
  return (
    <>
      {columns.map(({ look, cellLook, isRowHead, cell }, index) => {
        const classes = [cellLook, look].filter(Boolean).join(' ') || undefined
        return isRowHead ? (
          <th key={index} scope="row" class={classes}>
            {cell(row)}
          </th>
        ) : (
          <td key={index} class={classes}>
            {cell(row)}
          </td>
        )
      })}
    </>
  )
}
