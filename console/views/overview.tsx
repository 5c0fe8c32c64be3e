/** The state of the server at one glance. Every figure leads to where it comes from. */
import { type ClusterNode, nodeLook } from '../cluster.ts'
import type { Fleet, NoticeLine, Points, SensorState, Stats } from '../fleet.ts'
import { type ChannelState, droppedOf, lagOf, waitingOf } from '../fleet.ts'
import { ChannelTable } from '../parts/channel-table.tsx'
import { Curve } from '../parts/curve.tsx'
import { Problem, State } from '../parts/state.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { linkTo, type ViewProps } from '../route.ts'
import { refusedBy, reporters, sourceLook } from '../sources.ts'
import {
  formatBytes,
  formatCount,
  formatDuration,
  formatNumber,
  formatRate,
  formatTime,
  formatUtc,
  UNKNOWN,
} from '../units.ts'

const MAX_CHANNELS = 8

export function Overview({ fleet }: ViewProps) {
  const stats = fleet.stats.value
  const channels = fleet.channels.value ?? []
  const { nowMs } = fleet
  const sent = fleet.curve('sent').value.at(-1)
  return (
    <>
      <header>
        <h1>Overview</h1>
        {stats === undefined ? null : <Health stats={stats} />}
      </header>
      {Object.entries(fleet.problems.value).map(([metric, problem]) => (
        <Problem key={metric} text={problem} />
      ))}
      <div class="tiles">
        <Tile
          title="Values in"
          figure={formatRate(fleet.curve('received').value.at(-1))}
          points={fleet.curve('received').value}
          kind="in"
          to={linkTo('sources')}
          note={`from ${fleet.sensors.value?.length ?? 0} sources`}
        />
        <Tile
          title="Committed"
          figure={formatRate(fleet.curve('committed').value.at(-1))}
          points={fleet.curve('committed').value}
          kind="out"
          to={linkTo('channels')}
          note={sent === undefined ? `by ${channels.length} channels` : `sent ${formatRate(sent)}`}
          detail={`by ${channels.length} channels${sent === undefined ? '' : `, sent ${formatRate(sent)}`}`}
        />
        <Waiting channels={channels} points={fleet.curve('waiting').value} nowMs={nowMs} />
        <Lost stats={stats} channels={channels} points={fleet.curve('lost').value} />
        <HostsTile fleet={fleet} />
        <Disk stats={stats} points={fleet.curve('disk').value} />
      </div>
      <ChannelsToLookAt channels={channels} nowMs={nowMs} />
      <Nodes fleet={fleet} />
      <div class="columns">
        <Sensors fleet={fleet} />
        <Notices fleet={fleet} />
      </div>
    </>
  )
}

function Health({ stats: { storage, uptime, software, faults } }: { readonly stats: Stats }) {
  const isGood = storage === 'ok' && faults === 0
  const text = storage === 'ok' ? 'ready' : storage === 'full' ? 'the disk is full' : `storage: ${storage}`
  return (
    <p class="pills">
      <a class="pill" href={linkTo('metrics', 'producer.stats')}>
        <State look={isGood ? 'good' : 'attention'} text={faults === 0 ? text : `${text} · ${faults} faults`} />
      </a>
      <a class="pill" href={linkTo('metrics', 'producer.stats')}>
        {software} · up {formatDuration(uptime)}
      </a>
    </p>
  )
}

interface TileProps {
  readonly title: string
  readonly figure: string
  readonly note: string
  /** All of what the note says in short. */
  readonly detail?: string
  readonly points: Points
  readonly kind: string
  readonly to: string
}

function Tile({ title, figure, note, detail = note, points, kind, to }: TileProps) {
  return (
    <a class="card tile" href={to}>
      <span class="title">{title}</span>
      <strong>{figure}</strong>
      <span class="note" title={detail}>
        <bdi>{note}</bdi>
      </span>
      <Curve points={points} kind={kind} />
    </a>
  )
}

interface OfChannels {
  readonly channels: readonly ChannelState[]
  readonly points: Points
}

