/** `cinnabar notify apply`: what it reads, what it shows of what would change, and what it has the server do. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Field } from '../../../protocol/monitor/value.ts'
import { list, rec, runCli, type Script, string } from '../fake-cli.ts'

const tableOf = (name: string, more = ''): string =>
  `[[notify]]\nname = "${name}"\nurl = "webhook+https://hooks.example/${name}"\n${more}`

let directory: string
let ran: { readonly of: string; readonly args: Readonly<Record<string, unknown>> }[]
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'cinnabar-notify-'))
  ran = []
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

const write = (name: string, text: string): string => {
  writeFileSync(join(directory, name), text)
  return join(directory, name)
}

/** A server that has some notifiers, and says of the others that they are new. */
const serverWith = (...there: readonly string[]): Script => {
  let last = 5
  return ({ name, of, args }) => {
    if (name !== 'EXECUTE') return {}
    const isDry = args['dry_run'] === true
    if (of !== 'notify.list') ran.push({ of: isDry ? `${of} dry` : of, args })
    const names = [...String(args['notifiers']).matchAll(/^name = "(.*)"$/gm)].map(([, one = '']) => one)
    const records =
      of === 'notify.list'
        ? there.map((one) => [string('name', one)])
        : names.map((one) => [
            string('name', one),
            string('change', one === 'same' ? 'same' : there.includes(one) ? 'changed' : 'new'),
            string('keys', there.includes(one) && one !== 'same' ? 'url match' : ''),
          ])
    const value = { name: 'value', ...list(...records) } as Field
    const answer = rec(string('outcome', isDry ? 'dry-run' : 'ok'), string('detail', ''), value)
    last++
    return { result: last, followedBy: [{ answer, transaction: last }] }
  }
}

const apply = async (script: Script, ...words: readonly string[]) => {
  const { code, out, err } = await runCli(['notify', 'apply', ...words], script)
  return { code, out, err }
}

it('shows what is new and has changed, and puts that with what its files have; what is the same stays', async () => {
  write('token', 'secret-token\n')
  const first = write('a.toml', `${tableOf('a', 'token_file = "token"\n')}${tableOf('same')}`)
  const second = write('b.toml', tableOf('b'))
  const server = serverWith('b', 'same', 'old')
  const lines = ['a: new', 'b: changed: url, match']
  expect(await apply(server, first, second, '--dry-run')).toMatchObject({ code: 0, out: lines })
  expect(ran.map(({ of }) => of)).toEqual(['notify.put dry'])
  ran = []
  expect(await apply(server, first, second)).toMatchObject({ code: 0, out: lines })
  expect(ran.map(({ of }) => of)).toEqual(['notify.put dry', 'notify.put'])
  expect(ran[1]?.args['notifiers']).not.toContain('"same"')
  expect(JSON.parse(String(ran[1]?.args['secrets']))).toEqual({ a: { token_file: 'secret-token\n' } })
  expect((await apply(server, second, '--prune')).code).toBe(2)
  ran = []
  expect(await apply(server, second, '--prune', '--yes')).toMatchObject({
    code: 0,
    out: ['b: changed: url, match', 'same: removed', 'old: removed'],
  })
  expect(ran.map(({ of, args }) => `${of} ${args['name'] ?? ''}`)).toEqual([
    'notify.put dry ',
    'notify.put ',
    'notify.remove same',
    'notify.remove old',
  ])
  expect((await apply(serverWith('same'), write('c.toml', tableOf('same')))).err).toEqual(['nothing changes'])
})

it('puts nothing of files with a mistake, which it names with file, key and line', async () => {
  const mistakes: readonly (readonly [string, RegExp])[] = [
    [tableOf('a', 'mach = []\n'), /f\.toml:1: `\[\[notify\]\]` a: unknown key `mach`: did you mean `match`\?/],
    [tableOf('a', 'match = ["no"]\n'), /f\.toml:4: `\[\[notify\]\]` a: `match`: expected a list of /],
    [tableOf('a', 'match = ["none at all"]\n'), /f\.toml:4: `\[\[notify\]\]` a: `match`: "none at all" is no matcher/],
    [tableOf('a', 'role = "admin"\n'), /f\.toml:4: `\[\[notify\]\]` a: `role`: .*: leave this out/],
    [tableOf('a', 'token_file = "none"\n'), /f\.toml:4: `\[\[notify\]\]` a: `token_file`: cannot be read: /],
    [tableOf('a') + tableOf('a'), /f\.toml:1: .*two of the tenant default are called a/],
    ['[[notify', /f\.toml:1: not TOML: /],
    // Somebody takes the configuration of the server.
    [
      '[alerts]\nrules = []\n',
      /f\.toml:1: unknown section `alerts`: there are \[\[notify\]\]\n.*`notify`: there is no table \[\[notify\]\]$/,
    ],
  ]
  for (const [text, expected] of mistakes) {
    const { code, err } = await apply(serverWith(), write('f.toml', text))
    expect([code, err.join('\n')]).toEqual([1, expect.stringMatching(expected)])
  }
  const twice = await apply(serverWith(), write('f.toml', tableOf('a')), write('g.toml', tableOf('a')))
  expect(twice.err.join()).toMatch(/g\.toml: .*f\.toml has a notifier a, too/)
  expect(ran).toEqual([])
})

it('sends nothing over a connection that others can read', async () => {
  const path = write('a.toml', tableOf('one'))
  const { code, err } = await runCli(['notify', 'apply', path, '--dry-run'], serverWith(), { isOpenToOthers: true })
  expect([code, err.join()]).toEqual([1, expect.stringContaining('others could read what the notifiers say')])
  expect(ran).toEqual([])
})
