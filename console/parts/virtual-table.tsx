/** A table of any length, of which only the rows on screen are in the page; its cells are usually those of the columns in table.tsx. */
import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'

/** Pixels; the style sheet has the same. */
const ROW = 34
/** Rows beyond both edges, so that a short movement shows no empty ones. */
const BEYOND = 6

interface VirtualTableProps<T> {
  readonly label: string
  readonly rows: readonly T[]
  readonly keyOf: (row: T) => string
  /** The cells of the head. */
  readonly head: ComponentChildren
  /** The cells of a row. */
  readonly cells: (row: T) => ComponentChildren
  /** Pixels. */
  readonly height?: number
  /** Classes of the table: `two-lines` lays the cells of a row out in two lines on a narrow screen. */
  readonly look?: string
}

export function VirtualTable<T>({ label, rows, keyOf, head, cells, height = ROW, look }: VirtualTableProps<T>) {
  const place = useRef<HTMLDivElement>(null)
  const [first, setFirst] = useState(0)
  const [shown, setShown] = useState(20)
  useEffect(() => {
    const element = place.current
    if (element === null) return undefined
    const fit = new ResizeObserver(() => setShown(Math.ceil(element.clientHeight / height)))
    fit.observe(element)
    return () => fit.disconnect()
  }, [height])
  const from = Math.max(0, Math.min(first, rows.length - shown) - BEYOND)
  const to = Math.min(rows.length, Math.max(first, from) + shown + BEYOND)
  return (
    <section
      class="virtual"
      ref={place}
      aria-label={`${label}: list`}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard.
      tabIndex={0}
      onScroll={({ currentTarget }) => setFirst(Math.floor(currentTarget.scrollTop / height))}
    >
      <table class={look} aria-rowcount={rows.length + 1}>
        <thead>
          <tr aria-rowindex={1}>{head}</tr>
        </thead>
        <tbody>
          {from > 0 ? <tr class="space" style={{ height: `${from * height}px` }} /> : null}
          {rows.slice(from, to).map((row, index) => (
            <tr key={keyOf(row)} aria-rowindex={from + index + 2} style={{ height: `${height}px` }}>
              {cells(row)}
            </tr>
          ))}
          {to < rows.length ? <tr class="space" style={{ height: `${(rows.length - to) * height}px` }} /> : null}
        </tbody>
      </table>
    </section>
  )
}
