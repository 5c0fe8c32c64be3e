/** All hosts, whatever their source is, with small live charts of those on screen. */
import { useEffect, useMemo } from 'preact/hooks'
import type { Consumer } from '../../client/browser.ts'
import type { Fleet } from '../fleet.ts'
import { type Host, Hosts, ROLES } from '../hosts.ts'
import { Name } from '../parts/name.tsx'
import { useNarrow } from '../parts/narrow.ts'
import { Search } from '../parts/search.tsx'
import { Spark } from '../parts/spark.tsx'
import { Loading, Problem, State } from '../parts/state.tsx'
import { Cells, type Column, Heads } from '../parts/table.tsx'
import { VirtualTable } from '../parts/virtual-table.tsx'
import { argumentsFor, OWN, producersOf } from '../producers.ts'
import { linkTo, type ViewProps } from '../route.ts'
import { sourceLook, UPSTREAM } from '../sources.ts'
import { formatCount, formatTime, formatUtc, UNKNOWN } from '../units.ts'

/** Pixels of a row; of two lines on a narrow screen. */
const ROW = 44
const TWO_LINES = 66
const filters = ['all', 'silent'] as const

export function HostsView({ consumer, fleet, router, identity }: ViewProps) {
  const source = useMemo(() => new Hosts(consumer, identity), [consumer, identity])
  useEffect(() => {
    source.begin()
    return () => source.end()
  }, [source])
  const { hosts, below, isCut, problem } = source.state.value
  const { args } = router.route.value
  const text = args.get('match') ?? ''
  const filter = filters.find((one) => one === args.get('show')) ?? 'all'
  const found = useMemo(() => {
    const wanted = text.trim().toLowerCase()
    return (hosts ?? []).filter(
      ({ name, producer, isSilent }) =>
        (filter === 'all' || isSilent) &&
        (name.toLowerCase().includes(wanted) || producer.toLowerCase().includes(wanted)),
    )
  }, [hosts, text, filter])
  const isWhole = filter === 'all' && text.trim() === ''
  const rows = useMemo(() => rowsOf(found, below, isWhole), [found, below, isWhole])
  const linkOf = (match: string, show: string): string =>
    linkTo('hosts', '', { ...(match !== '' && { match }), ...(show !== 'all' && { show }) })
  return (
    <>
      <header>
        <h1>Hosts</h1>
        <Search label="Search hosts" text={text} onText={(value) => router.replace(linkOf(value, filter))} />
      </header>
      <Problem text={problem} />
      {hosts === undefined && problem === '' ? <Loading what="the hosts" /> : null}
      {hosts === undefined ? null : (
        <section class="card" aria-label="Hosts">
          <div class="head">
            <h2>
              {formatCount(found.length)} of {formatCount(hosts.length)}
            </h2>
            {isCut ? <p class="note">Of other servers there are more than fit into one answer.</p> : null}
            <p class="choices">
              {filters.map((one) => (
                <a key={one} href={linkOf(text, one)} aria-current={one === filter ? 'true' : undefined}>
                  {one}
                </a>
              ))}
            </p>
          </div>
          {rows.length === 0 ? (
            <Nothing hosts={hosts} text={text} />
          ) : (
            <Table consumer={consumer} fleet={fleet} rows={rows} />
          )}
        </section>
      )}
    </>
  )
}

function Nothing({ hosts, text }: { readonly hosts: readonly Host[]; readonly text: string }) {
  if (hosts.length > 0) {
    return <p class="empty">{text === '' ? 'No host is silent.' : `No host matches “${text}”.`}</p>
  }
  return (
    <p class="empty">
      No hosts yet. Ganglia's <code>gmond</code> or <code>gmetric</code> reports them:{' '}
      <code>gmetric --name load_one --value 0.5 --type double</code>
    </p>
  )
}

/** The head of the hosts of one producer. */
interface Group {
  readonly producer: string
  readonly count: number
}

type Row = Group | Host

