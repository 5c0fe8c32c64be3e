/** A notifier in force: its channel, what it knows of alerts, and as whom it reads. */
import type { LabelMatcher } from '../../../promql/label-matcher.ts'
import type { OwnChannel } from '../../kit/delivery.ts'
import type { Kit } from '../../kit/kit.ts'
import { fromForeign, type Owner, type SensorStatus } from '../../kit/metrics.ts'
import type { Reader } from '../../kit/peer.ts'
import type { Steps, Timer } from '../../kit/running.ts'
import { alertOfRow, type NotifiedAlert, type QueryOf } from './alert.ts'
import { alertOfPending, endedUnseen, isApproval, PENDING } from './approval-alerts.ts'
import type { NotifierTable } from './bodies.ts'
import type { ButtonTokens } from './button-tokens.ts'
import { type NotifierCounts, noneTold } from './counts.ts'
import { notifyDestination } from './destination.ts'
import { isOfNoRule } from './failures.ts'
import { NotifyGroups } from './groups.ts'
import type { InForce } from './in-force.ts'
import { Inhibitions } from './inhibitions.ts'
import type { NotificationLog } from './log.ts'
import { alertMatcher, matchesAll } from './matchers.ts'
import { isMutedAt } from './mute-times.ts'
import { notifierPlace, notifierUser } from './names.ts'
import { Notifier } from './notifier.ts'
import type { RecoveredGroups } from './recovered-groups.ts'

const METRIC = 'alert'
/** A connection that ended, because somebody took its channel, is made again after this time. */
const AGAIN_MS = 10_000

/** Whether nobody of a tenant is to be told of an alert, now. */
export type IsMuted = (tenant: string, alert: NotifiedAlert) => Steps<boolean>

export class RunningNotifier implements InForce {
  readonly isStopped = false
  readonly owner: Owner
  readonly table: NotifierTable
  readonly counts: NotifierCounts = noneTold()
  groups: NotifyGroups | undefined
  failingSinceMs: number | undefined
  readonly #kit: Kit
  readonly #log: NotificationLog
  readonly #isMuted: IsMuted
  readonly #match: readonly LabelMatcher[]
  readonly #queryOf: QueryOf
  readonly #tokens: ButtonTokens
  readonly #recovered: RecoveredGroups
  #channel: OwnChannel | undefined
  #notifier: Notifier | undefined
  #inhibitions: Inhibitions | undefined
  #problem = ''
  #isEscalating = false
  #timer: Timer | undefined
  readonly #over = new AbortController()

  constructor(
    table: NotifierTable,
    kit: Kit,
    log: NotificationLog,
    isMuted: IsMuted,
    tokens: ButtonTokens,
    recovered: RecoveredGroups,
  ) {
    this.table = table
    this.#tokens = tokens
    this.#recovered = recovered
    this.#kit = kit
    this.#log = log
    this.#isMuted = isMuted
    this.#match = table.match.map(alertMatcher).filter((matcher) => matcher !== undefined)
    this.owner = { tenant: table.tenant }
    this.#queryOf = (group, rule) => kit.expressions.watch.queryOf(table.tenant, group, rule)
  }

