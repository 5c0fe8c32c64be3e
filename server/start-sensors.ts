/** Makes the sensors and joins them to the hub. */
import type { Config } from './config.ts'
import type { Parts } from './parts.ts'
import { GmetricSensor } from './sensors/gmetric/sensor.ts'
import { systemAccess } from './sensors/host/access.ts'
import { HostReader } from './sensors/host/reader.ts'
import { HostSensor } from './sensors/host/sensor.ts'
import { channelsView } from './sensors/producer/channels.ts'
import { controlsView } from './sensors/producer/controls.ts'
import { metricsView } from './sensors/producer/metrics.ts'
import { ProducerSensor } from './sensors/producer/sensor.ts'
import { sensorsView } from './sensors/producer/sensors.ts'
import { statsView } from './sensors/producer/stats.ts'
import { SmonSensor } from './sensors/smon/sensor.ts'
import { type Feeds, listenFeeds } from './start-feeds.ts'

export interface Sensors {
  /** Opens what they listen on. Rejects with ListenError for an address that the configuration names. */
  listen(): Promise<Feeds>
  /** Forgets what was silent for too long; to be called every second. */
  sweep(): void
}

export function addSensors({ hub, producer, sessions, storage, behind }: Parts, config: Config): Sensors {
  const { clock, registry, executor, turn } = producer
  const gmetric = new GmetricSensor(config.gmetric, hub, clock)
  // What is read in one turn is read once.
  const turnClock = { monotonicMs: turn.once(() => clock.monotonicMs()), microseconds: () => clock.microseconds() }
  const host = new HostSensor(config.producer.name, new HostReader(systemAccess()), turnClock, process.platform)
  hub.add(host)
  const smon = new SmonSensor(config.smon, hub, clock)
  hub.add(gmetric)
  hub.add(smon)
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
    sensorsView(() => hub.sensors),
    statsView(stats),
  ]
  hub.add(new ProducerSensor(views, clock))
  return {
    listen: () => listenFeeds({ gmetric, smon }, config, { producer, behind }),
    sweep() {
      gmetric.sweep()
      smon.sweep()
    },
  }
}
