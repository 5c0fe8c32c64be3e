/** The parts of the server that sessions use themselves. Those that commands use are in server/kernel/commands/services.ts. */

import type { Authenticator } from '../../../auth/authenticator.ts'
import type { Identity } from '../../../auth/permissions.ts'
import type { ProducerName } from '../../../protocol/monitor/capabilities.ts'
import type { AuthFailures } from '../accounts/audit/failures.ts'
import type { Quotas } from '../accounts/quotas.ts'
import type { Users } from '../accounts/users.ts'
import type { Bindings } from '../channels/bindings.ts'
import type { Journal } from '../channels/journal.ts'
import type { QueueHost } from '../channels/queue-host.ts'
import type { Registry } from '../channels/registry.ts'
import type { TurnScheduler } from '../channels/turn-scheduler.ts'
import type { Clock } from '../core/clock.ts'
import type { FairWork } from '../core/fair-work.ts'
import type { Faults } from '../core/faults.ts'
import type { Logger } from '../core/log.ts'

export interface SessionContext {
  /** Names the history of transaction ids in PRODUCER_CAPS. */
  readonly generation: string
  /** Who this producer is, and those below it that somebody may see, for PRODUCER_CAPS. */
  readonly self: {
    readonly name: ProducerName
    below(identity: Identity): readonly ProducerName[]
    /** Counts the changes of those below. */
    readonly changes: number
  }
  /** The name and version in PRODUCER_CAPS. */
  readonly software: string
  readonly clock: Clock
  readonly log: Logger
  readonly faults: Faults
  readonly turn: TurnScheduler
  /** The time of the event loop that sessions share. */
  readonly work: FairWork
  readonly journal: Journal
  readonly host: Pick<QueueHost, 'refusing'>
  readonly registry: Registry
  readonly bindings: Bindings
  readonly quotas: Quotas
  readonly accounts: Users
  readonly authenticator: Authenticator
  /** AUTH failures on their way to the audit log. */
  readonly failures: AuthFailures
}
