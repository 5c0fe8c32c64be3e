import type { Metric } from './metric.ts'

export interface Instance {
  readonly metric: Metric
}
