/** The frame of the console: the sign-in, or the rail with the views, and what every view shows about the connection. */
import { useEffect, useMemo } from 'preact/hooks'
import type { Consumer } from '../client/browser.ts'
import { Fleet } from './fleet.ts'
import { linkTo, type Router } from './route.ts'
import type { Link, Session } from './session.ts'
import { formatDuration } from './units.ts'
import { ChannelView } from './views/channel.tsx'
import { ChannelsView } from './views/channels.tsx'
import { ControlsView } from './views/controls.tsx'
import { MetricsView } from './views/metrics.tsx'
import { Overview } from './views/overview.tsx'
import { SignIn } from './views/sign-in.tsx'

interface AppProps {
  readonly session: Session
  readonly router: Router
}

export function App({ session, router }: AppProps) {
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

const views = [
  { view: 'overview', title: 'Overview' },
  { view: 'metrics', title: 'Metrics' },
  { view: 'channels', title: 'Channels' },
  { view: 'controls', title: 'Controls' },
] as const

interface SignedProps extends AppProps {
  readonly consumer: Consumer
  readonly identity: string
}

function Signed({ session, router, consumer, identity }: SignedProps) {
  const fleet = useMemo(() => new Fleet(), [consumer])
  useEffect(() => {
    fleet.follow(consumer).catch(() => {})
  }, [fleet, consumer])
  const { view, object, args } = router.route.value
  const shown = views.find((one) => one.view === view) ?? views[0]
  return (
    <div class="frame">
      <nav class="rail" aria-label="Views">
        <p class="mark">Cinnabar</p>
        {views.map((one) => (
          <a key={one.view} href={linkTo(one.view)} aria-current={one === shown ? 'page' : undefined}>
            {one.title}
          </a>
        ))}
        <div class="who">
          <span>{identity}</span>
          <button type="button" onClick={() => void session.signOut()}>
            Sign out
          </button>
        </div>
      </nav>
      <main>
        <LostConnection link={session.link.value} />
        {shown.view === 'overview' ? <Overview fleet={fleet} /> : null}
        {shown.view === 'metrics' ? <MetricsView consumer={consumer} router={router} /> : null}
        {shown.view === 'controls' ? <ControlsView consumer={consumer} name={object} /> : null}
        {shown.view !== 'channels' ? null : object === '' ? (
          <ChannelsView fleet={fleet} args={args} />
        ) : (
          <ChannelView fleet={fleet} consumer={consumer} id={object} />
        )}
      </main>
    </div>
  )
}

function LostConnection({ link }: { readonly link: Link }) {
  if (link.isUp) return null
  const wait =
    link.nextAt === undefined
      ? ''
      : ` The next attempt is made in ${formatDuration(Math.max(0, link.nextAt - Date.now()) / 1000)}.`
  return (
    <p class="banner" role="status">
      The connection to the server is lost. The figures are those of before.{wait}
    </p>
  )
}
