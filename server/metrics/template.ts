/**
 * The template of a VALUE frame: everything that is the same for all values of a series under a metric id. Length,
 * transaction id and time are filled in per value; basic type and value follow it.
 */
import { XdrWriter } from '../../protocol/bytes/writer.ts'
import { BasicType } from '../../protocol/monitor/constants.ts'
import { type Field, type Value, writeTyped } from '../../protocol/monitor/value.ts'
import { type LabelName, type Labels, labelNames } from './metric.ts'

/** `open`: the labels that stand in the value; none: the value stands by itself. */
export function framePrefix(metricId: number, labels: Labels, open: ReadonlySet<LabelName>): Uint8Array {
  const writer = new XdrWriter(64)
  writer.uint32(0).uint32(metricId).uint53(0).uint53(0)
  if (open.size === 0) return writer.copy()
  const fields = openFields(labels, open)
  writer.uint32(BasicType.REC).uint32(fields.length + 1)
  for (const field of fields) {
    writer.string(field.name)
    writeTyped(writer, field)
  }
  return writer.string('value').copy()
}

/** One REC of a pattern's answer. */
export function patternRecord(labels: Labels, open: ReadonlySet<LabelName>, value: Value): Field[] {
  return [...openFields(labels, open), { name: 'value', ...value }]
}

function openFields(labels: Labels, open: ReadonlySet<LabelName>): Field[] {
  const fields: Field[] = []
  for (const name of labelNames) {
    const value = labels[name]
    if (!open.has(name) || value === undefined) continue
    fields.push({ name, type: BasicType.STRING, value })
  }
  return fields
}
