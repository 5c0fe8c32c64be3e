/** The source `statsd`: lines over UDP and TCP, a tenant for each table of the configuration. */
import { formatAddress } from '../../kernel/core/address.ts'
import type { Steps } from '../../kernel/core/fair-work.ts'
import { pacersOf } from '../../kit/io/pacer.ts'
import { listenStreams } from '../../kit/io/tcp.ts'
import { listenUdp } from '../../kit/io/udp.ts'
import { LabelledFamily } from '../../kit/labelled-sensor.ts'
import type { Source, SourceContext, SourceListeners } from '../../kit/source.ts'
import type { StatsdTable, statsdSection } from './config.ts'
import { STATSD_FAMILY, StatsdFeed } from './feed.ts'

export const statsd: Source<typeof statsdSection> = {
  open(context, tables) {
    if (tables.length === 0) return {}
    const { hub, quotas, clock, node } = context
    const keepMs = Math.max(...tables.map((table) => table.keepMs))
    const from = 'its feeds'
    const family = new LabelledFamily({
      family: STATSD_FAMILY,
      kind: 'statsd',
      from,
      hub,
      quotas,
      clock,
      keptMs: () => keepMs,
    })
    const feeds = tables.map((table) => {
      const sensor = family.of(table.tenant)
      const run = (steps: Steps<void>): void => hub.run(sensor, steps)
      const failed = (error: unknown): void => hub.faults.report(sensor, error)
      return { table, feed: new StatsdFeed({ ...table, sensor, node, clock, run, failed }) }
    })
    return {
      statuses: feeds.map(({ feed, table: { tenant } }) => ({ owner: { tenant }, status: () => feed.status() })),
      async listen(listeners) {
        for (const [index, { table, feed }] of feeds.entries()) await listen(index, table, feed, context, listeners)
      },
      sweep() {
        for (const { feed } of feeds) feed.sweep()
        family.sweep()
      },
    }
  },
}

async function listen(
  index: number,
  { udp, tcp }: StatsdTable,
  feed: StatsdFeed,
  { log, pacing }: SourceContext,
  listeners: SourceListeners,
): Promise<void> {
  const key = `statsd[${index}]`
  if (udp !== undefined) {
    const listening = listeners.opened(
      await listenUdp({
        address: udp,
        key: `${key}.udp`,
        rival: 'another StatsD server',
        turns: pacing.turns,
        packet: (bytes, source) => feed.datagram(bytes, source),
        packetFailed: (error) => pacing.faults.report(feed.sensor, error),
        failed: (error) => {
          log.error({ err: error }, 'the StatsD listener for datagrams failed')
          feed.sensor.failed(error.message)
        },
      }),
    )
    feed.listens(`udp ${formatAddress(listening.address)}`, () => listening.kernelDrops())
    listeners.bound({ key: `${key}.udp`, use: 'statsd', transport: 'udp' }, listening.address)
  }
  if (tcp !== undefined) {
    const pacerOf = pacersOf([feed.sensor], pacing)
    const listening = listeners.opened(
      await listenStreams({
        address: tcp,
        key: `${key}.tcp`,
        open(from) {
          const taker = feed.open(from)
          return taker && { taker, pacer: pacerOf(feed.sensor) }
        },
        failed: (error) => pacing.faults.report(feed.sensor, error),
      }),
    )
    feed.listens(`tcp ${formatAddress(listening.address)}`)
    listeners.bound({ key: `${key}.tcp`, use: 'statsd', transport: 'tcp' }, listening.address)
  }
}
