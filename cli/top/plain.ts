/** `cinnabar top` into a pipe: a table or JSON lines after the first second, and then at intervals. */
import type { ClientClock } from '../../client/clock.ts'
import type { Terminal } from '../terminal.ts'
import { arrange } from './arrange.ts'
import type { Feed } from './feed.ts'
import { renderPlain, toJsonLine } from './render.ts'
import { FIRST_VIEW } from './view.ts'

export interface PlainParts {
  readonly terminal: Pick<Terminal, 'print' | 'colors' | 'onInterrupt'>
  readonly clock: ClientClock
  readonly url: string
  readonly asked: readonly string[]
  readonly columns: number
  readonly isJson: boolean
  readonly intervalMs: number
  /** How many tables. */
  readonly count: number
  /** Settles when nothing comes any more. */
  readonly over: Promise<unknown>
}

const FIRST_MS = 1_000

/** Settles after the last table or Ctrl-C. */
export async function printPlain(feed: Feed, parts: PlainParts): Promise<void> {
  const { terminal, clock, isJson, intervalMs, count, over } = parts
  let isOver = false
  let wake = () => {}
  const end = () => {
    isOver = true
    wake()
  }
  const undo = terminal.onInterrupt(end)
  void over.then(end)
  try {
    for (let printed = 0; printed < count; printed++) {
      await new Promise<void>((resolve) => {
        const timer = clock.setTimeout(resolve, printed === 0 ? FIRST_MS : intervalMs)
        wake = () => {
          timer.cancel()
          resolve()
        }
      })
      if (isOver) return
      feed.rows.expire(clock.monotonicMs())
      const text = isJson ? jsonLines(feed) : `${printed === 0 ? '' : '\n'}${table(feed, parts)}`
      if (text !== '') await terminal.print(text)
    }
  } finally {
    undo()
  }
}

function jsonLines(feed: Feed): string {
  return rowsOf(feed)
    .filter(({ goneMs }) => goneMs === undefined)
    .map((row) => toJsonLine(row, feed.units.of(row.metric)))
    .join('\n')
}

function table(feed: Feed, { terminal, clock, url, asked, columns }: PlainParts): string {
  const { rows, host, units } = feed
  const nowMs = clock.monotonicMs()
  const picture = {
    view: FIRST_VIEW,
    host: host.summary(),
    url,
    rows: rowsOf(feed),
    total: rows.size,
    isFull: rows.isFull,
    unitOf: (metric: string) => units.of(metric),
    nowMs,
    message: '',
    asked,
  }
  return renderPlain(picture, columns, terminal.colors)
}

function rowsOf({ rows }: Feed) {
  return arrange(rows.values(), FIRST_VIEW)
}
