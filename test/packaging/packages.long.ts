/**
 * The packages as `npm pack` makes them, installed into projects that have nothing else. npm installs all of them,
 * on every Node and with every TypeScript that they are for; without its registry the client stands beside what is installed here.
 */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { compiled } from '../support/compiled.ts'
import { type Ended, runToEnd } from '../support/run-to-end.ts'
import { PASSWORD, ServerProcess } from '../support/server-process.ts'

const ROOT = new URL('../..', import.meta.url).pathname
const NOT_COPIED = /^([.]git|node_modules|dist|data|coverage)$/
/** The oldest that the packages allow, and the newest of each line. */
const NODES = ['20.19.0', '20', '22', '24', '26']
const OLDEST_TYPESCRIPT = '5.4'
const NEWEST_TYPESCRIPT = '6.0'
/** SQLite need not be compiled for them; the tests of 24 run without a compiler too. */
const NEWER_NODES = ['22', '26']
/** The oldest, the first that does otherwise, and the newest. */
const TYPESCRIPTS = [OLDEST_TYPESCRIPT, '5.8', NEWEST_TYPESCRIPT]
const OLDEST_NODE = 'node-20.19.0'
const PROJECT_MS = 600_000

const isReachable = spawnSync('npm', ['view', 'ws', 'version']).status === 0
if (!isReachable) console.warn('the packages are not installed by npm: its registry cannot be reached')

const directory = mkdtempSync(join(tmpdir(), 'cinnabar-packages-'))
const project = join(directory, 'project')
const server = new ServerProcess()
let client = ''

const run = (file: string, args: readonly string[], cwd = project, env = process.env): Promise<Ended> =>
  runToEnd(file, args, { cwd, env })

/** A copy of this tree: packing writes into it, and other tests use what is compiled here. */
function copyTree(): string {
  const tree = join(directory, 'tree')
  mkdirSync(tree)
  for (const name of readdirSync(ROOT).filter((name) => !NOT_COPIED.test(name))) {
    cpSync(join(ROOT, name), join(tree, name), { recursive: true })
  }
  symlinkSync(join(ROOT, 'node_modules'), join(tree, 'node_modules'))
  return tree
}

/** Gives the path of the package. */
async function pack(folder: string): Promise<string> {
  const { code, out } = await run('npm', ['pack', '--pack-destination', directory], join(directory, 'tree', folder))
  const [file] = /^cinnabar-\S+[.]tgz$/m.exec(out) ?? []
  if (code !== 0 || file === undefined) throw new Error(out)
  return join(directory, file)
}

function unpack(file: string, name: string): string {
  const installed = join(project, 'node_modules', name)
  mkdirSync(installed, { recursive: true })
  spawnSync('tar', ['xzf', file, '-C', installed, '--strip-components=1'])
  return installed
}

const filesIn = (folder: string, end: string) =>
  readdirSync(folder, { recursive: true })
    .map(String)
    .filter((name) => name.endsWith(end))

const DECLARED = `declare const process: { readonly env: Record<string, string | undefined> }
const { URL: url = '', PASSWORD: password = '' } = process.env`
const PROGRAMS = {
  'program.mts': `import { BasicType, connect, type Consumer } from '@cinnabar/client'
${DECLARED}
const consumer: Consumer = await connect(url, { identity: 'admin', password }, { durable: false })
const { value } = await consumer.query('host.load.one')
console.log(value.type === BasicType.DOUBLE)
await consumer.close()
`,
  'program.cts': `import client = require('@cinnabar/client')
${DECLARED}
async function main(): Promise<void> {
  const consumer = await client.connect(url, { identity: 'admin', password }, { durable: false })
  const { value } = await consumer.query('host.load.one')
  console.log(value.type === client.BasicType.DOUBLE)
  await consumer.close()
}
void main()
`,
  'server.mts': `import { defaultConfig, type PolledSensor, type RunningServer, startServer } from 'cinnabar'
import { connect } from 'cinnabar/client'
import { Framer } from 'cinnabar/protocol'
export const running: Promise<RunningServer> = startServer({ config: defaultConfig() })
export const sensors: readonly PolledSensor[] = []
export const exported = [connect, Framer]
`,
}

