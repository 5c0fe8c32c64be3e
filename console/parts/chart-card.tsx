/** One chart with its metrics: it reads while it is shown. Numbers are drawn; texts and events are a table that grows. */
import type { ComponentChildren } from 'preact'
import { useEffect, useMemo, useState } from 'preact/hooks'
import type { Consumer } from '../../client/browser.ts'
import { type ChartSpec, encodeChart } from '../board.ts'
import { type CatalogueEntry, entryOf } from '../catalogue.ts'
import { linkTo } from '../route.ts'
import { SeriesWatch, type TextLine, type WatchedState } from '../series-watch.ts'
import { formatCount, formatMeasured, formatTime, formatUtc } from '../units.ts'
import { Chart, type Drawn, MAX_SHOWN } from './chart.tsx'
import type { ChartPage } from './chart-page.ts'
import { Name } from './name.tsx'
import { Cells, type Column, Heads, Table } from './table.tsx'
import { VirtualTable } from './virtual-table.tsx'

/** What the server has kept of the last hour is asked for. */
const LAST_MS = 3_600_000
/** Which series are the largest is judged anew after this time. */
const JUDGED_MS = 10_000

interface ChartCardProps {
  readonly consumer: Consumer
  readonly page: ChartPage
  readonly spec: ChartSpec
  /** Stands above the chart. */
  readonly head: ComponentChildren
  readonly height?: number
  /** Whether all series are listed below the chart if it cannot show all. */
  readonly hasList?: boolean
}

export function ChartCard({ consumer, page, spec, head, height, hasList = false }: ChartCardProps) {
  const { lines, isRate } = spec
  const title = lines.map(({ metric }) => metric).join(', ')
  const watched = encodeChart({ lines, isRate: false })
  const watches = useMemo(
    () => lines.map(({ metric, args }) => new SeriesWatch(consumer, metric, args, LAST_MS, page.clock)),
    [consumer, watched, page],
  )
  useEffect(() => {
    for (const watch of watches) void watch.begin()
    return () => {
      for (const watch of watches) watch.end()
    }
  }, [watches])
  const entries = useEntries(
    consumer,
    lines.map(({ metric }) => metric),
  )
  const [judged, setJudged] = useState(0)
  useEffect(() => {
    const timer = setInterval(() => setJudged((count) => count + 1), JUDGED_MS)
    return () => clearInterval(timer)
  }, [])

  const states = watches.map(({ state }) => state.value)
  const all = states.flatMap(({ series }, line): readonly Drawn[] => {
    const watch = watches[line] as SeriesWatch
    const unit = entries.get(watch.metric)?.unit ?? ''
    const args = lines[line]?.args ?? {}
    // The same metric twice: its arguments tell the two apart.
    const isTwice = lines.filter(({ metric }) => metric === watch.metric).length > 1
    const fixed = isTwice ? Object.values(args) : []
    return series.map((one) => {
      const { label } = one
      const isPlain = lines.length === 1 || watch.metric.includes('*')
      const name = isPlain ? label : [watch.metric, ...fixed, label].join(' ').trim()
      return { watch, args, series: one, label: name === '' ? watch.metric : name, unit }
    })
  })
  const drawn = useMemo(() => largestOf(all), [watches, all.length, entries, judged])
  const texts = states.length === 1 ? (states[0]?.lines ?? []) : joinedTexts(states, watches)
  const more = states.reduce((sum, state) => sum + state.more, 0)
  const problems = [...new Set(states.map(({ problem }) => problem).filter(Boolean))]
  const isLoaded = states.every((state) => state.isLoaded)
  return (
    <section class="card chart-card" aria-label={title}>
      {head}
      {problems.map((problem) => (
        <p key={problem} class="empty problem" role="alert">
          {problem}
        </p>
      ))}
      {all.length > 0 ? <Chart page={page} drawn={drawn} isRate={isRate} label={title} height={height} /> : null}
      {texts.length > 0 ? <Texts lines={texts} hasLabels={texts.some(({ label }) => label !== '')} /> : null}
      {all.length === 0 && texts.length === 0 && problems.length === 0 && isLoaded ? (
        <p class="empty">No value has come yet. The first one is shown as soon as it comes.</p>
      ) : null}
      {all.length + more > drawn.length ? (
        <p class="note padded">
          The {drawn.length} largest of {formatCount(all.length + more)} series are drawn.
        </p>
      ) : null}
      {hasList && all.length > drawn.length ? <AllSeries all={all} judged={judged} /> : null}
    </section>
  )
}

