/**
 * The alerts that a notifier knows, in groups: when each group is told, and of what. Everything is stored as it changes, in the batch of
 * the turn that changes it, so that a process which takes over goes on in the same place. Times are milliseconds since 1970.
 */
import { randomUUID } from 'node:crypto'
import type { Label } from '../../kit/delivered-values.ts'
import type { NotifyAlertRow, NotifyGroupRow, StoredPeers } from '../../kit/peer.ts'
import type { Steps } from '../../kit/running.ts'
import type { NotifiedAlert } from './alert.ts'
import { APPROVALS_GROUP, groupTimesOf, isApproval } from './approval-alerts.ts'
import type { ButtonClaim } from './button-tokens.ts'
import {
  alertRow,
  dueAtStart,
  earlier,
  type Group,
  type GroupingRules,
  groupLabels,
  groupRow,
  isChange,
  type KnownAlert,
  keyOf,
  type Member,
  memberOf,
  moveBack,
  newGroup,
  type TellingVerdict,
} from './group-members.ts'
import type { Notification } from './notification.ts'

/** Alerts of one notification; others follow in the next one. */
const MOST_TOLD = 250
/** Alerts that a notifier knows; others wait in its channel. */
const MOST_ALERTS = 20_000
/** What must not be told yet is looked at again after so long. */
const MUTED_MS = 10_000

export interface NotifyGroupsOptions {
  /** `tenant/name` of the notifier. */
  readonly notifier: string
  readonly rules: GroupingRules
  readonly journal: Pick<StoredPeers['journal'], 'change'>
  readonly wallMs: () => number
  readonly groups: readonly NotifyGroupRow[]
  readonly alerts: readonly NotifyAlertRow[]
  /** What an alert that fires says now, which changes without a transition; undefined if nobody knows. */
  readonly saidOf: (alert: NotifiedAlert) => Pick<NotifiedAlert, 'value' | 'annotations'> | undefined
  /** Whether an alert may be told at all, by the rights of this moment: what may not is told neither to fire nor to have ended. */
  readonly mayTell: (alert: NotifiedAlert) => boolean
  /** Whether nobody is to be told of an alert that fires, now. */
  readonly isMuted: (alert: NotifiedAlert) => Steps<boolean>
  /** Whether nothing is to be told now. */
  readonly isHeld: () => boolean
}

export class NotifyGroups {
  readonly #options: NotifyGroupsOptions
  readonly #groups = new Map<string, Group>()
  #count = 0
  /** Of the group that is told. */
  #sending: Group | undefined
  /** Another one goes on from it, or nothing of it is kept: what is still under way takes and stores nothing. */
  #isOver = false
  /** When the time was looked at last, by the clock as it was then. */
  #lookedMs = 0

