/**
 * Makes the sensors and joins them to the hub; opens what they listen on only when bindings are back from the store,
 * since a value that arrives before would be nobody's.
 */
import type { Address, Config } from './config.ts'
import { ListenError } from './listeners/errors.ts'
import { listenUdp } from './listeners/udp.ts'
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

export interface Sensors {
  /** Opens the listeners. Rejects with ListenError for an address that the configuration names. */
  listen(): Promise<Feeds>
  /** Forgets what was silent for too long; to be called every second. */
  sweep(): void
}

export interface Feeds {
  /** Where gmetric packets are taken; undefined: off, or its default address was not free. */
  readonly gmetric: Address | undefined
  close(): Promise<void>
}

export function addSensors({ hub, producer, sessions, storage }: Parts, config: Config): Sensors {
  const { clock, registry, executor, log } = producer
  const gmetric = new GmetricSensor(config.gmetric, hub, clock)
  const host = new HostSensor(config.producer.name, new HostReader(systemAccess()), clock, process.platform)
  hub.add(host)
  hub.add(gmetric)
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
    sensorsView(() => [host, gmetric]),
    statsView(stats),
  ]
  hub.add(new ProducerSensor(views, clock))
  return { listen: () => listenGmetric(gmetric, config, log), sweep: () => gmetric.sweep() }
}

async function listenGmetric(
  gmetric: GmetricSensor,
  { gmetric: config }: Config,
  log: Parts['producer']['log'],
): Promise<Feeds> {
  const none: Feeds = { gmetric: undefined, close: async () => {} }
  if (config.listen === undefined) return none
  try {
    const listening = await listenUdp({
      address: config.listen,
      key: 'gmetric.listen',
      rival: 'gmond, or another server,',
      packet: (bytes, source) => gmetric.packet(bytes, source),
      failed: (error) => {
        log.error({ err: error }, 'the gmetric listener failed')
        gmetric.failed(error.message)
      },
    })
    gmetric.listens(`udp ${listening.address.host}:${listening.address.port}`, () => listening.kernelDrops())
    return { gmetric: listening.address, close: () => listening.close() }
  } catch (error) {
    if (config.listenNamed || !(error instanceof ListenError)) throw error
    log.warn(`${error.message}: the server starts without gmetric`)
    gmetric.failed(error.message)
    return none
  }
}
