// The log stands at the bottom.
import type { Metric } from './metrics/metric.ts'

export type Logged = Metric
