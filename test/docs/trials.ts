/** How each block of a document is tried, by its language. A block of which nothing is known fails. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { jsonCommandArguments, jsonCommandName, parseJsonCommands } from '../../protocol/monitor/json.ts'
import { loadConfig } from '../../server/start/config.ts'
import { openSqlite } from '../../storage/sqlite/driver.ts'
import { SqliteStore } from '../../storage/sqlite/store.ts'
import { commandsOf, isConsole, isMeanwhile, missingFor, runCommands, startsItself } from './console.ts'
import { type Example, isOfTree, runExample, shownBy, typeCheck, usersOf, writeExamples } from './examples.ts'
import { runnable } from './instead.ts'
import { type Block, type Page, ROOT } from './page.ts'
import { PASSWORD, World } from './world.ts'

/** Run by a test of test/web/ that names `<page>#<section>`. */
const IN_BROWSER = ['html', 'js', 'css', 'nginx', 'caddy']
/** Drawings, formulas, what a program prints: not run, so no command may stand in them. */
const COMMAND = /^\s*(\$ |(sudo|npm|npx|cinnabar|node|docker|curl|apt-get|systemctl|git) \S)/

interface Language {
  readonly says: string
  /** Throws or rejects where the block does not do what it shows. */
  readonly run: (trials: Trials, page: Page, block: Block) => Promise<void> | void
  /** The same without starting a process; the whole of `run` if undefined. */
  readonly check?: (trials: Trials, page: Page, block: Block) => void
}

const LANGUAGES: Readonly<Record<string, Language>> = {
  console: { says: 'the commands print what is shown', run: tryCommands, check: checkCommands },
  ts: { says: 'the example compiles and runs', run: tryExample, check: checkExample },
  python: { says: 'a command runs the program', run: tryProgram, check: tryFile },
  toml: { says: 'the configuration is accepted', run: tryConfiguration },
  json: { says: 'the JSON is what it seems to be', run: tryJson },
  sql: { says: 'the query fits the database', run: trySql },
  text: { says: 'the text holds no command', run: tryText },
  template: { says: 'a test of the server runs it', run: expectNamedIn('test/server') },
  ...Object.fromEntries(
    IN_BROWSER.map((name) => [name, { says: 'a test in a browser runs it', run: expectNamedIn('test/web') }]),
  ),
}

const FILE: Language = { says: 'a command uses the file', run: tryFile }
const UNKNOWN: Language = {
  says: 'the block is of a known language',
  run: (_trials, _page, { language }) => {
    throw new Error(`nothing is known of blocks of language "${language}": see docs/contributing.md`)
  },
}

export function languageOf(block: Block): Language {
  if (isConsole(block)) return LANGUAGES['console'] as Language
  if (block.language === 'js' && block.file !== undefined) return FILE
  return LANGUAGES[block.language] ?? (block.file === undefined ? UNKNOWN : FILE)
}

/** The package that has to be installed before the commands of a page can be run. */
export function missingOn({ blocks }: Page, block: Block): string | undefined {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin']
  const isInstalled = (program: string) => folders.some((folder) => existsSync(join(folder, program)))
  return isConsole(block) ? missingFor(blocks.filter(isConsole), isInstalled) : undefined
}

/** Pages with the world of each, and what the compiler says of their examples. */
export class Trials {
  readonly #worlds: ReadonlyMap<Page, World>
  readonly #problems: ReadonlyMap<Example, readonly string[]>

  private constructor(worlds: ReadonlyMap<Page, World>) {
    this.#worlds = worlds
    this.#problems = typeCheck([...worlds].flatMap(([page, world]) => writeExamples(page, world)))
  }

  static async open(pages: readonly Page[]): Promise<Trials> {
    const worlds = new Map<Page, World>()
    for (const page of pages) worlds.set(page, await World.open({ startsItself: startsItself(page.blocks) }))
    return new Trials(worlds)
  }

  async run(page: Page, block: Block): Promise<void> {
    await languageOf(block).run(this, page, block)
  }

  /** What can be said of it without a process. */
  async check(page: Page, block: Block): Promise<void> {
    const { run, check } = languageOf(block)
    await (check ?? run)(this, page, block)
  }

  worldOf(page: Page): World {
    return this.#worlds.get(page) as World
  }