/** How a project may look for types: each with the programs that it suits. */
const PROJECTS = {
  compiled: { module: 'nodenext', noEmit: false, files: ['program.mts', 'program.cts'] },
  modules: { module: 'nodenext', files: ['program.mts'] },
  bundler: { module: 'esnext', moduleResolution: 'bundler', files: ['program.mts'] },
  browser: { module: 'esnext', moduleResolution: 'bundler', customConditions: ['browser'], files: ['program.mts'] },
  commonjs: { module: 'nodenext', files: ['program.cts'] },
  node10: { module: 'commonjs', moduleResolution: 'node10', files: ['program.cts'] },
  server: { module: 'nodenext', types: ['node'], files: ['server.mts'] },
}

type Kind = keyof typeof PROJECTS

/** Writes the configuration of such a project; gives its path. */
function configure(kind: Kind): string {
  const { files, ...kindOptions } = PROJECTS[kind]
  const options = {
    ...{ strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, skipLibCheck: false },
    // The compiler's own declarations, which it would check for longer than everything else, are not ours.
    skipDefaultLibCheck: true,
    ...{ target: 'es2022', lib: ['es2023', 'dom'], types: [], noEmit: true, ...kindOptions },
  }
  const config = join(project, `${kind}.json`)
  writeFileSync(config, JSON.stringify({ compilerOptions: options, files }))
  return config
}

/** Gives what a compiler says of projects of these kinds, in their order. */
async function typeCheck(compiler: string, kinds: readonly Kind[]): Promise<string[]> {
  const configs = kinds.map(configure)
  const { code, out } = await run(process.execPath, [compiled('test/packaging/type-check.ts'), compiler, ...configs])
  if (code !== 0) throw new Error(out)
  const said: Record<string, string> = JSON.parse(out)
  return configs.map((config) => said[config] ?? '')
}

/** Runs both programs against the server. */
async function runPrograms(node: string): Promise<string[]> {
  const env = { PATH: process.env['PATH'], URL: `tcp://127.0.0.1:${server.tcpPort}`, PASSWORD }
  const programs = ['program.mjs', 'program.cjs'].map((file) => run(node, [file], project, env))
  return (await Promise.all(programs)).map(({ out }) => out)
}

beforeAll(async () => {
  copyTree()
  mkdirSync(project)
  writeFileSync(join(project, 'package.json'), '{ "private": true }')
  for (const [file, text] of Object.entries(PROGRAMS)) writeFileSync(join(project, file), text)
  ;[client] = await Promise.all([pack('packages/client'), server.start()])
}, PROJECT_MS)
afterAll(async () => {
  await server.remove()
  rmSync(directory, { recursive: true })
})

// There are machines without a network.
describe.skipIf(!isReachable)('installed by npm', installedByNpm)
if (!isReachable) describe('@cinnabar/client', laidOut)

