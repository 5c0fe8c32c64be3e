/**
 * What all charts of a page share: the range of time, whether they stand still, whether the server remembers more than they have, and
 * the time in which they may draw, so that many charts never hold up the page.
 */
import { type ReadonlySignal, signal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import type { Consumer } from '../../client/browser.ts'
import { type ChartTime, LEAST_SECONDS, linkAt, mostSeconds, timeArgs, timeOfUrl } from '../chart-time.ts'
import { HistoryReads, hasHistory } from '../line-history.ts'
import type { Router } from '../route.ts'
import type { ServerClock } from '../series-watch.ts'

/** The time goes on, also where no value comes. */
const TICK_MS = 1_000
/** Steps in which a range moves on. Of a long one each is a time that nobody waits for: it would stay empty. Both are whole columns. */
const STEPS = 10
const STEPS_OF_LONG = 80
const LONG_SECONDS = 3_600
/** A server without a history is asked for it again, later and later. */
const FIRST_PAUSE_MS = 1_000
const LONGEST_PAUSE_MS = 60_000

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
  /** Whether the server has a history; undefined until it has answered. */
  readonly isRemembered = signal<boolean | undefined>(undefined)
  /** What all charts read of it. */
  readonly reads = new HistoryReads()
  readonly #time = signal<ChartTime>({ seconds: 0, at: undefined })
  readonly #isPaused = signal(false)
  readonly #zoomed = signal<TimeRange | undefined>(undefined)
  readonly #shown = signal<TimeRange>({ from: 0, to: 1 })
  readonly #drawings = new Set<Drawing>()
  #frame = 0
  #timer = 0
  #pausedAt = 0

  constructor(time: ChartTime, clock: ServerClock) {
    this.clock = clock
    this.show(time)
  }

  /** What was chosen. */
  get time(): ReadonlySignal<ChartTime> {
    return this.#time
  }

  /** The part of it that was chosen last; undefined if that is all. */
  get zoomed(): ReadonlySignal<TimeRange | undefined> {
    return this.#zoomed
  }

  get isPaused(): ReadonlySignal<boolean> {
    return this.#isPaused
  }

  /** The range that is shown now. It moves on in steps, so that nothing jumps. */
  get shown(): ReadonlySignal<TimeRange> {
    return this.#shown
  }

  /** Whether what comes now is in it. */
  get isLive(): boolean {
    return this.#shown.value.to >= this.now()
  }

  /** Begins to draw. Returns the function that ends it. */
  begin(): () => void {
    const all = (): void => {
      for (const drawing of this.#drawings) drawing.isDue = true
      this.#plan()
    }
    this.#timer = window.setInterval(() => {
      if (this.#isPaused.value) return
      this.#follow()
      all()
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

  /** The time of the server, seconds since 1970. */
  now(): number {
    return this.clock.nowMs / 1000
  }

  /** Shows another time, all of it. */
  show(time: ChartTime): void {
    this.#time.value = time
    this.zoomTo(undefined)
  }

  /** Shows a part of the time, or all of it. */
  zoomTo(range: TimeRange | undefined): void {
    this.#zoomed.value = range
    this.#follow()
  }

  pause(isPaused: boolean): void {
    this.#pausedAt = this.now()
    this.#isPaused.value = isPaused
    if (!isPaused) this.zoomTo(undefined)
  }

  /** Shows less time, or more, around a moment. */
  zoom(factor: number, around: number): void {
    const { from, to } = this.#shown.value
    const most = mostSeconds(this.isRemembered.value === true)
    const seconds = Math.max(LEAST_SECONDS, Math.min(most, (to - from) * factor))
    const share = (around - from) / (to - from)
    this.zoomTo({ from: around - seconds * share, to: around + seconds * (1 - share) })
  }

  /** Shows what is before or after what is shown. */
  turn(direction: -1 | 1): void {
    const { from, to } = this.#shown.value
    const at = to + direction * (to - from)
    this.show({ seconds: to - from, at: direction === 1 && at >= this.now() ? undefined : at })
  }

  #follow(): void {
    const range = this.#zoomed.value ?? this.#range()
    const { from, to } = this.#shown.value
    if (range.from !== from || range.to !== to) this.#shown.value = range
  }

  #range(): TimeRange {
    const { seconds, at } = this.#time.value
    if (at !== undefined) return { from: at - seconds, to: at }
    const now = this.#isPaused.value ? this.#pausedAt : this.now()
    const step = seconds / (seconds > LONG_SECONDS ? STEPS_OF_LONG : STEPS)
    const to = Math.ceil(now / step) * step
    return { from: to - seconds, to }
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

/** The charts of a view: the time that they show is the one of its URL. `key`: other charts begin with another one. */
export function useChartPage(consumer: Consumer, clock: ServerClock, router: Router, key = ''): ChartPage {
  const { args } = router.route.value
  const page = useMemo(() => new ChartPage(timeOfUrl(args), clock), [key, clock, consumer])
  useEffect(() => page.begin(), [page])
  useEffect(() => {
    const abort = new AbortController()
    let timer = 0
    const ask = (pauseMs: number): void => {
      hasHistory(consumer, abort.signal).then(
        (isThere) => {
          page.isRemembered.value = isThere
          // It may begin to run, or be switched on, after the page was opened.
          if (isThere || abort.signal.aborted) return
          timer = window.setTimeout(ask, pauseMs, Math.min(2 * pauseMs, LONGEST_PAUSE_MS))
        },
        () => {},
      )
    }
    ask(FIRST_PAUSE_MS)
    return () => {
      abort.abort()
      clearTimeout(timer)
    }
  }, [consumer, page])
  const url = textOf(timeOfUrl(args))
  useEffect(() => {
    // Somebody went back, or has changed the URL.
    if (url !== textOf(chosenOf(page))) page.show(timeOfUrl(args))
  }, [page, url])
  useEffect(() => {
    const write = (): void => {
      const chosen = timeArgs(chosenOf(page))
      if (textOf(timeOfUrl(router.route.peek().args)) !== String(chosen)) router.replace(linkAt(location.hash, chosen))
    }
    const stops = [page.time.subscribe(write), page.zoomed.subscribe(write)]
    return () => {
      for (const stop of stops) stop()
    }
  }, [page, router])
  return page
}

/** What was chosen, with the part of it that is shown. */
function chosenOf(page: ChartPage): ChartTime {
  const zoomed = page.zoomed.peek()
  return zoomed === undefined ? page.time.peek() : { seconds: zoomed.to - zoomed.from, at: zoomed.to }
}

function textOf(time: ChartTime): string {
  return String(timeArgs(time))
}
