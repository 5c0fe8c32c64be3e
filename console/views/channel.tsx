/** One channel: its ledger in full and over time, its settings, what it binds, and what can be done with it. */
import type { ComponentChild } from 'preact'
import type { Consumer } from '../../client/browser.ts'
import {
  type ChannelState,
  channelLook,
  droppedOf,
  type Fleet,
  lagOf,
  type Points,
  waitingOf,
  whyWaiting,
} from '../fleet.ts'
import { Action } from '../parts/action.tsx'
import { Curve } from '../parts/curve.tsx'
import { LedgerBar } from '../parts/ledger-bar.tsx'
import { Name } from '../parts/name.tsx'
import { ChannelSettingsForm } from '../parts/settings-form.tsx'
import { Absent, State } from '../parts/state.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { linkTo, type ViewProps } from '../route.ts'
import { formatBytes, formatCount, formatDuration, formatNumber, formatRate, formatTime, formatUtc } from '../units.ts'

export function ChannelView({ fleet, consumer, router }: ViewProps) {
  const id = router.route.value.object
  const all = fleet.channels.value
  const channel = all?.find((one) => String(one.id) === id || one.name === id)
  if (all === undefined) return <Absent what="the channel" problem={fleet.problems.value['producer.channels']} />
  if (channel === undefined) {
    return (
      <>
        <header>
          <h1>Channel {id}</h1>
        </header>
        <p class="empty" role="alert">
          There is no such channel, or you may not see it. <a href={linkTo('channels')}>All channels</a>
        </p>
      </>
    )
  }
  return (
    <>
      <header>
        <h1 class="code">
          <bdi>{titleOf(channel)}</bdi>
        </h1>
        <p class="note">
          <bdi>{channel.identity}</bdi>, id {channel.id}
          {channel.durable ? '' : ', not durable'}
          {channel.url === '' ? '' : ', dialled: '}
          <bdi>{channel.url}</bdi>
        </p>
      </header>
      <Curves fleet={fleet} channel={channel} />
      <div class="columns">
        <section class="card" aria-label="Ledger">
          <div class="head">
            <h2>Ledger</h2>
            <State look={channelLook(channel, fleet.nowMs)} text={channel.state} detail={whyWaiting(channel)} />
          </div>
          <Ledger channel={channel} nowMs={fleet.nowMs} />
        </section>
        <section class="card" aria-label="Settings">
          <div class="head">
            <h2>Settings</h2>
          </div>
          <Settings channel={channel} />
        </section>
      </div>
      <Bindings channel={channel} />
      {channel.isOwn ? (
        <p class="note">This is the channel of this page. It ends when you sign out.</p>
      ) : (
        <Actions channel={channel} consumer={consumer} />
      )}
    </>
  )
}

function titleOf({ name, id }: ChannelState): string {
  return name === '' ? String(id) : name
}

/** The last two minutes. */
function Curves({ fleet, channel }: { readonly fleet: Fleet; readonly channel: ChannelState }) {
  const { accepted, committed, waiting, dropped } = fleet.historyOf(channel.id)
  return (
    <div class="tiles">
      <Tile title="In" figure={formatRate(channel.acceptedRate)} points={accepted} kind="in" />
      <Tile title="Committed" figure={formatRate(channel.committedRate)} points={committed} kind="out" />
      <Tile title="Waiting" figure={formatNumber(waitingOf(channel))} points={waiting} kind="waiting" />
      <Tile title="Dropped" figure={formatNumber(droppedOf(channel))} points={dropped} kind="lost" />
    </div>
  )
}

interface TileProps {
  readonly title: string
  readonly figure: string
  readonly points: Points
  readonly kind: string
}

function Tile({ title, figure, points, kind }: TileProps) {
  return (
    <div class="card tile">
      <span class="title">{title}</span>
      <strong>{figure}</strong>
      <Curve points={points} kind={kind} />
    </div>
  )
}

