/** What the console makes of alerts: which is the most urgent, which are meant, and what silences one. */
import { describe, expect, it } from 'vitest'
import {
  type ActiveAlert,
  activeAlertOf,
  byUrgency,
  exactMatchersOf,
  failingNotifiers,
  isMeant,
  linksIn,
  matchersOf,
  notifierLineOf,
  ruleLineOf,
  ruleOf,
  severityLook,
  severityRank,
  tenantOf,
} from '../../console/alerts.ts'

function alert(name: string, { severity = '', state = 'firing', silence = '', fired = 1_000 } = {}): ActiveAlert {
  return activeAlertOf({
    fingerprint: `f of ${name}`,
    state,
    labels: { alertname: name, host: 'web1', severity },
    annotations: { summary: `${name} is wrong` },
    value: 0.05,
    since: 1_000_000n,
    fired: BigInt(fired) * 1_000_000n,
    silence,
    told: 'phone, mail',
    file: 'disk.yml',
    group: 'g',
    rule: name,
  })
}

it('a record is an alert with times in seconds', () => {
  expect(alert('Full', { severity: 'page' })).toMatchObject({
    key: 'disk.yml\ng\nFull\nf of Full',
    name: 'Full',
    severity: 'page',
    since: 1,
    fired: 1_000,
    keptSince: 0,
    value: 0.05,
    told: 'phone, mail',
  })
  expect(
    ruleLineOf({
      ...{ rule: 3, kind: 'alert', expr: 'a < 0.1', drawn: 'a', threshold: 0.1, took: 2_000n },
      ...{ for: 600_000_000n, keep_firing_for: 300_000_000n },
    }),
  ).toMatchObject({
    key: '3',
    isAlert: true,
    threshold: { expr: 'a', value: 0.1 },
    forSeconds: 600,
    keepsSeconds: 300,
    took: 0.002,
    evaluated: 0,
  })
  expect(ruleLineOf({ rule: 1, kind: 'record', expr: 'a' }).threshold).toBeUndefined()
})

it('the rule of an alert is that of its file, group and name', () => {
  const rule = (file: string, name: string, kind = 'alert') =>
    ruleLineOf({ rule: 1, file, group: 'g', name, kind, expr: file })
  const rules = [rule('/etc/other.yml', 'Full'), rule('/etc/disk.yml', 'Full', 'record'), rule('/etc/disk.yml', 'Full')]
  expect(ruleOf(alert('Full'), rules)).toBe(rules[2])
  expect(ruleOf(alert('Other'), rules)).toBeUndefined()
  expect(ruleOf(alert('Full'))).toBeUndefined()
})

it.each([
  ['admin', 'default'],
  ['acme/ann', 'acme'],
])('%s is of the tenant %s', (identity, tenant) => {
  expect(tenantOf(identity)).toBe(tenant)
})

describe('the most urgent alert is the first', () => {
  it('what nobody silences, what fires, the worst, the newest', () => {
    const all = [
      alert('silenced', { severity: 'critical', silence: 's1' }),
      alert('pending', { severity: 'critical', state: 'pending', fired: 0 }),
      alert('old', { severity: 'warning', fired: 10 }),
      alert('new', { severity: 'warning', fired: 20 }),
      alert('plain'),
      alert('worst', { severity: 'Critical', fired: 1 }),
      alert('info', { severity: 'info' }),
    ]
    const names = all.toSorted(byUrgency).map(({ name }) => name)
    expect(names).toEqual(['worst', 'new', 'old', 'plain', 'info', 'pending', 'silenced'])
  })

  it('a severity that nobody knows is as one that is not given', () => {
    expect(severityRank('sev-1')).toBe(severityRank(''))
    expect(['page', 'error', 'warning', '', 'other', 'info', 'none'].map(severityLook)).toEqual([
      'critical',
      ...Array(4).fill('warning'),
      'info',
      'info',
    ])
  })
})

it.each([
  ['', true],
  ['host=web1', true],
  ['HOST=WEB1 full', true],
  ['firing wrong', true],
  ['host=web2', false],
  ['full pending', false],
])('%j means an alert: %s', (text, expected) => {
  expect(isMeant(alert('Full'), text)).toBe(expected)
})

it('matchers of an alert are texts of its labels, and exact ones its fingerprint as well', () => {
  const labels = { alertname: 'Full', path: 'C:\\"x"\ny', 'not.a.name': 'x', long: 'x'.repeat(2_000) }
  const one = activeAlertOf({ labels, fingerprint: 'f1' })
  const plain = ['alertname="Full"', 'path="C:\\\\\\"x\\"\\ny"']
  expect(matchersOf(one)).toEqual(plain)
  expect(exactMatchersOf(one)).toEqual([...plain, '__fingerprint__="f1"'])
  const many = activeAlertOf({ labels: Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`l${at}`, 'x'])) })
  expect(exactMatchersOf(many)).toHaveLength(32)
})

it('a notifier that has failed for five minutes is an alert of its own', () => {
  const line = (name: string, since: number) =>
    notifierLineOf({ name, problem: 'away', failing_since: BigInt(since) * 1_000_000n })
  const all = [line('works', 0), line('new', 701), line('old', 700)]
  expect(failingNotifiers(all, 1_000).map(({ name }) => name)).toEqual(['old'])
})

it.each([
  ['none', ['none']],
  ['see https://wiki.example/a?b=c#d.', ['see ', ['https://wiki.example/a?b=c#d'], '.']],
  ['(http://a.example/), http://b.example', ['(', ['http://a.example/'], '), ', ['http://b.example']]],
  ['javascript:alert(1) https://', ['javascript:alert(1) https://']],
])('links in %j', (text, expected) => {
  expect(linksIn(text).map(({ text: part, href }) => (href === undefined ? part : [href]))).toEqual(expected)
})
