/** Rules and scopes about destinations: scheme, host, port and path are compared separately. */
import { describe, expect, it } from 'vitest'
import { covers, judge, parseScope, type Rule } from '../../auth/permissions.ts'

const rule = (effect: Rule['effect'], object: string, command: Rule['command'] = 'DEF_CHANNEL'): Rule => {
  return { number: effect === 'allow' ? 1 : 2, role: 'operator', effect, command, object, where: {} }
}
const mayDial = (url: string, ...rules: Rule[]): boolean =>
  judge('operator', rules, { command: 'DEF_CHANNEL', object: url, argument: () => undefined }).allowed

describe('an allow', () => {
  it.each([
    ['ws://*.partner.example:*', 'ws://a.partner.example:80/', true],
    ['ws://*.partner.example:*', 'ws://a.partner.example:8080/any/path', true],
    ['ws://*.partner.example:*', 'ws://127.0.0.1:80/.partner.example:1/', false],
    ['ws://*.partner.example:80/feed*', 'ws://127.0.0.1:80/.partner.example:80/feed', false],
    ['ws://*.partner.example:80/feed*', 'ws://a.partner.example:80/feed/1', true],
    ['ws://*.partner.example:80/feed*', 'ws://a.partner.example:80/', false],
    ['w*://a.example:*', 'wss://a.example:443/', true],
    ['*://a.example:*', 'tcp://a.example:1', true],
    ['tcp://*:7650', 'tcp://[fd00::1]:7650', true],
    ['tcp://*:7650', 'tcp://a.example:7651', false],
    ['tcp://10.*:7650', 'tcp://10.1.2.3:7650', true],
    ['ws://a.example:80', 'ws://a.example:80/any', true],
    ['ws://a.example:80/', 'ws://a.example:80/any', false],
    ['*', 'tcp://127.0.0.1:1', true],
    ['**', 'tcp://127.0.0.1:1', true],
    ['*a.example*', 'tcp://a.example:1', false],
  ])('%s, and %s: %s', (object, url, expected) => {
    expect(mayDial(url, rule('allow', object))).toBe(expected)
    expect(mayDial(url, rule('allow', object, '*'))).toBe(expected)
  })

  it('that was stored without a port means every port if its host ends with *, and otherwise none', () => {
    expect(mayDial('tcp://10.1.2.3:9', rule('allow', 'tcp://10.*'))).toBe(true)
    expect(mayDial('ws://10.1.2.3:80/x', rule('allow', 'ws://10.*'))).toBe(true)
    expect(mayDial('tcp://a.example:7650', rule('allow', 'tcp://*.example'))).toBe(false)
  })
})

describe('a denial', () => {
  const all = rule('allow', '*')
  it.each([
    ['TCP://127.0.0.*', 'tcp://127.0.0.1:9'],
    ['tcp://127.0.0.1*:9/', 'tcp://127.0.0.1:9'],
    ['tcp://127.0.0.*:*/*', 'tcp://127.0.0.1:9'],
    ['tcp://127.0.0.*', 'tcp://127.0.0.1:9'],
    ['ws://a.example:80/*', 'ws://a.example:80/x'],
    ['ws://*.partner.example:*', 'ws://a.partner.example:80/x'],
    // What matched as text is still denied.
    ['*127.0.0.1*', 'tcp://127.0.0.1:9'],
    ['ws://*/secret', 'ws://a.example:80/public/secret'],
    ['tcp://127*9', 'tcp://127.0.0.1:9'],
  ])('%s denies %s, however it was stored', (object, url) => {
    expect(mayDial(url, all, rule('deny', object))).toBe(false)
    expect(mayDial(url, all, rule('deny', object, '*'))).toBe(false)
    expect(mayDial('tcp://192.0.2.1:1', all, rule('deny', object))).toBe(true)
  })

  it('applies to a pattern that could mean something denied', () => {
    expect(mayDial('tcp://10.0.*:*', all, rule('deny', 'tcp://*.1:9'))).toBe(false)
    expect(mayDial('tcp://10.0.*:1', all, rule('deny', 'tcp://*.1:9'))).toBe(true)
  })
})

describe('a scope', () => {
  const scope = parseScope('DEF_CHANNEL ws://*.partner.example:*;* tcp://10.*:*')
  it.each([
    ['ws://a.partner.example:80/', true],
    ['ws://127.0.0.1:80/.partner.example:1/', false],
    ['tcp://10.0.0.1:9', true],
    ['tcp://127.0.0.1:9', false],
    // Entries of a narrower scope.
    ['ws://b.partner.example:*', true],
    ['ws://*:*', false],
  ])('covers %s: %s', (object, expected) => {
    expect(covers(scope, { command: 'DEF_CHANNEL', object })).toBe(expected)
  })

  it('with one path does not cover every path', () => {
    const path = parseScope('DEF_CHANNEL ws://a.example:80/')
    expect(covers(path, { command: 'DEF_CHANNEL', object: 'ws://a.example:80/' })).toBe(true)
    expect(covers(path, { command: 'DEF_CHANNEL', object: 'ws://a.example:80' })).toBe(false)
  })
})
