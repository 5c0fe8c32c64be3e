/** The groups of the rules of a tenant: which there are, when each is evaluated, and what is shown of them. */
import { LabelSet } from '../../../../promql/label-set.ts'
import type { Expressions, SaidOfAlert, StoredAlerts } from '../../../kit/expressions.ts'
import type { Clock, Logger } from '../../../kit/running.ts'
import { type Alert, isActive } from '../rules/alerting-rule.ts'
import { groupPlace } from '../rules/files.ts'
import {
  type EvaluatedFile,
  type GroupCounts,
  type GroupServices,
  type Outcomes,
  RunningGroup,
} from './running-group.ts'
import { ticksAfter } from './schedule.ts'
import { alertOf } from './state.ts'

/** Groups that are evaluated at the same time. */
const MOST_AT_ONCE = 4
/** Times that are at most so far apart begin together, as they do when none has been missed. */
const TOGETHER_MS = 1_000
/** A group is late that waits for so long, and for longer than its interval. */
const LATE_MS = 10_000
/** Alerts of a tenant, those that have ended a short time ago among them. */
const MOST_ALERTS = 10_000

export interface RuleGroupsOptions extends Outcomes, Pick<GroupServices, 'work'> {
  readonly tenant: string
  readonly expressions: Omit<Expressions, 'watch'>
  readonly stored: StoredAlerts
  readonly clock: Pick<Clock, 'monotonicMs' | 'wallMs'>
  readonly log: Logger
}

/** An evaluation that is under way. */
interface Running {
  /** The time that is evaluated. */
  readonly timeMs: number
  /** When it began, on the monotonic clock. */
  readonly begunMs: number
}

export class RuleGroups {
  readonly tenant: string
  readonly counts: GroupCounts & { setBack: number } = {
    evaluations: 0,
    failures: 0,
    transitions: 0,
    missed: 0,
    workedMs: 0,
    setBack: 0,
  }
  readonly #options: RuleGroupsOptions
  readonly #services: GroupServices
  #groups = new Map<string, RunningGroup>()
  /** By the keys of the groups. */
  readonly #running = new Map<string, Running>()
  /** What was stored before this process; undefined once it has been taken. */
  #stored: StoredAlerts | undefined
  #isOver = false

