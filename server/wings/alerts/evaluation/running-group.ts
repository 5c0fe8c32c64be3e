/**
 * A group of rules in the server. It is evaluated at one time after the other; what follows from an evaluation, the state of alerts,
 * their transitions and the results of rules, is handed on in one turn of the event loop, so that all of it is stored or nothing.
 */
import { QUERY_OPTIONS } from '../../../../promql/query.ts'
import type { Expressions, RecurringRun, StoredAlerts } from '../../../kit/expressions.ts'
import type { Clock, Logger, Steps } from '../../../kit/running.ts'
import { alertLabelsProblem, type Transition } from '../events.ts'
import { type Alert, type Alerts, isActive } from '../rules/alerting-rule.ts'
import { type External, RuleEvaluation, type RuleSteps } from '../rules/evaluation.ts'
import type { RuleFile } from '../rules/files.ts'
import { type GroupRule, type RuleOutcome, type RuleSample, rulesOf } from '../rules/group.ts'
import type { RuleGroupDefinition } from '../rules/rule-file.ts'
import { FailingRules } from './failing-rules.ts'
import { LayeredSource, RecordedSamples } from './layered-source.ts'
import { offsetOf } from './schedule.ts'
import { type AlertChange, changesOf, movedBack, rowOf, storedLabels } from './state.ts'

const EXTERNAL: External = { externalLabels: new Map(), externalUrl: '' }
const NO_ALERTS: Alerts = new Map()
/** In the place of the number of rules of the same name that come before. */
const OWN = 'own'

/** A file with groups, and who reads for their rules: undefined if there is nobody any more. The same reader is the same object. */
export interface EvaluatedFile extends Pick<RuleFile, 'path' | 'groups'> {
  readonly reader: () => Parameters<RecurringRun['run']>[0] | undefined
  /** Is told how long its rules were worked on, in milliseconds; undefined if nobody bounds that. */
  readonly worked?: (ms: number) => void
}

/** What follows from evaluations. */
export interface Outcomes {
  /** Gives out a result of a rule; returns why it was not taken. */
  readonly publish: (sample: RuleSample, timeMs: number) => string | undefined
  /** Makes known that there will be a transition of an alert. */
  readonly announce: (labels: Alert['labels']) => void
  /** Settles when whoever may want transitions was asked about all that were announced; undefined if that is so already. */
  readonly asked: () => Promise<void> | undefined
  readonly emit: (transition: Transition) => void
  readonly forget: (labels: Alert['labels']) => void
}

export interface GroupServices extends Outcomes {
  readonly expressions: Pick<Expressions, 'recurring' | 'limits' | 'problem'>
  readonly journal: StoredAlerts['journal']
  readonly clock: Pick<Clock, 'monotonicMs' | 'wallMs'>
  readonly log: Logger
  /** Does steps, as work of the tenant. What is changed and emitted in one step is stored in one batch. */
  readonly work: (steps: Steps<void>) => void | Promise<void>
  /** Alerts that other groups of the tenant have, and how many all may have. */
  readonly room: (group: RunningGroup) => { readonly others: number; readonly most: number }
}

/** For so many rules what they read is asked for at once. */
const ASKED_AHEAD = 64
/** Changes of alerts and results that are handed on in one step. */
const PER_STEP = 16
/** Alerts that are looked at in one step. */
const LOOKED_AT_PER_STEP = 1_000

/** What is known of the last evaluation of a rule. */
export interface RuleHealth {
  readonly problem: string | undefined
  readonly tookMs: number
  readonly evaluatedMs: number
}

export interface ShownRunningRule {
  readonly rule: GroupRule
  /** By which its alerts are stored. */
  readonly key: string
  health: RuleHealth | undefined
}

export interface RunningRule extends ShownRunningRule {
  /** Its evaluations. */
  readonly run: RecurringRun
}

/** What a rule has come to, and how long that took. */
interface EvaluatedRule<Rule = RunningRule> {
  readonly one: Rule
  readonly outcome: RuleOutcome
  readonly tookMs: number
}

