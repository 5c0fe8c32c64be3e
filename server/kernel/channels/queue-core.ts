/** What all parts of a queue work on: its settings and surroundings, and the state that needs no other part. */
import { type Lane, Lanes } from './lane.ts'
import { QueueLedger } from './ledger.ts'
import type { QueueHost, QueueListener, QueueSettings, SharedLimit } from './queue-host.ts'
import { TransactionIds } from './transaction-ids.ts'
import { Window } from './window.ts'

export interface QueueOptions {
  readonly channel: number
  /** The first transaction id. */
  readonly origin: number
  readonly settings: QueueSettings
  readonly host: QueueHost
  readonly listener: QueueListener
  /** The limit that it fills together with others. */
  readonly share: SharedLimit
}

export class QueueCore {
  readonly channel: number
  settings: QueueSettings
  readonly host: QueueHost
  readonly listener: QueueListener
  readonly share: SharedLimit
  readonly ids: TransactionIds
  readonly lanes = new Lanes()
  readonly sending: Lane = this.lanes.sending
  readonly ledger: QueueLedger
  readonly window: Window

  constructor({ channel, origin, settings, host, listener, share }: QueueOptions) {
    this.channel = channel
    this.settings = settings
    this.host = host
    this.listener = listener
    this.share = share
    this.ids = new TransactionIds(origin)
    this.ledger = new QueueLedger(host.dropped)
    this.window = new Window(() => listener.ready())
    this.window.configure(settings)
  }
}
