/** What a session and its commands need of the server around them. Made once, in `server.ts`. */
import type { Authenticator } from '../../auth/authenticator.ts'
import type { ScramVerifier } from '../../auth/scram/keys.ts'
import type { AuthFailures } from '../accounts/audit/failures.ts'
import type { AuditLog } from '../accounts/audit/log.ts'
import type { Refusals } from '../accounts/audit/refusals.ts'
import type { Quotas } from '../accounts/quotas.ts'
import type { Rights } from '../accounts/rights.ts'
import type { Users } from '../accounts/users.ts'
import type { Bindings } from '../channels/bindings.ts'
import type { Channel } from '../channels/channel.ts'
import type { Journal } from '../channels/journal.ts'
import type { QueueHost } from '../channels/queue-state.ts'
import type { Registry } from '../channels/registry.ts'
import type { TurnScheduler } from '../channels/turn.ts'
import type { RightsRevocation } from '../channels/withdrawal.ts'
import type { Executor } from '../controls/executor.ts'
import type { Clock } from '../core/clock.ts'
import type { Logger } from '../core/log.ts'
import type { Ids, QueryIds } from '../metrics/ids.ts'
import type { Instances } from '../metrics/instances.ts'
import type { PendingMeasurements } from '../metrics/pending-measurements.ts'

/** Where a URL of DEF_CHANNEL leads. */
export interface Destination {
  /** The one spelling of it. */
  readonly url: string
  /** Values only go there: there is no session. */
  readonly isPush: boolean
}

/** Channels whose connections the producer makes [MON 14]; `server/dialling` as commands see it. */
export interface ChannelDialler {
  /** Throws StatusError INVALID_ARGUMENT. */
  destination(url: string): Destination
  /** Whether the operator's list has it. */
  permits(url: string): boolean
  /** What is kept of a secret. */
  verifierOf(secret: Uint8Array): Promise<ScramVerifier>
  /** A channel with a URL is there; without a verifier nobody is let in. */
  watch(channel: Channel, verifier: ScramVerifier | undefined): void
}

export interface Producer {
  readonly name: string
  readonly software: string
  readonly clock: Clock
  readonly log: Logger
  readonly turn: TurnScheduler
  readonly journal: Journal
  readonly audit: AuditLog
  /** AUTH failures on their way into the audit log. */
  readonly failures: AuthFailures
  /** The same of what users may not do. */
  readonly refusals: Refusals
  readonly host: QueueHost
  readonly registry: Registry
  readonly bindings: Bindings
  readonly instances: Instances
  readonly measurements: PendingMeasurements
  readonly ids: Ids
  readonly quotas: Quotas
  readonly answers: QueryIds
  readonly executor: Executor
  readonly dials: ChannelDialler
  readonly accounts: Users
  readonly rights: Rights
  readonly withdrawal: RightsRevocation
  readonly authenticator: Authenticator
}
