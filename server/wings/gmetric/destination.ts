/** Channels with a URL of the scheme `gmetric`: their values are sent as datagrams, as `gmetric` sends them. */
import { maySee, type Sensor } from '../../kit/metrics.ts'
import type { OwnView } from '../../kit/peer.ts'
import type { PushDestination } from '../../kit/push.ts'
import type { Clock, Logger } from '../../kit/running.ts'
import { GmetricPackets } from './send-packets.ts'
import { GmetricSender, openDatagrams } from './sender.ts'

export interface GmetricDestinationOptions {
  /** The host that the values come from, as receivers see it. */
  readonly name: string
  readonly view: Pick<OwnView, 'sensors'>
  readonly clock: Clock
  readonly log: Logger
}

export function gmetricDestination({ name, view, clock, log }: GmetricDestinationOptions): PushDestination {
  return {
    schemes: ['gmetric'],
    async open({ channel, url, address, port, left }) {
      const packets = new GmetricPackets({
        name,
        now: () => clock.monotonicMs(),
        metric: (name) => {
          const isReadable = ({ family, owner }: Sensor): boolean =>
            name.startsWith(family) && maySee(channel.owner, owner)
          return view.sensors.find(isReadable)?.metric(name)
        },
      })
      const datagrams = await openDatagrams(address, port)
      return new GmetricSender({
        channel,
        datagrams,
        packets,
        ended: (sender, counts) => {
          log.info({ channel: channel.id, url, ...counts }, 'values were sent by gmetric')
          left(sender)
        },
      })
    },
  }
}
