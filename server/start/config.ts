/**
 * The whole configuration: the sections of the server itself, and those that others declare beside the code that uses them.
 * A key that nothing honours yet must not stand here: to accept it would be a promise.
 */
import { hostname } from 'node:os'
import { z } from 'zod'
import { isLoopback } from '../../auth/network.ts'
import { clusterSection } from '../cluster/config.ts'
import { announceSection } from '../edge/announce/config.ts'
import {
  dialSection,
  httpSection,
  jwtSection,
  listenSection,
  metricsSection,
  querySection,
  tlsSection,
} from '../edge/config.ts'
import { type ConfigChange, changeOf } from '../kernel/config/change.ts'
import type { ReadFile } from '../kernel/config/file.ts'
import { configFileOf, type Loaded, type LoadOptions, load } from '../kernel/config/load.ts'
import { type ConfigOf, camelCased, type Section, schemaOf, section, type ValuesOf } from '../kernel/config/schema.ts'
import {
  bytesOrShare,
  duration,
  integer,
  key,
  liveKey,
  oneOf,
  path,
  toggle,
  wireName,
} from '../kernel/config/value-types.ts'
import { execSection } from '../kernel/controls/exec/config.ts'
import { sourceSections } from './wings.ts'

export { ConfigError, type ConfigProblem } from '../kernel/config/errors.ts'
export type { LoadOptions } from '../kernel/config/load.ts'

const TEBIBYTE = 2 ** 40

export const DEFAULT_DATA_DIR = './data'

const producer = section(
  z
    .strictObject({
      name: key(
        wireName(),
        hostname(),
        'What this server calls itself, and the `host` of its own metrics.',
        'the host name',
      ),
      data_dir: key(path(), DEFAULT_DATA_DIR, 'Where everything durable lies; made if missing, for the owner only.'),
    })
    .describe('The server itself.'),
)

const auth = section(
  z
    .strictObject({
      plain_on_loopback: key(toggle(), true, 'Whether a listener on loopback takes passwords and tokens without TLS.'),
      scram_iterations: key(integer(4_096, 10_000_000), 600_000n, 'PBKDF2 iterations of passwords set from now on.'),
    })
    .describe('How consumers prove who they are.'),
)

const databaseKeys = z
  .strictObject({
    synchronous: key(
      oneOf('full', 'normal'),
      'full',
      '`full`: what is stored survives a power cut; `normal`: only a crash of the process.',
    ),
    linger: key(
      duration('0ms', '1s'),
      '5ms',
      'How long values wait for others before they are stored, if nobody waits for that. A consumer commits most of them ' +
        'meanwhile, and they are never written.',
    ),
  })
  .describe('The database.')

const storage = {
  type: databaseKeys,
  read: ({ synchronous, linger }: z.output<typeof databaseKeys>) => ({ synchronous, lingerMs: linger }),
}

const channelDefaults = z
  .strictObject({
    max_bytes: liveKey(integer(4_096, TEBIBYTE), 67_108_864n, 'Bytes of values that may wait in one channel.'),
    max_age: liveKey(duration('1s', '3650d'), '7d', 'How long a value waits before it is dropped as expired.'),
    overflow: liveKey(
      oneOf('drop-oldest', 'drop-newest', 'keep-latest'),
      'drop-oldest',
      'What gives way in a channel that is full. A consumer may choose any of the three.',
    ),
    window: liveKey(integer(1, 16_777_216), 65_536n, 'Values that may be sent and not yet committed.'),
    window_bytes: liveKey(integer(4_096, TEBIBYTE), 8_388_608n, 'The same in bytes; not more than `max_bytes`.'),
    expire: liveKey(duration('1s', '3650d'), '7d', 'How long a channel without a connection is kept.'),
    orphan_after: liveKey(
      duration('0s', '3650d'),
      '1h',
      'How long a channel without name, URL and settings may be without a connection before it is an orphan, for which ' +
        'polled metrics are not read; `0s`: it never is.',
    ),
  })
  .superRefine((section, context) => {
    const { window_bytes, max_bytes } = section
    if (window_bytes <= max_bytes) return
    context.addIssue({
      code: 'custom',
      path: ['window_bytes'],
      params: { also: 'max_bytes' },
      message: `${window_bytes} is more than \`channels.max_bytes\` (${max_bytes}): lower the one or raise the other`,
    })
  })
  .describe(
    'Each of these but `orphan_after` is the default of a new channel and, but for `overflow`, the most that a consumer may ' +
      'ask for.',
  )

const channels = {
  type: channelDefaults,
  read: ({ max_age, expire, orphan_after, ...rest }: z.output<typeof channelDefaults>) => {
    return { ...camelCased(rest), maxAgeMs: max_age, expireMs: expire, orphanAfterMs: orphan_after }
  },
} satisfies Section<typeof channelDefaults>

