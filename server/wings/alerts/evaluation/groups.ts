/** The groups of the rules of a tenant: which there are, when each is evaluated, and what is shown of them. */
import type { Expressions, StoredAlerts } from '../../../kit/expressions.ts'
import type { Clock, Logger } from '../../../kit/running.ts'
import type { Alert } from '../rules/alerting-rule.ts'
import { nameOf, type RuleFile } from '../rules/files.ts'
import { type GroupCounts, type GroupServices, RunningGroup } from './running-group.ts'
import { offsetOf, ticksAfter } from './schedule.ts'
import { alertOf } from './state.ts'

/** Groups that are evaluated at the same time. */
const MOST_AT_ONCE = 4
/** Alerts of a tenant, those that have ended a short time ago among them. */
const MOST_ALERTS = 10_000

export interface RuleGroupsOptions extends Pick<GroupServices, 'reader' | 'publish' | 'emit' | 'forget'> {
  readonly tenant: string
  readonly expressions: Expressions
  readonly stored: StoredAlerts
  readonly clock: Pick<Clock, 'monotonicMs' | 'wallMs'>
  readonly log: Logger
}

export class RuleGroups {
  readonly tenant: string
  readonly counts: GroupCounts & { setBack: number } = {
    evaluations: 0,
    failures: 0,
    transitions: 0,
    missed: 0,
    setBack: 0,
  }
  readonly #options: RuleGroupsOptions
  readonly #services: GroupServices
  #groups = new Map<string, RunningGroup>()
  readonly #running = new Set<RunningGroup>()
  /** The keys of those that are due, in their order. */
  readonly #due = new Set<string>()
  /** What was stored before this process; undefined once it has been taken. */
  #stored: StoredAlerts | undefined
  #isCatchingUp = false
  #isOver = false

