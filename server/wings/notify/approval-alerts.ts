/**
 * EXECUTEs that wait for approval, as alerts that notifiers tell of [MON 9.23]: one fires as long as the EXECUTE waits. It is of no rule,
 * and nobody silences or acknowledges it. Who asks for what is said, and with what arguments is not: a message is read by others, too.
 */
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Value } from '../../../protocol/monitor/value.ts'
import type { Label } from '../../kit/delivered-values.ts'
import { fingerprintOf } from '../../kit/fingerprint.ts'
import { type NotifiedAlert, textOfLabel } from './alert.ts'

/** The event metric of what waits. */
export const PENDING = 'control.pending'
const NAME = 'ApprovalWaits'
const MICROSECONDS = 1_000

/** The labels of the group that all of them are. */
export const APPROVALS_GROUP: readonly Label[] = [['alertname', NAME]]

/** Of what changes people are told after so long: somebody waits for them. */
const INTERVAL_MS = 10_000

/** When a group is told. */
interface GroupTimes {
  readonly groupWaitMs: number
  readonly groupIntervalMs: number
}

/** The times of a notifier for an alert; of what waits for approval people are told at once. */
export function groupTimesOf(
  alert: Pick<NotifiedAlert, 'kind'>,
  { groupWaitMs, groupIntervalMs }: GroupTimes,
): GroupTimes {
  if (!isApproval(alert)) return { groupWaitMs, groupIntervalMs }
  return { groupWaitMs: 0, groupIntervalMs: Math.min(groupIntervalMs, INTERVAL_MS) }
}

export function isApproval({ kind }: Pick<NotifiedAlert, 'kind'>): boolean {
  return kind === 'approval'
}

/** The alert that a value of `control.pending` is about; undefined if it is none. `atMs`: the time of the value. */
export function alertOfPending(value: Value, atMs: number): NotifiedAlert | undefined {
  if (value.type !== BasicType.REC) return undefined
  const fields = new Map(value.value.map(({ name, value }) => [name, value]))
  const text = (name: string): string => String(fields.get(name) ?? '')
  const ms = (name: string): number => Math.round(Number(fields.get(name) ?? 0) / MICROSECONDS)
  const isWaiting = text('state') === 'waiting'
  const labels: readonly Label[] = [
    ['alertname', NAME],
    ['asker', text('asker')],
    ['control', text('control')],
    ['id', text('id')],
  ]
  return {
    kind: 'approval',
    labels,
    annotations: [['summary', isWaiting ? askedText(text, ms('until')) : endedText(text)]],
    state: isWaiting ? 'firing' : 'resolved',
    value: '1',
    sinceMs: ms('asked'),
    firedMs: ms('asked'),
    endedMs: isWaiting ? 0 : atMs,
    group: 'approvals',
    rule: NAME,
    fingerprint: fingerprintOf(labels),
  }
}

/** The same alert when it is known only that nothing waits any more. */
export function endedUnseen(alert: NotifiedAlert, endedMs: number): NotifiedAlert {
  const text = (name: string): string => textOfLabel(alert, name)
  return { ...alert, state: 'resolved', endedMs, annotations: [['summary', endedText(text)]] }
}

function askedText(text: (name: string) => string, untilMs: number): string {
  const until = new Date(untilMs).toISOString().slice(0, 19).replace('T', ' ')
  return `${text('asker')} asks to run ${text('control')}: it waits for the approval of a ${text('role')} until ${until} UTC`
}

function endedText(text: (name: string) => string): string {
  const asked = `${text('control')} of ${text('asker')}`
  switch (text('state')) {
    case 'approved':
      return `${asked} was approved by ${text('by')}`
    case 'refused':
      return `${asked} was refused by ${text('by')}`
    case 'timeout':
      return `${asked} was approved by nobody in time`
    default:
      return `${asked} does not wait for approval any more`
  }
}
