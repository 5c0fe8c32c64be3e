/** The model of the rig, by hand: what it says of a few seconds. */
import { expect, test } from 'vitest'
import { CONFIGURED_GROUP, modelOf } from './model.ts'

/** The values at 1,000 ms, 2,000 ms and so on. */
function modelled(...values: (number | undefined)[]) {
  const ticksMs = values.map((_, index) => (index + 1) * 1_000)
  const levels = { count: 1, at: (_series: number, timeMs: number) => values[timeMs / 1_000 - 1] }
  const { transitions, alerts } = modelOf(levels, [{ group: CONFIGURED_GROUP, ticksMs }])
  const shown = (name: string): string[] =>
    (transitions.get(`${name} 0`) ?? []).map(
      ({ state, sinceMs, firedMs, endedMs }) => `${state} ${sinceMs} ${firedMs} ${endedMs}`,
    )
  return { shown, alerts }
}

test('each rule makes its transitions', () => {
  const { shown, alerts } = modelled(undefined, 5, 5, 5, 5, 7, 4, 2, 2, 2)
  expect(shown('Plain')).toEqual(['firing 2000 2000 0', 'inactive 2000 2000 7000'])
  expect(shown('Slow')).toEqual(['pending 2000 0 0', 'firing 2000 5000 0', 'inactive 2000 5000 7000'])
  expect(shown('Kept')).toEqual(['pending 2000 0 0', 'firing 2000 3000 0', 'inactive 2000 3000 10000'])
  expect(shown('Sticky')).toEqual(['firing 6000 6000 0', 'inactive 6000 6000 8000'])
  expect(alerts.get('Slow 0 pending')).toEqual([2_000, 3_000, 4_000])
  expect(alerts.get('Slow 0 firing')).toEqual([5_000, 6_000])
})

test('what is kept and holds again was never gone; what was pending begins anew', () => {
  const { shown } = modelled(5, 5, 4, 5, 4, 5)
  expect(shown('Kept')).toEqual(['pending 1000 0 0', 'firing 1000 2000 0'])
  expect(shown('Slow')).toEqual([
    'pending 1000 0 0',
    'inactive 1000 0 3000',
    'pending 4000 0 0',
    'inactive 4000 0 5000',
    'pending 6000 0 0',
  ])
})
