import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import type { Field } from '../../../protocol/monitor/value.ts'
import { boolean, list, rec, runCli, type Script, string, TIME, uint32, uint64 } from '../fake-cli.ts'

const directory = mkdtempSync(join(tmpdir(), 'cinnabar-controls-'))
afterAll(() => rmSync(directory, { recursive: true }))
function secretFile(text: string): string {
  const file = join(directory, 'secret')
  writeFileSync(file, text, { mode: 0o600 })
  return file
}

const outcome = (word: string, detail = '', ...value: readonly Field[]) => ({
  result: 5,
  followedBy: [{ answer: rec(string('outcome', word), string('detail', detail), ...value), transaction: 77 }],
})

describe('exec', () => {
  const script: Script = ({ name, of }) => {
    if (of === 'producer.controls') {
      const parameters = list(
        [string('name', 'unit'), string('type', 'string')],
        [string('name', 'n'), string('type', 'uint32')],
      )
      return { followedBy: [{ answer: list([string('name', 'exec.x'), { name: 'parameters', ...parameters }]) }] }
    }
    return name === 'EXECUTE' ? outcome('ok', 'done', uint32('value', 3)) : {}
  }

  test('prints the result and takes it from the channel', async () => {
    const { code, out, producer } = await runCli(['exec', 'exec.x', 'unit=7', 'n=7', 'idempotency_key=7'], script)
    expect({ code, out }).toEqual({ code: 0, out: ['ok: done', '3'] })
    const [, execute, commit] = producer.asked
    expect(execute).toMatchObject({ name: 'EXECUTE', of: 'exec.x', args: { unit: '7', n: 7n, idempotency_key: '7' } })
    expect(commit).toMatchObject({ name: 'COMMIT', fields: { transaction: 77, through: false } })
  })

  test('prints JSON', async () => {
    const { out } = await runCli(['exec', 'exec.x', '--json'], script)
    expect(JSON.parse(out.join())).toEqual({ control: 'exec.x', time: TIME, outcome: 'ok', detail: 'done', value: 3 })
  })

  test.each([
    ['ok', 0],
    ['dry-run', 0],
    ['failed', 1],
    ['timeout', 1],
    ['unknown', 3],
  ])('%s exits with %d', async (word, code) => {
    const result = await runCli(['exec', 'exec.x'], ({ name }) => (name === 'EXECUTE' ? outcome(word, 'why') : {}))
    expect(result.code).toBe(code)
    expect(result.out).toEqual([`${word}: why`])
    expect(result.err[0]).toBe(
      code > 0 ? `cinnabar: exec.x: ${word}: why` : word === 'ok' ? undefined : 'dry run: nothing was done',
    )
  })

  test('a connection that is lost meanwhile leaves it unknown whether the control ran', async () => {
    const lost: Script = ({ name }) => (name === 'EXECUTE' ? { result: 5 } : {})
    const running = runCli(['exec', 'exec.x', '--idempotency-key', 'k'], lost, { hangsUpAfter: 'EXECUTE' })
    const { code, out, err } = await running
    expect({ code, out }).toEqual({ code: 3, out: [] })
    expect(err.join('\n')).toMatch(/It is not known whether it ran; `cinnabar audit` may show it/)
  })

  test('a key and a dry run are arguments of the protocol', async () => {
    const { producer } = await runCli(['exec', 'exec.x', 'unit=a', '--idempotency-key', '7', '--dry-run'], script)
    const execute = producer.asked.find(({ name }) => name === 'EXECUTE')
    expect(execute?.args).toEqual({ unit: 'a', idempotency_key: '7', dry_run: true })
  })

  test.each(['password', 'secret', 'token'])('the argument %s is not taken from the command line', async (name) => {
    const { code, err, producer } = await runCli(['exec', 'user.passwd', `${name}=hunter2`], script)
    expect({ code, asked: producer.asked }).toEqual({ code: 2, asked: [] })
    expect(err.join()).toContain(`--arg-file ${name}=FILE`)
    expect(err.join()).not.toContain('hunter2')
  })

  test('an argument that is secret comes from a file, as a string, and not where others can read it', async () => {
    const argv = ['exec', 'user.passwd', 'user=alice', '--arg-file', `password=${secretFile('12345\n')}`]
    const { code, producer } = await runCli(argv, script)
    expect(code).toBe(0)
    expect(producer.asked[0]).toMatchObject({ of: 'user.passwd', args: { user: 'alice', password: '12345' } })
    const open = await runCli(argv, script, { isOpenToOthers: true })
    expect({ code: open.code, asked: open.producer.asked }).toEqual({ code: 1, asked: [] })
  })
})

