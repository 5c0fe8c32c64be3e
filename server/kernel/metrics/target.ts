/**
 * What a selection selects and a binding follows. Each kind of sensor has targets of its own (local-targets.ts, remote-target.ts),
 * and nobody has to tell them apart. Series are no targets, since they are not searched for: they are born (followed-series.ts).
 */
import type { Identity } from '../../../auth/permissions.ts'
import { XdrWriter } from '../../../protocol/bytes/writer.ts'
import { VOID, writeTyped } from '../../../protocol/monitor/value.ts'
import type { Steps } from '../core/fair-work.ts'
import type { Fences } from './fences.ts'
import type { Arguments, Labels, Measurement, Metric, OpenLabels, ResumePoint, Sensor, Series, Sink } from './metric.ts'
import type { Poller } from './poller.ts'

/** What a search finds. */
export interface Target {
  readonly sensor: Sensor
  readonly metric: Metric
  readonly args: Arguments
  readonly labels: Labels
  /** The labels that are sent with each value. */
  readonly open: OpenLabels
  /** Tells several of one metric apart: a part of a source that a pattern selects, or a producer. */
  readonly part?: string | undefined
  /** Has its values appended from now on. */
  follow(follower: Follower, hub: TargetHub): FollowedItem
}

/** The binding that follows. */
export interface Follower {
  readonly instance: {
    readonly owner: Identity
    readonly selection: { readonly intervalMs: number }
    framePrefix(labels: Labels, open: OpenLabels): Uint8Array
    framePrefixOf(series: Series, open: OpenLabels): Uint8Array
  }
  readonly sink: Sink
  readonly resumePoint: ResumePoint
  readonly isPaused: boolean
}

/** What the hub has for all targets. */
export interface TargetHub {
  readonly fences: Pick<Fences, 'has' | 'countDiscarded'>
  readonly poller: Pick<Poller, 'poll'>
  /** Appends what it is given, and never throws. */
  appending(sensor: Sensor, framePrefix: Uint8Array, sink: Sink): (measured: Measurement) => void
}

/** Something that a binding has, until it ends. A kind has the methods that concern it. */
export interface FollowedItem {
  readonly sensor: Sensor
  /** As a search has found it. Undefined for a series, which ends when it dies. */
  readonly target?: Target
  readonly series?: Series
  /** The prefix of its values, or of a VOID for all of them. */
  readonly framePrefix: Uint8Array
  /** Takes what has come for others before. */
  catchUp?(): Steps<void>
  /** Its sensor is fenced. Returns true if that ends it. */
  fenced?(time: number): boolean
  /** Applies a change of rights to what it consists of. Returns whether it has lost some. */
  judge?(): Steps<boolean>
  /** The binding pauses, or goes on. */
  pause?(): void
  /** The sink is durable, or not any more. */
  again?(): void
  /** The sink wants another resolution. */
  thin?(): void
  end(): void
}

/** VOID as it stands in a frame. */
export const ENCODED_VOID: Uint8Array = encodedVoid()

function encodedVoid(): Uint8Array {
  const writer = new XdrWriter(8)
  writeTyped(writer, VOID)
  return writer.copy()
}
