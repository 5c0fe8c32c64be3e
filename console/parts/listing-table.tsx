/** What a control `<family>.list` gives, as a table with a search, and a control that can be run for each row. */
import { useState } from 'preact/hooks'
import type { Consumer, PlainRecord } from '../../client/browser.ts'
import type { Arguments } from '../query.ts'
import { formatCount } from '../units.ts'
import { Action } from './action.tsx'
import type { Listing } from './listing.ts'
import { Search } from './search.tsx'
import { Loading, Unreadable } from './state.tsx'
import { type Column, PagedTable } from './table.tsx'

const PAGE = 200

/** What can be done with a row, after a question. */
interface RowAction {
  readonly label: string
  readonly control: string
  /** The row that it is done to, in words and for the control. */
  readonly of: (record: PlainRecord) => {
    readonly object: string
    readonly args: Arguments
    readonly question: string
  }
}

/** A list with its filter, or why it cannot be read. */
interface ListingTableProps {
  readonly consumer: Consumer
  readonly listing: Listing
  readonly what: string
  readonly keyOf: (record: PlainRecord) => string
  readonly textOf: (record: PlainRecord) => string
  readonly columns: readonly Column<PlainRecord>[]
  /** The last cell of each row; it is empty if the control may not be run. */
  readonly action: RowAction
}

export function ListingTable({
  consumer,
  listing,
  what,
  keyOf,
  textOf,
  columns,
  action: { label, control, of },
}: ListingTableProps) {
  const [text, setText] = useState('')
  const { records, refusal } = listing
  if (refusal !== undefined) return <Unreadable what={what} refusal={refusal} />
  if (records === undefined) return <Loading what={`the ${what}`} />
  const found = records.filter((record) => textOf(record).toLowerCase().includes(text.toLowerCase()))
  const does: Column<PlainRecord> = {
    cellLook: 'does',
    cell: (record) =>
      listing.controls.has(control) ? (
        <Action consumer={consumer} label={label} control={control} {...of(record)} onDone={listing.reload} />
      ) : null,
  }
  return (
    <section class="card access" aria-label={what}>
      <div class="head">
        <h2>{what.charAt(0).toUpperCase() + what.slice(1)}</h2>
        <p class="note">
          {formatCount(found.length)}
          {text === '' ? '' : ` of ${formatCount(records.length)}`}
        </p>
        <Search label={`Search ${what}`} text={text} onText={setText} />
      </div>
      <PagedTable
        look="stacked"
        rows={found}
        keyOf={keyOf}
        columns={[...columns, does]}
        page={PAGE}
        empty={records.length === 0 ? <p class="empty">There are no {what} yet.</p> : null}
      />
    </section>
  )
}
