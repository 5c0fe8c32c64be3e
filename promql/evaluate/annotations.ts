/** What a query says besides its result: warnings and infos, each once, as Prometheus words them. */
import { lineAndColumn, type TextRange } from '../errors.ts'
import { shortNumber, twoDigits } from '../parse/numbers.ts'
import { quoted } from '../parse/quoting.ts'

/** Where counts of the buckets of a histogram went down, although they are cumulative. */
interface ForcedMonotonicity {
  fromMs: number
  toMs: number
  fromBucket: number
  toBucket: number
  maxDifference: number
  samples: number
}

interface Annotation {
  readonly isWarning: boolean
  readonly range: TextRange
  readonly forced: ForcedMonotonicity | undefined
}

const MONOTONICITY =
  'input to histogram_quantile needed to be fixed for monotonicity ' +
  '(see https://prometheus.io/docs/prometheus/latest/querying/functions/#histogram_quantile)'

const THINNED =
  'samples of the oldest times have gone, and the last one of each 5 minutes stands for them; min, max, avg, sum and ' +
  'count_over_time, rate and increase know all of them at multiples of 5 minutes'

/** Messages that are kept of each kind; more are counted. */
const MAX_MESSAGES = 100

export class Annotations {
  /** By message; one that comes again stands where it came last. */
  readonly #byMessage = new Map<string, Annotation>()
  readonly #kept = { warnings: 0, infos: 0 }
  readonly #left = { warnings: 0, infos: 0 }

  invalidQuantile(quantile: number, range: TextRange): void {
    this.#warn(`quantile value should be between 0 and 1, got ${shortNumber(quantile)}`, range)
  }

  badBucketLabel(metric: string, label: string, range: TextRange): void {
    const problem = `bucket label ${quoted('le')} is missing or has a malformed value of ${quoted(label)}`
    this.#warn(problem + ofMetric(metric), range)
  }

  sortInRangeQuery(range: TextRange): void {
    this.#warn('sort is ineffective for range queries since results are always ordered by labels', range)
  }

  thinned(range: TextRange): void {
    this.#warn(THINNED, range)
  }

  possibleNonCounter(metric: string, range: TextRange): void {
    const problem = 'metric might not be a counter, name does not end in _total/_sum/_count/_bucket:'
    this.#keep(`${problem} ${quoted(metric)}`, { isWarning: false, range, forced: undefined })
  }

  forcedMonotonicity(
    metric: string,
    range: TextRange,
    timeMs: number,
    { from, to, difference }: { readonly from: number; readonly to: number; readonly difference: number },
  ): void {
    const message = MONOTONICITY + ofMetric(metric)
    const forced = this.#byMessage.get(message)?.forced
    if (forced === undefined) {
      const first = {
        fromMs: timeMs,
        toMs: timeMs,
        fromBucket: from,
        toBucket: to,
        maxDifference: difference,
        samples: 1,
      }
      this.#keep(message, { isWarning: false, range, forced: first })
      return
    }
    forced.fromMs = Math.min(forced.fromMs, timeMs)
    forced.toMs = Math.max(forced.toMs, timeMs)
    forced.fromBucket = Math.min(forced.fromBucket, from)
    forced.toBucket = Math.max(forced.toBucket, to)
    forced.maxDifference = Math.max(forced.maxDifference, difference)
    forced.samples++
  }

  /** As the HTTP API shows them: with positions in the text. */
  warnings(text: string): string[] {
    return this.#shown(text, true)
  }

  infos(text: string): string[] {
    return this.#shown(text, false)
  }

  #warn(message: string, range: TextRange): void {
    this.#keep(message, { isWarning: true, range, forced: undefined })
  }

  #keep(message: string, annotation: Annotation): void {
    const { isWarning } = annotation
    const known = isWarning ? this.#kept.warnings : this.#kept.infos
    if (this.#byMessage.has(message)) this.#byMessage.set(message, annotation)
    else if (known < MAX_MESSAGES) {
      this.#byMessage.set(message, annotation)
      if (isWarning) this.#kept.warnings++
      else this.#kept.infos++
    } else if (isWarning) this.#left.warnings++
    else this.#left.infos++
  }

  #shown(text: string, areWarnings: boolean): string[] {
    const wanted = [...this.#byMessage].filter(([, { isWarning }]) => isWarning === areWarnings)
    const shown = wanted.map(([message, { range, forced }]) => {
      const more = forced === undefined ? '' : details(forced)
      return `PromQL ${areWarnings ? 'warning' : 'info'}: ${message}${more} (${lineAndColumn(text, range.start)})`
    })
    const left = areWarnings ? this.#left.warnings : this.#left.infos
    if (left > 0) shown.push(`${left} more ${areWarnings ? 'warning' : 'info'} annotations omitted`)
    return shown
  }
}

function ofMetric(metric: string): string {
  return metric === '' ? '' : ` for metric name ${quoted(metric)}`
}

function details({ fromMs, toMs, fromBucket, toBucket, maxDifference, samples }: ForcedMonotonicity): string {
  const buckets = `from buckets ${shortNumber(fromBucket)} to ${shortNumber(toBucket)}`
  const times = `from ${second(fromMs)} to ${second(toMs)}`
  return `, ${buckets}, with a max diff of ${twoDigits(maxDifference)}, over ${samples} samples ${times}`
}

function second(ms: number): string {
  return new Date(Math.floor(ms / 1000) * 1000).toISOString().replace('.000Z', 'Z')
}
