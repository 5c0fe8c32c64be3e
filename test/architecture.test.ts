/**
 * The rules for the tree: who may import whom, how long or short a file may be, which names may exist twice. They run a second time
 * over test/cases/architecture, which breaks each of them, to prove that they can fail.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { cruise, type ICruiseResult, type IForbiddenRuleType } from 'dependency-cruiser'
import { beforeAll, describe, expect, it } from 'vitest'

const ROOT = new URL('..', import.meta.url).pathname
const MAX_LINES = 500
/** Below this a file that only one file beside it imports belongs into that one. */
const MIN_LINES = 40

/** What each top-level folder may import. */
const STAR: Readonly<Record<string, readonly string[]>> = {
  protocol: [],
  promql: [],
  auth: [],
  storage: [],
  agents: [],
  server: ['client', 'protocol', 'promql', 'auth', 'storage'],
  client: ['protocol', 'auth'],
  web: ['client', 'protocol', 'auth'],
  cli: ['client', 'server'],
  console: ['client'],
  'packages/mcp': ['client'],
}
const SOURCES = Object.keys(STAR)

/** The rooms of the kernel, from the lowest to the highest: each imports only those before it. */
const ROOMS = [
  'core',
  'config',
  'accounts',
  'metrics',
  'channels',
  'controls',
  'sessions',
  'commands',
  'producer',
] as const

/**
 * The parts of the server, and what each may import of the others. A wing may be ignored by everyone who does not work on it:
 * nothing but `start`, which lists the wings, knows one.
 */
const PARTS = {
  kernel: [],
  kit: ['kernel'],
  wings: ['kit'],
  edge: ['kernel', 'kit'],
  cluster: ['kernel', 'kit', 'edge'],
  start: ['kernel', 'kit', 'wings', 'edge', 'cluster'],
} as const

/** What every wing may import of `protocol/`, besides the folder of its own name. */
const SHARED_PROTOCOL = ['protocol/bytes', 'protocol/kept', 'protocol/monitor', 'protocol/errors[.]ts']

/** What single wings speak besides; `upstream` is a consumer. No wing may import anything else of the server. */
const EXCEPTIONS: Readonly<Record<string, readonly string[]>> = {
  drains: ['protocol/otlp', 'protocol/prometheus'],
  history: ['protocol/prometheus', 'storage/history'],
  ...{ alerts: ['promql'], notify: ['promql'], prometheus: ['promql'] },
  qmf: ['protocol/amqp'],
  upstream: ['client'],
}

/** A command has its name of the wire in every layer that knows it. */
const COMMANDS = [
  'auth',
  'buffer',
  'collect',
  'commit',
  'defChannel',
  'delChannel',
  'execute',
  'get',
  'nop',
  'query',
  'setChannel',
  'stop',
  'subscribe',
  'wrap',
]

/** Names that the public doors of the client library share with each other or with the server's library. */
const PUBLIC = ['Address', 'Arguments', 'StatusError', 'connect']

/** What runs in a browser too. */
const NODE_FREE = [
  '^protocol/(?!link/)',
  '^promql/',
  '^client/(?!dial/)',
  '^auth/(errors|identity|prepare)[.]ts$',
  '^auth/scram/(client|message|keys)[.]ts$',
]
const NODE_FREE_AUTH = NODE_FREE.filter((path) => path.startsWith('^auth/'))

/** What puts the views of the console together. */
const CONSOLE_FRAME = '^console/(app|main)[.]'
const anyOf = (names: readonly string[]) => names.join('|')

function starRule(folder: string, allowed: readonly string[]): IForbiddenRuleType {
  const foreign = [...SOURCES, 'test'].filter((other) => other !== folder && !allowed.includes(other))
  return {
    name: `${folder} imports only: ${allowed.join(', ') || 'nothing'}`,
    severity: 'error',
    from: { path: `^${folder}/` },
    to: { path: `^(${anyOf(foreign)})/` },
  }
}

