/** Search over the catalogue, and one metric as a live chart. */
import { useEffect, useMemo, useState } from 'preact/hooks'
import type { Consumer } from '../../client/browser.ts'
import { Chart, MAX_SHOWN } from '../parts/chart.tsx'
import { recordsOf, useQuery } from '../parts/query.ts'
import { linkTo, type Router, type ViewProps } from '../route.ts'
import { SeriesWatch, type WatchedSeries } from '../series-watch.ts'
import { formatMeasured } from '../units.ts'

const LIMIT = 200
const SPANS = [5, 15, 60] as const
const TYPING_MS = 150

interface Parameter {
  readonly name: string
  readonly description: string
}

interface CatalogueEntry {
  readonly name: string
  readonly kind: string
  readonly type: string
  readonly unit: string
  readonly description: string
  readonly parameters: readonly Parameter[]
}

export function MetricsView({ consumer, router }: ViewProps) {
  const { object, args } = router.route.value
  return object === '' ? (
    <Search consumer={consumer} router={router} />
  ) : (
    <Metric key={object} consumer={consumer} name={object} args={args} />
  )
}

interface SearchProps {
  readonly consumer: Consumer
  readonly router: Router
}

function Search({ consumer, router }: SearchProps) {
  const text = router.route.value.args.get('match') ?? ''
  const found = useCatalogue(consumer, text.includes('*') ? text : `*${text}*`)
  return (
    <>
      <header>
        <h1>Metrics</h1>
        <input
          type="search"
          class="search"
          placeholder="Part of a name, or a pattern with *"
          aria-label="Search metrics"
          value={text}
          onInput={({ currentTarget }) =>
            router.replace(linkTo('metrics', '', currentTarget.value === '' ? {} : { match: currentTarget.value }))
          }
        />
      </header>
      <section class="card" aria-label="Metrics">
        {found === undefined ? null : found.length === 0 ? (
          <p class="empty">No metric matches “{text}”.</p>
        ) : (
          <table>
            <thead>
              <tr>
                <th>Name</th>
                <th>Unit</th>
                <th class="wide">Type</th>
                <th class="wide">Description</th>
              </tr>
            </thead>
            <tbody>
              {found.slice(0, LIMIT).map(({ name, unit, type, description }) => (
                <tr key={name}>
                  <td class="code">
                    <a href={linkTo('metrics', name)}>{name}</a>
                  </td>
                  <td>{unit === '1' ? '' : unit}</td>
                  <td class="wide">{type}</td>
                  <td class="wide">{description}</td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
        {found !== undefined && found.length > LIMIT ? (
          <p class="empty">There are more than {LIMIT}: type more of the name.</p>
        ) : null}
      </section>
    </>
  )
}

function Metric({
  consumer,
  name,
  args,
}: {
  readonly consumer: Consumer
  readonly name: string
  readonly args: URLSearchParams
}) {
  const [minutes, setMinutes] = useState<number>(SPANS[0])
  const [isPaused, setPaused] = useState(false)
  const chosen = args.toString()
  const watch = useMemo(() => {
    return new SeriesWatch(
      consumer,
      name,
      Object.fromEntries(new URLSearchParams(chosen)),
      SPANS[SPANS.length - 1]! * 60_000,
    )
  }, [consumer, name, chosen])
  useEffect(() => {
    void watch.begin()
    return () => watch.end()
  }, [watch])
  const [entry] = useCatalogue(consumer, name) ?? []
  const { series, version, more, problem } = watch.state.value
  const unit = entry?.unit ?? ''
  const shown = largestOf(series)
  const hasNumbers = shown.some(({ values }) => values.some((value) => value !== null))
  return (
    <>
      <header>
        <h1 class="code">{name}</h1>
        {entry === undefined ? null : (
          <p class="note">
            {[entry.unit === '1' ? '' : entry.unit, entry.type, entry.kind].filter(Boolean).join(', ')}
          </p>
        )}
      </header>
      {entry === undefined || entry.description === '' ? null : <p>{entry.description}</p>}
      {problem === '' ? null : (
        <p class="banner" role="alert">
          {problem}
        </p>
      )}
      <section class="card" aria-label="Chart">
        <div class="head">
          <h2>{series.length + more} series</h2>
          <p class="choices">
            <button type="button" class="plain" aria-pressed={isPaused} onClick={() => setPaused(!isPaused)}>
              {isPaused ? 'go on' : 'pause'}
            </button>
            {SPANS.map((span) => (
              <button
                key={span}
                type="button"
                class="plain"
                aria-pressed={span === minutes}
                onClick={() => setMinutes(span)}
              >
                {span < 60 ? `${span} m` : '1 h'}
              </button>
            ))}
          </p>
        </div>
        {series.length === 0 ? <p class="empty">No value has come yet.</p> : null}
        {hasNumbers ? (
          <Chart series={shown} version={version} unit={unit} seconds={minutes * 60} isPaused={isPaused} />
        ) : (
          <Texts series={series} />
        )}
      </section>
      {series.length > MAX_SHOWN ? (
        <section class="card" aria-label="All series">
          <Values series={series} unit={unit} />
        </section>
      ) : null}
    </>
  )
}

function Texts({ series }: { readonly series: readonly WatchedSeries[] }) {
  return (
    <table>
      <tbody>
        {series.map(({ label, text }) => (
          <tr key={label}>
            <td class="code">{label}</td>
            <td>{text}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function Values({ series, unit }: { readonly series: readonly WatchedSeries[]; readonly unit: string }) {
  return (
    <table>
      <tbody>
        {series.map(({ label, values }) => (
          <tr key={label}>
            <td class="code">{label}</td>
            <td class="number">{formatMeasured(values.at(-1) ?? undefined, unit)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

/** Those whose last value is the largest. */
function largestOf(series: readonly WatchedSeries[]): readonly WatchedSeries[] {
  if (series.length <= MAX_SHOWN) return series
  const last = ({ values }: WatchedSeries): number => values.at(-1) ?? Number.NEGATIVE_INFINITY
  return series.toSorted((a, b) => last(b) - last(a)).slice(0, MAX_SHOWN)
}

/** The metrics that match a pattern, once nothing has been typed for a moment; undefined before the first answer. */
function useCatalogue(consumer: Consumer, match: string): readonly CatalogueEntry[] | undefined {
  const answer = useQuery(consumer, 'producer.metrics', { match, limit: LIMIT + 1 }, { delayMs: TYPING_MS })
  return answer.kind === 'answer' ? (recordsOf(answer.sample.plain) as unknown as readonly CatalogueEntry[]) : undefined
}
