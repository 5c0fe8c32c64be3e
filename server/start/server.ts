/**
 * The server: started from the store outwards, stopped the other way round. The Monitoring Protocol's TCP listener opens
 * last, so that a client that can connect finds everything else open.
 */
import { createRequire } from 'node:module'
import { PasswordHasher } from '../../auth/password.ts'
import { SqliteStore } from '../../storage/sqlite/store.ts'
import type { Store } from '../../storage/store.ts'
import { type ClusterControl, handOverControl } from '../cluster/control.ts'
import { clusterSensor } from '../cluster/metric.ts'
import { type Listeners, openListeners } from '../edge/listen.ts'
import type { OwnPort, Resolver } from '../edge/outbound/resolve.ts'
import { LabelsSensor } from '../edge/query/labels-sensor.ts'
import { QueryOutcomes, queriesSensor } from '../edge/query/outcomes.ts'
import { QuerySensor } from '../edge/query/sensor.ts'
import { QueryThread } from '../edge/query/thread/query-thread.ts'
import { QueryTurns } from '../edge/query/turns.ts'
import { OperatorFiles } from '../edge/tls/operator-files.ts'
import type { FileSystemSpace } from '../kernel/accounts/quotas.ts'
import { execControls } from '../kernel/controls/exec/exec-controls.ts'
import { warnOfReaders } from '../kernel/controls/exec/program-lookup.ts'
import { formatAddress } from '../kernel/core/address.ts'
import { type Clock, systemClock } from '../kernel/core/clock.ts'
import { type ForeignCode, guarded } from '../kernel/core/faults.ts'
import { createLogger, type Logger } from '../kernel/core/log.ts'
import { SensorDoor, type SensorHub } from '../kernel/metrics/sensor-door.ts'
import type { Sessions } from '../kernel/sessions/sessions.ts'
import type { BoundAddress } from '../kit/door.ts'
import type { SharedHistory } from '../kit/history.ts'
import type { FeedingNodes, Joining } from '../kit/producers.ts'
import { checkAnywhere } from './anywhere.ts'
import { composeServer, type Producer, type ServerParts } from './compose.ts'
import type { Config, ReloadableConfig } from './config.ts'
import { firstRun } from './first-run.ts'
import { recoverState } from './recovery.ts'
import { fileSystemSpaceOf, type StorageState } from './storage-state.ts'

export type { Identity, Owner } from '../../auth/permissions.ts'
export { BasicType } from '../../protocol/monitor/constants.ts'
export { type Field, type Value, VOID } from '../../protocol/monitor/value.ts'
export { restoreAll } from '../../storage/restore.ts'
export { restoreBackup } from '../../storage/sqlite/backup.ts'
export { type AuditFinding, verifyAudit } from '../kernel/accounts/audit/verify.ts'
export type { ControlArguments, ControlParameter, ControlResult, ControlRun } from '../kernel/controls/control.ts'
export { StatusError } from '../kernel/core/errors.ts'
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
} from '../kernel/metrics/metric.ts'
export type { SensorHub } from '../kernel/metrics/sensor-door.ts'
export type { ControlCaller, PluginControl } from '../wings/plugin/controls.ts'
export type { Plugin, PluginContext, PluginHub, PluginSensor } from '../wings/plugin/plugin.ts'
export { type Config, ConfigError, defaultConfig, loadConfig } from './config.ts'

export interface ServerOptions {
  readonly config: Config
  /** The same, if it can be read again while the server runs. */
  readonly reloadable?: ReloadableConfig | undefined
  readonly clock?: Clock
  readonly log?: Logger
  /** The database is older than what was last served, and nothing else shows it. */
  readonly restored?: boolean
  /** For tests, instead of SQLite in `producer.data_dir`. */
  readonly store?: Store
  /** The name of this node, if it is one of a cluster that the database belongs to; undefined without a cluster. */
  readonly node?: string | undefined
  /**
   * How long ago the node that led until now stored its last batch, in ms, by the monotonic clock of this node. If it is
   * undefined, the wall clocks of both say so.
   */
  readonly downMs?: number | undefined
  /** For tests, instead of a hasher of the usual cost. It is closed with the server. */
  readonly hasher?: PasswordHasher
  /** The password of `admin` at a first start; if it is missing or empty, one is made and returned. */
  readonly adminPassword?: string | undefined
  /** The nodes whose feeds this server takes, because it leads them; undefined without a cluster. */
  readonly nodes?: FeedingNodes | undefined
  /** The history that this server has together with other nodes; undefined without a cluster. */
  readonly sharedHistory?: SharedHistory | undefined
  /** Makes the users that the server needs, instead of `admin` and `local`. */
  readonly users?: (producer: Producer) => void
  /** Sources do not listen before `listen` is called. */
  readonly isSilent?: boolean
  /** The node that runs this server because it leads; undefined if the server is in no cluster. */
  readonly cluster?: ClusterControl | undefined
  /** Adds sensors of one's own, before bindings come back from the store. */
  readonly sensors?: (hub: SensorHub) => void
  /** For tests: looks up the addresses of names that are to be dialled, instead of the system. */
  readonly resolve?: Resolver | undefined
  /** For tests: makes the streams to servers that are consumed, instead of the network. */
  readonly connect?: Joining['connect']
  /** For tests: the space on the file system with the data directory. */
  readonly diskSpace?: () => FileSystemSpace
  /** What runs the code of plug-ins, for a program that sees uncaught exceptions: they may belong to a plug-in. */
  readonly foreign?: ForeignCode
  /** Called when storing failed for good: nothing is acknowledged any more, and the process has to end. */
  readonly onFailed?: (error: Error) => void
}

