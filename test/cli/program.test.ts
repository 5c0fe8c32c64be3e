import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Command } from 'commander'
import { describe, expect, test } from 'vitest'
import { EXAMPLES } from '../../cli/examples.ts'
import { createProgram } from '../../cli/program.ts'
import { ConnectionError, type ConnectionErrorCode, StatusError } from '../../client/index.ts'
import { StatusCode } from '../../protocol/monitor/status.ts'
import { double, fakeCli, runCli, type Script } from './fake-cli.ts'

const load: Script = ({ of }) =>
  of === 'host.load.one' ? { followedBy: [{ answer: double(0.5) }] } : { status: 'NO_SUCH_METRIC' }

describe('exit codes', () => {
  test.each([[['--help']], [['get', '--help']], [['--version']]])('%j is success, on stdout', async (argv) => {
    const { code, out, err } = await runCli(argv)
    expect({ code, err }).toEqual({ code: 0, err: [] })
    expect(out.join('\n')).toMatch(/Usage: cinnabar|^\d+\.\d+\.\d+$/)
  })

  test.each([
    [[]],
    [['bogus']],
    [['get']],
    [['get', 'a', '--bogus']],
    [['get', 'host=n1']],
    [['watch', 'a', '--interval', '0']],
    [['watch', 'host=n1']],
    [['watch', 'a', '--count', '0']],
    [['tail']],
    [['tail', '--channel', 'x']],
    [['channels', '--delete']],
    [['channels', 'define', 'tcp://n1:1']],
    [['channels', 'define', 'ftp://n1:1']],
    [['channels', 'define', 'tls://n1:1', 'secret=0123456789abcdef']],
    [['get', 'a', '--wrap', 'brotli']],
    [['get', 'a', '--cert', '/nowhere']],
    [['audit', '--after', '-1']],
    [['audit', 'verify', '--from', 'x']],
    [['user', 'add', 'a/b/c']],
    [['user', 'remove', 'a/b/c']],
    [['config', 'check', '--config', '/nowhere.toml']],
  ])('%j is wrong usage, reported on stderr', async (argv) => {
    const { code, out, err, producer } = await runCli(argv)
    expect({ code, out }).toEqual({ code: 2, out: [] })
    expect(err.join()).not.toBe('')
    expect(err.join()).not.toContain('should not happen')
    expect(producer.sent).toEqual([])
  })

  test('a refusal of the producer is a failure, in its words', async () => {
    const { code, out, err } = await runCli(['get', 'host.bogus'], () => ({
      status: 'NO_SUCH_METRIC',
      detail: 'no\x1b such',
    }))
    expect({ code, out }).toEqual({ code: 1, out: [] })
    expect(err).toEqual([
      'cinnabar: QUERY was refused: no\\x1b such (NO_SUCH_METRIC)',
      '`cinnabar metrics` lists the metrics that you can read',
    ])
  })

  test('a reader that has seen enough is no failure', async () => {
    const onPrint = () => {
      throw Object.assign(new Error('write EPIPE'), { code: 'EPIPE' })
    }
    const { code, err, producer } = await runCli(['get', 'host.load.one'], load, { onPrint })
    expect({ code, err }).toEqual({ code: 0, err: [] })
    expect(producer.isClosed).toBe(true)
  })

  test('an unexpected error shows its stack', async () => {
    const onPrint = () => {
      throw new TypeError('oops')
    }
    const { code, err } = await runCli(['get', 'host.load.one'], load, { onPrint })
    expect(code).toBe(1)
    expect(err.join('\n')).toMatch(/unexpected error: TypeError: oops\n.*program.test/)
  })
})

