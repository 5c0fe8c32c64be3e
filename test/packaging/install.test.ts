/**
 * packaging/install.sh below a directory of its own: instead of npm, systemd and the list of users it finds programs that do
 * as much as it takes. The servers are real.
 */
import { execFile, spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { freePort } from '../support/free-port.ts'
import '../support/program.ts'

const ROOT = new URL('../..', import.meta.url).pathname
const DIST = join(ROOT, 'dist')
const SCRIPT = join(ROOT, 'packaging/install.sh')
const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { databaseFormat: number }

const hasGit = spawnSync('git', ['--version']).status === 0
if (!hasGit) console.warn('an installation from a clone is not tested: there is no `git`. apt-get install git')

/** A build takes what this tree has installed and compiled; it fails if there is a file `npm-fails`. */
const NPM = `
[ ! -e "$DESTDIR/npm-fails" ] || exit 1
echo "npm $*" >> "$DESTDIR/called"
case "$1 $2" in
  'ci --omit=dev') ln -s '${ROOT}node_modules' node_modules ;;
  ci*) ln -s '${ROOT}node_modules' node_modules; cp -r '${DIST}' dist ;;
esac`

/** One service, whose process nobody here has to wait for: it may be a zombie when it has ended. */
const SYSTEMCTL = `
echo "systemctl $*" >> "$DESTDIR/called"
runs() { pid=$(cat "$DESTDIR/pid" 2> /dev/null) && grep -qs '^State:[[:space:]]*[^Z]' "/proc/$pid/status" && ! grep -q '^State:[[:space:]]*Z' "/proc/$pid/status"; }
start() {
  "$NODE" "$DESTDIR/opt/cinnabar/current/dist/cli/main.js" serve --config "$DESTDIR/etc/cinnabar/cinnabar.toml" > "$DESTDIR/log" 2>&1 < /dev/null &
  echo $! > "$DESTDIR/pid"
}
stop() { ! runs || { kill "$pid"; while runs; do sleep 0.1; done; }; }
case $1 in
  is-active) runs ;;
  start) start ;;
  stop) stop ;;
  restart) stop; start ;;
esac`

const PROGRAMS = {
  npm: NPM,
  systemctl: SYSTEMCTL,
  useradd: 'echo "useradd $*" >> "$DESTDIR/called"',
  id: 'grep -qs ^useradd "$DESTDIR/called"',
}

let root: string
let bin: string
const env = () => ({
  PATH: `${bin}:${process.env['PATH']}`,
  DESTDIR: root,
  NODE: process.execPath,
  CINNABAR_ADMIN_PASSWORD: 'a password for tests',
})
const at = (...path: string[]) => join(root, ...path)
const called = (what: string) =>
  existsSync(at('called'))
    ? readFileSync(at('called'), 'utf8')
        .split('\n')
        .filter((line) => line.startsWith(what))
    : []
const current = () => readlinkSync(at('opt/cinnabar/current')).replace('versions/', '')

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'cinnabar-install-'))
  bin = at('bin')
  mkdirSync(bin)
  for (const [name, script] of Object.entries(PROGRAMS)) {
    writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  }
})
afterEach(async () => {
  await run(join(bin, 'systemctl'), 'stop')
  rmSync(root, { recursive: true })
})

interface Ended {
  readonly code: number
  readonly out: string
}

function run(file: string, ...args: readonly string[]): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(file, args, { env: env() }, (error, out, errors) =>
      resolve({ code: error === null ? 0 : Number(error.code ?? 1), out: out + errors }),
    )
  })
}

const install = (...args: readonly string[]) => run('/bin/sh', SCRIPT, ...args)

/** The command line that is installed, in the place where the server has its data. */
const cinnabar = (...args: readonly string[]) =>
  run(process.execPath, at('usr/local/bin/cinnabar'), ...args, '--config', at('etc/cinnabar/cinnabar.toml'))