export interface RunningServer extends Listeners {
  /** Where sources take values, or let them be fetched. */
  readonly sources: readonly BoundAddress[]
  /** The admin's password, if this start made it up. */
  readonly newPassword: string | undefined
  /** Takes connections that did not come over a listener. */
  readonly sessions: Sessions
  readonly parts: ServerParts
  /** Opens the listeners of the sources of a server that was started without. Rejects with ListenError. */
  listen(): Promise<void>
  /**
   * Closes the listeners of the sources for good, and ends no series: they go on at another server. What is stored can still be
   * consumed.
   */
  silence(): Promise<void>
  /** Tells consumers, stores what is accepted, closes everything. Rejects with StorageError if storing fails meanwhile. */
  stop(): Promise<void>
  /**
   * Ends the storage after an error that belongs to nobody: the batch under way is stored, and nothing after it. Reserved
   * transaction ids are not given back, so that the next start reports what is missing by GAPs. The process has to end.
   */
  abort(): Promise<void>
  /**
   * Ends a server whose store another node has taken over: consumers are informed and disconnected, and nothing more is written.
   * Controls that run are told to end; their results are unknown.
   */
  depose(): Promise<void>
}

const SWEEP_MS = 1000
/** How often channels are closed at the end, at most, since something has come to them meanwhile. */
const CLOSINGS = 8
/** How many turns of the event loop what follows from a batch may take, or begin to. */
const TURNS = 2
/** How often records of the audit log that are too old are removed. */
const PRUNE_MS = 3_600_000

type Opened = (end: () => Promise<void> | void) => void

/** Rejects with StorageError, ListenError or whatever else keeps it from running; nothing is left open then. */
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

