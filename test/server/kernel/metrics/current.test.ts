/** docs/sources/README.md#times: which value is the current one, whatever clocks do. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { CurrentTime, isNewer } from '../../../../server/kernel/metrics/current.ts'
import { FakeClock } from '../../../support/fake-clock.ts'

const MINUTE = 60_000_000
const HOUR = 60 * MINUTE

it('is the one that came last, unless that is older', () => {
  const clock = new FakeClock()
  const current = new CurrentTime()
  const now = clock.microseconds()
  expect([now, now, now - 1, now + 1, now].map((time) => current.isTaken(time, clock))).toEqual([
    true,
    true,
    false,
    true,
    false,
  ])
})

it.each([
  ['a minute ahead makes others late', MINUTE, false],
  ['further ahead makes none late', MINUTE + 1, true],
])('%s', (_, ahead, isTaken) => {
  const clock = new FakeClock()
  const current = new CurrentTime()
  expect(current.isTaken(clock.microseconds() + ahead, clock)).toBe(true)
  expect(current.isTaken(clock.microseconds(), clock)).toBe(isTaken)
})

it('one that came a minute ago makes none late', () => {
  const clock = new FakeClock()
  const current = new CurrentTime()
  const now = clock.microseconds()
  current.isTaken(now, clock)
  clock.advance(59_999)
  expect(current.isTaken(now - HOUR, clock)).toBe(false)
  clock.advance(1)
  expect(current.isTaken(now - HOUR, clock)).toBe(true)
})

it('goes on within a minute, whatever the clocks of a sender and of the server are set to', () => {
  const steps = fc.array(
    fc.record({
      sender: fc.integer({ min: -HOUR, max: HOUR }),
      server: fc.integer({ min: -90_000_000, max: 90_000_000 }),
    }),
    { minLength: 1, maxLength: 10 },
  )
  fc.assert(
    fc.property(steps, (all) => {
      const clock = new FakeClock()
      const current = new CurrentTime()
      let sender = 0
      for (const step of all) {
        sender += step.sender
        clock.jumpWall(step.server)
        // A sender that sends every ten seconds.
        const taken = Array.from({ length: 7 }, () => {
          clock.advance(10_000)
          return current.isTaken(clock.microseconds() + sender, clock)
        })
        expect(taken.at(-1)).toBe(true)
      }
    }),
  )
})

it('of two values that came on two ways, one of the future is never the newer one', () => {
  expect(isNewer(2, 1, 0)).toBe(true)
  expect(isNewer(1, 1, 0)).toBe(false)
  expect(isNewer(HOUR, 1, 0)).toBe(false)
  expect(isNewer(1, HOUR, 0)).toBe(true)
  expect(isNewer(2 * HOUR, HOUR, 0)).toBe(true)
})
