/** An event as a value: what it says, in the order of its schema, and how severe it is. */
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { type Field, nameProblem, type Value } from '../../../protocol/monitor/value.ts'
import { type EventSchema, severities } from '../../../protocol/qmf/types.ts'
import type { QmfEvent } from './console.ts'
import { MAX_TEXT, toValue } from './values.ts'

const SEVERITY = 'severity'

/** Undefined if it does not fit a frame. */
export function eventValue(schema: EventSchema, { severity, arguments: values }: QmfEvent): Value | undefined {
  const fields: Field[] = []
  let length = 0
  for (const [at, { name, type }] of schema.arguments.entries()) {
    // An argument of that name would be taken for how severe it is.
    if (name === SEVERITY || nameProblem(name) !== undefined) continue
    const value = toValue(type, values[at])
    length += name.length + (typeof value.value === 'string' ? value.value.length : 0)
    if (length > MAX_TEXT) return undefined
    fields.push({ name, ...value })
  }
  fields.push({ name: SEVERITY, type: BasicType.STRING, value: severities[severity] ?? String(severity) })
  return { type: BasicType.REC, value: fields }
}
