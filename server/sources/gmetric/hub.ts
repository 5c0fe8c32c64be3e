/** What the sensors of Ganglia need of the hub. */
import type { Value } from '../../../protocol/monitor/value.ts'
import type { ListeningSensor, Series } from '../../metrics/metric.ts'

/** Whom births, values and deaths are told to. */
export interface GmetricHub {
  /** Also for a series that is found by other names than before. */
  born(sensor: ListeningSensor, series: Series): void
  /** `time`: microseconds since 1970. */
  emit(series: Series, value: Value, time: number): void
  died(series: Series): void
  /** Whose values are kept out. */
  readonly fences: { has(sensor: ListeningSensor): boolean }
}
