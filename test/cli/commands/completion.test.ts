import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Command } from 'commander'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { addCompletion } from '../../../cli/commands/completion.ts'
import type { Connect } from '../../../client/index.ts'
import type { Message } from '../../../protocol/monitor/message.ts'
import { list, rec, runCli, type Script, string, uint32 } from '../fake-cli.ts'
import { FakeTop } from '../top/fake-top.ts'

const directory = mkdtempSync(join(tmpdir(), 'cinnabar-completion-'))
const script = join(directory, 'cinnabar.bash')
/** What the program is called with, as lines; and what it answers. */
const asked = join(directory, 'asked')
const answer = join(directory, 'answer')

beforeAll(async () => {
  writeFileSync(script, (await runCli(['completion', 'bash'])).out.join('\n'))
  const program = join(directory, 'cinnabar')
  writeFileSync(program, `#!/bin/sh\nprintf '%s\\n' "$@" > ${asked}\ncat ${answer}\n`)
  chmodSync(program, 0o755)
})
afterAll(() => rmSync(directory, { recursive: true }))

/** The completions of `line` in bash, which passes words in pieces. */
function offered(line: string, names: readonly string[] = [], whole?: readonly string[]): string[] {
  writeFileSync(answer, names.map((name) => `${name}\n`).join(''))
  writeFileSync(asked, '')
  const pieces =
    whole ?? line.split(/\s+/).flatMap((word) => (word === '' ? [''] : word.split(/([:=])/).filter((part) => part)))
  const run = `source "$1"; COMP_LINE=$2; COMP_POINT=\${#2}; shift 2; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
    _cinnabar cinnabar; printf '%s\\n' "\${COMPREPLY[@]}"`
  const env = { ...process.env, PATH: `${directory}:${process.env['PATH']}` }
  const out = execFileSync('bash', ['-uc', run, 'bash', script, line, ...pieces], { env, encoding: 'utf8' })
  return out.split('\n').filter((reply) => reply !== '')
}
const askedFor = () => execFileSync('cat', [asked], { encoding: 'utf8' }).split('\n').slice(0, -1)

