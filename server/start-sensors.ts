/** Makes the sensors, joins them to the hub, opens what they listen on. */
import type { Address, Config } from './config.ts'
import type { Parts } from './parts.ts'
import { systemAccess } from './sensors/host/access.ts'
import { HostReader } from './sensors/host/reader.ts'
import { HostSensor } from './sensors/host/sensor.ts'
import { channelsView } from './sensors/producer/channels.ts'
import { controlsView } from './sensors/producer/controls.ts'
import { metricsView } from './sensors/producer/metrics.ts'
import { ProducerSensor } from './sensors/producer/sensor.ts'
import { sensorsView, type Watched } from './sensors/producer/sensors.ts'
import { statsView } from './sensors/producer/stats.ts'

export interface Sensors {
  readonly gmetric: Address | undefined
  close(): Promise<void>
}

/** Rejects with ListenError for an address that the configuration names. */
export async function startSensors(parts: Parts, config: Config): Promise<Sensors> {
  const { hub, producer, sessions, storage } = parts
  const { clock, registry, executor } = producer
  const watched: Watched[] = []
  const host = new HostSensor(config.producer.name, new HostReader(systemAccess()), clock, process.platform)
  hub.add(host)
  const started = clock.monotonicMs()
  const stats = () => ({
    software: producer.software,
    name: producer.name,
    uptimeSeconds: (clock.monotonicMs() - started) / 1000,
    connections: sessions.count,
    channels: registry.count,
    unstoredBytes: producer.host.unstored,
    residentBytes: process.memoryUsage.rss(),
    storage: storage(),
  })
  const views = [
    metricsView(() => hub.sensors),
    controlsView((identity) => executor.visible(identity)),
    channelsView(() => registry.all()),
    sensorsView(() => watched),
    statsView(stats),
  ]
  hub.add(new ProducerSensor(views, clock))
  return { gmetric: undefined, close: async () => {} }
}
