/** The frame of the console: the sign-in, or the rail with the views, and what every view shows about the connection. */
import type { VNode } from 'preact'
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks'
import type { Consumer } from '../client/browser.ts'
import { tenantOf } from './alerts.ts'
import { SHARED } from './board-link.ts'
import { Fleet } from './fleet.ts'
import { Shortcuts } from './parts/shortcuts.tsx'
import { NoSuchPage } from './parts/state.tsx'
import { useIsListed } from './query.ts'
import { linkTo, type Router, type ViewProps } from './route.ts'
import type { Link, Session } from './session.ts'
import { formatTime, formatUtc } from './units.ts'
import { ACCESS_PAGES, AccessView } from './views/access.tsx'
import { ALERT_PAGES, AlertsView } from './views/alerts.tsx'
import { AuditView } from './views/audit.tsx'
import { BoardView } from './views/board.tsx'
import { ChannelView } from './views/channel.tsx'
import { ChannelsView } from './views/channels.tsx'
import { CONTROL_PAGES, ControlsView } from './views/controls.tsx'
import { HostView } from './views/host.tsx'
import { HostsView } from './views/hosts.tsx'
import { MetricView } from './views/metric.tsx'
import { MetricsView } from './views/metrics.tsx'
import { Overview } from './views/overview.tsx'
import { QueryView } from './views/query.tsx'
import { SharedBoardView } from './views/shared-board.tsx'
import { SignIn } from './views/sign-in.tsx'
import { SourcesView } from './views/sources.tsx'
import { toDecide, WaitingApprovals } from './waiting-approvals.ts'

interface AppProps {
  readonly session: Session
  /** Where the server is, for those who have a session of their own. */
  readonly monitor: URL
  readonly router: Router
}

export function App({ session, monitor, router }: AppProps) {
  if (router.route.value.view === SHARED) return <SharedBoardView monitor={monitor} router={router} />
  const state = session.state.value
  if (state.kind !== 'in') return <SignIn session={session} state={state} />
  return (
    <Signed
      key={state.identity}
      session={session}
      router={router}
      consumer={state.consumer}
      identity={state.identity}
    />
  )
}

interface View {
  readonly view: string
  readonly title: string
  readonly List: (props: ViewProps) => VNode | null
  /** One object of the list. */
  readonly Detail?: (props: ViewProps) => VNode | null
  /** Whether the list itself takes any object from the address. */
  readonly takesObject?: true
  /** Objects that the list takes besides, with their titles. */
  readonly pages?: ReadonlyMap<string, string>
  /** What somebody has to be allowed, or the rail does not show the view; it is the server that refuses. */
  readonly needs?: Need
}

type Need = 'user.list' | 'producer.audit'

const VIEWS: readonly View[] = [
  { view: 'overview', title: 'Overview', List: Overview },
  { view: 'alerts', title: 'Alerts', List: AlertsView, pages: ALERT_PAGES },
  { view: 'hosts', title: 'Hosts', List: HostsView, Detail: HostView },
  { view: 'metrics', title: 'Metrics', List: MetricsView, Detail: MetricView },
  { view: 'query', title: 'Query', List: QueryView },
  { view: 'board', title: 'Board', List: BoardView },
  { view: 'sources', title: 'Sources', List: SourcesView, takesObject: true },
  { view: 'channels', title: 'Channels', List: ChannelsView, Detail: ChannelView },
  { view: 'controls', title: 'Controls', List: ControlsView, takesObject: true, pages: CONTROL_PAGES },
  { view: 'access', title: 'Access', List: AccessView, pages: ACCESS_PAGES, needs: 'user.list' },
  { view: 'audit', title: 'Audit', List: AuditView, needs: 'producer.audit' },
]

interface SignedProps extends Omit<AppProps, 'monitor'> {
  readonly consumer: Consumer
  readonly identity: string
}