function laidOut(): void {
  const json = (path: string) => JSON.parse(readFileSync(path, 'utf8'))
  let installed = ''
  beforeAll(() => {
    installed = unpack(client, '@cinnabar/client')
    for (const name of ['ws', '@mongodb-js']) {
      symlinkSync(join(ROOT, 'node_modules', name), join(project, 'node_modules', name))
    }
  })

  test('depends on what it imports, in the versions that the server has, and on nothing else', () => {
    const { dependencies, version, engines, exports } = json(join(installed, 'package.json'))
    const sources = filesIn(installed, '.js').map((name) => readFileSync(join(installed, name), 'utf8'))
    const imports = sources.flatMap((text) => [
      ...text.matchAll(/^(?:import|export) .*from '([^.'][^']*)'|import\('([^.'][^']*)'\)/gm),
    ])
    const packages = new Set(
      imports.map(([, fixed, lazy]) => fixed ?? lazy ?? '').filter((name) => !name.startsWith('node:')),
    )
    expect([...packages].sort()).toEqual(Object.keys(dependencies))
    const root = json(join(ROOT, 'package.json'))
    for (const [name, range] of Object.entries(dependencies)) expect(range, name).toBe(root.dependencies[name])
    expect({ version, engines }).toEqual({ version: root.version, engines: root.engines })
    expect(exports['.']).toEqual(root.exports['./client'])
  })

  test('has declarations that older compilers can read, a licence, and no maps', () => {
    const declarations = filesIn(installed, '.d.ts')
    expect(declarations.length).toBeGreaterThan(20)
    for (const name of declarations) {
      expect(readFileSync(join(installed, name), 'utf8'), name).not.toMatch(/\b(Uint8Array|Float64Array|Buffer)</)
    }
    expect(readdirSync(installed).sort()).toEqual(['LICENSE', 'README.md', 'dist', 'package.json'])
    expect(filesIn(installed, '.map')).toEqual([])
  })

  test('type-checks and runs in modules and in CommonJS', async () => {
    const compiler = join(ROOT, 'node_modules/typescript/lib/typescript.js')
    expect(await typeCheck(compiler, ['bundler', 'browser', 'compiled'])).toEqual(['', '', ''])
    expect(await runPrograms(process.execPath)).toEqual(['true\n', 'true\n'])
  })
}

