/** The two forms of `cinnabar top`: a screen that is redrawn on changes, and tables or JSON printed at intervals. */
import type { ClientClock, ClientTimer } from '../../client/clock.ts'
import type { Terminal } from '../terminal.ts'
import type { TopFeed } from './feed.ts'
import type { HostSummary } from './host.ts'
import { type Picture, render, renderPlain, tableHeight, toJsonLine } from './render.ts'
import { sortRows, type TopRow } from './rows.ts'
import { type Key, KeyReader, Painter, type Screen } from './screen.ts'
import { FIRST_VIEW, filterOf, press, type TopView } from './view.ts'

interface DisplayOptions {
  readonly terminal: Pick<Terminal, 'print' | 'program' | 'colors' | 'onInterrupt'>
  readonly clock: ClientClock
  readonly url: string
  readonly patterns: readonly string[]
}

interface LiveDisplayOptions extends DisplayOptions {
  readonly screen: Screen
}

interface TablesOptions extends DisplayOptions {
  readonly columns: number
  readonly isJson: boolean
  readonly intervalMs: number
  /** The number of tables. */
  readonly count: number
  /** Resolves when no more values can arrive. */
  readonly over: Promise<unknown>
}

/** The content of the screen while it is paused. */
interface Snapshot {
  readonly rows: readonly TopRow[]
  readonly host: HostSummary
  readonly nowMs: number
}

/** The delay of drawing after changed values and after a key, and the interval at which ages are updated. */
const DRAW_MS = 250
const KEY_MS = 20
const TICK_MS = 1_000
/** A terminal sends a sequence at once, but a network may split it. */
const ESCAPE_MS = 100
const FIRST_TABLE_MS = 1_000

export class LiveDisplay {
  readonly #parts: LiveDisplayOptions
  readonly #feed: TopFeed
  readonly #painter: Painter
  readonly #keys = new KeyReader()
  #view: TopView = FIRST_VIEW
  #paused: Snapshot | undefined
  #sorted: readonly TopRow[] = []
  #draw: { readonly timer: ClientTimer; readonly dueMs: number } | undefined
  #tick: ClientTimer | undefined
  #escape: ClientTimer | undefined
  #drawnMs = Number.NEGATIVE_INFINITY
  #quit: (() => void) | undefined

  constructor(feed: TopFeed, parts: LiveDisplayOptions) {
    this.#feed = feed
    this.#parts = parts
    this.#painter = new Painter((text) => parts.screen.write(text))
  }

  /** Draws soon. */
  changed(): void {
    if (this.#quit) this.#drawIn(this.#drawnMs + DRAW_MS - this.#parts.clock.monotonicMs())
  }

  /** Resolves when the user has quit and the terminal is restored. */
  async run(): Promise<void> {
    const { screen, clock } = this.#parts
    const ended = new Promise<void>((resolve) => {
      this.#quit = resolve
    })
    const close = screen.open({
      keys: (bytes) => this.#typed(this.#keys.read(bytes)),
      resized: () => this.#redraw(),
      ended: () => this.quit(),
    })
    const tick = () => {
      this.#tick = clock.setTimeout(tick, TICK_MS)
      this.#feed.rows.expire(clock.monotonicMs())
      this.changed()
    }
    try {
      this.#drawNow()
      tick()
      await ended
    } finally {
      this.#quit = undefined
      for (const timer of [this.#draw?.timer, this.#tick, this.#escape]) timer?.cancel()
      close()
    }
  }

  quit(): void {
    this.#quit?.()
  }

  #typed(keys: readonly Key[]): void {
    this.#escape?.cancel()
    if (this.#keys.isPending) {
      this.#escape = this.#parts.clock.setTimeout(() => this.#typed(this.#keys.settle()), ESCAPE_MS)
    }
    for (const key of keys) {
      if (key === 'redraw') {
        this.#redraw()
        continue
      }
      const page = { rows: this.#sorted.length, height: tableHeight(this.#parts.screen.size()) }
      const view = press(this.#view, key, page)
      if (view === 'quit') {
        this.quit()
        return
      }
      if (view.isPaused !== this.#view.isPaused) this.#paused = view.isPaused ? this.#snapshot() : undefined
      this.#view = view
    }
    if (keys.length > 0) this.#drawIn(KEY_MS)
  }

  #redraw(): void {
    this.#painter.forget()
    this.#drawIn(KEY_MS)
  }

  #drawIn(ms: number): void {
    const { clock } = this.#parts
    const dueMs = clock.monotonicMs() + Math.max(0, ms)
    if (this.#draw && this.#draw.dueMs <= dueMs) return
    this.#draw?.timer.cancel()
    this.#draw = { dueMs, timer: clock.setTimeout(() => this.#drawNow(), Math.max(0, ms)) }
  }

  #drawNow(): void {
    this.#draw = undefined
    const { screen, terminal, clock } = this.#parts
    this.#drawnMs = clock.monotonicMs()
    const size = screen.size()
    this.#painter.draw(render(this.#picture(tableHeight(size)), size, terminal.colors))
  }

  #picture(height: number): Picture {
    const snapshot = this.#paused ?? this.#snapshot()
    const { sort, isReversed } = this.#view
    this.#sorted = sortRows(snapshot.rows, { sort, isReversed, filter: filterOf(this.#view) })
    const top = Math.min(this.#view.top, Math.max(0, this.#sorted.length - height))
    return {
      view: { ...this.#view, top },
      host: snapshot.host,
      url: this.#parts.url,
      rows: this.#sorted,
      total: snapshot.rows.length,
      isFull: this.#feed.rows.isFull,
      unitOf: (metric) => this.#feed.units.of(metric),
      nowMs: snapshot.nowMs,
      message: this.#feed.message(),
      patterns: this.#parts.patterns,
      program: this.#parts.terminal.program,
    }
  }

  #snapshot(): Snapshot {
    const { rows, host } = this.#feed
    return { rows: [...rows.values()], host: host.summary(), nowMs: this.#parts.clock.monotonicMs() }
  }
}

/** Prints the first table after a second. Resolves after the last table or Ctrl-C. */
export async function printTables(feed: TopFeed, parts: TablesOptions): Promise<void> {
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
        const timer = clock.setTimeout(resolve, printed === 0 ? FIRST_TABLE_MS : intervalMs)
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

function jsonLines(feed: TopFeed): string {
  return rowsOf(feed)
    .filter(({ goneMs }) => goneMs === undefined)
    .map((row) => toJsonLine(row, feed.units.of(row.metric)))
    .join('\n')
}

function table(feed: TopFeed, { terminal, clock, url, patterns, columns }: TablesOptions): string {
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
    patterns,
    program: terminal.program,
  }
  return renderPlain(picture, columns, terminal.colors)
}

function rowsOf({ rows }: TopFeed) {
  return sortRows(rows.values(), FIRST_VIEW)
}
