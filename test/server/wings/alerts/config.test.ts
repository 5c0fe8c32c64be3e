import { expect, it } from 'vitest'
import { loadConfig } from '../../../../server/start/config.ts'

const read = (text: string) =>
  loadConfig({ file: 'c.toml', env: {}, readFile: () => new TextEncoder().encode(text) }).alerts

it('takes files, whose paths start at the configuration', () => {
  expect(read('[alerts]\nrules = ["rules/*.yml"]').rules).toEqual([expect.stringMatching(/^\/.*\/rules\/\*\.yml$/)])
})

it.each([
  ['[history]\nkeep = "0"\n', 'c.toml:4: `alerts.rules`: rules need the history, which is off: set `history.keep`'],
  [
    '[history]\nmetrics = ["host.*"]\n',
    'c.toml:4: `alerts.rules`: what rules record is `rules.*`, which is not in `history.metrics`',
  ],
])('says that there can be no alerts with %j', (history, message) => {
  expect(() => read(`${history}[alerts]\nrules = ["a.yml"]`)).toThrow(message)
})