describe('a connection that does not come about', () => {
  const env = { CINNABAR_URL: 'tcp://127.0.0.1:7650', CINNABAR_USER: 'alice', CINNABAR_PASSWORD: 'pencil' }
  const used = 'Used: tcp://127.0.0.1:7650 (CINNABAR_URL), user alice (CINNABAR_USER), secret from CINNABAR_PASSWORD'
  const refused = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
  const full = new StatusError('AUTH', StatusCode.QUOTA_EXCEEDED, 'connections: 5 are there')

  test.each<[ConnectionErrorCode, unknown, RegExp, number]>([
    ['UNREACHABLE', refused, /nothing listens on 127.0.0.1:7650: start the server with `cinnabar serve`/, 1],
    ['UNREACHABLE', new Error('no route'), /the message\nThe address must be that of `listen.tcp`/, 1],
    ['LOGIN_FAILED', undefined, /the user does not exist or the secret is wrong: see --user and --secret-file/, 1],
    ['LOGIN_FAILED', full, /the message\n`cinnabar tenant list`, run by an admin, shows how much of its quotas/, 1],
    ['SERVER_NOT_PROVEN', undefined, /This is not the server that the secret belongs to; the secret was not sent/, 1],
    ['TIMEOUT', undefined, /the message\nThe address must be that of `listen.tcp`/, 1],
    ['BAD_URL', undefined, /the message\nThe URL comes from CINNABAR_URL$/, 2],
  ])('says of %s what to do and what was tried', async (code, cause, advice, exitCode) => {
    const connect = () => Promise.reject(new ConnectionError(code, 'the message', { cause }))
    const outcome = await runCli(['get', 'a'], load, { env, connect })
    expect(outcome.code).toBe(exitCode)
    expect(outcome.err.join('\n')).toMatch(advice)
    if (exitCode === 1) expect(outcome.err).toContain(used)
    expect(outcome.err.join()).not.toContain('pencil')
  })
})

test('a login of a node on a machine where it does not lead is refused with where to go', async () => {
  const env = { CINNABAR_USER: 'local@n1', CINNABAR_PASSWORD: 'pencil', CINNABAR_URL: 'a:1' }
  const connect = () => Promise.reject(new ConnectionError('LOGIN_FAILED', 'not admitted'))
  const outcome = await runCli(['get', 'a'], load, { env, connect })
  expect(outcome.err.join('\n')).toMatch(/only while that node leads: `cinnabar cluster` says which one leads/)
})

test('several addresses of which nobody answers are all shown, with the reason of each', async () => {
  const env = { CINNABAR_URL: 'a:1,b:2', CINNABAR_TOKEN: 'cnb_x' }
  const cause = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
  const connect = () => Promise.reject(new ConnectionError('UNREACHABLE', 'nobody at a; nobody at b', { cause }))
  const { code, err } = await runCli(['get', 'a'], load, { env, connect })
  expect(code).toBe(1)
  expect(err.join('\n')).toMatch(
    /nobody at a; nobody at b\nThe address must be .*\nUsed: tcp:\/\/a:1, tcp:\/\/b:2 \(CINNABAR_URL\)/,
  )
})

test('a channel that is refused after the login is reported with advice and login', async () => {
  const denied = new StatusError('EXECUTE', StatusCode.PERMISSION_DENIED, 'you may not run channel.configure')
  const env = { CINNABAR_TOKEN: 'cnb_x' }
  const { code, err } = await runCli(['get', 'a'], load, { env, connect: () => Promise.reject(denied) })
  expect(code).toBe(1)
  expect(err.join('\n')).toMatch(
    /may not run.*\n.*the scope of the token does not include it: see `cinnabar token list`\nUsed: .*CINNABAR_TOKEN/,
  )
})

test('a certificate that is not accepted may be invalid', async () => {
  const pem = join(mkdtempSync(join(tmpdir(), 'cinnabar-pem-')), 'alice.pem')
  writeFileSync(pem, '', { mode: 0o600 })
  const connect = () => Promise.reject(new ConnectionError('NO_METHOD', 'the message'))
  const { err } = await runCli(['get', 'a', '--cert', pem, '--key', pem], load, { connect })
  expect(err.join('\n')).toMatch(/the message\nNo user has the name in the certificate, or it is no longer valid/)
})

