/**
 * Fenced sensors: their values are discarded until somebody resumes them. A fenced listening sensor has no subscriptions, so
 * a fence costs nothing per value; only measurements and rare events ask here each time.
 */
import type { Sensor } from './metric.ts'

type Named = Pick<Sensor, 'owner' | 'status'>

/** The name of a sensor in `producer.sensors`; undefined if it is not listed there. */
export function sensorName(sensor: Named): string | undefined {
  return sensor.status?.().name
}

interface Fence {
  /** The sensor's own count of values at the moment it was fenced. */
  readonly values: number
}

export class Fences {
  /** May name sensors that do not exist at the moment. */
  readonly #names: Set<string>
  readonly #fenced = new Map<Named, Fence>()
  /** Values discarded by earlier fences, and measurements that the current one made needless. */
  readonly #discarded = new Map<Named, number>()

  /** `names` are the sensors that were fenced when the server ended. */
  constructor(names: readonly string[] = []) {
    this.#names = new Set(names)
  }

  /** Reports a new sensor. */
  added(sensor: Named): void {
    if (this.#names.size > 0 && this.#names.has(sensorName(sensor) ?? '')) this.#close(sensor)
  }

  /** Whether no sensor is fenced. */
  get isEmpty(): boolean {
    return this.#fenced.size === 0
  }

  has(sensor: Named): boolean {
    return this.#fenced.has(sensor)
  }

  fence(sensor: Named): void {
    this.#names.add(sensorName(sensor) ?? '')
    this.#close(sensor)
  }

  resume(sensor: Named): void {
    this.#discarded.set(sensor, this.discarded(sensor))
    this.#names.delete(sensorName(sensor) ?? '')
    this.#fenced.delete(sensor)
  }

  #close(sensor: Named): void {
    this.#fenced.set(sensor, { values: valuesOf(sensor) })
    this.#discarded.set(sensor, this.#discarded.get(sensor) ?? 0)
  }

  /** Counts one value that was not measured or was discarded. */
  countDiscarded(sensor: Named): void {
    this.#discarded.set(sensor, (this.#discarded.get(sensor) ?? 0) + 1)
  }

  /** The number of values discarded since the start. */
  discarded(sensor: Named): number {
    const fence = this.#fenced.get(sensor)
    return (this.#discarded.get(sensor) ?? 0) + (fence === undefined ? 0 : valuesOf(sensor) - fence.values)
  }

  /** Whether the sensor was fenced at any time since the start. */
  knows(sensor: Named): boolean {
    return this.#discarded.has(sensor)
  }
}

/** Listening sensors count the values that they accept. */
function valuesOf(sensor: Named): number {
  return sensor.status?.().counters['values'] ?? 0
}
