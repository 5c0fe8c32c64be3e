/** What is a rule file, and what is not: promtool comes to the same verdict, but for what is said here. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { readRules } from '../../../../../server/wings/alerts/rules/files.ts'

const hasPromtool = spawnSync('which', ['promtool']).status === 0

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'cinnabar-verdicts-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

const group = (settings: string): string => `groups:\n- name: g\n  ${settings}\n  rules: [{record: a, expr: up}]\n`
const rule = (text: string): string => `groups:\n- name: g\n  rules:\n  - ${text.replaceAll('\n', '\n    ')}\n`
const alert = (text: string): string => rule(`alert: A\nexpr: up\n${text}`)

const RIGHT = [
  '',
  '# nothing yet\n',
  'null\n',
  'groups:\n',
  'groups: []\n',
  'groups:\n- name: g\n',
  'groups:\n- name: g\n  rules:\n',
  'groups:\n- name: 5\n  rules: []\n',
  '\ufeffgroups:\n- name: g\n  rules: [{record: a, expr: up}]\n',
  'groups:\r\n- name: g\r\n  rules:\r\n  - record: a\r\n    expr: up\r\n',
  '{"groups": [{"name": "g", "rules": [{"alert": "A", "expr": "up", "for": "5m"}]}]}',
  group('interval: 0s'),
  group('interval:'),
  group('limit: 5'),
  alert('for: 0'),
  alert('for: 0s\nkeep_firing_for: 0'),
  alert('for: 1y2w3d4h5m6s7ms'),
  alert('for: null\nlabels: ~\nannotations:'),
  alert('labels: {a: 1, b: true, c: 1.50, d: 2020-01-01, e: null, f: 0x10, g: 017, h: 1_000, i: .inf, j: "~", k: yes}'),
  alert('labels: {a: ""}'),
  alert('labels: {alertname: b}'),
  alert('annotations: {a: "{{ .Foo }}", b: "{{ humanize }}"}'),
  alert('annotations: {a: "{{ query \\"up\\" | first | value }}"}'),
  rule('alert: yes\nexpr: 1'),
  rule('alert: !!str 5\nexpr: up'),
  rule('alert: A\nexpr: |\n  up\n    == 0'),
  rule('alert: A\nexpr: up @ start() offset -5m'),
  rule('record: a\nexpr: scalar(up)'),
  // These fail whenever they are evaluated.
  rule('alert: A\nexpr: up[5m]'),
  rule('alert: A\nexpr: \'"x"\''),
  rule('record: a\nexpr: up\nlabels: {a: "{{ $value }}", b: "{{ nope }}"}'),
  `${rule('record: a\nexpr: up')}  - record: a\n    expr: up == 0\n`,
  'groups:\n- name: g\n  rules:\n  - alert: A\n    expr: up\n    labels: &l {severity: page}\n  - alert: B\n    expr: up\n    labels: {<<: *l, a: b}\n',
]

const WRONG = [
  '- a\n',
  'groups: {\n',
  'foo: 1\ngroups: []\n',
  'groups:\n- name: g\n\trules: []\n',
  'groups:\n- rules: []\n',
  'groups:\n- name: ""\n  rules: []\n',
  'groups:\n- name: g\n  rules: []\n- name: g\n  rules: []\n',
  'groups:\n- name: g\n  name: h\n  rules: []\n',
  group('foo: bar'),
  group('limit: x'),
  group('limit: 99999999999999999999'),
  group('partial_response_strategy: warn'),
  'x: &a {severity: page}\ngroups:\n- name: g\n  rules:\n  - alert: A\n    expr: up\n    labels: *a\n',
  rule('alert: A'),
  rule('expr: up'),
  rule('alert: ""\nexpr: up'),
  rule('alert: A\nrecord: b\nexpr: up'),
  rule('alert: A\nexpr: up{'),
  rule('alert: A\nexpr: [up]'),
  rule('alert: A\nexpr: limitk(1, up)'),
  rule('alert: A\nexpr: sum(up) by (a) without (b)'),
  rule('record: a\nexpr: up\nfor: 5m'),
  rule('record: a\nexpr: up\nkeep_firing_for: 5m'),
  rule('record: a\nexpr: up\nannotations: {a: b}'),
  alert('foo: 1'),
  alert('for: -5m'),
  alert('for: 1.5m'),
  alert('for: 5'),
  alert('for: 5x'),
  alert('for: 5s1m'),
  alert('for: 99999y'),
  alert('for: [5m]'),
  alert('labels: {__name__: c}'),
  alert('labels: {a: [1]}'),
  alert('labels: {a: b, a: c}'),
  alert('labels: {[a]: b}'),
  alert('labels: {"": b}'),
  alert('annotations: {"": b}'),
  alert('annotations: {a: "{{ $labels.x"}'),
  alert('annotations: {a: "{{ nope 1 }}"}'),
  alert('annotations: {a: "{{ $x }}"}'),
  rule('alert: "\\uD800"\nexpr: up'),
  Buffer.from([...Buffer.from(rule('alert: A\nexpr: up{a="')).subarray(0, -1), 0xff, ...Buffer.from('"}\n')]),
]

/** Refused here, and taken by promtool, for reasons. */
const STRICTER = [
  // Nobody can tell what was meant.
  group('limit: -1'),
  group('limit: 1.5'),
  'groups:\n- name: g\n  rules:\n  -\n',
  'groups:\n-\n',
  // The second would be left out without a word.
  'groups: []\n---\ngroups: []\n',
]

const problems = async (text: string | Uint8Array): Promise<readonly string[]> => {
  const path = join(directory, 'rules.yml')
  writeFileSync(path, text)
  const { problems } = await readRules(path)
  return problems.map(({ message }) => message)
}
const promtoolTakes = (text: string | Uint8Array): boolean => {
  const path = join(directory, 'rules.yml')
  writeFileSync(path, text)
  return spawnSync('promtool', ['check', 'rules', path]).status === 0
}

describe('a file of rules', () => {
  it.each(RIGHT)('%j is one', async (text) => expect(await problems(text)).toEqual([]))

  it.each([...WRONG, ...STRICTER])('%j is none', async (text) => expect(await problems(text)).not.toEqual([]))

  // Debian's promtool may be missing.
  it.skipIf(!hasPromtool)('promtool takes and refuses the same (apt-get install prometheus)', () => {
    expect(RIGHT.filter((text) => !promtoolTakes(text))).toEqual([])
    expect(WRONG.filter(promtoolTakes)).toEqual([])
    expect(STRICTER.filter((text) => !promtoolTakes(text))).toEqual([])
  })
})

it('a null is an empty text, and a text in quotes is not', async () => {
  const path = join(directory, 'rules.yml')
  writeFileSync(path, alert('labels: {a: null, b: "null", c: ~, d: "~"}'))
  const { groups } = await readRules(path)
  const [found] = groups[0]?.rules ?? []
  const texts = [...(found?.labels ?? [])].map(([name, text]) => [name, typeof text === 'string' ? text : text.text])
  expect(texts).toEqual([
    ['a', ''],
    ['b', 'null'],
    ['c', ''],
    ['d', '~'],
  ])
})
