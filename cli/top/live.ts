/** `cinnabar top` on a terminal: draws when something has changed, a few times a second, until a key or signal ends it. */
import type { ClientClock, ClientTimer } from '../../client/clock.ts'
import type { Colors } from '../terminal.ts'
import { arrange } from './arrange.ts'
import type { Feed } from './feed.ts'
import type { HostSummary } from './host.ts'
import { type Key, KeyReader } from './keys.ts'
import { type Picture, render, tableHeight } from './render.ts'
import type { Row } from './rows.ts'
import { Painter, type Screen } from './screen.ts'
import { FIRST_VIEW, filterOf, press, type View } from './view.ts'

export interface LiveParts {
  readonly screen: Screen
  readonly colors: Colors
  readonly clock: ClientClock
  readonly url: string
  readonly asked: readonly string[]
}

/** What is shown while it is held still. */
interface Moment {
  readonly rows: readonly Row[]
  readonly host: HostSummary
  readonly nowMs: number
}

/** Between two pictures where values change; where a key was pressed; and how often ages are looked at. */
const DRAW_MS = 250
const KEY_MS = 20
const TICK_MS = 1_000
/** A terminal sends a whole sequence at once, but a network may cut it. */
const ESCAPE_MS = 100

export class Live {
  readonly #parts: LiveParts
  readonly #feed: Feed
  readonly #painter: Painter
  readonly #keys = new KeyReader()
  #view: View = FIRST_VIEW
  #held: Moment | undefined
  #arranged: readonly Row[] = []
  #draw: { readonly timer: ClientTimer; readonly dueMs: number } | undefined
  #tick: ClientTimer | undefined
  #escape: ClientTimer | undefined
  #drawnMs = Number.NEGATIVE_INFINITY
  #quit: (() => void) | undefined

  constructor(feed: Feed, parts: LiveParts) {
    this.#feed = feed
    this.#parts = parts
    this.#painter = new Painter((text) => parts.screen.write(text))
  }

  /** Something new is there. */
  changed(): void {
    if (this.#quit) this.#drawIn(this.#drawnMs + DRAW_MS - this.#parts.clock.monotonicMs())
  }

  /** Settles when it was quit, with the terminal as it was. */
  async run(): Promise<void> {
    const { screen, clock } = this.#parts
    const ended = new Promise<void>((resolve) => {
      this.#quit = resolve
    })
    const close = screen.open({
      keys: (bytes) => this.#typed(this.#keys.read(bytes)),
      resized: () => this.#anew(),
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
        this.#anew()
        continue
      }
      const page = { rows: this.#arranged.length, height: tableHeight(this.#parts.screen.size()) }
      const view = press(this.#view, key, page)
      if (view === 'quit') {
        this.quit()
        return
      }
      if (view.isPaused !== this.#view.isPaused) this.#held = view.isPaused ? this.#moment() : undefined
      this.#view = view
    }
    if (keys.length > 0) this.#drawIn(KEY_MS)
  }

  #anew(): void {
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
    const { screen, colors, clock } = this.#parts
    this.#drawnMs = clock.monotonicMs()
    const size = screen.size()
    this.#painter.draw(render(this.#picture(tableHeight(size)), size, colors))
  }

  #picture(height: number): Picture {
    const moment = this.#held ?? this.#moment()
    const { sort, isReversed } = this.#view
    this.#arranged = arrange(moment.rows, { sort, isReversed, filter: filterOf(this.#view) })
    const top = Math.min(this.#view.top, Math.max(0, this.#arranged.length - height))
    return {
      view: { ...this.#view, top },
      host: moment.host,
      url: this.#parts.url,
      rows: this.#arranged,
      total: moment.rows.length,
      isFull: this.#feed.rows.isFull,
      unitOf: (metric) => this.#feed.units.of(metric),
      nowMs: moment.nowMs,
      message: this.#feed.message(),
      asked: this.#parts.asked,
    }
  }

  #moment(): Moment {
    const { rows, host } = this.#feed
    return { rows: [...rows.values()], host: host.summary(), nowMs: this.#parts.clock.monotonicMs() }
  }
}
