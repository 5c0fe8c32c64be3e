/**
 * What holds for the tree as a whole: who may import whom, how long a file may get, what must not be committed. The
 * import rules run a second time over test/cases/architecture, which breaks each of them, to prove that they can fail.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { cruise, type IForbiddenRuleType } from 'dependency-cruiser'
import { beforeAll, describe, expect, it } from 'vitest'

const ROOT = new URL('..', import.meta.url).pathname
const MAX_SOURCE_LINES = 300
const MAX_TEST_LINES = 400

/** What each top-level folder may import. */
const STAR: Readonly<Record<string, readonly string[]>> = {
  protocol: [],
  auth: [],
  storage: [],
  agents: [],
  server: ['protocol', 'auth', 'storage'],
  client: ['protocol', 'auth'],
  web: ['client', 'protocol', 'auth'],
  cli: ['client', 'server'],
}
const SOURCES = Object.keys(STAR)

/** The files and folders of the server, from the lowest to the highest; those of one line may import each other. */
const ORDER: readonly (readonly string[])[] = [
  ['clock', 'age', 'log', 'errors', 'config', 'quotas', 'accounts', 'audit', 'rights', 'watched-file', 'jwt-keys-file'],
  ['metrics'],
  ['channels'],
  ['sensors', 'controls', 'tls', 'qmf-agent'],
  ['sessions'],
  ['commands'],
  ['listeners', 'http', 'dialling'],
  [
    'parts',
    'recovery',
    'first-run',
    'operator-files',
    'start-feeds',
    'start-listeners',
    'start-sensors',
    'server',
    'main',
  ],
]

/** What runs in a browser too. */
const NODE_FREE = [
  '^protocol/(?!link/)',
  '^client/(?!dial/)',
  '^auth/(errors|identity|prepare|qualified-name)[.]ts$',
  '^auth/scram/(client|message|keys)[.]ts$',
]
const NODE_FREE_AUTH = NODE_FREE.filter((path) => path.startsWith('^auth/'))

const anyOf = (names: readonly string[]) => names.join('|')

function starRule(folder: string, allowed: readonly string[]): IForbiddenRuleType {
  const foreign = [...SOURCES, 'test'].filter((other) => other !== folder && !allowed.includes(other))
  return {
    name: `${folder} imports of ours only: ${allowed.join(', ') || 'nothing'}`,
    severity: 'error',
    from: { path: `^${folder}/` },
    to: { path: `^(${anyOf(foreign)})/` },
  }
}

function orderRule(names: readonly string[], rank: number): IForbiddenRuleType {
  const higher = ORDER.slice(rank + 1).flat()
  return {
    name: `server: ${names.join(', ')} import nothing above`,
    severity: 'error',
    from: { path: `^server/(${anyOf(names)})(/|[.]ts$)` },
    to: { path: `^server/(${anyOf(higher)})(/|[.]ts$)` },
  }
}

const RULES: readonly IForbiddenRuleType[] = [
  ...Object.entries(STAR).map(([folder, allowed]) => starRule(folder, allowed)),
  ...ORDER.slice(0, -1).map(orderRule),
  { name: 'no node: here', severity: 'error', from: { path: NODE_FREE }, to: { dependencyTypes: ['core'] } },
  {
    name: 'of auth only what is free of node:',
    severity: 'error',
    from: { path: NODE_FREE },
    to: { path: '^auth/', pathNot: NODE_FREE_AUTH },
  },
  { name: 'no circle', severity: 'error', from: {}, to: { circular: true } },
]

/** Every broken rule under `baseDir`, as `from -> to: rule`. */
async function violations(baseDir: string): Promise<string[]> {
  const folders = SOURCES.filter((folder) => existsSync(join(baseDir, folder)))
  const { output } = await cruise(folders, {
    baseDir,
    ruleSet: { forbidden: [...RULES] },
    validate: true,
    tsPreCompilationDeps: true,
    doNotFollow: { path: 'node_modules' },
  })
  if (typeof output === 'string') throw new Error(output)
  const { summary, modules } = output
  const hasTypescript = (name: string): boolean =>
    readdirSync(join(baseDir, name), { recursive: true }).some((path) => String(path).endsWith('.ts'))
  for (const folder of folders.filter(hasTypescript)) {
    if (!modules.some(({ source }) => source.startsWith(`${folder}/`)))
      throw new Error(`nothing of ${folder}/ was read`)
  }
  return summary.violations.map(({ from, to, rule }) => `${from} -> ${to}: ${rule.name}`)
}

/** Entries of server/ that have no place in the order. */
function withoutPlace(server: string): string[] {
  const known = new Set(ORDER.flat())
  return readdirSync(server).filter((entry) => !known.has(entry.replace(/[.]ts$/, '')))
}

/** Files that belong to the tree: tracked, or new and not ignored. */
const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '-z'], { cwd: ROOT })
  .toString()
  .split('\0')
  .filter((path) => path !== '' && existsSync(join(ROOT, path)))
const text = (path: string) => readFileSync(join(ROOT, path), 'utf8')
const isTest = (path: string) => path.startsWith('test/') && !path.startsWith('test/cases/')
const isSource = (path: string) => SOURCES.some((folder) => path.startsWith(`${folder}/`))
const typescript = files.filter((path) => /[.]tsx?$/.test(path))

