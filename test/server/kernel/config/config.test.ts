import { hostname } from 'node:os'
import { describe, expect, test } from 'vitest'
import { ConfigError, defaultConfig, loadConfig } from '../../../../server/start/config.ts'

function load(text: string, env: NodeJS.ProcessEnv = {}) {
  return loadConfig({ file: 'c.toml', env, readFile: () => new TextEncoder().encode(text) })
}

function complaints(text: string, env: NodeJS.ProcessEnv = {}): string[] {
  try {
    load(text, env)
  } catch (error) {
    if (error instanceof ConfigError) return error.message.split('\n')
    throw error
  }
  return []
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
      },
      dial: { allow: [], ca: undefined },
      drain: [],
      announce: [],
      cluster: undefined,
      audit: { keepMs: 365 * 24 * 3_600_000 },
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
      recent: { maxBytes: 67_108_864, maxAgeMs: 900_000 },
      log: { level: 'info' },
      exec: [],
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
      [dial]
      allow = ["tls://*.example.org:7650"]
      ca = "/dial-ca.pem"
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
      },
      dial: { allow: ['tls://*.example.org:7650'], ca: '/dial-ca.pem' },
      drain: [],
      announce: [],
      cluster: undefined,
      audit: { keepMs: 30 * 24 * 3_600_000 },
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
      recent: { maxBytes: 0, maxAgeMs: 60_000 },
      log: { level: 'debug' },
      exec: [],
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

