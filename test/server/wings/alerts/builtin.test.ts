/** The rules that come with the server: each has a unit test, and reads series that the server has. */
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { defaultConfig, loadConfig } from '../../../../server/start/config.ts'
import { testRules } from '../../../../server/start/rules.ts'
import { BUILTIN_RULES, builtinRules } from '../../../../server/wings/alerts/builtin.ts'
import { PublishingProducer } from '../../../support/publisher.ts'
import { decoded } from '../../../support/records.ts'

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

const read = (text: string, env: NodeJS.ProcessEnv = {}) =>
  loadConfig({ file: 'c.toml', env, readFile: () => Buffer.from(text) })
const SILENT = ['[history]\nkeep = "0"\n', '[history]\nmetrics = ["host.*"]\n']

it('are on wherever they can be evaluated, unless the configuration says otherwise', () => {
  expect(read('').alerts.builtin).toBe(true)
  expect(read('[alerts]\nbuiltin = false').alerts.builtin).toBe(false)
  expect(read('', { CINNABAR_ALERTS_BUILTIN: 'false' }).alerts.builtin).toBe(false)
  for (const history of SILENT) {
    expect(read(history).alerts.builtin).toBe(undefined)
    expect(read(`${history}[alerts]\nbuiltin = false`).alerts.builtin).toBe(false)
  }
})

it('need the history if they are asked for', () => {
  const [off = '', narrow = ''] = SILENT
  expect(() => read(`${off}[alerts]\nbuiltin = true`)).toThrow(
    'c.toml:4: `alerts.builtin`: rules need the history, which is off',
  )
  expect(() => read(`${narrow}[alerts]\nbuiltin = true`)).toThrow(
    'c.toml:4: `alerts.builtin`: what rules record is `rules.*`, which is not in `history.metrics`',
  )
})

it.each(SILENT)('are left out, as the log says, with %j', async (history) => {
  const { alerts, history: silent } = read(history)
  const config = { history: silent, alerts: { ...alerts, builtin: alerts.builtin } }
  const server = await PublishingProducer.start({ config })
  try {
    expect(server.producer.logged.filter((line) => line.includes('rules that come with the server'))).toHaveLength(1)
    expect(decoded(await server.root.query('producer.rules'))).toEqual([])
    expect(decoded(await server.root.query('producer.alerts'))).toEqual([])
  } finally {
    await server.stop()
  }
})
