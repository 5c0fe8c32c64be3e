/**
 * Systems that a wing has a connection with, whoever makes it: brokers, other producers, and destinations that values of channels
 * are delivered to.
 */
import type { Reader } from '../../auth/permissions.ts'
import type { Value } from '../../protocol/monitor/value.ts'
import type {
  AlertRow,
  NotificationRow,
  NotifierRow,
  NotifyAlertRow,
  NotifyGroupRow,
  QmfAgentRow,
  SilenceRow,
  UpstreamBindingRow,
  UpstreamRow,
} from '../../storage/store.ts'
import type { TenantUse } from '../kernel/accounts/quotas.ts'
import type { Channel } from '../kernel/channels/channel.ts'
import type { Journal } from '../kernel/channels/journal.ts'
import type { Onlooker } from '../kernel/controls/approvals.ts'
import type { Sensor } from '../kernel/metrics/metric.ts'
import type { ReadRights } from '../kernel/metrics/read-rights.ts'
import type { IsRecorded } from '../kernel/metrics/recent.ts'
import type { Notices } from '../kernel/producer/notices.ts'
import type { ServerView } from '../kernel/producer/own-metrics.ts'
import type { ProducerView } from '../kernel/producer/sensor.ts'
import type { ChannelDelivery } from './delivery.ts'
import type { Pacer } from './io/pacer.ts'
import type { FaultySensor, Meter } from './poll.ts'
import type { Joining } from './producers.ts'

export { dropCauses } from '../kernel/channels/ledger.ts'
export type { Stats } from '../kernel/producer/status.ts'
export type {
  NotificationRow,
  NotifierRow,
  NotifyAlertRow,
  NotifyGroupRow,
  QmfAgentRow,
  Reader,
  SilenceRow,
  UpstreamBindingRow,
  UpstreamRow,
}

export interface Peer {
  /** Paces what a connection brings: it waits for storage and for a quota. */
  pacer(sensor: FaultySensor, meter: Pick<Meter, 'waitMs'>): Pacer
  /** Tells people what has become of a peer, by `producer.notices`. */
  readonly notice: Notices['emit']
  readonly delivery: ChannelDelivery
  /** What is stored about peers. */
  readonly stored: StoredPeers
  /** What the server shows of itself to a peer that asks. */
  readonly view: OwnView
  /** What it takes to be joined with other producers. */
  readonly producers: Joining
}

export interface StoredPeers {
  readonly journal: Pick<Journal, 'touch' | 'change' | 'whenStored'>
  /** How far the channels of other servers were taken. */
  readonly upstreams: readonly UpstreamRow[]
  /** What those channels bind. */
  readonly upstreamBindings: readonly UpstreamBindingRow[]
  /** What brokers of QMF know this server by; undefined if it was an agent of none. */
  readonly qmfAgent: QmfAgentRow | undefined
  /** What notifiers had told, and whom nobody was to be told of, when the server started. */
  readonly notifyGroups: readonly NotifyGroupRow[]
  readonly notifyAlerts: readonly NotifyAlertRow[]
  readonly notifications: readonly NotificationRow[]
  readonly silences: readonly SilenceRow[]
  /** Notifiers that users had put when the server started. */
  readonly notifiers: readonly NotifierRow[]
  /** The alerts that there are now. */
  alerts(): Iterable<AlertRow>
}

export interface OwnView {
  /** By name. */
  tenants(): readonly string[]
  readonly stats: ServerView['stats']
  channels(): Iterable<ShownChannel>
  readonly sensors: readonly Sensor[]
  /** What a tenant has, and may have. */
  use(tenant: string): Pick<TenantUse, 'history' | 'historyLimits' | 'rules' | 'ruleSeconds' | 'notifiers'>
  /** `producer.recent` as far as it is kept in memory; what a history records is left out from then on. */
  readonly recent: Required<ProducerView> & { leaveOut(isRecorded: IsRecorded): void }
  /**
   * A user as he is now, within the scope of a credential that he had once; undefined if he was removed, or if that was a token that is
   * revoked or has expired. `token`: its id; 0, or nothing, if it was none.
   */
  readerOf(userId: number, scope: string, token?: number): Reader | undefined
  /** Whether somebody may run a control with these arguments now, without anybody's approval. */
  mayExecute(reader: Reader, control: string, argument: (name: string) => string | undefined): boolean
  /** What somebody may read. */
  readRights(reader: Reader): Pick<ReadRights, 'maySee' | 'mayReadRemembered' | 'mayReadAll' | 'isListed' | 'covers'>
  /** EXECUTEs that wait for approval, as far as somebody is shown them: each as in `control.pending`, without its dry run. */
  waiting(shownTo: Onlooker): readonly Value[]
}

/** A channel as others are shown it: its state, and nothing of its values. */
export interface ShownChannel extends Pick<Channel, 'id' | 'owner' | 'state' | 'deleted'> {
  readonly row: Pick<Channel['row'], 'durable'>
  readonly queue: Pick<Channel['queue'], 'counts'>
}