/** Counts since the start of the server. */
export interface GroupCounts {
  evaluations: number
  failures: number
  transitions: number
  missed: number
  /** How long all rules were worked on, without what they have waited. */
  workedMs: number
}

export class RunningGroup {
  readonly key: string
  readonly file: string
  readonly definition: RuleGroupDefinition
  readonly intervalMs: number
  /** Where in its interval it has its time. */
  readonly shiftMs: number
  readonly rules: readonly RunningRule[]
  readonly #failing: FailingRules
  /** Whose alerts are those of rules that cannot be evaluated. */
  readonly #own: ShownRunningRule
  readonly #services: GroupServices
  readonly #counts: GroupCounts
  readonly #reader: EvaluatedFile['reader']
  readonly #worked: EvaluatedFile['worked']
  reachedMs: number
  #sequence = 0
  tookMs = 0
  evaluatedMs: number | undefined
  /** Another one has taken its place: what is still evaluated counts for nothing. */
  isOver = false
  /** What follows from an evaluation and is not handed on yet. */
  #taking: Steps<void> | undefined
  /** New alerts that are made known, and of which nothing was handed on yet. */
  #announcedNew: Alert['labels'][] = []

  constructor(
    services: GroupServices,
    counts: GroupCounts,
    key: string,
    { path, reader, worked }: EvaluatedFile,
    definition: RuleGroupDefinition,
    intervalMs: number,
  ) {
    this.#services = services
    this.#counts = counts
    this.key = key
    this.file = path
    this.#reader = reader
    this.#worked = worked
    this.definition = definition
    this.intervalMs = definition.intervalMs ?? intervalMs
    this.shiftMs = offsetOf(this.key, this.intervalMs)
    this.reachedMs = services.clock.wallMs()
    const place = JSON.parse(key) as string[]
    const seen = new Map<string, number>()
    this.rules = rulesOf(definition).map((rule) => {
      const { name, kind } = rule.definition
      const before = seen.get(`${kind} ${name}`) ?? 0
      seen.set(`${kind} ${name}`, before + 1)
      return {
        rule,
        key: JSON.stringify([...place, name, before]),
        run: services.expressions.recurring(),
        health: undefined,
      }
    })
    this.#failing = new FailingRules(place[1] ?? '', definition.name)
    const { rule } = this.#failing
    this.#own = { rule, key: JSON.stringify([...place, rule.definition.name, OWN]), health: undefined }
  }

