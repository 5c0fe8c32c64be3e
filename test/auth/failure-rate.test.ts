import { expect, test } from 'vitest'
import { FailureRate } from '../../auth/throttle.ts'

const MINUTE = 60_000

test('failures are counted for each identity, and fade within the minute behind theirs', () => {
  const it = new FailureRate(10)
  for (let i = 0; i < 8; i++) it.count('alice', 5 * MINUTE)
  it.count('bob', 5 * MINUTE)
  expect(it.of('alice', 5 * MINUTE)).toBe(8)
  expect(it.of('alice', 6 * MINUTE - 1)).toBe(8)
  expect(it.of('alice', 6 * MINUTE)).toBe(8)
  expect(it.of('alice', 6.25 * MINUTE)).toBe(6)
  expect(it.of('alice', 7 * MINUTE)).toBe(0)
  expect(it.of('bob', 5 * MINUTE)).toBe(1)
  expect(it.of('carol', 5 * MINUTE)).toBe(0)
})

test('those of the minute before count with those of this one', () => {
  const it = new FailureRate(10)
  it.count('alice', 5 * MINUTE)
  it.count('alice', 5 * MINUTE)
  it.count('alice', 6.5 * MINUTE)
  expect(it.of('alice', 6.5 * MINUTE)).toBe(2)
  expect(it.of('alice', 7.5 * MINUTE)).toBe(0.5)
})

test('when there are too many, what failed least recently is forgotten', () => {
  const it = new FailureRate(2)
  it.count('alice', 0)
  it.count('bob', 0)
  it.count('alice', 0)
  it.count('carol', 0)
  expect(['alice', 'bob', 'carol'].map((identity) => it.of(identity, 0))).toEqual([2, 0, 1])
})
