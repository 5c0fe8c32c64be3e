/** `producer.recent`: what a question of one name costs. What it says is in test/server/rules/section-9-recent.test.ts. */
import { expect, it } from 'vitest'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { valueToJson } from '../../../../protocol/monitor/json-value.ts'
import type { Value } from '../../../../protocol/monitor/value.ts'
import { Hub } from '../../../../server/kernel/metrics/hub.ts'
import { RecentValues } from '../../../../server/kernel/metrics/recent.ts'
import { recentView } from '../../../../server/kernel/producer/recent.ts'
import { FakeClock } from '../../../support/fake-clock.ts'
import type { Json } from '../../../support/records.ts'
import { PushSensor } from '../../../support/test-sensor.ts'
import { rights, tester } from '../metrics/fixture.ts'

it('does not walk the values of other names', () => {
  const clock = new FakeClock()
  const hub = new Hub(clock, { recent: new RecentValues(clock, { maxBytes: 2 ** 24, maxAgeMs: 900_000 }) })
  const push = new PushSensor(hub)
  const time = clock.microseconds()
  for (const [name, hosts] of [
    ['test.a', 3],
    ['test.b', 3_000],
  ] as const)
    for (let n = 0; n < hosts; n++) push.push(name, { type: BasicType.UINT32, value: n }, time, `h${n}`)
  const steps = recentView({ hub, rights, clock }).show(tester, new Map([['metric', 'test.a']])) as Generator<
    void,
    Value
  >
  let [count, step] = [0, steps.next()]
  for (; step.done !== true; step = steps.next()) count++
  expect((valueToJson(step.value) as Json[]).map(({ host }) => host)).toEqual(['h0', 'h1', 'h2'])
  expect(count).toBeLessThan(20)
})
