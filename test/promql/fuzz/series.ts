/** Random series: gaps, resets, NaN and infinities, ends, and times off every grid. */

import { LabelSet, METRIC_NAME_LABEL } from '../../../promql/label-set.ts'
import { MemorySource } from '../../../promql/memory-source.ts'
import type { OutgoingSeries } from '../../../protocol/prometheus/write-request.ts'
import type { Random } from '../../support/random.ts'

const XY = [
  ['1', '1'],
  ['1', '2'],
  ['2', '1'],
] as const

const BOUNDS = ['0.1', '0.5', '1', '+Inf']
const HOUR_MS = 3_600_000
/** Off every grid. */
const OFF_MS = 137

/** Of an hour from a time that is a whole number of seconds. */
export function randomSeries(startMs: number, random: Random): OutgoingSeries[] {
  const plain = ['gauge', 'requests_total', 'special'].flatMap((name) =>
    XY.map(([x, y]) => ({ name, labels: labelsOf(x, y), samples: samplesOf(name, startMs, random) })),
  )
  return [...plain, ...XY.flatMap(([x, y]) => histogram(labelsOf(x, y), startMs, random))]
}

function labelsOf(x: string, y: string) {
  return [
    ['x', x],
    ['y', y],
  ] as const
}

function samplesOf(name: string, startMs: number, random: Random): OutgoingSeries['samples'] {
  const samples: { value: number | undefined; timeMs: number }[] = []
  let value = name === 'requests_total' ? 1e6 : random.below(100)
  const apartS = random.pick([5, 15, 30])
  for (let ms = 1_000 * random.below(20); ms < HOUR_MS; ms += Math.round(1_000 * apartS * (0.5 + random.next()))) {
    const chance = random.next()
    // A gap.
    if (chance < 0.02) ms += random.below(400_000)
    const timeMs = startMs + ms - (ms % 1_000) + OFF_MS
    if (chance > 0.98) {
      samples.push({ value: undefined, timeMs })
      continue
    }
    value = nextValue(name, value, random)
    const isSpecial = name === 'special' && random.below(10) === 0
    samples.push({ value: isSpecial ? random.pick([Number.NaN, Infinity, -Infinity]) : value, timeMs })
  }
  return samples.filter(({ timeMs }, at) => at === 0 || timeMs > (samples[at - 1]?.timeMs ?? 0))
}

function nextValue(name: string, value: number, random: Random): number {
  // Far from zero, and after a reset at less than half: 2.42 extrapolates to zero in another way than 3, also where what a counter
  // has grown by since a reset is about what it had before.
  if (name === 'requests_total') {
    return random.next() < 0.004 ? Math.floor(value / 2.5) : value + random.below(50)
  }
  return random.below(5) === 0 ? value : Math.round((value + random.next() * 10 - 5) * 100) / 100
}

/** The buckets of a histogram that is reported every 15 s, each at least as large as the one before. */
function histogram(labels: ReturnType<typeof labelsOf>, startMs: number, random: Random): OutgoingSeries[] {
  const counts = BOUNDS.map(() => 1e6)
  const samples: { value: number; timeMs: number }[][] = BOUNDS.map(() => [])
  for (let ms = 0; ms < HOUR_MS; ms += 15_000) {
    let sum = 0
    for (const [at] of BOUNDS.entries()) {
      counts[at] = (counts[at] as number) + random.below(10)
      sum += counts[at] as number
      samples[at]?.push({ value: sum, timeMs: startMs + ms + OFF_MS })
    }
  }
  return BOUNDS.map((le, at) => ({
    name: 'latency_bucket',
    labels: [...labels, ['le', le] as const],
    samples: samples[at] ?? [],
  }))
}

export function memoryOf(series: readonly OutgoingSeries[]): MemorySource {
  const source = new MemorySource()
  for (const { name, labels, samples } of series) {
    source.add(
      LabelSet.of([[METRIC_NAME_LABEL, name], ...labels]),
      samples.map(({ timeMs, value }) => [timeMs, value ?? 'stale'] as const),
    )
  }
  return source
}
