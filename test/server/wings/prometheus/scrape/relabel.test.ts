/** Rules of relabelling against the cases of Prometheus itself, and its refusals. */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import {
  DEFAULT_RULE,
  type RelabelAction,
  Relabelling,
  type RelabelRule,
  ruleProblem,
  untouchedBy,
} from '../../../../../server/wings/prometheus/scrape/relabel.ts'

interface WrittenRule {
  readonly source_labels?: readonly string[]
  readonly separator?: string
  readonly regex?: string
  readonly modulus?: number
  readonly target_label?: string
  readonly replacement?: string
  readonly action?: RelabelAction
}
interface Case {
  readonly labels: Record<string, string>
  readonly rules: readonly WrittenRule[]
  /** Null if it is dropped. */
  readonly result: Record<string, string> | null
}

const { cases }: { cases: readonly Case[] } = JSON.parse(
  readFileSync(new URL('../../../../vectors/prometheus/relabel.json', import.meta.url), 'utf8'),
)

function ruleOf({ source_labels, target_label, ...rest }: WrittenRule): RelabelRule {
  return {
    ...DEFAULT_RULE,
    ...rest,
    ...(source_labels !== undefined && { sourceLabels: source_labels }),
    ...(target_label !== undefined && { targetLabel: target_label }),
  }
}

function relabelled(labels: Record<string, string>, rules: readonly WrittenRule[]): Record<string, string> | null {
  const changed = new Map(Object.entries(labels))
  const made = rules.map(ruleOf)
  expect(made.map(ruleProblem)).toEqual(made.map(() => undefined))
  return new Relabelling(made).apply(changed) ? Object.fromEntries(changed) : null
}

it('has cases of Prometheus', () => expect(cases).toHaveLength(34))

it.each(cases)('of $labels by $rules is $result', ({ labels, rules, result }) => {
  expect(relabelled(labels, rules)).toEqual(result)
})

describe('a rule', () => {
  // What Go's regexp.Expand makes of templates, by its documentation.
  it.each([
    ['$1', 'ab'],
    ['$1x', ''],
    [`\${1}x`, 'abx'],
    ['$$1', '$1'],
    ['$', '$'],
    ['a$-b', 'a$-b'],
    ['${', '${'],
    ['$\x7b}', '$\x7b}'],
    ['${1', '${1'],
    ['$01', ''],
    ['$3', ''],
    ['$0', 'ab-cd'],
    ['$two', 'cd'],
    [`\${two}s`, 'cds'],
    ['$none', ''],
  ])('expands %j to %j', (replacement, expected) => {
    const rule = { source_labels: ['a'], regex: '(ab)-(?P<two>cd)', target_label: 'b', replacement }
    expect(relabelled({ a: 'ab-cd', b: 'before' }, [rule])).toEqual(
      expected === '' ? { a: 'ab-cd' } : { a: 'ab-cd', b: expected },
    )
  })

  it('changes letters one by one, as Go does', () => {
    const rules = (action: RelabelAction) => [{ source_labels: ['a'], target_label: 'a', action }]
    expect(relabelled({ a: 'straße Éσ' }, rules('uppercase'))).toEqual({ a: 'STRAßE ÉΣ' })
    expect(relabelled({ a: 'İÉΑΣ' }, rules('lowercase'))).toEqual({ a: 'iéασ' })
  })

  it('takes time in proportion to the text', () => {
    const rule = { source_labels: ['a'], regex: '(a+)+b', action: 'drop' } as const
    expect(relabelled({ a: 'a'.repeat(1_000) }, [rule])).not.toBeNull()
  })

  // The conditions of Validate in model/relabel/relabel.go.
  it.each<[WrittenRule, string]>([
    [{}, '`replace` needs `target_label`'],
    [{ action: 'lowercase' }, '`lowercase` needs `target_label`'],
    [{ action: 'hashmod', target_label: 'a' }, '`hashmod` needs a `modulus` of at least 1'],
    [{ action: 'uppercase', target_label: 'a', replacement: 'x' }, '`uppercase` takes no `replacement`'],
    [
      { action: 'dropequal', target_label: 'a', regex: 'x' },
      '`dropequal` takes `source_labels` and `target_label` alone',
    ],
    [{ action: 'labeldrop', source_labels: ['a'] }, '`labeldrop` takes `regex` alone'],
    [{ action: 'labelkeep', replacement: 'a' }, '`labelkeep` takes `regex` alone'],
    [{ action: 'keep', regex: '(?=a)' }, '`regex` is no regular expression of RE2: error parsing regexp: '],
  ])('%o is refused: %s', (rule, problem) => expect(ruleProblem(ruleOf(rule))).toContain(problem))
})

it('leaves labels alone that no rule can change', () => {
  const labels = { job: 'a', instance: 'b' }
  const by = (...rules: readonly WrittenRule[]) => Object.keys(untouchedBy(rules.map(ruleOf), labels))
  expect(by({ action: 'keep', source_labels: ['job'] })).toEqual(['job', 'instance'])
  expect(by({ target_label: '__name__' }, { target_label: 'job' })).toEqual(['instance'])
  expect(by({ target_label: '$1' })).toEqual([])
  expect(by({ action: 'labeldrop', regex: 'x' })).toEqual([])
})
