/** What fires and what is pending: the most urgent first, and what is silenced last. */
import { useState } from 'preact/hooks'
import { useActiveAlerts, useAlertControls, useNotifiers, useRules, useSilences } from '../alert-lists.ts'
import {
  type ActiveAlert,
  byUrgency,
  failingNotifiers,
  hasNoData,
  isMeant,
  isOfNotifier,
  type NotifierLine,
  severityRank,
} from '../alerts.ts'
import { linkTo, type ViewProps } from '../route.ts'
import { formatCount, formatDuration, formatUtc } from '../units.ts'
import { AlertCard } from './alert-card.tsx'
import { Name } from './name.tsx'
import { Search } from './search.tsx'
import { Loading, Unreadable } from './state.tsx'

const PAGE = 50
const MOST_SEVERITIES = 8

const SHOWN = ['all', 'firing', 'pending', 'no data', 'silenced'] as const
type Shown = (typeof SHOWN)[number]

export function ActiveAlerts({ consumer, fleet, router, identity }: ViewProps) {
  const active = useActiveAlerts(consumer, identity)
  const silences = useSilences(consumer, identity, false)
  const notifiers = useNotifiers(consumer, identity)
  const controls = useAlertControls(consumer)
  const [pages, setPages] = useState(1)
  const { args } = router.route.value
  const text = args.get('match') ?? ''
  const shown = SHOWN.find((one) => one === args.get('show')) ?? 'all'
  if (active.refusal !== undefined) return <Unreadable what="alerts" refusal={active.refusal} />
  if (active.lines === undefined) return <Loading what="the alerts" />
  const all = active.lines.filter((alert) => !isOfNotifier(alert))
  const open = args.get('alert')
  const linkWith = (name: string, value: string): string => {
    const next = new URLSearchParams(args)
    if (value === '') next.delete(name)
    else next.set(name, value)
    return linkTo('alerts', '', Object.fromEntries(next))
  }
  const found = all.filter((alert) => isShown(alert, shown) && isMeant(alert, text)).sort(byUrgency)
  const reload = (): void => {
    active.reload()
    silences.reload()
  }
  const seconds = fleet.nowMs / 1000
  return (
    <>
      <Failing notifiers={notifiers.lines ?? []} now={seconds} />
      <search class="alert-filter">
        <p class="choices">
          {SHOWN.map((one) => (
            <a
              key={one}
              href={linkWith('show', one === 'all' ? '' : one)}
              aria-current={one === shown ? 'true' : undefined}
            >
              {one} {formatCount(all.filter((alert) => isShown(alert, one)).length)}
            </a>
          ))}
        </p>
        <Severities all={all} linkOf={(word) => linkWith('match', word)} />
        <Search
          label="Search alerts"
          placeholder="Words of labels: host=web1 disk"
          text={text}
          onText={(value) => router.replace(linkWith('match', value))}
        />
      </search>
      {controls !== undefined && !controls.has('alert.acknowledge') && all.length > 0 ? (
        <p class="note">Your role may not acknowledge or silence alerts.</p>
      ) : null}
      {active.hasMore ? <p class="note">There are more alerts than are shown here.</p> : null}
      {found.length === 0 ? (
        <p class="empty" role="status">
          {all.length > 0 ? 'No alert matches.' : <NoAlerts consumer={consumer} identity={identity} />}
        </p>
      ) : null}
      {found.slice(0, pages * PAGE).map((alert) => (
        <AlertCard
          key={alert.key}
          consumer={consumer}
          clock={fleet}
          alert={alert}
          identity={identity}
          silence={silences.lines?.find(({ id }) => id === alert.silence)}
          controls={controls ?? new Set()}
          isOpen={open === alert.key}
          toggleLink={linkWith('alert', open === alert.key ? '' : alert.key)}
          linkOf={(word) => linkWith('match', word)}
          onChange={reload}
        />
      ))}
      {found.length > pages * PAGE ? (
        <p class="buttons">
          <button type="button" onClick={() => setPages(pages + 1)}>
            Show {formatCount(Math.min(PAGE, found.length - pages * PAGE))} more
          </button>
        </p>
      ) : null}
    </>
  )
}

function isShown(alert: ActiveAlert, shown: Shown): boolean {
  const { state, silence } = alert
  if (shown === 'all') return true
  if (shown === 'no data') return hasNoData(alert)
  if (shown === 'silenced') return silence !== ''
  return state === shown && silence === ''
}

function NoAlerts({ consumer, identity }: Pick<ViewProps, 'consumer' | 'identity'>) {
  const { lines } = useRules(consumer, identity)
  if (lines?.length === 0) return <>No rules are evaluated, so there are no alerts.</>
  return (
    <>
      No alert is pending, and none fires. <a href={linkTo('alerts', 'history')}>History</a>{' '}
      <a href={linkTo('alerts', 'rules')}>Rules</a>
    </>
  )
}

/** Of alerts with more than one severity: how many there are of each, the worst first. */
function Severities({
  all,
  linkOf,
}: {
  readonly all: readonly ActiveAlert[]
  readonly linkOf: (word: string) => string
}) {
  const counts = new Map<string, number>()
  for (const { severity } of all) counts.set(severity, (counts.get(severity) ?? 0) + 1)
  if (counts.size < 2) return null
  const severities = [...counts.keys()].filter(Boolean).sort((one, other) => severityRank(one) - severityRank(other))
  return (
    <nav class="choices" aria-label="Severities">
      {severities.slice(0, MOST_SEVERITIES).map((severity) => (
        <a key={severity} href={linkOf(`severity=${severity}`)}>
          <Name text={severity} max={24} /> {formatCount(counts.get(severity) ?? 0)}
        </a>
      ))}
    </nav>
  )
}

/** Of what no rule knows: somebody ought to be told, and is not. */
function Failing({ notifiers, now }: { readonly notifiers: readonly NotifierLine[]; readonly now: number }) {
  return (
    <>
      {failingNotifiers(notifiers, now).map(({ name, problem, failingSince }) => (
        <p key={name} class="banner" role="alert">
          <strong>CinnabarNotifierFails</strong>: the notifier{' '}
          <a href={linkTo('alerts', 'notifications', { notifier: name })}>
            <bdi>{name}</bdi>
          </a>{' '}
          has told nobody for <time title={formatUtc(failingSince * 1e6)}>{formatDuration(now - failingSince)}</time>:{' '}
          <bdi>{problem}</bdi>
        </p>
      ))}
    </>
  )
}
