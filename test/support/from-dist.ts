/**
 * Tests run what is compiled, as users do, where it is newer than all sources: Node loads it as it is, while vitest would transform
 * each module again for each of its projects. After a change that is not built yet, they run the sources.
 */
import { dirname, join } from 'node:path'
import type { Plugin } from 'vitest/config'
import { builtMs, COMPILED, newerThan } from './built.ts'

/** Modules that vitest does not transform. */
export const DIST = new RegExp(`/dist/(${COMPILED.join('|')})/.*[.]js$`)

/** `root`: of the tree, with a slash at its end. */
export function fromDist(root: string): Plugin {
  const folders = COMPILED.map((folder) => `${root}${folder}/`)
  const isBuilt = newerThan(builtMs(), COMPILED) === undefined
  return {
    name: 'from-dist',
    enforce: 'pre',
    resolveId(source, importer) {
      if (!isBuilt || importer === undefined || !source.startsWith('.') || !source.endsWith('.ts')) return null
      const path = join(dirname(importer), source)
      if (!folders.some((folder) => path.startsWith(folder))) return null
      return { id: join(root, 'dist', `${path.slice(root.length, -'.ts'.length)}.js`), external: true }
    },
  }
}
