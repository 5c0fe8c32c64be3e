/** One channel: its ledger in full, what it binds, and what can be done with it. */
import { type ChannelState, droppedOf, lagOf, waitingOf, whyWaiting } from '../fleet.ts'
import { Action } from '../parts/action.tsx'
import { LedgerBar } from '../parts/ledger-bar.tsx'
import { lookOf, State } from '../parts/state.tsx'
import { linkTo, type ViewProps } from '../route.ts'
import { formatBytes, formatCount, formatDuration, formatUtc } from '../units.ts'

export function ChannelView({ fleet, consumer, router }: ViewProps) {
  const id = router.route.value.object
  const all = fleet.channels.value
  const channel = all?.find((one) => String(one.id) === id || one.name === id)
  if (all === undefined) return null
  if (channel === undefined) {
    return (
      <>
        <header>
          <h1>Channel {id}</h1>
        </header>
        <p class="empty">
          There is no such channel, or you may not see it. <a href={linkTo('channels')}>All channels</a>
        </p>
      </>
    )
  }
  const title = channel.name === '' ? String(channel.id) : channel.name
  return (
    <>
      <header>
        <h1 class="code">{title}</h1>
        <p class="note">
          {channel.identity}, id {channel.id}
          {channel.durable ? '' : ', not durable'}
        </p>
      </header>
      <section class="card" aria-label="Ledger">
        <div class="head">
          <h2>Ledger</h2>
          <State look={lookOf(channel.state)} text={channel.state} detail={whyWaiting(channel)} />
        </div>
        <Ledger channel={channel} />
      </section>
      <section class="card" aria-label="Bindings">
        <div class="head">
          <h2>Bindings</h2>
          <p class="note">{formatCount(channel.bound)} metrics</p>
        </div>
        <table>
          <tbody>
            {[...new Set(channel.bindings)].map((name) => (
              <tr key={name}>
                <td class="code">
                  <a href={linkTo('metrics', name)}>{name}</a>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      <section class="card actions" aria-label="Actions">
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
    </>
  )
}

function lossOf(channel: ChannelState): string {
  const waiting = waitingOf(channel)
  const lost = waiting === 0 ? 'No value waits in it' : `${formatCount(waiting)} values that wait in it are lost`
  return `${lost}, and its consumer is informed.`
}

function Ledger({ channel }: { readonly channel: ChannelState }) {
  const { accepted, committed, inFlight, queued, queuedBytes, dropped, oldest } = channel
  const causes = Object.entries(dropped).filter(([, count]) => count > 0)
  const rows: readonly (readonly [string, string])[] = [
    ['Accepted', formatCount(accepted)],
    ['Committed', formatCount(committed)],
    ['In flight', formatCount(inFlight)],
    ['Queued', `${formatCount(queued)} (${formatBytes(queuedBytes)})`],
    [
      'Dropped',
      `${formatCount(droppedOf(channel))}${causes.map(([cause, count]) => `, ${cause} ${formatCount(count)}`).join('')}`,
    ],
    [
      'Oldest value',
      oldest === 0 ? 'none waits' : `${formatUtc(oldest)}, ${formatDuration(lagOf(channel, Date.now()))} ago`,
    ],
  ]
  return (
    <>
      <div class="padded">
        <LedgerBar channel={channel} />
      </div>
      <table class="facts">
        <tbody>
          {rows.map(([name, value]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td class="code">{value}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  )
}
