import { expect, it } from 'vitest'
import { Pace } from '../../../../server/edge/http/pace.ts'

const PER_TURN = 8

it('begins few requests in a turn, in their order, and nothing goes on when none waits', () => {
  const turns: (() => void)[] = []
  const pace = new Pace((turn) => turns.push(turn))
  const begun: number[] = []
  for (let request = 0; request < 20; request++) pace.begin(() => begun.push(request))
  expect(begun).toEqual(Array.from({ length: PER_TURN }, (_, request) => request))
  turns.shift()?.()
  expect(begun).toHaveLength(2 * PER_TURN)
  turns.shift()?.()
  expect(begun).toEqual(Array.from({ length: 20 }, (_, request) => request))
  // One more, which finds that its turn has room.
  pace.begin(() => begun.push(20))
  expect(begun).toHaveLength(21)
  turns.shift()?.()
  expect(turns).toEqual([])
})

it('does not begin a request inside of one that begins in the same turn beyond their number', () => {
  const turns: (() => void)[] = []
  const pace = new Pace((turn) => turns.push(turn))
  let begun = 0
  const again = (): void => {
    if (++begun < 30) pace.begin(again)
  }
  pace.begin(again)
  expect(begun).toBe(PER_TURN)
  while (turns.length > 0) turns.shift()?.()
  expect(begun).toBe(30)
})
