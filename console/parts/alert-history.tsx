/** The alerts that were pending or have fired, each with a line of its states; and that line for one alert. */
import { useState } from 'preact/hooks'
import type { Consumer } from '../../client/browser.ts'
import {
  type AlertHistory,
  byRecency,
  HISTORY_SECONDS,
  type PastAlert,
  type StateSpan,
  secondsIn,
  USUAL_HISTORY_SECONDS,
  useAlertHistory,
} from '../alert-history.ts'
import { type ActiveAlert, isMeant, severityLook } from '../alerts.ts'
import { lengthText } from '../chart-time.ts'
import { linkTo, type ViewProps } from '../route.ts'
import type { ServerClock } from '../series-watch.ts'
import { formatDuration, formatMoment, formatUtc } from '../units.ts'
import { Name } from './name.tsx'
import { Search } from './search.tsx'
import { Loading, Unreadable } from './state.tsx'
import { StateLine, spanText } from './state-line.tsx'
import { type Column, PagedTable } from './table.tsx'

const PAGE = 50
/** Times of one alert that are listed. */
const MOST_LISTED = 5
/** Labels that have columns of their own, or say nothing. */
const SHOWN_APART = ['alertname', 'severity']

export function AlertHistoryList({ consumer, fleet, router }: ViewProps) {
  const { args } = router.route.value
  const text = args.get('match') ?? ''
  const seconds = HISTORY_SECONDS.find((one) => lengthText(one) === args.get('range')) ?? USUAL_HISTORY_SECONDS
  const { history, refusal } = useAlertHistory(consumer, fleet, seconds)
  const linkWith = (match: string, range: number): string =>
    linkTo('alerts', 'history', {
      ...(match !== '' && { match }),
      ...(range !== USUAL_HISTORY_SECONDS && { range: lengthText(range) }),
    })
  const found = history?.alerts.filter((alert) => isMeant(alert, text)).sort(byRecency)
  return (
    <>
      <search class="alert-filter">
        <p class="choices">
          {HISTORY_SECONDS.map((one) => (
            <a key={one} href={linkWith(text, one)} aria-current={one === seconds ? 'true' : undefined}>
              {lengthText(one)}
            </a>
          ))}
        </p>
        <Search
          label="Search past alerts"
          placeholder="Words of labels: host=web1 disk"
          text={text}
          onText={(value) => router.replace(linkWith(value, seconds))}
        />
      </search>
      {refusal !== undefined ? (
        <>
          <Unreadable what="history of alerts" refusal={refusal} />
          {refusal.isByServer ? null : <p class="note">A shorter time may be readable.</p>}
        </>
      ) : null}
      {history === undefined && refusal === undefined ? <Loading what="the history of alerts" /> : null}
      {history?.hasMore ? <p class="note">There are more alerts than are shown here: choose a shorter time.</p> : null}
      {history === undefined || found === undefined ? null : (
        <section class="card past-alerts" aria-label="Past alerts">
          <PagedTable
            look="stacked"
            rows={found}
            keyOf={({ key }) => key}
            columns={columnsFor(history)}
            page={PAGE}
            empty={
              <p class="empty" role="status">
                {history.alerts.length > 0
                  ? 'No alert matches.'
                  : `No alert was pending or has fired in the last ${formatDuration(seconds)}.`}
              </p>
            }
          />
        </section>
      )}
      {history === undefined ? null : <Explained history={history} />}
    </>
  )
}

function columnsFor(history: AlertHistory): readonly Column<PastAlert>[] {
  return [
    {
      title: 'Alert',
      cell: ({ name, severity, labels }) => (
        <>
          <Name text={name} />{' '}
          {severity === '' ? null : (
            <span class={`pill ${severityLook(severity)}`}>
              <bdi>{severity}</bdi>
            </span>
          )}
          <small class="more code">
            <Name text={otherLabels(labels)} max={200} />
          </small>
        </>
      ),
    },
    {
      title: 'States',
      cellLook: 'whole',
      cell: (alert) => (
        <>
          <StateLine alert={alert} history={history} />
          <Ends history={history} />
        </>
      ),
    },
    { title: 'Last', cell: (alert) => <Last alert={alert} history={history} /> },
  ]
}

