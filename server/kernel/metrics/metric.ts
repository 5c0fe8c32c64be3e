/**
 * The shapes that sensors share with the rest of the server: metrics, series, and four kinds of sensor, the last for
 * other producers. A sensor implements one of them; it knows nothing of channels, sessions or the ids of the protocol.
 */
import type { Identity, Owner, Reader } from '../../../auth/permissions.ts'
import type { ArgumentList } from '../../../protocol/monitor/arguments.ts'
import type { ProducerName } from '../../../protocol/monitor/capabilities.ts'
import type { BasicType, GapReason, labelNames } from '../../../protocol/monitor/constants.ts'
import type { Field, Value } from '../../../protocol/monitor/value.ts'
import type { Steps } from '../core/fair-work.ts'

/** A `continuous` metric can be measured at any time; an `event` metric has a value whenever something happens. */
export type Kind = 'continuous' | 'event'

export interface Parameter {
  readonly name: string
  readonly type: BasicType
  readonly description: string
  /**
   * Set if the argument selects a source, and so may hold `*`. If it is left out, it is `*`; with `own` it is this producer; with
   * `part`, as for a disk of a host, the whole is meant; its name is one of `partLabels`.
   */
  readonly selects?: 'any' | 'own' | 'part'
  /** An integer is taken too, as its digits. */
  readonly isNumber?: boolean
}

export interface Metric {
  readonly name: string
  readonly kind: Kind
  /** The type of its values; undefined while it is unknown, as it can be in open families. */
  readonly type: BasicType | undefined
  readonly unit: string
  readonly description: string
  readonly parameters: readonly Parameter[]
  /**
   * True if its values only grow until their source starts again, false if they go up and down; undefined if that is not known,
   * or if sources disagree.
   */
  readonly isCounter?: boolean | undefined
  /** Set if its values are samples of a histogram or summary of Prometheus, as `_bucket`, `_sum` and `_count` are. */
  readonly distribution?: 'histogram' | 'summary' | undefined
  /** Besides its parameters it takes any STRING argument, as the name of a label. */
  readonly takesLabels?: boolean
  /** Nobody has described it yet: it is of another producer, whose catalogue is not known, or does not have it. */
  readonly isUnknown?: true
  /** For GET /metrics: how its records are shown there, or `none` if it says what there is rather than how much. */
  readonly exposition?: RecordExposition | 'none'
  /** Further fields from its source for the catalogue, computed when they are shown. */
  readonly details?: () => readonly Field[]
}

/** The order of the catalogue. */
export function byName({ name: one }: Pick<Metric, 'name'>, { name: other }: Pick<Metric, 'name'>): number {
  return one < other ? -1 : Number(one > other)
}

/** Arguments after conversion to the declared types, without those that every metric takes. */
export type Arguments = ReadonlyMap<string, Value['value']>

/** A label with a place of its own in RECs. */
export type LabelName = (typeof labelNames)[number]
/** The labels that name a part of a source. Parts come and go. */
export const partLabels = ['cpu', 'mount', 'device', 'interface'] as const satisfies readonly LabelName[]
/**
 * The labels that identify a series, by name. A series that could have an index but has none carries the empty index; with
 * open labels, one that is absent is the empty text. Read them by `labelText`: a name may be `constructor`.
 */
export interface Labels extends Readonly<Partial<Record<LabelName, string>>> {
  readonly [other: string]: string | undefined
}
/** The labels that are sent with each value; if there are none, the value stands alone. */
export interface OpenLabels {
  has(name: string): boolean
  readonly size: number
}

/** A value and its time, microseconds since 1970. */
export interface Measurement {
  readonly value: Value
  readonly time: number
}

