/**
 * A live chart of up to eight series. The time axis stands still while values come in, until the newest would leave it; all charts
 * of a page share one cursor. Values that are missing are a hatched hole, never a line. Where the server remembers, a series is a line
 * through the means of its columns, in a band from the smallest value to the largest.
 */
import { type ReadonlySignal, signal } from '@preact/signals'
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import { type ColumnCells, Columns, columnTimes, MARGIN, withMargin } from '../columns.ts'
import type { PastSeries } from '../line-history.ts'
import type { PastLoss } from '../losses.ts'
import { cellTimes, decimate, lastShown } from '../samples.ts'
import type { Hole, LineArguments, SeriesWatch, WatchedSeries } from '../series-watch.ts'
import {
  formatCount,
  formatDay,
  formatMeasured,
  formatMinute,
  formatMoment,
  formatTime,
  formatUtc,
  UNKNOWN,
} from '../units.ts'
import type { ChartPage, DrawingTurn, TimeRange } from './chart-page.ts'
import { HATCHED, hatch, joined, missingText } from './hatching.ts'
import { Name } from './name.tsx'

/** Colours that people with any kind of colour vision can tell apart, for both themes (after Okabe and Ito). */
const COLOURS = [1, 2, 3, 4, 5, 6, 7, 8].map((number) => `--series-${number}`)
export const MAX_SHOWN = COLOURS.length

const HEIGHT = 260
/** Between two drawings of a chart. */
const LEAST_APART_MS = 200
const MOST_APART_MS = 1_000
/** So few samples are drawn as points too. */
const FEW_SAMPLES = 40
/** Cells to each side in which a value at the cursor is looked for. */
const NEAR_CELLS = 40
/** Steps between ticks of bytes, up to the largest number. */
const POWERS = Array.from({ length: 1024 }, (_, power) => 2 ** power)
/** So far a scale reaches: the distance of its ends, and the margin beyond the values, are still numbers. */
const MOST_DRAWN = Number.MAX_VALUE / 4
/** Room for `14:05` and for `14:05:30`, in pixels. */
const SHORT_TIME = 40
const LONG_TIME = 64
const DAY = 86_400
/** Measures of a chart that have an axis. */
const MAX_AXES = 2
/** Of columns that have no range yet. */
const NOWHERE: TimeRange = { from: 0, to: 1 }

/** A series as the chart draws it. */
export interface Drawn {
  readonly watch: Pick<SeriesWatch, 'onValues' | 'gaps'>
  /** What the metric was asked for with. */
  readonly args: LineArguments
  readonly series: WatchedSeries
  /** What the server remembers of it. */
  readonly past: PastSeries | undefined
  readonly metric: string
  /** Its own and the arguments. */
  readonly labels: LineArguments
  readonly unit: string
  /** Whether it shows what the values grow by per second. */
  readonly isRate: boolean
}

/** Tells a series from all others of a page. */
export function keyOf({ metric, labels }: Drawn): string {
  return JSON.stringify([metric, labels])
}

interface ChartProps {
  readonly page: ChartPage
  readonly drawn: readonly Drawn[]
  /** What the server remembers to be missing. */
  readonly losses: readonly PastLoss[]
  /** What each is called in the legend. */
  readonly names: readonly string[]
  readonly label: string
  readonly height?: number | undefined
}

export function Chart({ page, drawn, losses, names, label, height = HEIGHT }: ChartProps) {
  const place = useRef<HTMLDivElement>(null)
  const scales = drawn.map(({ unit, isRate }) => formatMeasured(1, unit, isRate)).join('\n')
  const plot = useMemo(() => new Plot(page, drawn, height), [page, scales, height])
  // Before it is painted, so that no value stands at the name of another series.
  useLayoutEffect(() => plot.show(drawn), [plot, drawn])
  useLayoutEffect(() => plot.showLosses(losses), [plot, losses])
  useEffect(() => {
    if (place.current === null) return undefined
    return plot.begin(place.current)
  }, [plot])
  return (
    <>
      {/* biome-ignore lint/a11y/useSemanticElements: a group of form fields it is not. */}
      <div
        class="chart"
        ref={place}
        role="group"
        aria-label={`${label}. The arrow keys move the cursor, + and - change the time that is shown, Escape resets it.`}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: the cursor of the chart has keys.
        tabIndex={0}
        onKeyDown={(event) => plot.pressed(event)}
      />
      <Legend names={names} at={plot.atCursor} />
    </>
  )
}

