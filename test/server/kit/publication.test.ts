/** Values of a request are taken in steps that are short, whatever the values are. */
import { expect, it, vi } from 'vitest'
import type { Steps } from '../../../server/kernel/core/fair-work.ts'
import { OtlpDoor } from '../../../server/wings/otlp/door.ts'
import { publishing } from '../wings/publishing.ts'

/** Steps, of which each is counted. */
function* counted<T>(steps: Steps<T>, counts: number[]): Steps<T> {
  const place = counts.push(0) - 1
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
    counts[place] = (counts[place] as number) + 1
    yield
  }
}

it('a histogram may have very many buckets, so each has a step of its own', async () => {
  const { readers, post } = publishing('otlp', (publication, { clock }) => new OtlpDoor({ publication, clock }))
  const { work } = readers
  const run = work.run.bind(work)
  const counts: number[] = []
  vi.spyOn(work, 'run').mockImplementation((party, steps) => run(party, counted(steps, counts)))
  const dataPoints = Array.from({ length: 50 }, (_, index) => ({
    timeUnixNano: index * 1_000,
    count: 1,
    bucketCounts: [1, 0],
    explicitBounds: [5],
  }))
  const metrics = [{ name: 'h', histogram: { aggregationTemporality: 2, dataPoints } }]
  const request = JSON.stringify({ resourceMetrics: [{ scopeMetrics: [{ metrics }] }] })
  expect((await post(request, 'application/json')).status).toBe(200)
  // It was decoded, judged, and taken.
  expect(counts).toHaveLength(3)
  expect(counts[2]).toBeGreaterThanOrEqual(49)
})
