/** Rule files and their unit tests: Prometheus' promtool comes to the same verdict. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { checkRules, testRules } from '../../../server/start/rules.ts'

const CASES = new URL('../../cases/rules/', import.meta.url).pathname
const hasPromtool = spawnSync('which', ['promtool']).status === 0

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'cinnabar-rules-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

/** A case with a change, beside the rules that it tests. */
function changed(name: string, from: string, to: string): string {
  for (const file of ['templates.yml', 'states.yml', 'defines.yml'])
    writeFileSync(join(directory, file), readFileSync(CASES + file))
  const text = readFileSync(CASES + name, 'utf8')
  expect(text).toContain(from)
  const path = join(directory, name)
  writeFileSync(path, text.replace(from, to))
  return path
}

const promtoolPasses = (path: string): boolean => spawnSync('promtool', ['test', 'rules', path]).status === 0

const RIGHT = ['templates.test.yml', 'states.test.yml', 'defines.test.yml']
const WRONG = [
  ['templates.test.yml', 'plain: "0.5"', 'plain: "0.50"'],
  ['defines.test.yml', "jumps: '13.'", "jumps: '134.'"],
  ['states.test.yml', 'eval_time: 2m, alertname: Waits', 'eval_time: 3m, alertname: Waits'],
  ['states.test.yml', 'eval_time: 8m, alertname: Lingers', 'eval_time: 6m, alertname: Lingers'],
  ['states.test.yml', 'severity: critical', 'severity: warning'],
  ['states.test.yml', 'alertstate="pending"', 'alertstate="firing"'],
  ['states.test.yml', 'value: 60', 'value: 61'],
  ['states.test.yml', '11 12 13 25', '11 12 _ _'],
] as const

describe('unit tests', () => {
  it.each(RIGHT)('%s passes', async (name) => {
    expect(await testRules(CASES + name)).toMatchObject({ tests: 1, problems: [] })
  })

  it.each(WRONG)('%s with %j changed to %j fails', async (name, from, to) => {
    const { problems } = await testRules(changed(name, from, to))
    expect(problems.join('\n')).toMatch(/test\.yml:\d+: test .*: (alert|expression) .*expected/)
  })

  // Debian's promtool may be missing.
  it.skipIf(!hasPromtool)('promtool passes and fails the same (apt-get install prometheus)', () => {
    for (const name of RIGHT) expect(promtoolPasses(CASES + name)).toBe(true)
    for (const [name, from, to] of WRONG) expect(promtoolPasses(changed(name, from, to))).toBe(false)
  })

  it('with `recover` and `no_data`, which promtool does not know, pass', async () => {
    expect(await testRules(`${CASES}lapses.test.yml`)).toMatchObject({ tests: 5, problems: [] })
    expect(await checkRules(`${CASES}lapses.yml`)).toMatchObject({ rules: 6, ownRules: 6, problems: [] })
  })

  it('say what is wrong with a file', async () => {
    const path = join(directory, 'a.test.yml')
    writeFileSync(
      path,
      'rule_files: [none*.yml]\ntests:\n  - interval: 0s\n    input_series: [{series: "up{", values: "1+"}]\n',
    )
    expect((await testRules(path)).problems).toEqual([
      `${path}:3: \`interval\` is 0`,
      expect.stringContaining(`${path}:4: \`series\`: `),
      `${path}:4: \`values\`: no value of a series: 1+`,
    ])
    writeFileSync(path, 'rule_files: [none*.yml]\n')
    expect((await testRules(path)).problems).toEqual([`${path}: no file is called none*.yml`])
  })

  it.each([
    ['1/0', '.inf'],
    ['1/0', '+.Inf'],
    ['-1/0', '-.inf'],
    ['16', '0x10'],
    ['-8', '-010'],
    ['8', '0o10'],
    ['1000', '1_000'],
    ['0.5', '.5'],
    ['0', '~'],
  ])('expect %s as a number of YAML: %s', async (expression, value) => {
    const path = join(directory, 'a.test.yml')
    const test = `{expr: 'vector(${expression})', eval_time: 1m, exp_samples: [{labels: '{}', value: ${value}}]}`
    writeFileSync(path, `evaluation_interval: 0s\ntests: [{interval: 1m, promql_expr_test: [${test}]}]\n`)
    expect((await testRules(path)).problems).toEqual([])
    // Debian's promtool may be missing.
    if (hasPromtool) expect(promtoolPasses(path)).toBe(true)
  })

  it('do not run where a rule file is wrong', async () => {
    writeFileSync(join(directory, 'a.yml'), 'groups: [{name: g, rules: [{alert: A}]}]')
    const path = join(directory, 'a.test.yml')
    writeFileSync(path, 'rule_files: [a.yml]\ntests: [{promql_expr_test: [{expr: "1", eval_time: 1m}]}]\n')
    const { problems } = await testRules(path)
    expect(problems).toEqual([`${join(directory, 'a.yml')}:1: group "g", rule "A": it needs an \`expr\``])
  })

  it('report a rule that fails, and one with more alerts than its limit', async () => {
    writeFileSync(
      join(directory, 'a.yml'),
      `groups: [{name: g, limit: 1, rules: [{alert: Many, expr: x}, {record: y, expr: 'sum by (b) (x) * on () group_left () x'}]}]`,
    )
    const path = join(directory, 'a.test.yml')
    writeFileSync(
      path,
      `rule_files: [a.yml]
tests:
  - input_series: [{series: 'x{b="1"}', values: '1'}, {series: 'x{b="2"}', values: '1'}]
    alert_rule_test: [{eval_time: 0m, alertname: Many}]
`,
    )
    const { problems } = await testRules(path)
    expect(problems).toEqual([
      `${path}:3: test 1: rule Many, at 0 s: exceeded limit of 1 with 2 alerts`,
      expect.stringContaining('test 1: rule y, at 0 s: found duplicate series'),
    ])
  })
})

it('a rule file is counted, or its problems have their lines', async () => {
  expect(await checkRules(`${CASES}states.yml`)).toEqual({
    groups: 2,
    rules: 6,
    ownRules: 0,
    tests: 0,
    problems: [],
  })
  const missing = join(directory, 'missing.yml')
  expect((await checkRules(missing)).problems).toEqual([expect.stringContaining(`${missing}: cannot be read: ENOENT`)])
})