/** The values at the cursor, or the last ones. */
interface AtCursor {
  /** Microseconds since 1970; undefined if the cursor is not in the chart. */
  readonly time: number | undefined
  readonly values: readonly string[]
  /** What is said of what is hatched, there or anywhere; empty if nothing is. */
  readonly missing: string
}

function Legend({ names, at }: { readonly names: readonly string[]; readonly at: ReadonlySignal<AtCursor> }) {
  const { time, values, missing } = at.value
  return (
    <ul class="legend">
      {names.map((name, index) => (
        <li key={index}>
          <i class={`swatch s${index + 1}`} aria-hidden="true" />
          <Name text={name} max={64} />
          <b>{values[index] ?? UNKNOWN}</b>
        </li>
      ))}
      {missing === '' ? null : (
        <li class="missing">
          <i class="swatch hatched" aria-hidden="true" />
          <Name text={missing} max={96} />
        </li>
      )}
      {time === undefined ? null : (
        <li class="note">
          <time title={formatUtc(time)}>{formatMoment(time)}</time>
        </li>
      )}
    </ul>
  )
}

/** What the values of an axis are. */
type Measure = Pick<Drawn, 'unit' | 'isRate'>

/** A chart for so many series of these measures. Other series take the places of those before: to make a chart anew takes longer. */
class Plot {
  readonly #page: ChartPage
  readonly #height: number
  readonly #atCursor = signal<AtCursor>({ time: undefined, values: [], missing: '' })
  readonly #cells: readonly ColumnCells[]
  /** Of each series what is drawn, and of one what has come since the server was asked. */
  readonly #columns: readonly Columns[]
  readonly #scratch = new Columns(NOWHERE)
  readonly #counts: number[]
  /** Each has a scale. */
  readonly #measures: readonly Measure[]
  /** Of each series, the index of its measure. */
  readonly #scales: readonly number[]
  #drawn: readonly Drawn[] = []
  #losses: readonly PastLoss[] = []
  #drawing: DrawingTurn | undefined
  #place: HTMLElement | undefined
  #plot: uPlot | undefined
  #from = 0
  #to = 1
  #ink = ''
  #hatch: CanvasPattern | null = null

  constructor(page: ChartPage, series: readonly Measure[], height: number) {
    this.#page = page
    this.#height = height
    this.#cells = series.map(() => ({ line: [], low: [], high: [] }))
    this.#columns = series.map(() => new Columns(NOWHERE))
    this.#counts = series.map(() => 0)
    const isSame = (a: Measure, b: Measure): boolean => a.unit === b.unit && a.isRate === b.isRate
    this.#measures = series.filter((one, index) => series.findIndex((other) => isSame(one, other)) === index)
    this.#scales = series.map((one) => this.#measures.findIndex((other) => isSame(one, other)))
  }

  get atCursor(): ReadonlySignal<AtCursor> {
    return this.#atCursor
  }

