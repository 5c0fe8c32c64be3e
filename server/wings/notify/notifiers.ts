/**
 * The notifiers of the configuration. Each has a user of its own, to whom its channel belongs and whose role says which alerts may be
 * read; nobody can log in as that user, because it has neither password nor token.
 */
import { isDeepStrictEqual } from 'node:util'
import type { LabelMatcher } from '../../../promql/label-matcher.ts'
import { ConfigError } from '../../kit/config.ts'
import type { OwnChannel } from '../../kit/delivery.ts'
import type { Kit } from '../../kit/kit.ts'
import { fromForeign, type Owner, type SensorStatus } from '../../kit/metrics.ts'
import type { Steps, Timer } from '../../kit/running.ts'
import { alertOfRow, type NotifiedAlert, type QueryOf } from './alert.ts'
import { alertOfPending, endedUnseen, isApproval, PENDING } from './approval-alerts.ts'
import type { NotifierTable } from './bodies.ts'
import type { ButtonTokens } from './button-tokens.ts'
import type { NotifyTable } from './config.ts'
import { type NotifierCounts, noneTold } from './counts.ts'
import { notifyDestination } from './destination.ts'
import { endFailuresOfOthers, tellOfFailures } from './failures.ts'
import { NotifyGroups } from './groups.ts'
import { Heartbeat } from './heartbeat.ts'
import type { InForce } from './in-force.ts'
import { Inhibitions } from './inhibitions.ts'
import type { NotificationLog } from './log.ts'
import { alertMatcher, matchesAll } from './matchers.ts'
import { isMutedAt } from './mute-times.ts'
import { Notifier } from './notifier.ts'

const PREFIX = 'notify:'
const METRIC = 'alert'
/** A connection that ended, because somebody took its channel, is made again after this time. */
const AGAIN_MS = 10_000

/** Whether nobody of a tenant is to be told of an alert, now. */
export type IsMuted = (tenant: string, alert: NotifiedAlert) => Steps<boolean>

export class Notifiers {
  readonly #kit: Kit
  readonly #log: NotificationLog
  readonly #isMuted: IsMuted
  readonly #tokens: ButtonTokens
  /** One of each; it changes with them. */
  readonly running: InForce[] = []
  #isFirst = true

  constructor(kit: Kit, log: NotificationLog, isMuted: IsMuted, tokens: ButtonTokens) {
    this.#kit = kit
    this.#log = log
    this.#isMuted = isMuted
    this.#tokens = tokens
  }

