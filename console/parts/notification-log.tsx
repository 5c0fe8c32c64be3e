/** Who was told, when, and with what answer; and how the notifiers are. */
import { type Readings, useNotifications, useNotifiers } from '../alert-lists.ts'
import type { NotificationLine, NotifierLine } from '../alerts.ts'
import { useIsListed } from '../query.ts'
import { linkTo, type ViewProps } from '../route.ts'
import { formatCount, formatDuration, formatMoment, formatUtc } from '../units.ts'
import { Action } from './action.tsx'
import { Name } from './name.tsx'
import { Loading, State, Unreadable } from './state.tsx'
import { type Column, PagedTable, Table } from './table.tsx'

const PAGE = 100

export function NotificationLog({ consumer, fleet, router, identity }: ViewProps) {
  const notifier = router.route.value.args.get('notifier') ?? ''
  const notifiers = useNotifiers(consumer, identity)
  const log = useNotifications(consumer, identity, notifier === '' ? {} : { notifier })
  const mayTest = useIsListed(consumer, 'producer.controls', 'notify.test')
  const tests: Column<NotifierLine> = {
    cellLook: 'does',
    cell: ({ name }) =>
      mayTest ? (
        <Action
          consumer={consumer}
          label="Test"
          object={name}
          question={`Send a marked test through ${name}? It says that nothing is wrong.`}
          control="notify.test"
          args={{ name }}
        />
      ) : null,
  }
  return (
    <>
      <Notifiers notifiers={notifiers} columns={[...notifierColumns(fleet.nowMs / 1000), tests]} />
      {log.refusal !== undefined ? (
        <Unreadable what="log of notifications" refusal={log.refusal} />
      ) : log.lines === undefined ? (
        <Loading what="the log" />
      ) : (
        <section class="card" aria-label="Log of notifications">
          <div class="head">
            <h2>Log</h2>
            <label class="choices">
              of{' '}
              <select
                name="notifier"
                value={notifier}
                onChange={({ currentTarget: { value } }) =>
                  router.replace(linkTo('alerts', 'notifications', value === '' ? {} : { notifier: value }))
                }
              >
                <option value="">all notifiers</option>
                {namesFor(notifiers.lines ?? [], notifier).map((name) => (
                  <option key={name} value={name}>
                    {name}
                  </option>
                ))}
              </select>
            </label>
          </div>
          <PagedTable
            look="stacked"
            rows={log.lines}
            keyOf={({ key }) => key}
            columns={COLUMNS}
            page={PAGE}
            empty={
              <p class="empty" role="status">
                Nobody was told of an alert{notifier === '' ? '' : ` by ${notifier}`}.
              </p>
            }
          />
        </section>
      )}
    </>
  )
}

function Notifiers({
  notifiers: { lines, refusal },
  columns,
}: {
  readonly notifiers: Readings<NotifierLine>
  readonly columns: readonly Column<NotifierLine>[]
}) {
  if (refusal !== undefined) return <Unreadable what="notifiers" refusal={refusal} />
  if (lines === undefined) return <Loading what="the notifiers" />
  return (
    <section class="card" aria-label="Notifiers">
      <div class="head">
        <h2>Notifiers</h2>
      </div>
      <Table
        look="stacked"
        rows={lines}
        keyOf={({ name }) => name}
        columns={columns}
        empty={
          <p class="empty">
            Nobody is told of alerts: the configuration has no <code>[[notify]]</code>, and nobody has put one by{' '}
            <code>notify.put</code>.
          </p>
        }
      />
    </section>
  )
}

/** Also of one that is gone, if the address names it. */
function namesFor(notifiers: readonly NotifierLine[], chosen: string): readonly string[] {
  const names = new Set(notifiers.map(({ name }) => name))
  return [...(chosen === '' ? names : names.add(chosen))].sort()
}

function notifierColumns(now: number): readonly Column<NotifierLine>[] {
  return [
    {
      title: 'Notifier',
      cell: ({ name, problem, failingSince }) => (
        <State
          look={problem === '' ? 'good' : 'attention'}
          text={name}
          detail={
            problem === ''
              ? 'works'
              : failingSince > 0
                ? `has failed for ${formatDuration(now - failingSince)}: ${problem}`
                : problem
          }
        />
      ),
    },
    { title: 'Put by', look: 'wide', cell: ({ author }) => author || 'the configuration' },
    { title: 'Alerts known', look: 'number wide', cell: ({ alerts }) => formatCount(alerts) },
    { title: 'Delivered', look: 'number wide', cell: ({ delivered }) => formatCount(delivered) },
    { title: 'Refused', look: 'number wide', cell: ({ refused }) => formatCount(refused) },
    { title: 'Lost', look: 'number wide', cell: ({ lost }) => formatCount(lost) },
  ]
}

const COLUMNS: readonly Column<NotificationLine>[] = [
  {
    title: 'When',
    cell: ({ time }) => <time title={formatUtc(time)}>{formatMoment(time)}</time>,
  },
  {
    title: 'Notifier',
    cell: ({ notifier, outcome, attempts }) => (
      <State
        look={outcome === 'delivered' ? 'good' : 'attention'}
        text={notifier}
        detail={attempts > 1 ? `${outcome} after ${attempts} requests` : outcome}
      />
    ),
  },
  {
    title: 'Alerts',
    cellLook: 'whole',
    cell: ({ group, firing, resolved }) => (
      <>
        <span class="code">
          <Name text={group === '' ? 'all' : group} max={200} />
        </span>
        <small class="more">
          {[firing > 0 ? `${firing} firing` : '', resolved > 0 ? `${resolved} resolved` : '']
            .filter(Boolean)
            .join(', ')}
        </small>
      </>
    ),
  },
  { title: 'Answer', cellLook: 'code', cell: ({ answer }) => <Name text={answer} max={120} /> },
]
