import { afterEach, expect, test } from 'vitest'
import { endlessImmediates, immediatesNow, isImmediatePending, nextTurn } from './immediates.ts'

let isRunning = false
afterEach(async () => {
  isRunning = false
  await nextTurn()
})

function loop(): void {
  if (isRunning) setImmediate(loop)
}

test('a chain that ends is not endless, however long it is', async () => {
  let left = 500
  const step = (): void => {
    if (--left > 0) setImmediate(step)
  }
  step()
  expect(isImmediatePending()).toBe(true)
  expect(await endlessImmediates()).toEqual([])
  expect(left).toBe(0)
})

test('a loop is named by the place that calls `setImmediate`', async () => {
  isRunning = true
  loop()
  expect(await endlessImmediates()).toEqual([expect.stringMatching(/^at .*\bloop\b.*immediates\.test\.ts:\d+/)])
  isRunning = false
  await nextTurn()
  expect(await immediatesNow()).toEqual([])
})

test('a loop of promises is named, too', async () => {
  isRunning = true
  const ended = (async () => {
    while (isRunning) await new Promise(setImmediate)
  })()
  expect(await endlessImmediates()).toEqual([expect.stringContaining('immediates.test.ts')])
  isRunning = false
  await ended
})
