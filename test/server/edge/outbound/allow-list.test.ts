import { describe, expect, it } from 'vitest'
import { AllowList } from '../../../../server/edge/outbound/allow-list.ts'
import { parseDestination } from '../../../../server/edge/outbound/destination.ts'
import { isSpecial } from '../../../../server/kernel/core/special-addresses.ts'

const permits = (entry: string, url: string): boolean => new AllowList([entry]).permits(parseDestination(url))
const reaches = (entries: readonly string[], url: string, address: string): boolean =>
  new AllowList(entries).permitsAddress(parseDestination(url), address)

describe('the list', () => {
  it('that is empty permits nothing', () => {
    expect(new AllowList([]).permits(parseDestination('tls://example.org:7650'))).toBe(false)
  })

  it.each([
    ['tls://example.org:7650', 'tls://example.org', true],
    ['tls://example.org:7650', 'tls://EXAMPLE.org.:7650', true],
    ['tls://example.org:7650', 'tls://example.org:7651', false],
    ['tls://example.org:7650', 'tcp://example.org:7650', false],
    ['tls://example.org:7650', 'tls://a.example.org:7650', false],
    ['tls://example.org:7650', 'tls://example.org.evil.net:7650', false],
    ['tls://example.org:*', 'tls://example.org:1', true],
    ['tls://*.example.org:7650', 'tls://a.example.org:7650', true],
    ['tls://*.example.org:7650', 'tls://a.b.example.org:7650', true],
    ['tls://*.example.org:7650', 'tls://example.org:7650', false],
    ['tls://*.example.org:7650', 'tls://badexample.org:7650', false],
    ['wss://example.org', 'wss://example.org/any/path', true],
    ['tcp://*:7650', 'tcp://93.184.216.34:7650', true],
    ['tcp://*:7650', 'tcp://10.0.0.1:7650', false],
    ['tcp://93.184.0.0/16:7650', 'tcp://93.184.216.34:7650', true],
    ['tcp://93.184.0.0/16:7650', 'tcp://93.185.216.34:7650', false],
    ['tcp://93.184.0.0/16:7650', 'tcp://[::ffff:93.184.216.34]:7650', false],
    ['tcp://0.0.0.0/0:*', 'tcp://93.184.216.34:7650', true],
    ['tcp://0.0.0.0/0:*', 'tcp://127.0.0.1:7650', false],
    ['tcp://8.0.0.0/5:*', 'tcp://10.0.0.1:7650', false],
    ['tcp://10.0.0.0/8:*', 'tcp://10.0.0.1:7650', true],
    ['tcp://[::/0]:*', 'tcp://[2600::1]:7650', true],
    ['tcp://[::/0]:*', 'tcp://[::1]:7650', false],
    ['tcp://[::/0]:*', 'tcp://93.184.216.34:7650', false],
    ['tcp://[fd00::/8]:*', 'tcp://[fd12::1]:7650', true],
    ['tcp://[fd00::/8]:*', 'tcp://[fe80::1]:7650', false],
  ])('with %s: %s is permitted: %s', (entry, url, permitted) => {
    expect(permits(entry, url)).toBe(permitted)
  })
})

describe('a name that is listed', () => {
  const url = 'tcp://db.example.org:7650'

  it('reaches addresses of the outside world, and special ones only where they stand there themselves', () => {
    const names = 'tcp://*.example.org:7650'
    expect(reaches([names], url, '93.184.216.34')).toBe(true)
    expect(reaches([names], url, '10.1.2.3')).toBe(false)
    expect(reaches([names, 'tcp://10.0.0.0/8:7650'], url, '10.1.2.3')).toBe(true)
    expect(reaches([names, 'tcp://10.0.0.0/8:7651'], url, '10.1.2.3')).toBe(false)
    expect(reaches([names, 'tls://10.0.0.0/8:7650'], url, '10.1.2.3')).toBe(false)
    expect(reaches([names, 'tcp://10.0.0.0/8:7650'], url, '127.0.0.1')).toBe(false)
  })

  it.each(['', 'garbage', '0177.0.0.1', '127.1', '127.0.0.1 ', 'fe80::1%lo'])(
    'reaches no %j, which is no address',
    (address) => {
      expect(reaches(['tcp://*:7650'], url, address)).toBe(false)
    },
  )

  it('is needed: an address that is listed is not reached by names that are not', () => {
    expect(reaches(['tcp://10.0.0.0/8:7650', 'tcp://93.184.216.34:7650'], url, '10.1.2.3')).toBe(false)
    expect(reaches(['tcp://10.0.0.0/8:7650', 'tcp://93.184.216.34:7650'], url, '93.184.216.34')).toBe(false)
  })
})

describe('an address', () => {
  it.each(['8.8.8.8', '93.184.216.34', '100.63.255.255', '100.128.0.1', '172.15.0.1', '172.32.0.1', '223.255.255.255'])(
    '%s of the outside world is not special',
    (address) => expect(isSpecial(address)).toBe(false),
  )

  it.each(['2600::1', '2a00:1450:4001::1', '2001:4860:4860::8888', '2003::1', '3ffe::1'])(
    '%s of the outside world is not special',
    (address) => expect(isSpecial(address)).toBe(false),
  )
})