  constructor(options: RuleGroupsOptions) {
    this.tenant = options.tenant
    this.#options = options
    this.#stored = options.stored
    const { expressions, stored, clock, log, reader, publish, emit, forget } = options
    const room = (group: RunningGroup) => ({ others: this.#alertsBut(group), most: MOST_ALERTS })
    this.#services = { expressions, journal: stored.journal, clock, log, reader, publish, emit, forget, room }
  }

  get groups(): Iterable<RunningGroup> {
    return this.#groups.values()
  }

  /** Evaluates these rules from now on, and no others. */
  follow(files: readonly RuleFile[], intervalMs: number): void {
    const before = this.#groups
    this.#groups = new Map()
    for (const { path, groups } of files)
      for (const definition of groups) {
        const place = [this.tenant, nameOf(path), definition.name]
        const group = new RunningGroup(this.#services, this.counts, place, path, definition, intervalMs)
        this.#groups.set(group.key, group)
        const known = before.get(group.key)
        before.delete(group.key)
        if (known !== undefined) group.replace(known)
      }
    for (const group of before.values()) group.end()
    this.#restore()
  }

  /** To be called every second. */
  sweep(): void {
    if (this.#isOver || this.#options.expressions.problem !== undefined) return
    const nowMs = this.#options.clock.wallMs()
    for (const group of this.#groups.values()) if (this.#lagOf(group, nowMs) > 0) this.#due.add(group.key)
    if (this.#due.size === 0 || this.#running.size >= MOST_AT_ONCE || this.#isCatchingUp) return
    this.#isCatchingUp = true
    void this.#evaluateDue().finally(() => {
      this.#isCatchingUp = false
    })
  }

  stop(): void {
    this.#isOver = true
    for (const group of this.#groups.values()) group.isOver = true
  }

  /** How long the group has been waiting that has waited longest, in milliseconds. */
  get lagMs(): number {
    const nowMs = this.#options.clock.wallMs()
    return Math.max(0, ...[...this.#groups.values()].map((group) => this.#lagOf(group, nowMs)))
  }

  /** 0 if it is not due. */
  #lagOf(group: RunningGroup, nowMs: number): number {
    const { nextMs, setBackMs } = this.#ticksOf(group, nowMs)
    if (setBackMs > 0) return 1
    return nextMs === undefined ? 0 : Math.max(1, nowMs - nextMs)
  }

  #ticksOf({ reachedMs, intervalMs, key }: RunningGroup, nowMs: number): ReturnType<typeof ticksAfter> {
    return ticksAfter(reachedMs, nowMs, intervalMs, offsetOf(key, intervalMs))
  }

  async #evaluateDue(): Promise<void> {
    const { clock, expressions, log } = this.#options
    const caughtMs = clock.wallMs()
    try {
      await expressions.caughtUp(this.tenant)
    } catch {
      // Why not is what the history says.
      return
    }
    while (this.#running.size < MOST_AT_ONCE && !this.#isOver) {
      const key = [...this.#due].find((one) => !this.#isRunning(one))
      if (key === undefined) return
      this.#due.delete(key)
      const group = this.#groups.get(key)
      if (group === undefined) continue
      this.#running.add(group)
      void this.#evaluate(group, caughtMs)
        .catch((error: unknown) => log.error({ err: error, group: key }, 'a group of rules could not be evaluated'))
        .finally(() => this.#running.delete(group))
    }
  }

  #isRunning(key: string): boolean {
    return [...this.#running].some((group) => group.key === key)
  }

  /** All that is due, one time after the other. */
  async #evaluate(group: RunningGroup, caughtMs: number): Promise<void> {
    const { log } = this.#options
    while (!group.isOver) {
      const { nextMs, skipped, setBackMs } = this.#ticksOf(group, caughtMs)
      const where = { file: group.file, group: group.definition.name }
      if (setBackMs > 0) {
        this.counts.setBack++
        group.moveBack(setBackMs)
        log.warn({ ...where, setBackMs }, 'the clock was set back: the times of alerts move with it')
        continue
      }
      if (nextMs === undefined) return
      if (skipped > 0) {
        group.skip(skipped, nextMs - group.intervalMs)
        log.warn({ ...where, skipped }, 'evaluations are left out: they were due more than an hour ago')
      }
      if (!(await group.evaluate(nextMs))) return
    }
  }

  #alertsBut(but: RunningGroup): number {
    let count = 0
    for (const group of this.#groups.values()) if (group !== but) count += group.alertCount
    return count
  }

  /** Goes on where the process before has ended. What it has of rules that are there no more ends. */
  #restore(): void {
    const stored = this.#stored
    this.#stored = undefined
    if (stored === undefined) return
    const alerts = new Map<string, Map<string, Alert>>()
    for (const row of stored.alerts) {
      const alert = alertOf(row)
      const ofRule = alerts.get(row.rule) ?? new Map<string, Alert>()
      alerts.set(row.rule, ofRule.set(alert.labels.key, alert))
    }
    for (const { name, reached, sequence } of stored.groups) {
      const group = this.#groups.get(name)
      if (group !== undefined) group.restore(reached, sequence, alerts)
      else if (isOf(name, this.tenant)) stored.journal.change({ remove: 'alert group', name })
    }
    const known = new Set([...this.#groups.values()].flatMap(({ rules }) => rules.map(({ key }) => key)))
    for (const [rule, ended] of alerts) if (!known.has(rule) && isOf(rule, this.tenant)) this.#endUnknown(rule, ended)
  }

  #endUnknown(key: string, alerts: ReadonlyMap<string, Alert>): void {
    const { stored, clock, emit, forget } = this.#options
    const [, , group = '', rule = ''] = JSON.parse(key) as string[]
    const timeMs = clock.wallMs()
    for (const alert of alerts.values()) {
      stored.journal.change({ remove: 'alert', rule: key, labels: JSON.stringify([...alert.labels]) })
      if (alert.state === 'inactive') continue
      this.counts.transitions++
      emit({ alert: { ...alert, state: 'inactive', resolvedMs: timeMs }, group, rule, sequence: 0, timeMs })
      forget(alert.labels)
    }
  }
}

function isOf(key: string, tenant: string): boolean {
  return (JSON.parse(key) as string[])[0] === tenant
}
