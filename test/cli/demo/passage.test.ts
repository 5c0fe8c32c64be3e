import { expect, test } from 'vitest'
import { describeFaults, passageTo } from '../../../cli/demo/passage.ts'

const balanced = { name: 'rack1', from: 'its source', sent: 3, arrived: 3, lost: 0, repeated: 0 }

test('what was sent and has arrived is neither lost nor repeated', () => {
  expect(passageTo('rack1', 'its source', 3, { accepted: 3, dropped: [] })).toEqual(balanced)
})

test('what was sent and never came is lost', () => {
  expect(passageTo('east', 'rack1', 5, { accepted: 3, dropped: [] })).toMatchObject({ lost: 2, repeated: 0 })
})

test('what the channel dropped is lost, for any reason', () => {
  const dropped = [
    { reason: 'overflow', count: 2 },
    { reason: 'expired', count: 1 },
  ]
  expect(passageTo('east', 'rack1', 5, { accepted: 5, dropped })).toMatchObject({ lost: 3, repeated: 0 })
})

test('what came although it was not sent is repeated', () => {
  expect(passageTo('east', 'rack1', 3, { accepted: 4, dropped: [] })).toMatchObject({ lost: 0, repeated: 1 })
})

test('only what does not balance is described', () => {
  expect(describeFaults([balanced, balanced])).toBe('')
  expect(describeFaults([balanced, { ...balanced, name: 'east', from: 'rack1', arrived: 2, lost: 1 }])).toBe(
    'from rack1 to east: 3 sent, 2 arrived, 1 lost, 0 repeated',
  )
  expect(describeFaults([{ ...balanced, lost: 1, repeated: 1 }])).toBe(
    'from its source to rack1: 3 sent, 3 arrived, 1 lost, 1 repeated',
  )
})
