/** What an operator may write into `[[scrape]]`, and what is said of the rest. */
import { expect, it } from 'vitest'
import { ConfigError, loadConfig } from '../../../../../server/start/config.ts'

const HEAD = '[[scrape]]\nname = "node"\ntargets = ["n1:9100"]\n'

function complaints(toml: string): readonly string[] {
  try {
    loadConfig({ file: 'c.toml', env: {}, readFile: () => Buffer.from(toml) })
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.message.split('\n')
    throw error
  }
}

it.each([
  [
    `${HEAD}labels = { env = "prod", name = "x" }`,
    '4: `[[scrape]]` node: `labels`: a label cannot be called `name`: this name is reserved, choose another',
  ],
  [
    `${HEAD}[scrape.labels]\nenv = "prod"\nproducer = "x"`,
    '4: `[[scrape]]` node: `labels`: a label cannot be called `producer`: this name is reserved, choose another',
  ],
  [
    `${HEAD}labels = { env = 1 }`,
    '4: `[[scrape]]` node: `labels`: expected a table of at most 32 labels with a text each',
  ],
  [
    '[[scrape]]\nname = "node"\ntargets = ["n1:9100", "http://n2:9100"]',
    '3: `[[scrape]]` node: `targets`: "http://n2:9100" is no address like "n1.example:9100"',
  ],
  [
    `${HEAD}[[scrape.relabel]]\ntarget_label = "a"\nregex = "("`,
    '4: `[[scrape]]` node, relabel 1: `regex` is no regular expression of RE2: error parsing regexp: missing closing )',
  ],
  [
    `${HEAD}[[scrape.metric_relabel]]\naction = "drop"\n[[scrape.metric_relabel]]\naction = "hash"`,
    '7: `[[scrape]]` node, metric_relabel 2: `action`: expected one of "replace", "keep"',
  ],
  [
    '[[scrape]]\nname = "node"\nurl = "http://n1:9100"\n[[scrape.relabel]]\naction = "keep"',
    '1: `[[scrape]]` node: `relabel` is for `targets`: write the `url` as it is to be',
  ],
  ['[[scrape]]\nname = "node"', '1: `[[scrape]]` node: it needs `url`, `targets` or `file_sd`'],
])('%j is reported with its line', (toml, expected) => {
  expect(complaints(toml)).toEqual([expect.stringContaining(`c.toml:${expected}`)])
})