  constructor(options: RuleGroupsOptions) {
    this.tenant = options.tenant
    this.#options = options
    this.#stored = options.stored
    const { expressions, stored } = options
    const room = (group: RunningGroup) => ({ others: this.#alertsBut(group), most: MOST_ALERTS })
    this.#services = { ...options, expressions, journal: stored.journal, room }
  }

  get groups(): Iterable<RunningGroup> {
    return this.#groups.values()
  }

  /** Evaluates these rules from now on, and no others. What is the same goes on. */
  follow(files: readonly EvaluatedFile[], intervalMs: number): void {
    const before = this.#groups
    this.#groups = new Map()
    for (const file of files)
      for (const definition of file.groups) {
        const key = JSON.stringify(groupPlace(this.tenant, file.path, definition.name))
        const known = before.get(key)
        before.delete(key)
        if (known?.isOf(file, definition, intervalMs) === true) {
          this.#groups.set(key, known)
          continue
        }
        const group = new RunningGroup(this.#services, this.counts, key, file, definition, intervalMs)
        this.#groups.set(key, group)
        if (known !== undefined) group.replace(known)
      }
    for (const group of before.values()) group.end()
    this.#restore()
  }

  /** To be called every second. */
  sweep(): void {
    this.#begin()
  }

  stop(): void {
    this.#isOver = true
    for (const group of this.#groups.values()) group.isOver = true
  }

  /** What an alert that is active says now, by its group, its rule and its labels. */
  saidOf(wanted: string, name: string, labels: Iterable<readonly [string, string]>): SaidOfAlert | undefined {
    const { key } = LabelSet.of(labels)
    for (const { definition, rules } of this.groups) {
      if (definition.name !== wanted) continue
      for (const { rule } of rules) {
        const alert = rule.definition.name === name ? rule.alerts.get(key) : undefined
        if (alert === undefined || !isActive(alert)) continue
        return { value: String(alert.value), annotations: [...alert.annotations] }
      }
    }
    return undefined
  }

  /** How long the group has been waiting that has waited longest, in milliseconds. */
  get lagMs(): number {
    const nowMs = this.#options.clock.wallMs()
    return Math.max(0, ...[...this.#groups.values()].map((group) => this.#lagOf(group, nowMs)))
  }

  /** Why the rules cannot be relied on now; undefined if each was evaluated at its last time, and could be. */
  get problem(): string | undefined {
    const { clock, expressions } = this.#options
    if (expressions.problem !== undefined) return expressions.problem
    if (this.#groups.size === 0) return 'no rules are evaluated'
    const nowMs = clock.wallMs()
    for (const group of this.#groups.values()) {
      const { definition, evaluatedMs, intervalMs, rules } = group
      if (evaluatedMs === undefined) return `the group ${definition.name} has not been evaluated yet`
      if (this.#lagOf(group, nowMs) > Math.max(LATE_MS, intervalMs)) return `the group ${definition.name} is late`
      const failed = rules.find(({ health }) => health?.problem !== undefined)
      if (failed !== undefined) return `the rule ${failed.rule.definition.name} fails: ${failed.health?.problem}`
    }
    return undefined
  }

  /** 0 if it is not due. */
  #lagOf(group: RunningGroup, nowMs: number): number {
    const { nextMs, setBackMs } = this.#ticksOf(group, nowMs)
    if (setBackMs > 0) return 1
    return nextMs === undefined ? 0 : Math.max(1, nowMs - nextMs)
  }

  #ticksOf({ reachedMs, intervalMs, shiftMs }: RunningGroup, nowMs: number): ReturnType<typeof ticksAfter> {
    return ticksAfter(reachedMs, nowMs, intervalMs, shiftMs)
  }

  /**
   * Begins what is due, the oldest time first. A time waits for those before it as long as it would have waited if each had come in its
   * time: so what was missed is evaluated over what it has recorded itself, and a slow group holds up no other.
   */
  #begin(): void {
    const { clock, expressions } = this.#options
    let caughtUp: Promise<void> | undefined
    while (this.#running.size < MOST_AT_ONCE && !this.#isOver && expressions.problem === undefined) {
      const nowMs = clock.wallMs()
      const next = this.#oldestDue(nowMs)
      if (next === undefined || !this.#isItsTurn(next.timeMs)) return
      const { group, timeMs } = next
      caughtUp ??= expressions.caughtUp(this.tenant)
      this.#running.set(group.key, { timeMs, begunMs: clock.monotonicMs() })
      void this.#evaluate(group, nowMs, caughtUp).then((isDone) => {
        this.#running.delete(group.key)
        // What has to be done again is done again after the next sweep.
        if (isDone) this.#begin()
      })
    }
  }

  #oldestDue(nowMs: number): { readonly group: RunningGroup; readonly timeMs: number } | undefined {
    let oldest: { readonly group: RunningGroup; readonly timeMs: number } | undefined
    for (const group of this.#groups.values()) {
      if (this.#running.has(group.key)) continue
      const { nextMs, setBackMs } = this.#ticksOf(group, nowMs)
      const timeMs = setBackMs > 0 ? nowMs : nextMs
      if (timeMs !== undefined && timeMs < (oldest?.timeMs ?? Number.POSITIVE_INFINITY)) oldest = { group, timeMs }
    }
    return oldest
  }

  #isItsTurn(timeMs: number): boolean {
    const nowMs = this.#options.clock.monotonicMs()
    for (const before of this.#running.values()) {
      const apartMs = timeMs - before.timeMs
      if (apartMs > TOGETHER_MS && nowMs - before.begunMs < apartMs) return false
    }
    return true
  }

  /** Evaluates a group at the next time that is due. Resolves to false if that has to be done again later. Never rejects. */
  async #evaluate(group: RunningGroup, nowMs: number, caughtUp: Promise<void>): Promise<boolean> {
    const { log } = this.#options
    try {
      await caughtUp
    } catch {
      // Why not is what the history says.
      return false
    }
    if (group.isOver) return true
    const { nextMs, skipped, setBackMs } = this.#ticksOf(group, nowMs)
    const where = { file: group.file, group: group.definition.name }
    if (setBackMs > 0) {
      this.counts.setBack++
      group.moveBack(setBackMs)
      log.warn({ ...where, setBackMs }, 'the clock was set back: the times of alerts move with it')
      return true
    }
    if (nextMs === undefined) return true
    if (skipped > 0) {
      group.skip(skipped, nextMs - group.intervalMs)
      log.warn({ ...where, skipped }, 'evaluations are left out: they were due more than an hour ago')
    }
    try {
      return await group.evaluate(nextMs)
    } catch (error) {
      log.error({ err: error, group: group.key }, 'a group of rules could not be evaluated')
      return false
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
    const rules = [...this.#groups.values()].flatMap((group) => group.alerting)
    const known = new Set(rules.filter(({ rule }) => rule.definition.kind === 'alert').map(({ key }) => key))
    for (const [rule, ended] of alerts) if (!known.has(rule) && isOf(rule, this.tenant)) this.#endUnknown(rule, ended)
  }

  #endUnknown(key: string, alerts: ReadonlyMap<string, Alert>): void {
    const { announce, asked } = this.#options
    for (const { state, labels } of alerts.values()) if (state !== 'inactive') announce(labels)
    const end = (): void => this.#endAnnounced(key, alerts)
    const waiting = asked()
    if (waiting === undefined) end()
    else void waiting.then(end)
  }

  #endAnnounced(key: string, alerts: ReadonlyMap<string, Alert>): void {
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
