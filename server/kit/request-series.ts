/** The series of a request, each of which is looked up once: by the number that its decoder knows it by, or by its key. */
import type { MetricMetadata } from '../kernel/metrics/catalogue.ts'
import { shownName } from '../kernel/metrics/labels.ts'
import { type Columns, SeriesReader } from './columns.ts'
import type { NumberedSeries } from './known-series.ts'
import type { LabelledSensor } from './labelled-sensor.ts'
import { LabelledSeries } from './labelled-series.ts'
import { nameOfKey } from './series-key.ts'

export class RequestSeries {
  readonly count: number
  readonly #sensor: LabelledSensor
  readonly #reader: SeriesReader
  readonly #remembered: Uint32Array
  readonly #numbered: NumberedSeries<LabelledSeries>
  readonly #found: (LabelledSeries | undefined)[] = []
  /** Those that values may have been taken for. */
  readonly #begun: LabelledSeries[] = []

  constructor(sensor: LabelledSensor, columns: Columns) {
    const { series, remembered, numbering } = columns
    this.count = series.ends.length
    this.#sensor = sensor
    this.#reader = new SeriesReader(columns)
    this.#remembered = remembered
    this.#numbered = sensor.known.numberedBy(numbering)
  }

  key(place: number): string {
    return this.#reader.key(place)
  }

  /** What the request says of the series at a place. */
  metadata(place: number): MetricMetadata | undefined {
    return this.#reader.metadata(place)
  }

  /** The series at a place, if there is one; to be called for one place after the other. */
  find(place: number): LabelledSeries | undefined {
    const number = this.#remembered[place] as number
    let found = this.#numbered.of(number)
    if (found === undefined) {
      found = this.#sensor.find(this.key(place))
      if (found !== undefined) this.#numbered.keep(number, found)
    }
    this.#found.push(found)
    return found
  }

  /** The series at a place, which was looked for before and is born if it is new; the reason for people if it cannot be taken. */
  begun(place: number): LabelledSeries | string {
    const found = this.#found[place]
    // It may have ended meanwhile.
    const series = found?.isLive ? found : this.#sensor.byKey(this.key(place))
    if (!(series instanceof LabelledSeries)) return `${shownName(nameOfKey(this.key(place)))}: ${series.detail}`
    this.#begun.push(series)
    return series
  }

  /** Whatever was taken comes again, and is new then. */
  forget(): void {
    for (const series of this.#begun) series.forget()
  }
}
