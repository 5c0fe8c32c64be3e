/** Who may publish what: nothing by default, nothing by `*`, and never what belongs to others or has a source of its own. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { covers, judge, parseScope, type Reader, type Rule, ruleCommands } from '../../auth/permissions.ts'
import { type PublishedFamily, Publisher } from '../../auth/publisher.ts'

type Given = Readonly<Record<string, string>>
const rule = (text: string, where: Given = {}, role = 'operator'): Rule => {
  const [effect, command, object] = text.split(' ') as [Rule['effect'], Rule['command'], string]
  return { number: 1, role, effect, command, object, where }
}
const reader = (scope: string, role = 'operator'): Reader => {
  return { userId: 1, tenant: 'acme', name: 'ada', role, scope: parseScope(scope) }
}
const otlp: PublishedFamily = { family: 'otlp.', owner: { tenant: 'acme' }, isPublished: true }
const ALL = 'PUBLISH *'
const may = (rules: readonly Rule[], name: string, labels: Given = {}, scope = ALL, role?: string): boolean =>
  new Publisher(reader(scope, role), otlp, rules).may(name, (label) => labels[label])

describe('anything may be published', () => {
  const any = (rules: readonly Rule[], scope = ALL, role?: string): boolean =>
    new Publisher(reader(scope, role), otlp, rules).mayAnything

  it('if a rule and a scope meet in the family', () => {
    expect(any([rule('allow PUBLISH otlp.*')])).toBe(true)
    expect(any([rule('allow PUBLISH *')], 'PUBLISH otlp.a')).toBe(true)
    expect(any([rule('allow PUBLISH otlp.a*', { host: 'x' })], 'PUBLISH otlp.*b')).toBe(true)
    expect(any([], ALL, 'admin')).toBe(true)
    expect(any([], 'PUBLISH prometheus.*', 'admin')).toBe(false)
    expect(any([rule('allow PUBLISH otlp.*')], 'COLLECT *;* *')).toBe(false)
    expect(any([rule('allow PUBLISH otlp.*')], '')).toBe(false)
    expect(any([rule('allow PUBLISH otlp.a*')], 'PUBLISH otlp.b*')).toBe(false)
    expect(any([rule('allow PUBLISH prometheus.*')])).toBe(false)
    expect(any([rule('allow * *')])).toBe(false)
    expect(any([rule('allow PUBLISH *', {}, 'consumer')], ALL, 'consumer')).toBe(false)
  })

  it('unless rules that come before deny all of it', () => {
    expect(any([rule('allow PUBLISH otlp.*'), rule('deny PUBLISH otlp.*')])).toBe(false)
    expect(any([rule('allow PUBLISH *'), rule('deny * otlp.*')])).toBe(false)
    expect(any([rule('allow PUBLISH *'), rule('deny PUBLISH otlp.a*')], 'PUBLISH otlp.ab')).toBe(false)
    expect(any([rule('allow PUBLISH *'), rule('deny PUBLISH otlp.a*')])).toBe(true)
    expect(any([rule('allow PUBLISH otlp.*'), rule('deny PUBLISH *')])).toBe(true)
    expect(any([rule('allow PUBLISH otlp.*'), rule('deny PUBLISH otlp.*', { env: 'prod' })])).toBe(true)
  })
})

describe('a series may be published', () => {
  it('by a rule and a scope that name PUBLISH, and by nothing less', () => {
    const allowed = [rule('allow PUBLISH otlp.*')]
    expect(may(allowed, 'otlp.requests')).toBe(true)
    expect(may(allowed, 'otlp.requests', {}, 'PUBLISH otlp.req*')).toBe(true)
    expect(may(allowed, 'otlp.requests', {}, 'PUBLISH otlp.other')).toBe(false)
    expect(may(allowed, 'otlp.requests', {}, 'COLLECT *;* *')).toBe(false)
    expect(may(allowed, 'otlp.requests', {}, '')).toBe(false)
    expect(may([rule('allow * *')], 'otlp.requests')).toBe(false)
    expect(may([], 'otlp.requests')).toBe(false)
    expect(may([rule('allow PUBLISH otlp.*', {}, 'night')], 'otlp.requests')).toBe(false)
  })

  it('by an admin without a rule, and by a consumer never', () => {
    expect(may([], 'otlp.requests', {}, ALL, 'admin')).toBe(true)
    expect(may([], 'otlp.requests', {}, '* *', 'admin')).toBe(false)
    expect(may([], 'otlp.requests', {}, '', 'admin')).toBe(false)
    expect(may([rule('allow PUBLISH *', {}, 'consumer')], 'otlp.requests', {}, ALL, 'consumer')).toBe(false)
  })

  it('only in a family that takes published values, of its own tenant: not even by an admin elsewhere', () => {
    const rules = [rule('allow PUBLISH *')]
    const families: readonly PublishedFamily[] = [
      { family: 'host.', owner: 'producer' },
      { family: 'producer.', owner: 'producer', isPublished: true },
      { family: 'gmetric.', owner: { tenant: 'acme' } },
      { family: 'otlp.', owner: { tenant: 'globex' }, isPublished: true },
    ]
    for (const role of ['operator', 'admin']) {
      for (const family of families) {
        const publisher = new Publisher(reader(ALL, role), family, rules)
        expect([role, family.family, publisher.may(`${family.family}a`, () => '')]).toEqual([
          role,
          family.family,
          false,
        ])
      }
      for (const name of ['host.load.one', 'producer.audit', 'gmetric.a', 'otlp', 'prometheus.up', '']) {
        expect([role, name, may(rules, name, {}, ALL, role)]).toEqual([role, name, false])
      }
    }
  })

  it('with the labels that a rule asks for; one that is absent meets no condition', () => {
    const rules = [
      rule('allow PUBLISH otlp.*', { service: 'web*' }),
      rule('deny PUBLISH otlp.*', { service: 'web-old' }),
    ]
    expect(may(rules, 'otlp.a', { service: 'web1' })).toBe(true)
    expect(may(rules, 'otlp.a', { service: 'db' })).toBe(false)
    expect(may(rules, 'otlp.a', { service: 'web-old' })).toBe(false)
    expect(may(rules, 'otlp.a')).toBe(false)
    const denied = [rule('allow PUBLISH otlp.*'), rule('deny PUBLISH otlp.*', { env: 'prod' })]
    expect([
      may(denied, 'otlp.a', { env: 'prod' }),
      may(denied, 'otlp.a', { env: 'test' }),
      may(denied, 'otlp.a'),
    ]).toEqual([false, true, true])
  })

  it('if its name is no pattern; a * in a label is a character', () => {
    const rules = [rule('allow PUBLISH otlp.*'), rule('deny PUBLISH otlp.secret')]
    expect(may(rules, 'otlp.s*')).toBe(false)
    expect(may([rule('allow PUBLISH otlp.*', { unit: 'a*' })], 'otlp.a', { unit: '*' })).toBe(false)
  })

  it('as `judge` decides, whatever the rules, and whichever series was judged before', () => {
    const letters = (all: readonly string[], least = 0) =>
      fc.array(fc.constantFrom(...all), { minLength: least, maxLength: 4 }).map((list) => list.join(''))
    const pattern = letters(['a', 'b', '*'], 1)
    const rules = fc.array(
      fc.record({
        number: fc.integer({ min: 1, max: 99 }),
        role: fc.constantFrom('operator', 'operator', 'other'),
        effect: fc.constantFrom('allow', 'deny') as fc.Arbitrary<Rule['effect']>,
        command: fc.constantFrom('PUBLISH', 'PUBLISH', ...ruleCommands, '*') as fc.Arbitrary<Rule['command']>,
        object: pattern,
        where: fc.dictionary(fc.constantFrom('x', 'y'), pattern, { maxKeys: 2 }),
      }),
      { maxLength: 8 },
    )
    const series = fc.tuple(
      letters(['a', 'b'], 1),
      fc.dictionary(fc.constantFrom('x', 'y'), letters(['a', 'b']), { maxKeys: 2 }),
    )
    let allowed = 0
    fc.assert(
      fc.property(
        rules,
        fc.oneof(fc.constant('*'), pattern),
        fc.array(series, { maxLength: 6 }),
        (list, scoped, all) => {
          const asker = reader(`PUBLISH ${scoped}`)
          const publisher = new Publisher(asker, { ...otlp, family: '' }, list)
          for (const [name, labels] of all) {
            const asked = { command: 'PUBLISH', object: name, argument: (of: string) => labels[of] } as const
            const expected = covers(asker.scope, asked) && judge('operator', list, asked).allowed
            if (expected) allowed++
            if (expected) expect(publisher.mayAnything).toBe(true)
            expect(publisher.may(name, asked.argument)).toBe(expected)
          }
        },
      ),
      { numRuns: 5000 },
    )
    // A tenth or so are allowed, so that both answers were compared.
    expect(allowed).toBeGreaterThan(100)
  })
})
