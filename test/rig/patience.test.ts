/** When a rig gives up: not while something moves, and not never. */
import { expect, test } from 'vitest'
import { Standstill } from './patience.ts'

const LIMIT_MS = 1_000

function watched() {
  const time = { now: 50 }
  const standstill = new Standstill(LIMIT_MS, () => time.now)
  const after = (ms: number, seen: string): boolean => {
    time.now += ms
    return standstill.isReached(seen)
  }
  return after
}

test('a standstill is the same for as long as the limit', () => {
  const after = watched()
  expect(after(0, 'a')).toBe(false)
  expect(after(LIMIT_MS - 1, 'a')).toBe(false)
  expect(after(1, 'a')).toBe(true)
})

test('what moves now and then is waited for longer than the limit', () => {
  const after = watched()
  for (let move = 0; move < 3; move++) expect(after(LIMIT_MS - 1, `state ${move}`)).toBe(false)
  expect(after(LIMIT_MS - 1, 'state 2')).toBe(false)
  expect(after(1, 'state 2')).toBe(true)
})

test('what moves for ever is not waited for for ever', () => {
  const after = watched()
  for (let move = 0; move < 50; move++) expect(after(LIMIT_MS / 10 - 1, move % 2 === 0 ? 'a' : 'b')).toBe(false)
  expect(after(LIMIT_MS / 10, 'a')).toBe(true)
})
