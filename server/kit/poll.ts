/**
 * What a wing does of its own accord, such as reading, scraping or summing up: in steps, so that it shares the time of the event
 * loop, within the quota of its tenant, and only while its values can be taken and somebody wants them.
 */
import type { Quotas } from '../kernel/accounts/quotas.ts'
import type { Inlets } from '../kernel/channels/inlets.ts'
import type { Intake, IntakeRefusal } from '../kernel/channels/intake.ts'
import type { FairWork, Steps } from '../kernel/core/fair-work.ts'
import type { Demand } from '../kernel/metrics/demand.ts'
import type { Hub } from '../kernel/metrics/hub.ts'
import type { Sensor } from '../kernel/metrics/metric.ts'
import type { FaultySensor } from '../kernel/metrics/sensor-faults.ts'

export { ValueMeter } from '../kernel/accounts/quotas.ts'
export type { FaultySensor } from '../kernel/metrics/sensor-faults.ts'

/** Limits how many values the feeds of a tenant may bring in. */
export interface Meter {
  /** Counts one value; returns false if it must be discarded. */
  take(): boolean
  /** Milliseconds until more values are accepted, 0 if they are accepted now; for feeds that can wait. */
  readonly waitMs: number
}

export const UNMETERED: Meter = { take: () => true, waitMs: 0 }

/** Why the values of a sensor cannot be taken now. */
export interface NotNow {
  readonly reason: IntakeRefusal['reason'] | 'quota' | 'fenced'
  /** For people. */
  readonly detail: string
  /** When it is worth another try. */
  readonly waitMs: number
}

export interface Poll {
  /**
   * Does work in steps, as work of a tenant; values of one step enter their queues together. Returns the result, or a promise of it if
   * others have their turn before.
   */
  readonly work: FairWork['run']
  /** Does work of a sensor in steps, as work of its tenant. What a step throws is a fault of the sensor, and ends the work. */
  readonly run: Hub['run']
  /** Takes what was thrown for a sensor: it is counted there, and logged. */
  failed(sensor: FaultySensor, error: unknown): void
  /** The quota of a tenant for the values that its feeds bring in. */
  meterOf(tenant: string): Meter
  /** To be asked before values are fetched or taken; undefined if they can be taken. */
  refusal(sensor: Sensor & { readonly meter: Pick<Meter, 'waitMs'> }): NotNow | undefined
  /** Which series somebody wants, for sensors that have to ask for theirs. */
  readonly demand: Pick<Demand, 'born' | 'died' | 'matchAll'>
}

export interface PollServices {
  readonly hub: Hub
  readonly work: FairWork
  readonly inlets: Pick<Inlets, 'begin' | 'end'>
  readonly quotas: Quotas
  readonly intake: Pick<Intake, 'refusal'>
}

/** A fence is lifted by people. */
const FENCED_MS = 30_000
const SECOND_MS = 1_000

export function makePoll({ hub, work, inlets, quotas, intake }: PollServices): Poll {
  return {
    work: (party, steps) => work.run(party, together(inlets, steps)),
    run: (sensor, steps) => hub.run(sensor, steps),
    failed: (sensor, error) => hub.faults.report(sensor, error),
    meterOf: (tenant) => quotas.of(tenant).values,
    refusal(sensor) {
      if (hub.fences.has(sensor)) {
        return { reason: 'fenced', detail: `an operator has fenced ${sensor.family}*`, waitMs: FENCED_MS }
      }
      const { refusal } = intake
      if (refusal !== undefined) return notNow(refusal)
      const { waitMs } = sensor.meter
      const detail = 'the tenant has reached its quota of values in a second'
      return waitMs > 0 ? { reason: 'quota', detail, waitMs } : undefined
    },
    demand: hub.demand,
  }
}

/** Steps, during each of which inlets stay open. */
function* together<T>(inlets: PollServices['inlets'], steps: Steps<T>): Steps<T> {
  try {
    for (;;) {
      inlets.begin()
      try {
        const { done, value } = steps.next()
        if (done === true) return value
      } finally {
        inlets.end()
      }
      yield
    }
  } finally {
    // Nobody wants the rest if it is not done.
    steps.return(undefined as never)
  }
}

export function notNow({ reason, detail, retryAfterS }: IntakeRefusal): NotNow {
  return { reason, detail, waitMs: retryAfterS * SECOND_MS }
}
