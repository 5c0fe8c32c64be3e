/** What a node asks of its store: to follow the log of the cluster, to lead it, to found one. storage/replicated implements it. */
import type { LogPlace } from '../../storage/replicated/place.ts'
import type { Store } from '../../storage/store.ts'

/** The log as the nats-servers have it now. */
export interface LogEnd {
  /** The number of the newest log; 0 if there is none. */
  readonly log: number
  /** The sequence of its last message. */
  readonly last: number
}

export interface FollowEvents {
  /** The database has everything up to `place`; `last` is the sequence of the last message that the log has, as far as known. */
  onPlace(place: LogPlace, last: number): void
  /**
   * Why this database cannot follow now, as a sentence for people; undefined as soon as it can again. A full disk and a
   * nats-server out of reach are such obstacles: the store goes on trying.
   */
  onObstacle(obstacle: string | undefined): void
}

export interface Replica extends Store {
  /**
   * Follows the log until the signal is aborted; then the database is closed, and the promise fulfilled. Rejects with
   * StorageError: FOREIGN if the database is not part of the log, BEHIND if the log no longer has the records that it needs
   * (both need a copy), LOCKED, DAMAGED, TOO_NEW or IO as `open` does.
   */
  follow(events: FollowEvents, signal: AbortSignal): Promise<void>
  /** The newest log and its end, asked of the nats-servers. Rejects with StorageError UNREACHABLE if no majority answers in `timeoutMs`. */
  end(timeoutMs: number): Promise<LogEnd>
  /**
   * The place of the database, read from the file; to be called while nothing follows or leads. A database that is in no log has
   * the sequence 0 if it never stored anything, else 1.
   */
  place(): Promise<LogPlace>
  /**
   * Makes the next log, which begins with this database, and gives the place of the database, which is not in it yet. If it `mayLack`
   * records that others had, it counts as restored: transaction ids are skipped, and durable channels report it by a GAP. `newest` is
   * the number of the newest log when this was decided. Rejects with StorageError DEPOSED if another node was faster, UNREACHABLE if
   * the nats-servers do not answer.
   */
  found(mayLack: boolean, newest: number): Promise<LogPlace>
  /** The epoch in which this node leads; 0 while it does not. */
  readonly epoch: number
  /** The place of the last record that is stored here, while this node leads; undefined while it does not. */
  readonly stored: LogPlace | undefined
  /**
   * Has the nats-servers choose another of them to lead log `log`, which may have more of it. Rejects with Error if that is refused,
   * or not answered.
   */
  moveLog(log: number): Promise<void>
  /**
   * Another node leads: `open` rejects with StorageError DEPOSED, whether it is under way or is called before the next `close`. It
   * has no effect once an epoch of this node has begun.
   */
  giveUp(): void
  /** Ends what is kept between leading and following. */
  disconnect(): Promise<void>
  // `open` leads: it applies the log to its end and appends an epoch record. It rejects with StorageError DEPOSED if another node
  // was faster, and may lead or follow again after `close`. While leading, `onFailed` with the code DEPOSED says that another node leads.
}
