/** A board that somebody was given the link of: nothing but the board, without a sign-in, and nothing is kept in the browser. */
import { useEffect, useLayoutEffect, useMemo } from 'preact/hooks'
import type { Consumer } from '../../client/browser.ts'
import { type ChartSpec, chartText, encodeChart } from '../board.ts'
import { sharedBoardOf } from '../board-link.ts'
import { ChartCard } from '../parts/chart-card.tsx'
import { ChartControls } from '../parts/chart-controls.tsx'
import { useChartPage } from '../parts/chart-page.ts'
import { Name } from '../parts/name.tsx'
import type { Router } from '../route.ts'
import { NOT_ADMITTED, Session } from '../session.ts'

const HEIGHT = 200
/** Without the figures of the server, which the link does not let anybody read, its clock is taken to be right. */
const CLOCK = {
  get nowMs() {
    return Date.now()
  },
}

interface SharedBoardViewProps {
  /** Where the server is: whoever has signed in on this page has another session. */
  readonly monitor: URL
  readonly router: Router
}

export function SharedBoardView({ monitor, router }: SharedBoardViewProps) {
  const { token, name, charts } = sharedBoardOf(router.route.value.args)
  const session = useMemo(() => new Session(monitor), [token])
  useEffect(() => {
    if (isSecureContext) void session.signIn('', { token })
    return () => void session.signOut()
  }, [session])
  useLayoutEffect(() => {
    document.title = `${name === '' ? 'Board' : name} · Cinnabar`
  }, [name])
  const state = session.state.value
  return (
    <main class={session.link.value.isUp ? 'shared-board' : 'shared-board stale'}>
      <header>
        <h1>{name === '' ? 'Board' : <Name text={name} max={48} />}</h1>
      </header>
      <p class={session.link.value.isUp ? 'unseen' : 'banner'} role="status">
        {session.link.value.isUp ? null : 'The connection to the server is lost. The figures are those of before.'}
      </p>
      {state.kind === 'in' ? (
        <Charts consumer={state.consumer} router={router} charts={charts} />
      ) : state.kind === 'out' && (state.reason !== '' || !isSecureContext) ? (
        <p class="banner" role="alert">
          {!isSecureContext
            ? 'A browser opens this link over https only, or on the machine of the server.'
            : state.reason === NOT_ADMITTED
              ? 'The link has expired, or was revoked, or is not whole: ask for another one.'
              : state.reason}
        </p>
      ) : (
        <p class="empty late" role="status">
          Loading the board …
        </p>
      )}
    </main>
  )
}

interface ChartsProps {
  readonly consumer: Consumer
  readonly router: Router
  readonly charts: readonly ChartSpec[]
}

function Charts({ consumer, router, charts }: ChartsProps) {
  const page = useChartPage(consumer, CLOCK, router)
  return (
    <>
      <div class="board-controls">
        <p class="note">This link reads and changes nothing.</p>
        <ChartControls page={page} />
      </div>
      <div class="columns charts">
        {charts.map((spec) => (
          <ChartCard
            key={encodeChart(spec)}
            consumer={consumer}
            page={page}
            spec={spec}
            height={HEIGHT}
            head={
              <div class="head">
                <h2 class="code">
                  <Name text={chartText(spec)} max={48} />
                </h2>
              </div>
            }
          />
        ))}
      </div>
    </>
  )
}
