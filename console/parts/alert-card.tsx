/** One alert: what it says, since when, and what can be done about it. Unfolded, its annotations, its chart, and who was told. */
import type { Consumer } from '../../client/browser.ts'
import { useNotifications, useRules } from '../alert-lists.ts'
import {
  ACKNOWLEDGED_SECONDS,
  type ActiveAlert,
  exactMatchersOf,
  hasNoData,
  linksIn,
  type Pair,
  ruleOf,
  type SilenceLine,
  severityLook,
} from '../alerts.ts'
import { expressionArgs } from '../expressions.ts'
import { linkTo } from '../route.ts'
import type { ServerClock } from '../series-watch.ts'
import { formatCount, formatDuration, formatMoment, formatNumber, formatUtc } from '../units.ts'
import { Action } from './action.tsx'
import { AlertChart } from './alert-chart.tsx'
import { HistoryOfAlert } from './alert-history.tsx'
import { useExecution } from './execution.ts'
import { Name } from './name.tsx'
import { SilenceButton } from './silence-form.tsx'

/** Annotations that are shown at once. */
const SUMMARIES = ['summary', 'description', 'message']
/** Notifications of one alert that are shown. */
const MOST_TOLD = 8
/** Of an alert whose rule cannot be read. */
const USUAL_INTERVAL_SECONDS = 60
const SHAPES = { critical: '▲', warning: '◆', info: '●' } as const

interface AlertCardProps {
  readonly consumer: Consumer
  readonly clock: ServerClock
  readonly alert: ActiveAlert
  readonly identity: string
  readonly silence: SilenceLine | undefined
  /** Those that may be run. */
  readonly controls: ReadonlySet<string>
  readonly isOpen: boolean
  readonly toggleLink: string
  /** Where the alerts are that a word means. */
  readonly linkOf: (word: string) => string
  readonly onChange: () => void
}

export function AlertCard(props: AlertCardProps) {
  const { consumer, clock, alert, identity, silence, controls, isOpen, toggleLink, linkOf, onChange } = props
  const { name, severity, state, labels } = alert
  const look = severityLook(severity)
  const isMuted = alert.silence !== ''
  const now = clock.nowMs / 1000
  const since = alert.fired || alert.since
  const summary = summaryOf(alert)
  const others = labels.filter(([label]) => label !== 'alertname' && label !== 'severity')
  return (
    <article class={`card alert ${look}${isMuted ? ' muted' : ''}`} aria-label={name}>
      <div class="alert-body">
        <div class="alert-title">
          <h2>
            <span class={`shape ${look}`} aria-hidden="true">
              {SHAPES[look]}
            </span>{' '}
            <a href={toggleLink} aria-expanded={isOpen}>
              <Name text={name} max={80} />
            </a>
          </h2>
          <p class="alert-state">
            {severity === '' ? null : (
              <a class={`pill ${look}`} href={linkOf(`severity=${severity}`)} title="Alerts with this severity">
                <Name text={severity} max={24} />
              </a>
            )}
            <span class="pill">{state}</span>
            {hasNoData(alert) ? <span class="pill">no data</span> : null}
            <span class="note">
              for{' '}
              <time title={`${formatMoment(since * 1e6)}, ${formatUtc(since * 1e6)}`}>
                {formatDuration(now - since)}
              </time>
              {alert.keptSince > 0 ? ', although it holds no more' : ''}
            </span>
          </p>
        </div>
        {summary === undefined ? null : (
          <p class="summary">
            <Linked text={summary} />
          </p>
        )}
        {others.length === 0 ? null : (
          <ul class="labels" aria-label="Labels">
            {others.map((pair) => (
              <li key={pair[0]}>
                <a href={linkOf(pair.join('='))} title="Alerts with this label">
                  <Name text={pair.join('=')} max={72} />
                </a>
              </li>
            ))}
          </ul>
        )}
        {isMuted ? <Muted silence={silence} now={now} /> : null}
      </div>
      <div class="alert-actions">
        {!isMuted && state === 'firing' && controls.has('alert.acknowledge') ? (
          <Acknowledge consumer={consumer} alert={alert} onDone={onChange} />
        ) : null}
        {!isMuted && controls.has('alert.silence') ? (
          <SilenceButton consumer={consumer} controls={controls} alert={alert} onDone={onChange} />
        ) : null}
        {silence !== undefined && controls.has('alert.unsilence') ? (
          <Action
            consumer={consumer}
            label={silence.isAcknowledgement ? 'End the acknowledgement' : 'End the silence'}
            object={`of ${name}`}
            question={`End it? It may hold back other alerts as well: ${silence.matchers}. Those that fire are told again.`}
            control="alert.unsilence"
            args={{ id: silence.id }}
            onDone={onChange}
          />
        ) : null}
        <a
          class="button"
          href={toggleLink}
          aria-expanded={isOpen}
          aria-label={`${isOpen ? 'Less' : 'Details'} of ${name}`}
        >
          {isOpen ? 'Less' : 'Details'}
        </a>
      </div>
      {isOpen ? <Details consumer={consumer} clock={clock} alert={alert} identity={identity} /> : null}
    </article>
  )
}

function summaryOf({ annotations }: Pick<ActiveAlert, 'annotations'>): string | undefined {
  return SUMMARIES.map((wanted) => annotations.find(([of]) => of === wanted)?.[1]).find(Boolean)
}

