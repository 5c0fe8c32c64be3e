/** All channels, or those that need to be looked at. */
import { droppedOf, isSlow } from '../fleet.ts'
import { ChannelTable } from '../parts/channel-table.tsx'
import { linkTo, type ViewProps } from '../route.ts'

const filters = ['all', 'slow', 'dropped', 'orphans'] as const

export function ChannelsView({ fleet, router }: ViewProps) {
  const { args } = router.route.value
  const all = fleet.channels.value
  const filter = filters.find((one) => one === args.get('show')) ?? 'all'
  const { nowMs } = fleet
  const shown = (all ?? []).filter((channel) => {
    if (filter === 'slow') return isSlow(channel, nowMs)
    if (filter === 'orphans') return channel.state === 'orphan'
    return filter === 'all' || droppedOf(channel) > 0
  })
  return (
    <>
      <header>
        <h1>Channels</h1>
      </header>
      <section class="card" aria-label="Channels">
        <div class="head">
          <h2>
            {shown.length} of {all?.length ?? 0}
          </h2>
          <p class="choices">
            {filters.map((one) => (
              <a
                key={one}
                href={linkTo('channels', '', one === 'all' ? {} : { show: one })}
                aria-current={one === filter ? 'true' : undefined}
              >
                {one}
              </a>
            ))}
          </p>
        </div>
        {all !== undefined && all.length === 0 ? (
          <p class="empty">
            No channels yet. A consumer makes one with <code>connect()</code>, or{' '}
            <code>cinnabar tail --name first host.load.one</code>.
          </p>
        ) : (
          <ChannelTable channels={shown} nowMs={nowMs} />
        )}
      </section>
    </>
  )
}
