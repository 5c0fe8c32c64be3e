import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { asCalled, calledAs, lineAsCalled, shellWord } from '../../cli/called-as.ts'
import { list, runCli, string } from './fake-cli.ts'

let root: string
let program: string
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'cinnabar-called-'))
  program = join(root, 'clone/dist/cli/main.js')
  for (const path of ['clone/dist/cli', 'project/node_modules/.bin', 'bin', 'other']) {
    mkdirSync(join(root, path), { recursive: true })
  }
  writeFileSync(program, '')
  chmodSync(program, 0o755)
  symlinkSync(program, join(root, 'bin/cinnabar'))
  symlinkSync(program, join(root, 'project/node_modules/.bin/cinnabar'))
  writeFileSync(join(root, 'other/cinnabar'), 'another program of that name')
})
afterAll(() => rmSync(root, { recursive: true }))

/** `path`: directories below the root. */
function called(file: string, cwd: string, path: readonly string[] = [], env: NodeJS.ProcessEnv = {}): string {
  const PATH = ['/nonexistent', ...path.map((directory) => join(root, directory))].join(':')
  return calledAs({ argv: ['node', join(root, file)], env: { PATH, ...env }, cwd: () => join(root, cwd) })
}

test('a program that npm runs is called through npm', () => {
  const start = { npm_lifecycle_event: 'start', npm_package_name: 'cinnabar' }
  expect(called('clone/dist/cli/main.js', 'clone', [], start)).toBe('npx cinnabar')
  expect(called('anywhere/main.js', 'clone', [], { npm_lifecycle_event: 'npx' })).toBe('npx cinnabar')
  const script = { npm_lifecycle_event: 'monitor', npm_package_name: 'project' }
  const bin = 'project/node_modules/.bin'
  expect(called(`${bin}/cinnabar`, 'project', [bin], script)).toBe('npx cinnabar')
})

test('a program that the PATH leads to is called by its name, also if it was started by its path', () => {
  expect(called('bin/cinnabar', 'other', ['bin'])).toBe('cinnabar')
  expect(called('clone/dist/cli/main.js', 'other', ['bin'])).toBe('cinnabar')
  // npx would find nothing here, or ask the registry.
  expect(called('bin/cinnabar', 'other', ['bin'], { npm_lifecycle_event: 'x', npm_package_name: 'y' })).toBe('cinnabar')
})

test('any other is called by its path, as seen from here', () => {
  expect(called('clone/dist/cli/main.js', 'clone', ['other'])).toBe('node dist/cli/main.js')
  expect(called('clone/dist/cli/main.js', 'other', ['other'])).toBe(`node ${root}/clone/dist/cli/main.js`)
  expect(called('bin/cinnabar', 'bin')).toBe('./cinnabar')
  expect(called('project/node_modules/.bin/cinnabar', 'project')).toBe('node_modules/.bin/cinnabar')
  expect(called('my clone/main.js', '')).toBe("node 'my clone/main.js'")
})

test('hints name commands as the program was called', () => {
  expect(asCalled('see `cinnabar channels`, not cinnabar listens', 'npx cinnabar')).toBe(
    'see `npx cinnabar channels`, not cinnabar listens',
  )
  expect(asCalled('see `cinnabar channels`', "node '/a$&b'")).toBe("see `node '/a$&b' channels`")
  expect(lineAsCalled('x=$(cinnabar get a) > cinnabar.x', 'npx cinnabar')).toBe('x=$(npx cinnabar get a) > cinnabar.x')
  expect(shellWord("it's")).toBe(`'it'\\''s'`)
})

test('help, errors and examples name commands so, and an error in JSON stays JSON', async () => {
  const program = "node '/a$&b\"c/main.js'"
  const printed = async (...words: string[]) => (await runCli(words, undefined, { program })).out.join('\n')
  expect(await printed('get', '--help')).toContain(`load=$(${program} get --raw host.load.one)`)
  expect(await printed('exec', '--help')).toContain(`name as listed by \`${program} controls\``)
  expect(await printed('completion', '--help')).toContain(`source <(${program} completion bash)`)

  const control = list([string('name', 'a.b'), string('description', 'What it does.')])
  const { out } = await runCli(['controls', 'a.b'], () => ({ followedBy: [{ answer: control }] }), { program })
  expect(out).toContain(`Every control also takes idempotency_key and dry_run: see \`${program} exec --help\`.`)
  expect(out.at(-1)).toBe(`Example: ${program} exec a.b`)

  const { err } = await runCli(['get', 'a.b', '--json'], () => ({ status: 'NO_SUCH_METRIC' }), { program })
  expect(JSON.parse(err[0]!).error).toContain(`\`${program} metrics\` lists the metrics that you can read`)
})
