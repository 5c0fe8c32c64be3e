/** A notifier in force: its channel, what it knows of alerts, and as whom it reads. */
import type { LabelMatcher } from '../../../promql/label-matcher.ts'
import type { OwnChannel } from '../../kit/delivery.ts'
import type { Kit } from '../../kit/kit.ts'
import { fromForeign, type Owner, type SensorStatus } from '../../kit/metrics.ts'
import { OwnConnection } from '../../kit/own-connection.ts'
import type { Reader } from '../../kit/peer.ts'
import type { Steps } from '../../kit/running.ts'
import { alertOfRow, type NotifiedAlert, type QueryOf } from './alert.ts'
import { alertOfPending, endedUnseen, isApproval, PENDING } from './approval-alerts.ts'
import type { NotifierTable } from './bodies.ts'
import { authorId, type ButtonTokens } from './button-tokens.ts'
import { compareWithFiring } from './comparison.ts'
import { type NotifierCounts, noneTold } from './counts.ts'
import { notifyDestination } from './destination.ts'
import { isFailure } from './failures.ts'
import { NotifyGroups } from './groups.ts'
import type { InForce } from './in-force.ts'
import { type Inhibitions, inhibitionsOf } from './inhibitions.ts'
import type { NotificationLog } from './log.ts'
import { alertMatchers, matchesAll } from './matchers.ts'
import { mayAcknowledge } from './may-acknowledge.ts'
import { isMutedAt } from './mute-times.ts'
import { notifierPlace, notifierUser } from './names.ts'
import { Notifier } from './notifier.ts'
import type { RecoveredGroups } from './recovered-groups.ts'

const METRIC = 'alert'
/** One that cannot begin is begun again after so long. */
const AGAIN_MS = 10_000
const BEGUN = { problem: '', againMs: Number.POSITIVE_INFINITY }

/** Whether nobody of a tenant is to be told of an alert, now. */
export type IsMuted = (tenant: string, alert: NotifiedAlert) => Steps<boolean>

/** What all notifiers have in common. */
export interface NotifierServices {
  readonly kit: Kit
  readonly log: NotificationLog
  readonly isMuted: IsMuted
  readonly tokens: ButtonTokens
  readonly recovered: RecoveredGroups
}

export class RunningNotifier implements InForce {
  readonly owner: Owner
  readonly table: NotifierTable
  readonly counts: NotifierCounts = noneTold()
  /** Those of the one before it, until it has begun. */
  groups: NotifyGroups | undefined
  failingSinceMs: number | undefined
  readonly #kit: Kit
  readonly #log: NotificationLog
  readonly #isMuted: IsMuted
  readonly #queryOf: QueryOf
  readonly #tokens: ButtonTokens
  readonly #recovered: RecoveredGroups
  /** Whose place it takes, until it has begun. */
  #before: InForce | undefined
  #match: readonly LabelMatcher[] = []
  #inhibitions: Inhibitions | undefined
  #channel: OwnChannel | undefined
  #connection: OwnConnection<Notifier> | undefined
  /** The others of its tenant that fail, as far as it was told, by fingerprint. */
  readonly #failures = new Map<string, NotifiedAlert>()
  /** Why its receiver cannot be told. */
  #problem = ''
  /** Why it cannot begin, and when it tries again. */
  #beginning = BEGUN
  #isRemoved = false
  #isEscalating = false
  /** What it was told is to be compared with what fires. */
  #isToCompare = false
  /** Are called when losses are made up for by a comparison. */
  #losses: (() => void)[] = []
  readonly #over = new AbortController()

  /** `before`: another one of its name, which it goes on from. */
  constructor(table: NotifierTable, before: InForce | undefined, services: NotifierServices) {
    const { kit, log, isMuted, tokens, recovered } = services
    this.table = table
    this.#before = before
    this.groups = before?.groups
    this.#tokens = tokens
    this.#recovered = recovered
    this.#kit = kit
    this.#log = log
    this.#isMuted = isMuted
    this.owner = { tenant: table.tenant }
    this.#queryOf = (group, rule) => kit.expressions.watch.queryOf(table.tenant, group, rule)
  }

