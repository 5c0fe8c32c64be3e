/**
 * What all charts of a page share: the range of time, whether they stand still, and the time in which they may draw, so that many
 * charts never hold up the page.
 */
import { type Signal, signal } from '@preact/signals'
import type { ServerClock } from '../series-watch.ts'

/** The time goes on, also where no value comes. */
const TICK_MS = 1_000

/** Seconds since 1970. */
export interface TimeRange {
  readonly from: number
  readonly to: number
}

/** A chart of the page, for which its time comes after `request`. */
interface Drawing {
  /** Returns for how long it needs not be drawn again, in milliseconds. */
  readonly draw: () => number
  isOnScreen: boolean
  isDue: boolean
  notBeforeMs: number
}

export interface DrawingTurn {
  /** Has it drawn soon, or with the next frame. */
  request(isAtOnce?: boolean): void
  /** What is not on screen is not drawn. */
  seen(isOnScreen: boolean): void
  remove(): void
}

export class ChartPage {
  readonly clock: ServerClock
  /** How much time the charts show while they follow it. */
  readonly minutes: Signal<number>
  readonly isPaused = signal(false)
  /** The range that was chosen; undefined while the charts follow the time. */
  readonly range = signal<TimeRange | undefined>(undefined)
  readonly #drawings = new Set<Drawing>()
  #frame = 0
  #timer = 0
  #pausedAt = 0

  constructor(minutes: number, clock: ServerClock) {
    this.clock = clock
    this.minutes = signal(minutes)
  }

  /** Begins to draw. Returns the function that ends it. */
  begin(): () => void {
    const all = (): void => {
      for (const drawing of this.#drawings) drawing.isDue = true
      this.#plan()
    }
    this.#timer = window.setInterval(() => {
      if (!this.isPaused.value) all()
    }, TICK_MS)
    const theme = matchMedia('(prefers-color-scheme: dark)')
    theme.addEventListener('change', all)
    return () => {
      clearInterval(this.#timer)
      cancelAnimationFrame(this.#frame)
      this.#frame = 0
      theme.removeEventListener('change', all)
    }
  }

  /** Adds a chart. */
  add(draw: Drawing['draw']): DrawingTurn {
    const drawing: Drawing = { draw, isOnScreen: true, isDue: false, notBeforeMs: Number.NEGATIVE_INFINITY }
    this.#drawings.add(drawing)
    return {
      request: (isAtOnce = false) => {
        drawing.isDue = true
        if (isAtOnce) drawing.notBeforeMs = Number.NEGATIVE_INFINITY
        this.#plan()
      },
      seen: (isOnScreen) => {
        drawing.isOnScreen = isOnScreen
        if (isOnScreen) this.#plan()
      },
      remove: () => void this.#drawings.delete(drawing),
    }
  }

  /** The range that is shown now. It moves on in steps of a tenth, so that nothing jumps. */
  shown(): TimeRange {
    const chosen = this.range.value
    if (chosen !== undefined) return chosen
    const now = this.isPaused.value ? this.#pausedAt : this.now()
    const seconds = this.minutes.value * 60
    const step = seconds / 10
    const to = Math.ceil(now / step) * step
    return { from: to - seconds, to }
  }

  /** The time of the server, seconds since 1970. */
  now(): number {
    return this.clock.nowMs / 1000
  }

  pause(isPaused: boolean): void {
    this.#pausedAt = this.now()
    this.isPaused.value = isPaused
    if (!isPaused) this.range.value = undefined
  }

  /** Shows less time, or more, around a moment. */
  zoom(factor: number, around: number): void {
    const { from, to } = this.shown()
    const seconds = Math.max(2, Math.min(86_400, (to - from) * factor))
    const share = (around - from) / (to - from)
    this.range.value = { from: around - seconds * share, to: around + seconds * (1 - share) }
  }

  #plan(): void {
    this.#frame ||= requestAnimationFrame(() => this.#draw())
  }

  #draw(): void {
    this.#frame = 0
    let [isDrawn, isLeft] = [false, false]
    for (const drawing of this.#drawings) {
      if (!drawing.isDue || !drawing.isOnScreen) continue
      const now = performance.now()
      if (now < drawing.notBeforeMs || isDrawn) {
        isLeft = true
        continue
      }
      // One in a frame, since painting takes longer than drawing: the others wait for the next one.
      isDrawn = true
      drawing.isDue = false
      drawing.notBeforeMs = now + drawing.draw()
      // The next frame begins with those that have not been drawn.
      this.#drawings.delete(drawing)
      this.#drawings.add(drawing)
    }
    if (isLeft) this.#plan()
  }
}
