/** The state of the server at one glance. Every figure leads to where it comes from. */
import { type ClusterNode, nodeLook } from '../cluster.ts'
import type { Fleet, NoticeLine, Points, SensorState, Stats } from '../fleet.ts'
import { type ChannelState, droppedOf, lagOf } from '../fleet.ts'
import { ChannelTable } from '../parts/channel-table.tsx'
import { Curve } from '../parts/curve.tsx'
import { Absent, Problem, State } from '../parts/state.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { linkTo, type ViewProps } from '../route.ts'
import { refusedBy, reporters, sourceLook } from '../sources.ts'
import { type Answered, committed, diskUsed, lost, type TileText, valuesIn, waiting } from '../tiles.ts'
import { formatCount, formatDuration, formatNumber, formatRate, formatTime, formatUtc, UNKNOWN } from '../units.ts'

const MAX_CHANNELS = 8

export function Overview({ fleet }: ViewProps) {
  const stats = fleet.stats.value
  const problems = fleet.problems.value
  const answered: Answered = { stats, channels: fleet.channels.value, sensors: fleet.sensors.value, problems }
  const { nowMs } = fleet
  const last = (name: string): number | undefined => fleet.curve(name).value.at(-1)
  const { title, ...lostText } = lost(answered)
  return (
    <>
      <header>
        <h1>Overview</h1>
        {stats === undefined ? null : <Health stats={stats} />}
      </header>
      {Object.entries(problems).map(([metric, problem]) => (
        <Problem key={metric} text={problem} />
      ))}
      <div class="tiles">
        <Tile
          title="Values in"
          text={valuesIn(answered, last('received'))}
          points={fleet.curve('received').value}
          kind="in"
          to={linkTo('sources')}
        />
        <Tile
          title="Committed"
          text={committed(answered, last('committed'), last('sent'))}
          points={fleet.curve('committed').value}
          kind="out"
          to={linkTo('channels')}
        />
        <Tile
          title="Waiting"
          text={waiting(answered, nowMs)}
          points={fleet.curve('waiting').value}
          kind="waiting"
          to={linkTo('channels', '', { show: 'slow' })}
        />
        <Tile
          title={title}
          text={lostText}
          points={fleet.curve('lost').value}
          kind="lost"
          to={linkTo('channels', '', { show: 'dropped' })}
        />
        <HostsTile fleet={fleet} />
        <Tile
          title="Disk used"
          text={diskUsed(answered)}
          points={fleet.curve('disk').value}
          kind="disk"
          to={linkTo('metrics', 'producer.stats')}
        />
      </div>
      <ChannelsToLookAt fleet={fleet} />
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
  readonly text: TileText
  readonly points: Points
  readonly kind: string
  readonly to: string
}

function Tile({ title, text: { figure, note, detail = note, isLoading }, points, kind, to }: TileProps) {
  return (
    <a class="card tile" href={to}>
      <span class="title">{title}</span>
      <strong>{figure}</strong>
      <span class={isLoading ? 'note late' : 'note'} title={detail}>
        <bdi>{note}</bdi>
      </span>
      <Curve points={points} kind={kind} />
    </a>
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
      text={{
        figure: formatNumber(silent.length),
        note: silent.length === 0 ? `all ${formatCount(count)} report` : `of ${formatCount(count)}: ${names}${more}`,
      }}
      points={fleet.curve('silent').value}
      kind="lost"
      to={linkTo('hosts', '', silent.length === 0 ? {} : { show: 'silent' })}
    />
  )
}

function ChannelsToLookAt({ fleet }: { readonly fleet: Fleet }) {
  const channels = fleet.channels.value
  const { nowMs } = fleet
  const rank = (channel: ChannelState): number => (lagOf(channel, nowMs) ?? 0) + (droppedOf(channel) > 0 ? 1 : 0)
  const shown = (channels ?? []).toSorted((a, b) => rank(b) - rank(a)).slice(0, MAX_CHANNELS)
  return (
    <section class="card" aria-label="Channels">
      <div class="head">
        <h2>Channels</h2>
        {channels === undefined ? null : (
          <p class="note">
            {shown.length} of {channels.length}: those that wait longest first
          </p>
        )}
        <p class="choices">
          <a href={linkTo('channels')}>all</a>
        </p>
      </div>
      {channels === undefined ? (
        <Absent what="the channels" problem={fleet.problems.value['producer.channels']} />
      ) : (
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
      )}
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
      {fleet.sensors.value === undefined ? (
        <Absent what="the sources" problem={fleet.problems.value['producer.sensors']} />
      ) : (
        <Table
          rows={fleet.sensors.value}
          keyOf={({ name }) => name}
          columns={sensorColumns(fleet)}
          empty={<p class="empty">No source is on.</p>}
        />
      )}
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
      {fleet.notices.value === undefined ? (
        <Absent what="the notices" problem={fleet.problems.value['producer.notices']} />
      ) : (
        <Table
          rows={fleet.notices.value}
          keyOf={({ time, detail }) => `${time} ${detail}`}
          columns={NOTICE_COLUMNS}
          empty={<p class="empty">Nothing has happened since this page was opened.</p>}
        />
      )}
    </section>
  )
}
