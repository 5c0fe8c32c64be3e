import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { matcher } from '../../auth/pattern.ts'
import { covers, formatScope, onlyWatches, parseScope } from '../../auth/permissions.ts'

describe('parseScope', () => {
  it('reads lines separated by newlines or semicolons, and passes over empty ones', () => {
    const expected = [
      { command: 'COLLECT', object: 'host.*' },
      { command: 'EXECUTE', object: 'service.restart' },
      { command: '*', object: '*' },
    ]
    expect(parseScope('COLLECT host.*\nEXECUTE  service.restart\n\n* *\n')).toEqual(expected)
    expect(parseScope(' COLLECT host.* ;EXECUTE service.restart;; * *')).toEqual(expected)
    expect(parseScope(formatScope(expected as never))).toEqual(expected)
  })

  it('without any line is everything the user may', () => {
    for (const text of ['', ' ', '\n;\n']) expect(parseScope(text)).toBeUndefined()
    expect(formatScope(undefined)).toBe('')
  })

  it.each([
    'host.*',
    'COLLECT',
    'collect host.*',
    'QUERY host.*',
    'COLLECT host.* extra',
    'WATCH host.*;COLLECT host.*',
    '* *;WATCH host.*',
    `COLLECT ${'x'.repeat(1025)}`,
    Array.from({ length: 65 }, () => 'COLLECT a').join(';'),
  ])('refuses %.40s, and says what a line is', (text) => {
    expect(() => parseScope(text)).toThrow(expect.objectContaining({ code: 'BAD_SCOPE' }))
    expect(() => parseScope(text)).toThrow(/scope/)
  })
})

describe('WATCH', () => {
  it('covers reading and nothing else', () => {
    const scope = parseScope('WATCH host.*;WATCH test.a')
    expect(formatScope(scope)).toBe('WATCH host.*\nWATCH test.a')
    expect(covers(scope, { command: 'COLLECT', object: 'host.load.one' })).toBe(true)
    expect(covers(scope, { command: 'COLLECT', object: 'test.*' })).toBe(false)
    for (const command of ['EXECUTE', 'DEF_CHANNEL', 'PUBLISH'] as const) {
      expect(covers(scope, { command, object: 'host.load.one' })).toBe(false)
    }
  })

  it('is said of a scope that has no other lines', () => {
    expect(onlyWatches(parseScope('WATCH host.*'))).toBe(true)
    expect(onlyWatches(parseScope('COLLECT host.*'))).toBe(false)
    expect(onlyWatches(undefined)).toBe(false)
  })
})

describe('covers', () => {
  const scope = parseScope('COLLECT host.*;EXECUTE service.restart;DEF_CHANNEL tls://*.example.org:7650')
  it.each([
    ['COLLECT', 'host.load.one', true],
    ['COLLECT', 'host.*', true],
    ['COLLECT', 'host.*.one', true],
    ['COLLECT', '*', false],
    ['COLLECT', 'h*', false],
    ['COLLECT', '*host.load', false],
    ['COLLECT', 'producer.stats', false],
    ['EXECUTE', 'service.restart', true],
    ['EXECUTE', 'host.load.one', false],
    ['EXECUTE', '*', false],
    ['DEF_CHANNEL', 'tls://a.example.org:7650', true],
    ['DEF_CHANNEL', 'tls://a.example.org:7651', false],
  ] as const)('%s %s: %s', (command, object, expected) => {
    expect(covers(scope, { command, object })).toBe(expected)
  })

  it('lets values in only by an entry that names PUBLISH', () => {
    const asked = { command: 'PUBLISH', object: 'otlp.requests' } as const
    expect(covers(parseScope('* *'), asked)).toBe(false)
    expect(covers(parseScope('* otlp.requests'), asked)).toBe(false)
    expect(covers(parseScope('* *;PUBLISH otlp.*'), asked)).toBe(true)
    expect(covers(parseScope('PUBLISH otlp.*'), { command: 'COLLECT', object: 'otlp.requests' })).toBe(false)
  })

  it('narrows nothing without a scope', () => {
    expect(covers(undefined, { command: 'EXECUTE', object: '*' })).toBe(true)
  })

  it('covers a pattern only if it covers all that the pattern matches', () => {
    const letters = (all: readonly string[]) =>
      fc.array(fc.constantFrom(...all), { maxLength: 6 }).map((list) => list.join(''))
    fc.assert(
      fc.property(letters(['a', 'b', '*']), letters(['a', 'b', '*']), letters(['a', 'b']), (object, asked, name) => {
        const one = [{ command: 'COLLECT', object }] as const
        if (!covers(one, { command: 'COLLECT', object: asked }) || !matcher(asked)(name)) return
        expect(covers(one, { command: 'COLLECT', object: name })).toBe(true)
      }),
      { numRuns: 5000 },
    )
  })
})