function roomRule(room: string, rank: number): IForbiddenRuleType {
  return {
    name: `kernel: ${room} imports no room above it`,
    severity: 'error',
    from: { path: `^server/kernel/${room}/` },
    to: { path: `^server/kernel/(${anyOf(ROOMS.slice(rank + 1))})/` },
  }
}

function partRule([part, allowed]: [string, readonly string[]]): IForbiddenRuleType {
  const foreign = Object.keys(PARTS).filter((other) => other !== part && !allowed.includes(other))
  return {
    name: `server/${part} imports only: ${allowed.join(', ') || 'nothing'}`,
    severity: 'error',
    from: { path: `^server/${part}/` },
    to: { path: `^server/(${anyOf(foreign)})/` },
  }
}

/** `wing` is a pattern with one group, which is the name of the wing; `but` are wings with a rule of their own. */
function wingRule(wing: string, also: readonly string[] = [], but: readonly string[] = []): IForbiddenRuleType {
  const allowed = ['server/kit', 'server/wings/$1', 'protocol/$1', ...SHARED_PROTOCOL, ...also]
  return {
    name: 'a wing imports only the kit and its protocol',
    severity: 'error',
    from: { path: `^server/wings/${wing}/`, ...(but.length > 0 && { pathNot: `^server/wings/(${anyOf(but)})/` }) },
    to: { path: `^(${anyOf(SOURCES)})/`, pathNot: `^(${anyOf(allowed)})(/|$)` },
  }
}

const RULES: readonly IForbiddenRuleType[] = [
  ...Object.entries(STAR).map(([folder, allowed]) => starRule(folder, allowed)),
  ...Object.entries(PARTS)
    .slice(0, -1)
    .filter(([part]) => part !== 'wings')
    .map(partRule),
  wingRule('([^/]+)', [], Object.keys(EXCEPTIONS)),
  ...Object.entries(EXCEPTIONS).map(([wing, also]) => wingRule(`(${wing})`, also)),
  ...ROOMS.slice(0, -1).map(roomRule),
  {
    name: 'server: only the upstreams are consumers',
    severity: 'error',
    from: { path: '^server/', pathNot: '^server/wings/upstream/' },
    to: { path: '^client/' },
  },
  {
    name: 'only storage/replicated and server/cluster use NATS',
    severity: 'error',
    from: { path: `^(${anyOf(SOURCES)})/`, pathNot: '^(storage/replicated|server/cluster)/' },
    to: { path: 'node_modules/@nats-io/' },
  },
  {
    // Types are nothing that is loaded.
    name: 'only storage/sqlite/driver.ts loads better-sqlite3',
    severity: 'error',
    from: { path: `^(${anyOf(SOURCES)})/`, pathNot: '^storage/sqlite/driver[.]ts$' },
    to: { path: 'node_modules/better-sqlite3', dependencyTypesNot: ['type-only'] },
  },
  { name: 'no node: here', severity: 'error', from: { path: NODE_FREE }, to: { dependencyTypes: ['core'] } },
  {
    name: 'only what is free of node: from auth',
    severity: 'error',
    from: { path: NODE_FREE },
    to: { path: '^auth/', pathNot: NODE_FREE_AUTH },
  },
  {
    name: 'packages/mcp imports only client/index.ts',
    severity: 'error',
    from: { path: '^packages/mcp/' },
    to: { path: '^client/', pathNot: '^client/index[.]ts$' },
  },
  {
    name: 'only packages/mcp uses the SDK of MCP',
    severity: 'error',
    from: { path: `^(${anyOf(SOURCES)})/`, pathNot: '^packages/mcp/' },
    to: { path: '@modelcontextprotocol/' },
  },
  {
    name: 'console imports only client/browser.ts',
    severity: 'error',
    from: { path: '^console/' },
    to: { path: '^client/', pathNot: '^client/browser[.]ts$' },
  },
  {
    name: 'console: models import neither parts nor views nor the frame',
    severity: 'error',
    from: { path: '^console/[^/]+[.]ts$', pathNot: CONSOLE_FRAME },
    to: { path: ['^console/(parts|views)/', CONSOLE_FRAME] },
  },
  {
    name: 'console: parts import neither views nor the frame',
    severity: 'error',
    from: { path: '^console/parts/' },
    to: { path: ['^console/views/', CONSOLE_FRAME] },
  },
  {
    name: 'console: a view imports neither another view nor the frame',
    severity: 'error',
    from: { path: '^console/views/' },
    to: { path: ['^console/views/', CONSOLE_FRAME] },
  },
  {
    name: 'no node: here',
    severity: 'error',
    from: { path: '^console/.*[.]tsx?$' },
    to: { dependencyTypes: ['core'] },
  },
  { name: 'no circle', severity: 'error', from: {}, to: { circular: true } },
]