function Ledger({ channel, nowMs }: { readonly channel: ChannelState; readonly nowMs: number }) {
  const { accepted, committed, inFlight, queued, queuedBytes, dropped, oldest } = channel
  const causes = Object.entries(dropped).filter(([, count]) => count > 0)
  const rows: readonly Fact[] = [
    ['Accepted', formatCount(accepted)],
    ['Committed', formatCount(committed)],
    ['In flight', formatCount(inFlight)],
    ['Queued', `${formatCount(queued)} (${formatBytes(queuedBytes)})`],
    [
      'Dropped',
      `${formatCount(droppedOf(channel))}${causes.map(([cause, count]) => `, ${cause} ${formatCount(count)}`).join('')}`,
    ],
    ['Oldest value', oldest === 0 ? 'none waits' : <Since time={oldest} seconds={lagOf(channel, nowMs)} />],
  ]
  return (
    <>
      <div class="padded">
        <LedgerBar channel={channel} />
      </div>
      <Facts rows={rows} />
    </>
  )
}

function Settings({ channel: { settings, durable } }: { readonly channel: ChannelState }) {
  const { window, windowBytes, maxBytes, maxAgeMs, expireMs, overflow } = settings
  const rows: readonly Fact[] = [
    ['Durable', durable ? 'yes' : 'no: its values are in memory only'],
    ['Window', durable ? `${formatCount(window)} values, ${formatBytes(windowBytes)}` : 'none'],
    ['Queue', `${formatBytes(maxBytes)}, then ${overflow}`],
    ['A value waits', `${formatDuration(maxAgeMs / 1000)} at most`],
    ['Kept alone', `${formatDuration(expireMs / 1000)} without its consumer`],
  ]
  return <Facts rows={rows} />
}

type Fact = readonly [name: string, value: ComponentChild]

function Since({ time, seconds }: { readonly time: number; readonly seconds: number | undefined }) {
  return (
    <time title={formatUtc(time)}>
      {formatTime(time)}, {formatDuration(seconds)} ago
    </time>
  )
}

const FACT_COLUMNS: readonly Column<Fact>[] = [
  { isRowHead: true, cell: ([name]) => name },
  { cellLook: 'code', cell: ([, value]) => value },
]

function Facts({ rows }: { readonly rows: readonly Fact[] }) {
  return <Table look="facts" rows={rows} keyOf={([name]) => name} columns={FACT_COLUMNS} />
}

const BINDING_COLUMNS: readonly Column<string>[] = [
  {
    cellLook: 'code',
    cell: (name) => (
      <a href={name.includes('*') ? linkTo('metrics', '', { match: name }) : linkTo('metrics', name)}>
        <Name text={name} max={120} />
      </a>
    ),
  },
]

function Bindings({ channel }: { readonly channel: ChannelState }) {
  const names = [...new Set(channel.bindings)]
  return (
    <section class="card" aria-label="Bindings">
      <div class="head">
        <h2>Bindings</h2>
        <p class="note">
          {channel.bound === 1 ? '1 metric or pattern' : `${formatCount(channel.bound)} metrics or patterns`}
        </p>
      </div>
      <Table
        rows={names}
        keyOf={(name) => name}
        columns={BINDING_COLUMNS}
        empty={<p class="empty">It binds nothing: nothing comes in.</p>}
      />
      {channel.bound > names.length && channel.bindings.length < channel.bound ? (
        <p class="empty">and {formatCount(channel.bound - channel.bindings.length)} more</p>
      ) : null}
    </section>
  )
}

function Actions({ channel, consumer }: { readonly channel: ChannelState; readonly consumer: Consumer }) {
  const title = titleOf(channel)
  return (
    <section class="card actions" aria-label="Actions">
      <ChannelSettingsForm consumer={consumer} channel={channel} title={title} />
      <Action
        consumer={consumer}
        label="Purge"
        control="channel.purge"
        args={{ channel: channel.id }}
        question={`Purge ${title}? ${lossOf(channel)}`}
      />
      <Action
        consumer={consumer}
        label="Delete"
        control="channel.delete"
        args={{ channel: channel.id }}
        question={`Delete ${title}? ${lossOf(channel)} Its bindings are gone too.`}
      />
    </section>
  )
}

function lossOf(channel: ChannelState): string {
  const waiting = waitingOf(channel)
  if (waiting === 0) return 'No value waits in it.'
  const lost =
    waiting === 1 ? '1 value that waits in it is lost' : `${formatCount(waiting)} values that wait in it are lost`
  return `${lost}, and its consumer is informed.`
}