  /** Shows these series, which have the measures of those before, from now on. Returns the function that ends it. */
  show(drawn: readonly Drawn[]): () => void {
    this.#drawn = drawn
    for (const cells of this.#cells) forget(cells)
    if (this.#plot !== undefined) this.#show(this.#plot)
    this.#drawing?.request(true)
    const values = (): void => {
      if (!this.#page.isPaused.value) this.#drawing?.request()
    }
    const stops = [...new Set(drawn.map(({ watch }) => watch))].map((watch) => watch.onValues(values))
    return () => {
      for (const stop of stops) stop()
    }
  }

  showLosses(losses: readonly PastLoss[]): void {
    this.#losses = losses
    this.#drawing?.request(true)
  }

  begin(place: HTMLElement): () => void {
    this.#place = place
    const drawing = this.#page.add(() => this.#draw())
    this.#drawing = drawing
    const stops: (() => void)[] = []
    const { shown, isPaused, isRemembered } = this.#page
    for (const changed of [shown, isPaused, isRemembered]) stops.push(changed.subscribe(() => drawing.request(true)))
    const fit = new ResizeObserver(() => {
      if (this.#plot !== undefined && this.#plot.width !== place.clientWidth) {
        this.#plot.setSize({ width: place.clientWidth, height: this.#height })
      }
      drawing.request(true)
    })
    fit.observe(place)
    const sight = new IntersectionObserver((entries) => drawing.seen(entries.at(-1)?.isIntersecting === true))
    sight.observe(place)
    return () => {
      sight.disconnect()
      fit.disconnect()
      for (const stop of stops) stop()
      drawing.remove()
      this.#drawing = undefined
      this.#plot?.destroy()
      this.#plot = undefined
    }
  }

  pressed(event: KeyboardEvent): void {
    const plot = this.#plot
    if (plot === undefined || event.ctrlKey || event.metaKey || event.altKey) return
    const { width, height } = plot.over.getBoundingClientRect()
    const left = plot.cursor.left === undefined || plot.cursor.left < 0 ? width / 2 : plot.cursor.left
    const steps: Readonly<Record<string, number>> = { ArrowLeft: -width / 100, ArrowRight: width / 100 }
    const step = steps[event.key]
    if (step !== undefined) {
      plot.setCursor({ left: Math.max(0, Math.min(width, left + step)), top: height / 2 }, true)
    } else if (event.key === '+' || event.key === '-') {
      this.#page.zoom(event.key === '+' ? 0.5 : 2, plot.posToVal(left, 'x'))
    } else if (event.key === 'Escape') {
      this.#page.zoomTo(undefined)
      plot.setCursor({ left: -10, top: -10 }, true)
    } else return
    event.preventDefault()
  }

  /** Returns for how long nothing can be seen to change: the time of one column of pixels. */
  #draw(): number {
    const place = this.#place
    if (place === undefined || place.clientWidth === 0) return LEAST_APART_MS
    const { from, to } = this.#page.shown.value
    this.#from = from
    this.#to = to
    const window = { from, to, columns: Math.max(50, place.clientWidth - 64) }
    const isRemembered = this.#page.isRemembered.value === true
    for (const [index, drawn] of this.#drawn.entries()) {
      const cells = this.#cells[index] as ColumnCells
      if (isRemembered) this.#counts[index] = this.#fill(index, drawn, window)
      else this.#counts[index] = decimate(drawn.series.samples, window, drawn.isRate, cells.line)
    }
    // A canvas does not know variables, nor the theme: another one has other inks.
    const ink = getComputedStyle(place).color
    if (this.#plot === undefined || ink !== this.#ink) {
      this.#plot?.destroy()
      this.#ink = ink
      this.#plot = new uPlot(this.#options(place), [[]], place)
    }
    const times = isRemembered ? columnTimes(withMargin(window)) : cellTimes(window)
    const bands = this.#cells.flatMap(({ low, high }) => [high, low])
    this.#plot.setData([times, ...this.#cells.map(({ line }) => line), ...bands] as uPlot.AlignedData, true)
    this.#show(this.#plot)
    return Math.max(LEAST_APART_MS, Math.min(MOST_APART_MS, (1000 * (to - from)) / window.columns))
  }

  /** Draws what the server remembers of a series, with what has come since. Returns how many columns have samples. */
  #fill(index: number, { series: { samples }, past, isRate }: Drawn, window: TimeRange): number {
    const columns = this.#columns[index] as Columns
    columns.reset(withMargin(window))
    if (past !== undefined) columns.take(past.columns)
    columns.overlay(samples, this.#scratch)
    return columns.draw(this.#cells[index] as ColumnCells, isRate)
  }

  #options(place: HTMLElement): uPlot.Options {
    const colour = inks(place)
    const count = this.#scales.length
    this.#hatch = hatch(colour('var(--lost)'))
    const axis = {
      stroke: colour('var(--quiet)'),
      grid: { stroke: colour('var(--line)'), width: 1 },
      ticks: { show: false },
      font: '11px system-ui, sans-serif',
    }
    const axes = this.#measures.slice(0, MAX_AXES).map(({ unit, isRate }, index) => ({
      ...axis,
      scale: `y${index}`,
      side: index === 0 ? 3 : 1,
      size: 70,
      ...(isOfBytes(unit) && { incrs: POWERS }),
      grid: index === 0 ? axis.grid : { show: false },
      values: (_: uPlot, ticks: number[]) => ticks.map((tick) => formatMeasured(tick, unit, isRate)),
    }))
    return {
      width: place.clientWidth,
      height: this.#height,
      padding: [12, 30, 0, 0],
      cursor: {
        sync: { key: 'page' },
        // The edges of a band have none.
        points: { size: (_, series) => (series <= count ? 6 : 0) },
        drag: { x: true, y: false, setScale: false },
        dataIdx: (_, series, index) => this.#nearest(series, index),
        bind: {
          dblclick: () => () => {
            this.#page.zoomTo(undefined)
            return null
          },
        },
      },
      legend: { show: false },
      scales: {
        x: { time: true, range: () => [this.#from, this.#to] },
        ...Object.fromEntries(this.#measures.map((_, index) => [`y${index}`, { range: rangeOf }])),
      },
      axes: [{ ...axis, values: timesOf, space: spaceOf, size: 32 }, ...axes],
      series: [
        {},
        ...this.#scales.map((scale, index) => ({
          scale: `y${scale}`,
          stroke: colour(`var(${COLOURS[index]})`),
          width: 1.5,
          points: { show: () => (this.#counts[index] as number) <= FEW_SAMPLES, size: 4 },
          spanGaps: false,
        })),
        ...this.#scales.flatMap((scale) => {
          const edge = { scale: `y${scale}`, width: 0, points: { show: false }, spanGaps: false }
          return [edge, { ...edge }]
        }),
      ],
      bands: this.#scales.map((_, index) => ({
        series: [1 + count + 2 * index, 2 + count + 2 * index] as [number, number],
        fill: colour(`color-mix(in srgb, var(${COLOURS[index]}) 24%, transparent)`),
      })),
      hooks: {
        drawClear: [(plot) => this.#drawHoles(plot, colour('var(--lost)'))],
        setCursor: [(plot) => this.#show(plot)],
        setSelect: [
          (plot) => {
            const { left, width } = plot.select
            if (width < 4) return
            const range = { from: plot.posToVal(left, 'x'), to: plot.posToVal(left + width, 'x') }
            plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
            if (range.to - range.from > 0.5) this.#page.zoomTo(range)
          },
        ],
      },
    }
  }

  /** The cell with a value that is nearest to the cursor. */
  #nearest(series: number, index: number): number {
    const cells = this.#cells[series - 1]?.line
    if (cells === undefined) return index
    const first = this.#page.isRemembered.value === true ? 2 * MARGIN : 0
    for (let distance = 0; distance <= NEAR_CELLS; distance++) {
      for (const at of [index - distance, index + distance]) if (at >= first && typeof cells[at] === 'number') return at
    }
    return index
  }

  /** Puts the values at the cursor into the legend, or the last ones. */
  #show(plot: uPlot): void {
    const { left, idx, idxs } = plot.cursor
    const isIn = left !== undefined && left >= 0 && idx !== null && idx !== undefined
    const values = this.#drawn.map((drawn, index) => {
      const { unit, isRate } = drawn
      if (!isIn) return formatMeasured(this.#last(drawn, index), unit, isRate)
      const cells = this.#cells[index]
      const [value, low, high] = [cells?.line, cells?.low, cells?.high].map(
        (all) => all?.[idxs?.[index + 1] ?? idx] ?? undefined,
      )
      const shown = formatMeasured(value, unit, isRate)
      if (low === undefined || high === undefined || low === high) return shown
      return `${shown} (${formatMeasured(low, unit, isRate)} to ${formatMeasured(high, unit, isRate)})`
    })
    const time = isIn ? plot.posToVal(left, 'x') * 1e6 : undefined
    const around = isIn
      ? { from: plot.posToVal(left - HATCHED, 'x'), to: plot.posToVal(left + HATCHED, 'x') }
      : { from: this.#from, to: this.#to }
    const missing = missingText(this.#losses, this.#holes(), around)
    const before = this.#atCursor.value
    if (before.time === time && before.missing === missing && before.values.join() === values.join()) return
    this.#atCursor.value = { time, values, missing }
  }

  /** All that is hatched. */
  #holes(): Hole[] {
    const live = this.#drawn.flatMap(({ watch, series }) => [...watch.gaps, ...series.holes])
    const cut = this.#drawn.flatMap(({ series: { cutAt } }) =>
      cutAt === undefined ? [] : [{ from: cutAt, to: this.#page.now(), count: 0 }],
    )
    return [...new Set([...live, ...this.#losses]), ...cut]
  }

  /** The last value that there is, or that of a time that is over. */
  #last({ series: { samples }, isRate }: Drawn, index: number): number | undefined {
    const now = this.#page.isLive ? lastShown(samples, isRate) : undefined
    return now ?? (this.#page.isRemembered.value === true ? this.#columns[index]?.last(isRate) : undefined)
  }

  #drawHoles(plot: uPlot, ink: string): void {
    const { ctx, bbox } = plot
    const shown = joined(this.#holes()).filter(({ from, to }) => to >= this.#from && from <= this.#to)
    if (this.#place !== undefined) this.#place.dataset['holes'] = String(shown.length)
    ctx.save()
    for (const { from, to, count } of shown) {
      const left = Math.max(bbox.left, plot.valToPos(from, 'x', true))
      const right = Math.min(bbox.left + bbox.width, plot.valToPos(to, 'x', true))
      const width = Math.max(2 * HATCHED * devicePixelRatio, right - left)
      ctx.fillStyle = this.#hatch ?? ink
      ctx.fillRect(left, bbox.top, width, bbox.height)
      if (count === 0) continue
      ctx.fillStyle = ink
      ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`
      ctx.textAlign = left > bbox.left + bbox.width / 2 ? 'right' : 'left'
      const x = ctx.textAlign === 'right' ? left - 4 * devicePixelRatio : left + width + 4 * devicePixelRatio
      ctx.fillText(`${formatCount(count)} lost`, x, bbox.top + 12 * devicePixelRatio)
    }
    ctx.restore()
  }
}

/** A gauge that cannot be negative begins at zero. */
function rangeOf(_: uPlot, min: number | null, max: number | null): [number, number] {
  if (min === null || max === null) return [0, 1]
  const [least, most] = [Math.max(-MOST_DRAWN, Math.min(0, min)), Math.min(MOST_DRAWN, Math.max(0, max))]
  const [low, high] = uPlot.rangeNum(least, most, 0.1, true)
  return low === null || high === null || low === high ? [0, 1] : [low, high]
}

function forget(cells: ColumnCells): void {
  for (const one of [cells.line, cells.low, cells.high]) one.length = 0
}

function isOfBytes(unit: string): boolean {
  return /^(B|KB|bytes)(\/s|\/sec)?$/.test(unit)
}

/** Pixels between two times: those of whole minutes are short. */
function spaceOf(_: uPlot, __: number, from: number, to: number, pixels: number): number {
  const minute = (60 * pixels) / (to - from)
  return minute >= SHORT_TIME && minute < LONG_TIME ? SHORT_TIME : LONG_TIME
}

function timesOf(_: uPlot, ticks: number[]): string[] {
  const apart = ticks.length > 1 ? (ticks[1] as number) - (ticks[0] as number) : DAY
  return ticks.map((tick) => {
    if (apart >= DAY || isMidnight(tick)) return formatDay(tick * 1e6, apart > 27 * DAY)
    return apart < 60 ? formatTime(tick * 1e6) : formatMinute(tick * 1e6)
  })
}

function isMidnight(tick: number): boolean {
  const time = new Date(tick * 1000)
  return time.getHours() + time.getMinutes() + time.getSeconds() === 0
}

/** What colours of the style sheet are for an element. */
function inks(place: HTMLElement): (name: string) => string {
  const colours = new Map<string, string>()
  return (name) => {
    const known = colours.get(name)
    if (known !== undefined) return known
    const probe = place.appendChild(document.createElement('i'))
    probe.style.color = name
    const colour = getComputedStyle(probe).color
    probe.remove()
    colours.set(name, colour)
    return colour
  }
}
