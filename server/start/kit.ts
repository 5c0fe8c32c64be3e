/** Makes the kit of the wings from the parts of the server, and keeps the controls that they add until the executor takes them. */
import { parseScope } from '../../auth/permissions.ts'
import type { AlertRow, Recovered } from '../../storage/store.ts'
import { type ExpressionsServices, HistoryExpressions } from '../edge/query/expressions.ts'
import { type Rights, readerOf } from '../kernel/accounts/rights.ts'
import type { Tenants } from '../kernel/accounts/tenants.ts'
import type { Tokens } from '../kernel/accounts/tokens.ts'
import type { Journal } from '../kernel/channels/journal.ts'
import type { QueueHost } from '../kernel/channels/queue-host.ts'
import type { TurnScheduler } from '../kernel/channels/turn-scheduler.ts'
import type { Control, ControlSource, RemoteControls } from '../kernel/controls/control.ts'
import { SERVER_TENANT } from '../kernel/core/fair-work.ts'
import { ReadRights } from '../kernel/metrics/read-rights.ts'
import { pendingValue } from '../kernel/producer/approvals.ts'
import type { Notices } from '../kernel/producer/notices.ts'
import type { ServerView } from '../kernel/producer/own-metrics.ts'
import { recentView } from '../kernel/producer/recent.ts'
import { type DeliveryServices, RegistryDelivery } from '../kit/delivery.ts'
import type { StoredAlerts } from '../kit/expressions.ts'
import { FeedTurns } from '../kit/io/pacer.ts'
import { type KitServices, type MadeKit, makeKit } from '../kit/kit.ts'
import type { Callers, Joining } from '../kit/producers.ts'
import type { StorageState } from './storage-state.ts'

/** The controls of wings. */
export interface OfferedControls {
  readonly controls: Control[]
  /** Those that come and go. */
  readonly sources: ControlSource[]
  /** Those of other producers. */
  readonly remote: RemoteControls[]
}

export type ComposeKitOptions = Omit<
  KitServices,
  'turnClock' | 'pacing' | 'inlets' | 'peer' | 'controls' | 'expressions'
> &
  Pick<ExpressionsServices, 'history' | 'section'> &
  DeliveryServices &
  Pick<Joining, 'nodes' | 'connect' | 'intake'> &
  Callers & {
    readonly rights: Rights
    readonly turn: Pick<TurnScheduler, 'once'>
    readonly host: Pick<QueueHost, 'inlets' | 'unstored'>
    readonly storage: Pick<StorageState, 'isBehind'>
    readonly notices: Notices
    readonly journal: Journal
    readonly recovered: Pick<
      Recovered,
      | 'upstreams'
      | 'upstreamBindings'
      | 'qmfAgent'
      | 'alerts'
      | 'alertGroups'
      | 'ruleFiles'
      | 'notifyGroups'
      | 'notifyAlerts'
      | 'notifications'
      | 'silences'
      | 'notifiers'
    >
    readonly server: Pick<ServerView, 'stats' | 'channels' | 'approvals'>
    readonly tenants: Pick<Tenants, 'list'>
    readonly tokens: Pick<Tokens, 'isValid'>
  }

export function composeKit(options: ComposeKitOptions): MadeKit & { readonly offered: OfferedControls } {
  const { turn, host, storage, clock, hub, intake, notices, journal, recovered, server } = options
  const { nodes, connect, tls, admission, tenants, accounts } = options
  const { upstreams, upstreamBindings, qmfAgent, alerts, alertGroups: groups, ruleFiles: files } = recovered
  const { notifyGroups, notifyAlerts, notifications, silences, notifiers } = recovered
  const current = new CurrentAlerts(alerts, journal)
  const offered: OfferedControls = { controls: [], sources: [], remote: [] }
  const made = makeKit({
    ...options,
    turnClock: { monotonicMs: turn.once(() => clock.monotonicMs()), microseconds: () => clock.microseconds() },
    inlets: host.inlets,
    pacing: {
      clock,
      turns: new FeedTurns(clock, host.inlets),
      faults: hub.faults,
      journal,
      behind: () => storage.isBehind(host.unstored),
    },
    expressions: new HistoryExpressions({ ...options, stored: { journal: current.journal, alerts, groups, files } }),
    controls: {
      add: (...controls) => offered.controls.push(...controls),
      follow: (source) => offered.sources.push(source),
      reach: (remote) => offered.remote.push(remote),
    },
    peer: {
      notice: (notice, about) => notices.emit(notice, about),
      delivery: new RegistryDelivery(options),
      stored: {
        journal,
        upstreams,
        upstreamBindings,
        qmfAgent,
        notifyGroups,
        notifyAlerts,
        notifications,
        silences,
        notifiers,
        alerts: () => current.all(),
      },
      view: {
        tenants: () => tenants.list(),
        stats: server.stats,
        channels: server.channels,
        sensors: hub.sensors,
        use: (tenant) => options.quotas.of(tenant),
        recent: {
          ...recentView({ hub, rights: options.rights, clock }),
          leaveOut: (isRecorded) => {
            void options.work.run({ tenant: SERVER_TENANT }, hub.recent.leaveOut(isRecorded, hub.sensors))
          },
        },
        readerOf: (userId, scope, token = 0) => {
          if (token !== 0 && !options.tokens.isValid(token, clock.wallMs())) return undefined
          const account = accounts.byId(userId)
          const credential = { scope: parseScope(scope) }
          return account && readerOf({ identity: accounts.identity(account), credential })
        },
        mayExecute: (reader, object, argument) => {
          const asker = { identity: reader, credential: reader }
          const request = { command: 'EXECUTE', object, argument } as const
          return options.rights.may(asker, request) && options.rights.approvalRule(asker, request) === undefined
        },
        readRights: (reader) => new ReadRights(reader, options.rights),
        waiting: (shownTo) =>
          server.approvals
            .shownTo(shownTo)
            .map((one) => pendingValue({ ...one, row: { ...one.row, preview: undefined } })),
      },
      producers: {
        nodes,
        connect,
        callers: { tls, admission },
        intake,
        fences: hub.fences,
        changed: (sensor) => hub.producersChanged(sensor),
      },
    },
  })
  return { ...made, offered }
}

/** The alerts that there are now, as they are stored: what wings other than that of the rules know of them. */
class CurrentAlerts {
  /** Where changes of alerts are stored. */
  readonly journal: StoredAlerts['journal']
  readonly #rows = new Map<string, AlertRow>()

  constructor(recovered: readonly AlertRow[], journal: StoredAlerts['journal']) {
    for (const row of recovered) this.#rows.set(keyOf(row), row)
    this.journal = {
      change: (change) => {
        if ('put' in change && change.put === 'alert') this.#rows.set(keyOf(change.row), change.row)
        if ('remove' in change && change.remove === 'alert') this.#rows.delete(keyOf(change))
        journal.change(change)
      },
    }
  }

  all(): Iterable<AlertRow> {
    return this.#rows.values()
  }
}

function keyOf({ rule, labels }: Pick<AlertRow, 'rule' | 'labels'>): string {
  return `${rule} ${labels}`
}
