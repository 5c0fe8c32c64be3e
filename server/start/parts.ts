/** The parts of the server, made and joined in one place. Nothing here decides anything; see each part for what it does. */
import { Authenticator } from '../../auth/authenticator.ts'
import type { Certificates } from '../../auth/mechanism.ts'
import type { PasswordHasher } from '../../auth/password.ts'
import { ADMIN_ROLE } from '../../auth/permissions.ts'
import { Throttle } from '../../auth/throttle.ts'
import type { JwtKeys } from '../../auth/token/jwt-keys.ts'
import type { Change, Recovered, StorageError, Store } from '../../storage/store.ts'
import { AuthFailures } from '../accounts/audit/failures.ts'
import { AuditLog } from '../accounts/audit/log.ts'
import { Refusals } from '../accounts/audit/refusals.ts'
import { Quotas } from '../accounts/quotas.ts'
import { Rights } from '../accounts/rights.ts'
import { Rules } from '../accounts/rules.ts'
import { Tenants } from '../accounts/tenants.ts'
import { Tokens } from '../accounts/tokens.ts'
import { Users } from '../accounts/users.ts'
import { Bindings } from '../channels/bindings.ts'
import { Journal } from '../channels/journal.ts'
import { Pool } from '../channels/pool.ts'
import type { QueueHost } from '../channels/queue-state.ts'
import { Registry } from '../channels/registry.ts'
import { TurnScheduler } from '../channels/turn.ts'
import { RightsRevocation } from '../channels/withdrawal.ts'
import { handlers } from '../commands/index.ts'
import type { Config } from '../config/config.ts'
import { createDialler } from '../connections/outbound/create-dialler.ts'
import type { Dialler } from '../connections/outbound/dialler.ts'
import type { Resolver } from '../connections/outbound/resolve.ts'
import { channelConfigure, channelPurge } from '../controls/channels.ts'
import type { Control } from '../controls/control.ts'
import { Executor } from '../controls/executor.ts'
import { roleControls, roleExplain } from '../controls/roles.ts'
import { sensorControls } from '../controls/sensors.ts'
import { tenantControls } from '../controls/tenants.ts'
import { tokenControls } from '../controls/tokens.ts'
import { userControls } from '../controls/users.ts'
import type { Clock } from '../core/clock.ts'
import { ageClock } from '../core/clock.ts'
import type { Logger } from '../core/log.ts'
import { Fences } from '../metrics/fences.ts'
import { Hub } from '../metrics/hub.ts'
import { Ids, QueryIds } from '../metrics/ids.ts'
import { Instances } from '../metrics/instances.ts'
import { PendingMeasurements } from '../metrics/pending-measurements.ts'
import type { IncomingConnection } from '../sessions/incoming-connection.ts'
import type { Producer } from '../sessions/producer.ts'
import { Sessions } from '../sessions/sessions.ts'
import { monoControls } from '../sources/mono/controls.ts'
import { Notices } from '../sources/producer/notices.ts'
import { QmfControls } from '../sources/qmf/controls/controls.ts'
import { QMF_PREFIX } from '../sources/qmf/names.ts'

export interface PartsOptions {
  readonly config: Config
  readonly clock: Clock
  readonly log: Logger
  readonly store: Store
  readonly hasher: PasswordHasher
  readonly software: string
  /** For names to be dialled, instead of the system's. */
  readonly resolve?: Resolver | undefined
  /** What JWTs are verified with; left out where none is taken. */
  readonly jwtKeys?: JwtKeys | undefined
  readonly certificates?: Certificates | undefined
  /** Controls that run programs. */
  readonly programs: readonly Control[]
  readonly onFailed: (error: StorageError) => void
}

export interface Parts {
  readonly producer: Producer
  readonly sessions: Sessions
  readonly hub: Hub
  readonly dialler: Dialler
  readonly notices: Notices
  /** ok, or why nothing more is stored. */
  storage(): 'ok' | 'full' | 'failed'
  /** More waits to be stored than a feed that can wait may add to. */
  behind(): boolean
}

/** Above this much that waits to be stored, or half of what there is room for, no feed is read on. */
const BEHIND_BYTES = 16 << 20

/** Above this much that waits to be stored, arriving values are dropped (and told): storage does not keep up. */
const MAX_UNSTORED_BYTES = 256 << 20

