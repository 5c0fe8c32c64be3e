/** What the one who looks has chosen, and what each key does to it. */
import { type Arrangement, type Sort, sorts } from './arrange.ts'
import type { Key } from './keys.ts'

export interface View extends Arrangement {
  /** The filter that is being typed; it applies while it is typed. */
  readonly typed: string | undefined
  /** The row at the top. */
  readonly top: number
  readonly isPaused: boolean
  readonly isHelp: boolean
}

/** How many rows there are, and how many of them fit the screen. */
export interface Page {
  readonly rows: number
  readonly height: number
}

export const FIRST_VIEW: View = {
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
  ['left right, < >', 'sort by the column beside'],
  ['r', 'the other way round'],
  ['/', 'show what contains a text, or is like a pattern with *; Enter keeps it, Escape undoes it'],
  ['up down, k j', 'one row'],
  ['page up, page down', 'one page (Ctrl-B, Ctrl-F)'],
  ['home end, g G', 'to the first, to the last row'],
  ['space', 'hold still, and go on'],
  ['Ctrl-L', 'draw the screen anew'],
  ['h ?', 'this help'],
  ['q, Ctrl-C', 'quit'],
]

const MAX_FILTER = 200

/** The view behind a key, or that it is to end. `redraw` is not for here. */
export function press(view: View, key: Key, page: Page): View | 'quit' {
  if (key === 'interrupt') return 'quit'
  if (view.typed !== undefined) return type(view, view.typed, key)
  // What the help hides must not change unseen.
  if (view.isHelp) return key === 'q' ? 'quit' : { ...view, isHelp: false }
  const number = /^[1-4]$/.test(key) ? Number(key) - 1 : undefined
  if (number !== undefined) return sortBy(view, sorts[number]!)
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
      return beside(view, 1)
    case '<':
    case 'left':
      return beside(view, -1)
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
export function filterOf({ typed, filter }: View): string {
  return typed ?? filter
}

function type(view: View, typed: string, key: Key): View {
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

function beside(view: View, by: number): View {
  return sortBy(view, sorts[(sorts.indexOf(view.sort) + by + sorts.length) % sorts.length]!)
}

function sortBy(view: View, sort: Sort): View {
  return sort === view.sort ? view : { ...view, sort, isReversed: false, top: 0 }
}
