/** The messages between the server's side of the replicated store and its thread, which has one role until it ends. */
import type { FromWorker, ServiceOptions, ToWorker } from '../sqlite/service.ts'
import type { LogOptions } from './options.ts'
import type { LogPlace } from './place.ts'

/** How long the nats-servers may take to say what they have. */
export const BOUNDS_MS = 5_000

/**
 * `lead` serves the store, `follow` applies what another node leads, `found` makes the next log and ends, `copy` fetches the
 * database of the node that leads and ends.
 */
export type Role = 'lead' | 'follow' | 'found' | 'copy'

export interface RoleOptions {
  readonly role: Role
  readonly store: ServiceOptions
  readonly log: LogOptions
  /** The wall clock at the start of the role, in ms since 1970. */
  readonly wall: number
  /** The node that the copy comes from. */
  readonly from?: string
  /** The number of the newest log when it was decided that one is founded. */
  readonly newest: number
}

/** How far the copy of a database has come. */
export interface CopyProgress {
  readonly receivedBytes: number
  readonly totalBytes: number
}

/** What has come of a copy. */
export interface Copied {
  readonly place: LogPlace
  /** Where the database is now that was here before; undefined if there was none. */
  readonly aside: string | undefined
}

export type FromRole =
  | FromWorker
  /** The database has everything up to `place`, of a follower or of the leader; `last` is the sequence of the log's last message, as far as known. */
  | { readonly type: 'place'; readonly place: LogPlace; readonly last: number }
  | { readonly type: 'obstacle'; readonly obstacle: string | undefined }
  | { readonly type: 'received'; readonly progress: CopyProgress }
  | { readonly type: 'fetched'; readonly copied: Copied }
  /** The epoch in which this node leads, before `opened`. */
  | { readonly type: 'leads'; readonly epoch: number }
export type ToRole =
  | ToWorker
  /** To `lead`: another node leads, so that no epoch is to begin. */
  | { readonly type: 'giveUp' }
