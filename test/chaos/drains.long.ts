/** A server that delivers by a drain is killed, and so is its destination: every value that it has said yes to arrives. */
import { expect, it } from 'vitest'
import { drainsIn, isThere } from './drains.ts'

const KILLS = 3
const OURS = ['otlpIn', 'cinnabarToPrometheus', 'cinnabarToVictoria', 'prometheusKilled']

it(`servers and destinations killed, ${KILLS} times each: every promised value arrives`, {
  timeout: 1_200_000,
}, async (context) => {
  const missing = ['prometheus', 'victoria-metrics'].filter((program) => !isThere(program))
  if (missing.length > 0)
    context.skip('needs Prometheus and VictoriaMetrics: apt-get install prometheus victoria-metrics')
  const totals = await drainsIn({ seed: 20_261_124, count: KILLS, say: () => {} }, (name) => OURS.includes(name))
  expect(totals).toMatchObject({ lost: 0, unexpected: 0, reused: 0 })
  for (const scene of OURS) {
    expect(totals[`${scene}Kills`]).toBe(KILLS)
    expect(totals[`${scene}Lost`]).toBe(0)
    expect(totals[`${scene}Promised`]).toBeGreaterThan(KILLS)
  }
})