describe('imports', () => {
  it('go only the ways the design allows', async () => {
    expect(await violations(ROOT)).toEqual([])
  })

  it('of the server stand in its order, so that each has a rule', () => {
    expect(withoutPlace(join(ROOT, 'server'))).toEqual([])
  })
})

describe('a tree that breaks the rules', () => {
  const broken = join(ROOT, 'test/cases/architecture')
  let found: string[] = []
  beforeAll(async () => {
    found = await violations(broken)
  })

  it.each([
    'protocol/impure.ts -> net: no node: here',
    'protocol/knows-server.ts -> server/channels/queue.ts: protocol imports of ours only: nothing',
    'auth/knows-storage.ts -> storage/store.ts: auth imports of ours only: nothing',
    'auth/scram/keys.ts -> crypto: no node: here',
    'client/consumer.ts -> net: no node: here',
    'client/consumer.ts -> auth/scram/server.ts: of auth only what is free of node:',
    'client/knows-server.ts -> server/channels/queue.ts: client imports of ours only: protocol, auth',
    'cli/knows-protocol.ts -> protocol/link/tcp.ts: cli imports of ours only: client, server',
    'storage/tested.ts -> test/support.ts: storage imports of ours only: nothing',
    'server/channels/queue.ts -> server/sessions/session.ts: server: channels import nothing above',
    'server/core/log.ts -> server/metrics/metric.ts: server: clock, age, log, errors, config, quotas, accounts, audit, rights, watched-file, jwt-keys-file import nothing above',
    'server/metrics/instance.ts -> server/metrics/metric.ts: no circle',
  ])('is told: %s', (expected) => {
    expect(found).toContain(expected)
  })

  it('is told nothing about what is allowed', () => {
    const allowed = found.filter((line) => /^(protocol\/link|auth\/scram\/server|client\/dial)/.test(line))
    expect(allowed).toEqual([])
  })

  it('is told of a folder without a place in the order', () => {
    expect(withoutPlace(join(broken, 'server'))).toEqual(['unplanned'])
  })
})

describe('files', () => {
  const tooLong = (paths: readonly string[], limit: number) =>
    paths.flatMap((path) => {
      const lines = text(path).split('\n').length - 1
      return lines > limit ? [`${path}: ${lines} lines`] : []
    })

  it('of the sources have at most 300 lines', () => {
    expect(tooLong(typescript.filter(isSource), MAX_SOURCE_LINES)).toEqual([])
  })

  it('of the tests have at most 400 lines', () => {
    expect(tooLong(typescript.filter(isTest), MAX_TEST_LINES)).toEqual([])
  })

  it('longer than allowed are noticed', () => {
    expect(tooLong(['package-lock.json'], MAX_TEST_LINES)).toHaveLength(1)
  })
})

describe('tests', () => {
  const switchedOff = /\b(?:it|test|describe|suite|bench)(?:[.]\w+)*[.](only|skip|skipIf|runIf|todo|fails)\b/

  /** Lines that run less than all tests: `only` always, the others unless a comment there or above says why. */
  function unexplained(source: string): string[] {
    const lines = source.split('\n')
    return lines.filter((line, index) => {
      const found = switchedOff.exec(line)
      if (found === null || line.trim().startsWith('//')) return false
      return found[1] === 'only' || !`${lines[index - 1] ?? ''}\n${line}`.includes('// ')
    })
  }

  it('all run, or say why not', () => {
    const found = typescript.filter(isTest).flatMap((path) => unexplained(text(path)).map((line) => `${path}: ${line}`))
    expect(found).toEqual([])
  })

  it('that are switched off are noticed', () => {
    const dot = '.'
    expect(unexplained(`it${dot}only('x')`)).toHaveLength(1)
    expect(unexplained(`// why\nit${dot}only('x')`)).toHaveLength(1)
    expect(unexplained(`describe${dot}skip('x')`)).toHaveLength(1)
    expect(unexplained(`\nit${dot}skipIf(noDisk)('x')`)).toHaveLength(1)
    expect(unexplained(`// No /proc here.\nit${dot}skipIf(noProc)('x')`)).toEqual([])
  })
})

describe('dependencies', () => {
  const { dependencies, devDependencies } = JSON.parse(text('package.json'))
  const named = [...text('docs/dependencies.md').matchAll(/^\| `([^`]+)` \|/gm)].map((match) => match[1])

  it('each have one line in docs/dependencies.md, and nothing else has', () => {
    expect(named.toSorted()).toEqual(Object.keys({ ...dependencies, ...devDependencies }).toSorted())
  })

  it('are locked without the address they came from', () => {
    expect(text('package-lock.json')).not.toContain('"resolved": "http')
  })
})

describe('what is committed', () => {
  /** Paths of the machine it was written on; put together here, so that this file names none. */
  const machine = new RegExp(['work', 'root', 'home', 'Users'].map((name) => `["'\`\\s(=]/${name}/\\w`).join('|'))

  it('names no path of a machine', () => {
    // Cases hold what other machines said of themselves.
    const ours = files.filter((path) => !path.startsWith('test/cases/'))
    const found = ours.flatMap((path) => {
      const line = text(path)
        .split('\n')
        .findIndex((candidate) => machine.test(candidate))
      return line < 0 ? [] : [`${path}:${line + 1}`]
    })
    expect(found).toEqual([])
  })

  it('is noticed where it does', () => {
    expect(machine.test(`see ${['', 'home', 'me', 'notes'].join('/')}`)).toBe(true)
    expect(machine.test("import '../work/main.ts' // host.home/x")).toBe(false)
  })
})
