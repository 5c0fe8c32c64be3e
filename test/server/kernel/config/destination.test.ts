import { describe, expect, it } from 'vitest'
import { parseDestinationPattern } from '../../../../server/kernel/config/destination.ts'

describe('an entry of dial.allow', () => {
  it.each([
    ['tls://*.example.org:7650', { scheme: 'tls', host: '*.example.org', port: 7650 }],
    ['TLS://Host.Example.Org', { scheme: 'tls', host: 'host.example.org', port: 7650 }],
    ['tcp://*:*', { scheme: 'tcp', host: '*', port: undefined }],
    ['ws://host', { scheme: 'ws', host: 'host', port: 80 }],
    ['wss://host', { scheme: 'wss', host: 'host', port: 443 }],
    ['gmetric://host', { scheme: 'gmetric', host: 'host', port: 8649 }],
    ['tcp://10.1.2.3:*', { scheme: 'tcp', host: { address: '10.1.2.3', prefix: 32, family: 'ipv4' }, port: undefined }],
    ['tcp://10.0.0.0/8:7650', { scheme: 'tcp', host: { address: '10.0.0.0', prefix: 8, family: 'ipv4' }, port: 7650 }],
    ['tcp://[::1]:7650', { scheme: 'tcp', host: { address: '::1', prefix: 128, family: 'ipv6' }, port: 7650 }],
    ['tcp://[fd00::/8]:*', { scheme: 'tcp', host: { address: 'fd00::', prefix: 8, family: 'ipv6' }, port: undefined }],
  ])('%s is read', (text, pattern) => {
    expect(parseDestinationPattern(text)).toEqual(pattern)
  })

  it.each([
    '',
    '*',
    'host:7650',
    'http://host:80',
    'udp://host:80',
    'tcp://',
    'tcp://:7650',
    'tcp://host:0',
    'tcp://host:65536',
    'tcp://host:x',
    'tcp://host:7650/',
    'wss://host:443/path',
    'tcp://user@host:7650',
    'tcp://ho*st:7650',
    'tcp://*.*.org:7650',
    'tcp://*example.org:7650',
    'tcp://127.1:7650',
    'tcp://0x7f.0.0.1:7650',
    'tcp://300.0.0.1:7650',
    'tcp://10.0.0.0/33:7650',
    'tcp://host/8:7650',
    'tcp://[10.0.0.0/8]:7650',
    'tcp://[fe80::1%eth0]:7650',
    'tcp://fd00::1:7650',
    'tcp://host name:7650',
  ])('%s is none', (text) => {
    expect(parseDestinationPattern(text)).toBeUndefined()
  })
})
