/**
 * packaging/install.sh below a directory of its own: instead of npm, systemd and the list of users it finds programs that do
 * as much as it takes. The servers are real.
 */
import { spawnSync } from 'node:child_process'
import {
  cpSync,
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
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { connect, plainOf } from '../../client/index.ts'
import { freePort } from '../support/free-port.ts'
import { runToEnd } from '../support/run-to-end.ts'
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

/** One service, whose process nobody here has to wait for: it may be a zombie when it has ended. A file `fails` names what fails. */
const SYSTEMCTL = `
echo "systemctl $*" >> "$DESTDIR/called"
[ "$1" != "$(cat "$DESTDIR/fails" 2> /dev/null)" ] || exit 1
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

/** Its seconds stand still, so that a slow machine has time; with a file `hasty` a minute passes with each look at them. */
const DATE = `
[ "$1" = +%s ] || PATH=\${PATH#*:} exec date "$@"
[ -e "$DESTDIR/hasty" ] || { echo 0; exit; }
echo >> "$DESTDIR/hasty"
echo $(($(wc -l < "$DESTDIR/hasty") * 60))`

const PROGRAMS = {
  npm: NPM,
  systemctl: SYSTEMCTL,
  date: DATE,
  useradd: 'echo "useradd $*" >> "$DESTDIR/called"',
  id: 'grep -qs ^useradd "$DESTDIR/called"',
}
const PASSWORD = 'a password for tests'

let root: string
let port: number
const at = (...path: string[]) => join(root, ...path)
const text = (...path: string[]) => readFileSync(at(...path), 'utf8')
const called = (what: string) =>
  text('called')
    .split('\n')
    .filter((line) => line.startsWith(what))
const current = () => readlinkSync(at('opt/cinnabar/current')).replace('versions/', '')
const backups = () => readdirSync(at('var/backups'))

/** For the tests of a `describe`, one after the other. */
function onOneMachine(): void {
  beforeAll(() => {
    root = mkdtempSync(join(tmpdir(), 'cinnabar-install-'))
    mkdirSync(at('bin'))
    for (const [name, script] of Object.entries(PROGRAMS)) {
      writeFileSync(at('bin', name), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
    }
  })
  afterAll(async () => {
    await systemctl('stop')
    rmSync(root, { recursive: true })
  })
}

const run = (file: string, ...args: readonly string[]) =>
  runToEnd(file, args, {
    env: {
      PATH: `${at('bin')}:${process.env['PATH']}`,
      DESTDIR: root,
      NODE: process.execPath,
      CINNABAR_PRODUCER_DATA_DIR: at('var/lib/cinnabar'),
      CINNABAR_ADMIN_PASSWORD: PASSWORD,
    },
  })
const systemctl = (...args: readonly string[]) => run(at('bin/systemctl'), ...args)
const install = (...args: readonly string[]) => run('/bin/sh', SCRIPT, ...args)

/** The command line that is installed, in the place where the server has its data. */
const cinnabar = (...args: readonly string[]) =>
  run(process.execPath, at('usr/local/bin/cinnabar'), ...args, '--config', at('etc/cinnabar/cinnabar.toml'))
const addUser = async (name: string) => expect((await cinnabar('user', 'add', name, '--no-password')).code).toBe(0)

/** A package as `npm pack` makes it, of another version of this tree. */
function packed(version: string, databaseFormat = manifest.databaseFormat): string {
  const directory = at('packed', version, 'package')
  mkdirSync(directory, { recursive: true })
  writeFileSync(join(directory, 'package.json'), JSON.stringify({ ...manifest, version, databaseFormat }))
  cpSync(join(ROOT, 'packaging'), join(directory, 'packaging'), { recursive: true })
  cpSync(DIST, join(directory, 'dist'), { recursive: true, filter: (path) => !path.startsWith(join(DIST, 'test')) })
  const file = at(`cinnabar-${version}.tgz`)
  spawnSync('tar', ['cf', file, '-I', 'gzip -1', '-C', join(directory, '..'), 'package'])
  return file
}

/** Returns the port of the server. */
async function configure(): Promise<number> {
  const free = await freePort()
  writeFileSync(
    at('etc/cinnabar/cinnabar.toml'),
    `[auth]\nscram_iterations = 4096\n[listen]\ntcp = "127.0.0.1:${free}"\nhttp = ""\n[gmetric]\nlisten = ""\n`,
  )
  return free
}

/** Runs something with another configuration. */
async function configuredAs<T>(change: (toml: string) => string, work: () => Promise<T>): Promise<T> {
  const toml = text('etc/cinnabar/cinnabar.toml')
  writeFileSync(at('etc/cinnabar/cinnabar.toml'), change(toml))
  try {
    return await work()
  } finally {
    writeFileSync(at('etc/cinnabar/cinnabar.toml'), toml)
  }
}
const withNonsense = (toml: string) => `${toml}[nonsense]\n`

/** The version of the server that answers, as soon as one does. */
async function version(): Promise<string | undefined> {
  const credentials = { identity: 'admin', password: PASSWORD }
  const options = { durable: false, waitForServerMs: Number.POSITIVE_INFINITY }
  const consumer = await connect(`tcp://127.0.0.1:${port}`, credentials, options)
  const { value } = await consumer.query('producer.stats')
  await consumer.close()
  return /cinnabar\/(\S+)/.exec(String((plainOf(value) as { software?: unknown }).software))?.[1]
}

describe('packaging/install.sh with packages', () => {
  onOneMachine()
  const files = { old: '', next: '', later: '' }
  beforeAll(() => {
    files.old = packed('1.0.0')
    files.next = packed('1.1.0')
    files.later = packed('2.0.0', manifest.databaseFormat + 1)
  })

  test('installs one, and changes nothing when it is run again', async () => {
    const first = await install(files.old)
    expect(first).toMatchObject({ code: 0, out: expect.stringContaining('systemctl enable --now cinnabar') })
    expect(current()).toMatch(/^1\.0\.0-[0-9a-f]{7}$/)
    const of = (path: string) => readFileSync(join(ROOT, path), 'utf8')
    expect(text('etc/cinnabar/cinnabar.toml')).toBe(of('packaging/cinnabar.toml'))
    expect(text('etc/systemd/system/cinnabar.service')).toBe(of('packaging/cinnabar.service'))
    expect((await run(at('usr/local/bin/cinnabar'), '--version')).out).toBe('1.0.0\n')
    port = await configure()
    const toml = text('etc/cinnabar/cinnabar.toml')
    const before = statSync(at('opt/cinnabar/versions', current())).mtimeMs
    expect(await install(files.old)).toMatchObject({ code: 0, out: expect.stringContaining('is installed already') })
    expect(statSync(at('opt/cinnabar/versions', current())).mtimeMs).toBe(before)
    expect(text('etc/cinnabar/cinnabar.toml')).toBe(toml)
    expect(called('useradd')).toHaveLength(1)
    expect(called('npm ci')).toHaveLength(1)
    expect(called('systemctl restart')).toEqual([])
  })

  test('a build that fails, and a configuration that the new version refuses, change nothing', async () => {
    await systemctl('start')
    expect(await version()).toBe('1.0.0')
    const installed = current()
    writeFileSync(at('npm-fails'), '')
    expect((await install(files.next)).code).not.toBe(0)
    rmSync(at('npm-fails'))
    const refused = await configuredAs(withNonsense, () => install(files.next))
    expect(refused).toMatchObject({ code: 2, out: expect.stringContaining('nonsense') })
    expect(current()).toBe(installed)
    expect(called('systemctl restart')).toEqual([])
    expect(await version()).toBe('1.0.0')
  })

  test('completes an upgrade that failed before or after the link has changed', async () => {
    const installed = current()
    writeFileSync(at('fails'), 'daemon-reload')
    expect((await install(files.next)).code).not.toBe(0)
    expect(current()).toBe(installed)
    writeFileSync(at('fails'), 'restart')
    const failed = await install(files.next)
    expect(failed).toMatchObject({ code: 1, out: expect.stringMatching(/does not answer.*journalctl(.|\n)*--back/) })
    expect(current()).toMatch(/^1\.1\.0-/)
    expect(await version()).toBe('1.0.0')
    rmSync(at('fails'))

    // It listens nowhere, so nothing can be said of it.
    writeFileSync(at('hasty'), '')
    const silent = await configuredAs(
      (toml) => toml.replace(/^tcp = .*$/m, 'tcp = ""'),
      () => install(files.next),
    )
    expect(silent).toMatchObject({ code: 1, out: expect.stringMatching(/does not answer.*journalctl(.|\n)*--back/) })
    rmSync(at('hasty'))

    const completed = await install(files.next)
    expect(completed).toMatchObject({ code: 0, out: expect.stringMatching(/1\.1\.0-\S+ runs/) })
    expect(await version()).toBe('1.1.0')
    expect(readdirSync(at('opt/cinnabar/current'))).not.toContain('.pending')
    expect(backups()).toEqual([])
  })

  test('upgrades a server, and goes back with the database of before if its format has changed', async () => {
    await addUser('before')
    const upgraded = await install(files.later)
    expect(upgraded).toMatchObject({ code: 0, out: expect.stringContaining('backing it up to') })
    const [backup = ''] = backups()
    expect(statSync(at('var/backups', backup)).mode & 0o077).toBe(0)
    expect(await version()).toBe('2.0.0')
    await addUser('after')

    const refused = await configuredAs(withNonsense, () => install('--back'))
    expect(refused).toMatchObject({ code: 1, out: expect.stringContaining('refuses the configuration') })
    expect(await version()).toBe('2.0.0')

    // The version before is completed in the same way.
    writeFileSync(at('fails'), 'restart')
    const failed = await install('--back')
    const lost = expect.stringMatching(/What was stored since then is lost(.|\n)*1\.1\.0\S+ does not answer/)
    expect(failed).toMatchObject({ code: 1, out: lost })
    rmSync(at('fails'))
    expect(await install('--back')).toMatchObject({ code: 0, out: expect.stringMatching(/1\.1\.0-\S+ runs/) })
    expect(await version()).toBe('1.1.0')
    const { out: users } = await cinnabar('user', 'list')
    expect(users).toContain('before')
    expect(users).not.toContain('after')
    const replaced = readdirSync(at('var/lib/cinnabar')).filter((name) => name.includes('replaced'))
    expect(replaced).toHaveLength(1)

    // Not further back, and not by mistake.
    expect(await install('--back')).toMatchObject({ code: 1, out: expect.stringContaining('no version to go back to') })
    expect(await version()).toBe('1.1.0')
  })

  test('copies the database of a stopped server with its log, also if no version was installed before', async () => {
    await addUser('later')
    // Its log is not yet in the database then.
    process.kill(Number(text('pid')), 'SIGKILL')
    rmSync(at('opt/cinnabar/current'))
    const [first] = backups()
    const upgraded = await install(files.next)
    expect(upgraded).toMatchObject({ code: 0, out: expect.stringContaining('systemctl enable --now cinnabar') })
    const [copy = '', log] = backups().filter((name) => name !== first)
    expect(log).toBe(`${copy}-wal`)
    expect(await install('--back')).toMatchObject({ code: 1, out: expect.stringContaining(at('var/backups', copy)) })

    rmSync(at('var/backups'), { recursive: true })
    expect((await install(files.later)).code).toBe(0)
    expect(backups()).toHaveLength(2)
    expect(await install('--back')).toMatchObject({ code: 0, out: expect.stringContaining('1.1.0') })
    expect((await cinnabar('user', 'list')).out).toContain('later')
  })
})

// A clone is made by `git`.
describe.skipIf(!hasGit)('packaging/install.sh in a clone', () => {
  onOneMachine()

  test('installs the commit that is checked out', async () => {
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
    expect(text('opt/cinnabar/current/package.json')).not.toContain('extra')
    expect(called('npm')).toEqual(['npm ci', 'npm prune --omit=dev --ignore-scripts'])
  })
})
