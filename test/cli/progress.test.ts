import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { whileWaiting } from '../../cli/progress.ts'
import type { Terminal } from '../../cli/terminal.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
afterEach(() => void vi.useRealTimers())

async function waiting(ms: number, isWatched: boolean) {
  const said: string[] = []
  const before = vi.getTimerCount()
  const terminal = { isWatched, note: (text) => void said.push(text) } as Partial<Terminal> as Terminal
  const done = whileWaiting(terminal, 'reading', new Promise((resolve) => setTimeout(resolve, ms, 'done')))
  await vi.advanceTimersByTimeAsync(ms)
  expect(await done).toBe('done')
  expect(vi.getTimerCount()).toBe(before)
  return said
}

test('what takes longer than a second says so, once, where somebody watches', async () => {
  expect(await waiting(5_000, true)).toEqual(['reading …'])
  expect(await waiting(900, true)).toEqual([])
  expect(await waiting(5_000, false)).toEqual([])
})
