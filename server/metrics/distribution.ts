/** Values that programs of others take: numbers, and records that say how values are distributed (docs/sources/otlp.md). */
import { BasicType } from '../../protocol/monitor/constants.ts'
import type { Field, Value } from '../../protocol/monitor/value.ts'

interface Totals {
  readonly count: bigint
  readonly sum: number | undefined
  readonly min: number | undefined
  readonly max: number | undefined
  /** Since when it counts, microseconds since 1970. */
  readonly start: number
}

export interface HistogramValue extends Totals {
  readonly kind: 'histogram'
  /** Whether it counts since the value before. */
  readonly isDelta: boolean
  readonly bounds: readonly number[]
  readonly counts: readonly bigint[]
}

export interface SummaryValue extends Totals {
  readonly kind: 'summary'
  readonly quantiles: readonly number[]
  readonly values: readonly number[]
}

/** The number of a value, if it is one or a boolean. */
export function numberOf({ type, value }: Value): number | bigint | boolean | undefined {
  switch (type) {
    case BasicType.INT32:
    case BasicType.UINT32:
    case BasicType.DOUBLE:
    case BasicType.INT64:
    case BasicType.UINT64:
    case BasicType.BOOLEAN:
      return value as number | bigint | boolean
    default:
      return undefined
  }
}

/** A record as a histogram or summary, if it is one. */
export function distributionOf(fields: readonly Field[]): HistogramValue | SummaryValue | undefined {
  const field = (name: string): Field | undefined => fields.find((one) => one.name === name)
  const count = field('count')
  if (count?.type !== BasicType.UINT64) return undefined
  const double = (name: string): number | undefined => {
    const found = field(name)
    return found?.type === BasicType.DOUBLE ? found.value : undefined
  }
  const [min, max, sum] = [double('min'), double('max'), double('sum')]
  const totals = { count: count.value, sum, min, max, start: Number(field('start')?.value ?? 0) }
  const bounds = listOf(field('bounds'), BasicType.DOUBLE)
  const counts = listOf(field('counts'), BasicType.UINT64)
  if (bounds !== undefined && counts !== undefined) {
    const isDelta = field('delta')?.value === true
    return { kind: 'histogram', isDelta, bounds: bounds as number[], counts: counts as bigint[], ...totals }
  }
  const quantiles = listOf(field('quantiles'), BasicType.DOUBLE)
  const values = listOf(field('values'), BasicType.DOUBLE)
  if (quantiles === undefined || values === undefined) return undefined
  return { kind: 'summary', quantiles: quantiles as number[], values: values as number[], ...totals }
}

function listOf(field: Field | undefined, element: BasicType): readonly Value['value'][] | undefined {
  return field?.type === BasicType.ARRAY && field.value.element === element ? field.value.items : undefined
}