function Signed({ session, router, consumer, identity }: SignedProps) {
  const fleet = useMemo(() => new Fleet(consumer, tenantOf(identity)), [consumer, identity])
  const approvals = useMemo(() => new WaitingApprovals(consumer), [consumer])
  useEffect(() => {
    void fleet.follow()
    void approvals.follow()
  }, [fleet, approvals])
  const allowed: Readonly<Record<Need, boolean>> = {
    'user.list': useIsListed(consumer, 'producer.controls', 'user.list'),
    'producer.audit': useIsListed(consumer, 'producer.metrics', 'producer.audit'),
  }
  const { view, object } = router.route.value
  const shown = VIEWS.find((one) => one.view === view)
  const title = titleOf(shown, object)
  const firing = fleet.firing.value
  const counts: Readonly<Record<string, Count>> = {
    alerts: { count: firing, what: 'firing', look: 'lost' },
    controls: { count: toDecide(approvals.waiting.value).length, what: 'to approve', look: 'attention' },
  }
  const main = useRef<HTMLElement>(null)
  const isFirst = useRef(true)
  useEffect(() => {
    // A link that is followed leads to the beginning of the view, for those who read it by keyboard or by ear too.
    if (!isFirst.current) {
      scrollTo(0, 0)
      main.current?.focus({ preventScroll: true })
    }
    isFirst.current = false
  }, [shown, object])
  useLayoutEffect(() => {
    document.title = `${firing > 0 ? `(${firing}) ` : ''}${title} · Cinnabar`
  }, [title, firing])
  const rail = VIEWS.filter(({ needs }) => needs === undefined || allowed[needs])
  const Shown = contentOf(shown, object)
  return (
    <div class="frame">
      <nav class="rail" aria-label="Views">
        <a
          class="skip"
          href={linkTo(view, object)}
          onClick={(event) => {
            // The fragment of the address is the view: it cannot be a place in the page too.
            event.preventDefault()
            main.current?.focus()
          }}
        >
          Skip to the content
        </a>
        <p class="mark">Cinnabar</p>
        {rail.map((one) => (
          <a key={one.view} href={linkTo(one.view)} aria-current={one === shown ? 'page' : undefined}>
            {one.title}
            <RailCount {...counts[one.view]} />
          </a>
        ))}
        <div class="who">
          <bdi>{identity}</bdi>
          <Shortcuts views={rail} />
          <button type="button" onClick={() => void session.signOut()}>
            Sign out
          </button>
        </div>
      </nav>
      <main ref={main} tabIndex={-1} class={session.link.value.isUp ? '' : 'stale'}>
        <LostConnection link={session.link.value} />
        <Shown
          key={`${view} ${object}`}
          consumer={consumer}
          fleet={fleet}
          approvals={approvals}
          router={router}
          identity={identity}
        />
      </main>
    </div>
  )
}

/** What wants somebody in a view. */
interface Count {
  readonly count: number
  readonly what: string
  readonly look: 'lost' | 'attention'
}

/** Beside the name of the view; nothing if nothing wants anybody. */
function RailCount({ count = 0, what, look }: Partial<Count>) {
  return count === 0 ? null : (
    <>
      {' '}
      <span class={`rail-count ${look}`}>
        {count}
        <span class="unseen"> {what}</span>
      </span>
    </>
  )
}

/** What an address shows. */
function contentOf(shown: View | undefined, object: string): View['List'] {
  if (shown === undefined) return NoSuchPage
  if (object === '') return shown.List
  if (shown.takesObject || shown.pages?.has(object)) return shown.List
  return shown.Detail ?? NoSuchPage
}

function titleOf(shown: View | undefined, object: string): string {
  if (contentOf(shown, object) === NoSuchPage) return 'No such page'
  return object === '' ? (shown?.title ?? '') : (shown?.pages?.get(object) ?? object)
}

/** The place is always there, so that those who listen to the page hear what comes into it. */
function LostConnection({ link: { isUp, lostAt, nextAt } }: { readonly link: Link }) {
  return (
    <>
      <p class={isUp ? 'unseen' : 'banner'} role="status">
        {isUp || lostAt === undefined ? null : (
          <>
            The connection to the server is lost since <Time at={lostAt} />. The figures are those of before.
          </>
        )}
      </p>
      {isUp || nextAt === undefined ? null : (
        <p class="note">
          The next attempt is made at <Time at={nextAt} />.
        </p>
      )}
    </>
  )
}

/** Milliseconds since 1970. */
function Time({ at }: { readonly at: number }) {
  return <time title={formatUtc(at * 1000)}>{formatTime(at * 1000)}</time>
}
