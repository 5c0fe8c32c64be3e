/** A notifier that a user has put and that cannot tell anybody: it is shown, and is an alert that the others tell of. */
import type { Owner, SensorStatus } from '../../../kit/metrics.ts'
import type { NotifierTable } from '../bodies.ts'
import { type NotifierCounts, noneTold } from '../counts.ts'
import type { NotifyGroups } from '../groups.ts'
import type { InForce } from '../in-force.ts'

export class StoppedNotifier implements InForce {
  readonly owner: Owner
  readonly table: NotifierTable
  readonly counts: NotifierCounts = noneTold()
  readonly isStopped = true
  readonly isToStart = false
  readonly problem: string
  readonly failingSinceMs: number
  /** What was told before it stopped, from which another one goes on. */
  readonly groups: NotifyGroups | undefined

  constructor(table: NotifierTable, before: InForce | undefined, problem: string, nowMs: number) {
    this.table = table
    this.groups = before?.groups
    this.problem = problem
    this.failingSinceMs = nowMs
    this.owner = { tenant: table.tenant }
  }

  /** Nobody is told of anything. */
  async start(): Promise<void> {}
  lookAgain(): void {}
  observe(): void {}
  failures(): readonly [] {
    return []
  }
  escalate(): void {}
  sweep(): void {}
  stop(): void {}

  status(): SensorStatus {
    const { name, url } = this.table
    const detail = `${url.shown}: ${this.problem}`
    return { name: `notify/${name}`, state: 'stopped', detail, counters: { ...this.counts } }
  }
}
