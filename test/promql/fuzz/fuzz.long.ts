/** Random expressions in Debian's Prometheus and here: the same always, since all of it comes of a seed. */
import { expect, it } from 'vitest'
import { hasPrometheus } from '../../support/real-prometheus.ts'
import { fuzzPromql } from './fuzz.ts'

const EXPRESSIONS = 3_000

// Prometheus comes with Debian's package prometheus.
it.skipIf(!hasPrometheus)('has the results of Prometheus (apt install prometheus)', async () => {
  for (const seed of [1, 2]) {
    const { difference, compared, withResults } = await fuzzPromql({ expressions: EXPRESSIONS, seed })
    expect(difference, `seed ${seed}`).toBeUndefined()
    // What is passed over, or empty on both sides, proves nothing.
    expect(compared).toBeGreaterThan(EXPRESSIONS / 2)
    expect(withResults).toBeGreaterThan(EXPRESSIONS / 4)
  }
})
