/** What a sensor is made of: the kinds of sensors, metrics, series with their labels, and what a metric of an open family is. */
export { formatIdentity } from '../../auth/identity.ts'
export { ADMIN_ROLE, type Identity, maySee, type Owner } from '../../auth/permissions.ts'
export {
  boundedMetadata,
  Catalogue,
  type CataloguedSeries,
  type MetricMetadata,
  NO_METADATA,
} from '../kernel/metrics/catalogue.ts'
export { isAhead, makesLate, StillClock } from '../kernel/metrics/current.ts'
export { distributionOf, type HistogramValue, numberOf, type SummaryValue } from '../kernel/metrics/distribution.ts'
export { familiesOf, type NamedFamily } from '../kernel/metrics/families.ts'
export { openFields } from '../kernel/metrics/instance.ts'
export { byKind, isListening } from '../kernel/metrics/kinds.ts'
export {
  AllLabelsBut,
  fromForeign,
  labelsFrom,
  MAX_LABEL_BYTES,
  openLabelsProblem,
  ownLabels,
  shownName,
  toForeign,
} from '../kernel/metrics/labels.ts'
export { RecordList } from '../kernel/metrics/measure.ts'
export {
  type Arguments,
  byName,
  type EventSensor,
  type LabelName,
  type Labels,
  type ListeningSensor,
  type LocalSensor,
  type Measurement,
  type Metric,
  type Parameter,
  type PolledSensor,
  type RecordExposition,
  type Sensor,
  type SensorStatus,
  type Series,
  type Subscription,
  type TenantFamily,
} from '../kernel/metrics/metric.ts'
export { SortedNames } from '../kernel/metrics/sorted-names.ts'
export { isText, parametersProblem, valueProblem } from '../kernel/metrics/value-problem.ts'
export type { StatusEntry } from '../kernel/producer/status.ts'