describe('an error', () => {
  test.each([
    ['[listen]\nhtpp = ""', 'c.toml:2: unknown key `listen.htpp`: did you mean `http`?'],
    ['[listen]\n\nudp = ""', 'c.toml:3: unknown key `listen.udp`: [listen] has tcp, http, tls, https'],
    ['[Listen]\ntcp = ""', 'c.toml:1: unknown section `Listen`: did you mean `listen`?'],
    ['data_dir = "x"', 'c.toml:1: unknown section `data_dir`: did you mean `producer.data_dir`?'],
    ['listen = 5', 'c.toml:1: `listen`: expected a section [listen], found 5'],
    ['listen = 2026-01-01', 'c.toml:1: `listen`: expected a section [listen], found a date'],
    ['[[listen]]', 'c.toml:1: `listen`: expected a section [listen], found a list'],
    ['[log.level]', 'c.toml:1: `log.level`: expected one of "trace", .*, found a table'],
    ['[log]\nlevel = "Info"', 'c.toml:2: `log.level`: expected one of "trace", .*, found "Info"'],
    ['[host]\ninterval_ms = 9', 'c.toml:2: `host.interval_ms`: expected an integer from 10 to 86400000, found 9'],
    ['[host]\ninterval_ms = 50.0', 'c.toml:2: `host.interval_ms`: expected an integer .*, found the float 50.0'],
    ['[auth]\nscram_iterations = 10_000_001', 'c.toml:2: `auth.scram_iterations`: expected .*, found 10000001'],
    ['[auth]\nplain_on_loopback = "yes"', 'c.toml:2: `auth.plain_on_loopback`: expected true or false, found "yes"'],
    ['[channels]\nmax_age = 7', 'c.toml:2: `channels.max_age`: expected a duration from 1s to 3650d.*, found 7'],
    ['[channels]\nexpire = "1ms"', 'c.toml:2: `channels.expire`: expected a duration .*, found "1ms"'],
    ['[listen]\ntcp = "::1:7650"', 'c.toml:2: `listen.tcp`: expected an address like .*, found "::1:7650"'],
    ['[producer]\nname = ""', 'c.toml:2: `producer.name`: expected a name of 1 to 255 bytes .*, found ""'],
    ['[producer]\ndata_dir = ""', 'c.toml:2: `producer.data_dir`: expected a path, not empty, found ""'],
    ['[gmetric]\ntenant = "a/b"', 'c.toml:2: `gmetric.tenant`: expected a tenant: .*, found "a/b"'],
    ['[gmetric]\nallow = [\n"::/0",\n"::/129"]', 'c.toml:2: `gmetric.allow`: expected a list of .*, found "::/129"'],
    ['[[smon.source]]\nname = "a"', 'c.toml:1: `smon.source`: expected tables .*, found number 1 without `address`'],
    [
      '[smon]\n[[smon.source]]\nname = "a"\naddress = "::1"\n[[smon.source]]\nname = "b"\naddress = "::1:x"',
      'c.toml:2: `smon.source`: expected tables .*, found number 2 with address = "::1:x"',
    ],
    [
      '[[smon.source]]\nname = "a"\naddress = "::1"\nport = 1',
      'c.toml:1: `smon.source`: expected tables .*, found number 1 with the key `port`',
    ],
    [
      '[[smon.source]]\nname = "a"\naddress = "::1"\n[[smon.source]]\nname = "b"\naddress = "0::1"',
      'c.toml:1: `smon.source`: expected tables .*, no address twice, found a list',
    ],
    [
      '[gmetric]\nmulticast = "10.0.0.1"',
      'c.toml:2: `gmetric.multicast`: expected an IPv4 multicast .*, found "10.0.0.1"',
    ],
    [
      '[gmetric]\nmulticast_interface = "lo"',
      'c.toml:2: `gmetric.multicast_interface`: expected an IPv4 .*, found "lo"',
    ],
    ['[gmetric]\nrequest_metadata = "multicast"', 'c.toml:2: `gmetric.request_metadata`.* no group is joined: set .*'],
    ['[gmetric]\nallow = "::/0"', 'c.toml:2: `gmetric.allow`: expected a list of networks .*, found "::/0"'],
    ['[http]\nallowed_origins = ["https://a.b/"]', 'c.toml:2: `http.allowed_origins`: .*, found "https://a.b/"'],
    ['[http]\nallowed_origins = ["https://a.b:443"]', 'c.toml:2: .*no default port, found "https://a.b:443"'],
    ['[http]\nhosts = ["a.b:80"]', 'c.toml:2: `http.hosts`: .*without ports, found "a.b:80"'],
    ['[http]\nhosts = ["127.0.0.1"]', 'c.toml:2: `http.hosts`: .*, found "127.0.0.1"'],
    ['[http]\nallowed_origins = ["*"]', 'c.toml:2: .*, found "\\*"'],
    ['[listen]\n__proto__ = 1', 'c.toml:2: unknown key `listen.__proto__`: .*'],
  ])('for %j says where, what was expected and what was found', (text, expected) => {
    const pattern = expected.replaceAll(/[.?[\]](?!\*)/g, '\\$&')
    expect(complaints(text)).toEqual([expect.stringMatching(new RegExp(`^${pattern}$`))])
  })

  test('does not keep the others from being reported, in the order of the file', () => {
    const text = '[log]\nlevel = 1\n[nothing_like_it]\n[channels]\nmax_bytes = 5000\n[listen]\ntcp = 1\nhtpp = ""'
    const found = complaints(text, { CINNABAR_LIMITS_CONNECTIONS: '0', CINNABAR_NOTHING: '' })
    expect(found.map((line) => line.split(': ').slice(0, 2).join(': '))).toEqual([
      'c.toml:2: `log.level`',
      'c.toml:3: unknown section `nothing_like_it`',
      'c.toml:5: `channels.window_bytes`',
      'c.toml:7: `listen.tcp`',
      'c.toml:8: unknown key `listen.htpp`',
      'CINNABAR_LIMITS_CONNECTIONS: `limits.connections`',
      'CINNABAR_NOTHING: unknown environment variable',
    ])
  })

  test('carries source and line of every problem', () => {
    const problem = { source: 'c.toml', line: 2, message: 'unknown key `log.x`: [log] has level' }
    expect(() => load('[log]\nx = 1')).toThrow(expect.objectContaining({ code: 'BAD_CONFIG', problems: [problem] }))
  })

  test('tells a window larger than its channel where either was written', () => {
    const message = '8388608 is more than `channels.max_bytes` (5000): lower the one or raise the other'
    const at = (place: string) => [`${place}: \`channels.window_bytes\`: ${message}`]
    expect(complaints('[channels]\nmax_bytes = 5000')).toEqual(at('c.toml:2'))
    expect(complaints('[channels]\nmax_bytes = 5000\nwindow_bytes = 8388608')).toEqual(at('c.toml:3'))
    expect(complaints('', { CINNABAR_CHANNELS_MAX_BYTES: '5000' })).toEqual(at('CINNABAR_CHANNELS_MAX_BYTES'))
    expect(load('[channels]\nmax_bytes = 8388608').channels.maxBytes).toBe(8_388_608)
  })
})
