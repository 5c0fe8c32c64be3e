/**
 * Finds the files of plug-ins. Their code runs with the rights of the server, so a file that others may write, or whose
 * directory they may write, is refused.
 */
import { realpathSync, type Stats, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, resolve } from 'node:path'
import { ConfigError, type ConfigProblem } from '../../kit/config.ts'

const WRITABLE_BY_GROUP = 0o020
const WRITABLE_BY_ALL = 0o002
const STICKY = 0o1000

/** The real path of a module, which is named from `directory`; `uid` is our own. Throws Error with a sentence that names it. */
export function findModule(module: string, directory: string, uid = process.getuid?.() ?? 0): string {
  const path = realpathSync(isPath(module) ? resolve(directory, module) : resolvePackage(module, directory))
  const file = statSync(path)
  if (!file.isFile()) throw new Error(`${path} is not a file`)
  for (const [name, stats] of [
    [path, file],
    [dirname(path), statSync(dirname(path))],
  ] as const) {
    const problem = ownerProblem(stats, uid)
    if (problem !== undefined) throw new Error(`${name} ${problem}: its code would run with the rights of the server`)
  }
  return path
}

/** Throws ConfigError with everything that is wrong with the modules that a file names. Loads none of them. */
export function checkModules(tables: readonly { readonly module: string }[], file = '.'): void {
  const problems: ConfigProblem[] = []
  for (const { module } of tables) {
    try {
      findModule(module, resolve(dirname(file)))
    } catch (error) {
      problems.push({ source: `[[plugin]] ${module}`, message: (error as Error).message })
    }
  }
  if (problems.length > 0) throw new ConfigError(problems)
}

function isPath(module: string): boolean {
  return /^(\.{0,2}\/)/.test(module)
}

function resolvePackage(name: string, directory: string): string {
  try {
    return createRequire(join(directory, 'from-here.js')).resolve(name)
  } catch (error) {
    const why = (error as Error).message.split('\n')[0]
    throw new Error(`${why}: install the package there, or write a path that begins with "./" or "/"`)
  }
}

function ownerProblem(stats: Stats, ours: number): string | undefined {
  const { uid, mode } = stats
  if (uid !== 0 && uid !== ours) return `belongs to another user (uid ${uid})`
  if (stats.isDirectory() && (mode & STICKY) !== 0) return undefined
  if ((mode & WRITABLE_BY_ALL) !== 0) return 'can be written by everybody (chmod o-w)'
  if ((mode & WRITABLE_BY_GROUP) !== 0) return 'can be written by its group (chmod g-w)'
  return undefined
}
