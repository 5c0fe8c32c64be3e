import { describe, expect, it } from 'vitest'
import { parseScope, type Reader, type Rule } from '../../../../auth/permissions.ts'
import { Rights } from '../../../../server/kernel/accounts/rights.ts'
import { Rules } from '../../../../server/kernel/accounts/rules.ts'
import type { Labels } from '../../../../server/kernel/metrics/metric.ts'
import { ReadRights } from '../../../../server/kernel/metrics/read-rights.ts'
import { tester } from './fixture.ts'

const own = { owner: { tenant: 'default' } }
const foreign = { owner: { tenant: 'other' } }
const producers = { owner: 'producer' } as const
const open = { ...own, hasOpenLabels: true }

const rule = (effect: Rule['effect'], object: string, where: Rule['where'] = {}): Omit<Rule, 'number'> => {
  return { role: 'reader', effect, command: 'COLLECT', object, where }
}

function rightsOf(list: readonly Omit<Rule, 'number'>[], identity: Partial<Reader> = {}): ReadRights {
  const rules = new Rules([], 1, () => {})
  for (const each of list) rules.add(each)
  return new ReadRights({ ...tester, role: 'reader', ...identity }, new Rights(rules))
}

describe('the metrics of a sensor', () => {
  it('may be known to its tenant, those of the producer to everybody, and all to an admin', () => {
    const seen = (role: string) => [own, foreign, producers].map((sensor) => rightsOf([], { role }).maySee(sensor))
    expect(seen('reader')).toEqual([true, false, true])
    expect(seen('admin')).toEqual([true, true, true])
  })

  it('may neither be listed nor read by those who may not know of them, whatever their rules allow', () => {
    const rights = rightsOf([rule('allow', '*')])
    expect([rights.mayReadSome(own, 'a'), rights.mayRead(own, 'a', {})]).toEqual([true, true])
    expect([rights.mayReadSome(foreign, 'a'), rights.mayRead(foreign, 'a', {})]).toEqual([false, false])
  })
})

it('a metric is listed if some labels or arguments exist with which it may be read', () => {
  const rights = rightsOf([rule('deny', 'a'), rule('deny', 'b'), rule('allow', 'b', { host: 'h1' })])
  expect(['a', 'b', 'c'].map((name) => rights.mayReadSome(own, name))).toEqual([false, true, true])
})

describe('a series', () => {
  it('is judged by its labels, and by arguments where it has no such label', () => {
    const rights = rightsOf([rule('deny', 'a'), rule('allow', 'a', { host: 'h1', index: '2' })])
    const mayRead = (labels: Labels, ...args: [string, string | number][]): boolean =>
      rights.mayRead(own, 'a', labels, new Map(args))
    expect(mayRead({ host: 'h1', index: '2' })).toBe(true)
    expect(mayRead({ host: 'h1' })).toBe(false)
    expect(mayRead({ host: 'h1' }, ['index', 2])).toBe(true)
    expect(mayRead({ host: 'h2' }, ['host', 'h1'], ['index', 2])).toBe(false)
  })

  it('that does not have a label has the empty text where labels are open, and is no match of any condition elsewhere', () => {
    const rights = rightsOf([rule('deny', 'a', { job: '' })])
    expect([rights.mayRead(open, 'a', {}), rights.mayRead(own, 'a', {})]).toEqual([false, true])
    expect(rights.mayRead(open, 'a', { job: 'web' })).toBe(true)
  })

  it('has no label that only a prototype has', () => {
    const rights = rightsOf([rule('deny', 'a', { constructor: '*' })])
    expect(rights.mayRead(own, 'a', {})).toBe(true)
  })

  it('where something is measured with arguments, has only those that were given', () => {
    const rights = rightsOf([rule('deny', 'a', { job: '' })])
    expect(rights.mayRead(open, 'a', {}, new Map())).toBe(true)
  })
})

it('a verdict follows the rules and the role as they are when it is asked for', () => {
  const rules = new Rules([], 1, () => {})
  const identity = { ...tester, role: 'reader' }
  const rights = new ReadRights(identity, new Rights(rules))
  const verdicts = () => [rights.maySee(foreign), rights.mayReadSome(own, 'a'), rights.mayRead(own, 'a', {})]
  expect(verdicts()).toEqual([false, true, true])
  rules.add(rule('deny', '*'))
  expect(verdicts()).toEqual([false, false, false])
  identity.role = 'admin'
  expect(verdicts()).toEqual([true, true, true])
})

it('a scope covers the metrics that it names for reading, and without one all are covered', () => {
  const covered = (scope: string) => {
    const rights = rightsOf([], { scope: parseScope(scope) })
    return ['host.cpu', 'test.a'].map((name) => rights.covers(name))
  }
  expect(covered('COLLECT host.*')).toEqual([true, false])
  expect(covered('EXECUTE host.*')).toEqual([false, false])
  expect(covered('')).toEqual([true, true])
})
