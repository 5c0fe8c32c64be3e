/** The parts of the server that commands use. Each command names those that it needs. */
import type { ScramVerifier } from '../../../auth/scram/keys.ts'
import type { LimitedRecords } from '../accounts/audit/limited-records.ts'
import type { Rights } from '../accounts/rights.ts'
import type { Users } from '../accounts/users.ts'
import type { Bindings } from '../channels/bindings.ts'
import type { Channel } from '../channels/channel.ts'
import type { Journal } from '../channels/journal.ts'
import type { QueueHost } from '../channels/queue-host.ts'
import type { Registry } from '../channels/registry.ts'
import type { Executor } from '../controls/executor.ts'
import type { FairWork } from '../core/fair-work.ts'
import type { QueryIds } from '../metrics/ids.ts'
import type { Instances } from '../metrics/instances.ts'
import type { PendingMeasurements } from '../metrics/pending-measurements.ts'

export interface CommandServices {
  readonly registry: Registry
  readonly bindings: Bindings
  readonly instances: Instances
  readonly measurements: PendingMeasurements
  readonly answers: QueryIds
  readonly executor: Executor
  readonly dialler: ChannelDialler
  readonly accounts: Users
  readonly rights: Rights
  /** Commands that run nothing, on their way to the audit log. */
  readonly limitedRecords: LimitedRecords
  readonly journal: Journal
  readonly host: QueueHost
  readonly work: FairWork
}

/** The destination of the URL of a DEF_CHANNEL. */
export interface OutboundDestination {
  /** The canonical form of the URL. */
  readonly url: string
  /** True if values are only sent there, without a session. */
  readonly isPush: boolean
  /** True if they are sent by requests of HTTP. */
  readonly isHttp: boolean
  readonly scheme: string
  readonly host: string
  readonly isAddress: boolean
}

/** Channels whose connections the producer makes [MON 14], as commands see them. */
export interface ChannelDialler {
  /** Throws StatusError INVALID_ARGUMENT. */
  destination(url: string): OutboundDestination
  /** True if the operator's list has the URL. */
  permits(url: string): boolean
  /** The part of a secret that is kept. */
  verifierOf(secret: Uint8Array): Promise<ScramVerifier>
  /** Whether the certificate of a consumer at the URL is enough of a proof: TLS, and authorities that the operator chose. */
  provesItself(url: string): boolean
  /** Takes note of what the consumer of a channel with a URL has to show from now on. Without a proof nobody gets in. */
  watch(channel: Channel, proof: DialProof | undefined): void
  /** Starts to connect a channel that is watched, unless that has begun. */
  dial(channel: Channel): void
}

/**
 * What the consumer of a channel with a URL has to show: that it knows the secret, or the certificate of its name. Or what the
 * producer shows to a destination that it delivers to.
 */
export type DialProof = ScramVerifier | 'certificate' | BearerProof

export interface BearerProof {
  readonly bearer: Uint8Array
}
