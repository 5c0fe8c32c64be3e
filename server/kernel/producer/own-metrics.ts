/** `producer.*`: the metrics of the server itself. They belong to the kernel, and have no section in the configuration. */
import type { Identity } from '../../../auth/permissions.ts'
import type { AuditLog } from '../accounts/audit/log.ts'
import type { Quotas } from '../accounts/quotas.ts'
import type { Rights } from '../accounts/rights.ts'
import type { Channel } from '../channels/channel.ts'
import type { Control, RemoteControl } from '../controls/control.ts'
import type { Clock } from '../core/clock.ts'
import type { Logger } from '../core/log.ts'
import type { Hub } from '../metrics/hub.ts'
import type { Sensor } from '../metrics/metric.ts'
import { approvalsView, PendingControls, type ShownApprovals } from './approvals.ts'
import { AuditSensor } from './audit.ts'
import { bindingsView, type FindChannel } from './bindings.ts'
import { boardsView, type ShownBoards } from './boards.ts'
import { controlsView, metricsView } from './catalogue.ts'
import { CatalogueChanges } from './catalogue-changes.ts'
import { connectionsView } from './connections.ts'
import { type Notices, QuotaNotices } from './notices.ts'
import { ProducerSensor } from './sensor.ts'
import { seriesView } from './series.ts'
import { statNumberViews } from './stat-numbers.ts'
import { channelsView, type Stats, type StatusEntry, sensorsView, statsView } from './status.ts'

/** The state of the server. */
export interface ServerView {
  stats(reader: Pick<Identity, 'tenant' | 'role'>): Stats
  channels(): Iterable<Channel>
  /** Those that an identity may see. */
  channelsOf(identity: Identity): Iterable<Channel>
  /** A channel that an identity may see; undefined if there is none with this id. */
  channel(identity: Identity, id: number): Channel | undefined
  /** Those that an identity can see, and undefined for others. */
  controls(identity: Identity): Iterable<Control | undefined>
  /** The same of other producers whose paths match. */
  remoteControls(producers: (path: string) => boolean, identity: Identity): Iterable<RemoteControl>
  readonly rights: Rights
  readonly boards: ShownBoards
  readonly approvals: ShownApprovals
  readonly audit: AuditLog
  /** When a user was added, milliseconds since 1970. */
  createdOf(userId: number): number
  /** Entries of `producer.sensors` that belong to no source. */
  readonly statuses: readonly StatusEntry[]
}

export interface OwnMetricsOptions {
  readonly hub: Hub
  readonly clock: Clock
  readonly log: Logger
  readonly quotas: Quotas
  readonly notices: Pick<Notices, 'emit'>
  readonly server: ServerView
}

export interface OwnMetrics {
  readonly sensors: readonly Sensor[]
  /** To be called every second. */
  sweep(): void
}

/** `statuses` returns the entries of `producer.sensors`. */
export function openOwnMetrics(
  { hub, clock, log, quotas, notices, server }: OwnMetricsOptions,
  statuses: () => readonly StatusEntry[],
): OwnMetrics {
  const find: FindChannel = (identity, id) => server.channel(identity, id)
  const stats = statsView((identity) => server.stats(identity))
  const views = [
    metricsView(() => hub.sensors, server.rights),
    controlsView(
      (identity) => server.controls(identity),
      (producers, identity) => server.remoteControls(producers, identity),
      (identity, control, producer) =>
        server.rights.approversOf(identity, control, (name) => (name === 'producer' ? producer : undefined)),
    ),
    channelsView((identity) => server.channelsOf(identity), find),
    bindingsView(find),
    connectionsView((identity) => server.channelsOf(identity)),
    sensorsView(statuses, hub),
    stats,
    ...statNumberViews(stats),
    boardsView(server.boards),
    approvalsView(server.approvals),
    seriesView({ hub, rights: server.rights, clock }),
  ]
  const catalogue = new CatalogueChanges(() => hub.sensors, clock)
  const overQuota = new QuotaNotices(quotas, notices, clock)
  const audit = new AuditSensor(server.audit, log, server.createdOf)
  return {
    sensors: [new ProducerSensor(views, clock), audit, catalogue, new PendingControls(server.approvals, clock)],
    sweep: () => {
      overQuota.report()
      catalogue.sweep()
      hub.recent.sweep()
    },
  }
}
