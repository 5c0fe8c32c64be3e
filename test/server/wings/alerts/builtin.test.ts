/** The rules that come with the server: each has a unit test, and reads series that the server has. */
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { defaultConfig, loadConfig } from '../../../../server/start/config.ts'
import { testRules } from '../../../../server/start/rules.ts'
import { BUILTIN_RULES, builtinRules } from '../../../../server/wings/alerts/builtin.ts'

const TESTS = new URL('builtin.test.yml', import.meta.url).pathname

it('do what their unit tests say', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'builtin-'))
  try {
    writeFileSync(join(directory, 'builtin.yml'), BUILTIN_RULES)
    copyFileSync(TESTS, join(directory, 'builtin.test.yml'))
    const { problems, tests } = await testRules(join(directory, 'builtin.test.yml'))
    expect(problems).toEqual([])
    expect(tests).toBeGreaterThan(0)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
})

it('have a unit test each, and are shown in the documents', async () => {
  const { groups, problems } = await builtinRules()
  expect(problems).toEqual([])
  const names = groups.flatMap(({ rules }) => rules.map(({ name }) => name))
  expect(names.length).toBeGreaterThan(0)
  const tests = readFileSync(TESTS, 'utf8')
  const page = readFileSync(new URL('../../../../docs/alerts.md', import.meta.url), 'utf8')
  for (const name of names) {
    expect(tests).toContain(`alertname: ${name}`)
    expect(page).toContain(`| \`${name}\` |`)
  }
})

it('read what the history records without being told', async () => {
  const { groups } = await builtinRules()
  const { metrics } = defaultConfig().history
  const prefixes = metrics.map((pattern) => pattern.replace(/\*$/, '').replaceAll('.', '_'))
  const queries = groups.flatMap(({ rules }) => rules.map(({ query }) => query.printed))
  const names = queries.flatMap((query) => query.match(/\b(?:host|gmetric|producer)_\w+/g) ?? [])
  expect(names.length).toBeGreaterThan(0)
  for (const name of names) expect(prefixes.some((prefix) => name.startsWith(prefix))).toBe(true)
})

it('need the history', () => {
  const read = (text: string) => loadConfig({ file: 'c.toml', env: {}, readFile: () => Buffer.from(text) })
  expect(read('[alerts]\nbuiltin = true').alerts.builtin).toBe(true)
  expect(() => read('[history]\nkeep = "0"\n[alerts]\nbuiltin = true')).toThrow(
    '`alerts.builtin`: rules need the history, which is off',
  )
})
