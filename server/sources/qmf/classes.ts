/** What a broker has of a class, and how much of it somebody wants. */
import type { ObjectId, Schema } from '../../../protocol/qmf/types.ts'
import type { QmfObject } from './broker-object.ts'
import type { KnownClass, KnownEvent, KnownTable, QmfField } from './catalogue.ts'
import { type BrokerSeries, ClassSeries } from './series.ts'

interface Class<K extends KnownClass> {
  readonly known: K
  /** Learned on the connection that there is. */
  isCurrent: boolean
  /** Series that somebody wants. */
  wanted: number
}
export interface TableClass extends Class<KnownTable> {
  readonly objects: Map<ObjectId, QmfObject>
  /** By what they are called, as in the parameter `object`; of all versions of the class. */
  readonly labels: Map<string, QmfObject>
  /** Those that somebody wants. */
  readonly expected: Map<QmfField, ClassSeries>
}
export interface EventClass extends Class<KnownEvent> {
  series: BrokerSeries | undefined
}

/** Of a class in all its versions; a new Map if there is none. */
export function labelsOf(tables: Iterable<TableClass>, schema: Schema): Map<string, QmfObject> {
  for (const { known, labels } of tables) if (isVersion(known.schema, schema)) return labels
  return new Map()
}

/** In any version: they come together. */
export function isAnyWanted(classes: Iterable<Class<KnownClass>>, schema: Schema): boolean {
  for (const { wanted, known } of classes) if (wanted > 0 && isVersion(known.schema, schema)) return true
  return false
}

function isVersion({ key: one }: Schema, { key: other }: Schema): boolean {
  return one.packageName === other.packageName && one.className === other.className
}

/** The same one for as long as somebody wants it. `wanted`: somebody does, or does not any more. */
export function expectedOf(
  { expected }: Pick<TableClass, 'expected'>,
  field: QmfField,
  broker: string,
  wanted: (isWanted: boolean) => void,
): ClassSeries {
  const made = expected.get(field)
  if (made !== undefined) return made
  const series: ClassSeries = new ClassSeries(field.name, broker, (isWanted) => {
    if (isWanted) expected.set(field, series)
    else expected.delete(field)
    wanted(isWanted)
  })
  return series
}
