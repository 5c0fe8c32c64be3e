import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { expect, test } from 'vitest'
import { toml } from '../../../../server/kernel/config/value-types.ts'
import { loadConfig, schema } from '../../../../server/start/config.ts'
import { withConfigurationTables } from '../../../support/configuration-tables.ts'

const page = new URL('../../../../docs/configuration.md', import.meta.url).pathname

// With `vitest -u` the page is written anew instead.
test('docs/configuration.md shows the keys as they are', async () => {
  await expect(withConfigurationTables(readFileSync(page, 'utf8'))).toMatchFileSnapshot(page)
})

test('every key is in the page, with its default', () => {
  const text = readFileSync(page, 'utf8')
  for (const { key, shown } of schema.settings) expect(text).toContain(`| \`${key}\` | ${shown} |`)
})

test('a page that has lost its marks is not overwritten', () => {
  expect(() => withConfigurationTables('# Configuration\n')).toThrow('the page has no')
})

test('a file that spells out every default is the default configuration', () => {
  const text = schema.settings.map(({ section, key, byDefault }) => `${section}.${key} = ${toml(byDefault)}`).join('\n')
  const { gmetric, mono, ...rest } = loadConfig({
    file: 'c.toml',
    env: {},
    readFile: () => new TextEncoder().encode(text),
  })
  const { producer, ...others } = loadConfig({ env: {} })
  const defaults = { ...others, producer: { ...producer, dataDir: resolve(producer.dataDir) } }
  expect({ ...rest, gmetric: { ...gmetric, listenNamed: false }, mono: { ...mono, listeners: [] } }).toEqual(defaults)
})
