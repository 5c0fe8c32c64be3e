/** Which rule files are read in a thread: those that could take long, so that nobody waits for somebody's file. */
import { expect, it } from 'vitest'
import { systemClock } from '../../../../../server/kernel/core/clock.ts'
import { finish } from '../../../../../server/kernel/core/fair-work.ts'
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

it('two at once, of different tenants, in the order in which they came: a bad file holds up none of others', async () => {
  const reads: { readonly text: string; end(): void }[] = []
  const reading = new RuleReading(
    { clock: timers, work: (_tenant, steps) => finish(steps) },
    (text) => new Promise((resolve) => reads.push({ text, end: () => resolve({ problems: [] }) })),
  )
  const texts = (): string[] => reads.map(({ text }) => text.trim())
  const ended = async (index: number): Promise<void> => {
    reads[index]?.end()
    await new Promise((resolve) => setImmediate(resolve))
  }
  for (const [tenant, name] of ['bad 1', 'bad 2', 'one 3', 'two 4', 'one 5'].map((words) => words.split(' ')))
    void reading.read(tenant ?? '', `${name}${' '.repeat(600)}`)
  expect(texts()).toEqual(['1', '3'])
  await ended(1)
  expect(texts()).toEqual(['1', '3', '4'])
  await ended(2)
  expect(texts()).toEqual(['1', '3', '4', '5'])
  await ended(0)
  expect(texts()).toEqual(['1', '3', '4', '5', '2'])
})
