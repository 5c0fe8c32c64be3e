/** How far a follower is behind, as time. */
import { expect, test } from 'vitest'
import { Lag } from '../../../server/cluster/lag.ts'

function lagging() {
  const time = { now: 0 }
  return { time, lag: new Lag(() => time.now, 100) }
}

test('it is the age of the oldest record that is not there', () => {
  const { time, lag } = lagging()
  lag.reached(5, 5)
  expect(lag.ms).toBe(0)
  lag.reached(5, 7)
  time.now = 300
  lag.reached(6, 9)
  expect(lag.ms).toBe(300)
  lag.reached(7, 9)
  time.now = 350
  expect(lag.ms).toBe(50)
  lag.reached(9, 9)
  expect(lag.ms).toBe(0)
})

test('records that the log has lost are not waited for', () => {
  const { time, lag } = lagging()
  lag.reached(5, 7)
  time.now = 1_000
  lag.endsAt(6)
  expect(lag.ms).toBe(0)
  lag.reached(5, 6)
  time.now = 1_200
  lag.endsAt(6)
  expect(lag.ms).toBe(200)
})
