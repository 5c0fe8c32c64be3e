/** All channels, or those that need to be looked at: those that wait longest first. */
import { type ChannelState, droppedOf, isSlow, lagOf } from '../fleet.ts'
import { ChannelTable } from '../parts/channel-table.tsx'
import { Search } from '../parts/search.tsx'
import { Absent } from '../parts/state.tsx'
import { linkTo, type ViewProps } from '../route.ts'
import { formatCount } from '../units.ts'

const PAGE = 100
const FILTERS = ['all', 'slow', 'dropped', 'orphans'] as const

export function ChannelsView({ fleet, router }: ViewProps) {
  const { args } = router.route.value
  const all = fleet.channels.value
  const filter = FILTERS.find((one) => one === args.get('show')) ?? 'all'
  const text = args.get('match') ?? ''
  const { nowMs } = fleet
  const isShown = (channel: ChannelState): boolean => {
    const { name, id, identity } = channel
    if (!`${name} ${id} ${identity}`.toLowerCase().includes(text.toLowerCase())) return false
    if (filter === 'slow') return isSlow(channel, nowMs)
    if (filter === 'orphans') return channel.state === 'orphan'
    return filter === 'all' || droppedOf(channel) > 0
  }
  const lag = (channel: ChannelState): number => lagOf(channel, nowMs) ?? -1
  const found = (all ?? []).filter(isShown).sort((a, b) => lag(b) - lag(a))
  const linkOf = (match: string, show: string): string =>
    linkTo('channels', '', { ...(match !== '' && { match }), ...(show !== 'all' && { show }) })
  return (
    <>
      <header>
        <h1>Channels</h1>
        <Search
          label="Search channels"
          placeholder="Part of a name, an id or a user"
          text={text}
          onText={(value) => router.replace(linkOf(value, filter))}
        />
      </header>
      {all === undefined ? (
        <Absent what="the channels" problem={fleet.problems.value['producer.channels']} />
      ) : (
        <section class="card" aria-label="Channels">
          <div class="head">
            <h2>
              {formatCount(found.length)} of {formatCount(all.length)}
            </h2>
            <p class="choices">
              {FILTERS.map((one) => (
                <a key={one} href={linkOf(text, one)} aria-current={one === filter ? 'true' : undefined}>
                  {one}
                </a>
              ))}
            </p>
          </div>
          <ChannelTable
            channels={found}
            nowMs={nowMs}
            page={PAGE}
            empty={
              all.length === 0 ? (
                <>
                  No channels yet. A consumer makes one with <code>connect()</code>, or{' '}
                  <code>cinnabar tail --name first host.load.one</code>.
                </>
              ) : (
                'No channel is to be shown here.'
              )
            }
          />
        </section>
      )}
    </>
  )
}
