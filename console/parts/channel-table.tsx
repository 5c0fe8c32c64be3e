/** Channels with their ledgers, and why values wait. */
import type { ComponentChildren } from 'preact'
import { type ChannelState, channelLook, droppedOf, lagOf, waitingOf, whyWaiting } from '../fleet.ts'
import { linkTo } from '../route.ts'
import { formatCount, formatDuration, formatRate, UNKNOWN } from '../units.ts'
import { LedgerBar } from './ledger-bar.tsx'
import { Name } from './name.tsx'
import { State } from './state.tsx'
import { type Column, PagedTable } from './table.tsx'

/** Characters of a binding. */
const MAX_BINDING = 60

interface ChannelTableProps {
  readonly channels: readonly ChannelState[]
  readonly nowMs: number
  /** How many are drawn at first; more of them on demand, since each is drawn anew every second. */
  readonly page: number
  /** Shown if there are no channels. */
  readonly empty: ComponentChildren
}

export function ChannelTable({ channels, nowMs, page, empty }: ChannelTableProps) {
  return (
    <PagedTable
      rows={channels}
      keyOf={({ id }) => id}
      columns={columnsAt(nowMs)}
      page={page}
      empty={<p class="empty">{empty}</p>}
    />
  )
}

function columnsAt(nowMs: number): readonly Column<ChannelState>[] {
  return [
    { title: 'Name', cellLook: 'code name', cell: (channel) => <Title channel={channel} /> },
    { title: 'Identity', look: 'wide', cell: ({ identity }) => <bdi>{identity}</bdi> },
    { title: 'Bindings', look: 'wide', cellLook: 'code', cell: (channel) => <Bindings channel={channel} /> },
    {
      title: 'State',
      cell: (channel) => <State look={channelLook(channel, nowMs)} text={channel.state} detail={whyWaiting(channel)} />,
    },
    { title: 'Ledger', look: 'wide', cell: (channel) => <LedgerBar channel={channel} /> },
    { title: 'In', look: 'number wide', cell: ({ acceptedRate }) => formatRate(acceptedRate) },
    { title: 'Committed', look: 'number wide', cell: ({ committedRate }) => formatRate(committedRate) },
    { title: 'Waiting', look: 'number', cell: (channel) => formatCount(waitingOf(channel)) },
    { title: 'Dropped', look: 'number wide', cell: (channel) => formatCount(droppedOf(channel)) },
    { title: 'Lag', look: 'number', cell: (channel) => formatDuration(lagOf(channel, nowMs)) },
  ]
}

function Title({ channel: { id, name, isOwn } }: { readonly channel: ChannelState }) {
  return (
    <>
      <a href={linkTo('channels', String(id))}>
        <Name text={name === '' ? String(id) : name} />
      </a>
      {isOwn ? <small>this page</small> : null}
    </>
  )
}

/** One stands for all: the page of the channel lists them. */
function Bindings({ channel: { bindings, bound } }: { readonly channel: ChannelState }) {
  const [first] = bindings
  if (first === undefined) return <>{UNKNOWN}</>
  return (
    <>
      <Name text={first} max={MAX_BINDING} />
      {bound > 1 ? <small class="more">and {formatCount(bound - 1)} more</small> : null}
    </>
  )
}