/** What `producer.sensors` reports about a sensor. */
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
  /** Set if it takes values that others publish, where rules allow PUBLISH; otherwise its values come from its source alone. */
  readonly isPublished?: true
  /**
   * Its series have any labels, and so have all its metrics: each argument that is no parameter is a STRING and selects by the
   * label of its name [MON 9 Labels]. Only sensors that listen.
   */
  readonly hasOpenLabels?: boolean
  readonly ofNodes?: undefined
  /**
   * The metrics for the catalogue, ascending by name: all of a closed family, those seen so far of an open one. A family of
   * many gives only those whose names begin with `prefix` and come after `after`; others may ignore both. It may be read over
   * several turns, while metrics come and go.
   */
  metrics(prefix?: string, after?: string): Iterable<Metric>
  /** The metric of this name; in an open family every well-formed name has one. */
  metric(name: string): Metric | undefined
  /** Grows with each change of `metrics`; undefined if they do not change. */
  readonly metricsChanges?: number
  /** A sensor without it is not listed in `producer.sensors`. */
  status?(): SensorStatus
}

/** A sensor that measures on request. */
export interface PolledSensor extends Family {
  readonly polled: true
  /** Throws StatusError INVALID_ARGUMENT if these arguments name nothing. */
  check(metric: Metric, args: Arguments): void
  /**
   * Measures once; VOID means that it cannot be measured now, and so does an exception, which is counted and logged. What
   * takes long, such as a list of thousands, is given in steps. `key` identifies a repeated request, so that each has its own
   * period for rates.
   */
  measure(
    metric: Metric,
    args: Arguments,
    identity: Reader,
    key?: string,
  ): Measurement | Promise<Measurement> | Steps<Measurement>
  /** Reports that no more requests with this key will come. */
  forget?(key: string): void
  /** True if two identities get different values. */
  readonly personal: boolean
  /** The labels of its measurements, for patterns. */
  labels(metric: Metric): Labels
  /**
   * The node of a cluster that it measures, which is the label `host` of all its metrics. A COLLECT that leaves out `host` is given
   * this one, so that its id still means the same machine when another node serves it.
   */
  readonly node?: string | undefined
  /** What a parameter that selects a part may name now, in the order of answers. */
  parts?(metric: Metric, parameter: string): readonly string[]
}

/** A sensor that receives values. It keeps the last value of each series and reports births, values and deaths to the hub. */
export interface ListeningSensor extends Family {
  readonly polled: false
  /**
   * All live series, or those of one metric. A sensor of many gives only those whose names begin with `prefix`, and of names that
   * `isWanted` rejects one series at most; others may ignore both. They may be read over several turns, while series come and go:
   * one that is there all the time is given once.
   */
  series(name?: string, prefix?: string, isWanted?: (name: string) => boolean): Iterable<Series>
  /** Whether one of its series has a text for this label. A sensor without it has not counted. */
  hasLabel?(label: string): boolean
  /**
   * Placeholders for series that the sensor could request but has not seen yet. They match whatever may come and never have
   * a value; demand for one makes the sensor look.
   */
  expected?(name?: string): Iterable<Series>
  /**
   * Called before the last values are read, by a sensor that does not receive everything that it could: requests the series
   * that `selects` may select, if nobody receives them. Resolves soon, and never rejects; undefined if there is nothing to wait
   * for. The labels are those that are known without the series; of names that are unknown, the expression says what follows the
   * family in them.
   */
  refresh?(selects: (name: string | RegExp, labels: Labels) => boolean): Promise<unknown> | undefined
  /** The last value, as long as it is fresh. */
  last(series: Series): Measurement | undefined
  /** When the host of a series was heard of last, monotonic milliseconds; undefined if it has none. */
  hostHeardMs?(series: Series): number | undefined
}

/** How far a binding has advanced in a metric that keeps a history. It is stored with the binding and survives restarts. */
export interface ResumePoint {
  /** The number of the last event that was passed on; undefined before the first. */
  readonly reached: number | undefined
  /** Advances; the new position is stored together with the values sent before it. */
  reach(number: number): void
}

/** A sensor of events; it has no last values and no series. */
export interface EventSensor extends Family {
  readonly polled: 'event'
  /**
   * Reports events from now on; the sensor judges for each event whether this identity may see it. `queue`: where they go, if that is
   * stored, for a sensor that has them wait until they are.
   */
  subscribe(
    metric: Metric,
    identity: Identity,
    listener: (event: Measurement) => void,
    args: Arguments,
    place: ResumePoint,
    queue?: HeldQueue,
  ): () => void
}

