/** What the metrics of the catalogue are as families of Prometheus: type, help and unit, by the names that their samples have. */
import type { FamilyMetadata } from '../../../protocol/prometheus/samples.ts'
import type { Metric, RecordExposition } from './metric.ts'
import { familyType, nameForPrometheus } from './prometheus-samples.ts'

/** What a sample of a histogram or summary has after the name of its family. */
const PART = /_(?:bucket|sum|count)$/

export interface NamedFamily extends FamilyMetadata {
  readonly name: string
}

/** Of a record, and of the lists in it, each field is a family; what says what there is rather than how much has none. */
export function* familiesOf({
  name,
  unit,
  description: help,
  isCounter,
  distribution,
  exposition,
}: Metric): Generator<NamedFamily> {
  if (exposition === 'none') return
  const own = nameForPrometheus(name)
  if (exposition !== undefined) yield* declared(own.name, exposition)
  else if (own.isNative && distribution !== undefined)
    yield { name: own.name.replace(PART, ''), type: distribution, help, unit }
  else yield { name: own.name, type: familyType(isCounter), help, unit }
}

function* declared(name: string, { fields, lists = {} }: RecordExposition): Generator<NamedFamily> {
  for (const field of Object.values(fields))
    yield { name: `${name}_${field.name}`, type: familyType(field.isCounter), help: field.help, unit: '' }
  for (const list of Object.values(lists)) yield* declared(name, list)
}