  /** All that may have alerts. */
  get alerting(): readonly ShownRunningRule[] {
    return [...this.rules, this.#own]
  }

  /** As others are shown them: that of the server's own while it says something. */
  get shown(): readonly ShownRunningRule[] {
    return [...this.#own.rule.alerts.values()].some(isActive) ? this.alerting : this.rules
  }

  /** Whether another one of these would be the same. */
  isOf({ path, reader }: EvaluatedFile, definition: RuleGroupDefinition, intervalMs: number): boolean {
    const isSame = path === this.file && reader === this.#reader && definition === this.definition
    return isSame && this.intervalMs === (definition.intervalMs ?? intervalMs)
  }

  /** Goes on where the store has it. */
  restore(reachedMs: number, sequence: number, alerts: ReadonlyMap<string, Alerts>): void {
    this.reachedMs = reachedMs
    this.#sequence = sequence
    for (const { rule, key } of this.alerting)
      if (rule.definition.kind === 'alert') finish(rule.restore(alerts.get(key) ?? NO_ALERTS))
  }

  /** Goes on where an earlier definition of the group was; the rules that are there no more end. */
  replace(before: RunningGroup): void {
    before.#leave()
    this.reachedMs = before.reachedMs
    this.#sequence = before.#sequence
    const { tookMs, evaluatedMs } = before
    Object.assign(this, { tookMs, evaluatedMs })
    const left = new Map(before.rules.map((one) => [`${one.rule.definition.kind} ${one.key}`, one]))
    for (const one of this.rules) {
      const place = `${one.rule.definition.kind} ${one.key}`
      const known = left.get(place)
      if (known === undefined) continue
      left.delete(place)
      one.health = known.health
      one.rule.adopt(adopted(known.rule))
    }
    for (const one of left.values()) this.#end(one)
    this.#own.rule.adopt(adopted(before.#own.rule))
    this.#store()
  }

  /** Its rules are there no more: their alerts end, and nothing of it is stored. */
  end(): void {
    this.#leave()
    for (const one of this.alerting) this.#end(one)
    this.#services.journal.change({ remove: 'alert group', name: this.key })
  }

  get alertCount(): number {
    return this.rules.reduce((count, { rule }) => count + rule.alerts.size, this.#own.rule.alerts.size)
  }

  /** The clock was set back: since when something holds moves with it, so that no `for` begins anew. */
  moveBack(byMs: number): void {
    this.reachedMs -= byMs
    const { journal } = this.#services
    for (const { rule, key } of this.alerting) {
      const alerts = new Map([...rule.alerts].map(([at, alert]) => [at, movedBack(alert, byMs)]))
      rule.adopt({ ...adopted(rule), alerts })
      for (const alert of alerts.values()) journal.change({ put: 'alert', row: rowOf(key, alert) })
    }
    this.#store()
  }

  /** Times that are too long ago are left out. */
  skip(count: number, toMs: number): void {
    this.#counts.missed += count
    this.reachedMs = toMs
  }

  /** Evaluates its rules at a time. Resolves to false if that has to be done again later. Never rejects. */
  async evaluate(timeMs: number): Promise<boolean> {
    const { clock, expressions } = this.#services
    const begunMs = clock.monotonicMs()
    const recorded = new RecordedSamples()
    const evaluated: EvaluatedRule[] = []
    let alerts = 0
    for (const [index, one] of this.rules.entries()) {
      const ruleBegunMs = clock.monotonicMs()
      const reader = this.#reader()
      if (reader !== undefined && index % ASKED_AHEAD === 0)
        for (const next of this.rules.slice(index, index + ASKED_AHEAD)) next.run.ask(reader, timeMs)
      const outcome =
        reader === undefined
          ? one.rule.failed('nobody reads for it any more')
          : await this.#outcomeOf(one, reader, timeMs, recorded, alerts)
      if (reader !== undefined) this.#count(one.run)
      // What cannot be asked now is asked again.
      if (this.isOver || (outcome.failure !== undefined && expressions.problem !== undefined)) return false
      evaluated.push({ one, outcome, tookMs: clock.monotonicMs() - ruleBegunMs })
      alerts += outcome.alerts.size
    }
    await this.#announced(timeMs, evaluated)
    if (this.isOver) return true
    this.tookMs = clock.monotonicMs() - begunMs
    this.evaluatedMs = timeMs
    const problems = new Map<string, string>()
    await this.#handOver(this.#take(timeMs, evaluated, problems))
    if (!this.isOver) await this.#fail(timeMs, problems)
    return true
  }

  /**
   * Hands on what follows from rules that have failed at a time, by their names. That is known when all results were taken or refused, so
   * that nothing of it has to be remembered: whoever evaluates the next time, it goes on.
   */
  async #fail(timeMs: number, problems: ReadonlyMap<string, string>): Promise<void> {
    const outcome = finish(this.#failing.outcome(problems, timeMs))
    if (outcome === undefined) return
    const one = this.#own
    await this.#announced(timeMs, [{ one, outcome, tookMs: 0 }])
    if (!this.isOver) await this.#handOver(this.#takeFailing(timeMs, outcome))
  }

  async #handOver(steps: Steps<void>): Promise<void> {
    this.#announcedNew = []
    this.#taking = steps
    await this.#services.work(steps)
  }

  /** Whoever wants to hear of alerts is asked before there are transitions: so each of these is in one batch with the state, for everybody. */
  async #announced(timeMs: number, evaluated: readonly EvaluatedRule<ShownRunningRule>[]): Promise<void> {
    const { work, asked } = this.#services
    await work(this.#announcing(timeMs, evaluated))
    await asked()
  }

  *#announcing(timeMs: number, evaluated: readonly EvaluatedRule<ShownRunningRule>[]): Steps<void> {
    let [looked, announced] = [0, 0]
    for (const { one, outcome } of evaluated) {
      const { rule } = one
      if (outcome.alerts === rule.alerts) continue
      for (const change of changesOf(rule.alerts, outcome.alerts, timeMs)) {
        const isNew = change?.isTransition === true
        if (isNew) this.#announce(change.alert.labels, rule)
        if (isNew ? ++announced % PER_STEP === 0 : ++looked % LOOKED_AT_PER_STEP === 0) yield
        if (this.isOver) return
      }
    }
  }

  #announce(labels: Alert['labels'], { alerts }: GroupRule): void {
    this.#services.announce(labels)
    if (!alerts.has(labels.key)) this.#announcedNew.push(labels)
  }