  get #place(): string {
    return notifierPlace(this.table)
  }

  get #notifier(): Notifier | undefined {
    return this.#connection?.made
  }

  get isStopped(): boolean {
    return this.#isRemoved
  }

  /** Finds or makes its channel, and begins. */
  async start(): Promise<void> {
    const { name, tenant } = this.table
    this.#beginning = { ...this.#beginning, againMs: Number.POSITIVE_INFINITY }
    try {
      await this.#begin()
    } catch (error) {
      if (this.#over.signal.aborted) return
      const problem = `it cannot begin: ${(error as Error).message}`
      // The same is not logged again and again.
      if (problem !== this.#beginning.problem)
        this.#kit.log.error({ err: error, notifier: name, tenant }, 'a notifier cannot begin')
      this.#changed(this.#problem, { problem, againMs: this.#kit.clock.monotonicMs() + AGAIN_MS })
    }
  }

  get isToStart(): boolean {
    return !this.#over.signal.aborted && this.#kit.clock.monotonicMs() >= this.#beginning.againMs
  }

  async #begin(): Promise<void> {
    const { approvals } = this.table
    const channel = this.#channel ?? (await this.#goOn())
    if (channel === undefined) return
    const refused: string[] = []
    await channel.bind({
      metrics: (approvals ? [METRIC, PENDING] : [METRIC]).map((name) => ({ name, args: [] })),
      signal: this.#over.signal,
      refused: (metric, detail) => refused.push(`${metric} cannot be bound: ${detail}`),
    })
    if (this.#over.signal.aborted) return
    // What has fired before it was bound is told as well, what the one before it was not to tell, and what that had still to look for.
    this.#compare()
    if (refused.length > 0) throw new Error(refused.join('; '))
    this.#changed(this.#problem, BEGUN)
  }

  /** Goes on from the one before it, on its channel; undefined if another one takes its place meanwhile. */
  async #goOn(): Promise<OwnChannel | undefined> {
    const { clock, peer, poll } = this.#kit
    const { tenant, role, muteTimes } = this.table
    const inhibitions = await poll.work({ tenant }, this.#compile())
    if (this.#over.signal.aborted) return undefined
    const channel = await peer.delivery.channelOf({ tenant, role, name: notifierUser(this.table) })
    if (this.#over.signal.aborted) return undefined
    const before = this.#before
    const { journal } = peer.stored
    const place = this.#place
    const stored = before?.groups?.handOver() ?? this.#recovered.take(place)
    this.#inhibitions = inhibitions
    const isSilenced = this.#isMuted
    const mayTell = (alert: NotifiedAlert): boolean => this.#mayTell(alert)
    const { watch } = this.#kit.expressions
    this.groups = new NotifyGroups({
      notifier: place,
      rules: this.table,
      journal,
      wallMs: () => clock.wallMs(),
      ...stored,
      saidOf: ({ group, rule, labels }) => watch.saidOf(tenant, group, rule, labels),
      mayTell,
      isMuted: function* (alert) {
        if (isApproval(alert)) return false
        return inhibitions.isInhibited(alert) || (yield* isSilenced(tenant, alert))
      },
      isHeld: () => isMutedAt(muteTimes, clock.wallMs()),
    })
    if (before !== undefined && authorId(before.table) !== authorId(this.table)) this.groups.forgetApprovals()
    for (const alert of this.groups.alerts())
      if (isFailure(alert) && alert.state === 'firing') this.#failures.set(alert.fingerprint, alert)
    this.#connection = new OwnConnection({
      channel,
      clock,
      make: () => this.#connected(channel),
      deleted: () => this.#removed(),
    })
    this.#before = undefined
    this.#channel = channel
    this.#connection.begin()
    return channel
  }

  /** In steps: a regular expression takes a while. */
  *#compile(): Steps<Inhibitions> {
    const { match, inhibit } = this.table
    this.#match = yield* alertMatchers(match)
    return yield* inhibitionsOf(inhibit, () => this.#firing())
  }

  lookAgain(): void {
    this.#notifier?.lookAgain()
  }

  /** What it was told is compared with what fires, as soon as no transitions are under way. */
  #compare(): void {
    this.#isToCompare = true
    this.#compareIfIdle()
  }

  #compareIfIdle(): void {
    const { groups } = this
    if (groups === undefined || !this.#isToCompare || this.#mustWait(groups)) return
    this.#isToCompare = false
    void this.#work(this.#comparison(groups))
  }

  /** What it does of its own accord. Never rejects: what a step throws is logged. */
  async #work(steps: Steps<void>): Promise<void> {
    const { name, tenant } = this.table
    try {
      await this.#kit.poll.work({ tenant }, steps)
    } catch (error) {
      this.#kit.log.error({ err: error, notifier: name, tenant }, 'the work of a notifier has failed')
    }
  }

  *#comparison(groups: NotifyGroups): Steps<void> {
    const losses = this.#losses.splice(0)
    let isDone = false
    try {
      // What has begun or ended before it was bound is in no transition.
      if (this.#inhibitions !== undefined) yield* this.#inhibitions.lookAgain()
      isDone = yield* compareWithFiring({
        groups,
        firing: this.#wanted(),
        mustWait: () => this.#mustWait(groups),
        wallMs: () => this.#kit.clock.wallMs(),
      })
    } finally {
      if (isDone) for (const madeUp of losses) madeUp()
      else {
        this.#losses.unshift(...losses)
        this.#isToCompare = true
      }
      this.lookAgain()
    }
  }

  /** Whether transitions say in order what a comparison would say too early. Where there is no room for them, it makes some. */
  #mustWait(groups: NotifyGroups): boolean {
    return this.#over.signal.aborted || (this.#isUnderWay && !groups.isFull)
  }

  /** Whether transitions are in its channel. */
  get #isUnderWay(): boolean {
    const { queued = 0, inFlight = 0 } = this.#channel?.delivered.queue.counts ?? {}
    return queued + inFlight > 0
  }

  /** The alerts that fire now, as far as it may read them; undefined for each other one. */
  *#firing(): Generator<NotifiedAlert | undefined> {
    const { tenant } = this.table
    const mayRead = this.#readable()
    for (const row of this.#kit.peer.stored.alerts()) {
      const alert = isOfTenant(row.rule, tenant) ? alertOfRow(row, this.#queryOf) : undefined
      yield alert !== undefined && mayRead(alert) ? alert : undefined
    }
  }

  /** As whom it reads at this moment; undefined if whoever has put it is no user any more. */
  get #reader(): Reader | undefined {
    const { tenant, role, origin } = this.table
    return origin === undefined ? { userId: 0, tenant, name: notifierUser(this.table), role } : origin.reader()
  }

  /** Says which alerts may be read, by the rights of this moment. */
  #readable(): (alert: NotifiedAlert) => boolean {
    const { tenant } = this.table
    const reader = this.#reader
    if (reader === undefined) return () => false
    const rights = this.#kit.peer.view.readRights(reader)
    return (alert) => {
      if (isApproval(alert)) return alert.state === 'firing' ? this.#isWaiting(alert) : rights.covers(PENDING)
      const { labels } = alert
      const texts = new Map(labels.map(([name, text]) => [fromForeign(name), text]))
      return rights.mayReadRemembered({ tenant }, METRIC, (wanted) => texts.get(wanted))
    }
  }

  /** Its user has the role of whoever has put it: the scope of a token, and what has changed since, come on top of that. */
  #mayTell(alert: NotifiedAlert): boolean {
    return this.table.origin === undefined || isFailure(alert) || this.#readable()(alert)
  }

  *#wanted(): Generator<NotifiedAlert | undefined> {
    for (const alert of this.#firing()) yield alert !== undefined && this.#isWanted(alert) ? alert : undefined
    yield* this.#waiting()
    yield* this.#failures.values()
  }

  /** What was escalated to it is wanted as well until it ends. What waits for approval is wanted whatever `match` says. */
  #isWanted(alert: NotifiedAlert): boolean {
    const isMatching = isApproval(alert) ? this.table.approvals : matchesAll(alert, this.#match)
    return isMatching || this.groups?.stateOf(alert) !== undefined
  }

  sweep(): void {
    this.#compareIfIdle()
    this.#endApprovals()
  }

  #endApprovals(): void {
    if (this.#channel === undefined) return
    const known = this.groups?.approvals() ?? []
    // What has become of them may be under way.
    if (known.length === 0 || this.#isUnderWay) return
    const waiting = new Set([...this.#waiting()].map(({ fingerprint }) => fingerprint))
    for (const alert of known) {
      if (waiting.has(alert.fingerprint)) continue
      this.groups?.take(endedUnseen(alert, this.#kit.clock.wallMs()))
      this.lookAgain()
    }
  }

  /** What waits for approval now, as far as it tells of that. */
  *#waiting(): Generator<NotifiedAlert> {
    const { view } = this.#kit.peer
    const reader = this.#reader
    if (!this.table.approvals || reader === undefined || !view.readRights(reader).covers(PENDING)) return
    // Whoever has put it is told of what others ask for, as those of the configuration are.
    for (const value of view.waiting({ userId: 0, tenant: reader.tenant, role: reader.role })) {
      const alert = alertOfPending(value, 0)
      if (alert !== undefined) yield alert
    }
  }

  #isWaiting({ fingerprint }: NotifiedAlert): boolean {
    for (const waiting of this.#waiting()) if (waiting.fingerprint === fingerprint) return true
    return false
  }

  failures(): Iterable<NotifiedAlert> {
    return this.#failures.values()
  }

  observe(alert: NotifiedAlert): void {
    const { groups } = this
    // It is said again when this one has begun, or to that in its place.
    if (this.#channel === undefined || groups === undefined || this.#over.signal.aborted) return
    // That of a rule may have the same labels.
    const isKnown = this.#failures.has(alert.fingerprint) && groups.stateOf(alert) === 'firing'
    if (isKnown === (alert.state === 'firing') || !(isKnown || matchesAll(alert, this.#match))) return
    if (!groups.take(alert)) return
    if (alert.state === 'firing') this.#failures.set(alert.fingerprint, alert)
    else this.#failures.delete(alert.fingerprint)
    this.lookAgain()
  }

  escalate(next: InForce): void {
    const { clock } = this.#kit
    const { escalateAfterMs } = this.table
    const dueMs = this.#isEscalating ? undefined : this.groups?.escalationMs(escalateAfterMs)
    if (dueMs === undefined || dueMs > clock.wallMs()) return
    this.#isEscalating = true
    void this.#work(this.#escalation(next))
  }

  /** What fires is what the rules say at this moment: what has ended, of which this notifier may not know yet, is not passed on. */
  *#escalation(next: InForce): Steps<void> {
    const { escalateAfterMs } = this.table
    const pass = (alert: NotifiedAlert): boolean => {
      if (next.groups?.take(alert) !== true) return false
      this.counts.escalated++
      return true
    }
    try {
      for (const alert of this.#firing()) {
        if (this.#over.signal.aborted) return
        if (alert !== undefined && this.groups !== undefined) yield* this.groups.escalate(alert, escalateAfterMs, pass)
        yield
      }
    } finally {
      this.#isEscalating = false
      next.lookAgain()
    }
  }

  stop(): void {
    this.#over.abort()
    this.#connection?.end()
  }

  #connected(channel: OwnChannel): Notifier {
    const { clock, log, poll, peer } = this.#kit
    const { name, tenant } = this.table
    return new Notifier({
      channel: channel.delivered,
      groups: this.groups as NotifyGroups,
      destination: notifyDestination(this.table, clock, (notification) => {
        const firing = notification.alerts.filter(({ state }) => state === 'firing')
        const mayPress = mayAcknowledge(this.table, firing, peer.view)
        return mayPress ? this.#tokens.issue(this.table, notification) : ''
      }),
      clock,
      work: poll.work,
      journal: peer.stored.journal,
      random: Math.random,
      isWanted: (alert) => {
        // That it has ended is taken where it is known, though nobody is told.
        if (!this.#mayTell(alert)) return alert.state === 'resolved' && this.groups?.stateOf(alert) !== undefined
        if (!isApproval(alert) && this.#inhibitions?.observe(alert) === true) this.#notifier?.lookAgain()
        return this.#isWanted(alert)
      },
      queryOf: this.#queryOf,
      counts: this.counts,
      ended: (notification, outcome) => {
        this.#log.add(this.#place, notification, outcome, clock.wallMs())
        if (outcome.outcome === 'refused')
          log.warn({ notifier: name, tenant, detail: outcome.detail }, 'a receiver has refused a notification')
      },
      state: (problem) => this.#changed(problem),
      lost: (count, madeUp) => this.#lost(count, madeUp),
      left: (notifier) => channel.detach(notifier),
    })
  }

  *#lost(count: number, madeUp: () => void): Steps<void> {
    const { name, tenant } = this.table
    this.#losses.push(madeUp)
    this.#kit.log.warn({ notifier: name, tenant, count }, 'the channel of a notifier has lost transitions')
    if (this.#inhibitions !== undefined) yield* this.#inhibitions.lookAgain()
    this.#compare()
  }

  /** Nothing comes by its channel any more: another one has to be made. */
  #removed(): void {
    this.stop()
    this.#isRemoved = true
    this.#changed('its channel was removed')
  }

  #changed(problem: string, beginning = this.#beginning): void {
    const { log } = this.#kit
    const { name, tenant, url } = this.table
    const before = this.problem
    this.#problem = problem
    this.#beginning = beginning
    const now = this.problem
    if (now !== '' && before === '')
      log.warn({ notifier: name, tenant, url: url.shown, detail: now }, 'a notifier cannot tell anybody')
    if (now === '' && before !== '') log.info({ notifier: name, tenant, url: url.shown }, 'a notifier tells again')
    if (now === '') this.failingSinceMs = undefined
    else this.failingSinceMs ??= this.#kit.clock.wallMs()
  }

  get problem(): string {
    return this.#beginning.problem || this.#problem
  }

  status(): SensorStatus {
    const { name, url } = this.table
    const detail = this.problem === '' ? url.shown : `${url.shown}: ${this.problem}`
    return { name: `notify/${name}`, state: this.#state, detail, counters: { ...this.counts } }
  }

  get #state(): string {
    if (this.isStopped) return 'stopped'
    if (this.problem !== '') return 'failed'
    return this.#notifier === undefined ? 'off' : 'telling'
  }
}

function isOfTenant(rule: string, tenant: string): boolean {
  return (JSON.parse(rule) as string[])[0] === tenant
}