  /** Throws with what the compiler says. */
  checked(block: Block): Example {
    const [example, problems] = [...this.#problems].find(([one]) => one.block === block) as [Example, readonly string[]]
    if (problems.length > 0) throw new Error(problems.join('\n'))
    return example
  }

  async close(): Promise<void> {
    for (const world of this.#worlds.values()) await world.close()
  }
}

async function tryCommands(trials: Trials, page: Page, block: Block): Promise<void> {
  // It is run with the next one.
  if (isMeanwhile(block)) return
  const before = page.blocks[page.blocks.indexOf(block) - 1]
  await runCommands(block, before, trials.worldOf(page))
}

/** Commands that are not run could be; the others have a form that can be read. */
function checkCommands(_trials: Trials, _page: Page, block: Block): void {
  for (const { line } of commandsOf(block)) runnable(line)
}

function checkExample(trials: Trials, page: Page, block: Block): void {
  if (block.isHidden) return
  if (isOfTree(block)) {
    expectTested(block)
    return
  }
  trials.checked(block)
  if (block.file !== undefined) expectUsed(page, block)
}

async function tryExample(trials: Trials, page: Page, block: Block): Promise<void> {
  if (block.isHidden) return
  if (isOfTree(block)) return expectTested(block)
  const example = trials.checked(block)
  const world = trials.worldOf(page)
  await world.addUsers(usersOf(page))
  if (block.file !== undefined) return expectUsed(page, block)
  await runExample(example, shownBy(block, page.blocks[page.blocks.indexOf(block) + 1]), world)
}

/** A file of this tree is compared with the page by a test, which names its folder. */
function expectTested({ file = '' }: Block): void {
  const folder = dirname(file).replaceAll('/', '\\/')
  const tests = readdirSync(join(ROOT, 'test/server'), { recursive: true }).map(String)
  const isNamed = tests.some(
    (path) => path.endsWith('.test.ts') && readFileSync(join(ROOT, 'test/server', path), 'utf8').includes(folder),
  )
  if (!isNamed) throw new Error(`no test in test/server/ compares ${file} with the page`)
}

function tryFile(trials: Trials, page: Page, block: Block): void {
  trials.worldOf(page).write(block.file ?? '', block.lines)
  expectUsed(page, block)
}

/** Whoever it logs in as exists, with this password. */
async function tryProgram(trials: Trials, page: Page, block: Block): Promise<void> {
  const world = trials.worldOf(page)
  const [, user] = /\bidentity="([^"]+)"/.exec(block.lines.join('\n')) ?? []
  if (user !== undefined) await world.addUsers([user])
  const lines = block.lines.map((line) => line.replace(/\bpassword="[^"]*"/, `password="${PASSWORD}"`))
  tryFile(trials, page, { ...block, lines })
}

/** A file is used by a command, or imported by another block. */
function expectUsed({ path, blocks }: Page, { file = '' }: Block): void {
  const isUsed = blocks.some((block) => block.file !== file && block.lines.some((line) => line.includes(file)))
  if (!isUsed) throw new Error(`no block of ${path} runs or imports ${file}`)
}

function tryConfiguration(trials: Trials, page: Page, { line, lines, file = `line-${line}.toml` }: Block): void {
  const world = trials.worldOf(page)
  world.write(file, lines)
  loadConfig({ file: join(world.directory, file), env: {} })
}

/** What has a `cmd` is a command of the protocol, complete and without a key too many. */
function tryJson(_trials: Trials, _page: Page, { lines }: Block): void {
  const text = lines.join('\n')
  const parsed: unknown = JSON.parse(text)
  if (typeof parsed !== 'object' || parsed === null || !('cmd' in parsed)) return
  for (const { cmd, object } of parseJsonCommands(text)) {
    const name = jsonCommandName(cmd)
    if (name === undefined) throw new Error(`the protocol has no command ${cmd}`)
    jsonCommandArguments(name, object)
  }
}

/** Against the tables of a database that was made just now. */
async function trySql(trials: Trials, page: Page, { line, lines }: Block): Promise<void> {
  const directory = join(trials.worldOf(page).directory, `line-${line}`)
  const store = new SqliteStore({ directory, synchronous: 'normal' })
  await store.open({ onDurable() {}, onRoom() {}, onFull() {}, onFailed() {} })
  await store.close()
  const database = openSqlite(join(directory, 'cinnabar.db'), { readonly: true })
  try {
    database.prepare(lines.join('\n'))
  } finally {
    database.close()
  }
}

function tryText(_trials: Trials, _page: Page, { lines }: Block): void {
  const command = lines.find((line) => COMMAND.test(line))
  if (command !== undefined) throw new Error(`a command in a block that is not run: ${command}`)
}

function expectNamedIn(place: string): Language['run'] {
  return (_trials, { path }, { section }) => {
    const name = `${path}#${section}`
    const folder = join(ROOT, place)
    const files = existsSync(folder) ? readdirSync(folder, { recursive: true }).map(String) : []
    const tests = files
      .filter((file) => file.endsWith('.test.ts'))
      .map((file) => readFileSync(join(folder, file), 'utf8'))
    if (!tests.some((test) => test.includes(name))) throw new Error(`no test in ${place}/ names ${name}`)
  }
}
