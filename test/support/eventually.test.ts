/** What never comes is given up before the limit of a test, and says what did not come. */
import { afterEach, expect, test, vi } from 'vitest'
import { eventually } from './eventually.ts'

afterEach(() => vi.restoreAllMocks())

test('looks that take long themselves are given up before the limit of a test', async () => {
  let nowMs = 0
  vi.spyOn(performance, 'now').mockImplementation(() => nowMs)
  const look = (): void => {
    nowMs += 60_000
    throw new Error('it did not come')
  }
  await expect(eventually(look)).rejects.toThrow('it did not come')
  expect(nowMs).toBeLessThan(300_000)
})

test('what comes at last is waited for', async () => {
  let looks = 0
  const look = (): number => {
    if (++looks < 3) throw new Error('not yet')
    return looks
  }
  expect(await eventually(look)).toBe(3)
})
