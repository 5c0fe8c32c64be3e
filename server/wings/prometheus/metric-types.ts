/** Metrics of Prometheus: the family that they have here, and the families and types that they have there. */

/** The prefix of all names. */
export const PROMETHEUS_FAMILY = 'prometheus.'

/** What the series of a histogram or summary have after the name of their family. */
export const PARTS = /_(?:bucket|sum|count|total|created|info)$/

/** Types of MetricMetadata, which both versions number in the same way. */
const [COUNTER, GAUGE, HISTOGRAM, SUMMARY] = [1, 2, 3, 5]

/** Whether a series of a family only grows: those of a histogram or summary do, but for the quantiles. */
export function isCounter(name: string, type: number): boolean | undefined {
  if (type === COUNTER) return true
  if (type === GAUGE) return false
  if (type === HISTOGRAM || type === SUMMARY) return /_(?:bucket|sum|count)$/.test(name)
  return undefined
}
