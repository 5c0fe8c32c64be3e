/** What acts on the machine that it is configured on: in a cluster only where the operator says that any node will do. */
import { expect, test } from 'vitest'
import { checkAnywhere } from '../../../server/start/anywhere.ts'
import { type Config, ConfigError, loadConfig } from '../../../server/start/config.ts'

const exec = (more = ''): string => `[[exec]]\nname = "exec.say"\nargv = ["echo"]\n${more}\n`
const plugin = (more = ''): string => `[[plugin]]\nmodule = "./own.mjs"\n${more}\n`
const mono = (more = ''): string => `[mono]\n${more}\n`

function configOf(toml: string): Config {
  return loadConfig({ file: 'c.toml', env: {}, readFile: () => new TextEncoder().encode(toml) })
}

function problems(toml: string, node: string | undefined): string[] {
  try {
    checkAnywhere(configOf(toml), node, '/etc/c.toml')
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.message.split('\n')
    throw error
  }
}

test.each([
  ['[[exec]]', exec(), '`[[exec]]` exec.say'],
  ['[[plugin]]', plugin(), '`[[plugin]]` ./own.mjs'],
  ['[mono]', mono(), '`[mono]`'],
])('%s is refused in a cluster, with the file, the key and what to do', (_, toml, entry) => {
  expect(problems(toml, 'n1')).toEqual([
    expect.stringMatching(/^\/etc\/c\.toml: .* needs `anywhere = true` in a cluster: .*remove it here/),
  ])
  expect(problems(toml, 'n1')[0]).toContain(`: ${entry} needs`)
  expect(problems(toml, undefined)).toEqual([])
})

test.each([exec('anywhere = true'), plugin('anywhere = true'), mono('anywhere = true')])(
  'taken, with and without a cluster: %j',
  (toml) => {
    expect([problems(toml, 'n1'), problems(toml, undefined)]).toEqual([[], []])
  },
)

test('all that is wrong is said at once; files of Mono agents have no controls', () => {
  const files = mono('listen = ""\n[[mono.file]]\npath = "/run/mono"\nagent = "a"')
  expect(problems(`${exec()}${plugin()}`, 'n1')).toHaveLength(2)
  expect(problems(files, 'n1')).toEqual([])
})
