/** The source `statsd`: lines over UDP and TCP, a tenant for each table of the configuration. */
import type { Door } from '../../kit/door.ts'
import { formatAddress } from '../../kit/io/address.ts'
import type { Steps } from '../../kit/running.ts'
import type { Source } from '../../kit/source.ts'
import type { StatsdTable, statsdSection } from './config.ts'
import { STATSD_FAMILY, StatsdFeed } from './feed.ts'

export const statsd: Source<typeof statsdSection> = {
  open({ self, clock, door, poll }, tables) {
    if (tables.length === 0) return {}
    const keepMs = Math.max(...tables.map((table) => table.keepMs))
    const family = door.family({ family: STATSD_FAMILY, kind: 'statsd', from: 'its feeds', keptMs: () => keepMs })
    const feeds = tables.map((table) => {
      const sensor = family.of(table.tenant)
      const run = (steps: Steps<void>): void => poll.run(sensor, steps)
      const failed = (error: unknown): void => poll.failed(sensor, error)
      return { table, feed: new StatsdFeed({ ...table, sensor, node: self.node, clock, run, failed }) }
    })
    return {
      statuses: feeds.map(({ feed, table: { tenant } }) => ({ owner: { tenant }, status: () => feed.status() })),
      async listen() {
        for (const [index, { table, feed }] of feeds.entries()) await listen(`statsd[${index}]`, table, feed, door)
      },
      sweep() {
        for (const { feed } of feeds) feed.sweep()
        family.sweep()
      },
    }
  },
}

async function listen(key: string, { udp, tcp }: StatsdTable, feed: StatsdFeed, door: Door): Promise<void> {
  const sensorOf = () => feed.sensor
  if (udp !== undefined) {
    const listening = await door.datagrams({
      address: udp,
      key: `${key}.udp`,
      use: 'statsd',
      rival: 'another StatsD server',
      sensorOf,
      packet: (bytes, source) => feed.datagram(bytes, source),
      failed: ({ message }) => feed.sensor.failed(message),
    })
    feed.listens(`udp ${formatAddress(listening.address)}`, () => listening.kernelDrops())
  }
  if (tcp !== undefined) {
    const open = (_: unknown, from: string) => feed.open(from)
    const { address } = await door.streams({ address: tcp, key: `${key}.tcp`, use: 'statsd', sensorOf, open })
    feed.listens(`tcp ${formatAddress(address)}`)
  }
}