async function start(options: ServerOptions, opened: Opened, close: () => Promise<void>): Promise<RunningServer> {
  const { config, clock = systemClock(), log = createLogger(config.log.level), node, resolve } = options
  const { dataDir } = config.producer
  const inForce = (): Config => options.reloadable?.config ?? config
  const files = new OperatorFiles(config, clock, log)
  checkAnywhere(config, node, options.reloadable?.file)
  // Before anything is opened: a program that is missing is a mistake of the configuration.
  const programs = execControls(config.exec, clock)
  const { synchronous } = config.storage
  const store =
    options.store ?? new SqliteStore({ directory: dataDir, synchronous, restored: options.restored ?? false })
  const hasher = options.hasher ?? new PasswordHasher({ clock })
  opened(() => hasher.close())
  opened(() => store.close())
  const reported = options.onFailed ?? ((error) => log.fatal({ err: error }, 'storing failed'))
  let fail: (error: Error) => void = () => {}
  const failure = new Promise<never>((_, reject) => {
    fail = reject
  })
  // Mostly nobody waits for it.
  failure.catch(() => {})
  const onFailed = (error: Error): void => {
    fail(error)
    reported(error)
  }
  const software = softwareVersion()
  const diskSpace = options.diskSpace ?? (() => fileSystemSpaceOf(dataDir))
  let listening: readonly string[] = []
  const parts = await composeServer({
    config,
    node,
    nodes: options.nodes,
    sharedHistory: options.sharedHistory,
    downMs: options.downMs,
    reloadable: options.reloadable,
    clock,
    log,
    store,
    hasher,
    software,
    files,
    programs,
    resolve,
    connect: options.connect,
    diskSpace,
    foreign: options.foreign,
    listeners: () => listening,
    opened,
    onFailed,
  })
  const { producer, sessions, hub, dialler, announcer, notices, storage, recovered, doors, sources, reloader } = parts
  // What was to be stored never is, if storing fails.
  const stored = (): Promise<void> => Promise.race([producer.journal.whenStored(), failure])
  const newPassword = await makeUsers(options, { producer, hasher, stored, log })
  warnOfReaders(log, dataDir, config.exec)
  opened(() => hub.close())
  if (options.cluster !== undefined) {
    hub.add(clusterSensor(options.cluster, clock))
    producer.executor.add([handOverControl(options.cluster, clock, log)])
  }
  const outcomes = new QueryOutcomes({ log, clock, slowMs: () => inForce().query.slow })
  hub.add(queriesSensor(outcomes, clock))
  const remembered = sources.find(({ remembered }) => remembered !== undefined)?.remembered
  const thread = new QueryThread(clock)
  opened(() => thread.close())
  const turns = new QueryTurns(config.query.maxConcurrent, clock)
  const queries = { turns, thread, outcomes, clock, work: producer.work }
  const asking = { ...queries, history: remembered, section: () => inForce().query }
  hub.add(new QuerySensor(asking))
  hub.add(new LabelsSensor(asking))
  options.sensors?.(new SensorDoor(hub))
  await recoverState(recovered, producer, notices)
  producer.journal.change({ put: 'recovered', row: {} })
  await stored()
  opened(() => doors.close())
  for (const source of sources) await source.begin?.()
  const listen = async (): Promise<void> => {
    for (const source of sources) await source.listen?.()
  }
  if (options.isSilent !== true) await listen()
  const sweeping = clock.setInterval(() => sweep(parts, files), SWEEP_MS)
  opened(() => clock.clear(sweeping))
  const pruning = clock.setInterval(() => pruneAudit(parts, inForce().audit.keepMs), PRUNE_MS)
  opened(() => clock.clear(pruning))
  const listeners = await openListeners({
    config,
    http: () => inForce().http,
    metrics: () => inForce().metrics,
    query: () => inForce().query,
    turns,
    thread,
    outcomes,
    remembered,
    rules: sources.flatMap(({ rules }) => rules ?? []),
    acknowledging: sources.find(({ acknowledging }) => acknowledging !== undefined)?.acknowledging,
    tls: files.tls,
    sessions,
    context: producer,
    doors: doors.paths,
    clock,
    log,
    storage,
    openFiles: producer.openFiles,
    opened,
  })
  listening = listenerUrls(listeners, doors.addresses)
  dialler.start(ownPorts(listeners, doors.addresses), (connection) => sessions.accept(connection))
  opened(() => dialler.stop())
  announcer.follow(config.announce)
  opened(() => announcer.stop())
  /** Nothing is evaluated and stored as handed out that no binding has got. */
  const unbind = (): void => {
    for (const source of sources) source.halt?.()
    hub.close()
  }
  const stop = async (): Promise<void> => {
    reloader?.stop()
    producer.intake.stop()
    dialler.stop()
    announcer.stop()
    sessions.shutDown()
    unbind()
    producer.failures.flush()
    producer.limitedRecords.flush()
    await producer.executor.stop()
    try {
      await closeChannels(producer, storage, stored)
    } finally {
      producer.intake.end()
      await close()
    }
  }
  const abort = (): Promise<void> => {
    producer.journal.stop()
    producer.intake.end()
    return store.close()
  }
  const silence = (): Promise<void> => {
    clock.clear(sweeping)
    unbind()
    return doors.close()
  }
  const depose = async (): Promise<void> => {
    producer.journal.stop()
    // What is bound at other servers stays so for the node that leads.
    producer.intake.stop()
    reloader?.stop()
    dialler.stop()
    announcer.stop()
    sessions.shutDown()
    unbind()
    void producer.executor.stop()
    producer.intake.end()
    await close()
  }
  return { ...listeners, sources: doors.addresses, newPassword, sessions, parts, listen, silence, stop, abort, depose }
}

/**
 * Stores what channels have, and gives back the ids that they have reserved. What comes while the last batch is stored has to be
 * stored as well, since it has reserved some again, and the next start would report a loss that there was not: the GAP of values that
 * are too old by now, the result of an EXECUTE whose batch this was, values that a SUBSCRIBE copies.
 */