function Waiting({ channels, points, nowMs }: OfChannels & { readonly nowMs: number }) {
  const bytes = channels.reduce((sum, { queuedBytes }) => sum + queuedBytes, 0)
  const lag = Math.max(0, ...channels.map((channel) => lagOf(channel, nowMs) ?? 0))
  const waiting = channels.reduce((sum, channel) => sum + waitingOf(channel), 0)
  const note = waiting === 0 ? 'nothing waits' : `${formatBytes(bytes)} · oldest ${formatDuration(lag)}`
  return (
    <Tile
      title="Waiting"
      figure={formatNumber(waiting)}
      note={note}
      points={points}
      kind="waiting"
      to={linkTo('channels', '', { show: 'slow' })}
    />
  )
}

/** In the last hour; users who are not admins see what their channels have lost so far. */
function Lost({ stats, channels, points }: OfChannels & { readonly stats: Stats | undefined }) {
  const causes = new Map(Object.entries(stats?.droppedLastHour ?? {}))
  if (stats?.droppedLastHour === undefined) {
    for (const { dropped } of channels) {
      for (const [cause, count] of Object.entries(dropped)) causes.set(cause, (causes.get(cause) ?? 0) + count)
    }
  }
  const reasons = [...causes].filter(([, count]) => count > 0).sort(([, a], [, b]) => b - a)
  const lost = reasons.reduce((sum, [, count]) => sum + count, 0)
  const [note = 'nothing was lost', ...others] = reasons.map(([cause, count]) => `${cause} ${formatNumber(count)}`)
  const title = stats?.droppedLastHour === undefined ? 'Lost' : 'Lost, last hour'
  return (
    <Tile
      title={title}
      figure={formatNumber(lost)}
      note={others.length === 0 ? note : `most: ${note}`}
      detail={[note, ...others].join(', ')}
      points={points}
      kind="lost"
      to={linkTo('channels', '', { show: 'dropped' })}
    />
  )
}

/** How many went silent; it leads to them. */
function HostsTile({ fleet }: { readonly fleet: Fleet }) {
  const hosts = fleet.hosts.value
  if (hosts === undefined) return null
  const { count, silent } = hosts
  const names = silent.slice(0, 3).join(', ')
  const more = silent.length > 3 ? ` and ${formatCount(silent.length - 3)} more` : ''
  return (
    <Tile
      title="Hosts silent"
      figure={formatNumber(silent.length)}
      note={silent.length === 0 ? `all ${formatCount(count)} report` : `of ${formatCount(count)}: ${names}${more}`}
      points={fleet.curve('silent').value}
      kind="lost"
      to={linkTo('hosts', '', silent.length === 0 ? {} : { show: 'silent' })}
    />
  )
}

function Disk({ stats, points }: { readonly stats: Stats | undefined; readonly points: Points }) {
  const { diskSizeBytes: size, diskFreeBytes: free } = stats ?? {}
  const isKnown = size !== undefined && free !== undefined && size > 0
  const figure = isKnown ? `${Math.round((1 - free / size) * 100)} %` : UNKNOWN
  const note = isKnown ? `${formatBytes(free)} free` : 'only an admin may see it'
  return (
    <Tile
      title="Disk used"
      figure={figure}
      note={note}
      points={points}
      kind="disk"
      to={linkTo('metrics', 'producer.stats')}
    />
  )
}

function ChannelsToLookAt({ channels, nowMs }: { readonly channels: readonly ChannelState[]; readonly nowMs: number }) {
  const rank = (channel: ChannelState): number => (lagOf(channel, nowMs) ?? 0) + (droppedOf(channel) > 0 ? 1 : 0)
  const shown = channels.toSorted((a, b) => rank(b) - rank(a)).slice(0, MAX_CHANNELS)
  return (
    <section class="card" aria-label="Channels">
      <div class="head">
        <h2>Channels</h2>
        <p class="note">
          {shown.length} of {channels.length}: those that wait longest first
        </p>
        <p class="choices">
          <a href={linkTo('channels')}>all</a>
        </p>
      </div>
      <ChannelTable
        channels={shown}
        nowMs={nowMs}
        page={MAX_CHANNELS}
        empty={
          <>
            No channels yet. A consumer makes one with <code>connect()</code>.
          </>
        }
      />
    </section>
  )
}

