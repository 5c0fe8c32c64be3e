import { beforeEach, describe, expect, it } from 'vitest'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { Rights } from '../../../../server/kernel/accounts/rights.ts'
import { Rules } from '../../../../server/kernel/accounts/rules.ts'
import { finish } from '../../../../server/kernel/core/fair-work.ts'
import { Ids } from '../../../../server/kernel/metrics/ids.ts'
import { Instances } from '../../../../server/kernel/metrics/instances.ts'
import type { Metric } from '../../../../server/kernel/metrics/metric.ts'
import type { Selection } from '../../../../server/kernel/metrics/selection.ts'
import { SlowSensor } from '../../../support/test-sensor.ts'
import { abroad, Metrics, tester, uint } from './fixture.ts'

/** Its metric may be described in another way. */
class ChangingSensor extends SlowSensor {
  override readonly family: string = 'changing.'
  described: Metric | undefined

  override metric(name: string): Metric | undefined {
    return name === 'changing.value' ? this.described : undefined
  }
}

const describedAs = (description: string): Metric => ({
  name: 'changing.value',
  kind: 'continuous',
  type: BasicType.UINT32,
  unit: '1',
  description,
  parameters: [],
})

describe('a selection that is asked for again', () => {
  const args = [uint('deadline_ms', 5)]
  const status = (name: string) => expect.objectContaining({ status: name })
  let metrics: Metrics
  let sensor: ChangingSensor
  let rules: Rules
  let instances: Instances

  beforeEach(() => {
    metrics = new Metrics()
    sensor = new ChangingSensor()
    sensor.described = describedAs('one')
    metrics.hub.add(sensor)
    rules = new Rules([], 1, () => {})
    const defaults = { intervalMs: 1000, rights: new Rights(rules) }
    instances = new Instances({
      hub: metrics.hub,
      ids: new Ids(),
      defaults,
      maxPerIdentity: 3,
      maxPatternsPerIdentity: 2,
    })
  })
  const select = (list = args, reader = tester): Selection => finish(instances.select(reader, 'changing.value', list))

  it('is the same for the same object of arguments, and another one otherwise', () => {
    const selection = select()
    expect(select()).toBe(selection)
    expect(select([uint('deadline_ms', 5)])).not.toBe(selection)
    expect(finish(instances.select(tester, 'slow.value', args))).not.toBe(selection)
  })

  it('belongs to one reader', () => {
    const selection = select()
    const other = { ...tester, userId: 7 }
    expect(select(args, other)).not.toBe(selection)
    expect(select(args, other).identity).toBe(other)
    expect(() => finish(instances.select({ ...abroad, role: 'nobody' }, 'unknown.value', args))).toThrow(
      status('NO_SUCH_METRIC'),
    )
  })

  it('is made anew when its metric is described in another way, or there are other sensors', () => {
    const first = select()
    sensor.described = describedAs('two')
    const second = select()
    expect(second).not.toBe(first)
    metrics.hub.add(new SlowSensor())
    expect(select()).not.toBe(second)
  })

  it('is refused when its metric has gone', () => {
    select()
    sensor.described = undefined
    expect(() => select()).toThrow(status('NO_SUCH_METRIC'))
  })

  it('is judged again at each use', () => {
    const reader = { ...tester, role: 'operator' }
    select(args, reader)
    rules.add({ role: 'operator', effect: 'deny', command: 'COLLECT', object: 'changing.*', where: {} })
    expect(() => select(args, reader)).toThrow()
  })

  it('is not kept for ever', () => {
    const selection = select()
    for (let count = 0; count < 1_024; count++) select([uint('deadline_ms', 5)])
    expect(select()).not.toBe(selection)
  })
})
