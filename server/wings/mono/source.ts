/** `mono.*`: the counters of Mono agents, which connect or write files. */
import { formatAddress } from '../../kernel/core/address.ts'
import { sensorsByTenant } from '../../kit/by-tenant.ts'
import { followFile } from '../../kit/io/file.ts'
import { pacersOf } from '../../kit/io/pacer.ts'
import { listenStreams, type StreamListening } from '../../kit/io/tcp.ts'
import type { Source } from '../../kit/source.ts'
import type { monoSection } from './config.ts'
import { monoControls } from './controls.ts'
import { MonoSensor } from './sensor.ts'

export const mono: Source<typeof monoSection> = {
  open({ hub, clock, log, quotas, pacing }, config) {
    const { listeners: wanted, files, tenant, feeds } = config
    if (wanted.length === 0 && files.length === 0) return {}
    const sensors = sensorsByTenant(config, quotas, (section, feed) => new MonoSensor(section, hub, clock, feed))
    const tenants = [tenant, ...feeds.map((feed) => feed.tenant)]
    const streams: StreamListening[] = []
    return {
      sensors: sensors.all(),
      // A file cannot be sent requests.
      controls: wanted.length > 0 ? monoControls({ hub, clock, tenants }) : [],
      async listen(listeners) {
        const pacerOf = pacersOf(sensors.all(), pacing)
        for (const { key, listen, ...through } of wanted) {
          const listening = listeners.opened(
            await listenStreams({
              address: listen,
              key,
              open(from, _port, reply) {
                const sensor = sensors.of(from)
                const taker = sensor.open(from, through, reply)
                return taker && { taker, pacer: pacerOf(sensor) }
              },
              failed: (error, from) => pacing.faults.report(sensors.of(from), error),
            }),
          )
          streams.push(listening)
          for (const sensor of sensors.all()) sensor.listens(`tcp ${formatAddress(listening.address)}`)
          listeners.bound({ key, use: 'mono', transport: 'tcp' }, listening.address)
        }
        // The writer of a file is unknown, so files belong to the section's own tenant.
        for (const { path, agent, follow } of files) {
          const open = () => sensors.own.openFile(agent)
          const failed = (error: Error): void => log.warn({ err: error, path }, 'a file of a Mono agent cannot be read')
          listeners.opened(followFile({ path, follow, clock, pacer: pacerOf(sensors.own), open, failed }))
          sensors.own.listens(`file ${path}`)
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
