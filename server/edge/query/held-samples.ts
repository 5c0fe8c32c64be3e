/**
 * A series that sends rarely, as gmond does what hardly ever changes, must not be away between two of its samples for whoever looks
 * back five minutes: a sample is held then, until the next one, the end of the series, or the longest time that anybody takes. This
 * is found out when samples are read, so that nothing is stored that was not sent.
 */
import { type SourceSeries, StaleMarkers } from '../../../promql/series-source.ts'
import { ROLLUP_MS } from '../../kit/history.ts'

/** A series whose samples are further apart sends rarely. Those that are repeated are as far apart. */
const RARELY_MS = 240_000
/** gmond sends after 20 minutes at the latest, and may be a little late. */
const HELD_MS = 1_500_000
/** So much is read before a range: a sample that may be held at its beginning, and the one before that. */
export const READ_BACK_MS = 2 * HELD_MS

type Samples = Pick<SourceSeries, 'times' | 'values' | 'thinnedMs'>
type HeldSamples = Samples & Pick<SourceSeries, 'heldMs'>

/**
 * The samples from `fromMs` on, and the one before if it is held; those before are only looked at. A sample is held if it came long
 * after the one before, or is the first: a series that sends often and then no more is away as soon as with Prometheus.
 */
export function heldSamples({ times, values, thinnedMs }: Samples, fromMs: number): HeldSamples {
  const markers = new StaleMarkers(values)
  const isMarker = (index: number): boolean => Number.isNaN(values[index]) && markers.has(index)
  const isRare = (index: number): boolean => {
    const timeMs = times[index] ?? 0
    // Of two rollups the last samples may be far apart, too.
    const often = RARELY_MS + (timeMs <= (thinnedMs ?? 0) ? ROLLUP_MS : 0)
    return index === 0 || timeMs - (times[index - 1] ?? 0) > often || isMarker(index - 1)
  }
  const isHeld = (index: number): boolean => {
    const nextMs = times[index + 1] ?? Number.POSITIVE_INFINITY
    return nextMs - (times[index] ?? 0) > RARELY_MS && !isMarker(index) && isRare(index)
  }
  let start = 0
  while (start < times.length && (times[start] ?? 0) < fromMs) start++
  if (start > 0 && isHeld(start - 1)) start--
  let heldMs: Float64Array | undefined
  for (let index = start; index < times.length; index++) {
    if (!isHeld(index)) continue
    heldMs ??= new Float64Array(times.length - start)
    heldMs[index - start] = HELD_MS
  }
  return {
    times: start === 0 ? times : times.subarray(start),
    values: start === 0 ? values : values.subarray(start),
    thinnedMs: thinnedMs !== undefined && thinnedMs >= (times[start] ?? 0) ? thinnedMs : undefined,
    heldMs,
  }
}

/** The samples of a range, and each that is held again every four minutes, for a reader who looks back by itself. */
export function withRepeated({ times, values, heldMs }: HeldSamples, fromMs: number, toMs: number): Samples {
  if (heldMs === undefined) return { times, values }
  const bits = new BigUint64Array(values.buffer, values.byteOffset, values.length)
  const all: [timeMs: number, bits: bigint][] = []
  for (const [index, timeMs] of times.entries()) {
    const value = bits[index] ?? 0n
    const nextMs = times[index + 1] ?? Number.POSITIVE_INFINITY
    const endMs = Math.min(nextMs - 1, toMs, timeMs + (heldMs[index] ?? 0))
    if (timeMs >= fromMs) all.push([timeMs, value])
    for (let again = timeMs + RARELY_MS; again <= endMs; again += RARELY_MS) {
      if (again >= fromMs) all.push([again, value])
    }
  }
  const repeated = new BigUint64Array(all.map(([, value]) => value))
  return { times: Float64Array.from(all, ([timeMs]) => timeMs), values: new Float64Array(repeated.buffer) }
}
