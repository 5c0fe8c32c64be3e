/** An alert as notifiers know it: what a value of the metric `alert` says of it. */
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Field, Value } from '../../../protocol/monitor/value.ts'
import type { Label } from '../../kit/delivered-values.ts'
import type { AlertRow } from '../../kit/expressions.ts'
import { fingerprintOf } from '../../kit/fingerprint.ts'

export interface NotifiedAlert {
  /** Left out for the alert of a rule, which no rule can say otherwise. `failure`: of a notifier that fails. */
  readonly kind?: 'approval' | 'failure'
  /** Ascending by name, `alertname` among them. */
  readonly labels: readonly Label[]
  readonly annotations: readonly Label[]
  readonly state: 'firing' | 'resolved'
  /** As text: it may be NaN. */
  readonly value: string
  /** Milliseconds since 1970: since when it holds, fires, and when it ended; 0: it has not. */
  readonly sinceMs: number
  readonly firedMs: number
  readonly endedMs: number
  readonly group: string
  readonly rule: string
  readonly fingerprint: string
  /** The expression of its rule; left out if that is not known. */
  readonly query?: string
}

const MICROSECONDS = 1_000

/** The expression of a rule of a group; undefined if it is not known. */
export type QueryOf = (group: string, rule: string) => string | undefined

/** The alert of a transition; undefined for one of which nobody is told, since the alert has not fired. */
export function alertOfValue(labels: readonly Label[], value: Value, queryOf: QueryOf): NotifiedAlert | undefined {
  if (value.type !== BasicType.REC) return undefined
  const fields = new Map<string, Field>(value.value.map((field) => [field.name, field]))
  const text = (name: string): string => String(fields.get(name)?.value ?? '')
  const ms = (name: string): number => Math.round(Number(fields.get(name)?.value ?? 0) / MICROSECONDS)
  const firedMs = ms('fired')
  if (firedMs === 0) return undefined
  const annotations = fields.get('annotations')
  const [group, rule] = [text('group'), text('rule')]
  return {
    labels: labels.toSorted(byName),
    annotations:
      annotations?.type === BasicType.REC
        ? annotations.value.map(({ name, value }): Label => [name, String(value)]).toSorted(byName)
        : [],
    state: text('state') === 'firing' ? 'firing' : 'resolved',
    value: text('value'),
    sinceMs: ms('since'),
    firedMs,
    endedMs: ms('ended'),
    group,
    rule,
    fingerprint: text('fingerprint'),
    ...ofQuery(queryOf(group, rule)),
  }
}

/** An alert as it is stored, if it fires. */
export function alertOfRow(
  { rule, labels, annotations, state, value, active, fired }: AlertRow,
  queryOf: QueryOf,
): NotifiedAlert | undefined {
  if (state !== 'firing') return undefined
  const own = JSON.parse(labels) as Label[]
  const [, , group = '', name = ''] = JSON.parse(rule) as string[]
  return {
    labels: own,
    annotations: JSON.parse(annotations) as Label[],
    state: 'firing',
    value,
    sinceMs: active,
    firedMs: fired ?? active,
    endedMs: 0,
    group,
    rule: name,
    fingerprint: fingerprintOf(own),
    ...ofQuery(queryOf(group, name)),
  }
}

function ofQuery(query: string | undefined): Pick<NotifiedAlert, 'query'> {
  return query === undefined ? {} : { query }
}

export function textOfLabel({ labels }: Pick<NotifiedAlert, 'labels'>, wanted: string): string {
  return labels.find(([name]) => name === wanted)?.[1] ?? ''
}

function byName([left]: Label, [right]: Label): number {
  return left < right ? -1 : 1
}
