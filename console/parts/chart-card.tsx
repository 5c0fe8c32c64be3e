/** One chart with its metrics: it reads while it is shown. Numbers are drawn; texts and events are a table that grows. */
import type { ComponentChildren } from 'preact'
import { useEffect, useMemo, useState } from 'preact/hooks'
import type { Consumer } from '../../client/browser.ts'
import { type ChartSpec, encodeChart } from '../board.ts'
import { useEntries } from '../catalogue.ts'
import { withMargin } from '../columns.ts'
import { joinSeries } from '../joined-series.ts'
import { type Labelled, namingOf } from '../labels.ts'
import { type HistoryState, LineHistory, type PastSeries } from '../line-history.ts'
import type { PastLoss } from '../losses.ts'
import { linkTo } from '../route.ts'
import { lastShown, type Samples } from '../samples.ts'
import { SeriesWatch, type TextLine } from '../series-watch.ts'
import { formatCount, formatMeasured, formatMoment, formatTime, formatUtc } from '../units.ts'
import { Chart, type Drawn, keyOf, MAX_SHOWN } from './chart.tsx'
import type { ChartPage, TimeRange } from './chart-page.ts'
import { Name } from './name.tsx'
import { Absent, Loading } from './state.tsx'
import { Cells, type Column, Heads, Table } from './table.tsx'
import { VirtualTable } from './virtual-table.tsx'