const NODE_COLUMNS: readonly Column<ClusterNode>[] = [
  { title: 'Node', cellLook: 'code', cell: ({ name }) => name },
  { title: 'Role', cell: (node) => <State look={nodeLook(node)} text={node.role} detail={node.obstacle} /> },
  {
    title: 'Lag',
    look: 'number',
    cell: ({ role, lagMs }) => (role === 'follower' ? formatDuration(lagMs / 1000) : UNKNOWN),
  },
  {
    title: 'Sequence',
    look: 'number wide',
    cell: ({ role, sequence }) => (role === 'not heard' ? UNKNOWN : formatCount(sequence)),
  },
  { title: 'Address', look: 'wide', cellLook: 'code', cell: ({ address }) => address },
]

/** The nodes of the cluster, if the server is one of them. Only admins see more of it than who leads. */
function Nodes({ fleet }: { readonly fleet: Fleet }) {
  const cluster = fleet.cluster.value
  if (cluster === undefined) return null
  const { name, leader, epoch, since, nodes } = cluster
  return (
    <section class="card" aria-label="Cluster">
      <div class="head">
        <h2>
          Cluster <bdi>{name}</bdi>
        </h2>
        <p class="note">
          <bdi>{leader}</bdi> has led for{' '}
          <time title={formatUtc(since)}>{formatDuration(Math.max(0, fleet.nowMs - since / 1000) / 1000)}</time> · epoch{' '}
          {formatCount(epoch)}
        </p>
      </div>
      <Table rows={nodes} keyOf={({ name: node }) => node} columns={NODE_COLUMNS} empty={null} />
    </section>
  )
}

function sensorColumns(fleet: Fleet): readonly Column<SensorState>[] {
  return [
    { title: 'Source', cellLook: 'code', cell: ({ name }) => <a href={linkTo('sources', name)}>{name}</a> },
    {
      title: 'State',
      cell: (sensor) => {
        const look = sourceLook(sensor)
        return <State look={look} text={sensor.state} detail={look === 'good' ? reporters(sensor) : sensor.detail} />
      },
    },
    { title: 'Values', look: 'number', cell: ({ name }) => formatRate(fleet.curve(`sensor ${name}`).value.at(-1)) },
    { title: 'Refused', look: 'number', cell: (sensor) => formatCount(refusedBy(sensor)) },
  ]
}

function Sensors({ fleet }: { readonly fleet: Fleet }) {
  return (
    <section class="card" aria-label="Sources">
      <div class="head">
        <h2>Sources</h2>
        <p class="choices">
          <a href={linkTo('sources')}>all counters</a>
        </p>
      </div>
      <Table rows={fleet.sensors.value ?? []} keyOf={({ name }) => name} columns={sensorColumns(fleet)} />
    </section>
  )
}

const NOTICE_COLUMNS: readonly Column<NoticeLine>[] = [
  { cellLook: 'code', cell: ({ time }) => <time title={formatUtc(time)}>{formatTime(time)}</time> },
  {
    cell: ({ severity, subject, detail }) => (
      <State look={severity === 'info' ? 'good' : 'attention'} text={`${subject}: ${detail}`} />
    ),
  },
]

function Notices({ fleet }: { readonly fleet: Fleet }) {
  return (
    <section class="card" aria-label="Notices">
      <div class="head">
        <h2>Notices</h2>
      </div>
      <Table
        rows={fleet.notices.value}
        keyOf={({ time, detail }) => `${time} ${detail}`}
        columns={NOTICE_COLUMNS}
        empty={<p class="empty">Nothing has happened since this page was opened.</p>}
      />
    </section>
  )
}
