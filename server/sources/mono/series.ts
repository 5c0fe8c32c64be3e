/**
 * One counter of one agent: offered, asked for, or sent. Whoever taps it makes its agent send it, and when nobody does any
 * more the agent is asked to stop, unless it was there from the beginning or somebody asked for it by a control.
 */
import type { MonoHeader, MonoName } from '../../../protocol/mono/constants.ts'
import { type CataloguedSeries, type MetricMetadata, NO_METADATA } from '../../metrics/catalogue.ts'
import type { LabelName, Labels, Measurement, Subscription } from '../../metrics/metric.ts'

export class MonoSeries implements CataloguedSeries {
  readonly name: string
  /** They change with the name of its agent, while nobody knows it. */
  labels: Labels
  readonly subscriptions: Subscription[] = []
  metadata: MetricMetadata = NO_METADATA
  /** How the agent is asked for it: as List calls it, before that as its header does. */
  counter: MonoName
  isListed = false
  /** While the agent sends it. */
  header: MonoHeader | undefined
  /** The last value; an agent sends only what changed. */
  last: Measurement | undefined
  isWanted = false
  /** It stays though nobody wants it. */
  isRequired = false
  /** Add or Remove was sent and is not answered. */
  isAsked = false
  /** The agent did not want to send it: not asked again before somebody new wants it. */
  isRefused = false
  readonly #changed: (series: MonoSeries) => void

  constructor(name: string, agent: string, called: MonoName, changed: (series: MonoSeries) => void) {
    this.name = name
    this.labels = { name, agent }
    this.counter = called
    this.#changed = changed
  }

  wanted(isWanted: boolean): void {
    this.isWanted = isWanted
    this.isRefused = false
    this.#changed(this)
  }

  matches(label: LabelName, matcher: (text: string) => boolean): boolean {
    return label === 'agent' && matcher(this.labels.agent as string)
  }
}
