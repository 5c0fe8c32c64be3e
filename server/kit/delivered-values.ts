/**
 * A value as the channel of a pattern delivers it, taken out of its record: its name, its labels, and the bare value. A thread may
 * import this, without the rest of the server.
 */
import type { ArgumentList } from '../../protocol/monitor/arguments.ts'
import { BasicType } from '../../protocol/monitor/constants.ts'
import type { Field, Value } from '../../protocol/monitor/value.ts'
import { toForeign } from '../kernel/metrics/labels.ts'

export type Label = readonly [name: string, text: string]

/** What is bound on the channel. */
export interface DeliveredName {
  /** A name or pattern. */
  readonly name: string
  readonly args: ArgumentList
  /** Whether values carry labels. */
  carriesLabels(): boolean
}

export interface UnwrappedValue {
  /** That of the metric, if a pattern was bound. */
  readonly name: string
  readonly labels: readonly Label[]
  readonly value: Value
}

/** The name and labels that stand before the value in the REC of a pattern [MON 9 Patterns]. */
export function unwrapped(selection: DeliveredName, value: Value): UnwrappedValue {
  const { name, args } = selection
  const labels: Label[] = []
  for (const { name, type, value } of args) {
    if (type === BasicType.STRING && typeof value === 'string' && !value.includes('*'))
      labels.push([toForeign(name), value])
  }
  if (!selection.carriesLabels() || value.type !== BasicType.REC) return { name, labels, value }
  let full = name
  for (const field of value.value) {
    if (field.name === 'value') return { name: full, labels, value: bare(field) }
    if (field.type !== BasicType.STRING) continue
    const text = String(field.value)
    if (field.name === 'name') full = text
    else if (text !== '') labels.push([toForeign(field.name), text])
  }
  return { name: full, labels, value }
}

function bare({ type, value }: Field): Value {
  return { type, value } as Value
}
