import { expect, test } from 'vitest'
import { Ids } from '../../../../server/kernel/metrics/ids.ts'

test('ids are from 1 to 0x7fffffff, random, and unique among the living', () => {
  const ids = new Ids()
  const taken = Array.from({ length: 20_000 }, () => ids.take())
  expect(new Set(taken).size).toBe(taken.length)
  for (const id of taken) expect(Number.isInteger(id) && id >= 1 && id <= 0x7fffffff).toBe(true)
  // Not ascending, and spread over the whole range.
  expect(taken).not.toEqual([...taken].sort((a, b) => a - b))
  for (let part = 0; part < 8; part++) {
    expect(taken.some((id) => Math.floor(id / 2 ** 28) === part)).toBe(true)
  }
})

test('an id that lives cannot be claimed; one that has died can, but is not taken again soon', () => {
  const ids = new Ids()
  expect(ids.claim(7)).toBe(true)
  expect(ids.claim(7)).toBe(false)
  ids.free(7)
  expect(ids.claim(7)).toBe(true)
  const taken = Array.from({ length: 1_000_000 }, () => {
    const id = ids.take()
    ids.free(id)
    return id
  })
  expect(new Set(taken).size).toBe(taken.length)
})

test('the ids of one process do not tell those of another', () => {
  const [one, other] = [new Ids(), new Ids()]
  const taken = new Set(Array.from({ length: 10_000 }, () => one.take()))
  const common = Array.from({ length: 10_000 }, () => other.take()).filter((id) => taken.has(id))
  expect(common.length).toBeLessThan(100)
})
