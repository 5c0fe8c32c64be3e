import { expect, test } from 'vitest'
import { Throttle, type ThrottleLimits } from '../../auth/throttle.ts'
import { times } from '../support/long.ts'

const SECOND = 1000
const MINUTE = 60 * SECOND
const HERE = '192.0.2.1'

const clock = { now: 1_000_000 }

function throttle(limits?: ThrottleLimits): Throttle {
  clock.now = 1_000_000
  return new Throttle(() => clock.now, limits)
}

/** Fails as often as is looked at, `times` at most; gives how often that was. */
function fail(it: Throttle, times: number, identity = 'alice', address = HERE): number {
  for (let i = 0; i < times; i++) {
    if (it.isThrottled(identity, address)) return i
    it.failed(identity, address)
  }
  return times
}

/** The `i`th of very many networks. */
const network = (i: number): string => `10.${(i >> 8) & 255}.${i & 255}.7`

test('the sixth failure within a minute throttles the pair, the fifth does not', () => {
  const it = throttle()
  fail(it, 5)
  expect(it.isThrottled('alice', HERE)).toBe(false)
  fail(it, 1)
  expect(it.isThrottled('alice', HERE)).toBe(true)
})

test('six failures spread over more than a minute do not throttle', () => {
  const it = throttle()
  for (let i = 0; i < 20; i++) {
    clock.now += 12 * SECOND
    expect(fail(it, 1)).toBe(1)
  }
})

test('any minute counts, not only one that begins with the first failure', () => {
  const it = throttle()
  fail(it, 3)
  clock.now += 59 * SECOND
  fail(it, 2)
  clock.now += 2 * SECOND
  expect(fail(it, 10)).toBe(4)
})

test('each block is twice as long as the one before, a quarter of an hour at most', () => {
  const it = throttle()
  for (const minutes of [1, 2, 4, 8, 15, 15]) {
    expect(fail(it, 10)).toBe(6)
    clock.now += minutes * MINUTE - 1
    expect(it.isThrottled('alice', HERE), `${minutes} min`).toBe(true)
    clock.now += 1
    expect(it.isThrottled('alice', HERE), `${minutes} min`).toBe(false)
  }
})

test('a quarter of an hour of quiet after a block, and it begins with a minute again', () => {
  const it = throttle()
  const block = (): number => {
    fail(it, 6)
    const begun = clock.now
    while (it.isThrottled('alice', HERE)) clock.now += SECOND
    return (clock.now - begun) / MINUTE
  }
  expect([block(), block()]).toEqual([1, 2])
  clock.now += 15 * MINUTE - 1
  expect(block()).toBe(4)
  clock.now += 15 * MINUTE
  expect(block()).toBe(1)
})

test('a failure that comes out while throttled does not prolong it', () => {
  const it = throttle()
  fail(it, 6)
  clock.now += 59 * SECOND
  for (let i = 0; i < 10; i++) it.failed('alice', HERE)
  clock.now += SECOND
  expect(it.isThrottled('alice', HERE)).toBe(false)
})

test('success begins the series anew, and with it the shortest block', () => {
  const it = throttle()
  fail(it, 6)
  clock.now += MINUTE
  fail(it, 5)
  it.succeeded('alice', HERE)
  expect(fail(it, 10)).toBe(6)
  clock.now += MINUTE
  expect(it.isThrottled('alice', HERE)).toBe(false)
})

test('beside somebody who succeeds all the time, twenty guesses a minute are looked at', () => {
  const it = throttle()
  let looked = 0
  for (let second = 0; second < 600; second++) {
    if (!it.isThrottled('alice', HERE)) it.succeeded('alice', HERE)
    looked += fail(it, 3)
    clock.now += SECOND
  }
  expect(looked).toBeGreaterThan(100)
  expect(looked).toBeLessThanOrEqual(200)
})

test('twenty guesses of a pair may be under way at once, less those that have failed already', () => {
  const it = throttle()
  fail(it, 5)
  const places = Array.from({ length: 16 }, () => it.begin('alice', HERE))
  expect(places.map((place) => place !== undefined)).toEqual([...new Array(15).fill(true), false])
  expect(it.begin('alice', '192.0.3.1')).toBeDefined()
  expect(it.begin('bob', HERE)).toBeDefined()
  places[0]?.()
  expect(it.begin('alice', HERE)).toBeDefined()
  expect(it.begin('alice', HERE)).toBeUndefined()
})