describe('in bash', () => {
  test('the script is registered', () => {
    const out = execFileSync('bash', ['-c', `source ${script}; complete -p cinnabar`], { encoding: 'utf8' })
    expect(out).toBe('complete -F _cinnabar cinnabar\n')
  })

  test.each<[string, readonly string[]]>([
    ['cinnabar ch', ['channels']],
    ['cinnabar co', ['config', 'completion', 'connections', 'controls']],
    ['cinnabar user ', ['add', 'passwd', 'role', 'remove', 'list', 'help']],
    ['cinnabar user a', ['add']],
    ['cinnabar user add --pa', ['--password-file']],
    ['cinnabar role allow night ', ['COLLECT', 'EXECUTE', 'DEF_CHANNEL', 'PUBLISH']],
    ['cinnabar get host.load.one --wrap ', ['tls', 'deflate']],
    [`cinnabar channels define gmetric://h:8649 --dial-secret-file ${directory}/as`, [`${directory}/asked`]],
    ['cinnabar watch gmetric.a --co', ['--count', '--config']],
    ['cinnabar watch --count 3 gmetric.a --j', ['--json']],
    ['cinnabar --v', ['--version']],
    ['cinnabar completion ', ['bash', 'zsh', 'fish']],
    ['cinnabar completion bash ', []],
    ['cinnabar get --url ', []],
    ['cinnabar bogus ', []],
    [`cinnabar serve --config ${directory}/cinnabar.b`, [`${directory}/cinnabar.bash`]],
    [`cinnabar feed smon --to host:1 ${directory}/as`, [`${directory}/asked`]],
  ])('%j offers %j', (line, expected) => {
    expect(offered(line).sort()).toEqual([...expected].sort())
    expect(askedFor()).toEqual([])
  })

  test.each<[string, readonly string[]]>([
    ['cinnabar get gm', ['metric', 'get', 'gm']],
    ['cinnabar watch host.cpu.user gm', ['metric', 'watch', 'host.cpu.user', 'gm']],
    ['cinnabar get --url tcp://n1:7650 gm', ['metric', 'get', '--url', 'tcp://n1:7650', 'gm']],
    ['cinnabar get --user user ', ['metric', 'get', '--user', 'user', '']],
    ['cinnabar exec ', ['control', 'exec', '']],
    ['cinnabar sensor fence ', ['sensor', 'sensor', 'fence', '']],
    ['cinnabar tail --channel ', ['channel', 'tail', '--channel', '']],
    ['cinnabar tail --channel=', ['channel', 'tail', '--channel=']],
    ['cinnabar top gm', ['metric', 'top', 'gm']],
    ['cinnabar exec channel.purge ', ['argument', 'exec', 'channel.purge', '']],
    ['cinnabar user remove ', ['user', 'user', 'remove', '']],
    ['cinnabar token add ', ['user', 'token', 'add', '']],
  ])('%j asks the server', (line, [kind, ...words]) => {
    expect(offered(line, ['gmetric.a', 'other'])).toEqual(line.endsWith('gm') ? ['gmetric.a'] : ['gmetric.a', 'other'])
    expect(askedFor()).toEqual(['complete', kind, '--', ...words])
  })

  test.each<[line: string, word: string, names: readonly string[], expected: readonly string[]]>([
    ['cinnabar query host_l', 'host_l', ['host_load_one'], ['host_load_one']],
    ["cinnabar query 'host_l", 'host_l', ['host_load_one'], ['host_load_one']],
    [
      "cinnabar query --url http://h:1 'sum by (host) (rate(a:b",
      'sum by (host) (rate(a:b',
      ['sum by (host) (rate(a:bc', 'sum by (host) (rate(a:bd'],
      ['sum by (host) (rate(a:bc', 'sum by (host) (rate(a:bd'],
    ],
  ])('%j asks for expressions', (line, word, names, expected) => {
    const [before = '', quoted] = line.split("'")
    const pieces = quoted === undefined ? undefined : [...before.trim().split(/\s+/), `'${quoted}`]
    expect(offered(line, names, pieces)).toEqual(expected)
    expect(askedFor()).toEqual(['complete', 'expression', '--', 'query', ...(pieces ?? ['', '']).slice(2, -1), word])
  })

  test('where both subcommands and names are possible, both are offered', () => {
    expect(offered('cinnabar channels ', ['80', '90'])).toEqual(['define', 'delete', 'purge', '80', '90'])
    expect(askedFor()).toEqual(['complete', 'channel', '--', 'channels', ''])
  })

  test('what is offered takes the place of the last piece only', () => {
    expect(offered('cinnabar tail --channel=8', ['80', '90'])).toEqual(['80'])
    expect(offered('cinnabar get gmetric.a:b', ['gmetric.a:bc'])).toEqual(['bc'])
    expect(offered('cinnabar get gmetric.a:', ['gmetric.a:bc'])).toEqual(['bc'])
  })

  test('a name is never executed, and is quoted', () => {
    const names = ['g$(touch /tmp/x)', 'g`id`', "g'; id", 'g a', 'g*']
    expect(offered('cinnabar get g', names)).toEqual([
      'g\\$\\(touch\\ /tmp/x\\)',
      'g\\`id\\`',
      "g\\'\\;\\ id",
      'g\\ a',
      'g\\*',
    ])
  })
})

describe.each([
  ['zsh', '-n'],
  ['fish', '--no-execute'],
] as const)('for %s', (shell, check) => {
  test('the script names every command and option, and asks for names', async () => {
    const { code, out } = await runCli(['completion', shell])
    const text = out.join('\n')
    expect(code).toBe(0)
    for (const word of ['watch', 'user add', 'config check', 'password-file', 'interval']) expect(text).toContain(word)
    for (const kind of ['metric', 'control', 'channel']) expect(text).toContain(kind)
    expect(text).toContain('bash zsh fish')
    expect(text).toMatch(/complete ("\$kind"|\$argv\[1\]) -- /)
    // Where there is such a shell, it reads it without complaint; the text alone is checked elsewhere.
    const file = join(directory, `cinnabar.${shell}`)
    writeFileSync(file, text)
    const read = spawnSync(shell, [check, file], { encoding: 'utf8' })
    if (read.error === undefined) expect({ status: read.status, said: read.stderr }).toEqual({ status: 0, said: '' })
  })
})

