/** A group of alerts of a notifier, with what it knows of each of them. */
import type { Label } from '../../kit/delivered-values.ts'
import type { NotifyAlertRow, NotifyGroupRow } from '../../kit/peer.ts'
import { type NotifiedAlert, textOfLabel } from './alert.ts'
import type { Notification } from './notification.ts'

/** In `group_by`: by all labels. */
const ALL_LABELS = '...'

export interface GroupingRules {
  readonly groupBy: readonly string[]
  readonly groupWaitMs: number
  readonly groupIntervalMs: number
  readonly repeatIntervalMs: number
  readonly sendResolved: boolean
  /** What was told already is repeated also while nobody is to be told of it. */
  readonly repeatsMuted: boolean
  /** For how long what has ended is repeated, too; 0: it is told once. */
  readonly repeatsEndedMs: number
}

/** What the next notification of a group has of an alert. `muted`: nobody is to be told of it; `over`: it is not known any more. */
export type TellingVerdict = 'changed' | 'same' | 'muted' | 'over'

export interface Member {
  alert: NotifiedAlert
  told: NotifyAlertRow['told']
  /** After what was told, or is being told, it has ended and begun to fire again, which a loss has hidden: that is to be told. */
  hasFiredAgain: boolean
  /** It fires, and was not to be told when it was looked at last. */
  isMuted: boolean
  /** Since when it has waited for somebody to acknowledge it. */
  waitingMs: number
  /** The next notifier has it. */
  isEscalated: boolean
  /** When somebody has acknowledged it by a button; 0: nobody has. */
  acknowledgedMs: number
}

/** By which an alert is found. */
export type KnownAlert = Pick<NotifiedAlert, 'kind' | 'labels' | 'fingerprint'>

/** An alert as it is stored. */
type StoredAlert = NotifiedAlert &
  Partial<Pick<Member, 'hasFiredAgain' | 'waitingMs' | 'isEscalated' | 'acknowledgedMs'>>

export interface Group {
  /** As it is stored. */
  readonly key: string
  readonly labels: readonly Label[]
  readonly members: Map<string, Member>
  number: number
  toldMs: number
  /** 0: it is not due by itself. */
  dueMs: number
  sending: Notification | undefined
  /** Members that have been told again since the repetition began that is under way. */
  repeated: Set<string>
  /** While the group is looked at: fingerprints that have to be looked at, those that have changed since among them. */
  unseen: Set<string> | undefined
}

export function newGroup(key: string, labels: readonly Label[]): Group {
  const times = { toldMs: 0, dueMs: 0 }
  return {
    key,
    labels,
    members: new Map(),
    number: 0,
    ...times,
    sending: undefined,
    repeated: new Set(),
    unseen: undefined,
  }
}

/** The labels of the group that an alert of a rule is in. */
export function groupLabels(alert: KnownAlert, { groupBy }: Pick<GroupingRules, 'groupBy'>): readonly Label[] {
  if (groupBy.includes(ALL_LABELS)) return alert.labels
  return groupBy
    .toSorted()
    .map((name): Label => [name, textOfLabel(alert, name)])
    .filter(([, text]) => text !== '')
}

/** Whether something is to be told of it. */
export function isChange({ alert, told, hasFiredAgain }: Member): boolean {
  return alert.state === 'firing' ? told === 'nothing' || hasFiredAgain : told === 'firing'
}

/** A clock that was set back by so much must not keep anybody waiting for longer. A time stays one where it would be before 1970. */
export function moveBack(group: Group, backMs: number): void {
  if (group.toldMs > 0) group.toldMs = Math.max(1, group.toldMs - backMs)
  if (group.dueMs > 0) group.dueMs = Math.max(1, group.dueMs - backMs)
}

/** When a group is due that another process has left: its clock may have been ahead, so no later than by the waiting times from now. */
export function dueAtStart({ toldMs, dueMs, members }: Group, rules: GroupingRules, nowMs: number): number {
  const { groupWaitMs, groupIntervalMs, repeatIntervalMs } = rules
  const waitMs = [...members.values()].some(isChange) ? groupIntervalMs : repeatIntervalMs
  return Math.min(dueMs || nowMs, nowMs + (toldMs === 0 ? groupWaitMs : waitMs))
}

export function keyOf(labels: readonly Label[]): string {
  return JSON.stringify(labels)
}

/** 0 is no time. */
export function earlier(oneMs: number, otherMs: number): number {
  if (oneMs === 0 || otherMs === 0) return oneMs + otherMs
  return Math.min(oneMs, otherMs)
}

export function alertRow(
  notifier: string,
  { alert, told, hasFiredAgain, waitingMs, isEscalated, acknowledgedMs }: Member,
): NotifyAlertRow {
  const seldom = { ...(acknowledgedMs > 0 && { acknowledgedMs }), ...(hasFiredAgain && { hasFiredAgain }) }
  const stored: StoredAlert = { ...alert, waitingMs, isEscalated, ...seldom }
  return { notifier, fingerprint: alert.fingerprint, alert: JSON.stringify(stored), told }
}

export function memberOf({ alert: text, told }: NotifyAlertRow, nowMs: number): Member {
  const stored = JSON.parse(text) as StoredAlert
  const { waitingMs = nowMs, isEscalated = false, acknowledgedMs = 0, hasFiredAgain = false, ...alert } = stored
  return { alert, told, hasFiredAgain, isMuted: false, waitingMs, isEscalated, acknowledgedMs }
}

export function groupRow(notifier: string, { key, number, toldMs, dueMs, sending }: Group): NotifyGroupRow {
  const text = sending === undefined ? '' : JSON.stringify(sending)
  return { notifier, labels: key, number, told: toldMs, due: dueMs, sending: text }
}
