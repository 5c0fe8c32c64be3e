/**
 * Other producers, as the hub sees them: what is selected with the argument `producer` is requested there, selection by
 * selection, and comes back with the labels that it has there [MON 9.13].
 */
import type { Owner } from '../../auth/permissions.ts'
import type { ArgumentList } from '../../protocol/monitor/arguments.ts'
import type { GapReason } from '../../protocol/monitor/constants.ts'
import type { Measurement, Metric, OpenLabels, SensorStatus, Series } from './metric.ts'

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
  /** A series has come, or was there before. */
  born(series: RemoteSeries): void
  /** A series has ended, or made room for others. */
  forget(series: RemoteSeries): void
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
}

/** The producers that one tenant sees. */
export interface RemoteSensor {
  readonly polled: 'remote'
  /** Its metrics may have any name. */
  readonly family: ''
  readonly owner: Owner
  readonly hasOpenLabels?: undefined
  /** The paths of the producers that there are now. */
  producers(): Iterable<string>
  /** As of any sensor: the metrics of all producers that may be asked for. */
  metrics(prefix?: string, after?: string): Iterable<Metric>
  /** The metric of this name; one that is not known may be there all the same, as in an open family. */
  metric(name: string): Metric | undefined
  status?(): SensorStatus
  /** Has the values come until the returned function is called. */
  follow(request: RemoteRequest, follower: RemoteFollower): () => void
  /** Resolves with what was measured until `deadlineMs` have passed, and never rejects. */
  ask(request: RemoteRequest, deadlineMs: number): Promise<readonly RemoteReading[]>
}

export interface RemoteTarget {
  readonly sensor: RemoteSensor
  /** A stand-in for all metrics where the name is a pattern. */
  readonly metric: Metric
  readonly request: RemoteRequest
  readonly labels: { readonly name: string; readonly producer: string }
  readonly args: ReadonlyMap<string, never>
  readonly open: OpenLabels
}
