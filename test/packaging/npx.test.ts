/** `npx cinnabar` in a clone: npm links the clone into its cache at the first call, which must neither build nor print anything. */
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'

let root = ''
let clone = ''
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'npx-'))
  clone = join(root, 'clone')
  mkdirSync(join(clone, 'dist', 'cli'), { recursive: true })
  const { name, version, type, bin, scripts } = JSON.parse(readFileSync('package.json', 'utf8'))
  const build = 'echo building; echo > built'
  writeFileSync(
    join(clone, 'package.json'),
    JSON.stringify({ name, version, type, bin, scripts: { prepare: scripts.prepare, build } }),
  )
  const program = join(clone, 'dist', 'cli', 'main.js')
  writeFileSync(program, "#!/usr/bin/env node\nconsole.log('a value')\n")
  chmodSync(program, 0o755)
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

function npm(command: string, ...args: readonly string[]): string {
  const inherited = Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name))
  const env = { ...Object.fromEntries(inherited), npm_config_cache: join(root, 'cache'), npm_config_offline: 'true' }
  const { status, stdout, stderr } = spawnSync(command, args, { cwd: clone, env, encoding: 'utf8' })
  expect([status, stderr]).toEqual([0, ''])
  return stdout
}

test('npx builds nothing and prints nothing of its own', () => {
  expect(npm('npx', 'cinnabar', 'get')).toBe('a value\n')
  expect(existsSync(join(clone, 'built'))).toBe(false)
})

test('npm install builds', () => {
  npm('npm', 'install', '--no-audit', '--no-fund', '--no-update-notifier')
  expect(existsSync(join(clone, 'built'))).toBe(true)
})