describe('user', () => {
  const script: Script = ({ name, of }) =>
    of === 'user.list'
      ? outcome('ok', '', { name: 'value', ...list([string('tenant', 'default'), string('user', 'alice')]) })
      : name === 'EXECUTE'
        ? outcome('ok', `${of} done`)
        : {}

  test('add asks twice for the password and sends who, what role, and it', async () => {
    const options = { secrets: ['pencil', 'pencil'] }
    const { code, out, err, producer } = await runCli(
      ['user', 'add', 'acme/alice', '--role', 'operator'],
      script,
      options,
    )
    expect({ code, out }).toEqual({ code: 0, out: [] })
    expect(err).toEqual(['New password of acme/alice: ', 'Repeat the new password: ', 'user.add done'])
    const args = { user: 'alice', tenant: 'acme', password: 'pencil', role: 'operator' }
    expect(producer.asked[0]).toMatchObject({ of: 'user.add', args })
  })

  test.each([['a file'], ['the input']])('passwd takes the first line of %s', async (from) => {
    const file = from === 'a file' ? secretFile('12345\nmore') : '-'
    const argv = ['user', 'passwd', 'alice', '--password-file', file]
    const { code, err, producer } = await runCli(argv, script, { input: [Buffer.from('123'), Buffer.from('45\r\n')] })
    expect({ code, err }).toEqual({ code: 0, err: ['user.passwd done'] })
    expect(producer.asked[0]).toMatchObject({ of: 'user.passwd', args: { user: 'alice', password: '12345' } })
  })

  test('a missing file is reported in plain words', async () => {
    const { code, err, producer } = await runCli(['user', 'add', 'alice', '--password-file', '/nowhere'], script)
    expect({ code, err }).toEqual({
      code: 2,
      err: [expect.stringMatching(/^cinnabar: cannot read the secret from \/nowhere: /)],
    })
    expect(producer.asked).toEqual([])
  })

  test('two different passwords change nothing', async () => {
    const { code, producer } = await runCli(['user', 'add', 'alice'], script, { secrets: ['a', 'b'] })
    expect(code).toBe(1)
    expect(producer.asked).toEqual([])
  })

  test('a new password is not sent over a connection that others can read', async () => {
    const options = { secrets: ['pencil', 'pencil'], isOpenToOthers: true }
    const { code, err, producer } = await runCli(['user', 'add', 'alice'], script, options)
    expect(code).toBe(1)
    expect(err.join()).toMatch(/others could read the new password/)
    expect(producer.asked).toEqual([])
  })

  test('add without a password asks for none and sends none', async () => {
    const argv = ['user', 'add', 'alice', '--no-password', '--role', 'night']
    const { code, err, producer } = await runCli(argv, script, { isOpenToOthers: true })
    expect({ code, err }).toEqual({ code: 0, err: ['user.add done'] })
    expect(producer.asked[0]?.args).toEqual({ user: 'alice', role: 'night' })
    expect((await runCli([...argv, '--password-file', 'x'], script)).code).toBe(2)
  })

  test('role gives another one', async () => {
    const { err, producer } = await runCli(['user', 'role', 'acme/alice', 'night'], script)
    expect(producer.asked[0]).toMatchObject({ of: 'user.role', args: { user: 'alice', tenant: 'acme', role: 'night' } })
    expect(err).toEqual(['user.role done'])
  })

  test('remove and list', async () => {
    expect((await runCli(['user', 'remove', 'alice', '--yes'], script)).producer.asked[0]).toMatchObject({
      of: 'user.remove',
      args: { user: 'alice' },
    })
    expect((await runCli(['user', 'list'], script)).out).toEqual(['TENANT   USER', 'default  alice'])
    expect((await runCli(['user', 'list', '--json'], script)).out).toEqual(['{"tenant":"default","user":"alice"}'])
  })

  test('a refusal of the server is reported', async () => {
    const refused: Script = ({ name }) => (name === 'EXECUTE' ? outcome('failed', 'there is no user bob') : {})
    const { code, err } = await runCli(['user', 'remove', 'bob', '--yes'], refused)
    expect({ code, err }).toEqual({ code: 1, err: ['cinnabar: user.remove: failed: there is no user bob'] })
  })
})

