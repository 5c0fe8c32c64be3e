import { describe, expect, test } from 'vitest'
import { bindingsOf, type Follow, Follows } from '../../client/follows.ts'
import { BasicType } from '../../protocol/monitor/constants.ts'

const { ARRAY, REC, UINT32, STRING } = BasicType
const follow = (metric: string): Follow => ({
  metric,
  args: {},
  handler: undefined,
  id: 0,
  stop: () => Promise.resolve(),
})

test('a metric is known by the id that it has at present', () => {
  const follows = new Follows()
  const a = follow('a')
  follows.set(7, a)
  expect([follows.get(7), follows.nameOf(7), a.id, follows.size]).toEqual([a, 'a', 7, 1])
  follows.set(8, a)
  expect([follows.nameOf(7), follows.get(8), a.id, follows.size]).toEqual(['', a, 8, 1])
  follows.delete(a)
  expect([follows.get(8), follows.size]).toEqual([undefined, 0])
})

test('values of an id that it had before, which still wait, are its own until it is stopped', () => {
  const follows = new Follows()
  const a = follow('a')
  for (let id = 7; id <= 7 + 1025; id++) follows.set(id, a)
  expect([follows.get(7), follows.get(8)]).toEqual([undefined, a])
  expect(follows.reconcile(new Map())).toEqual([a])
  follows.delete(a)
  expect(follows.get(8)).toBeUndefined()
})

test('what the channel binds besides has its name, and can be claimed', () => {
  const follows = new Follows()
  expect(
    follows.reconcile(
      new Map([
        [7, 'a'],
        [8, 'b'],
      ]),
    ),
  ).toEqual([])
  expect([follows.nameOf(7), follows.nameOf(9), follows.size]).toEqual(['a', '', 0])
  expect([follows.claim('a'), follows.claim('c')]).toEqual([7, undefined])
  follows.set(7, follow('a'))
  expect(follows.claim('a')).toBeUndefined()
})

test('what is bound twice under one name cannot be claimed', () => {
  const follows = new Follows()
  follows.reconcile(
    new Map([
      [7, 'a'],
      [8, 'b'],
      [9, 'a'],
    ]),
  )
  expect(() => follows.claim('a')).toThrow(/binds a more than once \(ids 7, 9\)/)
  expect(follows.claim('b')).toBe(8)
})

test('what is followed and not bound any more is missing, unless that is not known', () => {
  const follows = new Follows()
  const [a, b] = [follow('a'), follow('b')]
  follows.set(7, a)
  follows.set(8, b)
  expect(follows.reconcile(undefined)).toEqual([])
  expect(
    follows.reconcile(
      new Map([
        [8, 'b'],
        [9, 'c'],
      ]),
    ),
  ).toEqual([a])
  expect([follows.claim('b'), follows.claim('c')]).toEqual([undefined, 9])
})

test('nothing is left of a channel that was left', () => {
  const follows = new Follows()
  follows.set(7, follow('a'))
  follows.reconcile(new Map([[8, 'b']]))
  follows.clear()
  expect([follows.size, follows.nameOf(7), follows.nameOf(8), follows.claim('b')]).toEqual([0, '', '', undefined])
})

describe('the answer of producer.channels', () => {
  const binding = (metric: number, name: string) => [
    { name: 'metric', type: UINT32, value: metric },
    { name: 'name', type: STRING, value: name },
  ]
  const channels = (...items: readonly unknown[]) => ({ type: ARRAY, value: { element: REC, items } }) as never

  test('tells the ids of a channel with their names', () => {
    const bindings = { name: 'bindings', ...(channels(binding(7, 'a'), binding(8, 'b')) as object) }
    expect(bindingsOf(channels([{ name: 'channel', type: UINT32, value: 9 }, bindings]))).toEqual(
      new Map([
        [7, 'a'],
        [8, 'b'],
      ]),
    )
  })

  test('tells nothing where it does not know the channel, or is no list', () => {
    expect(bindingsOf(channels())).toBeUndefined()
    expect(bindingsOf({ type: UINT32, value: 7 })).toBeUndefined()
  })
})
