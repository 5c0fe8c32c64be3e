/** `mono.*`: the counters of Mono agents, which connect or write files. */
import { sensorsByTenant } from '../../kit/by-tenant.ts'
import { formatAddress } from '../../kit/io/address.ts'
import type { StreamListening } from '../../kit/io/tcp.ts'
import type { Source } from '../../kit/source.ts'
import type { monoSection } from './config.ts'
import { monoControls } from './controls.ts'
import { MonoSensor } from './sensor.ts'

export const mono: Source<typeof monoSection> = {
  open({ clock, log, feed, door, poll, controls }, config) {
    const { listeners: wanted, files, tenant, feeds } = config
    if (wanted.length === 0 && files.length === 0) return {}
    const sensors = sensorsByTenant(config, poll, (section, options) => new MonoSensor(section, feed, clock, options))
    for (const sensor of sensors.all()) feed.add(sensor)
    const tenants = [tenant, ...feeds.map((feed) => feed.tenant)]
    // A file cannot be sent requests.
    if (wanted.length > 0) controls.add(...monoControls({ sensors: sensors.all(), clock, tenants }))
    const streams: StreamListening[] = []
    return {
      async listen() {
        for (const { key, listen: address, ...through } of wanted) {
          const listening = await door.streams({
            address,
            key,
            use: 'mono',
            sensorOf: (from) => sensors.of(from),
            open: (sensor, from, _port, back) => sensor.open(from, through, back),
          })
          streams.push(listening)
          for (const sensor of sensors.all()) sensor.listens(`tcp ${formatAddress(listening.address)}`)
        }
        // The writer of a file is unknown, so files belong to the section's own tenant.
        const sensor = sensors.own
        for (const { path, agent, follow } of files) {
          const open = () => sensor.openFile(agent)
          const failed = (error: Error): void => log.warn({ err: error, path }, 'a file of a Mono agent cannot be read')
          door.file({ path, follow, sensor, open, failed })
          sensor.listens(`file ${path}`)
        }
      },
      sweep() {
        for (const sensor of sensors.all()) sensor.sweep()
      },
      reload({ allow }) {
        sensors.allow(allow)
        for (const listening of streams) listening.review((from) => sensors.of(from).senders.check(from).allowed)
      },
    }
  },
}
