/** What the lists of access have in common: a filter, pages, forms to fold out, and how users are named. */
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { PlainRecord } from '../../client/browser.ts'
import { formatCount } from '../units.ts'
import type { Texts } from './control-parameters.ts'
import type { Listing } from './listing.ts'

const PAGE = 200
const BUILT_IN_ROLES = ['admin', 'operator', 'consumer']

/** A list with its filter, or why it cannot be read. */
interface ListProps {
  readonly listing: Listing
  readonly what: string
  readonly heads: readonly string[]
  readonly searched: (record: PlainRecord) => string
  readonly row: (record: PlainRecord) => ComponentChildren
}

export function AccessList({ listing, what, heads, searched, row }: ListProps) {
  const [text, setText] = useState('')
  const [pages, setPages] = useState(1)
  const { records, reason } = listing
  if (reason !== '') {
    return (
      <p class="empty">
        Your role may not read the {what}. <small>{reason}</small>
      </p>
    )
  }
  if (records === undefined) return null
  const found = records.filter((record) => searched(record).toLowerCase().includes(text.toLowerCase()))
  const shown = found.slice(0, pages * PAGE)
  return (
    <section class="card access" aria-label={what}>
      <div class="head">
        <h2>{what.charAt(0).toUpperCase() + what.slice(1)}</h2>
        <p class="note">
          {formatCount(found.length)}
          {text === '' ? '' : ` of ${formatCount(records.length)}`}
        </p>
        <input
          type="search"
          class="search"
          placeholder="Part of a name"
          aria-label={`Search ${what}`}
          value={text}
          onInput={({ currentTarget }) => setText(currentTarget.value)}
        />
      </div>
      {records.length === 0 ? <p class="empty">There are no {what} yet.</p> : null}
      {found.length === 0 ? null : (
        <table class="stacked">
          <thead>
            <tr>{heads.map((head, index) => (head === '' ? <td key={index} /> : <th key={index}>{head}</th>))}</tr>
          </thead>
          <tbody>{shown.map(row)}</tbody>
        </table>
      )}
      {shown.length < found.length ? (
        <div class="actions">
          <button type="button" onClick={() => setPages(pages + 1)}>
            Show {formatCount(Math.min(PAGE, found.length - shown.length))} more
          </button>
        </div>
      ) : null}
    </section>
  )
}

export function Fold({ title, children }: { readonly title: string; readonly children: ComponentChildren }) {
  return (
    <details class="card">
      <summary>{title}</summary>
      {children}
    </details>
  )
}

export function textOf(record: PlainRecord, field: string): string {
  const value = record[field]
  return typeof value === 'string' ? value : ''
}

/** As people write it: without the tenant if that is `default`. */
export function userOf(record: PlainRecord): string {
  const [tenant, user] = [textOf(record, 'tenant'), textOf(record, 'user')]
  return tenant === 'default' ? user : `${tenant}/${user}`
}

/** The user that the fields of a form name. */
export function named({ tenant = '', user = '' }: Texts): string {
  return userOf({ tenant: tenant === '' ? 'default' : tenant, user })
}

export function offersOf(users: readonly PlainRecord[] | undefined, rules: readonly PlainRecord[] | undefined) {
  const distinct = (list: readonly string[]): string[] => [...new Set(list)].sort()
  const [known, ruled] = [users ?? [], rules ?? []]
  return {
    user: distinct(known.map((one) => textOf(one, 'user'))),
    tenant: distinct(known.map((one) => textOf(one, 'tenant'))),
    role: distinct([...BUILT_IN_ROLES, ...[...known, ...ruled].map((one) => textOf(one, 'role'))]),
  }
}
