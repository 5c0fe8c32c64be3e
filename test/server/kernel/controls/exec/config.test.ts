/** The tables `[[exec]]`: what they read to, and what is said of those that are not right. */
import { describe, expect, test } from 'vitest'
import { WholePattern } from '../../../../../server/kernel/controls/bounds.ts'
import { ConfigError } from '../../../../../server/start/config.ts'
import { execTables } from '../../../../support/exec-tables.ts'

function complaints(toml: string): string[] {
  try {
    execTables(toml)
  } catch (error) {
    if (error instanceof ConfigError) return error.message.split('\n')
    throw error
  }
  return []
}

const place = (parameter: string) => ({ parameter })

test('a table needs a name and a program; everything else has a default', () => {
  expect(execTables('[[exec]]\nname = "exec.a"\nargv = ["/bin/true"]')).toEqual([
    {
      name: 'exec.a',
      description: '',
      argv: [{ pieces: ['/bin/true'] }],
      environment: [],
      stdin: undefined,
      directory: '/',
      user: '',
      timeoutMs: 30_000,
      maxOutput: 65_536,
      maxRunning: 1,
      tenants: ['default'],
      anywhere: false,
      parameters: [],
    },
  ])
})

test('a table with everything', () => {
  const [table] = execTables(`[[exec]]
name = "exec.a"
argv = ["a", "x={one}{two}", "{{one}}", "{ print }", ""]
environment = { KEY = "{three}", LC_ALL = "C" }
stdin = "{three}"
timeout = "50ms"
tenants = ["t1", "t2"]
[[exec.parameter]]
name = "one"
pattern = "[a-z]+"
[[exec.parameter]]
name = "two"
type = "integer"
min = 1
default = 5
[[exec.parameter]]
name = "three"
secret = true
`)
  expect(table).toMatchObject({
    argv: [
      { pieces: ['a'] },
      { pieces: ['x=', place('one'), place('two')] },
      { pieces: ['{one}'] },
      { pieces: ['{ print }'] },
      { pieces: [] },
    ],
    environment: [
      { name: 'KEY', value: { pieces: [place('three')] } },
      { name: 'LC_ALL', value: { pieces: ['C'] } },
    ],
    stdin: { pieces: [place('three')] },
    timeoutMs: 50,
    tenants: ['t1', 't2'],
    parameters: [
      { name: 'one', type: 'string', pattern: '[a-z]+', optional: false, maxLength: 256, allowDash: false },
      { name: 'two', type: 'integer', min: 1n, default: 5n },
      { name: 'three', secret: true },
    ],
  })
})

describe('a table that is not right', () => {
  const head = '[[exec]]\nname = "exec.a"\nargv = ["/bin/echo", "{x}"]\n'
  const x = '[[exec.parameter]]\nname = "x"\n'
  test.each([
    ['[exec]\nname = "a"', '1: `exec`: expected tables [[exec]], found a table'],
    ['[[exec]]\nargv = ["a"]', '1: `[[exec]]` 1: it needs `name`: a name that begins with "exec."'],
    ['[[exec]]\nname = "a"\nargv = ["a"]', '2: `[[exec]]` a: `name`: expected a name that begins with "exec."'],
    ['[[exec]]\nname = "exec.a"', '1: `[[exec]]` exec.a: it needs `argv`'],
    ['[[exec]]\nname = "exec.a"\nargv = []', '3: `[[exec]]` exec.a: `argv`: expected a list of texts'],
    [
      '[log]\n[[exec]]\nname = "exec.a"\nargv = ["a"]\ntimout = "1s"',
      '2: `[[exec]]` exec.a: unknown key `timout`: did you mean `timeout`?',
    ],
    [`${head}timeout = "2h"\n${x}`, '4: `[[exec]]` exec.a: `timeout`: expected a duration from 10ms to 1h'],
    [
      `${head}environment = { "A-B" = "x" }\n${x}`,
      '4: `[[exec]]` exec.a: `environment`: expected a table of variables',
    ],
    [head, '1: `[[exec]]` exec.a: {x} is not one of its parameters: write {{x}} for the braces themselves'],
    [`${head}${x}secret = true`, '1: `[[exec]]` exec.a: the secret {x} would show in the process list'],
    [
      `${head}stdin = "{x}"\n${x}`,
      '1: `[[exec]]` exec.a: {x} is no secret: `stdin` and `environment` take secrets only',
    ],
    [`${head}${x}[[exec.parameter]]\nname = "y"`, '1: `[[exec]]` exec.a: the parameter y is used nowhere'],
    [`${head}${x}${x}`, '1: `[[exec]]` exec.a: a parameter stands twice'],
    [
      '[[exec]]\nname = "exec.a"\nargv = ["{x}"]\n[[exec.parameter]]\nname = "x"',
      '1: `[[exec]]` exec.a: `argv`: the program itself cannot',
    ],
    [`${head}${x}type = "text"`, '6: `[[exec]]` exec.a, parameter x: `type`: expected one of "string", "integer"'],
    [
      `${head.replace('{x}', '{dry_run}')}[[exec.parameter]]\nname = "dry_run"`,
      '5: `[[exec]]` exec.a, parameter dry_run: `name`: expected a name of small letters',
    ],
    [
      `${head.replace('{x}', '{producer}')}[[exec.parameter]]\nname = "producer"`,
      '5: `[[exec]]` exec.a, parameter producer: `name`: expected a name of small letters',
    ],
    [`${head}${x}pattern = "["`, '4: `[[exec]]` exec.a, parameter x: `pattern` is no regular expression of RE2'],
    [`${head}${x}pattern = "a)|(?:b"`, '4: `[[exec]]` exec.a, parameter x: `pattern` is no regular expression'],
    [
      `${head}${x}pattern = '(?=a)b'`,
      '4: `[[exec]]` exec.a, parameter x: `pattern` is no regular expression of RE2: error parsing regexp: invalid or ' +
        'unsupported Perl syntax: `(?=`',
    ],
    [`${head}${x}type = "integer"\ndefault = "5"`, '4: `[[exec]]` exec.a, parameter x: `default` is no integer'],
    [
      `${head}${x}type = "integer"\nmin = 5\nmax = 4`,
      '4: `[[exec]]` exec.a, parameter x: `min` (5) is above `max` (4)',
    ],
    [`${head}${x}min = 5`, '4: `[[exec]]` exec.a, parameter x: `min` and `max` are for integers and numbers'],
    [`${head}${x}${head}${x}`, '1: `exec`: two of them have the same `name`'],
    [
      `${head}${x}[[exec]]\nname = "exec.b"\nargv = ["a"]\nuser = 5`,
      '9: `[[exec]]` exec.b: `user`: expected a text without',
    ],
  ])('%j is reported with its line', (toml, expected) => {
    expect(complaints(toml)).toEqual([expect.stringContaining(`c.toml:${expected}`)])
  })
})

test('a pattern matches the whole text or nothing, whatever is in it', () => {
  const pattern = new WholePattern('a|b')
  for (const text of ['a', 'b']) expect(pattern.matches(text)).toBe(true)
  for (const text of ['ax', 'xb', 'a\n', '\na', 'a\nb', '']) expect(pattern.matches(text)).toBe(false)
})

// With an engine that backtracks, this does not end.
test('no pattern takes long', () => {
  expect(new WholePattern('(a+)+b').matches('a'.repeat(4096))).toBe(false)
})
