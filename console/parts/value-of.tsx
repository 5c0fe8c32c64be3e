/** A value of any type, such as that of a result. */
import type { Plain } from '../../client/browser.ts'
import { Name } from './name.tsx'
import { type Column, Table } from './table.tsx'

const FIELD_COLUMNS: readonly Column<readonly [name: string, field: Plain]>[] = [
  { isRowHead: true, cell: ([name]) => <Name text={name} /> },
  { cell: ([, field]) => <pre>{valueText(field)}</pre> },
]

/** A REC has a row for each field. */
export function ValueOf({ value }: { readonly value: Plain }) {
  if (value === null) return null
  if (typeof value !== 'object' || Array.isArray(value) || value instanceof Uint8Array) {
    return <pre class="padded">{valueText(value)}</pre>
  }
  return <Table look="facts" rows={Object.entries(value)} keyOf={([name]) => name} columns={FIELD_COLUMNS} />
}

/** As people read it; of a REC or an ARRAY its JSON. */
export function valueText(value: Plain): string {
  if (value === null) return ''
  if (typeof value === 'string') return value
  return JSON.stringify(value, (_, part) => (typeof part === 'bigint' ? String(part) : part), 2)
}
