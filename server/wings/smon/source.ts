/** `smon.*`: the values of smon streams and datagrams. */
import { sensorsByTenant } from '../../kit/by-tenant.ts'
import { formatAddress } from '../../kit/io/address.ts'
import type { StreamListening } from '../../kit/io/tcp.ts'
import type { Source } from '../../kit/source.ts'
import type { smonSection } from './config.ts'
import { SmonSensor } from './sensor.ts'

export const smon: Source<typeof smonSection> = {
  open({ clock, feed, door, poll }, { tcp, udp, ...config }) {
    const sensors = sensorsByTenant(config, poll, (section, options) => {
      return new SmonSensor(section, feed, clock, { ...options, run: poll.run })
    })
    for (const sensor of sensors.all()) feed.add(sensor)
    const sensorOf = (from: string): SmonSensor => sensors.of(from)
    let streams: StreamListening | undefined
    return {
      async listen() {
        if (tcp !== undefined) {
          streams = await door.streams({
            address: tcp,
            key: 'smon.tcp',
            use: 'smon',
            sensorOf,
            open: (sensor, from, port) => sensor.open(from, port),
          })
          for (const sensor of sensors.all()) sensor.listens(`tcp ${formatAddress(streams.address)}`)
        }
        if (udp !== undefined) {
          const datagrams = await door.datagrams({
            address: udp,
            key: 'smon.udp',
            use: 'smon',
            rival: 'another server',
            sensorOf,
            packet: (bytes, source, port) => sensors.of(source).datagram(bytes, source, port),
            failed({ message }) {
              for (const sensor of sensors.all()) sensor.failed(message)
            },
          })
          const detail = `udp ${formatAddress(datagrams.address)}`
          for (const sensor of sensors.all())
            sensor.listens(detail, sensor === sensors.own ? () => datagrams.kernelDrops() : undefined)
        }
      },
      sweep() {
        for (const sensor of sensors.all()) sensor.sweep()
      },
      reload({ allow }) {
        sensors.allow(allow)
        streams?.review((from) => sensors.of(from).senders.check(from).allowed)
      },
    }
  },
}
