/** One host: all its metrics with their last values, and a chart of each on demand. */
import { useEffect, useMemo } from 'preact/hooks'
import type { Sample } from '../../client/browser.ts'
import { type ChartSpec, chartLink } from '../board.ts'
import { useCatalogue } from '../catalogue.ts'
import { useHostValues } from '../host-values.ts'
import { ROLES } from '../hosts.ts'
import { labelsText } from '../labels.ts'
import { ChartCard } from '../parts/chart-card.tsx'
import { ChartControls } from '../parts/chart-controls.tsx'
import { ChartPage } from '../parts/chart-page.ts'
import { Name } from '../parts/name.tsx'
import { Search } from '../parts/search.tsx'
import { Loading, State } from '../parts/state.tsx'
import { Cells, type Column, Heads } from '../parts/table.tsx'
import { VirtualTable } from '../parts/virtual-table.tsx'
import { argumentsFor, OWN } from '../producers.ts'
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
  const page = useMemo(() => new ChartPage(5, fleet), [host, producer, fleet])
  useEffect(() => page.begin(), [page])
  const place = { host, ...argumentsFor(producer) }
  const answer = useHostValues(consumer, host, producer)
  const { entries } = useCatalogue(consumer)
  const units = useMemo(() => new Map(entries.map(({ name, unit }) => [name, unit])), [entries])
  const text = args.get('match') ?? ''
  const rows = useMemo(() => (answer.kind === 'answer' ? rowsOf(answer.samples, place) : []), [answer, host, producer])
  const found = rows.filter(({ key }) => key.toLowerCase().includes(text.trim().toLowerCase()))
  const isSilent = rows.some(({ metric, sample }) => metric.endsWith('.host.up') && sample.plain === false)
  const charts = ROLES.flatMap(({ title, metrics }) => {
    const found = metrics.find(({ name }) => rows.some(({ metric }) => metric === name))
    if (found === undefined) return []
    const { name: metric, isRate } = found
    const spec: ChartSpec = { lines: [{ metric, args: place }], ...(isRate && { scale: 'rate' }) }
    return [{ title, metric, spec }]
  })
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
              linkTo('hosts', host, {
                ...argumentsFor(producer),
                ...(value !== '' && { match: value }),
              }),
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
        <div class="columns charts">
          {charts.map(({ title, metric, spec }, index) => (
            <ChartCard
              key={metric}
              consumer={consumer}
              page={page}
              spec={spec}
              height={CHART_HEIGHT}
              head={
                <div class="head">
                  <h2>
                    <a href={chartLink(spec)}>{title}</a>
                  </h2>
                  {index === 0 ? <ChartControls page={page} /> : null}
                </div>
              }
            />
          ))}
        </div>
      )}
      {answer.kind === 'waiting' ? <Loading what="the metrics of this host" /> : null}
      {answer.kind !== 'answer' ? null : rows.length === 0 ? (
        <p class="empty" role="alert">
          There is no such host, or you may not see it. <a href={linkTo('hosts')}>All hosts</a>
        </p>
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
