/** All hosts, whatever their source is, with small live charts of those on screen. */
import { useEffect, useMemo } from 'preact/hooks'
import { type Host, Hosts, ROLES } from '../hosts.ts'
import { Name } from '../parts/name.tsx'
import { Spark } from '../parts/spark.tsx'
import { State } from '../parts/state.tsx'
import { VirtualTable } from '../parts/virtual-table.tsx'
import { linkTo, type ViewProps } from '../route.ts'
import { formatCount, formatTime, formatUtc, UNKNOWN } from '../units.ts'

const ROW = 44
const filters = ['all', 'silent'] as const

export function HostsView({ consumer, fleet, router }: ViewProps) {
  const source = useMemo(() => new Hosts(consumer), [consumer])
  useEffect(() => {
    source.begin()
    return () => source.end()
  }, [source])
  const { hosts, problem } = source.state.value
  const { args } = router.route.value
  const text = args.get('match') ?? ''
  const filter = filters.find((one) => one === args.get('show')) ?? 'all'
  const found = useMemo(() => {
    const wanted = text.trim().toLowerCase()
    return (hosts ?? []).filter(
      ({ name, isSilent }) => (filter === 'all' || isSilent) && name.toLowerCase().includes(wanted),
    )
  }, [hosts, text, filter])
  const linkOf = (match: string, show: string): string =>
    linkTo('hosts', '', { ...(match !== '' && { match }), ...(show !== 'all' && { show }) })
  return (
    <>
      <header>
        <h1>Hosts</h1>
        <input
          type="search"
          class="search"
          placeholder="Part of a name"
          aria-label="Search hosts"
          value={text}
          onInput={({ currentTarget }) => router.replace(linkOf(currentTarget.value, filter))}
        />
      </header>
      {problem === '' ? null : (
        <p class="banner" role="alert">
          {problem}
        </p>
      )}
      {hosts === undefined ? null : (
        <section class="card" aria-label="Hosts">
          <div class="head">
            <h2>
              {formatCount(found.length)} of {formatCount(hosts.length)}
            </h2>
            <p class="choices">
              {filters.map((one) => (
                <a key={one} href={linkOf(text, one)} aria-current={one === filter ? 'true' : undefined}>
                  {one}
                </a>
              ))}
            </p>
          </div>
          {found.length === 0 ? (
            <Nothing hosts={hosts} text={text} />
          ) : (
            <Table consumer={consumer} fleet={fleet} hosts={found} />
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

function Table({
  consumer,
  fleet,
  hosts,
}: Pick<ViewProps, 'consumer' | 'fleet'> & { readonly hosts: readonly Host[] }) {
  return (
    <VirtualTable
      label="Hosts"
      rows={hosts}
      keyOf={({ name }) => name}
      height={ROW}
      head={
        <>
          <th>Host</th>
          <th class="state-column">State</th>
          {ROLES.map(({ title }, index) => (
            <th key={title} class={index === 0 ? 'spark-column' : 'spark-column wide'}>
              {title}
            </th>
          ))}
          <th class="number short wide">Metrics</th>
        </>
      }
      cells={({ name, isSilent, time, roles, metrics }) => (
        <>
          <td class="code">
            <a href={linkTo('hosts', name)}>
              <Name text={name} max={40} />
            </a>
          </td>
          <td class="state-column">
            <HostState isSilent={isSilent} time={time} />
          </td>
          {roles.map((role, index) => (
            <td key={ROLES[index]?.title} class={index === 0 ? 'spark-column' : 'spark-column wide'}>
              {role === undefined ? (
                <span class="note">{UNKNOWN}</span>
              ) : (
                <a href={linkTo('metrics', role.metric, { host: name })}>
                  <span class="unseen">{ROLES[index]?.title} of this host: </span>
                  <Spark
                    consumer={consumer}
                    clock={fleet}
                    metric={role.metric}
                    args={{ host: name }}
                    unit={role.unit}
                    isRate={role.isRate}
                  />
                </a>
              )}
            </td>
          ))}
          <td class="number short wide">{formatCount(metrics)}</td>
        </>
      )}
    />
  )
}

export function HostState({ isSilent, time }: Pick<Host, 'isSilent' | 'time'>) {
  if (!isSilent) return <State look="good" text="reports" />
  return (
    <span title={`The last value came at ${formatUtc(time)}`}>
      <State look="attention" text={time === 0 ? 'silent' : `silent since ${formatTime(time)}`} />
    </span>
  )
}
