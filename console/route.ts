/** The view that is shown, and its arguments, as the fragment of the URL has them: `#/metrics/gmetric.load_one?host=web1`. */
import { type ReadonlySignal, signal } from '@preact/signals'
import type { Consumer } from '../client/browser.ts'
import type { Fleet } from './fleet.ts'
import type { WaitingApprovals } from './waiting-approvals.ts'

export interface Route {
  readonly view: string
  /** The object that the view shows; empty if it shows a list. */
  readonly object: string
  readonly args: URLSearchParams
}

/** What every view is given. */
export interface ViewProps {
  readonly consumer: Consumer
  readonly fleet: Fleet
  readonly approvals: WaitingApprovals
  readonly router: Router
  /** Who has signed in: `name`, or `tenant/name`. */
  readonly identity: string
}

export class Router {
  readonly #window: Window
  readonly #route = signal<Route>(parseRoute(''))

  constructor(window: Window) {
    this.#window = window
    const follow = (): void => {
      this.#route.value = parseRoute(window.location.hash)
    }
    window.addEventListener('hashchange', follow)
    follow()
  }

  get route(): ReadonlySignal<Route> {
    return this.#route
  }

  /** Changes the URL without a new entry in the history, as while somebody types. */
  replace(to: string): void {
    this.#window.history.replaceState(null, '', to)
    this.#route.value = parseRoute(to)
  }
}

export function parseRoute(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?', 2)
  const [view = '', ...rest] = path.split('/').map(decoded)
  return { view: view === '' ? 'overview' : view, object: rest.join('/'), args: new URLSearchParams(query) }
}

export function linkTo(view: string, object = '', args: Readonly<Record<string, string>> | string[][] = {}): string {
  const query = new URLSearchParams(args as string[][]).toString()
  const path = object === '' ? view : `${view}/${encodeURIComponent(object)}`
  return `#/${path}${query === '' ? '' : `?${query}`}`
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
