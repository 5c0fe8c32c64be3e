/** Streams of values of one broker: of a property or statistic of an object, of an event, and whether it is there. */
import type { LabelName, Labels, Measurement, Series, Subscription } from '../../metrics/metric.ts'
import type { QmfField } from './catalogue.ts'

/** What a series needs of its object. */
export interface Holder {
  readonly broker: string
  readonly label: string
  readonly id: string
  last(field: QmfField): Measurement | undefined
  wanted(series: ObjectSeries, isWanted: boolean): void
}

/** Made when somebody asks for it, and kept while it is wanted: there may be fifty to an object. */
export class ObjectSeries implements Series {
  readonly subscriptions: Subscription[] = []
  readonly field: QmfField
  readonly #holder: Holder

  constructor(holder: Holder, field: QmfField) {
    this.#holder = holder
    this.field = field
  }

  get name(): string {
    return this.field.name
  }

  get labels(): Labels {
    return { name: this.name, broker: this.#holder.broker, object: this.#holder.label }
  }

  get last(): Measurement | undefined {
    return this.#holder.last(this.field)
  }

  first(): Measurement | undefined {
    return this.last
  }

  wanted(isWanted: boolean): void {
    this.#holder.wanted(this, isWanted)
  }

  matches(label: LabelName, matcher: (text: string) => boolean): boolean {
    const { broker, label: called, id } = this.#holder
    if (label === 'broker') return matcher(broker)
    return label === 'object' && (matcher(called) || matcher(id))
  }
}

/** What has no object: events, and `qmf.broker.up`. */
export class BrokerSeries implements Series {
  readonly subscriptions: Subscription[] = []
  readonly name: string
  readonly labels: Labels
  readonly isEvent: boolean
  last: Measurement | undefined
  readonly #wanted: (isWanted: boolean) => void

  constructor(name: string, broker: string, wanted?: (isWanted: boolean) => void) {
    this.name = name
    this.labels = { name, broker }
    this.isEvent = wanted !== undefined
    this.#wanted = wanted ?? (() => {})
  }

  first(): Measurement | undefined {
    return this.isEvent ? undefined : this.last
  }

  wanted(isWanted: boolean): void {
    this.#wanted(isWanted)
  }

  matches(label: LabelName, matcher: (text: string) => boolean): boolean {
    return label === 'broker' && matcher(this.labels.broker as string)
  }
}

/** Of objects that are not there yet, whatever they will be called: nobody is sent anything of it, but it can be wanted. */
export class ClassSeries extends BrokerSeries {
  override matches(label: LabelName, matcher: (text: string) => boolean): boolean {
    return label === 'object' || super.matches(label, matcher)
  }
}

export type QmfSeries = ObjectSeries | BrokerSeries