/** What the server has kept of the last hour is asked for. */
const LAST_MS = 3_600_000
/** Which series are the largest is judged anew after this time. */
const JUDGED_MS = 10_000
/** What is remembered is read so long after the last change of what is shown, and again before values of now are forgotten. */
const CALM_MS = 200
const AGAIN_MS = 900_000
/** What no chart draws, as the catalogue calls it. */
const UNDRAWN: ReadonlySet<string> = new Set(['string', 'opaque', 'rec', 'array', 'void'])

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
  const { lines, scale } = spec
  const title = lines.map(({ metric }) => metric).join(', ')
  const watched = encodeChart({ lines })
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
  const histories = useHistories(consumer, page, lines, watched)
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
  const past = histories.map(({ state }) => state.value)
  const count = states.reduce((sum, { series }) => sum + series.length, 0)
  const remembered = past.map(seriesIn)
  const all = useMemo(
    () =>
      states.flatMap(({ series }, line): readonly Drawn[] => {
        const watch = watches[line] as SeriesWatch
        const args = lines[line]?.args ?? {}
        const drawable = (remembered[line] ?? []).filter(({ metric }) => !UNDRAWN.has(entries?.get(metric)?.type ?? ''))
        return joinSeries(series, drawable, args).map((one) => {
          const { metric, labels } = one.series
          const { unit = '', isCounter = false } = entries?.get(metric) ?? {}
          const isRate = scale === undefined ? isCounter : scale === 'rate'
          return { watch, args, ...one, metric, labels: { ...args, ...labels }, unit, isRate }
        })
      }),
    [watches, count, entries, scale, ...remembered],
  )
  const drawn = useMemo(() => largestOf(all), [all, judged])
  const { names, common } = useMemo(() => namingOf(drawn), [drawn])
  const texts = states.flatMap((state, line) => state.lines.map((text) => ({ ...text, args: lines[line]?.args ?? {} })))
  const isKnown = entries !== undefined
  // Of a time that is over, nothing may be known.
  const losses = useMemo(() => past.flatMap(lossesIn), past.map(lossesIn))
  const isBare =
    losses.length === 0 &&
    !page.isLive &&
    past.every(({ kind }) => kind === 'read') &&
    remembered.flat().length === 0 &&
    states.every(({ series }) => series.every(({ samples }) => isEmptyIn(samples, page.shown.value)))
  const more = Math.max(
    states.reduce((sum, state) => sum + state.more, 0),
    past.reduce((sum, state) => sum + (state.kind === 'read' ? state.more : 0), 0),
  )
  const problems = [...new Set(states.map(({ problem }) => problem).filter(Boolean))]
  const isLoaded = states.every((state) => state.isLoaded) && past.every(({ kind }) => kind !== 'reading')
  return (
    <section class="card chart-card" aria-label={title}>
      {head}
      {problems.map((problem) => (
        <p key={problem} class="empty problem" role="alert">
          {problem}
        </p>
      ))}
      {isKnown && drawn.length > 0 && !isBare ? (
        <>
          <Shared common={common} drawn={drawn} saysRate={!hasList} />
          <Chart page={page} drawn={drawn} losses={losses} names={names} label={title} height={height} />
        </>
      ) : null}
      {isBare && texts.length === 0 ? <Bare page={page} /> : null}
      {texts.length > 0 ? <Texts lines={texts} /> : <ReadingState page={page} states={past} />}
      {all.length === 0 && texts.length === 0 && problems.length === 0 && isLoaded && !isBare ? (
        <p class="empty">
          {past.some(({ kind }) => kind === 'read')
            ? 'The history has no value of this time, and none has come yet. The first one is shown as soon as it comes.'
            : 'No value has come yet. The first one is shown as soon as it comes.'}
        </p>
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

/** What the server remembers of the lines of a chart, read again whenever the charts of the page show another time. */
function useHistories(
  consumer: Consumer,
  page: ChartPage,
  lines: ChartSpec['lines'],
  key: string,
): readonly LineHistory[] {
  const isRemembered = page.isRemembered.value === true
  const histories = useMemo(
    () => lines.map(({ metric, args }) => new LineHistory(consumer, metric, args, page.clock, page.reads)),
    [consumer, key, page],
  )
  useEffect(() => {
    if (!isRemembered) return undefined
    let timer = 0
    const read = (isMissing = false): void => {
      for (const history of histories) void history.read(withMargin(page.shown.peek()), isMissing)
    }
    const stop = page.shown.subscribe(() => {
      clearTimeout(timer)
      timer = window.setTimeout(read, CALM_MS)
    })
    const again = setInterval(() => {
      if (page.isLive) read()
    }, AGAIN_MS)
    // What came while there was no connection is remembered, perhaps.
    const connected = consumer.on('connected', () => read(true))
    return () => {
      stop()
      connected()
      clearTimeout(timer)
      clearInterval(again)
      for (const history of histories) history.end()
    }
  }, [consumer, page, histories, isRemembered])
  return histories
}

const NO_SERIES: readonly PastSeries[] = []

function seriesIn(state: HistoryState): readonly PastSeries[] {
  return 'series' in state ? state.series : NO_SERIES
}

const NO_LOSSES: readonly PastLoss[] = []

function lossesIn(state: HistoryState): readonly PastLoss[] {
  return state.kind === 'read' ? state.losses : NO_LOSSES
}

function isEmptyIn(samples: Samples, { from, to }: TimeRange): boolean {
  return samples.indexOf(from) === samples.indexOf(to)
}

/** In place of a chart without a value. */
function Bare({ page }: { readonly page: ChartPage }) {
  const { from, to } = page.shown.value
  return (
    <p class="empty" role="status">
      The history has no value from <Moment seconds={from} /> to <Moment seconds={to} />.
    </p>
  )
}

function Moment({ seconds }: { readonly seconds: number }) {
  return <time title={formatUtc(seconds * 1e6)}>{formatMoment(seconds * 1e6)}</time>
}

/** What there is to be said of the reading of the history. */
function ReadingState({ page, states }: { readonly page: ChartPage; readonly states: readonly HistoryState[] }) {
  const { from, to } = page.shown.value
  const reasons = new Set(states.flatMap((state) => (state.kind === 'refused' ? [state.reason] : [])))
  const since = Math.max(0, ...states.map((state) => (state.kind === 'read' ? (state.since ?? 0) : 0)))
  const reading = states.filter(({ kind }) => kind === 'reading')
  const samples = reading.reduce((sum, state) => sum + (state.kind === 'reading' ? state.samples : 0), 0)
  return (
    <>
      {[...reasons].map((reason) => (
        <Absent key={reason} what="the history" problem={`The history cannot be read: ${reason}`} />
      ))}
      {reading.length > 0 ? (
        <Loading what={samples === 0 ? 'the history' : `the history: ${formatCount(samples)} samples`} />
      ) : null}
      {states.some(({ kind }) => kind === 'elsewhere') ? (
        <p class="note padded">
          Of several servers at once only what has come lately is drawn: name one of them to see more.
        </p>
      ) : null}
      {since > from && since < to ? (
        <p class="note padded">
          Only what is newer than <Moment seconds={since} /> is drawn: there are more samples than one chart reads. A
          shorter time, or fewer series, show the rest.
        </p>
      ) : null}
    </>
  )
}

interface SharedProps {
  readonly common: string
  readonly drawn: readonly Drawn[]
  /** Whether nothing else says it where all of them are rates. */
  readonly saysRate: boolean
}

/** What all series of a chart have alike. */
function Shared({ common, drawn, saysRate }: SharedProps) {
  const rates = drawn.filter(({ isRate }) => isRate)
  const isMixed = rates.length > 0 && rates.length < drawn.length
  const growth = isMixed ? 'counters: growth per second' : saysRate && rates.length > 0 ? 'growth per second' : ''
  return common === '' && growth === '' ? null : (
    <p class="note shared">
      {common === '' ? null : (
        <span class="code">
          <Name text={common} />
        </span>
      )}
      {growth === '' ? null : <span>{growth}</span>}
    </p>
  )
}

interface SeriesRow {
  readonly drawn: Drawn
  readonly name: string
}

const SERIES_COLUMNS: readonly Column<SeriesRow>[] = [
  {
    title: 'Series',
    cellLook: 'code',
    cell: ({ drawn: { metric, labels }, name }) => (
      <a href={linkTo('metrics', metric, labels)}>
        <Name text={name} />
      </a>
    ),
  },
  {
    title: 'Last value',
    look: 'number',
    cell: ({ drawn }) => formatMeasured(lastOf(drawn), drawn.unit, drawn.isRate),
  },
]

function AllSeries({ all, judged }: { readonly all: readonly Drawn[]; readonly judged: number }) {
  const rows = useMemo(() => {
    const { names } = namingOf(all)
    const named = new Map(all.map((drawn, index) => [drawn, names[index] as string]))
    return all.toSorted(byLast).map((drawn): SeriesRow => ({ drawn, name: named.get(drawn) as string }))
  }, [all, judged])
  return (
    <VirtualTable
      label="All series"
      rows={rows}
      keyOf={({ drawn }) => keyOf(drawn)}
      head={<Heads columns={SERIES_COLUMNS} />}
      cells={(one) => <Cells columns={SERIES_COLUMNS} row={one} />}
    />
  )
}

/** A line as it is shown. */
interface Row extends TextLine {
  /** Which series it is of; empty if there is one only. */
  readonly name: string
}

const TIME: Column<Row> = {
  title: 'Time',
  cellLook: 'code',
  cell: ({ time }) => <time title={formatUtc(time)}>{formatTime(time)}</time>,
}
const SOURCE: Column<Row> = {
  title: 'Source',
  look: 'source',
  cellLook: 'code',
  cell: ({ name }) => <Name text={name} max={32} />,
}
const VALUE: Column<Row> = { title: 'Value', cell: ({ text }) => <bdi>{text}</bdi> }

/** Texts and events of all metrics of a chart, the newest first. */
function Texts({ lines }: { readonly lines: readonly (TextLine & Labelled)[] }) {
  const { names } = namingOf(lines)
  const rows = lines
    .map((line, index): Row => ({ ...line, name: names[index] as string }))
    .toSorted((a, b) => b.time - a.time || b.number - a.number)
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard.
    <section class="texts" aria-label="Values" tabIndex={0}>
      <Table
        rows={rows}
        keyOf={({ number, metric, name }) => `${number} ${metric} ${name}`}
        columns={new Set(names).size > 1 ? [TIME, SOURCE, VALUE] : [TIME, VALUE]}
      />
    </section>
  )
}

/** Those whose last value is the largest, in a steady order. */
function largestOf(all: readonly Drawn[]): readonly Drawn[] {
  if (all.length <= MAX_SHOWN) return all
  const largest = new Set(all.toSorted(byLast).slice(0, MAX_SHOWN))
  return all.filter((one) => largest.has(one))
}

function byLast(a: Drawn, b: Drawn): number {
  const [first, second] = [a, b].map((one) => lastOf(one) ?? Number.NEGATIVE_INFINITY) as [number, number]
  return second - first || 0
}

/** The last value that has come, or that is remembered. */
function lastOf({ series: { samples }, past, isRate }: Drawn): number | undefined {
  return lastShown(samples, isRate) ?? past?.columns.last(isRate)
}
