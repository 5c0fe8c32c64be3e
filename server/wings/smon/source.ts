/** `smon.*`: the values of smon streams and datagrams. */
import { type Address, formatAddress } from '../../kernel/core/address.ts'
import { type SensorsByTenant, sensorsByTenant } from '../../kit/by-tenant.ts'
import { type Pacing, pacersOf } from '../../kit/io/pacer.ts'
import { listenStreams, type StreamListening } from '../../kit/io/tcp.ts'
import { listenUdp } from '../../kit/io/udp.ts'
import type { Source, SourceContext, SourceListeners } from '../../kit/source.ts'
import type { smonSection } from './config.ts'
import { SmonSensor } from './sensor.ts'

export const smon: Source<typeof smonSection> = {
  open({ hub, clock, log, quotas, pacing }, config) {
    const sensors = sensorsByTenant(config, quotas, (section, feed) => new SmonSensor(section, hub, clock, feed))
    let streams: StreamListening | undefined
    return {
      sensors: sensors.all(),
      async listen(listeners) {
        if (config.tcp !== undefined) streams = await listenForStreams(config.tcp, sensors, pacing, listeners)
        if (config.udp !== undefined) await listenForDatagrams(config.udp, sensors, { log, pacing }, listeners)
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

async function listenForStreams(
  address: Address,
  sensors: SensorsByTenant<SmonSensor>,
  pacing: Pacing,
  listeners: SourceListeners,
): Promise<StreamListening> {
  const key = 'smon.tcp'
  const pacerOf = pacersOf(sensors.all(), pacing)
  const listening = listeners.opened(
    await listenStreams({
      address,
      key,
      open(from, port) {
        const sensor = sensors.of(from)
        const taker = sensor.open(from, port)
        return taker && { taker, pacer: pacerOf(sensor) }
      },
      failed: (error, from) => pacing.faults.report(sensors.of(from), error),
    }),
  )
  for (const sensor of sensors.all()) sensor.listens(`tcp ${formatAddress(listening.address)}`)
  listeners.bound({ key, use: 'smon', transport: 'tcp' }, listening.address)
  return listening
}

async function listenForDatagrams(
  address: Address,
  sensors: SensorsByTenant<SmonSensor>,
  { log, pacing }: Pick<SourceContext, 'log' | 'pacing'>,
  listeners: SourceListeners,
): Promise<void> {
  const key = 'smon.udp'
  const listening = listeners.opened(
    await listenUdp({
      address,
      key,
      rival: 'another server',
      turns: pacing.turns,
      packet: (bytes, source, port) => sensors.of(source).datagram(bytes, source, port),
      packetFailed: (error, source) => pacing.faults.report(sensors.of(source), error),
      failed: (error) => {
        log.error({ err: error }, 'the smon listener for datagrams failed')
        for (const sensor of sensors.all()) sensor.failed(error.message)
      },
    }),
  )
  for (const sensor of sensors.all()) {
    sensor.listens(`udp ${formatAddress(listening.address)}`, () => listening.kernelDrops())
  }
  listeners.bound({ key, use: 'smon', transport: 'udp' }, listening.address)
}