const SERIES_COLUMNS: readonly Column<Drawn>[] = [
  {
    title: 'Series',
    cellLook: 'code',
    cell: ({ watch, args, series, label }) => {
      const { name = watch.metric, ...labels } = series.labels
      return (
        <a href={linkTo('metrics', name, { ...args, ...labels })}>
          <Name text={label} />
        </a>
      )
    },
  },
  {
    title: 'Last value',
    look: 'number',
    cell: ({ series, unit }) => formatMeasured(series.samples.lastValue, unit),
  },
]

function AllSeries({ all, judged }: { readonly all: readonly Drawn[]; readonly judged: number }) {
  // Units come with the catalogue, which may answer after the first values.
  const units = [...new Set(all.map(({ unit }) => unit))].join('\n')
  const sorted = useMemo(() => all.toSorted(byLast), [all.length, judged, units])
  return (
    <VirtualTable
      label="All series"
      rows={sorted}
      keyOf={({ watch, label }) => `${watch.metric} ${label}`}
      head={<Heads columns={SERIES_COLUMNS} />}
      cells={(one) => <Cells columns={SERIES_COLUMNS} row={one} />}
    />
  )
}

const TIME: Column<TextLine> = {
  title: 'Time',
  cellLook: 'code',
  cell: ({ time }) => <time title={formatUtc(time)}>{formatTime(time)}</time>,
}
const SOURCE: Column<TextLine> = {
  title: 'Source',
  look: 'source',
  cellLook: 'code',
  cell: ({ label }) => <Name text={label} max={32} />,
}
const VALUE: Column<TextLine> = { title: 'Value', cell: ({ text }) => <bdi>{text}</bdi> }

function Texts({ lines, hasLabels }: { readonly lines: readonly TextLine[]; readonly hasLabels: boolean }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard.
    <section class="texts" aria-label="Values" tabIndex={0}>
      <Table
        rows={lines}
        keyOf={({ number, label }) => `${number} ${label}`}
        columns={hasLabels ? [TIME, SOURCE, VALUE] : [TIME, VALUE]}
      />
    </section>
  )
}

/** The texts of several metrics, the newest first; the name of the metric tells them apart. */
function joinedTexts(states: readonly WatchedState[], watches: readonly SeriesWatch[]): readonly TextLine[] {
  return states
    .flatMap(({ lines }, index) =>
      lines.map((line) => ({ ...line, label: `${watches[index]?.metric} ${line.label}`.trim() })),
    )
    .toSorted((a, b) => b.time - a.time)
}

/** Those whose last value is the largest, in a steady order. */
function largestOf(all: readonly Drawn[]): readonly Drawn[] {
  if (all.length <= MAX_SHOWN) return all
  const largest = new Set(all.toSorted(byLast).slice(0, MAX_SHOWN))
  return all.filter((one) => largest.has(one))
}

function byLast({ series: { samples: a } }: Drawn, { series: { samples: b } }: Drawn): number {
  return (b.lastValue ?? Number.NEGATIVE_INFINITY) - (a.lastValue ?? Number.NEGATIVE_INFINITY) || 0
}

/** What the catalogue says of metrics, by name. */
export function useEntries(consumer: Consumer, names: readonly string[]): ReadonlyMap<string, CatalogueEntry> {
  const [entries, setEntries] = useState<ReadonlyMap<string, CatalogueEntry>>(new Map())
  const wanted = [...new Set(names)].join('\n')
  useEffect(() => {
    const abort = new AbortController()
    const { signal } = abort
    const load = async (): Promise<void> => {
      const found = await Promise.all(wanted.split('\n').map((name) => entryOf(consumer, name, signal)))
      if (!signal.aborted)
        setEntries(new Map(found.flatMap((entry) => (entry === undefined ? [] : [[entry.name, entry]]))))
    }
    // Without the catalogue there is no unit, and the values say why.
    load().catch(() => {})
    return () => abort.abort()
  }, [consumer, wanted])
  return entries
}
