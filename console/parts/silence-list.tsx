/** Silences and acknowledgements: those in force, each with a way to end it, and those that ended within the last days. */
import { useAlertControls, useSilences } from '../alert-lists.ts'
import type { SilenceLine } from '../alerts.ts'
import { linkTo, type ViewProps } from '../route.ts'
import { formatDuration, formatMoment, formatUtc } from '../units.ts'
import { Action } from './action.tsx'
import { Name } from './name.tsx'
import { SilenceButton } from './silence-form.tsx'
import { Loading, State, Unreadable } from './state.tsx'
import { type Column, PagedTable } from './table.tsx'

const PAGE = 50

export function SilenceList({ consumer, fleet, router, identity }: ViewProps) {
  const showsEnded = router.route.value.args.get('show') === 'ended'
  const silences = useSilences(consumer, identity, showsEnded)
  const controls = useAlertControls(consumer)
  if (silences.refusal !== undefined) return <Unreadable what="silences" refusal={silences.refusal} />
  const { lines } = silences
  const now = fleet.nowMs / 1000
  const ends: Column<SilenceLine> = {
    cellLook: 'does',
    cell: (line) =>
      controls?.has('alert.unsilence') === true && !showsEnded ? (
        <Action
          consumer={consumer}
          label="End"
          object={line.id}
          question={`End the ${kindOf(line)} of ${line.matchers}? Those of its alerts that fire are told again.`}
          control="alert.unsilence"
          args={{ id: line.id }}
          onDone={silences.reload}
        />
      ) : null,
  }
  return (
    <>
      <div class="alert-filter">
        <p class="choices">
          <a href={linkTo('alerts', 'silences')} aria-current={showsEnded ? undefined : 'true'}>
            in force
          </a>
          <a href={linkTo('alerts', 'silences', { show: 'ended' })} aria-current={showsEnded ? 'true' : undefined}>
            ended
          </a>
        </p>
        {controls?.has('alert.silence') === true ? (
          <SilenceButton consumer={consumer} controls={controls} onDone={silences.reload} />
        ) : null}
        {controls !== undefined && !controls.has('alert.silence') ? (
          <p class="note">Your role may not silence alerts.</p>
        ) : null}
      </div>
      {lines === undefined ? (
        <Loading what="the silences" />
      ) : (
        <section class="card" aria-label="Silences">
          <PagedTable
            look="stacked"
            rows={lines}
            keyOf={({ id }) => id}
            columns={[...columnsFor(now, showsEnded), ends]}
            page={PAGE}
            empty={
              <p class="empty" role="status">
                {showsEnded ? 'Nothing has ended within the last five days.' : 'Nothing is silenced or acknowledged.'}
              </p>
            }
          />
        </section>
      )}
    </>
  )
}

function kindOf({ isAcknowledgement }: SilenceLine): string {
  return isAcknowledgement ? 'acknowledgement' : 'silence'
}

function columnsFor(now: number, areEnded: boolean): readonly Column<SilenceLine>[] {
  return [
    {
      title: 'What',
      cell: (line) => (
        <State
          look={areEnded ? 'gone' : now < line.begins ? 'attention' : 'good'}
          text={kindOf(line)}
          detail={`by ${line.author}`}
        />
      ),
    },
    {
      title: 'Alerts',
      cellLook: 'whole',
      cell: ({ matchers, comment }) => (
        <>
          <span class="code">
            <Name text={matchers} max={400} />
          </span>
          {comment === '' ? null : (
            <small class="more">
              <bdi>{comment}</bdi>
            </small>
          )}
        </>
      ),
    },
    {
      title: areEnded ? 'Ended' : 'Until',
      cell: ({ ends }) => (
        <time title={formatUtc(ends * 1e6)}>
          {areEnded ? formatMoment(ends * 1e6) : `ends in ${formatDuration(Math.max(0, ends - now))}`}
        </time>
      ),
    },
    {
      title: 'Since',
      look: 'wide',
      cell: ({ begins }) => <time title={formatUtc(begins * 1e6)}>{formatMoment(begins * 1e6)}</time>,
    },
  ]
}