/** A package as `npm pack` makes it, of another version of this tree. */
function packed(version: string, databaseFormat = manifest.databaseFormat): string {
  const directory = at('packed', version, 'package')
  mkdirSync(directory, { recursive: true })
  writeFileSync(join(directory, 'package.json'), JSON.stringify({ ...manifest, version, databaseFormat }))
  cpSync(join(ROOT, 'packaging'), join(directory, 'packaging'), { recursive: true })
  cpSync(DIST, join(directory, 'dist'), { recursive: true, filter: (path) => !path.startsWith(join(DIST, 'test')) })
  const file = at(`cinnabar-${version}.tgz`)
  spawnSync('tar', ['czf', file, '-C', join(directory, '..'), 'package'])
  return file
}

async function configure(): Promise<void> {
  mkdirSync(at('etc/cinnabar'), { recursive: true })
  writeFileSync(
    at('etc/cinnabar/cinnabar.toml'),
    `[producer]\ndata_dir = ${JSON.stringify(at('var/lib/cinnabar'))}\n[auth]\nscram_iterations = 4096\n` +
      `[listen]\ntcp = "127.0.0.1:${await freePort()}"\nhttp = ""\n[gmetric]\nlisten = ""\n`,
  )
}

const software = async () => /cinnabar\/(\S+)/.exec((await cinnabar('get', 'producer.stats')).out)?.[1]

