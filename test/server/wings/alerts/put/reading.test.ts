/** Which rule files are read in a thread: those that could take long, so that nobody waits for somebody's file. */
import { expect, it } from 'vitest'
import { systemClock } from '../../../../../server/kernel/core/clock.ts'
import { RuleReading } from '../../../../../server/wings/alerts/put/reading.ts'

/** Each mistake is looked up in all of it: that took a quarter of a second. */
const MANY_MISTAKES = Array.from({ length: 600 }, (_, index) => `${index}:`).join('\n')
const VALID = `groups: [] ${'#'.repeat(1_000)}`

const timers = systemClock()

/** `threads` counts those that were started: each is timed. */
function opened() {
  const counted = { threads: 0 }
  const reading = new RuleReading({
    clock: {
      setTimeout: (run, ms) => {
        counted.threads++
        return timers.setTimeout(run, ms)
      },
      clear: (timer) => timers.clear(timer),
    },
    work: (_tenant, steps) => {
      for (;;) {
        const { done, value } = steps.next()
        if (done === true) return value
      }
    },
  })
  return { counted, reading }
}

it('of somebody who puts them, all but very short ones', async () => {
  const { counted, reading } = opened()
  expect(await reading.read('t', 'groups: []')).toEqual({ groups: [] })
  expect(counted.threads).toBe(0)
  expect(await reading.read('t', MANY_MISTAKES)).toMatchObject({ problems: { length: 600 } })
  expect(counted.threads).toBe(1)
  expect(await reading.read('t', VALID)).toEqual({ groups: [] })
  expect(counted.threads).toBe(2)
})

it('of those that were taken before, the long ones', async () => {
  const { counted, reading } = opened()
  expect(await reading.readAgain('t', VALID)).toEqual({ groups: [] })
  expect(counted.threads).toBe(0)
  expect(await reading.readAgain('t', VALID.repeat(5))).toEqual({ groups: [] })
  expect(counted.threads).toBe(1)
})