const limits = section(
  z
    .strictObject({
      connections: key(
        integer(1, 1_000_000),
        10_000n,
        'Open connections of all listeners together, HTTP requests among them. A tenth, at most 100, is kept for ' +
          'loopback and for networks from which an admin has logged in.',
      ),
      unauthenticated_per_network: key(
        integer(1, 1_000_000),
        1_024n,
        'Connections of one network (IPv4 /24, IPv6 /48) that have not logged in; beyond that the oldest is closed. ' +
          'Loopback and networks from which an admin has logged in may have more.',
      ),
      channels_per_identity: liveKey(integer(1, 1_000_000), 1_024n, 'Channels that one identity may have.'),
      instances_per_identity: liveKey(integer(1, 16_777_216), 65_536n, 'Metric ids that one identity may hold.'),
      patterns_per_identity: liveKey(
        integer(1, 16_777_216),
        1_000n,
        'Those of them whose name is a pattern: each is compared with every new metric of its tenant.',
      ),
    })
    .describe('What the server refuses to exceed.'),
)

const quota = section(
  z
    .strictObject({
      connections: liveKey(integer(0, 1_000_000), 1_000n, 'Authenticated connections.'),
      channels: liveKey(integer(0, 100_000_000), 20_000n, 'Channels that are kept.'),
      queued_bytes: liveKey(
        bytesOrShare(TEBIBYTE),
        '50%',
        'Bytes of values that wait in all channels together, or a share of the file system with `data_dir`.',
      ),
      instances: liveKey(
        integer(0, 1_000_000_000),
        4_000_000n,
        'Metrics that are bound: each match of a pattern counts, and each id at least once.',
      ),
      values_per_second: liveKey(integer(0, 1_000_000_000), 4_000_000n, 'Values that its feeds may bring in.'),
      controls_per_minute: liveKey(integer(0, 1_000_000), 1_200n, 'EXECUTEs.'),
      audit_bytes_per_day: liveKey(
        integer(0, TEBIBYTE),
        134_217_728n,
        'Bytes of the records that its users cause in the audit log.',
      ),
      dials_per_minute: liveKey(integer(0, 1_000_000), 60n, 'Attempts to connect to consumers [MON 14].'),
      series: liveKey(
        integer(0, 1_000_000_000),
        1_000_000n,
        'Live series of families with open labels [MON 9 Labels].',
      ),
      history_bytes: liveKey(
        bytesOrShare(TEBIBYTE),
        '10%',
        'Bytes of its history, or a share of the file system; beyond that its oldest days go first.',
      ),
      history_series: liveKey(
        integer(0, 1_000_000_000),
        1_000_000n,
        'Series of its history that have values not older than `history.keep`.',
      ),
      rules: liveKey(integer(0, 1_000_000), 1_000n, 'Rules that its users put into force by `rules.put`.'),
      notifiers: liveKey(integer(0, 10_000), 20n, 'Notifiers that its users put into force by `notify.put`.'),
      rule_seconds_per_hour: liveKey(
        integer(0, 1_000_000),
        360n,
        'Seconds in which the server works out what the rules of its users come to.',
      ),
    })
    .describe('What each tenant may have; 0 is no limit of its own. `tenant.set` gives a tenant others.'),
)

const auditLog = z
  .strictObject({
    keep: liveKey(duration('1h', '36500d'), '365d', 'How long records of the audit log are kept.'),
  })
  .describe('The audit log.')

const audit = {
  type: auditLog,
  read: ({ keep }: z.output<typeof auditLog>) => ({ keepMs: keep }),
} satisfies Section<typeof auditLog>

const approvalSection = z
  .strictObject({
    timeout: liveKey(duration('1s', '12h'), '1h', 'How long an EXECUTE that begins to wait from now on waits at most.'),
  })
  .describe('EXECUTEs that a rule has wait until somebody [approves](controls.md#approval) them.')

const approval = {
  type: approvalSection,
  read: ({ timeout }: z.output<typeof approvalSection>) => ({ timeoutMs: timeout }),
} satisfies Section<typeof approvalSection>

const recentSection = z
  .strictObject({
    max_bytes: key(
      integer(0, TEBIBYTE),
      67_108_864n,
      'The memory, by estimate, for recent values of all series together; the series that are written least give way first. 0 keeps none.',
    ),
    max_age: key(duration('1s', '4h'), '15m', 'How long a value is kept.'),
  })
  .describe(
    'Recent values of pushed metrics that the [history](history.md) does not record, in memory, for charts: `producer.recent` shows them.',
  )

