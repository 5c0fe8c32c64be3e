/** A table `[[notify]]` that is in force, whatever is sent for it. */
import type { StatusEntry } from '../../kit/metrics.ts'
import type { NotifiedAlert } from './alert.ts'
import type { NotifierTable } from './bodies.ts'
import type { NotifierCounts } from './counts.ts'
import type { NotifyGroups } from './groups.ts'

export interface InForce extends StatusEntry {
  readonly table: NotifierTable
  readonly counts: NotifierCounts
  /** Undefined before it knows any, and of a heartbeat. Those of the one before it until it has begun. */
  readonly groups: NotifyGroups | undefined
  /** Empty if nothing is wrong. */
  readonly problem: string
  /** Milliseconds since 1970; undefined if nothing is wrong. */
  readonly failingSinceMs: number | undefined
  /** Whether it tells nobody until somebody does something about it. */
  readonly isStopped: boolean
  /** Whether it could not begin, and is to be started again now. */
  readonly isToStart: boolean
  /** Begins. Never rejects. */
  start(): Promise<void>
  /** What must be told may have changed. */
  lookAgain(): void
  /** Passes what nobody has acknowledged to the next notifier, `next`. */
  escalate(next: InForce): void
  /** Takes what has become of another notifier, if it tells of such ones: to be called again and again, as long as that is so. */
  observe(alert: NotifiedAlert): void
  /** What it was told of others that fail. */
  failures(): Iterable<NotifiedAlert>
  /**
   * What was lost is looked for; what was told to wait for approval, and waits no more, has ended, also if nobody has said so, or it is
   * not to be told any more. To be called every second.
   */
  sweep(): void
  stop(): void
}