test('config reload reports what the server did, and its refusal', async () => {
  const good: Script = ({ name }) => (name === 'EXECUTE' ? outcome('ok', 'now in force: log.level') : {})
  const { code, err, producer } = await runCli(['config', 'reload'], good)
  expect({ code, err }).toEqual({ code: 0, err: ['now in force: log.level'] })
  expect(producer.asked[0]).toMatchObject({ of: 'config.reload', args: {} })
  const bad: Script = ({ name }) => (name === 'EXECUTE' ? outcome('failed', 'c.toml:3: not TOML') : {})
  const refused = await runCli(['config', 'reload'], bad)
  expect(refused).toMatchObject({ code: 1, err: ['cinnabar: config.reload: failed: c.toml:3: not TOML'] })
})

describe('controls', () => {
  const argument = (name: string, type: string, optional: boolean) => [
    string('name', name),
    string('type', type),
    boolean('optional', optional),
    string('description', `About ${name}.`),
  ]
  const control = (name: string, ...parameters: readonly (readonly Field[])[]) => [
    string('name', name),
    string('description', 'What it does.'),
    { name: 'parameters', ...list(...parameters) },
  ]
  const purge = control('channel.purge', argument('channel', 'uint32', false), argument('metric', 'uint32', true))
  const script: Script = ({ args }) => {
    const all = [purge, control('config.reload')]
    const found = args['match'] === undefined ? all : all.filter(([name]) => name?.value === args['match'])
    return { followedBy: [{ answer: list(...found) }] }
  }

  test('lists what can be run, with the arguments', async () => {
    const { code, out } = await runCli(['controls'], script)
    expect({ code, out }).toEqual({
      code: 0,
      out: [
        'CONTROL        ARGUMENTS         DESCRIPTION',
        'channel.purge  channel [metric]  What it does.',
        'config.reload                    What it does.',
      ],
    })
  })

  test('says whose approval a call may need', async () => {
    const waits = [...purge.slice(0, 2), string('approval', 'chief\nlead'), ...purge.slice(2)]
    const answer: Script = () => ({ followedBy: [{ answer: list(waits) }] })
    expect((await runCli(['controls'], answer)).out).toEqual([
      'CONTROL        ARGUMENTS         APPROVED BY    DESCRIPTION',
      'channel.purge  channel [metric]  chief or lead  What it does.',
    ])
    expect((await runCli(['controls', 'channel.purge'], answer)).out.join('\n')).toContain(
      'A call may have to be approved by a user of the role chief or lead: then it waits.',
    )
  })

  test('shows one with types and an example', async () => {
    const { out } = await runCli(['controls', 'channel.purge'], script)
    expect(out).toEqual([
      'channel.purge  What it does.',
      '',
      'ARGUMENT  TYPE              DESCRIPTION',
      'channel   uint32  required  About channel.',
      'metric    uint32  optional  About metric.',
      '',
      expect.stringContaining('idempotency_key'),
      '',
      'Example: cinnabar exec channel.purge channel=1',
    ])
    expect((await runCli(['controls', 'config.reload'], script)).out.at(-1)).toBe(
      'Example: cinnabar exec config.reload',
    )
  })

  test('shows what an argument takes, and that a secret one comes from a file', async () => {
    const bound = [
      [...argument('count', 'uint64', true), uint64('min', 1n), uint64('max', 9n), uint64('default', 3n)],
      [...argument('mode', 'string', true), uint32('max_length', 256), string('values', 'soft\nhard\x1b[31m')],
      [...argument('path', 'string', true), string('pattern', '/[a-z]*')],
      [...argument('pin', 'string', false), boolean('secret', true)],
    ]
    const one: Script = () => ({ followedBy: [{ answer: list(control('exec.x', ...bound)) }] })
    const { out } = await runCli(['controls', 'exec.x'], one)
    const lines = out.join('\n')
    expect(lines).toContain('TAKES')
    expect(lines).toMatch(/count +uint64 +optional +1 to 9; if omitted: 3 /)
    expect(lines).toMatch(/mode +string +optional +256 bytes at most; one of soft, hard\\x1b\[31m /)
    expect(lines).toMatch(/path +string +optional +matches \/\[a-z\]\* /)
    expect(lines).toContain('Example: cinnabar exec exec.x --arg-file pin=FILE')
  })

  test('prints JSON, and fails if nothing matches', async () => {
    const { out } = await runCli(['controls', '--json'], script)
    expect(out.map((line) => JSON.parse(line).name)).toEqual(['channel.purge', 'config.reload'])
    const { code, err } = await runCli(['controls', 'x.y'], script)
    expect([code, err[0]]).toEqual([1, 'cinnabar: no control matches x.y'])
  })
})
