/**
 * The series of one broker: properties and statistics of its objects, its events, and whether it is connected. An
 * object keeps its last values as they came; they become values of metrics only if somebody wants them. All statistics
 * of a sample are new, even those that did not change; properties are reported only when they change.
 */
import type { Value } from '../../../protocol/monitor/value.ts'
import { type ObjectId, type Properties, QmfType, type QmfValue, type SchemaItem } from '../../../protocol/qmf/types.ts'
import { MAX_OBJECT_NAME } from '../../../protocol/qmf/v2/messages.ts'
import {
  isAhead,
  type LabelName,
  type Labels,
  type Measurement,
  type Series,
  type Subscription,
} from '../../kit/metrics.ts'
import { agentOf, shownId } from './addresses.ts'
import type { KnownTable, QmfField } from './catalogue.ts'
import type { ObjectSample } from './console-events.ts'
import { isSame, toValue } from './values.ts'

/** References in the name of an object lead to objects whose names have references, and so on, so far. */
const MAX_REFERENCES = 4

interface ObjectIdentity {
  readonly known: KnownTable
  readonly id: ObjectId
  /** The value of the parameter `object`. */
  readonly label: string
  /** The name of its broker. */
  readonly broker: string
  /** In the broker's time. */
  readonly created: bigint
  /** When subscribers of an earlier object with this label were sent VOID, microseconds since 1970; 0 if they were not. */
  readonly endedAt: number
  /** Another object of the broker; undefined if it is unknown. */
  readonly other: (id: ObjectId) => QmfObject | undefined
}
interface TimedValues {
  readonly values: readonly (QmfValue | undefined)[]
  /** Microseconds since 1970. */
  readonly time: number
}

export class QmfObject {
  readonly known: KnownTable
  readonly id: ObjectId
  readonly label: string
  readonly broker: string
  readonly #created: bigint
  /** The latest time that was not the broker's, microseconds since 1970. */
  #endedAt: number
  readonly #other: (id: ObjectId) => QmfObject | undefined
  readonly #wanted: (isWanted: boolean) => void
  readonly #series = new Map<QmfField, ObjectSeries>()
  #properties: TimedValues | undefined
  #statistics: TimedValues | undefined
  /** The time of the statistics' sample, in the broker's time. */
  #sampled: bigint | undefined
  /** Once it is known; index properties never change. */
  #mapName: string | undefined

  /** `wanted` is called when a series of the object becomes wanted or unwanted. */
  constructor(
    { known, id, label, broker, created, endedAt, other }: ObjectIdentity,
    wanted: (isWanted: boolean) => void,
  ) {
    this.known = known
    this.id = id
    this.label = label
    this.broker = broker
    this.#created = created
    this.#endedAt = endedAt
    this.#other = other
    this.#wanted = wanted
  }

  /** Returns the same series as long as somebody wants it. */
  series(field: QmfField): ObjectSeries {
    return this.#series.get(field) ?? new ObjectSeries(this, field)
  }

