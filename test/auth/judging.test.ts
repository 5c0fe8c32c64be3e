/** Rules and what they decide: the best match, and a deny among equals. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { AccessRequest, Rule } from '../../auth/permissions.ts'
import { approvalRule, judge, mayBeAllowed, ruleCommands } from '../../auth/permissions.ts'

type Given = Readonly<Record<string, string>>
const rule = (text: string, where: Given = {}, role = 'operator'): Rule => {
  const [number, effect, command, object] = text.split(' ') as [string, Rule['effect'], Rule['command'], string]
  return { number: Number(number), role, effect, command, object, where }
}
const request = (text: string, given: Given = {}): AccessRequest => {
  const [command, object = ''] = text.split(' ') as [AccessRequest['command'], string?]
  return { command, object, argument: (name) => given[name] }
}

describe('without a rule', () => {
  it.each([
    ['COLLECT smon.a', true],
    ['COLLECT producer.notices', true],
    ['COLLECT producer.audit', false],
    ['EXECUTE channel.purge', true],
    ['EXECUTE channels.purge', false],
    ['EXECUTE user.list', false],
    ['DEF_CHANNEL ', true],
    ['DEF_CHANNEL tcp://10.0.0.1:7650', false],
    ['PUBLISH otlp.requests', false],
  ])('%s: %s, for everybody but admins', (asked, expected) => {
    for (const role of ['consumer', 'operator', 'night-shift', 'Admin']) {
      const verdict = judge(role, [], request(asked))
      expect([role, verdict.allowed]).toEqual([role, expected])
      expect(verdict.because).toMatch(/^default: /)
    }
    expect(judge('admin', [], request(asked)).allowed).toBe(true)
  })
})

describe('at another producer, without a rule', () => {
  const there = (text: string): AccessRequest => request(text, { producer: 'east' })

  it.each(['EXECUTE channel.purge', 'EXECUTE board.save', 'EXECUTE control.approve', 'EXECUTE control.refuse'])(
    '%s is denied: it would be done with the login of this one',
    (asked) => {
      expect(judge('operator', [], request(asked)).allowed).toBe(true)
      expect(judge('operator', [], there(asked)).allowed).toBe(false)
      expect(judge('admin', [], there(asked)).allowed).toBe(true)
      expect(judge('operator', [rule('1 allow EXECUTE *', { producer: 'east' })], there(asked)).allowed).toBe(true)
    },
  )

  it.each(['COLLECT control.pending', 'COLLECT producer.approvals', 'COLLECT producer.app*'])(
    '%s is denied: it shows what others have asked for',
    (asked) => {
      expect(judge('operator', [], request(asked)).allowed).toBe(true)
      expect(judge('operator', [], there(asked)).allowed).toBe(false)
      expect(judge('operator', [rule('1 allow COLLECT *')], there(asked)).allowed).toBe(true)
    },
  )

  it('other metrics are read as here, and what waits at this one, too', () => {
    expect(judge('operator', [], there('COLLECT host.cpu')).allowed).toBe(true)
    expect(judge('operator', [], request('COLLECT control.pending', { producer: '' })).allowed).toBe(true)
  })

  it('a rule may have a control wait that needs no rule here', () => {
    const rules = [{ ...rule('1 allow EXECUTE *'), approval: 'lead' }]
    expect(approvalRule('operator', rules, there('EXECUTE control.approve'))).toBe(rules[0])
    expect(approvalRule('operator', rules, request('EXECUTE control.approve'))).toBeUndefined()
  })
})

describe('rules', () => {
  it('of other roles do not matter, and consumer and admin have none', () => {
    const allowed = rule('1 allow EXECUTE user.list')
    expect(judge('operator', [allowed], request('EXECUTE user.list')).allowed).toBe(true)
    expect(judge('night-shift', [allowed], request('EXECUTE user.list')).allowed).toBe(false)
    expect(judge('consumer', [{ ...allowed, role: 'consumer' }], request('EXECUTE user.list')).allowed).toBe(false)
    expect(judge('admin', [rule('1 deny * *', {}, 'admin')], request('EXECUTE user.list')).allowed).toBe(true)
  })

  it.each([
    ['an exact object before a pattern', ['1 deny EXECUTE service.restar*', '2 allow EXECUTE service.restart'], 2],
    ['more literal characters before fewer', ['1 deny EXECUTE service.*', '2 allow EXECUTE service.re*'], 2],
    ['a named command before any', ['1 deny * service.*', '2 allow EXECUTE service.*'], 2],
    ['a deny among equals', ['1 deny EXECUTE service.*', '2 allow EXECUTE service.*'], 1],
    ['a deny among equals that differ', ['1 allow EXECUTE service.*t', '2 deny EXECUTE serv*start'], 2],
  ])('%s decides', (_, texts, decisive) => {
    const rules = texts.map((text) => rule(text))
    for (const order of [rules, [...rules].reverse()]) {
      expect(judge('operator', order, request('EXECUTE service.restart')).because).toContain(`rule ${decisive}: `)
    }
  })

  it('with more conditions go before those with fewer, if the conditions hold', () => {
    const rules = [
      rule('1 deny EXECUTE service.*'),
      rule('2 allow EXECUTE service.*', { name: 'web*', force: 'false' }),
    ]
    const restart = (given: Given) => judge('operator', rules, request('EXECUTE service.restart', given)).allowed
    expect(restart({ name: 'web1', force: 'false' })).toBe(true)
    expect(restart({ name: 'web1', force: 'true' })).toBe(false)
    expect(restart({ name: 'web1' })).toBe(false)
    expect(restart({ name: 'db', force: 'false' })).toBe(false)
  })

  it('that deny touch a text with a * that is too long to be looked through', () => {
    const rules = [rule('1 allow EXECUTE a'), rule('2 deny EXECUTE a', { unit: 'db*' })]
    const unit = (length: number) =>
      judge('operator', rules, request('EXECUTE a', { unit: `${'x'.repeat(length - 1)}*` }))
    expect([unit(1024).allowed, unit(1025).allowed, unit(900_000).allowed]).toEqual([true, false, false])
    const plain = request('EXECUTE a', { unit: 'x'.repeat(900_000) })
    expect(judge('operator', rules, plain).allowed).toBe(true)
  })

  it.each([
    [['allow * *'], false],
    [['allow * otlp.requests'], false],
    [['allow PUBLISH otlp.*'], true],
    [['allow PUBLISH otlp.*', 'deny * otlp.requests'], false],
    [['allow PUBLISH otlp.*', 'deny * otlp.*'], true],
    [['allow PUBLISH *', 'allow * otlp.requests'], true],
  ])('let values in only where they name PUBLISH, while a denial of * denies that too: %j', (texts, expected) => {
    const rules = texts.map((text, at) => rule(`${at} ${text}`))
    expect(judge('operator', rules, request('PUBLISH otlp.requests')).allowed).toBe(expected)
    expect(judge('admin', rules, request('PUBLISH otlp.requests')).allowed).toBe(true)
  })

  it('are named in the verdict with all they say', () => {
    const verdict = judge(
      'operator',
      [rule('7 allow EXECUTE a', { x: '1*', y: '2' })],
      request('EXECUTE a', { x: '10', y: '2' }),
    )
    expect(verdict).toEqual({ allowed: true, because: 'rule 7: allow EXECUTE a where x=1* y=2' })
  })
})

describe('what is shown', () => {
  it('is what some arguments would make allowed', () => {
    const shown = (...rules: Rule[]) => mayBeAllowed('operator', rules, { command: 'EXECUTE', object: 'a.b' })
    expect(shown()).toBe(false)
    expect(shown(rule('1 allow EXECUTE a.*', { x: '1' }))).toBe(true)
    expect(shown(rule('1 allow EXECUTE a.*', { x: '1' }), rule('2 deny EXECUTE a.b'))).toBe(false)
    expect(shown(rule('1 allow EXECUTE a.b'), rule('2 deny EXECUTE a.b', { x: '*' }))).toBe(true)
  })
})

describe('whatever the rules', () => {
  const letters = (all: readonly string[], least = 0) =>
    fc.array(fc.constantFrom(...all), { minLength: least, maxLength: 5 }).map((list) => list.join(''))
  const pattern = letters(['a', 'b', '*'], 1)
  const name = letters(['a', 'b'], 1)
  const commands = fc.constantFrom(...ruleCommands) as fc.Arbitrary<AccessRequest['command']>
  const anyRule = fc.record({
    number: fc.integer({ min: 1, max: 99 }),
    role: fc.constant('operator'),
    effect: fc.constantFrom('allow', 'deny') as fc.Arbitrary<Rule['effect']>,
    command: fc.constantFrom(...ruleCommands, '*') as fc.Arbitrary<Rule['command']>,
    object: pattern,
    where: fc.dictionary(fc.constantFrom('x', 'y'), pattern, { maxKeys: 2 }),
  })
  const rules = fc.array(anyRule, { maxLength: 8 })
  const given = fc.dictionary(fc.constantFrom('x', 'y'), name, { maxKeys: 2 })
  const allowed = (all: readonly Rule[], command: AccessRequest['command'], object: string, args: Given) =>
    judge('operator', all, { command, object, argument: (of) => args[of] }).allowed
  const many = { numRuns: 3000 }

  it('their order does not matter', () => {
    const shuffled = rules.chain((list) =>
      fc.tuple(fc.constant(list), fc.shuffledSubarray(list, { minLength: list.length })),
    )
    fc.assert(
      fc.property(shuffled, commands, name, given, ([list, other], command, object, args) => {
        expect(allowed(other, command, object, args)).toBe(allowed(list, command, object, args))
      }),
      many,
    )
  })

  it('one more deny never allows more, and one more allow never less', () => {
    fc.assert(
      fc.property(rules, anyRule, commands, pattern, given, (list, more, command, object, args) => {
        const before = allowed(list, command, object, args)
        if (!before) expect(allowed([...list, { ...more, effect: 'deny' }], command, object, args)).toBe(false)
        if (before) expect(allowed([...list, { ...more, effect: 'allow' }], command, object, args)).toBe(true)
      }),
      many,
    )
  })

  it('a deny beside the same allow wins', () => {
    fc.assert(
      fc.property(rules, anyRule, commands, name, given, (list, more, command, object, args) => {
        const both = [...list, { ...more, effect: 'allow' as const }, { ...more, effect: 'deny' as const }]
        const denied = [...list, { ...more, effect: 'deny' as const }]
        expect(allowed(both, command, object, args)).toBe(allowed(denied, command, object, args))
      }),
      many,
    )
  })

  it('a * in a request never widens: what it allows is allowed for each name it stands for', () => {
    const filled = (text: string, fill: string) => text.replaceAll('*', fill)
    fc.assert(
      fc.property(
        rules,
        commands,
        pattern,
        pattern,
        fc.array(name, { minLength: 2, maxLength: 2 }),
        (list, command, object, x, fills) => {
          if (!allowed(list, command, object, { x })) return
          const [one = '', two = ''] = fills
          expect(allowed(list, command, filled(object, one), { x: filled(x, two) })).toBe(true)
        },
      ),
      many,
    )
  })

  it('what is allowed is shown', () => {
    fc.assert(
      fc.property(rules, commands, name, given, (list, command, object, args) => {
        if (allowed(list, command, object, args)) expect(mayBeAllowed('operator', list, { command, object })).toBe(true)
      }),
      many,
    )
  })
})
