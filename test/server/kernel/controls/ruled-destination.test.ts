/** Destinations in rules: one spelling for each, and none that no URL can have. */
import { expect, test } from 'vitest'
import { splitUrl } from '../../../../auth/url-pattern.ts'
import { parseDestination } from '../../../../server/edge/outbound/destination.ts'
import { ruledDestination, ruledOrigin } from '../../../../server/kernel/controls/ruled-destination.ts'

const spelled = (text: string): string => ruledDestination(text, parseDestination)

test.each([
  ['*', '*'],
  ['TCP://Example.ORG', 'tcp://example.org:7650'],
  ['tcp://0x7f.1:9', 'tcp://127.0.0.1:9'],
  ['ws://a.example', 'ws://a.example:80'],
  ['ws://a.example/', 'ws://a.example:80/'],
  ['ws://A.example:81/B/../C', 'ws://a.example:81/C'],
  ['TCP://127.0.0.*:*', 'tcp://127.0.0.*:*'],
  ['tcp://127.0.0.1*:9/', 'tcp://127.0.0.1*:9'],
  ['tcp://127.0.0.*:*/*', 'tcp://127.0.0.*:*'],
  ['tls://*.Example.org.:80*', 'tls://*.example.org:80*'],
  ['tcp://0x7f.1:*', 'tcp://127.0.0.1:*'],
  ['tcp://[::0:1]:*', 'tcp://[::1]:*'],
  ['tcp://[FD00:*]:*', 'tcp://[fd00:*]:*'],
  ['w*://*:443/é/*', 'w*://*:443/%C3%A9/*'],
  ['*://*:*', '*://*:*'],
])('%s is kept as %s, which is kept as it is', (text, kept) => {
  expect(spelled(text)).toBe(kept)
  expect(spelled(kept)).toBe(kept)
  expect(kept === '*' || splitUrl(kept)?.port !== undefined).toBe(true)
})

test.each([
  ['a.example', 'it must have the form'],
  ['*.example:7650', 'it must have the form'],
  ['tcp://127.0.0.*', 'a pattern needs a port'],
  ['tcp://*/', 'a pattern needs a port'],
  ['http://*:*', 'its scheme is none of'],
  ['tcp://0177.0.0.*:*', 'no host is spelled like that'],
  ['tcp://0x7f.*:*', 'no host is spelled like that'],
  ['tcp://*.bücher.example:*', 'no host is spelled like that'],
  ['tcp://*..example:*', 'no host is spelled like that'],
  ['tcp://user@*.example:*', 'no host is spelled like that'],
  ['tcp://[00fd:*]:*', 'no host is spelled like that'],
  ['tcp://[0:0:0:*]:*', 'no host is spelled like that'],
  ['tcp://*:0', 'its port is neither'],
  ['tcp://*:65536', 'its port is neither'],
  ['tcp://*:080', 'its port is neither'],
  ['tcp://*:7650/path', 'only ws and wss have a path'],
  ['ws://*:80/?x', 'it has a query'],
])('%s is refused with a sentence', (text, why) => {
  expect(() => spelled(text)).toThrow(`no rule can be about this destination: ${why}`)
})

test('of a connection it is scheme, host and port', () => {
  expect(ruledOrigin('TLS://NOC.example.org', parseDestination)).toBe('tls://noc.example.org:7650')
  expect(ruledOrigin('wss://*.Example.org:*', parseDestination)).toBe('wss://*.example.org:*')
  for (const path of ['/', '/monitor', '/*']) {
    expect(() => ruledOrigin(`wss://noc.example.org:443${path}`, parseDestination)).toThrow('has no path')
  }
})
