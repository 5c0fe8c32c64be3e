/**
 * The commands that a test cannot run as they stand, each with its reason and what is looked at instead. Everything else
 * that a document shows is run. Keep it short: whoever adds a row takes something out of the tests.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from './page.ts'

interface Instead {
  readonly when: RegExp
  readonly why: string
  /** Throws where the command could not work. */
  readonly check: (words: readonly string[]) => void
}

const INSTEAD: readonly Instead[] = [
  { when: /^npm (install|ci)$/, why: 'the tree is installed', check: () => mustExist('package-lock.json') },
  { when: /^npm run bench\b/, why: 'takes minutes', check: ([, , , ...words]) => checkBench(words) },
  { when: /^npm run chaos\b/, why: 'takes minutes', check: ([, , , ...words]) => checkChaos(words) },
  { when: /^npm (test|run \S+)/, why: 'runs these tests, or goes on for ever', check: checkScript },
  { when: /^npx (vitest|biome|tsc)\b|^npx tsx test\//, why: 'works on the tree', check: checkPaths },
  { when: /^bash \.ci\/run$/, why: 'runs these tests', check: checkPaths },
  { when: /^bash \.ci\/node \d+$/, why: 'runs these tests on another Node', check: checkPaths },
  { when: /^sudo \S*\/install\.sh\b/, why: 'changes the machine', check: () => mustExist('packaging/install.sh') },
  { when: /^sudo (cp -a|install|rsync|tee|cinnabar restore) /, why: 'changes the machine', check: checkPaths },
  { when: /^sudo cinnabar cluster\b/, why: 'needs three machines', check: ([, ...words]) => checkCluster(words) },
  { when: /^npm pack\b/, why: 'test/packaging does it', check: checkPackage },
  { when: /^npm install (--global )?\.\/cinnabar-/, why: 'test/packaging does it', check: () => {} },
  { when: /^pip install \.\//, why: 'changes the machine', check: () => mustExist('packages/python/pyproject.toml') },
  { when: /^git (clone|pull) /, why: 'needs the network', check: () => mustExist('package.json') },
  { when: /^(sudo )?(apt-get|systemctl) /, why: 'changes the machine', check: checkPaths },
  { when: /^(sudo )?docker /, why: 'needs a daemon', check: checkPaths },
  { when: /^cd cinnabar$/, why: 'git clone makes it', check: () => {} },
]

/** The row for one command, if it is not run. */
export function insteadOf(command: string): Instead | undefined {
  return INSTEAD.find(({ when }) => when.test(command))
}

/** The command line with `:` in the place of what is not run. Throws where that could not work. */
export function runnable(line: string): string {
  const parts = line.split(/( && | \|\| )/)
  return parts.map((part) => (check(part) ? ':' : part)).join('')
}

/** Whether it is one that is not run; then it is looked at. */
export function check(command: string): boolean {
  const row = insteadOf(command.trim())
  row?.check(command.trim().split(/\s+/))
  return row !== undefined
}

function checkScript(words: readonly string[]): void {
  const name = (words[1] === 'run' ? words[2] : words[1]) ?? ''
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> }
  if (!Object.hasOwn(scripts, name)) throw new Error(`package.json has no script called ${name}`)
}

/** The server, or a package of `packages/`. */
function checkPackage([, , folder = '.']: readonly string[]): void {
  mustExist(join(folder, 'package.json'))
}

/** `-- NAME [options]`, or nothing. A name in capitals stands for any. */
function checkBench([dashes, name, ...words]: readonly string[]): void {
  if (name === undefined || name === 'NAME') return
  const path = `test/bench/${name}.ts`
  if (dashes !== '--' || !new RegExp(`^  '?${name}'?: bench`, 'm').test(read('test/bench/main.ts'))) {
    throw new Error(`no bench is called ${name}`)
  }
  for (const option of optionsOf(words)) {
    if (!new RegExp(`\\b${option}'?: `).test(read(path))) throw new Error(`${path} has no --${option}`)
  }
}

function checkChaos([dashes, ...words]: readonly string[]): void {
  if (dashes === undefined) return
  const rigs = read('test/chaos/main.ts')
  for (const option of optionsOf(words)) {
    const isKnown = dashes === '--' && new RegExp(`^  '?${option}'?: \\{`, 'm').test(rigs)
    if (!isKnown) throw new Error(`test/chaos/main.ts has no --${option}`)
  }
}

/** What is written like a path is there, or is a part of the path of a test. */
function checkPaths(words: readonly string[]): void {
  const tests = readdirSync(join(ROOT, 'test'), { recursive: true }).map(String)
  for (const word of words.filter((one) => /^\.?\w[\w.-]*\/[\w./-]*$/.test(one))) {
    if (!tests.some((path) => path.includes(word))) mustExist(word)
  }
  if (words.includes('docker') && words.includes('build')) mustExist('Dockerfile')
}

/** Its subcommands are those of the program, whose help other tests compare with docs/cli.md. */
function checkCluster([, , subcommand = '--']: readonly string[]): void {
  const heading = subcommand.startsWith('--') ? 'cinnabar cluster' : `cinnabar cluster ${subcommand}`
  if (!read('docs/cli.md').includes(`### ${heading}\n`)) throw new Error(`there is no command ${heading}`)
}

function mustExist(path: string): void {
  if (!existsSync(join(ROOT, path))) throw new Error(`there is no ${path}`)
}

function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8')
}

export function optionsOf(words: readonly string[]): string[] {
  return words.filter((word) => word.startsWith('--')).map((word) => word.slice(2).replace(/=.*/, ''))
}