describe('names', () => {
  const names = (...all: readonly string[]) => list(...all.map((name) => [string('name', name)]))
  const script: Script = ({ of, args }) => {
    if (of === 'producer.metrics') return { followedBy: [{ answer: names(`${args['match']}`, 'a\nb', 'gmetric.b') }] }
    if (of === 'producer.controls') {
      const parameters = list([string('name', 'channel')], [string('name', 'password')])
      const control = [string('name', 'user.add'), { name: 'parameters', ...parameters }]
      return { followedBy: [{ answer: list(control) }] }
    }
    if (of === 'user.list') {
      const users = list(
        [string('tenant', 'default'), string('user', 'ann')],
        [string('tenant', 'acme'), string('user', 'bob')],
      )
      const result = rec(string('outcome', 'ok'), { name: 'value', ...users })
      return { result: 5, followedBy: [{ answer: result }] }
    }
    return {
      followedBy: [{ answer: list([uint32('channel', 9)], [uint32('channel', 33), string('name', 'billing')]) }],
    }
  }

  test.each<[readonly string[], readonly string[]]>([
    [
      ['metric', '--', 'get', 'gm'],
      ['gm*', 'gmetric.b'],
    ],
    [['metric', '--', 'get', 'gm*'], []],
    [['control', '--', 'exec', ''], ['user.add']],
    [
      ['user', '--', 'user', 'remove', ''],
      ['ann', 'acme/bob'],
    ],
    [
      ['argument', '--', 'exec', '--url', 'tcp://n1.example:1', 'user.add', ''],
      ['idempotency_key=', 'channel='],
    ],
    [
      ['channel', '--', 'tail', '--channel', ''],
      ['33', 'billing'],
    ],
  ])('complete %j gives %j', async (words, expected) => {
    const { code, out, err } = await runCli(['complete', ...words], script)
    expect({ code, out, err }).toEqual({ code: 0, out: expected, err: [] })
  })

  test('of the argument producer are those of the servers that there are', async () => {
    const capabilities: Message = {
      kind: 'caps',
      caps: {
        major: 1,
        minor: 1,
        auth: [],
        layer: [],
        extension: [],
        software: 'cinnabar/0',
        maxFrameBytes: 1 << 20,
        producer: { id: '01', name: 'main' },
        below: [
          { id: '02', name: 'east' },
          { id: '03', name: 'east/rack1' },
        ],
      },
    }
    const parameters = list([string('name', 'producer')], [string('name', 'host')])
    const metric = [string('name', 'gmetric.a'), { name: 'parameters', ...parameters }]
    const of: Script = () => ({ followedBy: [capabilities, { answer: list(metric) }] })
    const { out } = await runCli(['complete', 'metric', '--', 'watch', 'gmetric.a', 'producer='], of)
    expect(out).toEqual(['host=', 'producer=main', 'producer=east', 'producer=east/rack1', 'gmetric.a'])
    expect(offered('cinnabar watch gmetric.a producer=e', out)).toEqual(['east', 'east/rack1'])
  })

  test('are looked up with the login of the command line', async () => {
    const urls: unknown[] = []
    const connect: Connect = (url, credentials) => {
      urls.push([url, 'identity' in credentials && credentials.identity])
      return Promise.reject(new Error('no'))
    }
    const words = ['get', '--url', 'tcp://n1:7650', '--user=bob', 'gm']
    const env = { CINNABAR_URL: 'tcp://n2:1', CINNABAR_USER: 'tc', CINNABAR_PASSWORD: 's3' }
    const { code, out, err } = await runCli(['complete', 'metric', '--', ...words], script, { env, connect })
    expect({ code, out, err, urls }).toEqual({ code: 0, out: [], err: [], urls: [[['tcp://n1:7650'], 'bob']] })
  })

  test('there is no prompt for a password and no message', async () => {
    const words = ['get', '--url', 'tcp://n1:7650', '--user', 'bob', 'gm']
    const { code, out, err } = await runCli(['complete', 'metric', '--', ...words], script, { env: {} })
    expect({ code, out, err }).toEqual({ code: 0, out: [], err: [] })
  })

  test('are given up after a second', async () => {
    const { clock, settle } = new FakeTop()
    let signal: AbortSignal | undefined
    const program = new Command()
    const cli = {
      terminal: { env: { CINNABAR_URL: 'tcp://n1:1', CINNABAR_USER: 'tc', CINNABAR_PASSWORD: 's3' } },
      connect: (_: string, __: unknown, options: { signal: AbortSignal }) => {
        signal = options.signal
        return new Promise(() => {})
      },
    }
    addCompletion(program, cli as unknown as Parameters<typeof addCompletion>[1], clock)
    const ended = program.parseAsync(['complete', 'metric', '--', 'get', ''], { from: 'user' })
    await settle()
    clock.advance(999)
    expect(signal?.aborted).toBe(false)
    clock.advance(1)
    await ended
    expect({ aborted: signal?.aborted, timers: clock.timers }).toEqual({ aborted: true, timers: 0 })
  })
})

test('the help tells how to install it', async () => {
  const { out } = await runCli(['completion', '--help'])
  expect(out.join('\n')).toContain("echo 'source <(cinnabar completion bash)' >> ~/.bashrc")
  expect((await runCli(['--help'])).out.join('\n')).not.toMatch(/^ {2}complete /m)
  expect((await runCli(['completion', 'tcsh'])).code).toBe(2)
})
