/**
 * The parts of a queue. Each is given all of them and takes those that it needs: those that stand before it, as its type says.
 * `Queue` gets them from the inlet, which it closes thereby.
 */
import { Arrivals } from './arrivals.ts'
import { Delivery } from './delivery.ts'
import { Inlet } from './inlet.ts'
import { type Lane, Lanes } from './lane.ts'
import { QueueLedger } from './ledger.ts'
import { Losses } from './losses.ts'
import { MetricValues } from './metric-values.ts'
import { Persistence } from './persistence.ts'
import type { QueueCore } from './queue-core.ts'
import type { QueueHost, QueueListener, QueueSettings, SharedLimit } from './queue-host.ts'
import { Settlement } from './settlement.ts'
import { TransactionIds } from './transaction-ids.ts'
import { Window } from './window.ts'

export interface QueuePartsOptions {
  readonly channel: number
  /** The first transaction id. */
  readonly origin: number
  readonly settings: QueueSettings
  readonly host: QueueHost
  readonly listener: QueueListener
  readonly share: SharedLimit
}

export class QueueParts implements QueueCore {
  readonly channel: number
  settings: QueueSettings
  readonly host: QueueHost
  readonly listener: QueueListener
  readonly share: SharedLimit
  readonly ids: TransactionIds
  readonly lanes: Lanes
  readonly sending: Lane
  readonly ledger: QueueLedger
  readonly window: Window
  readonly persistence: Persistence
  readonly settlement: Settlement
  readonly losses: Losses
  readonly delivery: Delivery
  readonly inlet: Inlet<QueueParts>
  readonly arrivals: Arrivals
  readonly metricValues: MetricValues

  constructor({ channel, origin, settings, host, listener, share }: QueuePartsOptions) {
    this.channel = channel
    this.settings = settings
    this.host = host
    this.listener = listener
    this.share = share
    this.ids = new TransactionIds(origin)
    this.lanes = new Lanes()
    this.sending = this.lanes.sending
    this.ledger = new QueueLedger(host.dropped)
    this.window = new Window(() => listener.ready())
    this.window.configure(settings)
    this.persistence = new Persistence(this)
    this.settlement = new Settlement(this)
    this.losses = new Losses(this)
    this.delivery = new Delivery(this)
    this.inlet = new Inlet<QueueParts>(this)
    this.arrivals = new Arrivals(this)
    this.metricValues = new MetricValues(this)
  }
}
