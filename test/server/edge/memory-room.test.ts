/** The memory that bodies of all tenants have together: whoever has most gives way, and never to less than his share. */
import { expect, it } from 'vitest'
import { MemoryRoom } from '../../../server/edge/memory-room.ts'
import { seeds } from '../../support/long.ts'
import { Random } from '../../support/random.ts'

it('refuses the body that the tenant with most has begun last', () => {
  const room = new MemoryRoom(100)
  const [first, second, other] = [room.enter('a'), room.enter('a'), room.enter('b')]
  first.took(50)
  second.took(40)
  other.took(10)
  expect([first, second, other].map(({ refused }) => refused.aborted)).toEqual([false, false, false])
  other.took(1)
  expect([first, second, other].map(({ refused }) => refused.aborted)).toEqual([false, true, false])
  // Its memory is free at once, and what still comes of it does not count.
  second.took(1_000)
  other.took(39)
  expect([first, other].map(({ refused }) => refused.aborted)).toEqual([false, false])
})

it('refuses none that has nothing yet: that would free nothing', () => {
  const room = new MemoryRoom(100)
  const [first, waiting] = [room.enter('a'), room.enter('a')]
  first.took(101)
  expect([first, waiting].map(({ refused }) => refused.aborted)).toEqual([true, false])
  waiting.took(100)
  expect(waiting.refused.aborted).toBe(false)
})

it('refuses none that is worked on, and then the next best', () => {
  const room = new MemoryRoom(100)
  const [first, other, last] = [room.enter('a'), room.enter('b'), room.enter('c')]
  first.took(90)
  first.complete()
  other.took(8)
  last.took(3)
  expect([first, other, last].map(({ refused }) => refused.aborted)).toEqual([false, true, false])
  last.took(20)
  expect(last.refused.aborted).toBe(true)
  first.leave()
  first.leave()
  const next = room.enter('c')
  next.took(100)
  expect(next.refused.aborted).toBe(false)
})

it.each(seeds({ short: 20, long: 500 }))(
  'never has more than it may, nor refuses who has less than his share, seed %i',
  (seed) => {
    const random = new Random(seed)
    const most = 1_000
    const room = new MemoryRoom(most)
    const held = new Map<string, { tenant: string; bytes: number; place: ReturnType<MemoryRoom['enter']> }>()
    for (let step = 0; step < 400; step++) {
      const tenant = `t${random.below(4)}`
      const key = `${tenant} ${random.below(4)}`
      const one = held.get(key)
      if (one === undefined) held.set(key, { tenant, bytes: 0, place: room.enter(tenant) })
      else if (random.below(8) === 0) {
        one.place.leave()
        held.delete(key)
      } else {
        const before = new Map<string, number>()
        const bytes = random.below(200)
        one.bytes += bytes
        for (const { tenant, bytes } of held.values()) before.set(tenant, (before.get(tenant) ?? 0) + bytes)
        one.place.took(bytes)
        for (const [key, { tenant, place }] of held) {
          if (!place.refused.aborted) continue
          expect(before.get(tenant)).toBeGreaterThan(most / before.size)
          place.leave()
          held.delete(key)
        }
      }
      expect([...held.values()].reduce((sum, { bytes }) => sum + bytes, 0)).toBeLessThanOrEqual(most)
    }
  },
)
