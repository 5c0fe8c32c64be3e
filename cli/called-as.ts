/**
 * How this program was called. What it prints for people to type next has to work where they are: in a clone that is
 * `npx cinnabar`, after a global installation `cinnabar`, and elsewhere the path of the program.
 */
import { realpathSync } from 'node:fs'
import { basename, delimiter, join, relative } from 'node:path'

const NAME = 'cinnabar'

/** Which words begin a command line that runs this very program, for a shell in the same directory. */
export function calledAs({ argv, env, cwd }: Pick<NodeJS.Process, 'argv' | 'env' | 'cwd'>): string {
  const program = argv[1] ?? ''
  // npm tells its children what it runs: `npx cinnabar`, or a script of our own package such as `npm start`.
  const event = env['npm_lifecycle_event']
  if (event === 'npx' || (event !== undefined && env['npm_package_name'] === NAME)) return `npx ${NAME}`
  const directories = (env['PATH'] ?? '').split(delimiter).filter((directory) => directory !== '')
  const found = directories.find((directory) => isSame(join(directory, NAME), program))
  // npm puts this directory into the PATH of the scripts that it runs, and of nothing else.
  if (found !== undefined) return found.endsWith(join('node_modules', '.bin')) ? `npx ${NAME}` : NAME
  const inside = relative(cwd(), program)
  const path = inside.startsWith('..') ? program : inside
  if (basename(program) !== NAME) return `node ${shellWord(path)}`
  return shellWord(path.includes('/') ? path : `./${path}`)
}

function isSame(path: string, other: string): boolean {
  try {
    return realpathSync(path) === realpathSync(other)
  } catch {
    return false
  }
}

/** Hints and help name commands as `cinnabar …` in backticks; this puts in how the program was called. */
export function asCalled(text: string, program: string): string {
  // A path may contain `$&`, which a text in place of the function would expand.
  return text.replaceAll(`\`${NAME} `, () => `\`${program} `)
}

/** The same for a line of a shell, in which every `cinnabar ` begins a command. */
export function lineAsCalled(line: string, program: string): string {
  return line.replaceAll(`${NAME} `, () => `${program} `)
}

/** A text as one word of a shell. It must be printable. */
export function shellWord(text: string): string {
  return /^[\w.,:@%+/-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
