/**
 * An object of a broker, with its last values as they came; they become values of metrics only where somebody wants them.
 * Of a sample the statistics are all new, also those that did not change; properties tell only of their changes.
 */

import type { Value } from '../../../protocol/monitor/value.ts'
import type { Properties, QmfValue } from '../../../protocol/qmf/types.ts'
import type { Measurement } from '../../metrics/metric.ts'
import type { KnownTable, QmfField } from './catalogue.ts'
import type { ObjectSample } from './console.ts'
import { agentOf } from './objects.ts'
import { type Holder, ObjectSeries } from './series.ts'
import { isSame, toValue } from './values.ts'

interface Identified extends Pick<Holder, 'id' | 'label' | 'broker'> {
  readonly known: KnownTable
  /** As the broker gave the time. */
  readonly created: bigint
}
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
  readonly #created: bigint
  readonly #wanted: (isWanted: boolean) => void
  readonly #series = new Map<QmfField, ObjectSeries>()
  #properties: Sample | undefined
  #statistics: Sample | undefined
  /** The sample of the statistics, as the broker gave its time. */
  #sampled: bigint | undefined

  /** `wanted`: somebody wants a series of it, or does not any more. */
  constructor({ known, id, label, broker, created }: Identified, wanted: (isWanted: boolean) => void) {
    this.known = known
    this.id = id
    this.label = label
    this.broker = broker
    this.#created = created
    this.#wanted = wanted
  }

  /** The same one for as long as somebody wants it. */
  series(field: QmfField): ObjectSeries {
    return this.#series.get(field) ?? new ObjectSeries(this, field)
  }

  /** Those that somebody wants. */
  get wantedSeries(): readonly ObjectSeries[] {
    return [...this.#series.values()]
  }

  wanted(series: ObjectSeries, isWanted: boolean): void {
    if (isWanted) this.#series.set(series.field, series)
    else this.#series.delete(series.field)
    this.#wanted(isWanted)
  }

  /** Whether a newer object of the same agent has everything that tells objects of this class apart: this one is gone then. */
  isReplacedBy({ known, id, created, properties }: Omit<Identified, 'label' | 'broker'> & { properties: Properties }) {
    if (known !== this.known || created <= this.#created || agentOf(id) !== agentOf(this.id)) return false
    return known.schema.properties.every(({ isIndex }, at) => {
      return !isIndex || isSame(this.#properties?.values[at], properties[at])
    })
  }

  last({ of, at, item }: QmfField): Measurement | undefined {
    const sample = of === 'property' ? this.#properties : this.#statistics
    return sample && { value: toValue(item.type, sample.values[at]), time: sample.time }
  }

  /**
   * Gives the sample to who wants it. `time`: of the sample, microseconds. What is told at the end of an object says that it
   * is of the last sample, but may tell more: then only what changed since is new. `time` is that of the end there.
   */
  take(
    { header, properties, statistics }: ObjectSample,
    time: number,
    tell: (series: ObjectSeries, value: Value, time: number) => void,
  ): void {
    const [before, counted] = [this.#properties, this.#statistics]
    if (properties !== undefined) this.#properties = { values: properties, time }
    const isEnd = header.deleted !== 0n
    const isNew = statistics !== undefined && (isEnd || this.#sampled !== header.sampled)
    if (isNew) {
      this.#statistics = { values: statistics, time }
      this.#sampled = header.sampled
    }
    for (const series of this.#series.values()) {
      if (series.subscriptions.length === 0) continue
      const { of, at, item } = series.field
      const changes = (was: Sample | undefined, is: Sample['values']) => !isSame(was?.values[at], is[at])
      if (of === 'statistic') {
        if (isNew && (!isEnd || changes(counted, statistics))) tell(series, toValue(item.type, statistics[at]), time)
      } else if (properties !== undefined && (before === undefined || changes(before, properties))) {
        tell(series, toValue(item.type, properties[at]), time)
      }
    }
  }
}
