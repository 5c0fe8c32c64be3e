import { expect, test } from 'vitest'
import { isLoopback, networkPrefix, networkSite, widerPrefixes } from '../../auth/network.ts'

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
  ['127.0.0.2', '127.0.0.0/8'],
  ['127.255.1.1', '127.0.0.0/8'],
  ['::ffff:127.0.0.1', '127.0.0.0/8'],
  ['::1', '127.0.0.0/8'],
  ['', ''],
  ['/run/cinnabar.sock', '/run/cinnabar.sock'],
])('the network of %j is %j', (address, prefix) => {
  expect(networkPrefix(address)).toBe(prefix)
})

test.each([
  ['192.0.2.200', '192.0.2.0/24', []],
  ['::ffff:192.0.2.200', '192.0.2.0/24', []],
  ['::1', '127.0.0.0/8', []],
  ['', '', []],
  ['2001:db8:1:2345::6', '2001:db8:1:0::/48', ['2001:db8:1:2300::/56', '2001:db8:1:0::/48', '2001:db8:0:0::/32']],
])('the site of %j is %j, and the networks around it are %j', (address, site, wider) => {
  expect(networkSite(address)).toBe(site)
  expect(widerPrefixes(address)).toEqual(wider)
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