test('a failed WebSocket is reported with the right URL', async () => {
  const env = { CINNABAR_URL: 'ws://127.0.0.1:7651/', CINNABAR_USER: 'alice', CINNABAR_PASSWORD: 'pencil' }
  const connect = () => Promise.reject(new ConnectionError('UNREACHABLE', 'the message'))
  const { err } = await runCli(['get', 'a'], load, { env, connect })
  expect(err.join('\n')).toMatch(/the message\nThe URL must be ws:\/\/HOST:PORT\/monitor/)
})

describe('with --json', () => {
  test('an error is one JSON object on stderr', async () => {
    const { code, out, err } = await runCli(['get', 'host.bogus', '--json'], () => ({ status: 'NO_SUCH_METRIC' }))
    expect({ code, out, lines: err.length }).toEqual({ code: 1, out: [], lines: 1 })
    expect(JSON.parse(err[0]!)).toMatchObject({ status: 'NO_SUCH_METRIC', exit_code: 1 })
    const usage = await runCli(['get', '--json', '--bogus'])
    expect(JSON.parse(usage.err.join())).toMatchObject({ error: expect.stringMatching(/--bogus/), exit_code: 2 })
    const wrong = { CINNABAR_LISTEN_TCP: 'x' }
    const checked = await runCli(['config', 'check', '--json'], undefined, { env: wrong })
    expect(checked.code).toBe(2)
    expect(JSON.parse(checked.err.join()).error).toContain('CINNABAR_LISTEN_TCP')
  })

  test('that is an argument of another program is none', async () => {
    const { err } = await runCli(['get', '--', '--json', '--bogus'], () => ({ status: 'NO_SUCH_METRIC' }))
    expect(err[0]).toMatch(/^cinnabar: /)
  })
})

test.each([
  [
    ['tail', '--channel', 'abc'],
    /^cinnabar: 'abc' cannot be the value of --channel <id>\. Expected the id of a channel/,
  ],
  [['role', 'forget', 'x'], /^cinnabar: 'x' is no rule\. Expected the number of a rule/],
  [['get', 'a', '--cont'], /^cinnabar: unknown option '--cont'/],
  [['serve', '--port', '65535'], /^cinnabar: '65535' cannot be the value of --port <n>\. Expected a port from 0 /],
  [['serve', '--listen', '127.0.0.1:7650'], /^cinnabar: .* cannot be the value of --listen <host>\. .*: see --port/],
  [['gte'], /^cinnabar: unknown command 'gte'\n\(Did you mean get\?\)/],
])('wrong usage is reported like everything else: %j', async (argv, message) => {
  const { code, err } = await runCli(argv)
  expect(code).toBe(2)
  expect(err.join('\n')).toMatch(message)
  expect(err.at(-1)).toBe('The option --help shows what this command takes')
})

