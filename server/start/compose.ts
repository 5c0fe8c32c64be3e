/**
 * Makes the parts of the server and joins them, from the store upwards: each is declared before it is used. Nothing is
 * decided here; what a part does is said in its own file.
 */
import { resolve } from 'node:path'
import { Authenticator } from '../../auth/authenticator.ts'
import type { Account } from '../../auth/mechanism.ts'
import type { PasswordHasher } from '../../auth/password.ts'
import { ADMIN_ROLE, type Identity } from '../../auth/permissions.ts'
import { Throttle } from '../../auth/throttle.ts'
import type { Change, Recovered, StorageError, Store } from '../../storage/store.ts'
import { Announcer } from '../edge/announce/announcer.ts'
import { Scrapes } from '../edge/http/metrics/scrapes.ts'
import { createDialler } from '../edge/outbound/create-dialler.ts'
import type { Dialler } from '../edge/outbound/dialler.ts'
import { type Resolver, systemResolver } from '../edge/outbound/resolve.ts'
import type { OperatorFiles } from '../edge/tls/operator-files.ts'
import { AuthFailures } from '../kernel/accounts/audit/failures.ts'
import { LimitedRecords } from '../kernel/accounts/audit/limited-records.ts'
import { AuditLog } from '../kernel/accounts/audit/log.ts'
import { StoredBoards } from '../kernel/accounts/boards.ts'
import { type FileSystemSpace, Quotas, quotaOn } from '../kernel/accounts/quotas.ts'
import { Rights } from '../kernel/accounts/rights.ts'
import { Rules } from '../kernel/accounts/rules.ts'
import { Tenants } from '../kernel/accounts/tenants.ts'
import { Tokens } from '../kernel/accounts/tokens.ts'
import { Users } from '../kernel/accounts/users.ts'
import { Bindings } from '../kernel/channels/bindings.ts'
import { Inlets } from '../kernel/channels/inlets.ts'
import { Intake } from '../kernel/channels/intake.ts'
import { Journal, whenStoredOrFull } from '../kernel/channels/journal.ts'
import { HourOfDrops, noDrops } from '../kernel/channels/ledger.ts'
import { ChannelNames } from '../kernel/channels/names.ts'
import { Pool } from '../kernel/channels/pool.ts'
import type { QueueHost } from '../kernel/channels/queue-host.ts'
import { Registry } from '../kernel/channels/registry.ts'
import { RightsRevocation } from '../kernel/channels/rights-revocation.ts'
import { TurnScheduler } from '../kernel/channels/turn-scheduler.ts'
import { commandHandlers } from '../kernel/commands/index.ts'
import type { CommandServices } from '../kernel/commands/services.ts'
import { configDirectoryOf } from '../kernel/config/paths.ts'
import { Backups } from '../kernel/controls/backup.ts'
import { boardControls } from '../kernel/controls/boards.ts'
import { channelConfigure, channelDelete, channelPurge } from '../kernel/controls/channels.ts'
import type { Control } from '../kernel/controls/control.ts'
import { execControls } from '../kernel/controls/exec/exec-controls.ts'
import { warnOfReaders } from '../kernel/controls/exec/program-lookup.ts'
import { Executor } from '../kernel/controls/executor.ts'
import { roleControls, roleExplain } from '../kernel/controls/roles.ts'
import { sensorControls } from '../kernel/controls/sensors.ts'
import { tenantControls } from '../kernel/controls/tenants.ts'
import { tokenControls } from '../kernel/controls/tokens.ts'
import { userControls } from '../kernel/controls/users.ts'
import { ageClock, type Clock } from '../kernel/core/clock.ts'
import { FairWork, SERVER_TENANT } from '../kernel/core/fair-work.ts'
import { Faults, ForeignCode } from '../kernel/core/faults.ts'
import type { Logger } from '../kernel/core/log.ts'
import { OpenFiles } from '../kernel/core/open-files.ts'
import { Fences } from '../kernel/metrics/fences.ts'
import { Hub } from '../kernel/metrics/hub.ts'
import { Ids, QueryIds } from '../kernel/metrics/ids.ts'
import { Instances } from '../kernel/metrics/instances.ts'
import { PendingMeasurements } from '../kernel/metrics/pending-measurements.ts'
import { producersBelow } from '../kernel/metrics/reach.ts'
import { RecentValues } from '../kernel/metrics/recent.ts'
import { SensorFaults } from '../kernel/metrics/sensor-faults.ts'
import { Notices } from '../kernel/producer/notices.ts'
import type { ServerView } from '../kernel/producer/own-metrics.ts'
import { statsOf } from '../kernel/producer/status.ts'
import { Admission } from '../kernel/sessions/admission.ts'
import type { SessionContext } from '../kernel/sessions/context.ts'
import { Sessions } from '../kernel/sessions/sessions.ts'
import type { Doors } from '../kit/door.ts'
import type { Self } from '../kit/kit.ts'
import type { Joining } from '../kit/producers.ts'
import { checkAnywhere } from './anywhere.ts'
import type { Config, ReloadableConfig } from './config.ts'
import { composeKit } from './kit.ts'
import { configReload, Reloader } from './reload.ts'
import { keysOf, producerIdOf, StorageState } from './storage-state.ts'
import { openSources, prepareSources, type RunningSource } from './wings.ts'

