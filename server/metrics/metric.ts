/**
 * What a metric is, and what a sensor is to the rest of the server. Sensors implement one of the three shapes;
 * they know nothing of channels, sessions or the wire's ids.
 */
import type { Identity, Owner, Reader } from '../../auth/permissions.ts'
import type { BasicType } from '../../protocol/monitor/constants.ts'
import type { Field, Value } from '../../protocol/monitor/value.ts'

/** continuous: can be measured at any time; event: comes when something happens. */
export type Kind = 'continuous' | 'event'

export interface Parameter {
  readonly name: string
  readonly type: BasicType
  readonly description: string
  /** It selects a source: may hold `*`, and left out it is `*` or, with `own`, this producer. */
  readonly selects?: 'any' | 'own'
}

export interface Metric {
  readonly name: string
  readonly kind: Kind
  /** The type of its values; undefined while nothing is known of it: open families. */
  readonly type: BasicType | undefined
  readonly unit: string
  readonly description: string
  readonly parameters: readonly Parameter[]
  /** What else its source says of it, for the catalogue. Asked for when it is shown. */
  readonly details?: () => readonly Field[]
}

/** Arguments after conversion to the declared types, without those every metric takes. */
export type Arguments = ReadonlyMap<string, Value['value']>

/** The fields of a pattern's REC in their order [MON 9 Patterns]; `value` is last. */
export const labelNames = ['name', 'host', 'agent', 'source', 'index', 'broker', 'object'] as const
export type LabelName = (typeof labelNames)[number]
/** What tells a series apart. A series that could have an index and has none has the empty one. */
export type Labels = Readonly<Partial<Record<LabelName, string>>>

/** A value and its time, microseconds since 1970. */
export interface Measurement {
  readonly value: Value
  readonly time: number
}

/** What `producer.sensors` tells of a sensor. */
export interface SensorStatus {
  readonly name: string
  /** listening, measuring, off or failed */
  readonly state: string
  readonly detail: string
  readonly counters: Readonly<Record<string, number>>
}

interface Family {
  /** The prefix of its metric names, with the dot. */
  readonly family: string
  readonly owner: Owner
  /** What the catalogue shows: all metrics of a closed family, those seen of an open one. */
  metrics(): Iterable<Metric>
  /** The metric of a name; in an open family every well-formed name has one. */
  metric(name: string): Metric | undefined
  /** Without it the sensor does not stand in `producer.sensors`. */
  status?(): SensorStatus
}

/** Measured when asked. */
export interface PolledSensor extends Family {
  readonly polled: true
  /** Throws StatusError INVALID_ARGUMENT if these arguments name nothing. */
  check(metric: Metric, args: Arguments): void
  /** `key`: who asks again and again, so that rates have a period of their own. VOID: cannot be measured now. A promise never rejects. */
  measure(metric: Metric, args: Arguments, identity: Reader, key?: string): Measurement | Promise<Measurement>
  /** That key is not asked for any more. */
  forget?(key: string): void
  /** True if two identities get different values. */
  readonly personal: boolean
  /** Labels of its readings, for patterns. */
  labels(metric: Metric): Labels
}

/** Sends by itself. It keeps the last value of each series, and tells the hub of births, values and deaths. */
export interface ListeningSensor extends Family {
  readonly polled: false
  /** All series alive, or those of one metric. */
  series(name?: string): Iterable<Series>
  /**
   * Of what the sensor has to ask for: what there may be one day, as series that match whatever might come, and never have
   * a value. Who wants them wants the sensor to look.
   */
  expected?(name?: string): Iterable<Series>
  /** The last value while it is fresh. */
  last(series: Series): Measurement | undefined
}

/** How far a binding has come in a metric that has a past of its own. It is kept with the binding, over restarts. */
export interface ResumePoint {
  /** The number of the last event that it passed; undefined before it began. */
  readonly reached: number | undefined
  /** Stored together with what was sent before. */
  reach(number: number): void
}

/** Things that happen; no last value, no series. */
export interface EventSensor extends Family {
  readonly polled: 'event'
  /** Who may see an event is judged by the sensor, per event. */
  subscribe(
    metric: Metric,
    identity: Identity,
    listener: (event: Measurement) => void,
    args: Arguments,
    place: ResumePoint,
  ): () => void
}

export type Sensor = PolledSensor | ListeningSensor | EventSensor

/** Takes frames of values: `head` and `tail` are valid only during the call. `time`: microseconds since 1970. */
export interface Sink {
  append(head: Uint8Array, tail: Uint8Array, time: number): void
}

/** Somebody wants the values of a series: its frame template, and where the frames go. */
export interface Subscription {
  readonly framePrefix: Uint8Array
  readonly sink: Sink
  /** Where it stands among the taps of its series. */
  at: number
}

/** A stream of values of one metric from one source. Owned by its sensor; `taps` are the hub's alone. */
export interface Series {
  readonly subscriptions: Subscription[]
  readonly name: string
  readonly labels: Labels
  /** Its values are events: nobody is sent VOID when it goes [MON 9 Kinds]. */
  readonly isEvent?: boolean
  /** Further names a selecting argument may match: a spoofed host is found by name and by address. */
  matches(label: LabelName, matcher: (text: string) => boolean): boolean
  /** What whoever binds it is given at once, as of what is polled [MON 9 Kinds]: where nothing changes, nothing else comes. */
  first?(): Measurement | undefined
  /** Of what the sensor has to ask for: an instance selects it (true), or none does any more; not told when it died. */
  wanted?(isWanted: boolean): void
}