/** At once and without a question: it loses nothing, and can be ended. */
function Acknowledge({
  consumer,
  alert,
  onDone,
}: Pick<AlertCardProps, 'consumer' | 'alert'> & { readonly onDone: () => void }) {
  const { run, execute, again } = useExecution(consumer, ({ outcome }) => {
    if (outcome === 'ok') onDone()
  })
  const isRunning = run.kind === 'running'
  const press = (): void => {
    if (isRunning) return
    const args = { matchers: exactMatchersOf(alert).join('\n'), seconds: BigInt(ACKNOWLEDGED_SECONDS) }
    void (run.kind === 'lost' ? again() : execute('alert.acknowledge', () => args))
  }
  const problem =
    run.kind === 'refused' || run.kind === 'lost'
      ? run.text
      : run.kind === 'ended' && run.outcome !== 'ok'
        ? [run.outcome, run.detail].filter(Boolean).join(': ')
        : ''
  return (
    <>
      <button
        type="button"
        class="first"
        aria-disabled={isRunning}
        aria-label={`Acknowledge ${alert.name}`}
        onClick={press}
      >
        Acknowledge
      </button>
      <span class="problem" role="status">
        {problem}
      </span>
    </>
  )
}

function Muted({ silence, now }: { readonly silence: SilenceLine | undefined; readonly now: number }) {
  if (silence === undefined) return <p class="note">silenced</p>
  const { isAcknowledgement, author, ends, comment } = silence
  return (
    <p class="note">
      {isAcknowledgement ? 'acknowledged' : 'silenced'} by <Name text={author} max={40} /> for another{' '}
      <time title={formatUtc(ends * 1e6)}>{formatDuration(Math.max(0, ends - now))}</time>
      {comment === '' ? null : (
        <>
          : <bdi>{comment}</bdi>
        </>
      )}
    </p>
  )
}

function Details({
  consumer,
  clock,
  alert,
  identity,
}: Pick<AlertCardProps, 'consumer' | 'clock' | 'alert' | 'identity'>) {
  const { annotations, value, since, fired, missingSince, group, file } = alert
  const rules = useRules(consumer, identity, group)
  const rule = ruleOf(alert, rules.lines)
  const isThere = rules.lines !== undefined || rules.refusal !== undefined
  const rows: readonly Pair[] = [
    ...annotations.filter(([, text]) => text !== summaryOf(alert)),
    ['value', formatNumber(value)],
    ['holds since', formatMoment(since * 1e6)],
    ...(fired > 0 ? ([['fires since', formatMoment(fired * 1e6)]] as const) : []),
    ...(missingSince > 0 ? ([['no data since', formatMoment(missingSince * 1e6)]] as const) : []),
    ['group', `${group}, ${file}`],
  ]
  return (
    <div class="alert-details">
      <table class="facts">
        <tbody>
          {rows.map(([name, text]) => (
            <tr key={name}>
              <th scope="row">
                <Name text={name} max={32} />
              </th>
              <td class="linked">
                <Linked text={text} />
              </td>
            </tr>
          ))}
          {rule === undefined ? null : (
            <tr>
              <th scope="row">expression</th>
              <td class="code linked">
                <a href={linkTo('query', '', expressionArgs([{ expr: rule.expr, show: 'chart' }]))}>{rule.expr}</a>
              </td>
            </tr>
          )}
          <tr>
            <th scope="row">told</th>
            <td>
              <Told consumer={consumer} identity={identity} alert={alert} />
            </td>
          </tr>
        </tbody>
      </table>
      <div>
        {rule === undefined ? null : <AlertChart consumer={consumer} clock={clock} alert={alert} rule={rule} />}
        {isThere ? (
          <HistoryOfAlert
            consumer={consumer}
            clock={clock}
            alert={alert}
            interval={rule?.interval ?? USUAL_INTERVAL_SECONDS}
          />
        ) : null}
      </div>
    </div>
  )
}

/** Who was told of it since it holds, when, and with what answer. */
function Told({ consumer, identity, alert }: Pick<AlertCardProps, 'consumer' | 'identity' | 'alert'>) {
  const { lines, refusal } = useNotifications(consumer, identity, { alert: alert.fingerprint })
  const own = lines?.filter(({ time }) => time >= alert.since * 1e6) ?? []
  if (own.length === 0) {
    if (alert.told !== '') return <bdi>{alert.told}</bdi>
    return lines === undefined && refusal === undefined ? <>…</> : <>nobody yet</>
  }
  return (
    <>
      <ul class="told">
        {own.slice(0, MOST_TOLD).map(({ key, time, notifier, outcome, answer, firing, resolved }) => (
          <li key={key}>
            <time title={formatUtc(time)}>{formatMoment(time)}</time>{' '}
            <a href={linkTo('alerts', 'notifications', { notifier })}>
              <bdi>{notifier}</bdi>
            </a>{' '}
            {outcome}: <Name text={answer} max={60} />{' '}
            <span class="note">
              {[firing > 0 ? `${firing} firing` : '', resolved > 0 ? `${resolved} resolved` : '']
                .filter(Boolean)
                .join(', ')}
            </span>
          </li>
        ))}
      </ul>
      {own.length > MOST_TOLD ? <p class="note">and {formatCount(own.length - MOST_TOLD)} more before</p> : null}
    </>
  )
}

/** Addresses of the web in it are links. */
function Linked({ text }: { readonly text: string }) {
  return (
    <bdi>
      {linksIn(text).map(({ text: part, href }, index) =>
        href === undefined ? (
          part
        ) : (
          <a key={index} href={href} target="_blank" rel="noreferrer noopener">
            {part}
          </a>
        ),
      )}
    </bdi>
  )
}
