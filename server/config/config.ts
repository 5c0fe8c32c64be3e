/**
 * The configuration as the rest of the server sees it: checked, complete and read-only. Units are in the names,
 * an address that is off is undefined. The keys themselves are declared in config/schema.ts.
 */
import { isTable } from './lines.ts'
import { type Loaded, type LoadOptions, load } from './load.ts'

export { type Address, formatAddress, type Network, type Peer } from '../core/address.ts'
export type { LoadOptions } from './load.ts'
export { ConfigError, type ConfigProblem } from './problems.ts'

type DeepReadonly<T> = T extends object ? { readonly [K in keyof T]: DeepReadonly<T[K]> } : T

export type Config = DeepReadonly<ReturnType<typeof toConfig>>
/** A program that may be run as a control. */
export type ExecTable = Config['exec'][number]
export type ExecParameter = ExecTable['parameters'][number]
/** A Qpid broker to connect to. */
export type QmfTable = Config['qmf'][number]

/**
 * Reads the file (`file`, or CINNABAR_CONFIG) and the environment's overrides. Throws a ConfigError with every problem.
 *
 *     const config = loadConfig({ file: 'cinnabar.toml', env: process.env })
 *     config.listen.tcp?.port
 */
export function loadConfig(options: LoadOptions): Config {
  return toConfig(load(options))
}

/** What a server without file and environment runs with. */
export function defaultConfig(): Config {
  return loadConfig({ env: {} })
}

function toConfig({ values, exec, qmf, named, sections }: Loaded) {
  const { producer, listen, tls, auth, jwt, http, storage, channels, limits, quota, dial, audit } = values
  const { host, gmetric, smon, mono, log } = values
  return {
    producer: { name: producer.name, dataDir: producer.data_dir },
    listen: { tcp: listen.tcp, http: listen.http, tls: listen.tls, https: listen.https },
    tls: {
      cert: tls.cert || undefined,
      key: tls.key || undefined,
      clientCa: tls.client_ca || undefined,
      clientRevoked: tls.client_revoked || undefined,
    },
    auth: { plainOnLoopback: auth.plain_on_loopback, scramIterations: auth.scram_iterations },
    jwt: { keys: jwt.keys || undefined, issuer: jwt.issuer, audience: jwt.audience, identity: jwt.identity },
    http: {
      allowedOrigins: http.allowed_origins,
      pages: http.pages || undefined,
      requestsPerMinute: http.requests_per_minute,
    },
    storage: { synchronous: storage.synchronous },
    channels: {
      maxBytes: channels.max_bytes,
      maxAgeMs: channels.max_age,
      overflow: channels.overflow,
      window: channels.window,
      windowBytes: channels.window_bytes,
      expireMs: channels.expire,
    },
    limits: {
      connections: limits.connections,
      channelsPerIdentity: limits.channels_per_identity,
      instancesPerIdentity: limits.instances_per_identity,
    },
    /** Of each tenant that has none of its own; 0: no limit. */
    quota: {
      connections: quota.connections,
      channels: quota.channels,
      queuedBytes: quota.queued_bytes,
      instances: quota.instances,
      valuesPerSecond: quota.values_per_second,
      controlsPerMinute: quota.controls_per_minute,
      dialsPerMinute: quota.dials_per_minute,
    },
    dial: { allow: dial.allow, ca: dial.ca || undefined },
    audit: { keepMs: audit.keep },
    host: { intervalMs: host.interval_ms },
    gmetric: {
      listen: gmetric.listen,
      /** Whether somebody asked for this address: then it must be bound, where the default one is only tried. */
      listenNamed: isTable(named['gmetric']) && 'listen' in named['gmetric'],
      tenant: gmetric.tenant,
      feeds: gmetric.feed,
      allow: gmetric.allow,
      spoof: gmetric.spoof,
      multicast: gmetric.multicast || undefined,
      multicastInterface: gmetric.multicast_interface || undefined,
      requestMetadata: gmetric.request_metadata,
      packetsPerSecond: gmetric.packets_per_second,
      maxHosts: gmetric.max_hosts,
      maxMetrics: gmetric.max_metrics,
      hostTmaxMs: gmetric.host_tmax,
      hostDmaxMs: gmetric.host_dmax,
      xml: gmetric.xml,
      xmlAllow: gmetric.xml_allow,
      cluster: gmetric.cluster,
    },
    smon: {
      tcp: smon.tcp,
      udp: smon.udp,
      tenant: smon.tenant,
      feeds: smon.feed,
      allow: smon.allow,
      maxSources: smon.max_sources,
      maxTokens: smon.max_tokens,
      maxMetrics: smon.max_metrics,
      sources: smon.source,
    },
    mono: {
      /** None where the section is absent. */
      listeners: sections.has('mono')
        ? [
            ...(mono.listen
              ? [{ key: 'mono.listen', listen: mono.listen, dialect: mono.dialect, agent: undefined }]
              : []),
            ...mono.listener.map(({ listen, dialect, agent }) => ({ key: 'mono.listener', listen, dialect, agent })),
          ]
        : [],
      files: mono.file,
      tenant: mono.tenant,
      feeds: mono.feed,
      allow: mono.allow,
      maxAgents: mono.max_agents,
      maxCounters: mono.max_counters,
      maxMetrics: mono.max_metrics,
    },
    log: { level: log.level },
    exec,
    qmf,
  }
}
