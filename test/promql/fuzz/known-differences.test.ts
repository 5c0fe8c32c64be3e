/**
 * Each known difference is one: Debian's Prometheus 2.42 has another result for the least expression that shows it. A reason whose case
 * has the same result on both sides is a reason no more.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { LabelSet } from '../../../promql/label-set.ts'
import type { OutgoingSeries } from '../../../protocol/prometheus/write-request.ts'
import { StackProgram } from '../../rig/prometheus-stack.ts'
import { hasPrometheus } from '../../support/real-prometheus.ts'
import { differenceOf } from './compare.ts'
import { evaluatedHere, evaluatedThere, STEP_MS, write } from './fuzz.ts'
import { knownDifference, knownError, knownReasons } from './known-differences.ts'
import { memoryOf } from './series.ts'

const START_MS = 1_767_225_600_000
const EVERY_MS = 15_000
const LABELLED = 'x'

const series = (name: string, values: readonly number[], x?: string): OutgoingSeries => ({
  name,
  labels: x === undefined ? [] : [[LABELLED, x]],
  samples: values.map((value, at) => ({ value, timeMs: START_MS + at * EVERY_MS })),
})
const SERIES: readonly OutgoingSeries[] = [
  series('counter', [1, 2, 3, 4, 5, 6]),
  series('two', [2, 2, 2, 2, 2, 2]),
  series('special_alone', [Number.NaN]),
  series('decimal', [55.29, 55.29, 55.29, 55.29, 55.29, 55.29]),
  ...[1e16, 1, -1e16].map((value, at) => series('large', [value], String(at))),
  ...['+Inf', '1'].flatMap((le) =>
    ['0', '1', '2'].map((x) => ({
      ...series('bucket', [1], x),
      labels: [['le', le] as const, [LABELLED, x] as const],
    })),
  ),
]
const source = memoryOf(SERIES)

/** A time after the start, or a range from there to 76 s; and the difference. */
interface Case {
  readonly text: string
  readonly ms: number
  readonly isRange?: true
  readonly difference: RegExp
}

const LATEST_MS = 76_000
/** Which of the six it is changes from one time to the next in 2.42. */
const IN_ANY_ORDER = 'topk (1, (bucket) == bool 0)'

const CASES: readonly Case[] = [
  { text: 'sum(large)', ms: 1_000, difference: /here 1, there 0$/ },
  { text: 'stdvar(special_alone)', ms: 1_000, difference: /here NaN, there 0$/ },
  { text: 'stddev(special_alone)', ms: 1_000, difference: /here NaN, there 0$/ },
  { text: 'counter atan2 two', ms: LATEST_MS, difference: /is only here$/ },
  { text: 'hour(special_alone)', ms: 1_000, difference: /here NaN, there \d+$/ },
  {
    text: 'quantile_over_time(time(), counter[45s] @ start())',
    ms: 16_000,
    isRange: true,
    difference: /here Infinity, there undefined$/,
  },
  {
    text: 'predict_linear(counter[45s] @ start(), 0)',
    ms: 16_000,
    isRange: true,
    difference: /here [\d.]+, there undefined$/,
  },
  // The sample is 250 s before the time that is asked for, and 350 s before the one of the @.
  { text: 'timestamp(special_alone @ 1767225950.000 offset 100s)', ms: LATEST_MS, difference: /is only here$/ },
  { text: 'rate(counter[5m])', ms: LATEST_MS, difference: /here 0.0185\d+, there 0.0202\d+$/ },
  { text: 'sin(decimal ^ 5.3)', ms: LATEST_MS, difference: /here -0.455404630\d+, there -0.455405054\d+$/ },
  { text: '(decimal ^ 3.3) % 0.001', ms: LATEST_MS, difference: /here 0.0000210697\d+, there 0.0000210698\d+$/ },
  { text: '(abs(counter) > 4) or counter', ms: 16_000, isRange: true, difference: /here \d, there undefined$/ },
  { text: 'count_values("v", decimal ^ 3.3)', ms: LATEST_MS, difference: /563292.21202106\d+.* is only (t?)here$/ },
]

// Prometheus comes with Debian's package prometheus.
describe.skipIf(!hasPrometheus)('beside Prometheus (apt install prometheus)', () => {
  let peer: StackProgram
  beforeAll(async () => {
    peer = await StackProgram.prometheus()
    await peer.start()
    await write(peer, SERIES)
  })
  afterAll(() => peer.remove())

  it.for(CASES)('$text differs', async ({ text, ms, isRange, difference }) => {
    const [timeMs, endMs] = [START_MS + ms, isRange && START_MS + LATEST_MS]
    const theirs = await evaluatedThere(peer, text, timeMs, endMs)
    expect(differenceOf(evaluatedHere(text, source, timeMs, endMs), theirs)).toMatch(difference)
  })

  it('of equal values it takes any', async () => {
    const [timeMs, endMs] = [START_MS, START_MS + STEP_MS]
    const taken = new Set<string>()
    for (let times = 0; times < 100 && taken.size < 2; times++) {
      const { series } = await evaluatedThere(peer, IN_ANY_ORDER, timeMs, endMs)
      taken.add([...series.keys()].join())
    }
    expect(taken.size).toBeGreaterThan(1)
    expect(evaluatedHere(IN_ANY_ORDER, source, timeMs, endMs).series.size).toBe(1)
    // A selector has its series in the order of their labels.
    const text = 'topk (1, bucket)'
    const theirs = await evaluatedThere(peer, text, timeMs, endMs)
    expect([knownDifference(text), differenceOf(evaluatedHere(text, source, timeMs, endMs), theirs)]).toEqual([
      undefined,
      undefined,
    ])
  })

  it('names that go at the end let labels be made of them', async () => {
    const text = 'label_replace(abs({__name__=~"counter|two"}), "n", "$1", "__name__", "(.*)")'
    const theirs = await evaluatedThere(peer, text, START_MS + LATEST_MS, undefined)
    expect(knownError(theirs.error)).toBeDefined()
    const ours = evaluatedHere(text, source, START_MS + LATEST_MS, undefined)
    expect([...ours.series.keys()]).toEqual(['counter', 'two'].map((n) => JSON.stringify([...LabelSet.of([['n', n]])])))
  })
})

it('each reason has a case', () => {
  const shown = [...CASES.map(({ text }) => text), IN_ANY_ORDER].map(knownDifference)
  expect(new Set(shown)).toEqual(new Set(knownReasons()))
})
