/** Makes the sensors and joins them to the hub. */
import { ADMIN_ROLE, type Identity } from '../../auth/permissions.ts'
import type { TlsFiles } from '../connections/tls/files.ts'
import type { Hub } from '../metrics/hub.ts'
import type { Producer } from '../sessions/producer.ts'
import type { Config } from '../start/config.ts'
import type { Parts } from '../start/parts.ts'
import { Feeds } from './by-tenant.ts'
import { gmetricSection } from './gmetric/config.ts'
import { GmetricSensor } from './gmetric/sensor.ts'
import { systemAccess } from './host/access.ts'
import { HostReader } from './host/reader.ts'
import { HostSensor } from './host/sensor.ts'
import { hostSection } from './host/source.ts'
import { type Feeds as Listening, listenFeeds } from './listen-all.ts'
import { monoSection } from './mono/config.ts'
import { MonoSensor } from './mono/sensor.ts'
import { OverQuota } from './over-quota.ts'
import { AuditSensor } from './producer/audit.ts'
import { channelsView } from './producer/channels.ts'
import { controlsView } from './producer/controls.ts'
import { metricsView } from './producer/metrics.ts'
import { ProducerSensor } from './producer/sensor.ts'
import { sensorsView } from './producer/sensors.ts'
import { type Stats, statsView } from './producer/stats.ts'
import { AgentPost } from './qmf/agent/post.ts'
import { Remembered } from './qmf/agent/remembered.ts'
import { shownOf } from './qmf/agent/shown.ts'
import { qmfSection } from './qmf/config.ts'
import { QmfSensor } from './qmf/sensor.ts'
import { smonSection } from './smon/config.ts'
import { SmonSensor } from './smon/sensor.ts'

export const sourceSections = {
  host: hostSection,
  gmetric: gmetricSection,
  smon: smonSection,
  mono: monoSection,
  qmf: qmfSection,
}

export interface Sensors {
  /** Opens what they listen on. Rejects with ListenError for an address that the configuration names. */
  listen(): Promise<Listening>
  /** Forgets what was silent for too long; to be called every second. */
  sweep(): void
}

export function addSensors(
  { hub, producer, sessions, notices, storage, behind }: Parts,
  config: Config,
  tls?: TlsFiles,
): Sensors {
  const { clock, registry, executor, turn } = producer
  const gmetric = gmetricFeeds(config, hub, producer)
  // What is read in one turn is read once.
  const turnClock = { monotonicMs: turn.once(() => clock.monotonicMs()), microseconds: () => clock.microseconds() }
  const host = new HostSensor(config.producer.name, new HostReader(systemAccess()), turnClock, process.platform)
  hub.add(host)
  const smon = smonFeeds(config, hub, producer)
  const mono = monoFeeds(config, hub, producer)
  const isMonoOn = config.mono.listeners.length > 0 || config.mono.files.length > 0
  const listening = [...gmetric.all(), ...smon.all(), ...(isMonoOn ? mono.all() : [])]
  const qmf = qmfSensors(config, hub, producer)
  for (const sensor of [...listening, ...qmf]) hub.add(sensor)
  for (const { liveness } of gmetric.all()) hub.add(liveness)
  const overQuota = new OverQuota(producer.quotas, notices, clock)
  const started = clock.monotonicMs()
  const ofTenant = ({ tenant }: Identity) => ({
    connections: producer.quotas.of(tenant).connections.used,
    channels: [...registry.all()].filter(({ owner }) => owner.tenant === tenant).length,
  })
  const stats = (identity: Identity): Stats => ({
    software: producer.software,
    name: producer.name,
    uptimeSeconds: (clock.monotonicMs() - started) / 1000,
    ...(identity.role === ADMIN_ROLE ? { connections: sessions.count, channels: registry.count } : ofTenant(identity)),
    unstoredBytes: producer.host.unstored,
    residentBytes: process.memoryUsage.rss(),
    storage: storage(),
  })
  const agents = qmfAgents(config, hub, producer, stats)
  const views = [
    metricsView(() => hub.sensors, producer.rights),
    controlsView((identity) => executor.visible(identity)),
    channelsView(() => registry.all()),
    sensorsView(() => [...hub.sensors, ...agents, ...(tls === undefined ? [] : [tls])], hub.fences),
    statsView(stats),
  ]
  hub.add(new ProducerSensor(views, clock))
  hub.add(new AuditSensor(producer.audit, producer.log))
  return {
    listen: () => listenFeeds({ gmetric, smon, mono, qmf, agents }, config, { producer, behind }),
    sweep() {
      for (const sensor of listening) sensor.sweep()
      for (const { liveness } of gmetric.all()) liveness.sweep()
      overQuota.tell()
    },
  }
}