test('the owner still gets in from another network, and others from the same', () => {
  const it = throttle()
  fail(it, 6)
  expect(it.isThrottled('alice', '192.0.2.77')).toBe(true)
  expect(it.isThrottled('alice', '::ffff:192.0.2.9')).toBe(true)
  expect(it.isThrottled('alice', '192.0.3.1')).toBe(false)
  expect(it.isThrottled('bob', HERE)).toBe(false)
})

test('of an identity twenty failures a minute are looked at, whatever networks they come from', () => {
  const it = throttle()
  let looked = 0
  for (let i = 0; i < times({ short: 1_000, long: 10_000 }); i++) looked += fail(it, 1, 'alice', network(i))
  expect(looked).toBe(20)
  expect(fail(it, 10, 'bob', network(0))).toBe(6)
})

test('in any minute: each failure makes room for one more when it is a minute old', () => {
  const it = throttle()
  const looked: number[] = []
  for (let i = 0; i < 1_200; i++) {
    if (fail(it, 1, 'alice', network(i)) === 1) looked.push(clock.now)
    clock.now += 500
  }
  expect(looked.length).toBe(200)
  for (const [i, at] of looked.entries()) expect(at - (looked[i - 20] ?? 0)).toBeGreaterThanOrEqual(MINUTE)
})

test('above the ceiling new networks are closed; loopback and those where the identity succeeded stay open', () => {
  const it = throttle()
  it.succeeded('alice', '203.0.113.1')
  for (let i = 0; i < times({ short: 1_000, long: 10_000 }); i++) fail(it, 10, 'alice', network(i))
  expect(it.isThrottled('alice', '198.51.100.1')).toBe(true)
  expect(fail(it, 10, 'alice', '203.0.113.200')).toBe(6)
  expect(fail(it, 10, 'alice', '127.0.0.1')).toBe(6)
  clock.now += MINUTE
  expect(it.isThrottled('alice', '198.51.100.1')).toBe(false)
})

test('failures on loopback and where the identity succeeded close no other network', () => {
  const it = throttle()
  for (let i = 0; i < 10; i++) it.succeeded('alice', network(i))
  for (let i = 0; i < 10; i++) expect(fail(it, 5, 'alice', network(i))).toBe(5)
  expect(fail(it, 10, 'alice', '127.0.0.1')).toBe(6)
  expect(fail(it, 10, 'alice', '198.51.100.1')).toBe(6)
})

test('all of loopback is one network', () => {
  const it = throttle()
  let looked = 0
  for (let i = 0; i < 1_000; i++) looked += fail(it, 1, 'alice', `127.${i & 255}.${i >> 8}.1`)
  expect([looked, it.pairs]).toEqual([6, 1])
  expect(it.isThrottled('alice', '::1')).toBe(true)
})

test.each([
  ['/56', 8, (i: number) => `2001:db8:0:${(i & 255).toString(16)}::1`],
  ['/48', 12, (i: number) => `2001:db8:0:${(i * 256).toString(16)}::1`],
  ['/32', 16, (i: number) => `2001:db8:${i.toString(16)}::1`],
  ['world', 20, (i: number) => `2001:${(i + 0xdb8).toString(16)}::1`],
])('a %s of IPv6 has %i failures a minute, and leaves some to the others', (_, most, address) => {
  const it = throttle()
  let looked = 0
  for (let i = 0; i < 200; i++) looked += fail(it, 1, 'alice', address(i))
  expect(looked).toBe(most)
  expect(it.isThrottled('alice', '192.0.2.1')).toBe(most === 20)
})

test('a success is remembered for thirty days, in sixteen networks', () => {
  const it = throttle()
  it.succeeded('alice', '203.0.113.1')
  clock.now += 30 * 24 * 60 * MINUTE - 1
  expect(it.isKnown('alice', '203.0.113.77')).toBe(true)
  expect(it.isKnown('bob', '203.0.113.77')).toBe(false)
  clock.now += 1
  expect(it.isKnown('alice', '203.0.113.1')).toBe(false)
  for (let i = 0; i < 17; i++) it.succeeded('alice', network(i))
  expect(Array.from({ length: 17 }, (_, i) => it.isKnown('alice', network(i)))).toEqual([
    false,
    ...new Array(16).fill(true),
  ])
})

test('somebody who logs in from very many networks makes nobody else forgotten', () => {
  const it = throttle({ pairs: 20, pairsOfPrefix: 3 })
  it.succeeded('alice', '203.0.113.1')
  for (let i = 0; i < 100; i++) it.succeeded('eve', network(i))
  expect(it.isKnown('alice', '203.0.113.1')).toBe(true)
})

