import { readFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { describe, expect, it } from 'vitest'

/** As it is built: one file with all of the project that it loads. */
const WORKER = new URL('../../../../dist/server/wings/history/worker.js', import.meta.url)

describe('the thread of the history', () => {
  it('loads nothing at its start but one file and modules of Node: each package takes megabytes in a thread', () => {
    const loaded = [...readFileSync(WORKER, 'utf8').matchAll(/^import .*?from "([^"]+)";$/gm)].map(
      ([, name = '']) => name,
    )
    expect(loaded).toContain('node:worker_threads')
    expect(loaded.filter((name) => !isBuiltin(name))).toEqual([])
  })
})
