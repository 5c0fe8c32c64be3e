/** Polls sensors at intervals. Requests with the same metric, arguments and interval share one timer and one measurement. */
import type { Reader } from '../../../auth/permissions.ts'
import { VOID } from '../../../protocol/monitor/value.ts'
import type { Clock, Timer } from '../core/clock.ts'
import { FairWork, isSteps } from '../core/fair-work.ts'
import { keyOfArguments } from './arguments.ts'
import { Fences } from './fences.ts'
import type { Measurement, PolledMetric, PolledSensor } from './metric.ts'
import { SensorFaults } from './sensor-faults.ts'

interface Group {
  readonly key: string
  readonly target: PolledMetric
  readonly identity: Reader
  /** They never throw. */
  readonly listeners: Set<(measured: Measurement) => void>
  readonly timer: Timer
}

export class Poller {
  readonly #clock: Clock
  readonly #fences: Fences
  readonly #faults: SensorFaults
  readonly #work: FairWork
  /** By sensor, because two sensors may have a metric of the same name. */
  readonly #groups = new WeakMap<PolledSensor, Map<string, Group>>()

  constructor(clock: Clock, fences = new Fences(), faults = new SensorFaults(clock), work = new FairWork(clock)) {
    this.#clock = clock
    this.#fences = fences
    this.#faults = faults
    this.#work = work
  }

  /** Measures at once for this listener, then every `intervalMs` for all that share the timer. The returned function ends it. */
  poll(
    target: PolledMetric,
    identity: Reader,
    intervalMs: number,
    listener: (measured: Measurement) => void,
  ): () => void {
    const key = keyOf(target, identity, intervalMs)
    const group = this.#groups.get(target.sensor)?.get(key) ?? this.#open(key, target, identity, intervalMs)
    group.listeners.add(listener)
    if (this.#fences.has(target.sensor)) listener({ value: VOID, time: this.#clock.microseconds() })
    else {
      this.#measure(group, (measured) => {
        if (measured !== undefined && group.listeners.has(listener)) listener(measured)
      })
    }
    return () => {
      group.listeners.delete(listener)
      if (group.listeners.size === 0) this.#close(group)
    }
  }

  #open(key: string, target: PolledMetric, identity: Reader, intervalMs: number): Group {
    const listeners = new Set<(measured: Measurement) => void>()
    // A source that is slower than the interval is asked again only after it has answered.
    let asked = false
    const timer = this.#clock.setInterval(() => {
      if (asked) return
      if (this.#fences.has(target.sensor)) {
        this.#fences.countDiscarded(target.sensor)
        return
      }
      asked = true
      this.#measure(group, (measured) => {
        asked = false
        if (measured !== undefined) for (const listener of listeners) listener(measured)
      })
    }, intervalMs)
    const group: Group = { key, target, identity, listeners, timer }
    this.#groups.set(target.sensor, (this.#groups.get(target.sensor) ?? new Map()).set(key, group))
    return group
  }

  /** A measurement that is pending when its sensor is fenced is discarded: VOID was sent at that moment. */
  #measure({ target, identity, key }: Group, to: (measured: Measurement | undefined) => void): void {
    const { sensor } = target
    const measured = this.#faults.measure(target, identity, key)
    deliver(isSteps<Measurement>(measured) ? this.#work.run(identity, measured) : measured, (measured) => {
      to(this.#fences.has(sensor) ? undefined : measured)
    })
  }

  #close(group: Group): void {
    const { key, target, timer } = group
    const groups = this.#groups.get(target.sensor)
    if (groups?.get(key) !== group) return
    groups.delete(key)
    this.#clock.clear(timer)
    target.sensor.forget?.(key)
  }
}

function keyOf({ sensor, metric, args }: PolledMetric, identity: Reader, intervalMs: number): string {
  return JSON.stringify([metric.name, keyOfArguments(args), intervalMs, sensor.personal ? keyOfReader(identity) : ''])
}

/** A key that two readers share if they are shown the same. */
function keyOfReader({ userId, scope }: Reader): string {
  return JSON.stringify([userId, scope])
}

function deliver(measured: Measurement | Promise<Measurement>, to: (measured: Measurement) => void): void {
  if (measured instanceof Promise) void measured.then(to)
  else to(measured)
}