  get wantedSeries(): readonly ObjectSeries[] {
    return [...this.#series.values()]
  }

  /**
   * The name that qpidd gives it in QMF v2: package, class and index properties, references as such names. Undefined if an
   * object that it refers to is unknown.
   */
  mapName(depth = 0): string | undefined {
    if (this.#mapName !== undefined) return this.#mapName
    const { key, properties } = this.known.schema
    const parts: string[] = []
    for (const [at, { name, type, isIndex }] of properties.entries()) {
      // There is only one vhost, so a broker leaves it out.
      if (!isIndex || name === 'vhostRef') continue
      const value = this.#properties?.values[at]
      const isReference = type === QmfType.REFERENCE && typeof value === 'string'
      const part = isReference ? depth < MAX_REFERENCES && this.#other(value)?.mapName(depth + 1) : String(value ?? '')
      if (typeof part !== 'string') return undefined
      parts.push(part)
    }
    const mapName = `${key.packageName}:${key.className}:${parts.join(',')}`
    if (mapName.length > MAX_OBJECT_NAME) return undefined
    this.#mapName = mapName
    return mapName
  }

  /** Whether one of its names matches: its label, its object id, or its name in QMF v2. */
  matches(matcher: (text: string) => boolean): boolean {
    if (matcher(this.label) || matcher(shownId(this.id))) return true
    const mapName = this.mapName()
    return mapName !== undefined && matcher(mapName)
  }

  want(series: ObjectSeries, isWanted: boolean): void {
    if (isWanted) this.#series.set(series.field, series)
    else this.#series.delete(series.field)
    this.#wanted(isWanted)
  }

  /** Whether a newer object of the same agent has the same index properties, which means that this one is gone. */
  isReplacedBy(
    { known, id, created }: Pick<ObjectIdentity, 'known' | 'id' | 'created'>,
    properties: Properties,
  ): boolean {
    if (known !== this.known || created <= this.#created || agentOf(id) !== agentOf(this.id)) return false
    return known.schema.properties.every(({ isIndex }, at) => {
      return !isIndex || isSame(this.#properties?.values[at], properties[at])
    })
  }

  last({ of, at, item }: QmfField): Measurement | undefined {
    const sample = of === 'property' ? this.#properties : this.#statistics
    return sample && { value: this.#toValue(item, sample.values[at]), time: sample.time }
  }

  /**
   * The time of a sample: the broker's, or that of its arrival if the series had a VOID since. So values stay in the order
   * of their times, even if the broker's clock is behind.
   */
  timeAfterEnd(sampled: number, now: number): number {
    // Before the server's clock was set back: times that follow that end would be wrong for as long.
    if (sampled > this.#endedAt || isAhead(this.#endedAt, now)) return sampled
    this.#endedAt = Math.max(now, this.#endedAt + 1)
    return this.#endedAt
  }

  /**
   * Passes the sample on to the wanted series. `time` is that of the sample, in microseconds. The report of an object's
   * end claims the time of the last sample but may contain newer values: only what has changed is new then, with the
   * time of the end.
   */
  receive(
    { header, properties, statistics }: ObjectSample,
    time: number,
    emit: (series: ObjectSeries, value: Value, time: number) => void,
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
      const changes = (was: TimedValues | undefined, is: TimedValues['values']) => !isSame(was?.values[at], is[at])
      if (of === 'statistic') {
        if (isNew && (!isEnd || changes(counted, statistics))) emit(series, this.#toValue(item, statistics[at]), time)
      } else if (properties !== undefined && (before === undefined || changes(before, properties))) {
        emit(series, this.#toValue(item, properties[at]), time)
      }
    }
  }

  /** A reference becomes the name of the object, as the parameter `object` has it; the id, if the object is unknown. */
  #toValue({ type }: SchemaItem, value: QmfValue | undefined): Value {
    const label = type === QmfType.REFERENCE && typeof value === 'string' ? this.#other(value)?.label : undefined
    return toValue(type, label ?? value)
  }
}

/** Made on demand and kept while it is wanted: an object may have fifty. */
export class ObjectSeries implements Series {
  readonly subscriptions: Subscription[] = []
  readonly field: QmfField
  readonly #object: QmfObject

  constructor(object: QmfObject, field: QmfField) {
    this.#object = object
    this.field = field
  }

  get name(): string {
    return this.field.name
  }

  get labels(): Labels {
    return { name: this.name, broker: this.#object.broker, object: this.#object.label }
  }

  get last(): Measurement | undefined {
    return this.#object.last(this.field)
  }

  first(): Measurement | undefined {
    return this.last
  }

  wanted(isWanted: boolean): void {
    this.#object.want(this, isWanted)
  }

  matches(label: LabelName, matcher: (text: string) => boolean): boolean {
    if (label === 'broker') return matcher(this.#object.broker)
    return label === 'object' && this.#object.matches(matcher)
  }
}

/** A series without an object: an event, or `qmf.broker.up`. */
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

/** Stands for objects that do not exist yet, whatever their names will be: it has no values, but it can be wanted. */
export class ClassSeries extends BrokerSeries {
  override matches(label: LabelName, matcher: (text: string) => boolean): boolean {
    return label === 'object' || super.matches(label, matcher)
  }
}

export type QmfSeries = ObjectSeries | BrokerSeries
