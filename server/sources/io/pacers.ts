/** Streams of each tenant wait for what that tenant's quota lets in, and for nobody else's. */
import type { Clock } from '../../core/clock.ts'
import { Pacer } from './pacer.ts'

interface Metered {
  readonly meter: { readonly waitMs: number }
}

export interface PacingOptions {
  readonly clock: Pick<Clock, 'setTimeout'>
  /** More waits to be stored than feeds may add to. */
  readonly behind: () => boolean
  readonly journal: { wait(waiting: { durable: () => void }): void }
}

/** Gives the pacer of a sensor. */
export function pacersOf<S extends Metered>(
  sensors: readonly S[],
  { clock, behind, journal }: PacingOptions,
): (sensor: S) => Pacer {
  const pacers = new Map<S, Pacer>()
  for (const sensor of sensors) {
    const { meter } = sensor
    const goOn = (resume: () => void): void => {
      if (meter.waitMs > 0) clock.setTimeout(resume, meter.waitMs)
      else journal.wait({ durable: resume })
    }
    pacers.set(sensor, new Pacer({ behind: () => meter.waitMs > 0 || behind(), whenStored: goOn }))
  }
  return (sensor) => pacers.get(sensor) as Pacer
}
