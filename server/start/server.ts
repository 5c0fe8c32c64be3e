/**
 * The server: started from the store outwards, stopped the other way round. The Monitoring Protocol's TCP listener opens
 * last, so that whoever can connect finds everything else open.
 */
import { createRequire } from 'node:module'
import { PasswordHasher } from '../../auth/password.ts'
import { SqliteStore } from '../../storage/sqlite/store.ts'
import type { Store } from '../../storage/store.ts'
import type { Address, Config } from '../config/config.ts'
import { openListeners } from '../connections/listen.ts'
import { ownPorts, type Resolver } from '../connections/outbound/resolve.ts'
import { OperatorFiles } from '../connections/tls/operator-files.ts'
import { execControls } from '../controls/exec/exec-controls.ts'
import { type Clock, systemClock } from '../core/clock.ts'
import { createLogger, type Logger } from '../core/log.ts'
import type { Hub } from '../metrics/hub.ts'
import type { Sessions } from '../sessions/sessions.ts'
import { addSensors, type Sensors } from '../sources/table.ts'
import { firstRun } from './first-run.ts'
import { makeParts, type Parts } from './parts.ts'
import { recover } from './recovery.ts'

export type { Identity, Owner } from '../../auth/permissions.ts'
export { BasicType } from '../../protocol/monitor/constants.ts'
export { type Field, type Value, VOID } from '../../protocol/monitor/value.ts'
export { type AuditFinding, verifyAudit } from '../accounts/audit/verify.ts'
export { type Config, ConfigError, defaultConfig, loadConfig } from '../config/config.ts'
export { StatusError } from '../core/errors.ts'
export type { Hub } from '../metrics/hub.ts'
export type {
  Arguments,
  EventSensor,
  LabelName,
  Labels,
  ListeningSensor,
  Measurement,
  Metric,
  Parameter,
  PolledSensor,
  SensorStatus,
  Series,
  Subscription,
} from '../metrics/metric.ts'

export interface ServerOptions {
  readonly config: Config
  readonly clock?: Clock
  readonly log?: Logger
  /** Instead of SQLite in `producer.data_dir`: for tests. */
  readonly store?: Store
  /** Instead of one of the usual cost: for tests. It is closed with the server. */
  readonly hasher?: PasswordHasher
  /** For the `admin` of a first start; missing or empty: one is made and given back. */
  readonly adminPassword?: string | undefined
  /** Adds sensors of one's own, before bindings come back from the store. */
  readonly sensors?: (hub: Hub) => void
  /** Asks for the addresses of names that are to be dialled, instead of the system: for tests. */
  readonly resolve?: Resolver | undefined
  /** Storing failed for good: nothing is acknowledged any more, the process has to end. */
  readonly onFailed?: (error: Error) => void
}

export interface RunningServer {
  readonly tcp: Address | undefined
  readonly tls: Address | undefined
  readonly http: Address | undefined
  readonly https: Address | undefined
  /** Where gmetric packets are taken, or undefined: off, or its default address was not free. */
  readonly gmetric: Address | undefined
  /** Where gmetad polls. */
  readonly gmetricXml: Address | undefined
  /** Where smon streams and datagrams are taken. */
  readonly smonTcp: Address | undefined
  readonly smonUdp: Address | undefined
  /** Where Mono agents connect. */
  readonly mono: readonly Address[]
  /** The admin's password, if this start made it up. */
  readonly newPassword: string | undefined
  /** Takes connections that did not come over a listener. */
  readonly sessions: Sessions
  readonly parts: Parts
  /** Tells consumers, stores what is accepted, closes everything. */
  stop(): Promise<void>
}

const SWEEP_MS = 1000
/** How often old records of the audit log are looked for. */
const PRUNE_MS = 3_600_000

/** Rejects with StorageError, ListenError or what else keeps it from running; nothing is left open then. */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const opened: (() => Promise<void> | void)[] = []
  const close = async (): Promise<void> => {
    for (const end of opened.splice(0).reverse()) await end()
  }
  try {
    return await start(options, (end) => opened.push(end), close)
  } catch (error) {
    await close()
    throw error
  }
}

