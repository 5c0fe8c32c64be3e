/**
 * What a value is for Prometheus: the one mapping of names and samples, which GET /metrics, drains and the history share,
 * and which times are those of a clock that is wrong. A thread may import it, without the rest of the server.
 */
export { isAhead } from '../kernel/metrics/current.ts'
export {
  type NameForPrometheus,
  nameForPrometheus,
  type SampleSink,
  samplesOf,
  samplesOfHistogram,
  samplesOfSummary,
  type TakeSample,
} from '../kernel/metrics/prometheus-samples.ts'
