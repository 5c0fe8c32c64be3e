/** The settings of the view that the user can change, and what each key does. */
import { type RowOrder, type SortKey, sortKeys } from './rows.ts'
import type { Key } from './screen.ts'

export interface TopView extends RowOrder {
  /** The filter that is being typed; it already applies. */
  readonly typed: string | undefined
  /** The index of the first visible row. */
  readonly top: number
  readonly isPaused: boolean
  readonly isHelp: boolean
}

/** The number of rows, and how many of them fit on the screen. */
export interface Page {
  readonly rows: number
  readonly height: number
}

export const FIRST_VIEW: TopView = {
  sort: 'metric',
  isReversed: false,
  filter: '',
  typed: undefined,
  top: 0,
  isPaused: false,
  isHelp: false,
}

export const HELP: readonly (readonly [keys: string, what: string])[] = [
  ['1 2 3 4', 'sort by metric, host, value, age'],
  ['left right, < >', 'sort by the next column'],
  ['r', 'reverse the order'],
  ['/', 'filter by text or by a pattern with *; Enter applies, Escape cancels'],
  ['up down, k j', 'one row'],
  ['page up, page down', 'one page (Ctrl-B, Ctrl-F)'],
  ['home end, g G', 'first or last row'],
  ['space', 'pause and resume'],
  ['Ctrl-L', 'redraw the screen'],
  ['h ?', 'show this help'],
  ['q, Ctrl-C', 'quit'],
]

const MAX_FILTER = 200

/** Returns the view after a key, or 'quit'. `redraw` is handled by the display. */
export function press(view: TopView, key: Key, page: Page): TopView | 'quit' {
  if (key === 'interrupt') return 'quit'
  if (view.typed !== undefined) return typeFilter(view, view.typed, key)
  // What the help covers must not change.
  if (view.isHelp) return key === 'q' ? 'quit' : { ...view, isHelp: false }
  const number = /^[1-4]$/.test(key) ? Number(key) - 1 : undefined
  if (number !== undefined) return sortBy(view, sortKeys[number]!)
  const last = Math.max(0, page.rows - page.height)
  const scrolled = (by: number) => ({ ...view, top: Math.min(last, Math.max(0, Math.min(view.top, last) + by)) })
  switch (key) {
    case 'q':
      return 'quit'
    case 'h':
    case '?':
      return { ...view, isHelp: true }
    case '/':
      return { ...view, typed: '', top: 0 }
    case 'escape':
      return { ...view, filter: '', top: 0 }
    case 'r':
      return { ...view, isReversed: !view.isReversed }
    case ' ':
      return { ...view, isPaused: !view.isPaused }
    case '>':
    case 'right':
      return neighbour(view, 1)
    case '<':
    case 'left':
      return neighbour(view, -1)
    case 'down':
    case 'j':
      return scrolled(1)
    case 'up':
    case 'k':
      return scrolled(-1)
    case 'page-down':
      return scrolled(page.height)
    case 'page-up':
      return scrolled(-page.height)
    case 'end':
    case 'G':
      return { ...view, top: last }
    case 'home':
    case 'g':
      return { ...view, top: 0 }
    default:
      return view
  }
}

/** The filter that applies. */
export function filterOf({ typed, filter }: TopView): string {
  return typed ?? filter
}

function typeFilter(view: TopView, typed: string, key: Key): TopView {
  switch (key) {
    case 'enter':
      return { ...view, filter: typed, typed: undefined }
    case 'escape':
      return { ...view, typed: undefined, top: 0 }
    case 'backspace':
      return { ...view, typed: [...typed].slice(0, -1).join(''), top: 0 }
    case 'clear':
      return { ...view, typed: '', top: 0 }
    default:
      return [...key].length > 1 || typed.length >= MAX_FILTER ? view : { ...view, typed: typed + key, top: 0 }
  }
}

function neighbour(view: TopView, by: number): TopView {
  return sortBy(view, sortKeys[(sortKeys.indexOf(view.sort) + by + sortKeys.length) % sortKeys.length]!)
}

function sortBy(view: TopView, sort: SortKey): TopView {
  return sort === view.sort ? view : { ...view, sort, isReversed: false, top: 0 }
}