export interface ComposeOptions extends Pick<Joining, 'nodes' | 'connect'>, Pick<Self, 'node' | 'sharedHistory'> {
  readonly config: Config
  /** Those that may be undefined are as in `ServerOptions`. */
  readonly downMs: number | undefined
  readonly reloadable?: ReloadableConfig | undefined
  readonly clock: Clock
  readonly log: Logger
  readonly store: Store
  readonly hasher: PasswordHasher
  readonly software: string
  readonly files: OperatorFiles
  /** Controls that run programs. */
  readonly programs: readonly Control[]
  readonly resolve?: Resolver | undefined
  /** The space on the file system with the data directory. */
  readonly diskSpace: () => FileSystemSpace
  readonly foreign?: ForeignCode | undefined
  /** The URLs of everything that listens by now. */
  readonly listeners: () => readonly string[]
  /** Takes what ends with the server, even if this rejects. */
  readonly opened: (end: () => Promise<void> | void) => void
  readonly onFailed: (error: StorageError) => void
}

/** Everything that sessions and commands use, and besides them recovery and the life of the server. */
export interface Producer extends SessionContext, CommandServices {
  readonly scrapes: Scrapes
  readonly name: string
  readonly host: QueueHost
  readonly intake: Intake
  readonly audit: AuditLog
  readonly ids: Ids
  readonly hub: Hub
  readonly rightsRevocation: RightsRevocation
  readonly hourOfDrops: HourOfDrops
  readonly openFiles: OpenFiles
}

export interface ServerParts {
  readonly recovered: Recovered
  readonly storage: StorageState
  readonly producer: Producer
  readonly sessions: Sessions
  readonly hub: Hub
  readonly dialler: Dialler
  readonly announcer: Announcer
  readonly notices: Notices
  readonly doors: Doors
  readonly sources: readonly RunningSource[]
  /** undefined if the configuration cannot be read again. */
  readonly reloader: Reloader | undefined
}

