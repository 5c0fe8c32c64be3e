/** What all parts of a queue work on: its settings and surroundings, and the state that needs no other part. */
import type { Lane, Lanes } from './lane.ts'
import type { QueueLedger } from './ledger.ts'
import type { QueueHost, QueueListener, QueueSettings, SharedLimit } from './queue-host.ts'
import type { TransactionIds } from './transaction-ids.ts'
import type { Window } from './window.ts'

export interface QueueCore {
  readonly channel: number
  readonly settings: QueueSettings
  readonly host: QueueHost
  readonly listener: QueueListener
  /** The limit that it fills together with others. */
  readonly share: SharedLimit
  readonly ids: TransactionIds
  readonly lanes: Lanes
  /** `lanes.sending` */
  readonly sending: Lane
  readonly ledger: QueueLedger
  readonly window: Window
}
