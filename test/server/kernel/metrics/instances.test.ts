import { beforeEach, expect, test } from 'vitest'
import { StatusError } from '../../../../server/kernel/core/errors.ts'
import { finish } from '../../../../server/kernel/core/fair-work.ts'
import { Ids } from '../../../../server/kernel/metrics/ids.ts'
import type { MetricInstance } from '../../../../server/kernel/metrics/instance.ts'
import { Instances } from '../../../../server/kernel/metrics/instances.ts'
import { SlowSensor } from '../../../support/test-sensor.ts'
import { abroad, Metrics, rights, tester } from './fixture.ts'

/** Its source is missing. */
class MissingSensor extends SlowSensor {
  override readonly family: string = 'missing.'

  override metric(name: string): ReturnType<SlowSensor['metric']> {
    const metric = super.metric('slow.value')
    return metric && name.startsWith(this.family) ? { ...metric, name } : undefined
  }

  override check(): void {
    throw new StatusError('INVALID_ARGUMENT', 'no such disk')
  }
}

let instances: Instances
beforeEach(() => {
  const { hub } = new Metrics()
  hub.add(new MissingSensor())
  instances = new Instances({
    hub,
    ids: new Ids(),
    defaults: { intervalMs: 1000, rights },
    maxPerIdentity: 3,
    maxPatternsPerIdentity: 2,
  })
})
const status = (name: string) => expect.objectContaining({ status: name })

test('an id is found by its owner alone', () => {
  const { id } = finish(instances.collect(tester, 'slow.value', []))
  expect(instances.find(tester, id)?.id).toBe(id)
  expect(instances.find(abroad, id)).toBeUndefined()
  expect(instances.find({ ...abroad, role: 'admin' }, id)).toBeUndefined()
})

test('an identity holds so many and no more, and one less after each that goes', () => {
  const [first] = [1, 2, 3].map(() => finish(instances.collect(tester, 'slow.value', []))) as [MetricInstance]
  expect(() => finish(instances.collect(tester, 'slow.value', []))).toThrow(status('QUOTA_EXCEEDED'))
  finish(instances.collect(abroad, 'slow.value', []))
  expect(instances.remove(first)).toBe(true)
  expect(instances.remove(first)).toBe(false)
  finish(instances.collect(tester, 'slow.value', []))
  expect(() => finish(instances.collect(tester, 'slow.value', []))).toThrow(status('QUOTA_EXCEEDED'))
  expect(instances.of(tester.userId)).toHaveLength(3)
})

test('what its arguments name has to be there for COLLECT and QUERY, not when it comes back from the store', () => {
  expect(() => finish(instances.collect(tester, 'missing.disk', []))).toThrow(status('INVALID_ARGUMENT'))
  expect(() => finish(instances.select(tester, 'missing.disk', []))).toThrow(status('INVALID_ARGUMENT'))
  expect(finish(instances.restore(5, tester, 'missing.disk', []))).toMatchObject({ id: 5, stored: true })
  expect(() => finish(instances.restore(6, tester, 'slow.gone', []))).toThrow(status('NO_SUCH_METRIC'))
})
