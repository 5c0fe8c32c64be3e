/**
 * Faults of sensors. What a sensor throws while it measures makes that measurement VOID, what it throws for a packet costs the
 * packet; other sensors go on. `producer.sensors` shows the number at the sensor.
 */
import type { Owner, Reader } from '../../../auth/permissions.ts'
import { VOID } from '../../../protocol/monitor/value.ts'
import type { Clock } from '../core/clock.ts'
import { isSteps, type Steps } from '../core/fair-work.ts'
import { Faults } from '../core/faults.ts'
import type { Measurement, PolledMetric, SensorStatus } from './metric.ts'

/** The state of a sensor is `failed` for so long after a fault. */
const FAILED_MS = 60_000

/** A sensor, or a source of sensors. */
export interface FaultySensor {
  readonly family: string
  readonly owner: Owner
}

interface BoundSelection {
  readonly owner: { readonly tenant: string }
  readonly selection: { readonly name: string }
}

export class SensorFaults {
  readonly #clock: Pick<Clock, 'monotonicMs' | 'microseconds'>
  readonly #faults: Faults
  readonly #sensors = new WeakMap<object, { count: number; lastMs: number }>()
  /** What the faults of a sensor are counted for besides. */
  readonly #wholes = new WeakMap<object, object>()

  constructor(clock: Pick<Clock, 'monotonicMs' | 'microseconds'>, faults = new Faults(clock)) {
    this.#clock = clock
    this.#faults = faults
  }

  /** The faults of a sensor count for `whole`, too. */
  belongs(sensor: object, whole: object): void {
    this.#wholes.set(sensor, whole)
  }

  /** The log names the family, because the `status` of a sensor may throw too. */
  report(sensor: FaultySensor, error: unknown): void {
    this.#count(sensor)
    const whole = this.#wholes.get(sensor)
    if (whole !== undefined) this.#count(whole)
    const { family, owner } = sensor
    this.#faults.report(typeof owner === 'string' ? `sensor ${family}*` : `sensor ${family}* of ${owner.tenant}`, error)
  }

  /** What a binding selects could not be found out: that costs the binding alone. */
  reportBinding({ owner, selection }: BoundSelection, error: unknown): void {
    this.#faults.report(`binding to ${selection.name} of ${owner.tenant}`, error)
  }

  #count(sensor: object): void {
    const faults = this.#sensors.get(sensor) ?? { count: 0, lastMs: 0 }
    faults.count++
    faults.lastMs = this.#clock.monotonicMs()
    this.#sensors.set(sensor, faults)
  }

  /** Measures once; what the sensor throws or rejects with is reported, and gives VOID. */
  measure(
    { sensor, metric, args }: PolledMetric,
    reader: Reader,
    key?: string,
  ): Measurement | Promise<Measurement> | Steps<Measurement> {
    const failed = (error: unknown): Measurement => {
      this.report(sensor, error)
      return { value: VOID, time: this.#clock.microseconds() }
    }
    try {
      const measured = sensor.measure(metric, args, reader, key)
      if (isSteps<Measurement>(measured)) return guardedSteps(measured, failed)
      return measured instanceof Promise ? measured.catch(failed) : measured
    } catch (error) {
      return failed(error)
    }
  }

  /** The status of a sensor with its faults, if it had any. */
  shown(sensor: object, status: SensorStatus): SensorStatus {
    const faults = this.#sensors.get(sensor)
    if (faults === undefined) return status
    const isRecent = this.#clock.monotonicMs() - faults.lastMs < FAILED_MS
    return {
      ...status,
      state: isRecent ? 'failed' : status.state,
      counters: { ...status.counters, faults: faults.count },
    }
  }
}

function* guardedSteps<T>(steps: Steps<T>, failed: (error: unknown) => T): Steps<T> {
  try {
    return yield* steps
  } catch (error) {
    return failed(error)
  }
}