  #count({ workedMs }: RecurringRun): void {
    this.#counts.workedMs += workedMs
    this.#worked?.(workedMs)
  }

  async #outcomeOf(
    { rule, run }: RunningRule,
    reader: Parameters<RecurringRun['run']>[0],
    timeMs: number,
    recorded: RecordedSamples,
    before: number,
  ): Promise<RuleOutcome> {
    const { expressions } = this.#services
    const options = { ...QUERY_OPTIONS, limits: expressions.limits }
    const bounded = (outcome: RuleOutcome) => this.#bounded(rule, outcome, before)
    const sampleMs = this.#sampleMs(timeMs)
    try {
      return await run.run(reader, timeMs, function* (source): RuleSteps<RuleOutcome> {
        const layered = new LayeredSource(source, recorded)
        const evaluation = new RuleEvaluation(layered, timeMs, EXTERNAL, timeMs - sampleMs, options)
        const outcome = yield* bounded(yield* rule.evaluate(evaluation))
        yield* recorded.add(outcome.samples, sampleMs)
        return outcome
      })
    } catch (error) {
      return rule.failed((error as Error).message)
    }
  }

  *#bounded(rule: GroupRule, outcome: RuleOutcome, before: number): RuleSteps<RuleOutcome> {
    if (outcome.failure !== undefined) return outcome
    if (outcome.alerts.size > rule.alerts.size) {
      const { others, most } = this.#services.room(this)
      const count = others + before + outcome.alerts.size
      if (count > most) return rule.failed(`the tenant would have ${count} alerts, and may have ${most}`)
    }
    for (const [key, { labels }] of outcome.alerts) {
      yield undefined
      if (rule.alerts.has(key)) continue
      const problem = alertLabelsProblem(labels)
      if (problem !== undefined) return rule.failed(`an alert cannot be: ${problem}`)
    }
    return outcome
  }

  /**
   * Everything that follows from an evaluation; it adds what is wrong with rules, by their names. Each step stores what it hands on, with
   * the number of the last transition, and the last one, unless something follows from failures, that the time was reached: a process
   * that ends between them evaluates the time again, and what was handed on follows no more.
   */
  *#take(timeMs: number, evaluated: readonly EvaluatedRule[], problems: Map<string, string>): Steps<void> {
    this.#counts.evaluations += evaluated.length
    for (const { one, outcome, tookMs } of evaluated) {
      const refused = yield* this.#handOn(one, outcome, timeMs)
      if (this.isOver) return
      const problem = outcome.failure ?? refused
      this.#judge(one, problem, timeMs, tookMs)
      if (problem !== undefined) problems.set(one.rule.definition.name, problem)
    }
    if (this.#failing.isConcernedBy(problems)) this.#store()
    else this.#reach(timeMs)
    this.#taking = undefined
  }

  /** What follows from failures, and that the time was reached. */
  *#takeFailing(timeMs: number, outcome: RuleOutcome): Steps<void> {
    const problem = yield* this.#handOn(this.#own, outcome, timeMs)
    if (this.isOver) return
    this.#own.health = { problem, tookMs: 0, evaluatedMs: timeMs }
    this.#reach(timeMs)
    this.#taking = undefined
  }

  #reach(timeMs: number): void {
    this.reachedMs = timeMs
    this.#store()
  }

  /** Gives why a sample was refused; undefined if none was. Ends before its end if the group is over. */
  *#handOn(one: ShownRunningRule, outcome: RuleOutcome, timeMs: number): Steps<string | undefined> {
    const before = one.rule.alerts
    one.rule.adopt(outcome)
    let handed = 0
    let refused: string | undefined
    for (const change of changesOf(before, outcome.alerts, timeMs)) {
      if (change !== undefined) this.#change(one, change, timeMs)
      if (++handed % PER_STEP > 0) continue
      this.#store()
      yield
      if (this.isOver) return refused
    }
    for (const sample of outcome.samples) {
      const problem = this.#services.publish(sample, this.#sampleMs(timeMs))
      refused ??= problem
      if (++handed % PER_STEP > 0) continue
      this.#store()
      yield
      if (this.isOver) return refused
    }
    return refused
  }

  /** Hands on at once what is left of an evaluation. Nothing will become of alerts that were only made known. */
  #leave(): void {
    if (this.#taking !== undefined) finish(this.#taking)
    this.isOver = true
    for (const labels of this.#announcedNew) this.#services.forget(labels)
    this.#announcedNew = []
  }

  /** Samples have the time that the expressions look at, as those of Prometheus have. */
  #sampleMs(timeMs: number): number {
    return timeMs - this.definition.offsetMs
  }

  #end(one: ShownRunningRule): void {
    const { announce, asked } = this.#services
    for (const alert of one.rule.alerts.values()) if (isActive(alert)) announce(alert.labels)
    const waiting = asked()
    if (waiting === undefined) this.#endAnnounced(one)
    else
      void waiting.then(() => {
        this.#endAnnounced(one)
        if (!this.isOver) this.#store()
      })
  }

  #endAnnounced(one: ShownRunningRule): void {
    const timeMs = this.#services.clock.wallMs()
    const { alerts, series } = one.rule
    const gone = [...series].map((labels): RuleSample => ({ labels, value: 'stale' }))
    one.rule.adopt({ alerts: NO_ALERTS, series: new Map() })
    for (const change of changesOf(alerts, NO_ALERTS, timeMs))
      if (change !== undefined) this.#change(one, change, timeMs)
    for (const sample of gone) this.#services.publish(sample, this.#sampleMs(timeMs))
  }

  #change({ rule, key }: ShownRunningRule, { alert, isTransition, isGone }: AlertChange, timeMs: number): void {
    const { journal, emit, forget } = this.#services
    if (isGone) journal.change({ remove: 'alert', rule: key, labels: storedLabels(alert.labels) })
    else journal.change({ put: 'alert', row: rowOf(key, alert) })
    if (isTransition) {
      this.#counts.transitions++
      const { name: group } = this.definition
      emit({ alert, group, rule: rule.definition.name, sequence: ++this.#sequence, timeMs })
    }
    if (isGone) forget(alert.labels)
  }

  #store(): void {
    const row = { name: this.key, reached: this.reachedMs, sequence: this.#sequence }
    this.#services.journal.change({ put: 'alert group', row })
  }

  #judge(one: RunningRule, problem: string | undefined, timeMs: number, tookMs: number): void {
    if (problem !== undefined) this.#counts.failures++
    const before = one.health?.problem
    one.health = { problem, tookMs, evaluatedMs: timeMs }
    if (problem === before) return
    const where = { file: this.file, group: this.definition.name, rule: one.rule.definition.name }
    if (problem === undefined) this.#services.log.info(where, 'a rule can be evaluated again')
    else this.#services.log.warn({ ...where, detail: problem }, 'a rule cannot be evaluated')
  }
}

/** What a rule that takes the place of another one goes on with. */
function adopted({ alerts, series }: GroupRule): Pick<RuleOutcome, 'alerts' | 'series'> {
  return { alerts, series: new Map([...series].map((labels) => [labels.key, labels])) }
}

function finish<T>(steps: Generator<unknown, T, void>): T {
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
  }
}