const recent = {
  type: recentSection,
  read: ({ max_bytes, max_age }: z.output<typeof recentSection>) => ({ maxBytes: max_bytes, maxAgeMs: max_age }),
} satisfies Section<typeof recentSection>

const log = section(
  z
    .strictObject({
      level: liveKey(
        oneOf('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'),
        'info',
        'The least to write down.',
      ),
    })
    .describe('The log: JSON lines on standard error.'),
)

const { drain, notify, ...wings } = sourceSections

/** In the order of docs/configuration.md. */
const sections = {
  producer,
  listen: listenSection,
  tls: tlsSection,
  auth,
  jwt: jwtSection,
  http: httpSection,
  metrics: metricsSection,
  query: querySection,
  storage,
  channels,
  limits,
  quota,
  dial: dialSection,
  drain,
  announce: announceSection,
  cluster: clusterSection,
  audit,
  approval,
  exec: execSection,
  ...wings,
  notify,
  recent,
  log,
}

type ConfigValues = ValuesOf<typeof sections>

/** What the rules of the configuration lack of the history; undefined if nothing. */
function rulesNeed({ keep, metrics }: ConfigValues['history']): string | undefined {
  if (keep === 0) return 'rules need the history, which is off: set `history.keep`, or leave this key out'
  if (metrics.includes('rules.*')) return undefined
  return 'what rules record is `rules.*`, which is not in `history.metrics`: add it there'
}

function check(
  { producer, listen, tls, upstream, history, alerts }: ConfigValues,
  context: z.core.$RefinementCtx,
): void {
  const wanted = alerts.rules.length > 0 ? 'rules' : 'builtin'
  const needed = rulesNeed(history)
  if ((alerts.rules.length > 0 || alerts.builtin === true) && needed !== undefined)
    context.addIssue({ code: 'custom', path: ['alerts', wanted], params: { also: wanted }, message: needed })
  for (const [index, { name }] of upstream.entries()) {
    if (name !== producer.name) continue
    const message = 'has the name of this server (`producer.name`): give one of them another'
    context.addIssue({ code: 'custom', path: ['upstream', index], message })
  }
  if (tls.cert !== undefined) return
  for (const [index, { listen }] of upstream.entries()) {
    if (listen === undefined || isLoopback(listen.host)) continue
    const message = '`listen` needs a certificate: name `tls.cert` and `tls.key`, or an address of this machine alone'
    context.addIssue({ code: 'custom', path: ['upstream', index], message })
  }
  for (const key of ['tls', 'https'] as const) {
    if (listen[key] === undefined) continue
    const message = 'needs a certificate: name `tls.cert` and `tls.key`, or leave this key out'
    context.addIssue({ code: 'custom', path: ['listen', key], params: { also: key }, message })
  }
}

/** The rules that come with the server are on wherever they can be evaluated. */
function complete(values: ConfigValues): ConfigValues {
  const { alerts, history } = values
  if (alerts.builtin !== undefined || rulesNeed(history) !== undefined) return values
  return { ...values, alerts: { ...alerts, builtin: true } }
}

export const schema = schemaOf(sections, check, complete)

/** The configuration as the server sees it: checked, complete and read-only. Units are in the names. */
export type Config = ConfigOf<typeof sections>

/**
 * Reads the file (`file`, or CINNABAR_CONFIG) and the environment's overrides. Throws a ConfigError with every problem.
 *
 *     const config = loadConfig({ file: 'cinnabar.toml', env: process.env })
 *     config.listen.tcp?.port
 */
export function loadConfig(options: LoadOptions): Config {
  return load(schema, options).config
}

/** A configuration that can be read again from where it came from. */
export class ReloadableConfig {
  readonly #options: LoadOptions
  #inForce: Loaded<typeof sections>

  /** Throws a ConfigError as `loadConfig` does. */
  constructor(options: LoadOptions) {
    this.#options = options
    this.#inForce = load(schema, options)
  }

  /** The configuration in force: that of the start, with the live keys of the last reload. */
  get config(): Config {
    return this.#inForce.config
  }

  /** The path of the file; undefined if there is none. */
  get file(): string | undefined {
    return configFileOf(this.#options)
  }

  /** Reads file and environment again and changes nothing. Throws a ConfigError with every problem. */
  readAgain(readFile: ReadFile): ConfigChange<typeof sections> {
    return changeOf(schema, this.#inForce, load(schema, { ...this.#options, readFile }))
  }

  /** Puts a change in force for whoever reads `config` from now on. */
  take({ inForce }: ConfigChange<typeof sections>): void {
    this.#inForce = inForce
  }
}

/** The configuration of a server without file and environment. */
export function defaultConfig(): Config {
  return loadConfig({ env: {} })
}