/** Opens the store and joins the parts. Rejects with StorageError. */
export async function composeServer(options: ComposeOptions): Promise<ServerParts> {
  const { config, reloadable, clock, log, store, hasher, software, files, programs, diskSpace, listeners } = options
  // Where a live key is used, it is read from the configuration in force.
  const inForce = (): Config => reloadable?.config ?? config
  const { name, dataDir } = config.producer
  const notices = new Notices(clock)
  const storage = new StorageState({ log, notices, directory: dataDir, onFailed: options.onFailed })
  const recovered = await store.open(storage)
  for (const warning of recovered.warnings ?? []) log.warn({ directory: dataDir }, warning)
  const age = ageClock(clock, recovered, options.downMs)
  const faults = new Faults(clock, log)
  const turn = new TurnScheduler(clock)
  const work = new FairWork(clock, (work) => turn.defer(work), turn)
  const journal = new Journal(store, turn, { age, wallMs: () => clock.wallMs() }, { clock, ...config.storage })
  const change = (change: Change): void => journal.change(change)
  const stored = (): Promise<void> => journal.whenStored()
  const self = { id: producerIdOf(recovered.secret), keyFor: keysOf(recovered.secret), name }
  const { sizeBytes } = diskSpace()
  const quotaInForce = () => quotaOn(sizeBytes, inForce().quota)
  const tenants = new Tenants(recovered.tenants, quotaInForce, change)
  const quotas = new Quotas((tenant) => tenants.quotaOf(tenant), clock)
  // What admins do belongs to every tenant: with a control they raise what another user has used up.
  const isCounted = ({ role }: { readonly role?: string }): boolean => role !== ADMIN_ROLE
  const audit = new AuditLog({
    journal,
    clock,
    store,
    audited: recovered.audited,
    charge: (actor, bytes) => {
      if (isCounted(actor)) quotas.of(actor.tenant).audited.take(bytes)
    },
  })
  const failures = new AuthFailures(audit, clock)
  const limitedRecords = new LimitedRecords({
    log: audit,
    now: () => clock.monotonicMs(),
    hasRoom: (identity) => !isCounted(identity) || quotas.of(identity.tenant).audited.hasRoom,
  })
  const accounts = new Users(recovered.users, tenants, recovered.nextUserId, change, () => clock.wallMs())
  const tokens = new Tokens(recovered.tokens, recovered.nextTokenId, change)
  const boards = new StoredBoards(recovered.boards, recovered.nextBoardId, accounts, change)
  const rules = new Rules(recovered.rules, recovered.nextRule, change)
  const rights = new Rights(rules)
  const authenticator = new Authenticator({
    accounts: accounts.logins,
    hasher,
    throttle: new Throttle(() => clock.monotonicMs()),
    serverSecret: recovered.secret,
    iterations: config.auth.scramIterations,
    plainOnLoopback: config.auth.plainOnLoopback,
    wallMs: () => clock.wallMs(),
    tokens,
    jwt: files.jwtKeys && { ...config.jwt, keys: files.jwtKeys },
    certificates: files.tls,
  })

  const ids = new Ids()
  const hub = new Hub(clock, {
    fences: new Fences(recovered.fences),
    quotaOf: (tenant) => quotas.of(tenant).instances,
    faults: new SensorFaults(clock, faults),
    work,
    recent: new RecentValues(clock, config.recent),
  })
  hub.add(notices)
  const instances = new Instances({
    hub,
    ids,
    defaults: { intervalMs: config.host.intervalMs, producer: name, rights },
    get maxPerIdentity() {
      return inForce().limits.instancesPerIdentity
    },
    get maxPatternsPerIdentity() {
      return inForce().limits.patternsPerIdentity
    },
  })

  let nextBlockId = recovered.bindings.reduce((most, { since }) => Math.max(most, since), recovered.nextBlockId)
  const host: QueueHost = {
    pool: new Pool(),
    inlets: new Inlets(),
    nextId: () => nextBlockId++,
    age,
    stamp: turn.once(age),
    unstored: 0,
    refused: 0,
    accepted: 0,
    sent: 0,
    dropped: noDrops(),
    get refusing() {
      return storage.refusing(this.unstored + journal.unstored)
    },
    get refusesAbove() {
      return storage.refusesAbove - journal.unstored
    },
  }
  const intake = new Intake({ host, journal, storage, whenAsked: (sensor) => hub.whenAsked(sensor) })
  storage.follow({
    onDurable(number) {
      journal.onDurable(number)
      quotas.apportion(diskSpace(), tenants.count)
    },
    stop() {
      journal.stop()
      intake.end()
    },
  })
  const openFiles = new OpenFiles()
  const hourOfDrops = new HourOfDrops(host.dropped, () => clock.monotonicMs())
  const names = new ChannelNames(recovered.lostNames, change)
  const registry = new Registry({
    host,
    journal,
    turn,
    store,
    clock,
    log,
    faults,
    work,
    ids,
    names,
    get defaults() {
      const { orphanAfterMs: _, ...settings } = inForce().channels
      return { durable: true, ...settings }
    },
    get orphanAfterMs() {
      return inForce().channels.orphanAfterMs
    },
    get maxPerIdentity() {
      return inForce().limits.channelsPerIdentity
    },
    quotas,
  })
  const bindings = new Bindings({ hub, instances, registry, journal, host })
  const failed = (error: unknown): void => log.error({ err: error }, 'values that may not be read any more stay queued')
  const rightsRevocation = new RightsRevocation({ hub, instances, registry, bindings, accounts, work, failed })
  const dialler = createDialler({
    config,
    clock,
    log,
    audit,
    journal,
    accounts,
    quotas,
    registry,
    rights,
    serverSecret: recovered.secret,
    resolve: options.resolve,
  })
  const remembered = () => sources.find((one) => one.remembered !== undefined)?.remembered
  const backups = new Backups(store, resolve(dataDir), async (to) => remembered()?.backUp(to))
  const executor = new Executor({
    ids,
    journal,
    clock,
    age,
    log,
    rights,
    audit,
    limitedRecords,
    quotaOf: (identity) => (isCounted(identity) ? quotas.of(identity.tenant) : undefined),
    recovered,
    accounts,
    tokens,
    approvalTimeoutMs: () => inForce().approval.timeoutMs,
  })
  const producer: Producer = {
    name,
    generation: recovered.generation,
    self: {
      name: self,
      below: (identity) => producersBelow(hub.sensors, identity),
      get changes() {
        return hub.producersChanges
      },
    },
    software,
    clock,
    log,
    faults,
    turn,
    work,
    journal,
    audit,
    failures,
    limitedRecords,
    hourOfDrops,
    openFiles,
    host,
    intake,
    registry,
    bindings,
    instances,
    measurements: new PendingMeasurements(clock, hub),
    answers: new QueryIds(ids),
    ids,
    hub,
    scrapes: new Scrapes(clock),
    quotas,
    executor,
    accounts,
    dialler,
    rights,
    rightsRevocation,
    authenticator,
  }
  const admission = new Admission({ ...config.limits, openFiles: openFiles.max })
  if (admission.max < config.limits.connections) {
    const message = 'fewer connections than `limits.connections`: raise `ulimit -n`'
    log.warn({ openFiles: openFiles.max, connections: admission.max }, message)
  }
  const sessions = new Sessions(producer, commandHandlers(producer), admission)
  const announcer = new Announcer({
    clock,
    log,
    accounts,
    self,
    serverSecret: recovered.secret,
    resolve: options.resolve ?? systemResolver,
    accept: (connection) => sessions.accept(connection),
    random: Math.random,
  })
  const server: ServerView = {
    stats: statsOf({
      software,
      name,
      generation: recovered.generation,
      clock,
      quotas,
      registry,
      names,
      sessions,
      scrapes: producer.scrapes,
      hasher,
      host,
      storage,
      backups,
      faults,
      approvals: executor.approving,
      audit,
      hourOfDrops,
      openFiles,
      listeners,
      diskSpace,
    }),
    channels: () => registry.all(),
    channelsOf: ({ userId, role }: Identity) => (role === ADMIN_ROLE ? registry.all() : registry.of(userId)),
    channel: ({ userId, role }: Identity, id: number) => {
      const channel = registry.byId(id)
      return role === ADMIN_ROLE || channel?.owner.userId === userId ? channel : undefined
    },
    controls: (identity: Identity) => executor.visible(identity),
    remoteControls: (producers: (path: string) => boolean, identity: Identity) => executor.remote(producers, identity),
    rights,
    boards,
    approvals: executor.approving,
    audit,
    createdOf: (userId: number) => accounts.byId(userId)?.created ?? Number.POSITIVE_INFINITY,
    get statuses() {
      return [...(files.tls === undefined ? [] : [files.tls]), ...announcer.statuses]
    },
  }
  const { kit, doors, offered } = composeKit({
    self: {
      ...self,
      dataDir,
      software,
      node: options.node,
      sharedHistory: options.sharedHistory,
      configDirectory: configDirectoryOf(reloadable?.file),
    },
    turn,
    host,
    storage,
    clock,
    log,
    hub,
    quotas,
    openFiles,
    intake,
    work,
    rights,
    foreign: options.foreign ?? new ForeignCode(),
    notices,
    dialler,
    accounts,
    tenants,
    tokens,
    registry,
    instances,
    bindings,
    rightsRevocation,
    endUser: (user) => endUser(user),
    journal,
    recovered,
    server,
    nodes: options.nodes,
    connect: options.connect,
    tls: files.tls,
    admission,
    history: remembered,
    section: () => inForce().query,
  })
  // Also if one of them cannot be opened.
  options.opened(() => doors.close())
  const sources = await openSources({ kit, doors, hub, clock, log, quotas, notices, server }, config)
  const iterations = config.auth.scramIterations
  const changeRole = (account: Account, role: string) => rightsRevocation.changeRole(account, role)
  const isPublished = (object: string): boolean => doors.published.some((family) => object.startsWith(family))
  const endUser = ({ id }: { readonly id: number }): Promise<unknown> => {
    sessions.dismiss(id, 'the user was removed')
    names.forgetUser(id)
    tokens.forgetUser(id)
    boards.forgetUser(id)
    executor.forget(id)
    const deleted = [...registry.of(id)].map((channel) => registry.delete(channel, 'user removed'))
    return Promise.all([...deleted, work.run({ tenant: SERVER_TENANT }, bindings.endAllUnbound(instances.of(id)))])
  }
  const reloader =
    reloadable &&
    new Reloader({
      config: reloadable,
      clock,
      log,
      audit,
      whenStored: () => whenStoredOrFull({ journal, host, clock }),
      async prepare(next, changed) {
        checkAnywhere(next, options.node, reloadable.file)
        const reloadSources = await prepareSources(sources, next)
        const replaced = changed.includes('exec') ? execControls(next.exec, clock) : undefined
        if (replaced !== undefined) warnOfReaders(log, dataDir, next.exec)
        return () => {
          if (changed.includes('log.level')) log.level = next.log.level
          quotas.allChanged()
          dialler.allow(next.dial.allow)
          if (replaced !== undefined) executor.replace('exec.', replaced)
          reloadSources()
          if (changed.includes('announce')) announcer.follow(next.announce)
        }
      },
    })
  executor.add(
    [
      channelConfigure(registry),
      channelPurge(registry),
      channelDelete(registry),
      ...programs,
      backups.control,
      configReload(reloader),
      ...sensorControls({ hub, change, stored }),
      ...offered.controls,
      ...userControls({ accounts, rights, rules, hasher, iterations, node: options.node, endUser, changeRole, stored }),
      ...boardControls({ boards, clock, stored }),
      ...tokenControls({ accounts, rights, tokens, clock, stored }),
      ...tenantControls({ tenants, accounts, quotas, hub, endUser, stored }),
      ...roleControls({ rules, accounts, rightsRevocation, dialler, executor, stored }),
      roleExplain({ accounts, rights, hub, dialler, isPublished, executor }),
    ],
    offered.sources,
    offered.remote,
  )
  return { recovered, storage, producer, sessions, hub, dialler, announcer, notices, doors, sources, reloader }
}