  /** Tells what these tables say, and nobody else: those that are as before go on. Settles when new ones are bound; never rejects. */
  async follow(tables: readonly NotifierTable[]): Promise<void> {
    const before = [...this.running]
    const next = tables.map((table) => {
      const same = before.find((notifier) => isDeepStrictEqual(notifier.table, table))
      if (same !== undefined) return same
      if (table.url.protocol === 'heartbeat') return new Heartbeat(table, this.#kit)
      return new RunningNotifier(table, this.#kit, this.#log, this.#isMuted, this.#tokens)
    })
    this.running.splice(0, Number.POSITIVE_INFINITY, ...next)
    if (this.#isFirst) this.#forgetOthers(tables)
    const names = new Set(tables.map(placeOf))
    for (const notifier of before)
      if (!next.includes(notifier)) {
        notifier.stop()
        if (!names.has(placeOf(notifier.table))) notifier.groups?.end()
      }
    if (!isDeepStrictEqual(before, next) || this.#isFirst) this.#haltOthers(tables)
    this.#isFirst = false
    await Promise.all(
      next.map((notifier) => {
        const known = before.find(({ table }) => placeOf(table) === placeOf(notifier.table))
        return before.includes(notifier) ? undefined : notifier.start(known)
      }),
    )
    endFailuresOfOthers(this.running, this.#kit.clock.wallMs())
  }

  #haltOthers(tables: readonly NotifyTable[]): void {
    const { log, peer } = this.#kit
    const known = new Set(tables.map(({ tenant, name }) => `${tenant}/${PREFIX}${name}`))
    const isKnown = (user: { readonly tenant: string; readonly name: string }): boolean =>
      known.has(`${user.tenant}/${user.name}`)
    for (const { tenant, name } of peer.delivery.haltOthers(PREFIX, isKnown)) {
      const remedy = `cinnabar user remove '${tenant}/${name}'`
      const message =
        'the channel of a notifier that is not in the configuration any more collects nothing, and keeps what waits until it expires; ' +
        `${remedy} removes it at once`
      log.warn({ tenant, user: name }, message)
    }
  }

  /** What was told by those that are not in the configuration any more is not kept. */
  #forgetOthers(tables: readonly NotifyTable[]): void {
    const { journal, notifyGroups, notifyAlerts } = this.#kit.peer.stored
    const known = new Set(tables.map(placeOf))
    for (const { notifier, labels } of notifyGroups)
      if (!known.has(notifier)) journal.change({ remove: 'notify group', notifier, labels })
    for (const { notifier, fingerprint } of notifyAlerts)
      if (!known.has(notifier)) journal.change({ remove: 'notify alert', notifier, fingerprint })
  }

  find(tenant: string, name: string): InForce | undefined {
    return this.running.find(({ table }) => table.tenant === tenant && table.name === name)
  }

  /** What must be told may have changed. */
  lookAgain(): void {
    for (const notifier of this.running) notifier.lookAgain()
  }

  /** To be called every second. */
  sweep(): void {
    tellOfFailures(this.running, this.#kit.clock.wallMs())
    for (const notifier of this.running) {
      notifier.endApprovals()
      const { tenant, escalateTo } = notifier.table
      const next = escalateTo === undefined ? undefined : this.find(tenant, escalateTo)
      if (next !== undefined) notifier.escalate(next)
    }
  }

  stop(): void {
    for (const notifier of this.running) notifier.stop()
  }
}

class RunningNotifier implements InForce {
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
  #channel: OwnChannel | undefined
  #notifier: Notifier | undefined
  #inhibitions: Inhibitions | undefined
  #problem = ''
  #isEscalating = false
  #timer: Timer | undefined
  readonly #over = new AbortController()

  constructor(table: NotifierTable, kit: Kit, log: NotificationLog, isMuted: IsMuted, tokens: ButtonTokens) {
    this.table = table
    this.#tokens = tokens
    this.#kit = kit
    this.#log = log
    this.#isMuted = isMuted
    this.#match = table.match.map(alertMatcher).filter((matcher) => matcher !== undefined)
    this.owner = { tenant: table.tenant }
    this.#queryOf = (group, rule) => kit.expressions.watch.queryOf(table.tenant, group, rule)
  }

  get #place(): string {
    return placeOf(this.table)
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
    const channel = await peer.delivery.channelOf({ tenant, role, name: PREFIX + name })
    // Another table of its name may have taken its place meanwhile.
    if (this.#over.signal.aborted) return
    this.#channel = channel
    const { journal } = peer.stored
    const place = this.#place
    const stored = before?.groups?.rows() ?? {
      groups: peer.stored.notifyGroups.filter(({ notifier }) => notifier === place),
      alerts: peer.stored.notifyAlerts.filter(({ notifier }) => notifier === place),
    }
    const inhibitions = new Inhibitions(inhibit, () => this.#firing())
    this.#inhibitions = inhibitions
    const isSilenced = this.#isMuted
    this.groups = new NotifyGroups({
      notifier: place,
      rules: this.table,
      journal,
      wallMs: () => clock.wallMs(),
      ...stored,
      isMuted: function* (alert) {
        if (isApproval(alert)) return false
        return inhibitions.isInhibited(alert) || (yield* isSilenced(tenant, alert))
      },
      isHeld: () => isMutedAt(muteTimes, clock.wallMs()),
    })
    channel.onChange(() => this.#connectAgain())
    const { queued, inFlight } = channel.delivered.queue.counts
    const isNew = stored.groups.length + stored.alerts.length + queued + inFlight === 0
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
    if (isNew && !this.#over.signal.aborted) this.#compare(true)
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
    const { stored, view } = this.#kit.peer
    const { tenant, name, role } = this.table
    const rights = view.readRights({ userId: 0, tenant, name: PREFIX + name, role })
    for (const row of stored.alerts()) {
      const alert = isOfTenant(row.rule, tenant) ? alertOfRow(row, this.#queryOf) : undefined
      const mayRead = ({ labels }: NotifiedAlert): boolean => {
        const texts = new Map(labels.map(([name, text]) => [fromForeign(name), text]))
        return rights.mayReadRemembered({ tenant }, METRIC, (wanted) => texts.get(wanted))
      }
      yield alert !== undefined && mayRead(alert) ? alert : undefined
    }
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
    const { approvals, tenant, role } = this.table
    if (!approvals) return
    for (const value of view.waiting({ userId: 0, tenant, role })) {
      const alert = alertOfPending(value, 0)
      if (alert !== undefined) yield alert
    }
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

function placeOf({ tenant, name }: Pick<NotifyTable, 'tenant' | 'name'>): string {
  return `${tenant}/${name}`
}

function isOfTenant(rule: string, tenant: string): boolean {
  return (JSON.parse(rule) as string[])[0] === tenant
}

/** Throws ConfigError if a matcher of a table is none. */
export function checkMatchers(tables: readonly NotifyTable[]): void {
  const problems = tables.flatMap(({ name, match, inhibit }) =>
    [...match, ...inhibit.flatMap(({ source, target }) => [...source, ...target])]
      .filter((text) => alertMatcher(text) === undefined)
      .map((text) => ({
        source: `[[notify]] ${name}`,
        message: `${match.includes(text) ? '`match`' : '`inhibit`'}: ${JSON.stringify(text)} is no matcher; write one like severity="page" or team=~"a|b"`,
      })),
  )
  if (problems.length > 0) throw new ConfigError(problems)
}
