/** The table of the console as it stands in the page, without a browser. */
import { type ComponentChildren, h, isValidElement } from 'preact'
import { describe, expect, it } from 'vitest'
import { type Column, Table } from '../../../console/parts/table.tsx'

interface Host {
  readonly name: string
  readonly metrics: number
}

const columns: readonly Column<Host>[] = [
  { title: 'Host', cellLook: 'code', cell: ({ name }) => h('bdi', null, name) },
  { title: 'Metrics', look: 'number wide', cell: ({ metrics }) => metrics },
  { cellLook: 'does', cell: () => null },
]
const rows: readonly Host[] = [
  { name: 'alpha', metrics: 3 },
  { name: 'beta', metrics: 0 },
]

/** What components without hooks give: elements with their class, `scope` and content. */
function shown(node: ComponentChildren): string {
  if (Array.isArray(node)) return node.map(shown).join('')
  if (!isValidElement(node)) return node === null || node === undefined ? '' : String(node)
  const { type, props } = node
  if (typeof type !== 'string') return shown((type as (props: unknown) => ComponentChildren)(props))
  const attributes = Object.entries(props).filter(([name, value]) => name !== 'children' && value !== undefined)
  return `<${[type, ...attributes.map(([name, value]) => `${name}="${value}"`)].join(' ')}>${shown(props.children)}</${type}>`
}

const keyOf = ({ name }: Host) => name

describe('Table', () => {
  it('has a head with the looks of the columns, and cells with the looks of both', () => {
    expect(shown(h(Table<Host>, { rows, keyOf, columns, look: 'stacked' }))).toBe(
      '<table class="stacked"><thead><tr><th>Host</th><th class="number wide">Metrics</th><td></td></tr></thead>' +
        '<tbody><tr><td class="code"><bdi>alpha</bdi></td><td class="number wide">3</td><td class="does"></td></tr>' +
        '<tr><td class="code"><bdi>beta</bdi></td><td class="number wide">0</td><td class="does"></td></tr></tbody></table>',
    )
  })

  it('has no head if no column has a title, and one for a row where a column is that', () => {
    const untitled: readonly Column<Host>[] = [
      { isRowHead: true, cell: keyOf },
      { look: 'number', cellLook: 'code', cell: ({ metrics }) => metrics },
    ]
    expect(shown(h(Table<Host>, { rows: rows.slice(1), keyOf, columns: untitled }))).toBe(
      '<table><tbody><tr><th scope="row">beta</th><td class="code number">0</td></tr></tbody></table>',
    )
  })

  it('without rows is the text in its place, or nothing, or its head', () => {
    const none = { rows: [], keyOf, columns: columns.slice(0, 1) }
    expect(shown(h(Table<Host>, { ...none, empty: 'No host.' }))).toBe('No host.')
    expect(shown(h(Table<Host>, { ...none, empty: null }))).toBe('')
    expect(shown(h(Table<Host>, none))).toBe('<table><thead><tr><th>Host</th></tr></thead><tbody></tbody></table>')
  })
})
