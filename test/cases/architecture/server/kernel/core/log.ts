// The core is below every other room.
import type { Metric } from '../metrics/metric.ts'

export type Logged = Metric
