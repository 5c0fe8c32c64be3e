/** A small live curve of one metric, without axes, with its last value. It reads while it is on screen. */
import { useEffect, useMemo, useReducer, useState } from 'preact/hooks'
import type { Consumer } from '../../client/browser.ts'
import { type Cell, decimate, lastShown, type Samples } from '../samples.ts'
import { type LineArguments, SeriesWatch, type ServerClock } from '../series-watch.ts'
import { formatMeasured, UNKNOWN } from '../units.ts'

const WIDTH = 96
const HEIGHT = 22
const SECONDS = 300
/** Rows that only pass by while somebody scrolls ask for nothing. */
const CALM_MS = 150
/** A curve is drawn again after this time at the earliest. */
const APART_MS = 1_000

interface SparkProps {
  readonly consumer: Consumer
  readonly clock: ServerClock
  readonly metric: string
  readonly args: LineArguments
  readonly unit: string
  readonly isRate: boolean
}

export function Spark(props: SparkProps) {
  const [isCalm, setCalm] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setCalm(true), CALM_MS)
    return () => clearTimeout(timer)
  }, [])
  return isCalm ? <LiveSpark {...props} /> : <span class="note">{UNKNOWN}</span>
}

function LiveSpark({ consumer, clock, metric, args, unit, isRate }: SparkProps) {
  const [, redraw] = useReducer((count: number) => count + 1, 0)
  const key = JSON.stringify(args)
  const watch = useMemo(
    () => new SeriesWatch(consumer, metric, args, SECONDS * 1000, clock),
    [consumer, metric, key, clock],
  )
  useEffect(() => {
    let [drawnMs, timer] = [0, 0]
    const draw = (): void => {
      timer = 0
      drawnMs = performance.now()
      redraw(undefined)
    }
    const remove = watch.onValues(() => {
      if (timer === 0) timer = window.setTimeout(draw, Math.max(0, drawnMs + APART_MS - performance.now()))
    })
    void watch.begin()
    return () => {
      clearTimeout(timer)
      remove()
      watch.end()
    }
  }, [watch])
  const samples = watch.state.value.series[0]?.samples
  const last = samples === undefined ? undefined : lastShown(samples, isRate)
  return (
    <span class="spark">
      <svg class="curve in" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
        {samples === undefined ? null : <path d={pathOf(samples, clock.nowMs / 1000, isRate)} />}
      </svg>
      <span class="number">{formatMeasured(last, unit, isRate)}</span>
    </span>
  )
}

function pathOf(samples: Samples, now: number, isRate: boolean): string {
  const cells: Cell[] = []
  decimate(samples, { from: now - SECONDS, to: now, columns: WIDTH / 2 }, isRate, cells)
  const numbers = cells.filter((cell) => typeof cell === 'number')
  const [least, most] = [Math.min(0, ...numbers), Math.max(0, ...numbers)]
  const scale = (HEIGHT - 2) / (most - least || 1)
  let [path, isOpen] = ['', false]
  for (const [index, cell] of cells.entries()) {
    if (cell === null) isOpen = false
    if (typeof cell !== 'number') continue
    const x = ((index / (cells.length - 1)) * WIDTH).toFixed(1)
    path += `${isOpen ? 'L' : 'M'}${x} ${(HEIGHT - 1 - (cell - least) * scale).toFixed(1)}`
    isOpen = true
  }
  return path
}
