import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { HOST_DEFINITIONS } from '../../../../server/wings/host/definitions.ts'

const PLATFORMS = { all: 'all', unix: 'all but Windows', linux: 'Linux' } as const

/** A Markdown table with one line per metric, which ends in a newline. */
function tableOfMetrics(): string {
  const typeNames = new Map(Object.entries(BasicType).map(([name, type]) => [type, name]))
  const lines = HOST_DEFINITIONS.map(
    ({ name, type, unit, parameter, platforms, description }) =>
      `| \`${name}\` | ${typeNames.get(type)} | ${unit} | ${parameter ? `\`${parameter}\`` : ''} | ` +
      `${PLATFORMS[platforms]} | ${description} |\n`,
  )
  return `| metric | type | unit | parameter | on | what it says |\n|---|---|---|---|---|---|\n${lines.join('')}`
}

test('no name is declared twice, and each ends in its field', () => {
  const names = HOST_DEFINITIONS.map(({ name }) => name)
  expect(new Set(names).size).toBe(names.length)
  for (const { name, field } of HOST_DEFINITIONS) expect(name.endsWith(`.${field}`)).toBe(true)
})

test('docs/sources/host.md contains the table of host metrics', () => {
  const docs = readFileSync(new URL('../../../../docs/sources/host.md', import.meta.url), 'utf8')
  expect(docs).toContain(tableOfMetrics())
})