async function closeChannels(
  { registry, journal }: Producer,
  storage: Pick<StorageState, 'state'>,
  stored: () => Promise<void>,
): Promise<void> {
  let open = [...registry.all()]
  for (let attempts = 0; attempts < CLOSINGS && storage.state === 'ok'; attempts++) {
    for (const { queue } of open) queue.close()
    journal.change({ put: 'closed', row: {} })
    await stored()
    // What follows from it is done in the turns after that.
    for (let turns = 0; turns < TURNS; turns++) await new Promise((resolve) => setImmediate(resolve))
    open = [...registry.all()].filter(({ queue }) => !queue.isClosed)
    if (open.length > 0) continue
    // Nobody has been promised what may still come, and the next start goes on with what was stored.
    journal.stop()
    return
  }
}

interface UsersContext {
  readonly producer: Producer
  readonly hasher: PasswordHasher
  readonly stored: () => Promise<void>
  readonly log: Logger
}

/** Makes those that are missing. Gives the admin's password if it was made up. */
async function makeUsers(
  { config, node, adminPassword, users }: ServerOptions,
  { producer, ...context }: UsersContext,
): Promise<string | undefined> {
  if (users !== undefined) {
    users(producer)
    return undefined
  }
  const { accounts, audit } = producer
  const { auth, producer: own } = config
  const iterations = auth.scramIterations
  return firstRun({ ...context, accounts, audit, iterations, dataDir: own.dataDir, node, adminPassword })
}

/** What the server listens on, as URLs; those of sources have their use before them. */
export function listenerUrls({ tcp, tls, http, https }: Listeners, sources: readonly BoundAddress[]): string[] {
  return [
    tcp && `tcp://${formatAddress(tcp)}`,
    tls && `tls://${formatAddress(tls)}`,
    http && `ws://${formatAddress(http)}/monitor`,
    https && `wss://${formatAddress(https)}/monitor`,
    ...sources.map(({ use, transport, address }) => `${use} ${transport}://${formatAddress(address)}`),
  ].filter((url) => url !== undefined)
}

/** The ports that the server itself listens on. */
function ownPorts({ tcp, tls, http, https }: Listeners, sources: readonly BoundAddress[]): OwnPort[] {
  const ofConsumers = [tcp, tls, http, https].flatMap((address) => address ?? [])
  return [
    ...ofConsumers.map(({ port }) => ({ transport: 'tcp' as const, port })),
    ...sources.map(({ transport, address: { port } }) => ({ transport, port })),
  ]
}

/** Ends what is no longer allowed; expires values, silent series, and channels that nobody has used for too long. */
function sweep({ producer, sessions, hub, dialler, notices, sources }: ServerParts, files: OperatorFiles): void {
  files.reloadChanged(notices)
  reportFiles(producer, notices)
  sessions.sweep()
  dialler.review()
  const failed = (error: unknown): void => producer.faults.report('sweep of a source', error)
  for (const source of sources) guarded(() => source.sweep?.(), failed)()
  hub.sweep()
  producer.failures.sweep()
  producer.limitedRecords.sweep()
  producer.hourOfDrops.sweep()
  producer.executor.sweep()
  for (const channel of producer.registry.sweep()) {
    producer.log.info(
      { channel: channel.id, user: channel.owner.name, tenant: channel.owner.tenant },
      'a channel expired',
    )
    notices.emit(
      {
        severity: 'warning',
        subject: 'channel',
        detail: `channel ${channel.label} expired: no connection for too long`,
      },
      channel.owner.userId,
    )
    void producer.registry.delete(channel, 'expired')
  }
}

/** Consumers and admins find out nothing if there are no descriptors: their connections are closed. */
function reportFiles({ openFiles, log }: ServerParts['producer'], notices: ServerParts['notices']): void {
  if (!openFiles.look()) return
  const { open, max, refused, problem: detail = '' } = openFiles
  log.warn({ open, max, refused }, detail)
  notices.emit({ severity: 'warning', subject: 'files', detail })
}

function pruneAudit({ producer, storage }: ServerParts, keepMs: number): void {
  // It goes in small portions, so also on a full disk.
  if (storage.state === 'failed') return
  producer.audit.prune(keepMs).catch((error: unknown) => {
    producer.log.error({ err: error }, 'old records of the audit log could not be removed')
  })
}

/** `cinnabar/<version>`, from the package. */
export function softwareVersion(): string {
  const { version } = createRequire(import.meta.url)(packageFile) as { version: string }
  return `cinnabar/${version}`
}

/** Sources stand one folder below the package, compiled files two. */
const packageFile = import.meta.url.endsWith('.ts') ? '../../package.json' : '../../../package.json'
