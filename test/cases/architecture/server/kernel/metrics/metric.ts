// Each of two imports the other.
import type { Instance } from './instance.ts'

export interface Metric {
  readonly instance: Instance
}
