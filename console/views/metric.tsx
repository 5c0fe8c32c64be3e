/** One metric as a live chart, with its parameters to choose; other metrics can join it. */
import { useState } from 'preact/hooks'
import {
  Boards,
  type ChartSpec,
  chartLink,
  chartOfUrl,
  encodeChart,
  type Line,
  lineText,
  MAX_LINES_OF_CHART,
  type Scale,
} from '../board.ts'
import { BrowserStorage } from '../browser-storage.ts'
import { useEntries } from '../catalogue.ts'
import { linkInTime } from '../chart-time.ts'
import { ChartCard } from '../parts/chart-card.tsx'
import { ChartControls } from '../parts/chart-controls.tsx'
import { useChartPage } from '../parts/chart-page.ts'
import { Name } from '../parts/name.tsx'
import { MetricPicker, Parameters } from '../parts/parameters.tsx'
import { linkTo, type ViewProps } from '../route.ts'

const HEIGHT = 320

export function MetricView({ consumer, fleet, router }: ViewProps) {
  const { object, args } = router.route.value
  const spec = chartOfUrl(object, args)
  const page = useChartPage(consumer, fleet, router, object)
  const entries = useEntries(
    consumer,
    spec.lines.map(({ metric }) => metric),
  )
  const entry = entries?.get(object)
  const [line = { metric: object, args: {} }, ...others] = spec.lines
  const show = (changed: ChartSpec): void => router.replace(linkInTime(chartLink(changed), args))
  const isText = entry !== undefined && (entry.kind === 'event' || entry.type === 'string')
  // A pattern has many.
  const kinds = new Set([...(entries?.values() ?? [])].map(({ isCounter }) => isCounter))
  const byKind = kinds.size > 1 ? undefined : kinds.has(true) ? 'rate' : 'total'
  return (
    <>
      <header>
        <h1 class="code">
          <Name text={object} max={72} />
        </h1>
        {entry === undefined ? null : (
          <p class="note">
            {[entry.unit === '1' ? '' : entry.unit.trim(), entry.type, entry.kind].filter(Boolean).join(', ')}
          </p>
        )}
      </header>
      {entry === undefined || entry.description === '' ? null : (
        <p>
          <bdi>{entry.description}</bdi>
        </p>
      )}
      {entry === undefined ? null : (
        <Parameters
          consumer={consumer}
          entry={entry}
          args={line.args}
          onChange={(changed) => show({ ...spec, lines: [{ ...line, args: changed }, ...others] })}
        />
      )}
      <ChartCard
        consumer={consumer}
        page={page}
        spec={spec}
        height={HEIGHT}
        hasList
        head={
          <div class="head">
            {isText ? null : <Growth spec={spec} byKind={byKind} onChange={(scale) => show({ ...spec, scale })} />}
            <Pin spec={spec} />
            {isText ? null : <ChartControls page={page} />}
          </div>
        }
      />
      <section class="card padded joined" aria-label="Metrics in this chart">
        {others.map((other, index) => (
          <span class="pill" key={encodeChart({ lines: [other] })}>
            <a class="code" href={linkInTime(linkTo('metrics', other.metric, other.args), args)}>
              <Name text={lineText(other)} />
            </a>{' '}
            <button
              type="button"
              class="plain"
              aria-label={`Remove ${other.metric}`}
              onClick={() => show({ ...spec, lines: spec.lines.filter((_, at) => at !== index + 1) })}
            >
              ×
            </button>
          </span>
        ))}
        {spec.lines.length >= MAX_LINES_OF_CHART ? null : (
          <MetricPicker
            consumer={consumer}
            onPick={(metric) => show({ ...spec, lines: withLine(spec.lines, joining(metric, line)) })}
          />
        )}
      </section>
    </>
  )
}

interface GrowthProps {
  readonly spec: ChartSpec
  /** How the metrics are drawn if nothing is chosen; undefined if some only grow and others do not. */
  readonly byKind: Scale | undefined
  readonly onChange: (scale: Scale | undefined) => void
}

/** What is chosen as it would be anyway is no choice: the link stays as it was. */
function Growth({ spec, byKind, onChange }: GrowthProps) {
  const scale = spec.scale ?? byKind
  return (
    <label class="check">
      <input
        type="checkbox"
        checked={scale === 'rate'}
        indeterminate={scale === undefined}
        onChange={({ currentTarget }) => {
          const chosen = currentTarget.checked ? 'rate' : 'total'
          onChange(chosen === byKind ? undefined : chosen)
        }}
      />{' '}
      growth per second{scale === 'total' && byKind !== 'total' ? ' (it only grows)' : ''}
    </label>
  )
}

/** A metric that joins a chart is that of the same host and producer, whether or not the catalogue has answered by then. */
function joining(metric: string, { args: { host, producer } }: Line): Line {
  return { metric, args: { ...(host !== undefined && { host }), ...(producer !== undefined && { producer }) } }
}

/** Each metric once with the same arguments. */
function withLine(lines: readonly Line[], line: Line): readonly Line[] {
  const keyOf = (one: Line): string => encodeChart({ lines: [one] })
  return lines.some((one) => keyOf(one) === keyOf(line)) ? lines : [...lines, line]
}

function Pin({ spec }: { readonly spec: ChartSpec }) {
  const [state, setState] = useState<{ readonly key: string; readonly problem: string }>()
  const key = encodeChart(spec)
  if (state?.key !== key) {
    return (
      <button type="button" onClick={() => setState({ key, problem: new Boards(new BrowserStorage()).pin(spec) })}>
        Pin
      </button>
    )
  }
  return (
    <span role="status" class={state.problem === '' ? 'note' : 'problem'}>
      {state.problem === '' ? (
        <>
          pinned to the <a href={linkTo('board')}>board</a>
        </>
      ) : (
        state.problem
      )}
    </span>
  )
}