async function start(
  options: ServerOptions,
  opened: (end: () => Promise<void> | void) => void,
  close: () => Promise<void>,
): Promise<RunningServer> {
  const { config, clock = systemClock(), log = createLogger(config.log.level) } = options
  const { dataDir } = config.producer
  const files = new OperatorFiles(config, clock, log)
  const { certificates, jwtKeys } = files
  // Before anything is opened: a program that is missing is a mistake of the configuration.
  const programs = execControls(config.exec, clock)
  const store = options.store ?? new SqliteStore({ directory: dataDir, synchronous: config.storage.synchronous })
  const hasher = options.hasher ?? new PasswordHasher()
  opened(() => hasher.close())
  const onFailed = options.onFailed ?? ((error) => log.fatal({ err: error }, 'storing failed'))
  const { resolve } = options
  const given = {
    config,
    clock,
    log,
    store,
    hasher,
    software: software(),
    resolve,
    programs,
    onFailed,
    certificates,
    jwtKeys,
  }
  opened(() => store.close())
  const { parts, recovered } = await makeParts(given)
  const { producer, sessions, hub } = parts
  const newPassword = await firstRun({
    accounts: producer.accounts,
    audit: producer.audit,
    hasher,
    iterations: config.auth.scramIterations,
    dataDir,
    adminPassword: options.adminPassword,
  })
  const sensors = addSensors(parts, config, files.tls)
  opened(() => hub.close())
  options.sensors?.(hub)
  await recover(recovered, producer)
  await producer.journal.whenStored()
  const feeds = await sensors.listen()
  opened(() => feeds.close())
  const sweeping = clock.setInterval(() => sweep(parts, sensors, files), SWEEP_MS)
  opened(() => clock.clear(sweeping))
  const pruning = clock.setInterval(() => pruneAudit(parts, config.audit.keepMs), PRUNE_MS)
  opened(() => clock.clear(pruning))
  const listeners = await openListeners(config, parts, files.tls, opened)
  const { tcp, tls, http, https } = listeners
  parts.dialler.start(
    ownPorts([tcp, tls, http, https, feeds.gmetricXml, feeds.smonTcp, ...feeds.mono], [feeds.gmetric, feeds.smonUdp]),
  )
  opened(() => parts.dialler.stop())
  const stop = async (): Promise<void> => {
    parts.dialler.stop()
    sessions.shutDown()
    hub.close()
    producer.failures.flush()
    await producer.executor.stop()
    if (parts.storage() === 'ok') {
      for (const channel of producer.registry.all()) channel.queue.close()
      producer.journal.change({ put: 'closed', row: {} })
      await producer.journal.whenStored()
    }
    await close()
  }
  const { gmetric, gmetricXml, smonTcp, smonUdp, mono } = feeds
  return { ...listeners, gmetric, gmetricXml, smonTcp, smonUdp, mono, newPassword, sessions, parts, stop }
}

/** Ends what is no longer allowed; expires values, silent series, and channels that nobody has used for too long. */
function sweep({ producer, sessions, hub, dialler, notices }: Parts, sensors: Sensors, files: OperatorFiles): void {
  files.reloadChanged(notices)
  sessions.sweep()
  dialler.review()
  sensors.sweep()
  hub.sweep()
  producer.failures.sweep()
  producer.executor.sweep()
  for (const channel of producer.registry.sweep()) {
    producer.log.info(
      { channel: channel.id, user: channel.owner.name, tenant: channel.owner.tenant },
      'a channel expired',
    )
    notices.emit(
      { severity: 'warning', subject: 'channel', detail: `channel ${channel.id} expired: no connection for too long` },
      channel.owner.userId,
    )
    producer.registry.delete(channel)
  }
}

function pruneAudit({ producer, storage }: Parts, keepMs: number): void {
  if (storage() !== 'ok') return
  producer.audit.prune(keepMs).catch((error: unknown) => {
    producer.log.error({ err: error }, 'old records of the audit log could not be removed')
  })
}

/** `cinnabar/<version>`, from the package. */
function software(): string {
  const { version } = createRequire(import.meta.url)(packageFile) as { version: string }
  return `cinnabar/${version}`
}

/** Sources stand one folder below the package, compiled files two. */
const packageFile = import.meta.url.endsWith('.ts') ? '../../package.json' : '../../../package.json'
