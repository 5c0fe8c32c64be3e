/** What a node of a cluster is made of: the parts that it is handed, and what it asks of them. */
import type { Clock } from '../kernel/core/clock.ts'
import type { Logger } from '../kernel/core/log.ts'
import type { Bus } from './alive.ts'
import type { ClusterSection } from './config.ts'
import type { Replica } from './replica.ts'

/** A server that runs on the store of this node. */
export interface Leading {
  notify(notice: ClusterNotice): void
  /** Stops cleanly: everything that was accepted is durable. */
  stop(): Promise<void>
  /** Another node leads: consumers are informed and disconnected, and nothing more is written. */
  depose(): Promise<void>
}

export interface ClusterNotice {
  readonly severity: 'info' | 'warning'
  readonly subject: 'cluster'
  readonly detail: string
}

export interface LeadOptions {
  readonly store: Replica
  /** How long ago this node stored the last record of the node that led, in ms; undefined if it did not follow before. */
  readonly downMs: number | undefined
  /** Storing failed for good: with the code DEPOSED because another node leads. */
  readonly onFailed: (error: Error) => void
}

/** Listens where consumers connect while this node does not lead. */
export interface NodeFront {
  /** Does nothing if it listens already. Rejects with ListenError. */
  start(): Promise<void>
  /** Frees the addresses. Connections that wait for a node to lead may go on waiting. */
  stop(): Promise<void>
}

/** How much of a copy of a database is here. */
export interface Received {
  readonly receivedBytes: number
  readonly totalBytes: number
}

/**
 * Fetches a copy from `leader`, and gives where the database is that was here before. Rejects with StorageError, and then nothing
 * is changed.
 */
export type FetchCopy = (
  leader: string,
  progress: (received: Received) => void,
  signal: AbortSignal,
) => Promise<string | undefined>

export interface ClusterNodeOptions {
  readonly config: Pick<ClusterSection, 'name' | 'node' | 'nodes' | 'leaseMs'>
  /** Random text, made at the start of the process. */
  readonly run: string
  /** A digest of what has to be the same in the configuration of all nodes. */
  readonly configuration: () => string
  readonly version: string
  /** The highest number of the format of records that this version can read. */
  readonly format: number
  readonly clock: Clock
  readonly log: Logger
  readonly random: () => number
  readonly bus: Bus
  readonly replica: Replica
  /** Starts the server on the store. Rejects with StorageError DEPOSED if another node was faster. */
  readonly lead: (options: LeadOptions) => Promise<Leading>
  readonly front?: NodeFront
  readonly copy: FetchCopy
}
