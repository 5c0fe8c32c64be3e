/** Which tests start something outside of their own process: those that import what does, by themselves or through other tests' code. */
import { existsSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'

/** What starts processes, browsers among them. */
const STARTS = /from '(?:node:child_process|playwright-core)'/
const IMPORT = /from '([.][^']+)'/g

/** `path`: of a file below `test/`, from the root of the tree. */
export function startsProcesses(root: string, path: string): boolean {
  return anyStarts(root, [path])
}

function anyStarts(root: string, paths: readonly string[]): boolean {
  const waiting = [...paths]
  const seen = new Set(paths)
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    const text = readFileSync(join(root, path), 'utf8')
    if (STARTS.test(text)) return true
    for (const [, name = ''] of text.matchAll(IMPORT)) {
      const imported = posix.join(posix.dirname(path), name)
      if (seen.has(imported) || !imported.startsWith('test/') || !existsSync(join(root, imported))) continue
      seen.add(imported)
      waiting.push(imported)
    }
  }
  return false
}
