import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Lane } from '../../../../server/kernel/channels/lane.ts'
import { LanesByAge } from '../../../../server/kernel/channels/lanes-by-age.ts'

test('the oldest lane comes first, although lanes grow younger and empty without a word, and come again', () => {
  const change = fc.record({ lane: fc.nat(9), by: fc.integer({ min: -1, max: 5 }), isAsked: fc.boolean() })
  fc.assert(
    fc.property(fc.array(change, { maxLength: 100 }), (changes) => {
      const lanes = Array.from({ length: 10 }, (_, id) => new Lane(id))
      const stamps = new Map<Lane, number>()
      const byAge = new LanesByAge()
      let now = 0
      for (const { lane: id, by, isAsked } of changes) {
        const lane = lanes[id]!
        const stamp = stamps.get(lane)
        if (stamp === undefined) stamps.set(lane, ++now)
        else if (by < 0) stamps.delete(lane)
        else stamps.set(lane, Math.min(now, stamp + by))
        if (stamp === undefined) byAge.add(lane, now)
        if (!isAsked) continue
        const oldest = byAge.oldest((asked) => stamps.get(asked))
        expect(oldest && stamps.get(oldest)).toBe(stamps.size === 0 ? undefined : Math.min(...stamps.values()))
      }
    }),
  )
})

test('a lane that has nothing is taken out, and is not asked for again', () => {
  const byAge = new LanesByAge()
  const asked: number[] = []
  const none = ({ id }: Lane): undefined => {
    asked.push(id)
  }
  for (const id of [1, 2]) byAge.add(new Lane(id), id)
  expect([byAge.oldest(none), byAge.oldest(none)]).toEqual([undefined, undefined])
  expect(asked).toEqual([1, 2])
})
