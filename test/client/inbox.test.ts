import { expect, test } from 'vitest'
import { Inbox } from '../../client/inbox.ts'
import { settle } from './fake-producer.ts'

function inbox(limit: number) {
  const held: boolean[] = []
  return { held, inbox: new Inbox<number>({ limit, hold: (isHeld) => held.push(isHeld) }) }
}

test('what arrives is taken in its order', () => {
  const { inbox: box } = inbox(10_000)
  const all = Array.from({ length: 10_000 }, (_, i) => i + 1)
  const taken: unknown[] = []
  for (const item of all) {
    box.push(item)
    if (item % 3 === 0) taken.push(box.take())
  }
  while (box.length > 0) taken.push(box.take())
  expect(taken).toEqual(all)
  expect(box.take()).toBeUndefined()
})

test('it asks to be spared above the limit, and for more at half of that, once each', () => {
  const { inbox: box, held } = inbox(4)
  for (let i = 1; i <= 4; i++) box.push(i)
  expect(held).toEqual([])
  box.push(5)
  box.push(6)
  expect(held).toEqual([true])
  for (let i = 0; i < 3; i++) box.take()
  expect(held).toEqual([true])
  expect(box.isHeld).toBe(true)
  box.take()
  box.take()
  expect(held).toEqual([true, false])
})

test('what is put back is the next to be taken', () => {
  const { inbox: box } = inbox(4)
  for (let i = 1; i <= 3; i++) box.push(i)
  box.take()
  box.putBack(box.take()!)
  expect([box.length, box.take(), box.take(), box.take()]).toEqual([2, 2, 3, undefined])
})

test('nothing is left of what is cleared, and reading goes on', () => {
  const { inbox: box, held } = inbox(1)
  box.push(1)
  box.push(2)
  box.clear()
  expect([box.length, box.take()]).toEqual([0, undefined])
  expect(held).toEqual([true, false])
})

test('a reader that waits is woken by what arrives, and by `wake`', async () => {
  const { inbox: box } = inbox(4)
  let woken = 0
  for (const wake of [() => box.push(1), () => box.wake()]) {
    const before = woken
    void box.arrived().then(() => woken++)
    await settle()
    expect(woken).toBe(before)
    wake()
    await settle()
    expect(woken).toBe(before + 1)
  }
})
