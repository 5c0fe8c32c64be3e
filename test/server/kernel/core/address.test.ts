import { BlockList } from 'node:net'
import { expect, test } from 'vitest'
import { isHostName, parseAddress, parseNetwork } from '../../../../server/kernel/core/address.ts'

test.each([
  ['127.0.0.1:7650', '127.0.0.1', 7650],
  ['0.0.0.0:0', '0.0.0.0', 0],
  ['[::1]:65535', '::1', 65535],
  ['[fe80::1%eth0]:1', 'fe80::1%eth0', 1],
  ['localhost:1', 'localhost', 1],
  ['node-1.example.org:1', 'node-1.example.org', 1],
])('%s is an address', (text, host, port) => {
  expect(parseAddress(text)).toEqual({ host, port })
})

test.each([
  '',
  '7650',
  ':7650',
  '*:7650',
  '127.0.0.1',
  '127.0.0.1:',
  '127.0.0.1:65536',
  '127.0.0.1:-1',
  '127.0.0.1:1 ',
  '127.0.0.300:1',
  '127.1:1',
  '::1:7650',
  '[127.0.0.1]:1',
  '[::1]',
  '[]:1',
  '-a.example:1',
  'a..b:1',
  'tcp://a:1',
])('%j is no address', (text) => {
  expect(parseAddress(text)).toBeUndefined()
})

test.each([
  ['10.0.0.0/8', '10.0.0.0', 8, 'ipv4'],
  ['10.1.2.3', '10.1.2.3', 32, 'ipv4'],
  ['0.0.0.0/0', '0.0.0.0', 0, 'ipv4'],
  ['::1', '::1', 128, 'ipv6'],
  ['fd00::/8', 'fd00::', 8, 'ipv6'],
] as const)('%s is a network that a block list takes', (text, address, prefix, family) => {
  expect(parseNetwork(text)).toEqual({ address, prefix, family })
  const list = new BlockList()
  list.addSubnet(address, prefix, family)
  expect(list.check(address, family)).toBe(true)
})

test.each(['', '10.0.0/8', '10.0.0.0/33', '10.0.0.0/', '::/129', 'fe80::1%eth0', 'localhost', '10.0.0.0/8/8'])(
  '%j is no network',
  (text) => {
    expect(parseNetwork(text)).toBeUndefined()
  },
)

test('host names with an underscore, as containers have them, are names', () => {
  for (const name of ['my_host', '_a.b_', 'db_1.local']) {
    expect([isHostName(name), parseAddress(`${name}:7650`)]).toEqual([true, { host: name, port: 7650 }])
  }
  expect([isHostName('a.-b'), isHostName('a_.0.0.1')]).toEqual([false, false])
})
