import { expect, test } from 'vitest'
import { isLoopback, networkPrefix, Throttle } from '../../auth/throttle.ts'

const clock = { now: 1_000_000 }

function throttle(maxPairs?: number): Throttle {
  clock.now = 1_000_000
  return new Throttle(() => clock.now, maxPairs)
}

function fail(it: Throttle, times: number, identity = 'alice', address = '192.0.2.1'): void {
  for (let i = 0; i < times; i++) it.failed(identity, address)
}

test('the sixth failure within a minute throttles the pair, the fifth does not', () => {
  const it = throttle()
  fail(it, 5)
  expect(it.isThrottled('alice', '192.0.2.1')).toBe(false)
  fail(it, 1)
  expect(it.isThrottled('alice', '192.0.2.1')).toBe(true)
})

test('the throttle ends when the first of the six is a minute old', () => {
  const it = throttle()
  fail(it, 1)
  clock.now += 10_000
  fail(it, 5)
  clock.now += 49_999
  expect(it.isThrottled('alice', '192.0.2.1')).toBe(true)
  clock.now += 1
  expect(it.isThrottled('alice', '192.0.2.1')).toBe(false)
})

test('six failures spread over more than a minute do not throttle', () => {
  const it = throttle()
  for (let i = 0; i < 20; i++) {
    clock.now += 12_000
    fail(it, 1)
    expect(it.isThrottled('alice', '192.0.2.1')).toBe(false)
  }
})

test('any minute counts, not only one that begins with the first failure', () => {
  const it = throttle()
  fail(it, 3)
  clock.now += 59_000
  fail(it, 2)
  clock.now += 2_000
  fail(it, 3)
  expect(it.isThrottled('alice', '192.0.2.1')).toBe(false)
  fail(it, 1)
  expect(it.isThrottled('alice', '192.0.2.1')).toBe(true)
})

test('a failure that comes out while throttled does not prolong it', () => {
  const it = throttle()
  fail(it, 6)
  clock.now += 59_000
  fail(it, 10)
  clock.now += 1_000
  expect(it.isThrottled('alice', '192.0.2.1')).toBe(false)
})

test('success clears the pair', () => {
  const it = throttle()
  fail(it, 5)
  it.succeeded('alice', '192.0.2.1')
  fail(it, 5)
  expect(it.isThrottled('alice', '192.0.2.1')).toBe(false)
  expect(it.pairs).toBe(1)
})

test('the owner still gets in from another network, and others from the same', () => {
  const it = throttle()
  fail(it, 6)
  expect(it.isThrottled('alice', '192.0.2.77')).toBe(true)
  expect(it.isThrottled('alice', '::ffff:192.0.2.9')).toBe(true)
  expect(it.isThrottled('alice', '192.0.3.1')).toBe(false)
  expect(it.isThrottled('bob', '192.0.2.1')).toBe(false)
})

test('when full, the pair whose last failure is oldest is forgotten', () => {
  const it = throttle(2)
  fail(it, 6, 'alice')
  fail(it, 5, 'bob')
  clock.now += 1
  fail(it, 1, 'bob')
  fail(it, 1, 'carol')
  expect(it.pairs).toBe(2)
  expect(it.isThrottled('alice', '192.0.2.1')).toBe(false)
  expect(it.isThrottled('bob', '192.0.2.1')).toBe(true)
})

test('pairs that no longer matter are let go of', () => {
  const it = throttle()
  for (let i = 0; i < 100; i++) fail(it, 1, `user${i}`)
  expect(it.pairs).toBe(100)
  clock.now += 60_000
  fail(it, 1, 'alice')
  expect(it.pairs).toBe(1)
})

test.each([
  ['192.0.2.200', '192.0.2.0/24'],
  ['::ffff:192.0.2.200', '192.0.2.0/24'],
  ['::FFFF:C000:02C8', '192.0.2.0/24'],
  ['2001:db8::1', '2001:db8:0:0::/64'],
  ['2001:0DB8:0:0:1:2:3:4', '2001:db8:0:0::/64'],
  ['2001:db8:0:1::', '2001:db8:0:1::/64'],
  ['64:ff9b::192.0.2.1', '64:ff9b:0:0::/64'],
  ['1:2:3:4:5:6:192.0.2.1', '1:2:3:4::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ['127.0.0.2', '127.0.0.2'],
  ['::ffff:127.0.0.1', '127.0.0.1'],
  ['::1', '::1'],
  ['', ''],
  ['/run/cinnabar.sock', '/run/cinnabar.sock'],
])('the network of %j is %j', (address, prefix) => {
  expect(networkPrefix(address)).toBe(prefix)
})

test.each([
  ['127.0.0.1', true],
  ['127.255.255.254', true],
  ['::1', true],
  ['0:0:0:0:0:0:0:1', true],
  ['::ffff:127.0.0.1', true],
  ['::ffff:7f00:1', true],
  ['128.0.0.1', false],
  ['::2', false],
  ['::ffff:192.0.2.1', false],
  ['127.0.0.1.example.org', false],
  ['', false],
])('%j as a loopback address: %j', (address, expected) => {
  expect(isLoopback(address)).toBe(expected)
})
