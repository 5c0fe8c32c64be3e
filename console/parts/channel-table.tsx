/** Channels with their ledgers, and why values wait. */
import { type ChannelState, channelLook, droppedOf, lagOf, waitingOf, whyWaiting } from '../fleet.ts'
import { linkTo } from '../route.ts'
import { formatCount, formatDuration, formatRate, UNKNOWN } from '../units.ts'
import { LedgerBar } from './ledger-bar.tsx'
import { Name } from './name.tsx'
import { State } from './state.tsx'

/** Characters of a binding. */
const MAX_BINDING = 60

export function ChannelTable({
  channels,
  nowMs,
}: {
  readonly channels: readonly ChannelState[]
  readonly nowMs: number
}) {
  return (
    <table>
      <thead>
        <tr>
          <th>Name</th>
          <th class="wide">Identity</th>
          <th class="wide">Bindings</th>
          <th>State</th>
          <th class="wide">Ledger</th>
          <th class="number wide">In</th>
          <th class="number wide">Committed</th>
          <th class="number">Waiting</th>
          <th class="number wide">Dropped</th>
          <th class="number">Lag</th>
        </tr>
      </thead>
      <tbody>
        {channels.map((channel) => (
          <tr key={channel.id}>
            <td class="code name">
              <a href={linkTo('channels', String(channel.id))}>
                <Name text={channel.name === '' ? String(channel.id) : channel.name} />
              </a>
              {channel.isOwn ? <small>this page</small> : null}
            </td>
            <td class="wide">
              <bdi>{channel.identity}</bdi>
            </td>
            <td class="wide code">
              <Bindings channel={channel} />
            </td>
            <td>
              <State look={channelLook(channel, nowMs)} text={channel.state} detail={whyWaiting(channel)} />
            </td>
            <td class="wide">
              <LedgerBar channel={channel} />
            </td>
            <td class="number wide">{formatRate(channel.acceptedRate)}</td>
            <td class="number wide">{formatRate(channel.committedRate)}</td>
            <td class="number">{formatCount(waitingOf(channel))}</td>
            <td class="number wide">{formatCount(droppedOf(channel))}</td>
            <td class="number">{formatDuration(lagOf(channel, nowMs))}</td>
          </tr>
        ))}
      </tbody>
    </table>
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