/** A sensor of this producer. */
export type LocalSensor = PolledSensor | ListeningSensor | EventSensor
export type Sensor = LocalSensor | RemoteSensor

/** A family with a sensor for each tenant, which is made when it is first needed: by a value, or by a name that may select one. */
export interface TenantFamily {
  /** The prefix of its metric names, with the dot. */
  readonly family: string
  /** Adds the sensor of a tenant to the hub, unless it is there. */
  open(tenant: string): void
  /** Ends all series of a tenant, which was removed: another one may have its name. */
  endSeries(tenant: string): Steps<void>
}

/**
 * Takes values, and never throws: `framePrefix` and `encodedValue` are valid only during the call; `time` is in microseconds
 * since 1970.
 */
export interface Sink {
  /** Whether what is appended survives a restart. */
  readonly isDurable?: boolean
  /** What it appends to. */
  readonly queue?: HeldQueue | undefined
  /** Microseconds: of the values of a series in one such span, only the first is wanted. If it is 0 or left out, all are. */
  readonly resolutionUs?: number
  append(framePrefix: Uint8Array, encodedValue: Uint8Array, time: number): void
  /** Values of other producers were lost on their way to it. */
  lost?(loss: RemoteLoss): void
  /** Called when a polled metric is not read for it, because the binding pauses. */
  paused?(): void
}

/** Nothing that is appended from `holdBack` on is sent before the release. */
export interface HeldQueue {
  holdBack(): { release(): void }
}

/** What a subscription needs of whoever takes its values. */
export type SubscribedSink = Pick<Sink, 'append' | 'isDurable' | 'queue'>

/** A subscription to a series: the prefix of its frames, and the sink that takes them. */
export interface Subscription {
  readonly framePrefix: Uint8Array
  readonly sink: SubscribedSink
  /** Its index in the `subscriptions` of its series. */
  at: number
}

export interface KeptSamples {
  /** Microseconds; the time of the last one. */
  readonly last: number
}

/** A stream of values of one metric from one source. Its sensor owns it; only the hub changes `subscriptions`, and recent.ts `recent`. */
export interface Series {
  readonly subscriptions: Subscription[]
  /** What is kept of its recent values (recent.ts); undefined if nothing is. */
  recent?: KeptSamples | undefined
  readonly name: string
  readonly labels: Labels
  /** True if its values are events: no VOID is sent when it ends [MON 9 Kinds]. */
  readonly isEvent?: boolean
  /**
   * Set if it stands for series of a family with open labels whose names are unknown, and `labels` are those that are known of
   * them: what follows the family in their names. Those who ask for the family by its prefix may mean other names as well.
   */
  readonly anyName?: RegExp
  /** Whether a selecting argument matches; a spoofed host, for example, is found by its name and by its address. */
  matches(label: string, matcher: (text: string) => boolean): boolean
  /** The value that a new subscription gets at once, as with polled metrics [MON 9 Kinds]; where nothing changes, no other would come. */
  first?(): Measurement | undefined
  /** For series that the sensor has to request: called with true when the first instance selects it and with false after the last one; not called after its death. */
  wanted?(isWanted: boolean): void
}

/** How records of a metric stand in the text of GET /metrics; fields that are not named here are left out. */
export interface RecordExposition {
  /** The fields that tell the records of a list apart, with the labels that they become. */
  readonly labels?: Readonly<Record<string, string>>
  /** The STRING fields of a record that stand together in one sample, `<metric>_info`. */
  readonly info?: readonly string[]
  readonly fields: Readonly<Record<string, FieldExposition>>
  /** The fields that are lists of records, and how these stand there. */
  readonly lists?: Readonly<Record<string, RecordExposition>>
  /** The field of the last record that, given as the argument `after`, continues a list. */
  readonly after?: string
}

