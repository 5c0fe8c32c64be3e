import { expect, test } from 'vitest'
import { AllowedSenders } from '../../../server/kit/by-tenant.ts'
import { networks } from '../wings/gmetric/fixture.ts'

const sources = new AllowedSenders(networks('10.0.0.0/8', '2001:db8::/32', 'fe80::/10', '192.0.2.7'))

test.each([
  ['10.255.0.1', true],
  ['11.0.0.1', false],
  ['192.0.2.7', true],
  ['192.0.2.8', false],
  ['2001:db8::1', true],
  ['2001:db9::1', false],
  ['::1', false],
  ['', false],
  ['not an address', false],
])('a datagram from %s is taken: %s', (address, allowed) => {
  expect(sources.check(address)).toEqual({ address, allowed })
  expect(sources.check(address)).toEqual({ address, allowed })
})

test('an IPv4 address in IPv6 clothes is the IPv4 address', () => {
  expect(sources.check('::ffff:10.0.0.1')).toEqual({ address: '10.0.0.1', allowed: true })
  expect(sources.check('::ffff:11.0.0.1')).toEqual({ address: '11.0.0.1', allowed: false })
})

test('a link-local address keeps its interface and is judged without', () => {
  expect(sources.check('fe80::1%eth0')).toEqual({ address: 'fe80::1%eth0', allowed: true })
  expect(sources.check('::1%eth0')).toEqual({ address: '::1%eth0', allowed: false })
})

test('nobody is allowed where nobody is named', () => {
  expect(new AllowedSenders([]).check('127.0.0.1').allowed).toBe(false)
})

test('more addresses than are remembered change no answer', () => {
  for (let i = 0; i < 10_000; i++) {
    expect(sources.check(`10.0.${i >> 8}.${i & 255}`).allowed).toBe(true)
    expect(sources.check(`11.0.${i >> 8}.${i & 255}`).allowed).toBe(false)
  }
})