/** Hosts below the heads of their producers, if there are several. `isWhole`: producers without hosts are shown, too. */
function rowsOf(hosts: readonly Host[], below: readonly string[], isWhole: boolean): readonly Row[] {
  if (below.length === 0) return hosts
  const byProducer = new Map<string, Host[]>(isWhole ? [OWN, ...below].map((producer) => [producer, []]) : [])
  for (const host of hosts) {
    const group = byProducer.get(host.producer) ?? []
    byProducer.set(host.producer, group)
    group.push(host)
  }
  return [...byProducer].flatMap(([producer, group]) => [{ producer, count: group.length }, ...group])
}

function isGroup(row: Row): row is Group {
  return 'count' in row
}

function Table({ consumer, fleet, rows }: Pick<ViewProps, 'consumer' | 'fleet'> & { readonly rows: readonly Row[] }) {
  const columns = columnsOf(consumer, fleet)
  const isNarrow = useNarrow()
  return (
    <VirtualTable
      label="Hosts"
      look="two-lines"
      rows={rows}
      keyOf={(row) => (isGroup(row) ? row.producer : `${row.producer} ${row.name}`)}
      height={isNarrow ? TWO_LINES : ROW}
      head={<Heads columns={columns} />}
      cells={(row) =>
        isGroup(row) ? (
          <GroupCells consumer={consumer} fleet={fleet} group={row} />
        ) : (
          <Cells columns={columns} row={row} />
        )
      }
    />
  )
}

interface GroupProps extends Pick<ViewProps, 'consumer' | 'fleet'> {
  readonly group: Group
}

function GroupCells({ consumer, fleet, group: { producer, count } }: GroupProps) {
  const name = producer === OWN ? producersOf(consumer).name : producer
  const source = `${UPSTREAM}${producer}`
  const sensor = fleet.sensors.value?.find((one) => one.name === source)
  // How a server further below is, the one between knows.
  const hasState = producer === OWN || sensor !== undefined
  return (
    <>
      <th class="code" scope="rowgroup" colSpan={hasState ? 1 : 2}>
        <Name text={name} max={40} />
      </th>
      {hasState ? (
        <td class="state-column">
          {sensor === undefined ? (
            'this server'
          ) : (
            <a href={linkTo('sources', source)} title={sensor.detail}>
              <State look={sourceLook(sensor)} text={sensor.state} />
            </a>
          )}
        </td>
      ) : null}
      <td class="note">{count === 1 ? '1 host' : `${formatCount(count)} hosts`}</td>
      <td class="wide" colSpan={ROLES.length} />
    </>
  )
}

function columnsOf(consumer: Consumer, fleet: Fleet): readonly Column<Host>[] {
  return [
    {
      title: 'Host',
      cellLook: 'code',
      cell: ({ name, producer }) => (
        <a href={linkTo('hosts', name, argumentsFor(producer))}>
          <Name text={name} max={40} />
        </a>
      ),
    },
    {
      title: 'State',
      look: 'state-column',
      cell: ({ isSilent, time }) => <HostState isSilent={isSilent} time={time} />,
    },
    ...ROLES.map(
      ({ title }, index): Column<Host> => ({
        title,
        look: 'spark-column',
        cell: ({ name, producer, roles }) => {
          const role = roles[index]
          if (role === undefined) return <span class="note">{UNKNOWN}</span>
          const args = { host: name, ...argumentsFor(producer) }
          return (
            <a href={linkTo('metrics', role.metric, args)}>
              <span class="unseen">{title} of this host: </span>
              <Spark
                consumer={consumer}
                clock={fleet}
                metric={role.metric}
                args={args}
                unit={role.unit}
                isRate={role.isRate}
              />
            </a>
          )
        },
      }),
    ),
    {
      title: 'Metrics',
      look: 'number short wide',
      cell: ({ metrics }) => (metrics === undefined ? UNKNOWN : formatCount(metrics)),
    },
  ]
}

function HostState({ isSilent, time }: Pick<Host, 'isSilent' | 'time'>) {
  if (!isSilent) return <State look="good" text="reports" />
  return (
    <span title={`The last value came at ${formatUtc(time)}`}>
      <State look="attention" text={time === 0 ? 'silent' : `silent since ${formatTime(time)}`} />
    </span>
  )
}
