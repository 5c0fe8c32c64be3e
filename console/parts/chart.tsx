/**
 * A live chart of up to eight series. The time axis stands still while values come in, until the newest would leave it; all charts
 * of a page share one cursor. Values that are missing are a hole, never a line.
 */
import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import type { WatchedSeries } from '../series-watch.ts'
import { formatMeasured } from '../units.ts'

/** Colours that people with any kind of colour vision can tell apart, for both themes (after Okabe and Ito). */
const COLOURS = [
  '--series-1',
  '--series-2',
  '--series-3',
  '--series-4',
  '--series-5',
  '--series-6',
  '--series-7',
  '--series-8',
]
export const MAX_SHOWN = COLOURS.length

interface ChartProps {
  readonly series: readonly WatchedSeries[]
  /** Changes when values have come. */
  readonly version: number
  readonly unit: string
  readonly seconds: number
  readonly isPaused: boolean
}

export function Chart({ series, version, unit, seconds, isPaused }: ChartProps) {
  const place = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot>(undefined)
  const labels = series.map(({ label }) => label).join('\n')
  const isDark = matchMedia('(prefers-color-scheme: dark)').matches

  useEffect(() => {
    const parent = place.current
    if (parent === null) return
    const made = new uPlot(optionsOf(parent, series, unit, seconds), alignedOf(series), parent)
    plot.current = made
    const fit = new ResizeObserver(() => made.setSize({ width: parent.clientWidth, height: HEIGHT }))
    fit.observe(parent)
    return () => {
      fit.disconnect()
      made.destroy()
    }
  }, [labels, unit, seconds, isDark])

  useEffect(() => {
    if (!isPaused) plot.current?.setData(alignedOf(series), true)
  }, [version, isPaused])

  return (
    <div
      class="chart"
      ref={place}
      role="img"
      aria-label={`${series.length} series over ${Math.round(seconds / 60)} minutes`}
    />
  )
}

const HEIGHT = 280

function optionsOf(
  parent: HTMLElement,
  series: readonly WatchedSeries[],
  unit: string,
  seconds: number,
): uPlot.Options {
  const probe = parent.appendChild(document.createElement('i'))
  // A canvas does not know variables, nor the theme.
  const colour = (name: string): string => {
    probe.style.color = `var(${name})`
    return getComputedStyle(probe).color
  }
  const axis = {
    stroke: colour('--quiet-ink'),
    grid: { stroke: colour('--line-ink'), width: 1 },
    ticks: { show: false },
  }
  const options: uPlot.Options = {
    width: parent.clientWidth,
    height: HEIGHT,
    cursor: { sync: { key: 'page' }, points: { size: 6 } },
    legend: { live: true },
    scales: {
      x: { time: true, range: (_, __, max) => windowOf(max, seconds) },
      // A gauge that cannot be negative begins at zero.
      y: {
        range: (_, min, max) =>
          min === null || max === null ? [0, 1] : uPlot.rangeNum(Math.min(0, min), max, 0.1, true),
      },
    },
    axes: [
      { ...axis, values: '{HH}:{mm}:{ss}', space: 90 },
      { ...axis, size: 64, values: (_, ticks) => ticks.map((tick) => formatMeasured(tick, unit)) },
    ],
    series: [
      {
        label: 'time',
        value: (_, time) => (time === null ? '' : new Date(time * 1000).toLocaleTimeString([], { hour12: false })),
      },
      ...series.map(({ label }, index) => ({
        label: label === '' ? 'value' : label,
        stroke: colour(COLOURS[index] as string),
        width: 1.6,
        points: { show: false },
        spanGaps: false,
        value: (_: uPlot, value: number | null) => (value === null ? '' : formatMeasured(value, unit)),
      })),
    ],
  }
  probe.remove()
  return options
}

/** Steps of a tenth of the whole, so that the axis moves rarely. */
function windowOf(newest: number | null, seconds: number): [number, number] {
  const now = newest ?? Date.now() / 1000
  const step = seconds / 10
  const end = Math.ceil(now / step) * step
  return [end - seconds, end]
}

/** All series over one ascending list of times. */
function alignedOf(series: readonly WatchedSeries[]): uPlot.AlignedData {
  if (series.length === 0) return [[]]
  // Where another series has a value and this one has none there is no hole; a null of its own is one.
  return uPlot.join(series.map(({ times, values }): uPlot.AlignedData => [times, values]))
}