/** One for the section's own tenant, and one for each that `feed` names. */
function gmetricFeeds({ gmetric: section }: Config, hub: Hub, { clock, quotas }: Producer): Feeds<GmetricSensor> {
  const meter = (tenant: string) => quotas.of(tenant).values
  return new Feeds({
    own: new GmetricSensor(section, hub, clock, { meter: meter(section.tenant) }),
    others: section.feeds.map(({ tenant, allow }) => {
      const options = { meter: meter(tenant), named: tenant }
      return { allow, sensor: new GmetricSensor({ ...section, tenant, allow }, hub, clock, options) }
    }),
  })
}

function smonFeeds({ smon: section }: Config, hub: Hub, { clock, quotas }: Producer): Feeds<SmonSensor> {
  const meter = (tenant: string) => quotas.of(tenant).values
  return new Feeds({
    own: new SmonSensor(section, hub, clock, { meter: meter(section.tenant) }),
    others: section.feeds.map(({ tenant, allow }) => {
      const options = { meter: meter(tenant), named: tenant }
      return { allow, sensor: new SmonSensor({ ...section, tenant, allow }, hub, clock, options) }
    }),
  })
}

function monoFeeds({ mono: section }: Config, hub: Hub, { clock, quotas }: Producer): Feeds<MonoSensor> {
  const meter = (tenant: string) => quotas.of(tenant).values
  return new Feeds({
    own: new MonoSensor(section, hub, clock, { meter: meter(section.tenant) }),
    others: section.feeds.map(({ tenant, allow }) => {
      const options = { meter: meter(tenant), named: tenant }
      return { allow, sensor: new MonoSensor({ ...section, tenant, allow }, hub, clock, options) }
    }),
  })
}

/** One for each tenant that has brokers. */
function qmfSensors({ qmf: tables }: Config, hub: Hub, { clock, quotas }: Producer): QmfSensor[] {
  return [...new Set(tables.map(({ tenant }) => tenant))].map((tenant) => {
    const brokers = tables.filter((table) => table.tenant === tenant).map(({ name }) => name)
    const named = tenant === 'default' ? undefined : tenant
    return new QmfSensor({ tenant, brokers, meter: quotas.of(tenant).values, named }, hub, clock)
  })
}

/** One for each broker that is to know of this server. It is shown what a consumer of the broker's tenant is. */
function qmfAgents(
  { qmf, producer: { name: label, dataDir } }: Config,
  hub: Hub,
  { clock, log, registry }: Producer,
  stats: (identity: Identity) => Stats,
): AgentPost[] {
  const tables = qmf.filter(({ isAgent }) => isAgent)
  if (tables.length === 0) return []
  const remembered = new Remembered(dataDir, log)
  return tables.map(({ name: broker, tenant }) => {
    const shown = shownOf({
      tenant,
      stats: () => stats({ userId: 0, tenant, name: '', role: '' }),
      channels: () => registry.all(),
      sensors: () => hub.sensors,
    })
    return new AgentPost({ broker, tenant, label, shown, remembered, clock })
  })
}
