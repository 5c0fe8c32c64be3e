/** Whether a role may be handed out by the users of another one: it allows nothing that theirs does not. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { AccessRequest, Rule } from '../../auth/permissions.ts'
import { includesRole, judge } from '../../auth/permissions.ts'
import { times } from '../support/long.ts'

type Given = Readonly<Record<string, string>>
const rule = (role: string, text: string, where: Given = {}): Rule => {
  const [effect, command, object] = text.split(' ') as [Rule['effect'], Rule['command'], string]
  return { number: 1, role, effect, command, object, where }
}
const rulesOf =
  (own: readonly Rule[], others: readonly Rule[]) =>
  (role: string): readonly Rule[] =>
    role === 'own' ? own : role === 'other' ? others : []
const own = (...texts: string[]): Rule[] => texts.map((text) => rule('own', text))
const other = (...texts: string[]): Rule[] => texts.map((text) => rule('other', text))

it('holds for the same role, and admin includes all and is included by none', () => {
  const none = rulesOf([], [])
  expect(includesRole('own', 'own', rulesOf(own('deny * *'), []))).toBe(true)
  expect(includesRole('admin', 'admin', none)).toBe(true)
  expect(includesRole('admin', 'other', rulesOf([], other('allow * *')))).toBe(true)
  expect(includesRole('own', 'admin', rulesOf(own('allow * *'), []))).toBe(false)
})

describe('what the other one allows', () => {
  it.each([
    [['allow EXECUTE user.*'], ['allow EXECUTE user.add'], true],
    [['allow EXECUTE user.*'], ['allow EXECUTE user.add', 'allow EXECUTE exec.reboot'], false],
    [['allow EXECUTE user.*'], ['allow EXECUTE *'], false],
    [['allow EXECUTE user.*'], ['allow * user.*'], false],
    [['allow * *'], ['allow * user.*'], true],
    [['allow * *'], ['allow PUBLISH otlp.*'], false],
    [['allow PUBLISH *'], ['allow PUBLISH otlp.*'], true],
    [['allow PUBLISH *', 'deny * otlp.secret.*'], ['allow PUBLISH otlp.*'], false],
    [['allow EXECUTE user.*', 'deny EXECUTE user.remove'], ['allow EXECUTE user.*'], false],
    [['allow EXECUTE user.*', 'deny EXECUTE user.remove'], ['allow EXECUTE user.add'], true],
    [['allow EXECUTE user.*'], ['allow COLLECT producer.audit'], false],
    [['allow DEF_CHANNEL tcp://10.*:*'], ['allow DEF_CHANNEL tcp://10.0.0.1:9'], true],
    [['allow DEF_CHANNEL ws://*.a:*'], ['allow DEF_CHANNEL ws://127.0.0.1:80/.a:1'], false],
  ] as const)('%j and %j: %s', (mine, theirs, expected) => {
    expect(includesRole('own', 'other', rulesOf(own(...mine), other(...theirs)))).toBe(expected)
  })

  it('is allowed here with the same arguments', () => {
    const mine = [rule('own', 'allow EXECUTE exec.x', { unit: 'web*' })]
    const includes = (where: Given) =>
      includesRole('own', 'other', rulesOf(mine, [rule('other', 'allow EXECUTE exec.x', where)]))
    expect([includes({ unit: 'web1' }), includes({ unit: '*' }), includes({})]).toEqual([true, false, false])
  })
})

it('what is denied here and allowed by default is denied there too', () => {
  const mine = own('deny COLLECT gmetric.salary*')
  expect(includesRole('own', 'consumer', rulesOf(mine, []))).toBe(false)
  expect(includesRole('own', 'other', rulesOf(mine, other('deny COLLECT gmetric.*')))).toBe(true)
  expect(includesRole('own', 'other', rulesOf(mine, [rule('other', 'deny COLLECT gmetric.*', { host: 'a' })]))).toBe(
    false,
  )
  expect(includesRole('own', 'consumer', rulesOf(own('deny EXECUTE exec.*', 'deny DEF_CHANNEL *'), []))).toBe(true)
  expect(includesRole('own', 'consumer', rulesOf(own('deny EXECUTE chan*'), []))).toBe(false)
})

it('never includes a role that allows more, whatever the rules', () => {
  const letters = (all: readonly string[], least = 0) =>
    fc.array(fc.constantFrom(...all), { minLength: least, maxLength: 3 }).map((list) => list.join(''))
  const pattern = letters(['a', 'b', '*'], 1)
  const rules = (role: string) =>
    fc.array(
      fc.record({
        number: fc.integer({ min: 1, max: 99 }),
        role: fc.constant(role),
        effect: fc.constantFrom('allow', 'deny') as fc.Arbitrary<Rule['effect']>,
        command: fc.constantFrom('COLLECT', 'EXECUTE', 'PUBLISH', '*') as fc.Arbitrary<Rule['command']>,
        object: pattern,
        where: fc.dictionary(fc.constantFrom('x', 'y'), pattern, { maxKeys: 1 }),
      }),
      { maxLength: 3 },
    )
  const commands = fc.constantFrom('COLLECT', 'EXECUTE', 'PUBLISH') as fc.Arbitrary<AccessRequest['command']>
  const given = fc.dictionary(fc.constantFrom('x', 'y'), letters(['a', 'b'], 1), { maxKeys: 2 })
  let included = 0
  fc.assert(
    fc.property(
      rules('own'),
      rules('other'),
      commands,
      letters(['a', 'b'], 1),
      given,
      (mine, theirs, command, object, args) => {
        if (!includesRole('own', 'other', rulesOf(mine, theirs))) return
        included++
        const request = { command, object, argument: (name: string) => args[name] }
        if (judge('other', theirs, request).allowed) expect(judge('own', mine, request).allowed).toBe(true)
      },
    ),
    { numRuns: times({ short: 4_000, long: 20_000 }) },
  )
  expect(included).toBeGreaterThan(1_000)
})
