/**
 * Sensors whose values are kept out until somebody lets them in again. A fenced listening sensor has no taps, so that a value
 * costs nothing more for it; only what is measured or happens seldom asks here each time.
 */
import type { Sensor } from './metric.ts'

type Named = Pick<Sensor, 'owner' | 'status'>

/** As `producer.sensors` calls it; undefined where it does not stand there. */
export function sensorName(sensor: Named): string | undefined {
  return sensor.status?.().name
}

interface Fence {
  /** Its own count of values when it was fenced. */
  readonly values: number
}

export class Fences {
  /** Also of sensors that are not there (now). */
  readonly #names: Set<string>
  readonly #fenced = new Map<Named, Fence>()
  /** What earlier fences, and the measurements that this one made needless, kept out. */
  readonly #kept = new Map<Named, number>()

  /** `names`: those that were fenced when the server ended. */
  constructor(names: readonly string[] = []) {
    this.#names = new Set(names)
  }

  /** A sensor is there. */
  added(sensor: Named): void {
    if (this.#names.size > 0 && this.#names.has(sensorName(sensor) ?? '')) this.#close(sensor)
  }

  has(sensor: Named): boolean {
    return this.#fenced.has(sensor)
  }

  fence(sensor: Named): void {
    this.#names.add(sensorName(sensor) ?? '')
    this.#close(sensor)
  }

  resume(sensor: Named): void {
    this.#kept.set(sensor, this.keptOut(sensor))
    this.#names.delete(sensorName(sensor) ?? '')
    this.#fenced.delete(sensor)
  }

  #close(sensor: Named): void {
    this.#fenced.set(sensor, { values: valuesOf(sensor) })
    this.#kept.set(sensor, this.#kept.get(sensor) ?? 0)
  }

  /** One value that was not asked for, or did not pass. */
  keep(sensor: Named): void {
    this.#kept.set(sensor, (this.#kept.get(sensor) ?? 0) + 1)
  }

  /** Values kept out since the start. */
  keptOut(sensor: Named): number {
    const fence = this.#fenced.get(sensor)
    return (this.#kept.get(sensor) ?? 0) + (fence === undefined ? 0 : valuesOf(sensor) - fence.values)
  }

  /** Whether it was ever fenced since the start. */
  knows(sensor: Named): boolean {
    return this.#kept.has(sensor)
  }
}

/** Listening sensors count what they take in. */
function valuesOf(sensor: Named): number {
  return sensor.status?.().counters['values'] ?? 0
}