  get #place(): string {
    return notifierPlace(this.table)
  }

  /** Finds or makes its channel, and begins. */
  async start(before?: InForce): Promise<void> {
    const { name, tenant } = this.table
    try {
      await this.#begin(before)
    } catch (error) {
      this.#kit.log.error({ err: error, notifier: name, tenant }, 'a notifier cannot begin')
    }
  }

  async #begin(before: InForce | undefined): Promise<void> {
    const { clock, log, peer } = this.#kit
    const { tenant, role, name, inhibit, muteTimes, approvals } = this.table
    const channel = await peer.delivery.channelOf({ tenant, role, name: notifierUser(this.table) })
    // Another table of its name may have taken its place meanwhile.
    if (this.#over.signal.aborted) return
    this.#channel = channel
    const { journal } = peer.stored
    const place = this.#place
    const stored = before?.groups?.rows() ?? this.#recovered.take(place)
    const inhibitions = new Inhibitions(inhibit, () => this.#firing())
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
    if (before !== undefined && before.table.origin?.author !== this.table.origin?.author) this.groups.forgetApprovals()
    channel.onChange(() => this.#connectAgain())
    const { queued, inFlight } = channel.delivered.queue.counts
    const isNew = stored.groups.length + stored.alerts.length + queued + inFlight === 0
    // Another channel has missed what came before it, and with another role others may be told.
    const isOther = channel.delivered.bindings.size === 0 || (before !== undefined && before.table.role !== role)
    this.#connect()
    await channel.bind({
      metrics: (approvals ? [METRIC, PENDING] : [METRIC]).map((name) => ({ name, args: [] })),
      signal: this.#over.signal,
      refused: (metric, detail) => {
        this.#problem = `${metric}: ${detail}`
        log.error({ notifier: name, tenant, metric, detail }, 'the alerts of a notifier cannot be bound')
      },
    })
    // What has fired before it was bound is told as well.
    if ((isNew || isOther) && !this.#over.signal.aborted) this.#compare(isNew)
  }

  lookAgain(): void {
    this.#notifier?.lookAgain()
  }

  #compare(isNew: boolean): void {
    const { groups } = this
    if (groups === undefined) return
    const party = { tenant: this.table.tenant }
    const look = (): void => this.#notifier?.lookAgain()
    void Promise.resolve(this.#kit.poll.work(party, groups.compare(this.#wanted(), isNew))).then(look)
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
    return this.table.origin === undefined || isOfNoRule(alert) || this.#readable()(alert)
  }

  *#wanted(): Generator<NotifiedAlert | undefined> {
    for (const alert of this.#firing()) yield alert !== undefined && this.#isWanted(alert) ? alert : undefined
    yield* this.#waiting()
  }

  /** What was escalated to it is wanted as well until it ends. What waits for approval is wanted whatever `match` says. */
  #isWanted(alert: NotifiedAlert): boolean {
    const isMatching = isApproval(alert) ? this.table.approvals : matchesAll(alert, this.#match)
    return isMatching || this.groups?.stateOf(alert) !== undefined
  }

  endApprovals(): void {
    const known = this.groups?.approvals() ?? []
    const { queued = 0, inFlight = 0 } = this.#channel?.delivered.queue.counts ?? {}
    // What has become of them may be under way.
    if (known.length === 0 || queued + inFlight > 0) return
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

  observe(alert: NotifiedAlert): void {
    const isKnown = this.groups?.stateOf(alert) === 'firing'
    if (isKnown === (alert.state === 'firing') || !(isKnown || matchesAll(alert, this.#match))) return
    this.groups?.take(alert)
    this.lookAgain()
  }

  escalate(next: InForce): void {
    const { clock, poll } = this.#kit
    const { tenant, escalateAfterMs } = this.table
    const dueMs = this.#isEscalating ? undefined : this.groups?.escalationMs(escalateAfterMs)
    if (dueMs === undefined || dueMs > clock.wallMs()) return
    this.#isEscalating = true
    void Promise.resolve(poll.work({ tenant }, this.#escalation(next))).finally(() => {
      this.#isEscalating = false
      next.lookAgain()
    })
  }

  /** What fires is what the rules say at this moment: what has ended, of which this notifier may not know yet, is not passed on. */
  *#escalation(next: InForce): Steps<void> {
    const { escalateAfterMs } = this.table
    const pass = (alert: NotifiedAlert): boolean => {
      if (next.groups?.take(alert) !== true) return false
      this.counts.escalated++
      return true
    }
    for (const alert of this.#firing()) {
      if (this.#over.signal.aborted) return
      if (alert !== undefined && this.groups !== undefined) yield* this.groups.escalate(alert, escalateAfterMs, pass)
      yield
    }
  }

  stop(): void {
    this.#over.abort()
    this.#kit.clock.clear(this.#timer)
    this.#notifier?.end()
  }

  #connect(): void {
    const channel = this.#channel as OwnChannel
    if (this.#over.signal.aborted || channel.state !== 'free' || this.groups === undefined) return
    const { clock, log, poll, peer } = this.#kit
    const { name, tenant } = this.table
    this.#notifier = new Notifier({
      channel: channel.delivered,
      groups: this.groups,
      destination: notifyDestination(this.table, clock, (notification) =>
        this.#tokens.issue(this.#place, notification),
      ),
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
      lost: (count) => {
        log.warn({ notifier: name, tenant, count }, 'the channel of a notifier has lost transitions')
        this.#inhibitions?.lookAgain()
        this.#compare(false)
      },
      left: (notifier) => channel.detach(notifier),
    })
    channel.attach(this.#notifier)
    this.#notifier.start()
  }

  #connectAgain(): void {
    const { clock } = this.#kit
    // With its user or by an admin; it is made anew at the next start.
    if (this.#channel?.state === 'deleted') this.stop()
    if (this.#over.signal.aborted || this.#channel?.state !== 'free') return
    clock.clear(this.#timer)
    this.#timer = clock.setTimeout(() => this.#connect(), AGAIN_MS)
  }

  #changed(problem: string): void {
    const { log } = this.#kit
    const { name, tenant, url } = this.table
    if (problem !== '' && this.#problem === '')
      log.warn({ notifier: name, tenant, url: url.shown, detail: problem }, 'a notifier cannot tell anybody')
    if (problem === '' && this.#problem !== '')
      log.info({ notifier: name, tenant, url: url.shown }, 'a notifier tells again')
    if (problem === '') this.failingSinceMs = undefined
    else this.failingSinceMs ??= this.#kit.clock.wallMs()
    this.#problem = problem
  }

  get problem(): string {
    return this.#problem
  }

  status(): SensorStatus {
    const { name, url } = this.table
    const detail = this.#problem === '' ? url.shown : `${url.shown}: ${this.#problem}`
    return { name: `notify/${name}`, state: this.#state, detail, counters: { ...this.counts } }
  }

  get #state(): string {
    if (this.#notifier === undefined) return 'off'
    return this.#problem === '' ? 'telling' : 'failed'
  }
}

function isOfTenant(rule: string, tenant: string): boolean {
  return (JSON.parse(rule) as string[])[0] === tenant
}
