/** Publishers serve for many requests, and yet each request is judged by what is in force when it comes. */
import { expect, it } from 'vitest'
import { parseScope } from '../../../../auth/permissions.ts'
import { type Asker, Rights } from '../../../../server/kernel/accounts/rights.ts'
import { Rules } from '../../../../server/kernel/accounts/rules.ts'

const otlp = { family: 'otlp.', owner: { tenant: 'acme' }, isPublished: true } as const
const rule = (effect: 'allow' | 'deny', object: string) =>
  ({ role: 'operator', effect, command: 'PUBLISH', object, where: {} }) as const

function asker(scope = 'PUBLISH *', role = 'operator', tenant = 'acme'): Asker {
  return { identity: { userId: 1, tenant, name: 'ada', role }, credential: { scope: parseScope(scope) } }
}

function fixture() {
  const rules = new Rules([], 1, () => {})
  rules.add(rule('allow', 'otlp.*'))
  const rights = new Rights(rules)
  return { rules, rights, may: (who = asker(), name = 'otlp.a') => rights.publisher(who, otlp).may(name, () => '') }
}

it('a request with the same role, scope and rules has the same publisher', () => {
  const { rights } = fixture()
  const { stamp } = rights.publisher(asker(), otlp)
  expect(rights.publisher(asker(), otlp).stamp).toBe(stamp)
})

it.each<readonly [string, Asker, object]>([
  ['another scope', asker('PUBLISH otlp.*'), {}],
  ['another role', asker('PUBLISH *', 'admin'), {}],
  ['another tenant', asker('PUBLISH *', 'operator', 'other'), {}],
  ['another family', asker(), { family: 'prometheus.' }],
  ['a family of another tenant', asker(), { owner: { tenant: 'other' } }],
  ['a family of the producer', asker(), { owner: 'producer' }],
  ['a family that takes no published values', asker(), { isPublished: undefined }],
])('%s has another', (_, other, family) => {
  const { rights } = fixture()
  const { stamp } = rights.publisher(asker(), otlp)
  expect(rights.publisher(other, { ...otlp, ...family } as typeof otlp).stamp).not.toBe(stamp)
  expect(rights.publisher(asker(), otlp).stamp).toBe(stamp)
})

it('a rule that comes or goes is in force for the next request', () => {
  const { rules, rights, may } = fixture()
  const before = rights.publisher(asker(), otlp)
  expect(may()).toBe(true)
  const denial = rules.add(rule('deny', 'otlp.a'))
  expect(may()).toBe(false)
  rules.remove(denial)
  expect(may()).toBe(true)
  for (const all of rules.list()) rules.remove(all)
  expect(may()).toBe(false)
  // The request that has begun keeps its judgement.
  expect(before.may('otlp.a', () => '')).toBe(true)
  expect(rights.publisher(asker(), otlp).stamp).not.toBe(before.stamp)
})

it('a role or a scope that changes is in force for the next request', () => {
  const { rights } = fixture()
  const identity = { userId: 1, tenant: 'acme', name: 'ada', role: 'operator' }
  const credential = { scope: parseScope('PUBLISH *') }
  const may = () => rights.publisher({ identity, credential }, otlp).may('otlp.a', () => '')
  expect(may()).toBe(true)
  identity.role = 'consumer'
  expect(may()).toBe(false)
  identity.role = 'operator'
  credential.scope = parseScope('PUBLISH otlp.b')
  expect(may()).toBe(false)
})

it('more publishers than are kept judge right, and the oldest is made anew', () => {
  const { rights, may } = fixture()
  const { stamp } = rights.publisher(asker(), otlp)
  for (let other = 0; other < 64; other++) expect(may(asker(`PUBLISH otlp.a${other}`), `otlp.a${other}`)).toBe(true)
  expect(rights.publisher(asker(), otlp).stamp).not.toBe(stamp)
  expect(may()).toBe(true)
})

it('more names than are kept are judged right', () => {
  const { rules, rights } = fixture()
  rules.add(rule('deny', 'otlp.7*'))
  const publisher = rights.publisher(asker(), otlp)
  for (const _ of [1, 2]) {
    for (let name = 0; name < 3_000; name++) {
      expect(publisher.may(`otlp.${name}`, () => '')).toBe(!String(name).startsWith('7'))
    }
  }
})
