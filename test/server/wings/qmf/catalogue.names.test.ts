import { describe, expect, test } from 'vitest'
import { type Properties, QmfType, type SchemaProperty } from '../../../../protocol/qmf/types.ts'
import { classMetric, fieldMetric, labelOf, nameOfObject } from '../../../../server/wings/qmf/catalogue.ts'
import { index, PACKAGE, queue, table } from './sensor-fixture.ts'

const key = (packageName: string, className: string) => ({ packageName, className, hash: '00' })

describe('a metric', () => {
  test('is called by package, class and field, as they are spelled', () => {
    expect(fieldMetric(queue.key, 'msgDepth')).toBe('qmf.org.apache.qpid.broker.queue.msgDepth')
    expect(classMetric(key(PACKAGE, 'queueDeclare'))).toBe('qmf.org.apache.qpid.broker.queueDeclare')
  })

  test.each([
    [key('', 'a'), 'b'],
    [key('a', ''), 'b'],
    [key('a', 'b'), ''],
    [key('a', 'b\n'), 'c'],
    [key('a*', 'b'), 'c'],
    [key('a', 'b'), 'c'.repeat(255)],
  ])('%j %j has none', (of, field) => {
    expect(fieldMetric(of, field)).toBeUndefined()
  })
})

/** The label of an object whose class has these index properties. */
function label(properties: readonly SchemaProperty[], values: Properties, ...taken: string[]): string {
  return labelOf(nameOfObject(table('x', properties), values), '0-1-1-0-7', new Set(taken))
}
const reference = (name: string) => index(name, QmfType.REFERENCE)

describe('an object', () => {
  test.each([
    ['a queue', [reference('vhostRef'), index('name')], ['0-0-1-0-3', 'q1'], 'q1'],
    ['an incoming link', [index('containerid'), index('name')], ['c', 'n'], 'c,n'],
    ['a system', [index('systemId', QmfType.UUID)], ['1fe76a23-d4cf-4274-9d59-ca5124581ca1'], /^1fe76a23/],
    ['what numbers tell apart', [index('n', QmfType.UINT64)], [5n], '5'],
    ['a binding', [reference('exchangeRef'), reference('queueRef'), index('key')], ['e', 'q', 'k'], 'k@0-1-1-0-7'],
    ['an agent', [reference('connectionRef')], ['0-1-1-0-8'], '0-1-1-0-7'],
    ['the default exchange', [reference('vhostRef'), index('name')], ['0-0-1-0-3', ''], '0-1-1-0-7'],
    ['what has no index', [], [], '0-1-1-0-7'],
    ['what lacks a part', [index('a'), index('b')], [undefined, 'x'], ',x'],
  ])('%s is called by what tells it apart', (_what, properties, values, expected) => {
    expect(label(properties, values)).toMatch(typeof expected === 'string' ? new RegExp(`^${expected}$`) : expected)
  })

  test('has a hash of a long object id with it, and the id of an agent of v2 without its run', () => {
    const of = (id: string) => labelOf({ name: 'k', isUnique: false }, id, new Set())
    expect(of('p:c:'.padEnd(255, 'x'))).toHaveLength(257)
    const long = of('p:c:'.padEnd(256, 'x'))
    expect(long).toMatch(/^k@[0-9a-f]{32}$/)
    expect([of('p:c:'.padEnd(256, 'x')), of('p:c:'.padEnd(256, 'y'))]).toEqual([
      long,
      expect.not.stringContaining(long),
    ])
    expect(of('vendor:product:1\x0012\0pump 1')).toBe('k@vendor:product:1:pump 1')
  })

  test('has its object id with it where another is called the same, or the name is cut', () => {
    expect(label([index('name')], ['q1'], 'q1')).toBe('q1@0-1-1-0-7')
    expect(label([index('name')], ['q1'], 'q1', 'q1@0-1-1-0-7')).toBe('q1@0-1-1-0-7@0-1-1-0-7')
    expect(label([], [], '0-1-1-0-7')).toBe('0-1-1-0-7@0-1-1-0-7')
    expect(label([index('name')], [`${'a'.repeat(254)}\u{1f600}`])).toBe(`${'a'.repeat(254)}\ufffd@0-1-1-0-7`)
  })
})
