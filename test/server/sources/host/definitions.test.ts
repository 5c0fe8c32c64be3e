import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { HOST_DEFINITIONS } from '../../../../server/sources/host/definitions.ts'
import { describeHost } from '../../../../server/sources/host/describe.ts'

test('no name is declared twice, and each ends in its field', () => {
  const names = HOST_DEFINITIONS.map(({ name }) => name)
  expect(new Set(names).size).toBe(names.length)
  for (const { name, field } of HOST_DEFINITIONS) expect(name.endsWith(`.${field}`)).toBe(true)
})

test('docs/sensors.md contains the table of host metrics', () => {
  const docs = readFileSync(new URL('../../../../docs/sensors.md', import.meta.url), 'utf8')
  expect(docs).toContain(describeHost())
})