describe('the help of each command', () => {
  const { cli } = fakeCli()
  const routes: [string, Command][] = []
  const visit = (command: Command, route: readonly string[]): void => {
    for (const one of command.commands) {
      if (one.name() === 'complete') continue
      routes.push([[...route, one.name()].join(' '), one])
      visit(one, [...route, one.name()])
    }
  }
  visit(createProgram(cli), [])

  test('has examples, and there are none of other commands', () => {
    expect(['', ...routes.map(([route]) => route)].sort()).toEqual(Object.keys(EXAMPLES).sort())
  })

  test.each(routes)('has its own options first: %s', async (route) => {
    const { out } = await runCli([...route.split(' '), '--help'])
    const text = out.join('\n')
    const connection = text.indexOf('Connection options:')
    expect(text.indexOf('-h, --help')).toBeGreaterThan(0)
    if (connection >= 0) expect(text.indexOf('-h, --help')).toBeLessThan(connection)
    expect(text.indexOf('Examples:')).toBeGreaterThan(connection)
  })

  test.each(Object.entries(EXAMPLES).flatMap(([route, lines]) => lines.map((line) => [line, route] as const)))(
    'shows what the program takes: %s',
    (line, route) => {
      const [, words = ''] = /cinnabar (.*?)\)?(?: [|>] .*)?$/.exec(line) ?? []
      const argv = Array.from(words.matchAll(/'([^']*)'|(\S+)/g), ([, quoted, plain]) => {
        return quoted ?? plain!.replace(/'(.*)'$/, '$1')
      })
      let parsed = ''
      const program = createProgram(cli)
      const catchAll = (command: Command, at: readonly string[]): void => {
        command.action(() => {
          parsed = at.join(' ')
        })
        for (const one of command.commands) catchAll(one, [...at, one.name()])
      }
      for (const one of program.commands) catchAll(one, [one.name()])
      program.parse(argv, { from: 'user' })
      expect(parsed).not.toBe('')
      // What only holds other commands shows one of those.
      const isGroup = ({ commands, options, registeredArguments: own }: Command) =>
        commands.length > 0 && options.length === 0 && own.length === 0
      const [, command] = routes.find(([other]) => other === route) ?? []
      expect(command === undefined || isGroup(command) ? parsed.slice(0, route.length) : parsed).toBe(route)
    },
  )
})

test('the help shows a default as it would be typed', async () => {
  const { out } = await runCli(['feed', 'smon', '--help'])
  expect(out.join('\n')).toContain('(default: 127.0.0.1:2606)')
})

describe('config check', () => {
  const env = { CINNABAR_LISTEN_HTTP: '', CINNABAR_LISTEN_TCP: '[::1]:1', CINNABAR_CHANNELS_MAX_AGE: '36h' }

  test.each([
    ['50%', 'queued_bytes = "50%"'],
    ['7000', 'queued_bytes = 7000'],
  ])('prints a number of bytes or a share as it was given: %s', async (given, line) => {
    const { out } = await runCli(['config', 'check'], undefined, { env: { CINNABAR_QUOTA_QUEUED_BYTES: given } })
    expect(out).toContain(line)
  })

  test('prints what is in force, as a file that could be used', async () => {
    const { code, out } = await runCli(['config', 'check'], undefined, { env })
    expect(code).toBe(0)
    expect(out).toEqual(
      expect.arrayContaining([
        '# OK',
        '[listen]',
        'tcp = "[::1]:1"',
        'http = ""',
        'max_age = "36h"',
        'expire = "7d"',
        'allow = ["127.0.0.0/8","::1/128"]',
      ]),
    )
    const directory = mkdtempSync(join(tmpdir(), 'cinnabar-config-'))
    const file = join(directory, 'c.toml')
    writeFileSync(file, out.join('\n'))
    const inFile = out.map((line) => line.replace('"./data"', JSON.stringify(join(directory, 'data'))))
    expect((await runCli(['config', 'check', '--config', file], undefined, { env: {} })).out).toEqual(inFile)
    rmSync(directory, { recursive: true })
  })

  test('prints it as JSON', async () => {
    const { out } = await runCli(['config', 'check', '--json'], undefined, { env })
    expect(out).toHaveLength(1)
    expect(JSON.parse(out[0]!)).toMatchObject({
      listen: { tcp: '[::1]:1', http: '' },
      channels: { max_age: '36h', window: 65536 },
    })
  })

  test('tells every problem', async () => {
    const wrong = { CINNABAR_LISTEN_TCP: 'x', CINNABAR_CHANNELS_WINDOW: '0' }
    const { code, out, err } = await runCli(['config', 'check'], undefined, { env: wrong })
    expect({ code, out }).toEqual({ code: 2, out: [] })
    expect(err.join('\n')).toMatch(/CINNABAR_LISTEN_TCP(.|\n)*CINNABAR_CHANNELS_WINDOW/)
  })
})
