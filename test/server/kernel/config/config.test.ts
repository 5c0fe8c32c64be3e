import { hostname } from 'node:os'
import { describe, expect, test } from 'vitest'
import { defaultConfig, loadConfig } from '../../../../server/start/config.ts'

function load(text: string, env: NodeJS.ProcessEnv = {}) {
  return loadConfig({ file: 'c.toml', env, readFile: () => new TextEncoder().encode(text) })
}

describe('a configuration', () => {
  test('without file and environment is all defaults', () => {
    expect(defaultConfig()).toEqual({
      producer: { name: hostname(), dataDir: './data' },
      listen: {
        tcp: { host: '127.0.0.1', port: 7650 },
        http: { host: '127.0.0.1', port: 7651 },
        tls: undefined,
        https: undefined,
      },
      tls: { cert: undefined, key: undefined, clientCa: undefined, clientRevoked: undefined },
      jwt: { keys: undefined, issuer: '', audience: '', identity: 'sub' },
      auth: { plainOnLoopback: true, scramIterations: 600_000 },
      http: { allowedOrigins: [], console: true, hosts: [], pages: undefined, requestsPerMinute: 6_000 },
      query: { maxSamples: 50_000_000, timeout: 120_000, maxConcurrent: 4, slow: 10_000 },
      metrics: {
        openTo: [
          { address: '127.0.0.0', prefix: 8, family: 'ipv4' },
          { address: '::1', prefix: 128, family: 'ipv6' },
        ],
      },
      storage: { synchronous: 'full', lingerMs: 5 },
      channels: {
        maxBytes: 67_108_864,
        maxAgeMs: 7 * 24 * 3_600_000,
        overflow: 'drop-oldest',
        window: 65_536,
        windowBytes: 8_388_608,
        expireMs: 7 * 24 * 3_600_000,
        orphanAfterMs: 3_600_000,
      },
      limits: {
        connections: 10_000,
        unauthenticatedPerNetwork: 1_024,
        channelsPerIdentity: 1_024,
        instancesPerIdentity: 65_536,
        patternsPerIdentity: 1_000,
      },
      quota: {
        connections: 1_000,
        channels: 20_000,
        queuedBytes: { share: 0.5 },
        instances: 4_000_000,
        valuesPerSecond: 4_000_000,
        controlsPerMinute: 1_200,
        auditBytesPerDay: 128 << 20,
        dialsPerMinute: 60,
        series: 1_000_000,
        historyBytes: { share: 0.1 },
        historySeries: 1_000_000,
        rules: 1_000,
        notifiers: 20,
        ruleSecondsPerHour: 360,
      },
      dial: { allow: [], ca: undefined },
      drain: [],
      announce: [],
      cluster: undefined,
      audit: { keepMs: 365 * 24 * 3_600_000 },
      approval: { timeoutMs: 3_600_000 },
      host: { intervalMs: 1_000 },
      gmetric: {
        listen: { host: '127.0.0.1', port: 8649 },
        listenNamed: false,
        tenant: 'default',
        feeds: [],
        allow: [
          { address: '127.0.0.0', prefix: 8, family: 'ipv4' },
          { address: '::1', prefix: 128, family: 'ipv6' },
        ],
        spoof: true,
        multicast: undefined,
        multicastInterface: undefined,
        requestMetadata: 'off',
        packetsPerSecond: 100_000,
        maxHosts: 10_000,
        maxMetrics: 100_000,
        hostTmaxMs: 20_000,
        hostDmaxMs: 86_400_000,
        xml: undefined,
        xmlAllow: [
          { address: '127.0.0.0', prefix: 8, family: 'ipv4' },
          { address: '::1', prefix: 128, family: 'ipv6' },
        ],
        cluster: 'unspecified',
      },
      smon: {
        tcp: undefined,
        udp: undefined,
        tenant: 'default',
        feeds: [],
        allow: [
          { address: '127.0.0.0', prefix: 8, family: 'ipv4' },
          { address: '::1', prefix: 128, family: 'ipv6' },
        ],
        maxSources: 1_000,
        maxTokens: 10_000,
        maxMetrics: 100_000,
        sources: [],
      },
      mono: {
        listeners: [],
        files: [],
        tenant: 'default',
        feeds: [],
        allow: [
          { address: '127.0.0.0', prefix: 8, family: 'ipv4' },
          { address: '::1', prefix: 128, family: 'ipv6' },
        ],
        anywhere: false,
        maxAgents: 1_000,
        maxCounters: 4_096,
        maxMetrics: 100_000,
      },
      alerts: { rules: [], builtin: true, interval: 60_000, role: 'consumer' },
      history: {
        keepMs: 30 * 86_400_000,
        keepRollupsMs: 730 * 86_400_000,
        maxBytes: { share: 0.1 },
        metrics: [
          ...['gmetric.*', 'smon.*', 'mono.*', 'statsd.*', 'otlp.*', 'prometheus.*'],
          ...['rules.*', 'host.*', 'producer.stats.*'],
        ],
        resolutionMs: 1_000,
        intervalMs: 10_000,
        below: false,
        engine: undefined,
      },
      recent: { maxBytes: 67_108_864, maxAgeMs: 900_000 },
      log: { level: 'info' },
      exec: [],
      notify: [],
      otlp: { keepMs: 600_000 },
      prometheus: { keepMs: 600_000, scrapeConfig: undefined, scrapeTenant: 'default' },
      qmf: [],
      statsd: [],
      scrape: [],
      upstream: [],
      plugin: [],
    })
  })

  test.each([
    ['"25%"', { share: 0.25 }],
    ['"100%"', { share: 1 }],
    ['4096', 4096],
    ['0', 0],
  ])('takes bytes, or a share of the file system: %s', (text, expected) => {
    expect(load(`[quota]\nqueued_bytes = ${text}`).quota.queuedBytes).toEqual(expected)
  })

  test.each(['"0%"', '"101%"', '-1', '0.5', '"half"'])(
    'refuses %s as bytes or a share, and says what it may be',
    (text) => {
      expect(() => load(`[quota]\nqueued_bytes = ${text}`)).toThrow('or a share from "1%" to "100%"')
    },
  )

  test('takes every key from the file', () => {
    const config = load(`
      [producer]
      name = "node1"
      data_dir = "/var/lib/cinnabar"
      [listen]
      tcp = "[::]:1"
      http = ""
      tls = "127.0.0.1:7652"
      https = "127.0.0.1:7653"
      [tls]
      cert = "/server.pem"
      key = "/server.key"
      client_ca = "/ca.pem"
      client_revoked = "/revoked.txt"
      [auth]
      plain_on_loopback = false
      scram_iterations = 4096
      [jwt]
      keys = "/jwks.json"
      issuer = "https://login.example"
      audience = "cinnabar"
      identity = "email"
      [http]
      allowed_origins = ["https://monitor.example:8443"]
      hosts = ["Monitor.example"]
      pages = "/pages"
      console = false
      requests_per_minute = 9
      [metrics]
      open_to = ["198.51.100.0/24"]
      [query]
      max_samples = 1000
      timeout = "90s"
      max_concurrent = 3
      slow = "20s"
      [storage]
      synchronous = "normal"
      linger = "20ms"
      [channels]
      max_bytes = 8192
      max_age = "30s"
      overflow = "keep-latest"
      window = 7
      window_bytes = 4096
      expire = "12h"
      orphan_after = "2h"
      [limits]
      connections = 1
      channels_per_identity = 2
      instances_per_identity = 3
      unauthenticated_per_network = 4
      patterns_per_identity = 4
      [quota]
      connections = 11
      channels = 12
      queued_bytes = 13
      instances = 14
      values_per_second = 15
      controls_per_minute = 16
      audit_bytes_per_day = 18
      dials_per_minute = 17
      series = 18
      history_bytes = 19
      history_series = 20
      rules = 30
      notifiers = 31
      rule_seconds_per_hour = 40
      [dial]
      allow = ["tls://*.example.org:7650"]
      ca = "/dial-ca.pem"
      [approval]
      timeout = "2h"
      [audit]
      keep = "30d"
      [host]
      interval_ms = 10
      [gmetric]
      listen = "localhost:0"
      tenant = "t1"
      allow = ["10.0.0.0/8"]
      spoof = false
      max_hosts = 4
      max_metrics = 5
      multicast = "239.2.11.71"
      multicast_interface = "10.0.0.1"
      request_metadata = "multicast"
      packets_per_second = 0
      host_tmax = "30s"
      host_dmax = "1h"
      xml = "127.0.0.1:8649"
      xml_allow = ["10.0.0.5/32"]
      cluster = "c1"

      [[gmetric.feed]]
      tenant = "acme"
      allow = ["10.1.0.0/16"]
      xml = "127.0.0.1:8651"
      xml_allow = ["10.0.0.6/32"]
      [smon]
      tcp = "127.0.0.1:2606"
      udp = "[::1]:2606"
      tenant = "t2"
      allow = ["192.0.2.0/24"]
      max_sources = 6
      max_tokens = 7
      max_metrics = 8
      [[smon.source]]
      name = "db1"
      address = "192.0.2.7"
      [[smon.source]]
      name = "db2"
      address = "[2001:0db8::0001]:70"
      [mono]
      listen = "127.0.0.1:8888"
      dialect = "mono-2014"
      tenant = "t3"
      allow = ["198.51.100.0/24"]
      anywhere = true
      max_agents = 9
      max_counters = 10
      max_metrics = 11
      [otlp]
      keep = "20m"
      [prometheus]
      keep = "30m"
      scrape_config = "/etc/prometheus.yml"
      scrape_tenant = "north"
      [history]
      keep = "1h"
      keep_rollups = "2h"
      max_bytes = 21
      metrics = ["gmetric.load_*", "rules.*"]
      resolution = "0"
      interval = "5s"
      below = true
      engine = "https://metrics.example/"
      engine_tenant_label = "tenant"
      engine_username = "reader"
      engine_password_file = "/engine.password"
      engine_ca = "/engine-ca.pem"
      [alerts]
      rules = ["/rules/*.yml"]
      builtin = true
      interval = "10s"
      role = "ops"
      [recent]
      max_bytes = 0
      max_age = "1m"
      [log]
      level = "debug"`)
    expect(config).toEqual({
      producer: { name: 'node1', dataDir: '/var/lib/cinnabar' },
      listen: {
        tcp: { host: '::', port: 1 },
        http: undefined,
        tls: { host: '127.0.0.1', port: 7652 },
        https: { host: '127.0.0.1', port: 7653 },
      },
      tls: { cert: '/server.pem', key: '/server.key', clientCa: '/ca.pem', clientRevoked: '/revoked.txt' },
      auth: { plainOnLoopback: false, scramIterations: 4_096 },
      jwt: { keys: '/jwks.json', issuer: 'https://login.example', audience: 'cinnabar', identity: 'email' },
      http: {
        allowedOrigins: ['https://monitor.example:8443'],
        hosts: ['monitor.example'],
        pages: '/pages',
        console: false,
        requestsPerMinute: 9,
      },
      metrics: { openTo: [{ address: '198.51.100.0', prefix: 24, family: 'ipv4' }] },
      query: { maxSamples: 1_000, timeout: 90_000, maxConcurrent: 3, slow: 20_000 },
      storage: { synchronous: 'normal', lingerMs: 20 },
      channels: {
        maxBytes: 8_192,
        maxAgeMs: 30_000,
        overflow: 'keep-latest',
        window: 7,
        windowBytes: 4_096,
        expireMs: 12 * 3_600_000,
        orphanAfterMs: 2 * 3_600_000,
      },
      limits: {
        connections: 1,
        channelsPerIdentity: 2,
        instancesPerIdentity: 3,
        unauthenticatedPerNetwork: 4,
        patternsPerIdentity: 4,
      },
      quota: {
        connections: 11,
        channels: 12,
        queuedBytes: 13,
        instances: 14,
        valuesPerSecond: 15,
        controlsPerMinute: 16,
        auditBytesPerDay: 18,
        dialsPerMinute: 17,
        series: 18,
        historyBytes: 19,
        historySeries: 20,
        rules: 30,
        notifiers: 31,
        ruleSecondsPerHour: 40,
      },
      dial: { allow: ['tls://*.example.org:7650'], ca: '/dial-ca.pem' },
      drain: [],
      announce: [],
      cluster: undefined,
      audit: { keepMs: 30 * 24 * 3_600_000 },
      approval: { timeoutMs: 7_200_000 },
      host: { intervalMs: 10 },
      gmetric: {
        listen: { host: 'localhost', port: 0 },
        listenNamed: true,
        tenant: 't1',
        feeds: [
          {
            tenant: 'acme',
            allow: [{ address: '10.1.0.0', prefix: 16, family: 'ipv4' }],
            xml: { host: '127.0.0.1', port: 8651 },
            xmlAllow: [{ address: '10.0.0.6', prefix: 32, family: 'ipv4' }],
            cluster: 'acme',
          },
        ],
        allow: [{ address: '10.0.0.0', prefix: 8, family: 'ipv4' }],
        spoof: false,
        multicast: '239.2.11.71',
        multicastInterface: '10.0.0.1',
        requestMetadata: 'multicast',
        packetsPerSecond: 0,
        maxHosts: 4,
        maxMetrics: 5,
        hostTmaxMs: 30_000,
        hostDmaxMs: 3_600_000,
        xml: { host: '127.0.0.1', port: 8649 },
        xmlAllow: [{ address: '10.0.0.5', prefix: 32, family: 'ipv4' }],
        cluster: 'c1',
      },
      smon: {
        tcp: { host: '127.0.0.1', port: 2606 },
        udp: { host: '::1', port: 2606 },
        tenant: 't2',
        feeds: [],
        allow: [{ address: '192.0.2.0', prefix: 24, family: 'ipv4' }],
        maxSources: 6,
        maxTokens: 7,
        maxMetrics: 8,
        sources: [
          { name: 'db1', address: '192.0.2.7', port: undefined },
          { name: 'db2', address: '2001:db8::1', port: 70 },
        ],
      },
      mono: {
        listeners: [
          {
            key: 'mono.listen',
            listen: { host: '127.0.0.1', port: 8888 },
            dialect: 'mono-2014',
            agent: undefined,
          },
        ],
        files: [],
        tenant: 't3',
        feeds: [],
        allow: [{ address: '198.51.100.0', prefix: 24, family: 'ipv4' }],
        anywhere: true,
        maxAgents: 9,
        maxCounters: 10,
        maxMetrics: 11,
      },
      history: {
        keepMs: 3_600_000,
        keepRollupsMs: 7_200_000,
        maxBytes: 21,
        metrics: ['gmetric.load_*', 'rules.*'],
        resolutionMs: 0,
        intervalMs: 5_000,
        below: true,
        engine: {
          href: 'https://metrics.example/',
          tenantLabel: 'tenant',
          tokenFile: undefined,
          username: 'reader',
          passwordFile: '/engine.password',
          ca: '/engine-ca.pem',
        },
      },
      alerts: { rules: ['/rules/*.yml'], builtin: true, interval: 10_000, role: 'ops' },
      recent: { maxBytes: 0, maxAgeMs: 60_000 },
      log: { level: 'debug' },
      exec: [],
      notify: [],
      otlp: { keepMs: 1_200_000 },
      prometheus: { keepMs: 1_800_000, scrapeConfig: '/etc/prometheus.yml', scrapeTenant: 'north' },
      qmf: [],
      statsd: [],
      scrape: [],
      upstream: [],
      plugin: [],
    })
  })

  test('may be empty, and written with dotted keys, inline tables or a byte order mark', () => {
    expect(load('', { CINNABAR_PRODUCER_DATA_DIR: './data' })).toEqual(defaultConfig())
    expect(load('listen.tcp = "h:5"').listen.tcp).toEqual({ host: 'h', port: 5 })
    expect(load('listen = { tcp = "h:5" }').listen.tcp).toEqual({ host: 'h', port: 5 })
    expect(load('\uFEFF[log]\nlevel = "warn"').log.level).toBe('warn')
  })

  test('knows the gmetric address as named even if it repeats the default', () => {
    expect(load('[gmetric]\nspoof = true').gmetric.listenNamed).toBe(false)
    expect(load('[gmetric]\nlisten = "127.0.0.1:8649"').gmetric.listenNamed).toBe(true)
    expect(load('', { CINNABAR_GMETRIC_LISTEN: '127.0.0.1:8649' }).gmetric.listenNamed).toBe(true)
  })
})
