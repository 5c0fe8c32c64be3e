import { describe, expect, test } from 'vitest'
import type { SendCommand } from '../../client/commands.ts'
import { bindingsOf, type FollowedMetric, Subscriptions } from '../../client/subscriptions.ts'
import { BasicType } from '../../protocol/monitor/constants.ts'
import type { Value } from '../../protocol/monitor/value.ts'

const { ARRAY, REC, UINT32, STRING } = BasicType
const follow = (metric: string): FollowedMetric => ({
  metric,
  args: {},
  handler: undefined,
  id: 0,
  stop: () => Promise.resolve(),
})
/** A connection whose response to each command has this id. */
const given =
  (id: number): SendCommand =>
  (_name, _values, onOk) => {
    onOk?.(id)
    return Promise.resolve(id)
  }
/** The id of the binding that is taken over under this name. */
function adopted(subscriptions: Subscriptions, metric: string): number | undefined {
  const followed = follow(metric)
  return subscriptions.adopt(followed) ? followed.id : undefined
}

test('a metric is known by the id that it has at present', async () => {
  const subscriptions = new Subscriptions()
  const a = follow('a')
  await subscriptions.bind(given(7), a)
  expect([subscriptions.get(7), subscriptions.nameOf(7), a.id, subscriptions.size]).toEqual([a, 'a', 7, 1])
  await subscriptions.bind(given(8), a)
  expect([subscriptions.nameOf(7), subscriptions.get(8), a.id, subscriptions.size]).toEqual(['', a, 8, 1])
  subscriptions.delete(a)
  expect([subscriptions.get(8), subscriptions.size]).toEqual([undefined, 0])
})

test('values with an id that it had before are its own until it is stopped', async () => {
  const subscriptions = new Subscriptions()
  const a = follow('a')
  for (let id = 7; id <= 7 + 1025; id++) await subscriptions.bind(given(id), a)
  expect([subscriptions.get(7), subscriptions.get(8)]).toEqual([undefined, a])
  expect(subscriptions.reconcile(new Map())).toEqual([a])
  subscriptions.delete(a)
  expect(subscriptions.get(8)).toBeUndefined()
})

test('what else the channel binds has its name, and can be taken over', async () => {
  const subscriptions = new Subscriptions()
  expect(
    subscriptions.reconcile(
      new Map([
        [7, 'a'],
        [8, 'b'],
      ]),
    ),
  ).toEqual([])
  expect([subscriptions.nameOf(7), subscriptions.nameOf(9), subscriptions.size]).toEqual(['a', '', 0])
  expect([adopted(subscriptions, 'a'), adopted(subscriptions, 'c')]).toEqual([7, undefined])
  expect([subscriptions.get(7)?.metric, adopted(subscriptions, 'a')]).toEqual(['a', undefined])
})

test('what is bound twice under one name cannot be taken over', async () => {
  const subscriptions = new Subscriptions()
  subscriptions.reconcile(
    new Map([
      [7, 'a'],
      [8, 'b'],
      [9, 'a'],
    ]),
  )
  expect(() => adopted(subscriptions, 'a')).toThrow(/binds a more than once \(ids 7, 9\)/)
  expect(adopted(subscriptions, 'b')).toBe(8)
})

test('what is followed and not bound any more is missing, unless that is not known', async () => {
  const subscriptions = new Subscriptions()
  const [a, b] = [follow('a'), follow('b')]
  await subscriptions.bind(given(7), a)
  await subscriptions.bind(given(8), b)
  expect(subscriptions.reconcile(undefined)).toEqual([])
  expect(
    subscriptions.reconcile(
      new Map([
        [8, 'b'],
        [9, 'c'],
      ]),
    ),
  ).toEqual([a])
  expect([adopted(subscriptions, 'b'), adopted(subscriptions, 'c')]).toEqual([undefined, 9])
})

test('nothing is left of a channel that was left', async () => {
  const subscriptions = new Subscriptions()
  await subscriptions.bind(given(7), follow('a'))
  subscriptions.reconcile(new Map([[8, 'b']]))
  subscriptions.clear()
  expect([subscriptions.size, subscriptions.nameOf(7), subscriptions.nameOf(8)]).toEqual([0, '', ''])
  expect(adopted(subscriptions, 'b')).toBeUndefined()
})

describe('the answer of producer.channels', () => {
  const binding = (metric: number, name: string) => [
    { name: 'metric', type: UINT32, value: metric },
    { name: 'name', type: STRING, value: name },
  ]
  const bound = (value: Value) =>
    bindingsOf(9, async () => ({ kind: 'value', metric: 5, transaction: 0, time: 0, value }))
  const channels = (...items: readonly unknown[]) => ({ type: ARRAY, value: { element: REC, items } }) as never

  test('has the ids of a channel with their names', async () => {
    const bindings = { name: 'bindings', ...(channels(binding(7, 'a'), binding(8, 'b')) as object) }
    expect(await bound(channels([{ name: 'channel', type: UINT32, value: 9 }, bindings]))).toEqual(
      new Map([
        [7, 'a'],
        [8, 'b'],
      ]),
    )
  })

  test('has nothing if the channel is unknown, or if it is not a list', async () => {
    expect(await bound(channels())).toBeUndefined()
    expect(await bound({ type: UINT32, value: 7 })).toBeUndefined()
  })
})
