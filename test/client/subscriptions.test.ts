import { describe, expect, test } from 'vitest'
import type { SendCommand } from '../../client/commands.ts'
import { StatusError } from '../../client/errors.ts'
import { type BoundMetric, bindingsOf, type FollowedMetric, Subscriptions } from '../../client/subscriptions.ts'
import type { Arguments } from '../../client/values.ts'
import { BasicType } from '../../protocol/monitor/constants.ts'
import type { Value } from '../../protocol/monitor/value.ts'

const { ARRAY, BOOLEAN, REC, UINT32, STRING } = BasicType
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
/** The id of the binding that is taken over for this metric with these arguments. */
function adopted(subscriptions: Subscriptions, metric: string, args: Arguments = {}): number | undefined {
  const followed = { ...follow(metric), args }
  return subscriptions.adopt(followed) && followed.id
}
const bound = (id: number, metric: string, args: Arguments = {}): [number, BoundMetric] => [
  id,
  { id, metric, args, mode: 'subscribe' },
]

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
  expect(subscriptions.reconcile(new Map([bound(7, 'a'), bound(8, 'b')]))).toEqual([])
  expect([subscriptions.nameOf(7), subscriptions.nameOf(9), subscriptions.size]).toEqual(['a', '', 0])
  expect([adopted(subscriptions, 'a'), adopted(subscriptions, 'c')]).toEqual([7, undefined])
  expect([subscriptions.get(7)?.metric, adopted(subscriptions, 'a')]).toEqual(['a', undefined])
})

test('a binding is taken over if its arguments are equal, in whatever types they are', () => {
  const subscriptions = new Subscriptions()
  const sixtyFour = 2n ** 63n
  const reported = { interval_ms: 500, after: sixtyFour, host: 'web1', on: true, key: Uint8Array.of(1, 2) }
  subscriptions.reconcile(new Map([bound(7, 'a'), bound(8, 'a', reported), bound(9, 'a', { host: '7' })]))
  expect(adopted(subscriptions, 'a', { interval_ms: 500 })).toBeUndefined()
  expect(adopted(subscriptions, 'a', { ...reported, interval_ms: 501 })).toBeUndefined()
  expect(adopted(subscriptions, 'a', { ...reported, more: 1 })).toBeUndefined()
  expect(adopted(subscriptions, 'a', { ...reported, key: Uint8Array.of(12) })).toBeUndefined()
  expect(subscriptions.unfollowed.map(({ id }) => id)).toEqual([7, 8, 9])
  expect(adopted(subscriptions, 'a', { ...reported, interval_ms: 500n, after: sixtyFour })).toBe(8)
  expect(adopted(subscriptions, 'a')).toBe(7)
  expect(adopted(subscriptions, 'a')).toBeUndefined()
  expect(subscriptions.unfollowed).toEqual([{ id: 9, metric: 'a', args: { host: '7' }, mode: 'subscribe' }])
  subscriptions.forget(9)
  expect([subscriptions.unfollowed, subscriptions.nameOf(9)]).toEqual([[], ''])
})

test('what is bound twice with the same arguments is taken over once by each that follows it', () => {
  const subscriptions = new Subscriptions()
  subscriptions.reconcile(new Map([bound(7, 'a'), bound(9, 'a')]))
  expect([1, 2, 3].map(() => adopted(subscriptions, 'a'))).toEqual([7, 9, undefined])
})

test('what is followed and not bound any more is missing, unless that is not known', async () => {
  const subscriptions = new Subscriptions()
  const [a, b] = [follow('a'), follow('b')]
  await subscriptions.bind(given(7), a)
  await subscriptions.bind(given(8), b)
  expect(subscriptions.reconcile(undefined)).toEqual([])
  expect(subscriptions.reconcile(new Map([bound(8, 'b'), bound(9, 'c')]))).toEqual([a])
  expect([adopted(subscriptions, 'b'), adopted(subscriptions, 'c')]).toEqual([undefined, 9])
})

test('nothing is left of a channel that was left', async () => {
  const subscriptions = new Subscriptions()
  await subscriptions.bind(given(7), follow('a'))
  subscriptions.reconcile(new Map([bound(8, 'b')]))
  subscriptions.clear()
  expect([subscriptions.size, subscriptions.nameOf(7), subscriptions.nameOf(8)]).toEqual([0, '', ''])
  expect(adopted(subscriptions, 'b')).toBeUndefined()
})

describe('the answer of producer.bindings', () => {
  const binding = (metric: number, name: string, ...args: readonly unknown[]) => [
    { name: 'metric', type: UINT32, value: metric },
    { name: 'name', type: STRING, value: name },
    { name: 'mode', type: STRING, value: 'buffer' },
    { name: 'arguments', type: REC, value: args },
  ]
  const more = [{ name: 'more', type: BOOLEAN, value: true }]
  const list = (...items: readonly unknown[]) => ({ type: ARRAY, value: { element: REC, items } }) as never
  const answers = (...pages: readonly Value[]) => {
    const asked: Arguments[] = []
    const left = [...pages]
    const found = bindingsOf(9, async (_metric, args) => {
      asked.push(args)
      return { kind: 'value', metric: 5, transaction: 0, time: 0, value: left.shift() as Value }
    })
    return found.then((map) => ({ asked, found: map && [...map.values()] }))
  }

  test('has the ids of a channel with their names and arguments, over several pages', async () => {
    const interval = { name: 'interval_ms', type: UINT32, value: 500 }
    const { asked, found } = await answers(list(binding(7, 'a', interval), more), list(binding(8, 'b')))
    expect(found).toEqual([
      { id: 7, metric: 'a', args: { interval_ms: 500 }, mode: 'buffer' },
      { id: 8, metric: 'b', args: {}, mode: 'buffer' },
    ])
    expect(asked).toEqual([{ channel: '9' }, { channel: '9', after: 7 }])
  })

  test('has nothing if the channel is unknown, or if it is not a list', async () => {
    expect((await answers(list())).found).toEqual([])
    expect((await answers({ type: UINT32, value: 7 })).found).toEqual([])
  })

  test('is not known where the producer refuses it', async () => {
    const refused = () => Promise.reject(new StatusError('QUERY', 7, 'none'))
    expect(await bindingsOf(9, refused)).toBeUndefined()
  })
})
