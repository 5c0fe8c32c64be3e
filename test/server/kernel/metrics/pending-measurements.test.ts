import { expect, test } from 'vitest'
import { VOID } from '../../../../protocol/monitor/value.ts'
import type { Effect } from '../../../../server/kernel/core/fair-work.ts'
import { isSteps } from '../../../../server/kernel/core/fair-work.ts'
import type { Measurement } from '../../../../server/kernel/metrics/metric.ts'
import { PendingMeasurements } from '../../../../server/kernel/metrics/pending-measurements.ts'
import { Metrics, text } from './fixture.ts'

/** Takes a measurement, and counts the steps after which it came. */
function measured(metrics: Metrics, host: string): { readonly steps: number; readonly taken: readonly Measurement[] } {
  const pending = new PendingMeasurements(metrics.clock, metrics.hub)
  const taken: Measurement[] = []
  const taker = {
    take: (measurement: Measurement) => taken.push(measurement),
    isWanted: () => true,
    later(_steps: Effect): void {
      throw new Error('every sensor has answered at once')
    },
  }
  const rest = pending.begin(metrics.select('test.a', [text('host', host)]))(taker)
  let steps = 0
  if (isSteps<void>(rest)) for (let next = rest.next(); next.done !== true; next = rest.next()) steps++
  return { steps, taken }
}

test('a metric with very many series is looked through in steps, for the one that is asked for', () => {
  const metrics = new Metrics()
  for (let n = 0; n < 1_000; n++) metrics.push.push('test.a', { type: 2, value: n }, n, `h${n}`)
  const none = measured(metrics, 'nowhere')
  expect(none.steps).toBeGreaterThan(900)
  expect(none.taken).toMatchObject([{ value: VOID }])
  const last = measured(metrics, 'h999')
  expect(last.steps).toBeGreaterThan(900)
  expect(last.taken).toEqual([{ value: { type: 2, value: 999 }, time: 999 }])
})

test('a metric with few series is measured at once', () => {
  const metrics = new Metrics()
  for (let n = 0; n < 10; n++) metrics.push.push('test.a', { type: 2, value: n }, n, `h${n}`)
  expect(measured(metrics, 'h9')).toEqual({ steps: 0, taken: [{ value: { type: 2, value: 9 }, time: 9 }] })
})
