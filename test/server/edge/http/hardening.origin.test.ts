import { describe, expect, it } from 'vitest'
import { hostProblem, originProblem } from '../../../../server/edge/http/hardening.ts'

const HOST = 'monitor.example:7651'
const ALLOWED = ['https://pages.example:8443', 'https://other.example', 'http://[2001:db8::1]:9000']

describe('an Origin', () => {
  it.each([undefined, `http://${HOST}`, `https://${HOST}`, ...ALLOWED])('%s may open the WebSocket', (origin) => {
    expect(originProblem(origin, HOST, false, ALLOWED)).toBeUndefined()
  })

  it.each([
    // What browsers send where they will not say.
    'null',
    'Null',
    'undefined',
    '',
    ' ',
    'about:blank',
    'file://',
    'data:',
    'blob:https://other.example',
    // Another host.
    'http://evil.example',
    'https://evil.example:7651',
    'http://127.0.0.1:7651',
    'http://localhost:7651',
    'http://[::1]:7651',
    // Another port of the same host: another server.
    'http://monitor.example',
    'http://monitor.example:80',
    'http://monitor.example:7650',
    'http://monitor.example:17651',
    'http://monitor.example:76510',
    'http://monitor.example:07651',
    'http://monitor.example:',
    'https://other.example:443',
    'https://other.example:8443',
    'https://pages.example',
    'https://pages.example:844',
    'https://pages.example:84430',
    // Another scheme.
    'ws://monitor.example:7651',
    'wss://monitor.example:7651',
    'ftp://monitor.example:7651',
    'http://pages.example:8443',
    'http://other.example',
    'https://[2001:db8::1]:9000',
    'monitor.example:7651',
    '//monitor.example:7651',
    // Upper case is never sent by a browser.
    'HTTP://monitor.example:7651',
    'http://MONITOR.example:7651',
    'https://Other.Example',
    // More or less at either end.
    'http://monitor.example:7651/',
    'http://monitor.example:7651/monitor',
    'http://monitor.example:7651?x',
    'http://monitor.example:7651#',
    'http://monitor.example:7651.evil.example',
    'http://monitor.example:7651@evil.example',
    'http://evil.example@monitor.example:7651',
    'http://evil.example#http://monitor.example:7651',
    'http://evil.example/?http://monitor.example:7651',
    'https://other.example.evil.example',
    'https://other.example.',
    'https://evilother.example',
    'https://evil-other.example',
    'https://sub.other.example',
    'https://*.example',
    ' http://monitor.example:7651',
    'http://monitor.example:7651 ',
    'http://monitor.example:7651,http://evil.example',
    'http://evil.example http://monitor.example:7651',
    'http://monitor.example:7651\t',
    'http://monitor.example\u0000:7651',
    'http://monitor。example:7651',
    'http://mon\u0456tor.example:7651',
    'http://monitor%2eexample:7651',
    'http:\\\\monitor.example:7651',
    'https://[2001:db8:0::1]:9000',
    'http://[2001:DB8::1]:9000',
  ])('%j may not', (origin) => {
    expect(originProblem(origin, HOST, false, ALLOWED)).toContain('http.allowed_origins')
  })

  it('of the same host without TLS may not open one under TLS: anybody on the way could have written that page', () => {
    expect(originProblem(`https://${HOST}`, HOST, true, ALLOWED)).toBeUndefined()
    expect(originProblem(`http://${HOST}`, HOST, true, ALLOWED)).toContain('http.allowed_origins')
    for (const origin of ALLOWED) expect(originProblem(origin, HOST, true, ALLOWED)).toBeUndefined()
  })

  it('cannot be made good by a Host that says the same, unless that is the Host', () => {
    for (const host of [undefined, '', 'evil.example.', 'evil.example:80', 'evil.exampl', HOST]) {
      expect(originProblem('http://evil.example', host, false, ALLOWED)).toBeDefined()
    }
    expect(originProblem('http://', '', false, [])).toBeDefined()
    expect(originProblem('https://', '', false, [])).toBeDefined()
  })
})

describe('a Host', () => {
  const isOwnName = (name: string): boolean => name === 'monitor.example'

  it.each([
    undefined,
    'monitor.example',
    'monitor.example:7651',
    'Monitor.Example:7651',
    '127.0.0.1:7651',
    '192.0.2.7',
    '[::1]:7651',
    '[2001:db8::1]',
  ])('%s is answered', (host) => {
    expect(hostProblem(host, isOwnName)).toBeUndefined()
  })

  it.each([
    '',
    'evil.example',
    'evil.example:7651',
    'monitor.example.evil.example',
    'evil-monitor.example',
    'monitor.example.',
    'monitor.example:7651:7651',
    'monitor.example@evil.example',
    '127.0.0.1.evil.example',
    '[evil.example]',
    '[127.0.0.1].evil.example',
    // Spellings that a name server may be asked for.
    '127.1',
    '0x7f.0.0.1',
    '2130706433',
    '::1',
  ])('%j is refused with the key to set', (host) => {
    expect(hostProblem(host, isOwnName)).toContain('http.hosts')
  })
})