  constructor(options: NotifyGroupsOptions) {
    this.#options = options
    for (const { labels, number, told, due, sending } of options.groups) {
      const group = this.#groupOf(JSON.parse(labels) as Label[])
      Object.assign(group, { number, toldMs: told, dueMs: due })
      if (sending === '') continue
      const notification = JSON.parse(sending) as Notification
      // Somebody else may be told by now.
      if (!notification.alerts.every((alert) => options.mayTell(alert))) continue
      group.sending = notification
      this.#sending ??= group
    }
    const nowMs = this.#now()
    for (const row of options.alerts) {
      const member = memberOf(row, nowMs)
      this.#groupOf(this.#labelsOf(member.alert)).members.set(member.alert.fingerprint, member)
      this.#count++
    }
    // Groups may have been made by other labels, and be told by other times: all are looked at now.
    for (const group of [...this.#groups.values()]) {
      // Nothing was told later than now.
      moveBack(group, Math.max(0, group.toldMs - nowMs))
      if (group.toldMs === 0 && [...group.members.values()].some(({ told }) => told === 'firing')) group.toldMs = nowMs
      if (group.members.size === 0 && group.sending === undefined) this.#end(group)
      else if (group.sending === undefined) this.#plan(group, dueAtStart(group, options.rules, nowMs))
    }
  }

  get groupCount(): number {
    return this.#groups.size
  }

  get alertCount(): number {
    return this.#count
  }

  /** Whether there is room for no other alert. */
  get isFull(): boolean {
    return this.#count >= MOST_ALERTS
  }

  get isSending(): boolean {
    return this.#sending !== undefined
  }

  /**
   * Takes what has become of an alert. Returns false if it has to be given again when something was told: where each transition is
   * told, the one before comes first. After a loss transitions are missing, and it is taken in any case. Whoever is over takes nothing.
   */
  take(alert: NotifiedAlert, isAfterLoss = false): boolean {
    if (this.#isOver) return false
    const { rules } = this.#options
    const labels = this.#labelsOf(alert)
    const { fingerprint, state } = alert
    const known = this.#groups.get(keyOf(labels))?.members.get(fingerprint)
    if (known === undefined && state === 'resolved') return true
    if (known === undefined && this.isFull) return false
    const group = this.#groupOf(labels)
    const isTold = known === undefined || known.isMuted || !isChange(known)
    if (rules.groupIntervalMs === 0 && !isTold && !isAfterLoss) return false
    const nowMs = this.#now()
    const isAnother = known !== undefined && known.alert.firedMs !== alert.firedMs
    const goesOn = known?.alert.state === 'firing' && state === 'firing' && !isAnother
    const member: Member = {
      alert,
      told: known?.told ?? 'nothing',
      hasFiredAgain: known?.hasFiredAgain === true || (isAfterLoss && isAnother),
      isMuted: false,
      waitingMs: goesOn ? known.waitingMs : nowMs,
      isEscalated: goesOn && known.isEscalated,
      acknowledgedMs: goesOn ? known.acknowledgedMs : 0,
    }
    // What nobody has heard of has ended before anybody was told, or while nobody is to hear of ends.
    if (state === 'resolved' && !this.#isSent(group, fingerprint) && member.told === 'nothing') {
      this.#forget(group, fingerprint)
      if (group.members.size === 0 && group.sending === undefined) this.#end(group)
      return true
    }
    this.#put(group, member)
    const { groupWaitMs, groupIntervalMs } = groupTimesOf(alert, rules)
    const waitMs = group.toldMs === 0 ? groupWaitMs : Math.max(0, group.toldMs + groupIntervalMs - nowMs)
    if (group.sending === undefined) this.#plan(group, earlier(group.dueMs, nowMs + waitMs))
    return true
  }

  /**
   * Of the alerts that a button is about, those that still fire as they did then: `open` if nobody has acknowledged them by a button
   * since, and `isRepeated` if somebody has.
   */
  claimed({ alerts, atMs }: Pick<ButtonClaim, 'alerts' | 'atMs'>): {
    readonly open: readonly NotifiedAlert[]
    readonly isRepeated: boolean
  } {
    const wanted = new Map(alerts)
    const found = [...this.#groups.values()]
      .flatMap(({ members }) => [...wanted.keys()].map((fingerprint) => members.get(fingerprint)))
      .filter((member) => member !== undefined)
      .filter(({ alert }) => alert.state === 'firing' && wanted.get(alert.fingerprint) === alert.firedMs)
    const open = found.filter(({ acknowledgedMs }) => acknowledgedMs < atMs)
    return { open: open.map(({ alert }) => alert), isRepeated: open.length < found.length }
  }

  /** Buttons that were sent up to a time are used up for these alerts. */
  acknowledge(alerts: readonly NotifiedAlert[], acknowledgedMs: number): void {
    for (const alert of alerts) {
      const member = this.#memberOf(alert)
      if (member !== undefined) this.#put(this.#groupOf(this.#labelsOf(alert)), { ...member, acknowledgedMs })
    }
  }

  /** Undefined if it is not known. */
  stateOf(alert: NotifiedAlert): NotifiedAlert['state'] | undefined {
    return this.#memberOf(alert)?.alert.state
  }

  /** Whether an alert that fires is known to do so, and has not ended and begun again since. Rules move it back with the clock. */
  isKnownToFire(alert: NotifiedAlert): boolean {
    const known = this.#memberOf(alert)?.alert
    return known?.state === 'firing' && known.firedMs >= alert.firedMs
  }

  /** Whether it is what was taken last of this alert. */
  isLatest(alert: NotifiedAlert): boolean {
    return this.#memberOf(alert)?.alert === alert
  }

  /** Those that are known. */
  alerts(): readonly NotifiedAlert[] {
    return [...this.#groups.values()].flatMap(({ members }) => [...members.values()].map(({ alert }) => alert))
  }

  /** What waits for approval, as far as it is known. */
  approvals(): readonly NotifiedAlert[] {
    const members = this.#groups.get(keyOf(APPROVALS_GROUP))?.members.values() ?? []
    return [...members].map(({ alert }) => alert).filter((alert) => isApproval(alert) && alert.state === 'firing')
  }

  /** When the next alert has waited for so long; undefined if none waits. Those of rules alone are escalated. */
  escalationMs(afterMs: number): number | undefined {
    const nowMs = this.#options.wallMs()
    let first: number | undefined
    for (const { members } of this.#groups.values())
      for (const { alert, waitingMs, isEscalated } of members.values()) {
        if (alert.state !== 'firing' || isEscalated || alert.kind !== undefined) continue
        // Where the clock was set back it waits anew, which `escalate` begins.
        const dueMs = waitingMs > nowMs ? nowMs : waitingMs + afterMs
        if (first === undefined || dueMs < first) first = dueMs
      }
    return first
  }

  /**
   * Passes an alert that fires now to the next notifier, if it has waited for so long. That is stored in one batch with what `pass`
   * does, which returns false if it has to be done later.
   */
  *escalate(firing: NotifiedAlert, afterMs: number, pass: (alert: NotifiedAlert) => boolean): Steps<void> {
    const { wallMs, isMuted, isHeld } = this.#options
    if (this.#memberOf(firing) === undefined) return
    const waitsFirst = isHeld() || (yield* isMuted(firing))
    const member = this.#memberOf(firing)
    // What fires again since is another alert, of which the transition is under way. Rules move when one fired back with the clock.
    if (this.#isOver || member === undefined || member.isEscalated || member.alert.firedMs < firing.firedMs) return
    const nowMs = wallMs()
    // Somebody has acknowledged it, or nobody is to hear of it now; or the clock was set back.
    if (waitsFirst || member.waitingMs > nowMs) member.waitingMs = nowMs
    if (nowMs - member.waitingMs < afterMs || !pass(member.alert)) return
    this.#put(this.#groupOf(this.#labelsOf(firing)), { ...member, isEscalated: true })
  }

  /** Whether its receiver knows that an alert fires. */
  isTold(alert: KnownAlert): boolean {
    return this.#memberOf(alert)?.told === 'firing'
  }

  /** The key of the group that an alert is in; undefined if it is not known. */
  groupWith(fingerprint: string): string | undefined {
    for (const { key, members } of this.#groups.values()) if (members.has(fingerprint)) return key
    return undefined
  }

  #memberOf(alert: KnownAlert): Member | undefined {
    return this.#groups.get(keyOf(this.#labelsOf(alert)))?.members.get(alert.fingerprint)
  }

  /** Gives what is stored to another one, which goes on from it. */
  handOver(): { readonly groups: readonly NotifyGroupRow[]; readonly alerts: readonly NotifyAlertRow[] } {
    this.#isOver = true
    const groups = [...this.#groups.values()]
    return {
      groups: groups.map((group) => groupRow(this.#options.notifier, group)),
      alerts: groups.flatMap(({ members }) =>
        [...members.values()].map((member) => alertRow(this.#options.notifier, member)),
      ),
    }
  }

  /** The notification under way, or that is due now; it is stored with the next batch. */
  *next(): Steps<Notification | undefined> {
    if (this.#isOver) return undefined
    if (this.#sending?.sending !== undefined) return this.#sending.sending
    if (this.#options.isHeld()) return undefined
    const nowMs = this.#now()
    const due = [...this.#groups.values()].filter((group) => this.#isDue(group, nowMs))
    for (const group of due.sort((one, other) => one.dueMs - other.dueMs)) {
      // What comes meanwhile may have given it another time.
      if (!this.#isDue(group, this.#now())) continue
      const notification = yield* this.#begin(group)
      if (notification !== undefined) return notification
      yield
    }
    return undefined
  }

  #isDue(group: Group, nowMs: number): boolean {
    return this.#isThere(group) && group.dueMs > 0 && group.dueMs <= nowMs
  }

  /** All times of groups come from here: where the clock was set back, they go back with it. */
  #now(): number {
    const nowMs = this.#options.wallMs()
    const backMs = this.#lookedMs - nowMs
    this.#lookedMs = nowMs
    if (backMs > 0) for (const group of this.#groups.values()) moveBack(group, backMs)
    return nowMs
  }

  #isThere(group: Group): boolean {
    return this.#groups.get(group.key) === group
  }

  /** When the next group is due; undefined if none is. */
  get dueMs(): number | undefined {
    const { isHeld, wallMs } = this.#options
    if (isHeld()) return wallMs() + MUTED_MS
    let firstMs = 0
    for (const { dueMs } of this.#groups.values()) firstMs = earlier(firstMs, dueMs)
    return firstMs === 0 ? undefined : firstMs
  }

  /** All groups are looked at now: what must be told may have changed. */
  lookAgain(): void {
    const nowMs = this.#now()
    for (const group of this.#groups.values())
      if (group.sending === undefined && [...group.members.values()].some(({ isMuted }) => isMuted))
        this.#plan(group, earlier(group.dueMs, nowMs))
  }

  /** A notification has arrived, or will never be taken: what it says counts as told. */
  told(notification: Notification): void {
    const group = this.#groups.get(keyOf(notification.groupLabels))
    if (group?.sending?.key !== notification.key) return
    const { rules } = this.#options
    group.sending = undefined
    this.#sending = [...this.#groups.values()].find(({ sending }) => sending !== undefined)
    const nowMs = this.#now()
    for (const { fingerprint, state, firedMs } of notification.alerts) {
      const member = group.members.get(fingerprint)
      group.repeated.add(fingerprint)
      if (member === undefined) continue
      const hasEnded = state === 'resolved'
      const isOver = hasEnded && member.alert.state === 'resolved'
      if (isOver && !this.#isRepeated(member.alert, nowMs)) this.#forget(group, fingerprint)
      else {
        const hasFiredAgain = member.hasFiredAgain && !hasEnded && member.alert.firedMs !== firedMs
        this.#put(group, { ...member, told: hasEnded ? 'nothing' : 'firing', hasFiredAgain })
      }
    }
    group.toldMs = nowMs
    if (group.members.size === 0) {
      this.#end(group)
      return
    }
    const members = [...group.members.values()]
    const isMore = notification.truncated > 0 && members.some((member) => !group.repeated.has(member.alert.fingerprint))
    if (!isMore) group.repeated = new Set()
    const changed = members.filter((member) => isChange(member) && !member.isMuted)
    const intervalMs = Math.min(...changed.map(({ alert }) => groupTimesOf(alert, rules).groupIntervalMs))
    const waitMs = isMore ? 0 : changed.length > 0 ? intervalMs : rules.repeatIntervalMs
    this.#plan(group, nowMs + waitMs)
  }

  /** Nothing of this notifier is kept. */
  end(): void {
    for (const group of this.#groups.values()) this.#remove(group)
    this.#isOver = true
  }

  /** What was told to wait for approval is not kept: somebody else is told from now on. */
  forgetApprovals(): void {
    const group = this.#groups.get(keyOf(APPROVALS_GROUP))
    if (group !== undefined) this.#remove(group)
  }

  #remove(group: Group): void {
    for (const fingerprint of [...group.members.keys()]) this.#forget(group, fingerprint)
    this.#end(group)
  }

  *#begin(group: Group): Steps<Notification | undefined> {
    const { rules } = this.#options
    const looked = {
      changed: new Map<string, NotifiedAlert>(),
      same: new Map<string, NotifiedAlert>(),
      muted: new Set(),
    }
    const unseen = new Set(group.members.keys())
    group.unseen = unseen
    // What changes meanwhile is put there again, and so this comes to it, too.
    for (const fingerprint of unseen) {
      yield
      unseen.delete(fingerprint)
      for (const alerts of Object.values(looked)) alerts.delete(fingerprint)
      const member = group.members.get(fingerprint)
      if (member === undefined) continue
      const verdict = yield* this.#verdictOn(member)
      if (verdict === 'over') this.#forget(group, fingerprint)
      else if (verdict === 'muted') looked.muted.add(fingerprint)
      else looked[verdict].set(fingerprint, member.alert)
    }
    group.unseen = undefined
    if (this.#isOver || !this.#isThere(group)) return undefined
    const nowMs = this.#now()
    const [changed, same] = [[...looked.changed.values()], [...looked.same.values()]]
    const muted = looked.muted.size
    const isRepetition = changed.length === 0 && nowMs - group.toldMs >= rules.repeatIntervalMs
    if (changed.length === 0 && !isRepetition && group.repeated.size === 0) {
      const nextMs = same.length > 0 ? Math.max(nowMs, group.toldMs + rules.repeatIntervalMs) : 0
      return this.#postpone(group, nextMs, muted > 0 ? nowMs + MUTED_MS : 0)
    }
    const fresh = same.filter(({ fingerprint }) => !group.repeated.has(fingerprint))
    const { saidOf } = this.#options
    const alerts = [...changed, ...fresh]
      .slice(0, MOST_TOLD)
      .map((alert) => (alert.state === 'firing' ? { ...alert, ...saidOf(alert) } : alert))
    if (alerts.length === 0) {
      group.repeated = new Set()
      const nextMs = same.length > 0 ? nowMs + rules.repeatIntervalMs : 0
      return this.#postpone(group, nextMs, muted > 0 ? nowMs + MUTED_MS : 0)
    }
    group.number++
    group.dueMs = 0
    group.sending = {
      key: randomUUID(),
      groupLabels: group.labels,
      atMs: nowMs,
      alerts,
      truncated: changed.length + fresh.length - alerts.length,
    }
    this.#sending = group
    this.#store(group)
    return group.sending
  }

  *#verdictOn(member: Member): Steps<TellingVerdict> {
    const { rules, isMuted, mayTell } = this.#options
    const { alert, told } = member
    if (!mayTell(alert)) {
      member.isMuted = alert.state === 'firing'
      return member.isMuted ? 'muted' : 'over'
    }
    if (alert.state === 'resolved') {
      if (rules.sendResolved && told === 'firing') return 'changed'
      return this.#isRepeated(alert, this.#now()) ? 'same' : 'over'
    }
    const wasMuted = member.isMuted
    member.isMuted = yield* isMuted(alert)
    if (wasMuted && !member.isMuted) member.waitingMs = this.#now()
    if (member.isMuted && !(rules.repeatsMuted && told === 'firing')) return 'muted'
    return isChange(member) ? 'changed' : 'same'
  }

  /** Of what has ended. */
  #isRepeated({ endedMs }: NotifiedAlert, nowMs: number): boolean {
    return nowMs - endedMs < this.#options.rules.repeatsEndedMs
  }

  #postpone(group: Group, ...timesMs: readonly number[]): undefined {
    const nextMs = timesMs.reduce(earlier, 0)
    // It is not stored: at the next start all groups are looked at.
    if (group.members.size === 0) this.#end(group)
    else group.dueMs = nextMs
  }

  #plan(group: Group, dueMs: number): void {
    group.dueMs = dueMs
    this.#store(group)
  }

  #labelsOf(alert: KnownAlert): readonly Label[] {
    return isApproval(alert) ? APPROVALS_GROUP : groupLabels(alert, this.#options.rules)
  }

  #groupOf(labels: readonly Label[]): Group {
    const key = keyOf(labels)
    const known = this.#groups.get(key)
    if (known !== undefined) return known
    const group = newGroup(key, labels)
    this.#groups.set(key, group)
    return group
  }

  #isSent({ sending }: Group, fingerprint: string): boolean {
    return sending?.alerts.some((alert) => alert.fingerprint === fingerprint) ?? false
  }

  #put(group: Group, member: Member): void {
    const { alert } = member
    if (!group.members.has(alert.fingerprint)) this.#count++
    group.members.set(alert.fingerprint, member)
    group.unseen?.add(alert.fingerprint)
    this.#change({ put: 'notify alert', row: alertRow(this.#options.notifier, member) })
  }

  #forget(group: Group, fingerprint: string): void {
    const { notifier } = this.#options
    if (!group.members.delete(fingerprint)) return
    group.unseen?.add(fingerprint)
    this.#count--
    this.#change({ remove: 'notify alert', notifier, fingerprint })
  }

  #store(group: Group): void {
    this.#change({ put: 'notify group', row: groupRow(this.#options.notifier, group) })
  }

  #end({ key }: Group): void {
    this.#groups.delete(key)
    this.#change({ remove: 'notify group', notifier: this.#options.notifier, labels: key })
  }

  #change(change: Parameters<NotifyGroupsOptions['journal']['change']>[0]): void {
    if (!this.#isOver) this.#options.journal.change(change)
  }
}
