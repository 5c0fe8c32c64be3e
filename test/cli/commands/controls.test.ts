import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Field } from '../../../protocol/monitor/value.ts'
import { list, rec, runCli, type Script, string, TIME, uint32 } from '../fake-cli.ts'

const outcome = (word: string, detail = '', ...value: readonly Field[]) => ({
  result: 5,
  behind: [{ answer: rec(string('outcome', word), string('detail', detail), ...value), transaction: 77 }],
})

describe('exec', () => {
  const script: Script = ({ name, of }) => {
    if (of === 'producer.controls') {
      const parameters = list([string('name', 'unit'), string('type', 'string')])
      return { behind: [{ answer: list([string('name', 'exec.x'), { name: 'parameters', ...parameters }]) }] }
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
    ['unknown', 1],
  ])('%s exits with %d', async (word, code) => {
    const result = await runCli(['exec', 'exec.x'], ({ name }) => (name === 'EXECUTE' ? outcome(word, 'why') : {}))
    expect(result.code).toBe(code)
    expect(result.out).toEqual([`${word}: why`])
    expect(result.err).toEqual(code === 0 ? [] : [`cinnabar: exec.x: ${word}: why`])
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
    expect(err).toEqual(['New password of acme/alice: ', 'Once more: ', 'user.add done'])
    const args = { user: 'alice', tenant: 'acme', password: 'pencil', role: 'operator' }
    expect(producer.asked[0]).toMatchObject({ of: 'user.add', args })
  })

  test('passwd takes the first line of a file', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'cinnabar-user-'))
    const file = join(directory, 'password')
    writeFileSync(file, '12345\n')
    const { code, producer } = await runCli(['user', 'passwd', 'alice', '--password-file', file], script)
    rmSync(directory, { recursive: true })
    expect(code).toBe(0)
    expect(producer.asked[0]).toMatchObject({ of: 'user.passwd', args: { user: 'alice', password: '12345' } })
  })

  test('a file that is not there is told in plain words', async () => {
    const { code, err, producer } = await runCli(['user', 'add', 'alice', '--password-file', '/nowhere'], script)
    expect({ code, err }).toEqual({ code: 2, err: [expect.stringMatching(/^cinnabar: no secret .* from \/nowhere: /)] })
    expect(producer.asked).toEqual([])
  })

  test('two different passwords change nothing', async () => {
    const { code, producer } = await runCli(['user', 'add', 'alice'], script, { secrets: ['a', 'b'] })
    expect(code).toBe(1)
    expect(producer.asked).toEqual([])
  })

  test('a new password does not travel where others can read it', async () => {
    const options = { secrets: ['pencil', 'pencil'], isOpenToOthers: true }
    const { code, err, producer } = await runCli(['user', 'add', 'alice'], script, options)
    expect(code).toBe(1)
    expect(err.join()).toMatch(/others can read it/)
    expect(producer.asked).toEqual([])
  })

  test('remove and list', async () => {
    expect((await runCli(['user', 'remove', 'alice'], script)).producer.asked[0]).toMatchObject({
      of: 'user.remove',
      args: { user: 'alice' },
    })
    expect((await runCli(['user', 'list'], script)).out).toEqual(['TENANT   USER', 'default  alice'])
    expect((await runCli(['user', 'list', '--json'], script)).out).toEqual(['{"tenant":"default","user":"alice"}'])
  })

  test('what the server refuses is told', async () => {
    const refused: Script = ({ name }) => (name === 'EXECUTE' ? outcome('failed', 'there is no user bob') : {})
    const { code, err } = await runCli(['user', 'remove', 'bob'], refused)
    expect({ code, err }).toEqual({ code: 1, err: ['cinnabar: user.remove: failed: there is no user bob'] })
  })
})
