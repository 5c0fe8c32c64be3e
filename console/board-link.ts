/**
 * The link of a board: the board as its URL has it, and a token that reads its metrics and does nothing else. The token is in the
 * fragment of the URL, which browsers send to nobody.
 */
import { boardArgs, type ChartSpec, chartsOf } from './board.ts'
import { linkTo } from './route.ts'

/** The view that needs no sign-in. */
export const SHARED = 'shared'
/** As many lines as a scope may have. */
const MAX_LINES = 64
const MAX_NAME = 64
/** Units and kinds of the metrics, and their values until now. The server shows such a token those of its metrics alone. */
const LISTS = ['producer.metrics', 'producer.recent', 'producer.history.select']

/** The lines of the scope; undefined if no scope can name these metrics. */
export function scopeOf(charts: readonly ChartSpec[]): string | undefined {
  const metrics = new Set(charts.flatMap(({ lines }) => lines.map(({ metric }) => metric)))
  const lines = [...metrics, ...LISTS].map((metric) => `WATCH ${metric}`)
  // An expression may read anything.
  if (charts.some(({ expr }) => expr !== undefined)) return undefined
  const canBeNamed = [...metrics].every((metric) => /^[^\s;]+$/.test(metric))
  return canBeNamed && lines.length <= MAX_LINES ? lines.join('\n') : undefined
}

/** What the list of tokens calls it. */
export function tokenNameOf(board: string): string {
  return [...`board ${board}`.trim()].slice(0, MAX_NAME).join('')
}

/** `page`: the address of the console. */
export function boardLink(page: string, charts: readonly ChartSpec[], name: string, token: string): string {
  const [address] = page.split('#', 1)
  return `${address}${linkTo(SHARED, '', [['token', token], ...boardArgs(charts, name)])}`
}

export interface SharedBoard {
  readonly token: string
  readonly name: string
  readonly charts: readonly ChartSpec[]
}

export function sharedBoardOf(args: URLSearchParams): SharedBoard {
  return { token: args.get('token') ?? '', name: args.get('name') ?? '', charts: chartsOf(args) }
}