describe('packaging/install.sh', () => {
  test('installs a package, and changes nothing when it is run again', async () => {
    const file = packed('1.0.0')
    const first = await install(file)
    expect(first).toMatchObject({ code: 0, out: expect.stringContaining('systemctl enable --now cinnabar') })
    expect(current()).toMatch(/^1\.0\.0-[0-9a-f]{7}$/)
    const of = (path: string) => readFileSync(join(ROOT, path), 'utf8')
    const toml = at('etc/cinnabar/cinnabar.toml')
    expect(readFileSync(toml, 'utf8')).toBe(of('packaging/cinnabar.toml'))
    expect(readFileSync(at('etc/systemd/system/cinnabar.service'), 'utf8')).toBe(of('packaging/cinnabar.service'))
    expect((await run(at('usr/local/bin/cinnabar'), '--version')).out).toBe('1.0.0\n')
    writeFileSync(toml, '# changed by the operator\n')
    const before = statSync(at('opt/cinnabar/versions', current())).mtimeMs
    expect(await install(file)).toMatchObject({ code: 0, out: expect.stringContaining('is installed already') })
    expect(statSync(at('opt/cinnabar/versions', current())).mtimeMs).toBe(before)
    expect(readFileSync(toml, 'utf8')).toBe('# changed by the operator\n')
    expect(called('useradd')).toHaveLength(1)
    expect(called('npm ci')).toHaveLength(1)
  })

  // A clone is made by `git`.
  test.skipIf(!hasGit)('installs the commit of a clone', async () => {
    const clone = at('clone')
    mkdirSync(clone)
    writeFileSync(join(clone, 'package.json'), JSON.stringify({ ...manifest, version: '1.0.0' }))
    cpSync(join(ROOT, 'packaging'), join(clone, 'packaging'), { recursive: true })
    const git = (...args: string[]) =>
      spawnSync('git', ['-C', clone, '-c', 'user.name=n', '-c', 'user.email=e@example.org', ...args]).stdout.toString()
    git('init', '--quiet')
    git('add', '.')
    git('commit', '--quiet', '--message', 'one')
    const commit = git('rev-parse', '--short', 'HEAD').trim()
    writeFileSync(join(clone, 'package.json'), JSON.stringify({ ...manifest, version: '2.0.0', extra: true }))
    const outcome = await run('/bin/sh', join(clone, 'packaging/install.sh'))
    expect(outcome).toMatchObject({ code: 0, out: expect.stringContaining('not committed are left out') })
    expect(current()).toBe(`1.0.0-${commit}`)
    expect(readFileSync(at('opt/cinnabar/current/package.json'), 'utf8')).not.toContain('extra')
    expect(called('npm')).toEqual(['npm ci', 'npm prune --omit=dev --ignore-scripts'])
  })

  test('upgrades a server, and goes back with the database of before if its format has changed', async () => {
    await configure()
    expect((await install(packed('1.0.0'))).code).toBe(0)
    await run(join(bin, 'systemctl'), 'start')
    await expect.poll(software, { timeout: 20_000 }).toBe('1.0.0')
    expect(await install(packed('1.1.0'))).toMatchObject({ code: 0, out: expect.stringContaining('1.1.0') })
    expect(await software()).toBe('1.1.0')
    expect(readdirSync(at('var/backups'))).toEqual([])

    expect((await cinnabar('user', 'add', 'before', '--no-password')).code).toBe(0)
    const upgraded = await install(packed('2.0.0', manifest.databaseFormat + 1))
    expect(upgraded).toMatchObject({ code: 0, out: expect.stringContaining('backing it up to') })
    const [backup = ''] = readdirSync(at('var/backups'))
    expect(statSync(at('var/backups', backup)).mode & 0o077).toBe(0)
    expect(await software()).toBe('2.0.0')
    expect((await cinnabar('user', 'add', 'after', '--no-password')).code).toBe(0)

    const back = await install('--back')
    expect(back).toMatchObject({
      code: 0,
      out: expect.stringMatching(/What was stored since then is lost(.|\n)*1\.1\.0/),
    })
    expect(await software()).toBe('1.1.0')
    const { out: users } = await cinnabar('user', 'list')
    expect(users).toContain('before')
    expect(users).not.toContain('after')
    const replaced = readdirSync(at('var/lib/cinnabar')).filter((name) => name.includes('replaced'))
    expect(replaced.length).toBeGreaterThan(0)

    // Not further back, and not by mistake.
    expect(await install('--back')).toMatchObject({ code: 1, out: expect.stringContaining('no version to go back to') })
    expect(await software()).toBe('1.1.0')
  })

  test('a build that fails, and a configuration that the new version refuses, change nothing', async () => {
    await configure()
    expect((await install(packed('1.0.0'))).code).toBe(0)
    await run(join(bin, 'systemctl'), 'start')
    await expect.poll(software, { timeout: 20_000 }).toBe('1.0.0')
    const version = current()
    writeFileSync(at('npm-fails'), '')
    expect((await install(packed('1.1.0'))).code).not.toBe(0)
    rmSync(at('npm-fails'))
    expect([current(), await software()]).toEqual([version, '1.0.0'])
    const toml = readFileSync(at('etc/cinnabar/cinnabar.toml'), 'utf8')
    writeFileSync(at('etc/cinnabar/cinnabar.toml'), `${toml}[nonsense]\n`)
    const refused = await install(packed('1.1.0'))
    expect(refused).toMatchObject({ code: 2, out: expect.stringContaining('nonsense') })
    expect(current()).toBe(version)
    writeFileSync(at('etc/cinnabar/cinnabar.toml'), toml)
    expect(await software()).toBe('1.0.0')
    expect((await install(packed('1.1.0'))).code).toBe(0)
    expect(await software()).toBe('1.1.0')
  })

  test('a database of a stopped server is copied with its log', async () => {
    await configure()
    expect((await install(packed('1.0.0'))).code).toBe(0)
    await run(join(bin, 'systemctl'), 'start')
    await expect.poll(software, { timeout: 20_000 }).toBe('1.0.0')
    expect((await cinnabar('user', 'add', 'before', '--no-password')).code).toBe(0)
    // Its log is not yet in the database then.
    process.kill(Number(readFileSync(at('pid'), 'utf8')), 'SIGKILL')
    expect(await install(packed('2.0.0', manifest.databaseFormat + 1))).toMatchObject({
      code: 0,
      out: expect.stringContaining('systemctl enable --now cinnabar'),
    })
    expect(await install('--back')).toMatchObject({ code: 0, out: expect.stringContaining('1.0.0') })
    expect((await cinnabar('user', 'list')).out).toContain('before')
  })
})
