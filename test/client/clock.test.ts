import { expect, test } from 'vitest'
import { withinTime } from '../../client/clock.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { settle } from './fake-producer.ts'

test('a wait settles with what it waits for, or when its time is up', async () => {
  const clock = new FakeClock()
  const settled: string[] = []
  void withinTime(clock, 1_000, new Promise(() => {})).then(() => settled.push('late'))
  void withinTime(clock, 1_000, Promise.resolve()).then(() => settled.push('in time'))
  void withinTime(clock, 1_000, Promise.reject(new Error('x'))).catch(({ message }) => settled.push(message))
  clock.advance(999)
  await settle()
  expect(settled).toEqual(['in time', 'x'])
  clock.advance(1)
  await settle()
  expect(settled).toEqual(['in time', 'x', 'late'])
  expect(clock.timers).toBe(0)
})
