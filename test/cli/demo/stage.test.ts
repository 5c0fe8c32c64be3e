import { expect, test } from 'vitest'
import { SequenceCheck } from '../../../cli/demo/stage.ts'

function counted(numbers: readonly number[]) {
  const count = new SequenceCheck()
  for (const number of numbers) count.take(number)
  const { handled, repeated } = count
  return { handled, lost: count.lostOf(Math.max(...numbers)), repeated }
}

test('numbers that come once and in order are neither lost nor repeated', () => {
  expect(counted([1, 2, 3])).toEqual({ handled: 3, lost: 0, repeated: 0 })
})

test('a number that arrives again is repeated', () => {
  expect(counted([1, 2, 2, 3])).toEqual({ handled: 4, lost: 0, repeated: 1 })
})

test('numbers that are passed over are lost, the first ones too', () => {
  expect(counted([3, 4, 7])).toEqual({ handled: 3, lost: 4, repeated: 0 })
})

test('numbers that were fed and have not come are lost', () => {
  const count = new SequenceCheck()
  count.take(1)
  expect([count.lostOf(1), count.lostOf(3)]).toEqual([0, 2])
})

test('numbers out of order are no success', () => {
  expect(counted([2, 1, 3])).toEqual({ handled: 3, lost: 1, repeated: 1 })
})