/** Reads the imports of the sources under `baseDir` and judges them. */
async function imports(baseDir: string): Promise<ICruiseResult> {
  const folders = SOURCES.filter((folder) => existsSync(join(baseDir, folder)))
  const { output } = await cruise(folders, {
    baseDir,
    ruleSet: { forbidden: [...RULES] },
    validate: true,
    tsPreCompilationDeps: true,
    doNotFollow: { path: 'node_modules' },
  })
  if (typeof output === 'string') throw new Error(output)
  const hasTypescript = (name: string): boolean =>
    readdirSync(join(baseDir, name), { recursive: true }).some((path) => String(path).endsWith('.ts'))
  for (const folder of folders.filter(hasTypescript)) {
    if (!output.modules.some(({ source }) => source.startsWith(`${folder}/`)))
      throw new Error(`nothing of ${folder}/ was read`)
  }
  return output
}

/** Every broken rule, as `from -> to: rule`. */
function violations({ summary }: ICruiseResult): string[] {
  return summary.violations.map(({ from, to, rule }) => `${from} -> ${to}: ${rule.name}`)
}

/** Entries of server/ that are no part, and those of its kernel that are no room. */
function withoutPlace(server: string): string[] {
  const parts: readonly string[] = Object.keys(PARTS)
  const rooms: readonly string[] = ROOMS
  return [
    ...readdirSync(server).filter((entry) => !parts.includes(entry)),
    ...readdirSync(join(server, 'kernel')).filter((entry) => !rooms.includes(entry)),
  ]
}

/** Exceptions that a wing does not use any more. */
function allowedInVain({ modules }: ICruiseResult): string[] {
  const imports = (wing: string, folder: string): boolean => {
    const own = modules.filter(({ source }) => source.startsWith(`server/wings/${wing}/`))
    return own.some(({ dependencies }) => dependencies.some(({ resolved }) => resolved.startsWith(`${folder}/`)))
  }
  return Object.entries(EXCEPTIONS).flatMap(([wing, folders]) =>
    folders.filter((folder) => !imports(wing, folder)).map((folder) => `${wing}: ${folder}`),
  )
}

const linesOf = (source: string): number => source.split('\n').length - 1

/** Short files that only one file imports, which is beside them. */
function fragments(baseDir: string, { modules }: ICruiseResult): string[] {
  const importers = new Map<string, Set<string>>()
  for (const { source, dependencies } of modules) {
    for (const { resolved } of dependencies) {
      importers.set(resolved, (importers.get(resolved) ?? new Set()).add(source))
    }
  }
  return [...importers].flatMap(([path, [importer = '', ...others]]) => {
    if (others.length > 0 || !/[.]tsx?$/.test(path) || dirname(path) !== dirname(importer)) return []
    const lines = linesOf(readFileSync(join(baseDir, path), 'utf8'))
    return lines < MIN_LINES ? [`${path}: ${lines} lines, only for ${importer}`] : []
  })
}