/** Opens the store and joins the parts. Rejects with StorageError. */
export async function makeParts(options: PartsOptions): Promise<{ parts: Parts; recovered: Recovered }> {
  const { config, clock, log, store, hasher } = options
  const turn = new TurnScheduler()
  const notices = new Notices(clock)
  let storage: 'ok' | 'full' | 'failed' = 'ok'
  let room = Number.POSITIVE_INFINITY
  const recovered = await store.open({
    onDurable(number, left = Number.POSITIVE_INFINITY) {
      room = left
      journal.onDurable(number)
    },
    onRoom() {
      storage = 'ok'
      notices.emit({ severity: 'info', subject: 'storage', detail: 'there is room on the disk again' })
      log.warn('there is room on the disk again: values are stored')
    },
    onFull() {
      if (storage === 'full') return
      storage = 'full'
      notices.emit({ severity: 'error', subject: 'storage', detail: 'the disk is full: arriving values are dropped' })
      log.error(
        { directory: config.producer.dataDir },
        'the disk is full: arriving values are dropped until there is room',
      )
    },
    onFailed(error) {
      storage = 'failed'
      journal.stop()
      options.onFailed(error)
    },
  })
  for (const warning of recovered.warnings ?? []) log.warn({ directory: config.producer.dataDir }, warning)
  const age = ageClock(clock, recovered)
  const journal = new Journal(store, turn, { age, wallMs: () => clock.wallMs() })
  const audit = new AuditLog({ journal, clock, store, audited: recovered.audited })
  let nextId = recovered.nextBlockId
  const host: QueueHost = {
    pool: new Pool(),
    nextId: () => nextId++,
    age,
    stamp: turn.once(age),
    unstored: 0,
    get refusing() {
      // No more is taken in than there is room for: a batch that does not fit would stop the COMMITs behind it.
      if (storage === 'full' || this.unstored > room) return 'full'
      return this.unstored > MAX_UNSTORED_BYTES ? 'overflow' : undefined
    },
  }
  const ids = new Ids()
  const quotas = new Quotas((tenant) => tenants.quotaOf(tenant), clock)
  const hub = new Hub(clock, new Fences(recovered.fences), (tenant) => quotas.of(tenant).instances)
  hub.add(notices)
  const change = (change: Change): void => journal.change(change)
  const tenants = new Tenants(recovered.tenants, config.quota, change)
  const accounts = new Users(recovered.users, tenants, recovered.nextUserId, change)
  const tokens = new Tokens(recovered.tokens, recovered.nextTokenId, change)
  const rules = new Rules(recovered.rules, recovered.nextRule, change)
  const rights = new Rights(rules)
  const instances = new Instances({
    hub,
    ids,
    defaults: { intervalMs: config.host.intervalMs, rights },
    maxPerIdentity: config.limits.instancesPerIdentity,
  })
  const registry = new Registry({
    host,
    journal,
    turn,
    store,
    clock,
    ids,
    defaults: { durable: true, ...config.channels },
    maxPerIdentity: config.limits.channelsPerIdentity,
    quotas,
    entered: (channel) => bindings.storeAll(channel),
    unbound: (instance) => bindings.endUnbound(instance),
  })
  const bindings = new Bindings({ hub, instances, registry, journal })
  const failed = (error: unknown): void => log.error({ err: error }, 'values that may not be read any more stay queued')
  const withdrawal = new RightsRevocation({ hub, instances, registry, bindings, failed })
  const stored = (): Promise<void> => journal.whenStored()
  const withdraw = ({ id }: { readonly id: number }): void => {
    sessions.dismiss(id, 'the user was removed')
    for (const channel of [...registry.of(id)]) registry.delete(channel)
    for (const instance of instances.of(id)) bindings.endUnbound(instance)
    tokens.forgetUser(id)
    producer.executor.forget(id)
  }
  const reconsider = withdrawal.reconsider.bind(withdrawal)
  const iterations = config.auth.scramIterations
  const destination = (url: string) => dialler.destination(url)
  const monoTenants = [config.mono.tenant, ...config.mono.feeds.map(({ tenant }) => tenant)]
  const mono = config.mono.listeners.length > 0 ? monoControls({ hub, clock, tenants: monoTenants }) : []
  const tenantsOf = (name: string) => {
    if (name.startsWith(QMF_PREFIX)) return config.qmf.map(({ tenant }) => tenant)
    return [...options.programs, ...mono].find((one) => one.name === name)?.tenants
  }
  const controls = [
    channelConfigure(registry),
    channelPurge(registry),
    ...options.programs,
    ...sensorControls({ hub, change, stored }),
    ...mono,
    ...userControls({ accounts, rules, hasher, iterations, withdraw, reconsider, stored }),
    ...tokenControls({ accounts, tokens, clock, stored }),
    ...tenantControls({ tenants, accounts, quotas, stored }),
    ...roleControls({ rules, accounts, reconsider, destination, stored }),
    roleExplain({ accounts, rights, hub, destination, permits: (url) => dialler.permits(url), tenantsOf }),
  ]
  const accept = (arrival: IncomingConnection): void => sessions.accept(arrival)
  const told = { config, clock, log, audit, journal, accounts, quotas, registry, hub, rights, recovered, accept }
  const dialler = createDialler({ ...told, resolve: options.resolve })
  const refusals = new Refusals(audit, () => clock.monotonicMs())
  const executor = new Executor({
    controls,
    sources: [new QmfControls(hub)],
    ids,
    journal,
    clock,
    age,
    log,
    rights,
    audit,
    refusals,
    // An admin's are every tenant's: with one it raises what another has used up.
    admit: ({ tenant, role }) => {
      if (role !== ADMIN_ROLE) quotas.of(tenant).controls.take()
    },
    executions: recovered.executions,
  })
  const throttle = new Throttle(() => clock.monotonicMs())
  const producer: Producer = {
    name: config.producer.name,
    software: options.software,
    clock,
    log,
    turn,
    journal,
    audit,
    failures: new AuthFailures(audit, clock),
    refusals,
    host,
    registry,
    bindings,
    instances,
    measurements: new PendingMeasurements(clock, hub.fences),
    answers: new QueryIds(ids),
    ids,
    quotas,
    executor,
    accounts,
    dials: dialler,
    rights,
    withdrawal,
    authenticator: new Authenticator({
      accounts,
      hasher,
      throttle,
      serverSecret: recovered.secret,
      iterations,
      plainOnLoopback: config.auth.plainOnLoopback,
      wallMs: () => clock.wallMs(),
      tokens,
      jwt: options.jwtKeys && { ...config.jwt, keys: options.jwtKeys },
      certificates: options.certificates,
    }),
  }
  const sessions = new Sessions(producer, handlers, config.limits.connections)
  // Where the disk is full values are refused and told: to wait for room would keep them from whoever stores nothing.
  const behind = (): boolean => storage !== 'full' && host.unstored > Math.min(BEHIND_BYTES, room / 2)
  return { parts: { producer, sessions, hub, dialler, notices, storage: () => storage, behind }, recovered }
}
