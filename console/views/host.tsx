/** One host: all its metrics with their last values, and a chart of each on demand. */
import { useMemo } from 'preact/hooks'
import type { Sample } from '../../client/browser.ts'
import { chartLink } from '../board.ts'
import { useCatalogue } from '../catalogue.ts'
import { linkInTime } from '../chart-time.ts'
import { hostCharts } from '../host-charts.ts'
import { useRememberedHost } from '../host-history.ts'
import { useHostValues } from '../host-values.ts'
import { labelsText } from '../labels.ts'
import { ChartCard } from '../parts/chart-card.tsx'
import { ChartControls } from '../parts/chart-controls.tsx'
import { useChartPage } from '../parts/chart-page.ts'
import { ExpressionCard } from '../parts/expression-chart.tsx'
import { Name } from '../parts/name.tsx'
import { Search } from '../parts/search.tsx'
import { Loading, State } from '../parts/state.tsx'
import { Cells, type Column, Heads } from '../parts/table.tsx'
import { VirtualTable } from '../parts/virtual-table.tsx'
import { argumentsFor, hostText, OWN } from '../producers.ts'
import { linkTo, type ViewProps } from '../route.ts'
import { formatCount, formatDuration, formatMeasured, formatUtc } from '../units.ts'

const CHART_HEIGHT = 180

interface Row {
  readonly key: string
  readonly metric: string
  readonly args: Readonly<Record<string, string>>
  readonly sample: Sample
}

export function HostView({ consumer, fleet, router }: ViewProps) {
  const { object: host, args } = router.route.value
  const producer = args.get('producer') ?? OWN
  const page = useChartPage(consumer, fleet, router, hostText(host, producer))
  const place = { host, ...argumentsFor(producer) }
  const answer = useHostValues(consumer, host, producer)
  const { entries } = useCatalogue(consumer)
  const units = useMemo(() => new Map(entries.map(({ name, unit }) => [name, unit])), [entries])
  const text = args.get('match') ?? ''
  const rows = useMemo(() => (answer.kind === 'answer' ? rowsOf(answer.samples, place) : []), [answer, host, producer])
  const found = rows.filter(({ key }) => key.toLowerCase().includes(text.trim().toLowerCase()))
  const isSilent = rows.some(({ metric, sample }) => metric.endsWith('.host.up') && sample.plain === false)
  const isGone = answer.kind === 'answer' && rows.length === 0
  // Of other servers nothing is remembered here.
  const isAsked = isGone && producer === OWN && page.isRemembered.value === true
  const remembered = useRememberedHost(consumer, host, isAsked)
  const metrics = isGone ? (remembered ?? new Set<string>()) : new Set(rows.map(({ metric }) => metric))
  const charts = hostCharts(metrics, place, producer === OWN && page.isRemembered.value === true)
  const columns: readonly Column<Row>[] = [
    {
      title: 'Name',
      cellLook: 'code',
      cell: ({ key, metric, args: chosen }) => (
        <a href={linkTo('metrics', metric, chosen)}>
          <Name text={key} />
        </a>
      ),
    },
    {
      title: 'Last value',
      look: 'number value-column',
      cell: ({ metric, sample }) => shownValue(sample, units.get(metric) ?? ''),
    },
    {
      title: 'Age',
      look: 'number short wide',
      cell: ({ sample }) => (
        <time title={formatUtc(sample.time)}>{answer.kind === 'answer' ? ageOf(sample, answer.time) : ''}</time>
      ),
    },
  ]
  return (
    <>
      <header>
        <h1 class="code">
          <Name text={host} max={72} />
        </h1>
        {producer === OWN ? null : (
          <p class="note">
            of{' '}
            <a href={linkTo('hosts', '', { match: producer })}>
              <Name text={producer} max={40} />
            </a>
          </p>
        )}
        {answer.kind === 'answer' && rows.length > 0 ? (
          <p class="pill">
            {isSilent ? <State look="attention" text="silent" /> : <State look="good" text="reports" />}
          </p>
        ) : null}
        <Search
          label="Search metrics of this host"
          text={text}
          onText={(value) =>
            router.replace(
              linkInTime(
                linkTo('hosts', host, { ...argumentsFor(producer), ...(value !== '' && { match: value }) }),
                router.route.peek().args,
              ),
            )
          }
        />
      </header>
      {answer.kind === 'refused' ? (
        <p class="banner" role="alert">
          {answer.reason}
        </p>
      ) : null}
      {charts.length === 0 ? null : (
        <div class="chart-bar">
          <ChartControls page={page} />
        </div>
      )}
      {charts.length === 0 ? null : (
        <div class="columns charts">
          {charts.map(({ title, spec }) => {
            const head = (
              <div class="head">
                <h2>
                  <a href={linkInTime(chartLink(spec), args)}>{title}</a>
                </h2>
              </div>
            )
            const shown = { consumer, page, head, height: CHART_HEIGHT }
            return spec.expr === undefined ? (
              <ChartCard key={title} spec={spec} {...shown} />
            ) : (
              <ExpressionCard key={title} expr={spec.expr} {...shown} />
            )
          })}
        </div>
      )}
      {answer.kind === 'waiting' ? <Loading what="the metrics of this host" /> : null}
      {answer.kind !== 'answer' ? null : isGone ? (
        isAsked && remembered === undefined ? (
          <Loading what="what is remembered of this host" />
        ) : (
          <p class="empty" role="alert">
            {charts.length === 0
              ? 'There is no such host, or you may not see it. '
              : 'Nothing comes from this host now. The charts show what is remembered of it: choose a time at which it was there. '}
            <a href={linkTo('hosts')}>All hosts</a>
          </p>
        )
      ) : (
        <section class="card" aria-label="Metrics">
          <div class="head">
            <h2>
              {formatCount(found.length)} of {formatCount(rows.length)}
            </h2>
            {answer.isCut ? <p class="note">The list was too long for one answer: search for the rest.</p> : null}
          </div>
          <VirtualTable
            label="Metrics"
            rows={found}
            keyOf={({ key }) => key}
            head={<Heads columns={columns} />}
            cells={(row) => <Cells columns={columns} row={row} />}
          />
        </section>
      )}
    </>
  )
}

function rowsOf(
  samples: readonly Sample[],
  place: { readonly host: string; readonly producer?: string },
): readonly Row[] {
  const rows = samples.map((sample): Row => {
    const { labels } = sample
    const args: Record<string, string> = { ...place }
    for (const [name, value] of Object.entries(labels)) if (value !== undefined && value !== '') args[name] = value
    const { host: _, producer: __, ...others } = args
    return { key: [sample.metric, labelsText(others)].filter(Boolean).join(' '), metric: sample.metric, args, sample }
  })
  return rows.toSorted((a, b) => (a.key < b.key ? -1 : Number(a.key > b.key)))
}

function shownValue({ number, plain }: Sample, unit: string) {
  if (number !== undefined) return formatMeasured(number, unit)
  return <Name text={plain === null ? 'none' : String(plain)} max={32} />
}

function ageOf({ time }: Sample, newest: number): string {
  const seconds = (newest - time) / 1e6
  return seconds < 1 ? 'now' : formatDuration(seconds)
}
