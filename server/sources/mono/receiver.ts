/** What an agent needs of the sensor that it belongs to. */
import type { Value } from '../../../protocol/monitor/value.ts'
import type { MonoSeries } from './series.ts'

export interface MonoCounters {
  values: number
  samplings: number
  added: number
  removed: number
  /** Answers to Add and Remove other than OK. */
  refused: number
  /** Requests that were not answered in time. */
  unanswered: number
  /** Counters whose name cannot be a metric's, or is another's. */
  badName: number
  /** Samples of counters that are not served. */
  unserved: number
  /** Samplings whose time cannot be: they get the time of their arrival. */
  badTime: number
}

/** The sensor, which all agents share. */
export interface MonoReceiver {
  readonly counters: MonoCounters
  readonly clock: { monotonicMs(): number; microseconds(): number }
  /** Whether one more series may be made; counts it if not. */
  hasRoom(): boolean
  born(series: MonoSeries): void
  /** It is known, or not known any more, what the series is. */
  metadataChanged(series: MonoSeries): void
  received(series: MonoSeries, value: Value, time: number): void
  died(series: MonoSeries): void
}