export interface FieldExposition {
  /** Follows the name of the metric and `_`. */
  readonly name: string
  readonly help: string
  /** As that of a metric. */
  readonly isCounter?: boolean
  /** How the number is converted: from milliseconds to seconds, or from a time in microseconds (0: none) to its age in seconds. */
  readonly convert?: 'milliseconds' | 'age'
  /** The field is a STRING, and the sample says whether it is this one. */
  readonly is?: string
  /** The field is a REC, and this label has the name of each of its fields. */
  readonly label?: string
}

/** What is asked of one producer. Two requests with the same texts and numbers are the same request. */
export interface RemoteRequest {
  /** The path of the producer: the name of an upstream here, then of one that that consumes, and so on: `east/rack1`. */
  readonly producer: string
  /** A name or pattern. */
  readonly name: string
  /** In the types that were declared or given; without `producer` and `deadline_ms`. */
  readonly args: ArgumentList
}

/** A series of a producer under one request: what overlapping requests bring are series of their own. */
export interface RemoteSeries extends Series {
  /** True if its values come without labels. `labels` has those that come with them, and `producer`. */
  readonly isBare: boolean
  /** What came last, encoded; undefined before the first. */
  readonly known: { readonly tail: Uint8Array; readonly time: number } | undefined
}

/** The part of a series that rights and labels depend on. */
export type RemoteShape = Pick<RemoteSeries, 'name' | 'labels' | 'isBare'>

export interface RemoteReading {
  readonly series: RemoteShape
  readonly measured: Measurement
}

/** Someone for whom a request is followed. */
export interface RemoteFollower {
  /** Whether no value may be lost: nothing is committed at the producer before it is stored here. */
  readonly isDurable: boolean
  /** Where its values go; undefined if that cannot be held back. */
  readonly queue: HeldQueue | undefined
  /** A series has come. */
  born(series: RemoteSeries): void
  /** A series has ended, or made room for others. */
  forget(series: RemoteSeries): void
  /** What it follows comes from elsewhere now: it has to follow it again. */
  again(): void
  /** Values were lost at the producer, or on the way from it. */
  lost(loss: RemoteLoss): void
}

/** As a GAP has it [MON 3.4]. */
export interface RemoteLoss {
  readonly producer: string
  readonly count: number
  readonly from: number
  readonly to: number
  readonly reason: GapReason
  /** The values may have been for any binding of the channel. */
  readonly isOfSeveral?: boolean
}

export interface RemoteTap {
  /** The series that have come for others before; the follower has to take them itself, over several turns. */
  readonly series: Iterable<RemoteSeries>
  end(): void
}

/** The producers that one tenant sees, or the nodes of this producer that take feeds of the tenant for it. */
export interface RemoteSensor {
  readonly polled: 'remote'
  /** Its metrics may have any name. */
  readonly family: ''
  /**
   * Set if nodes of this producer are meant: the prefixes of the families that they take, with the dot. Their series are those of
   * this producer, and have no label `producer`.
   */
  readonly ofNodes?: readonly string[]
  readonly owner: Owner
  readonly hasOpenLabels?: undefined
  /** The producers that there are now, by their paths. */
  producers(): Iterable<ProducerName>
  /** As of any sensor: the metrics of all producers that may be asked for. */
  metrics(prefix?: string, after?: string): Iterable<Metric>
  /** The metric of this name; one that is not known may be there all the same, as in an open family. */
  metric(name: string): Metric | undefined
  readonly metricsChanges?: number
  status?(): SensorStatus
  /** Has the values come from now on. */
  follow(request: RemoteRequest, follower: RemoteFollower): RemoteTap
  /** Resolves with what was measured until `deadlineMs` have passed, and never rejects. */
  ask(request: RemoteRequest, deadlineMs: number, userId: number): Promise<readonly RemoteReading[]>
}

/** What is measured: a metric of a sensor with its arguments. */
export interface PolledMetric {
  readonly sensor: PolledSensor
  readonly metric: Metric
  readonly args: Arguments
}