test('of too many who succeeded, the one who did so first is forgotten', () => {
  const it = throttle({ pairs: 3, pairsOfPrefix: 3 })
  for (const identity of ['alice', 'bob', 'carol', 'alice', 'dave']) it.succeeded(identity, HERE)
  expect(['alice', 'bob', 'carol', 'dave'].map((identity) => it.isKnown(identity, HERE))).toEqual([
    true,
    false,
    true,
    true,
  ])
})

test('pairs that no longer matter are let go of', () => {
  const it = throttle()
  for (let i = 0; i < 100; i++) fail(it, 1, `user${i}`)
  expect(it.pairs).toBe(100)
  clock.now += MINUTE
  fail(it, 1)
  expect(it.pairs).toBe(1)
})

test('very many pairs of one network free none that is blocked, and cost the others there', () => {
  const it = throttle()
  fail(it, 6)
  let looked = 0
  for (let i = 0; i < times({ short: 1_500, long: 20_000 }); i++) looked += fail(it, 1, `user${i}`)
  expect(looked).toBe(511)
  expect(it.pairs).toBe(512)
  expect(it.isThrottled('alice', HERE)).toBe(true)
  expect(it.isThrottled('bob', HERE)).toBe(true)
  expect(it.isThrottled('bob', '192.0.3.1')).toBe(false)
  clock.now += MINUTE
  expect(it.isThrottled('bob', HERE)).toBe(false)
})

test('a full network goes on with those who succeeded there before', () => {
  const it = throttle({ pairs: 100, pairsOfPrefix: 2 })
  it.succeeded('carol', HERE)
  fail(it, 1, 'alice')
  fail(it, 1, 'bob')
  expect(it.isThrottled('dave', HERE)).toBe(true)
  expect(it.isThrottled('carol', HERE)).toBe(false)
})

test('a full network gives up how often it was blocked, not that it is', () => {
  const it = throttle({ pairs: 100, pairsOfPrefix: 2 })
  fail(it, 6, 'alice')
  clock.now += MINUTE
  fail(it, 6, 'bob')
  expect(it.isThrottled('carol', HERE)).toBe(false)
  fail(it, 1, 'carol')
  expect(it.isThrottled('bob', HERE)).toBe(true)
  expect(it.isThrottled('dave', HERE)).toBe(true)
})

test('when there are too many pairs, the network that has been quiet for longest is forgotten as a whole', () => {
  const it = throttle({ pairs: 4, pairsOfPrefix: 3 })
  fail(it, 6, 'alice', network(1))
  fail(it, 6, 'bob', network(2))
  fail(it, 6, 'carol', network(2))
  fail(it, 1, 'dave', network(1))
  fail(it, 1, 'erin', network(3))
  expect(it.pairs).toBe(3)
  expect(it.isThrottled('bob', network(2))).toBe(false)
  expect(it.isThrottled('alice', network(1))).toBe(true)
})

test('very many networks are not all remembered', () => {
  const it = throttle()
  for (let i = 0; i < 33_000; i++)
    fail(it, 1, `user${i}`, `11.${i >> 16}.${(i >> 8) & 255}.7`.replace('11', `${i & 255}`))
  expect(it.pairs).toBeGreaterThan(30_000)
  expect(it.pairs).toBeLessThanOrEqual(32_768)
})

test('says how long it lasts', () => {
  const it = throttle()
  expect(it.waitMs('alice', HERE)).toBe(0)
  fail(it, 6)
  expect(it.waitMs('alice', HERE)).toBe(MINUTE)
  clock.now += 13 * SECOND
  expect(it.waitMs('alice', HERE)).toBe(47 * SECOND)
  clock.now += 47 * SECOND
  expect(it.waitMs('alice', HERE)).toBe(0)
  fail(it, 6)
  expect(it.waitMs('alice', HERE)).toBe(2 * MINUTE)
})

test('over several networks it lasts until the oldest failure that counts is a minute old', () => {
  const it = throttle()
  for (let i = 0; i < 20; i++) {
    fail(it, 1, 'alice', `192.0.${i}.1`)
    clock.now += SECOND
  }
  expect(it.waitMs('alice', '198.51.100.1')).toBe(40 * SECOND)
  clock.now += 39 * SECOND
  expect(it.waitMs('alice', '198.51.100.1')).toBe(SECOND)
  clock.now += SECOND
  expect(it.waitMs('alice', '198.51.100.1')).toBe(0)
})