/** Names that several of the sources export. The console is a program of its own, which runs elsewhere: it has its own names. */
function exportedTwice(baseDir: string, result: ICruiseResult): string[] {
  const others = SOURCES.filter((folder) => folder !== 'console')
  return [...exportedTwiceIn(others, baseDir, result), ...exportedTwiceIn(['console'], baseDir, result)]
}

function exportedTwiceIn(folders: readonly string[], baseDir: string, { modules }: ICruiseResult): string[] {
  const places = new Map<string, string[]>()
  const isOurs = (path: string): boolean => folders.some((folder) => path.startsWith(`${folder}/`))
  for (const { source } of modules.filter((module) => isOurs(module.source) && /[.]tsx?$/.test(module.source))) {
    const declared =
      /^export (?:declare )?(?:abstract )?(?:async )?(?:const|class|function\*?|interface|type|let) (\w+)/gm
    const names = [...readFileSync(join(baseDir, source), 'utf8').matchAll(declared)].map(([, name = '']) => name)
    // An overloaded function stands several times in its file.
    for (const name of new Set(names)) places.set(name, [...(places.get(name) ?? []), source])
  }
  return [...places]
    .filter(([name, paths]) => paths.length > 1 && ![...COMMANDS, ...PUBLIC].includes(name))
    .map(([name, paths]) => `${name}: ${paths.toSorted().join(', ')}`)
    .toSorted()
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

describe('the sources', () => {
  let read: ICruiseResult
  beforeAll(async () => {
    read = await imports(ROOT)
  })

  it('import only what the design allows', () => {
    expect(violations(read)).toEqual([])
  })

  it('of wings need all exceptions that are made for them', () => {
    expect(allowedInVain(read)).toEqual([])
  })

  it('of the server are in parts and rooms, so that each has a rule', () => {
    expect(withoutPlace(join(ROOT, 'server'))).toEqual([])
  })

  it('are not cut into fragments: a short file has several importers, or one in another folder', () => {
    expect(fragments(ROOT, read)).toEqual([])
  })

  it('export no name twice, but for commands and public doors', () => {
    expect(exportedTwice(ROOT, read)).toEqual([])
  })
})

describe('a tree that breaks the rules', () => {
  const broken = join(ROOT, 'test/cases/architecture')
  let read: ICruiseResult
  let found: string[] = []
  beforeAll(async () => {
    read = await imports(broken)
    found = violations(read)
  })

  it.each([
    'protocol/impure.ts -> net: no node: here',
    'protocol/knows-server.ts -> server/kernel/channels/queue.ts: protocol imports only: nothing',
    'auth/knows-storage.ts -> storage/store.ts: auth imports only: nothing',
    'auth/scram/keys.ts -> crypto: no node: here',
    'client/consumer.ts -> net: no node: here',
    'client/consumer.ts -> auth/scram/server.ts: only what is free of node: from auth',
    'client/knows-server.ts -> server/kernel/channels/queue.ts: client imports only: protocol, auth',
    'cli/knows-protocol.ts -> protocol/link/tcp.ts: cli imports only: client, server',
    'cli/knows-console.ts -> console/view.ts: cli imports only: client, server',
    'packages/mcp/knows-server.ts -> server/kernel/channels/queue.ts: packages/mcp imports only: client',
    'packages/mcp/knows-server.ts -> client/consumer.ts: packages/mcp imports only client/index.ts',
    'cli/knows-mcp.ts -> packages/mcp/knows-server.ts: cli imports only: client, server',
    'cli/knows-mcp.ts -> @modelcontextprotocol/sdk/types.js: only packages/mcp uses the SDK of MCP',
    'console/view.ts -> client/consumer.ts: console imports only client/browser.ts',
    'console/view.ts -> protocol/link/tcp.ts: console imports only: client',
    'console/model.ts -> console/parts/table.ts: console: models import neither parts nor views nor the frame',
    'console/model.ts -> console/views/other.ts: console: models import neither parts nor views nor the frame',
    'console/model.ts -> console/app.ts: console: models import neither parts nor views nor the frame',
    'console/parts/knows-views.ts -> console/views/other.ts: console: parts import neither views nor the frame',
    'console/parts/knows-views.ts -> console/app.ts: console: parts import neither views nor the frame',
    'console/views/one.ts -> console/views/other.ts: console: a view imports neither another view nor the frame',
    'console/views/one.ts -> console/app.ts: console: a view imports neither another view nor the frame',
    'storage/tested.ts -> test/support.ts: storage imports only: nothing',
    'storage/knows-nats.ts -> ../../../node_modules/@nats-io/transport-node/index.js: only storage/replicated and server/cluster use NATS',
    'storage/sqlite/loads-driver.ts -> ../../../node_modules/better-sqlite3/lib/index.js: only storage/sqlite/driver.ts loads better-sqlite3',
    'server/kernel/channels/queue.ts -> server/kernel/sessions/session.ts: kernel: channels imports no room above it',
    'server/kernel/core/log.ts -> server/kernel/metrics/metric.ts: kernel: core imports no room above it',
    'server/kit/kit.ts -> server/start/server.ts: server/kit imports only: kernel',
    'server/edge/knows-gmetric.ts -> server/wings/gmetric/knows-smon.ts: server/edge imports only: kernel, kit',
    'server/wings/gmetric/knows-smon.ts -> server/wings/smon/sensor.ts: a wing imports only the kit and its protocol',
    'server/wings/gmetric/knows-kernel.ts -> server/kernel/channels/queue.ts: a wing imports only the kit and its protocol',
    'server/wings/gmetric/knows-kernel.ts -> protocol/smon/limits.ts: a wing imports only the kit and its protocol',
    'server/wings/drains/knows-edge.ts -> server/edge/knows-gmetric.ts: a wing imports only the kit and its protocol',
    'server/kernel/metrics/instance.ts -> server/kernel/metrics/metric.ts: no circle',
  ])('is reported: %s', (expected) => {
    expect(found).toContain(expected)
  })

  it('is not reported for what is allowed', () => {
    const allowed = found.filter((line) =>
      /^(protocol\/link|auth\/scram\/server|client\/dial|console\/(app|views\/other)|storage\/sqlite\/names-driver)/.test(
        line,
      ),
    )
    expect(allowed).toEqual([])
  })

  it('is reported for an exception that a wing does not need any more', () => {
    expect(allowedInVain(read)).toContain('upstream: client')
  })

  it('is reported for a folder that is no part, or no room', () => {
    expect(withoutPlace(join(broken, 'server'))).toEqual(['annex', 'unplanned'])
  })

  it('is reported for a short file that only the file beside it imports', () => {
    const short = fragments(broken, read)
    expect(short).toContain('server/kernel/metrics/fragment.ts: 2 lines, only for server/kernel/metrics/whole.ts')
    // It has importers in other folders.
    expect(short.join()).not.toContain('server/kernel/channels/queue.ts')
  })

  it('is reported for a name that is exported twice', () => {
    expect(exportedTwice(broken, read)).toContain('Queue: server/kernel/channels/queue.ts, storage/twice.ts')
  })
})

describe('files', () => {
  const tooLong = (paths: readonly string[]) =>
    paths.flatMap((path) => {
      const lines = linesOf(text(path))
      return lines > MAX_LINES ? [`${path}: ${lines} lines`] : []
    })

  it('have at most 500 lines, sources and tests', () => {
    expect(tooLong(typescript.filter((path) => isSource(path) || isTest(path)))).toEqual([])
  })

  it('that are longer are noticed', () => {
    expect(tooLong(['package-lock.json'])).toHaveLength(1)
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
