/**
 * An object of a broker, with its last values as they came; they become values of metrics only where somebody wants them.
 * Of a sample the statistics are all new, also those that did not change; properties tell only of their changes.
 */

import type { Value } from '../../../protocol/monitor/value.ts'
import type { QmfValue } from '../../../protocol/qmf/types.ts'
import type { Measured } from '../../metrics/metric.ts'
import type { KnownTable, QmfField } from './catalogue.ts'
import type { ObjectSample } from './console.ts'
import { type Holder, ObjectSeries } from './series.ts'
import { isSame, toValue } from './values.ts'

interface Sample {
  readonly values: readonly (QmfValue | undefined)[]
  /** Microseconds since 1970. */
  readonly time: number
}

export class QmfObject implements Holder {
  readonly known: KnownTable
  readonly id: string
  /** What it is called. */
  readonly label: string
  readonly broker: string
  /** How many of its series somebody wants. */
  wantedSeries = 0
  readonly #wanted: (isWanted: boolean) => void
  readonly #series = new Map<QmfField, ObjectSeries>()
  #properties: Sample | undefined
  #statistics: Sample | undefined
  /** The sample of the statistics, as the broker gave its time. */
  #sampled: bigint | undefined

  /** `wanted`: somebody wants a series of it, or does not any more. */
  constructor(known: KnownTable, of: Pick<Holder, 'id' | 'label' | 'broker'>, wanted: (isWanted: boolean) => void) {
    this.known = known
    this.id = of.id
    this.label = of.label
    this.broker = of.broker
    this.#wanted = wanted
  }

  series(field: QmfField): ObjectSeries {
    let series = this.#series.get(field)
    if (series === undefined) {
      series = new ObjectSeries(this, field)
      this.#series.set(field, series)
    }
    return series
  }

  /** Those that were ever asked for. */
  made(): Iterable<ObjectSeries> {
    return this.#series.values()
  }

  wanted(isWanted: boolean): void {
    this.wantedSeries += isWanted ? 1 : -1
    this.#wanted(isWanted)
  }

  last({ of, at, item }: QmfField): Measured | undefined {
    const sample = of === 'property' ? this.#properties : this.#statistics
    return sample && { value: toValue(item.type, sample.values[at]), time: sample.time }
  }

  /** Gives the sample to who wants it. `time`: of the sample, microseconds. */
  take(
    { header, properties, statistics }: ObjectSample,
    time: number,
    tell: (series: ObjectSeries, value: Value, time: number) => void,
  ): void {
    const before = this.#properties
    if (properties !== undefined) this.#properties = { values: properties, time }
    const isNew = statistics !== undefined && this.#sampled !== header.sampled
    if (isNew) {
      this.#statistics = { values: statistics, time }
      this.#sampled = header.sampled
    }
    if (this.wantedSeries === 0) return
    for (const series of this.#series.values()) {
      if (series.taps.length === 0) continue
      const { of, at, item } = series.field
      if (of === 'statistic') {
        if (isNew) tell(series, toValue(item.type, statistics[at]), time)
      } else if (properties !== undefined && (before === undefined || !isSame(before.values[at], properties[at]))) {
        tell(series, toValue(item.type, properties[at]), time)
      }
    }
  }
}