function installedByNpm(): void {
  const modules = join(project, 'node_modules')
  const nodeOf = (name: string) => join(modules, name, 'bin/node')
  const compilerOf = (version: string) => join(modules, `typescript-${version}`, 'lib/typescript.js')
  let npm = ''
  let packed = ''

  beforeAll(async () => {
    const [global = ''] = /^\/.*node_modules$/m.exec((await run('npm', ['root', '-g'])).out) ?? []
    npm = join(global, 'npm/bin/npm-cli.js')
    // What the package `node` fetches when it is installed, with an npm of its own for each.
    const program = `node-${process.platform}-${process.arch}`
    const nodes = NODES.map((version) => `node-${version}@npm:${program}@${version}`)
    const compilers = TYPESCRIPTS.map((version) => `typescript-${version}@npm:typescript@${version}`)
    // One waits for the network, the other compiles.
    const [installed, file] = await Promise.all([
      run('npm', ['install', '--foreground-scripts', '@types/node@20', ...nodes, ...compilers]),
      pack(''),
    ])
    if (installed.code !== 0) throw new Error(installed.out)
    packed = file
  }, PROJECT_MS)

  describe('@cinnabar/client', () => {
    // What is compiled is the same for all Nodes, which only run it.
    beforeAll(async () => {
      const { code, out } = await run(process.execPath, [npm, 'install', '--no-save', client])
      expect(code, out).toBe(0)
      expect(await typeCheck(compilerOf(NEWEST_TYPESCRIPT), ['compiled'])).toEqual([''])
    }, PROJECT_MS)

    test.each(NODES)(
      'installs and runs on Node %s',
      async (version) => {
        const node = nodeOf(`node-${version}`)
        rmSync(join(modules, '@cinnabar'), { recursive: true, force: true })
        const { code, out } = await run(node, [npm, 'install', '--engine-strict', '--no-save', client])
        expect(code, out).toBe(0)
        expect(await runPrograms(node)).toEqual(['true\n', 'true\n'])
      },
      PROJECT_MS,
    )

    test.each(TYPESCRIPTS)('type-checks with TypeScript %s', async (version) => {
      // Without --ignoreDeprecations 6.0 refuses what 7 will not have.
      const deprecated = version === NEWEST_TYPESCRIPT ? [] : (['node10'] as const)
      const [commonjs, ...others] = await typeCheck(compilerOf(version), [
        ...(['commonjs', 'modules', 'bundler', 'browser'] as const),
        ...deprecated,
      ])
      expect(others).toEqual(others.map(() => ''))
      if (Number(version) >= 5.8) expect(commonjs).toBe('')
      else expect(commonjs).toContain('only resolves to an ES module')
    })
  })

  describe('cinnabar-mcp', () => {
    const folder = join(directory, 'agents')
    let agents = ''
    beforeAll(async () => {
      mkdirSync(folder)
      writeFileSync(join(folder, 'package.json'), '{ "private": true }')
      agents = await pack('packages/mcp')
    }, PROJECT_MS)

    test.each(NODES)(
      'installs and runs on Node %s',
      async (version) => {
        const node = nodeOf(`node-${version}`)
        rmSync(join(folder, 'node_modules'), { recursive: true, force: true })
        const { code, out } = await run(node, [npm, 'install', '--engine-strict', '--no-save', agents], folder)
        expect(code, out).toBe(0)
        const installed = join(folder, 'node_modules/cinnabar-mcp')
        expect(readdirSync(installed).sort()).toEqual(['LICENSE', 'README.md', 'dist', 'package.json'])
        const program = join(folder, 'node_modules/.bin/cinnabar-mcp')
        expect(await run(node, [program, '--version'], folder)).toEqual({ code: 0, out: '0.1.0\n' })
        const unasked = await run(node, [program], folder, { PATH: process.env['PATH'] })
        expect(unasked).toMatchObject({ code: 2, out: expect.stringContaining('a token is needed') })
      },
      PROJECT_MS,
    )
  })

  describe('cinnabar', () => {
    const folder = join(directory, 'server')
    let installed = ''
    beforeAll(async () => {
      mkdirSync(folder)
      writeFileSync(join(folder, 'package.json'), '{ "private": true }')
      // The strictest of all; SQLite is the one that was compiled here.
      const { code, out } = await run(nodeOf(OLDEST_NODE), [
        npm,
        'install',
        '--engine-strict',
        '--ignore-scripts',
        packed,
      ])
      if (code !== 0) throw new Error(out)
      installed = join(modules, 'cinnabar')
      cpSync(join(ROOT, 'node_modules/better-sqlite3/build'), join(modules, 'better-sqlite3/build'), {
        recursive: true,
      })
    }, PROJECT_MS)

    test('is complete, and has nothing that belongs to the tree', () => {
      for (const path of [
        'packaging/cinnabar.service',
        'packaging/install.sh',
        'docs/operating.md',
        'dist/console/index.html',
        'npm-shrinkwrap.json',
      ]) {
        expect(readdirSync(join(installed, path, '..'))).toContain(path.split('/').at(-1))
      }
      expect(filesIn(installed, '.map')).toEqual([])
      expect(filesIn(installed, '.tsbuildinfo')).toEqual([])
      expect(readdirSync(join(installed, 'dist')).sort()).toEqual([
        'auth',
        'cli',
        'client',
        'console',
        'promql',
        'protocol',
        'server',
        'storage',
        'web',
      ])
      expect(readdirSync(modules)).not.toContain('vitest')
    })

    // The libraries that it depends on take long.
    test('type-checks with the oldest TypeScript', async () => {
      expect(await typeCheck(compilerOf(OLDEST_TYPESCRIPT), ['server'])).toEqual([''])
    })

    // In one folder: npm on each Node compares every package with it, but only the first has anything to unpack.
    test.each(NEWER_NODES)(
      'is installed without compiling anything on Node %s',
      async (version) => {
        const install = [npm, 'install', '--engine-strict', '--ignore-scripts', packed]
        const { code, out } = await run(nodeOf(`node-${version}`), install, folder)
        expect(code, out).toBe(0)
      },
      PROJECT_MS,
    )

    // A server that is killed three times, and loses nothing.
    describe.concurrent('proves itself', () => {
      const demo = ['demo', '--seconds', '1']

      test.each(NEWER_NODES)(
        'on Node %s',
        async (version) => {
          const program = join(folder, 'node_modules/cinnabar/dist/cli/main.js')
          const { code, out } = await run(nodeOf(`node-${version}`), [program, ...demo], folder)
          expect(code, out).toBe(0)
        },
        PROJECT_MS,
      )

      test('as a command, on this Node', async () => {
        const { code, out } = await run(join(modules, '.bin/cinnabar'), demo)
        expect(code, out).toBe(0)
      })
    })
  })
}