function otherLabels(labels: PastAlert['labels']): string {
  return labels
    .filter(([name]) => !SHOWN_APART.includes(name))
    .map((pair) => pair.join('='))
    .join(', ')
}

function Last({ alert, history: { to } }: { readonly alert: PastAlert; readonly history: AlertHistory }) {
  const last = alert.spans.at(-1)
  if (last === undefined) return null
  const lasted = secondsIn(alert, 'firing')
  return (
    <>
      {last.state}{' '}
      {last.to >= to ? 'now' : <time title={formatUtc(last.to * 1e6)}>until {formatMoment(last.to * 1e6)}</time>}
      <small class="more">{lasted === 0 ? 'has not fired' : `fired for ${formatDuration(lasted)}`}</small>
    </>
  )
}

/** The times at both ends of a line. */
function Ends({ history: { from, to } }: { readonly history: Pick<AlertHistory, 'from' | 'to'> }) {
  return (
    <span class="ends note" aria-hidden="true">
      <time title={formatUtc(from * 1e6)}>{formatMoment(from * 1e6)}</time>
      <time title={formatUtc(to * 1e6)}>{formatMoment(to * 1e6)}</time>
    </span>
  )
}

function Explained({ history: { exact } }: { readonly history: Pick<AlertHistory, 'exact'> }) {
  return (
    <p class="note">
      High: firing; half as high: pending; empty: neither, or not evaluated. Times are exact to {lengthText(exact)}.
    </p>
  )
}

interface HistoryOfAlertProps {
  readonly consumer: Consumer
  readonly clock: ServerClock
  readonly alert: Pick<ActiveAlert, 'name' | 'labels' | 'state'>
  /** How often it is evaluated, in seconds. */
  readonly interval: number
}

/** The line of one alert, and the last times of its states. */
export function HistoryOfAlert({ consumer, clock, alert: { name, labels, state }, interval }: HistoryOfAlertProps) {
  const [seconds, setSeconds] = useState<number>(USUAL_HISTORY_SECONDS)
  const { history, refusal } = useAlertHistory(consumer, clock, seconds, { labels, interval })
  const found = history?.alerts.find((one) => isSame(one.labels, labels))?.spans ?? []
  const spans = history === undefined ? [] : shownSpans(found, state, history)
  const listed = spans.slice(-MOST_LISTED).reverse()
  return (
    <section class="alert-history" aria-label={`History of ${name}`}>
      <div class="head">
        <h3>History</h3>
        <p class="choices">
          {HISTORY_SECONDS.map((one) => (
            <button
              key={one}
              type="button"
              class="plain"
              aria-pressed={one === seconds}
              aria-label={`The last ${lengthText(one)}`}
              onClick={() => setSeconds(one)}
            >
              {lengthText(one)}
            </button>
          ))}
        </p>
      </div>
      {refusal !== undefined ? <Unreadable what="history of alerts" refusal={refusal} /> : null}
      {history === undefined ? (
        refusal === undefined ? (
          <Loading what="the history" />
        ) : null
      ) : (
        <div class="padded">
          <StateLine alert={{ name, spans }} history={history} />
          <Ends history={history} />
          {listed.length === 0 ? null : (
            <ul class="spans" aria-label="The last states">
              {listed.map((span) => (
                <li key={span.from}>{spanText(span, history.to)}</li>
              ))}
            </ul>
          )}
          <Explained history={history} />
        </div>
      )}
    </section>
  )
}

/** Within the time that is shown. The last one goes on: the evaluation that is due now is not stored yet. */
function shownSpans(
  spans: readonly StateSpan[],
  state: ActiveAlert['state'],
  { from, to }: AlertHistory,
): readonly StateSpan[] {
  const last = spans.at(-1)
  return spans.map((span) => ({
    ...span,
    from: Math.max(from, span.from),
    to: span === last && span.state === state ? to : Math.min(to, span.to),
  }))
}

function isSame(one: PastAlert['labels'], other: PastAlert['labels']): boolean {
  const wanted = new Map(other.filter(([, text]) => text !== ''))
  return one.length === wanted.size && one.every(([name, text]) => wanted.get(name) === text)
}
