import { expect, test } from 'vitest'
import { atMost } from '../../client/clock.ts'
import { FakeClock } from '../support/fake-clock.ts'
import { settle } from './fake-producer.ts'

test('what is waited for at most so long settles then, and before that with what it waits for', async () => {
  const clock = new FakeClock()
  const settled: string[] = []
  void atMost(clock, 1_000, new Promise(() => {})).then(() => settled.push('late'))
  void atMost(clock, 1_000, Promise.resolve()).then(() => settled.push('in time'))
  void atMost(clock, 1_000, Promise.reject(new Error('x'))).catch(({ message }) => settled.push(message))
  clock.advance(999)
  await settle()
  expect(settled).toEqual(['in time', 'x'])
  clock.advance(1)
  await settle()
  expect(settled).toEqual(['in time', 'x', 'late'])
  expect(clock.timers).toBe(0)
})
