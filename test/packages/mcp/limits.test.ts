/** What a token may ask for, and what is kept of what was proposed with it. */
import { expect, it } from 'vitest'
import { CallLimits } from '../../../packages/mcp/limits.ts'
import { Proposals } from '../../../packages/mcp/proposals.ts'

it('so many calls may begin in any minute', () => {
  let now = 0
  const limits = new CallLimits(3, () => now)
  for (const at of [0, 10_000, 20_000]) {
    now = at
    limits.begin()()
  }
  now = 59_999
  expect(() => limits.begin()).toThrow(/3 calls a minute: try again in 1 s/)
  now = 60_000
  limits.begin()()
  expect(() => limits.begin()).toThrow(/try again in 10 s/)
  expect(limits.counts).toEqual({ calls: 4, refused: 2 })
  expect(limits.isIdle).toBe(false)
  now = 120_000
  expect(limits.isIdle).toBe(true)
})

it('eight calls may run at the same time, and one that ends twice ends once', () => {
  const limits = new CallLimits(100, () => 0)
  const ends = Array.from({ length: 8 }, () => limits.begin())
  expect(() => limits.begin()).toThrow(/8 calls with this token are running/)
  ends[0]?.()
  ends[0]?.()
  limits.begin()
  expect(() => limits.begin()).toThrow(/running/)
})

it('a hundred proposals are kept, the last ones; one with a key that is known takes its place', () => {
  const proposals = new Proposals()
  const keys = Array.from({ length: 101 }, (_, index) => proposals.add('exec.x', { index }).key)
  expect(new Set(keys).size).toBe(101)
  expect(proposals.find(keys[0] ?? '')).toBeUndefined()
  expect(proposals.find(keys[1] ?? '')).toMatchObject({ control: 'exec.x', args: { index: 1 } })
  proposals.add('exec.x', { index: 7 }, keys[1])
  proposals.add('exec.x', { index: 8 })
  expect(proposals.find(keys[1] ?? '')).toMatchObject({ args: { index: 7 } })
  expect(proposals.find(keys[2] ?? '')).toBeUndefined()
})
