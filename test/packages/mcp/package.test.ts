/** The package `cinnabar-mcp`: what it needs is named, and the server carries none of it. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'
import { expect, it } from 'vitest'

const ROOT = new URL('../../..', import.meta.url).pathname
const json = (path: string) => JSON.parse(readFileSync(join(ROOT, path), 'utf8'))
const own = json('packages/mcp/package.json')
const server = json('package.json')
const { packages: locked } = json('package-lock.json')

/** As the script `prepack` of the package bundles it. */
async function bundled(): Promise<{ readonly text: string; readonly imported: readonly string[] }> {
  const entry = /esbuild (\S+)/.exec(own.scripts.prepack)?.[1] ?? ''
  const options = { bundle: true, platform: 'node', format: 'esm', target: 'node20', packages: 'external' } as const
  const entryPoints = [join(ROOT, 'packages/mcp', entry)]
  const { metafile, outputFiles } = await build({ ...options, entryPoints, write: false, metafile: true })
  const imports = Object.values(metafile.outputs).flatMap((output) => output.imports)
  const named = imports.map(({ path }) => path).filter((path) => !path.startsWith('node:'))
  const imported = [
    ...new Set(
      named.map((path) =>
        path
          .split('/')
          .slice(0, path.startsWith('@') ? 2 : 1)
          .join('/'),
      ),
    ),
  ]
  return { text: outputFiles[0]?.text ?? '', imported }
}

it('depends on what it imports, in the versions that this tree has', async () => {
  const { imported, text } = await bundled()
  expect(imported.toSorted()).toEqual(Object.keys(own.dependencies).toSorted())
  for (const [name, range] of Object.entries(own.dependencies)) {
    expect({ ...server.dependencies, ...server.devDependencies }[name], name).toBe(range)
  }
  expect({ version: own.version, engines: own.engines }).toEqual({ version: server.version, engines: server.engines })
  expect(text.startsWith('#!/usr/bin/env node\n')).toBe(true)
  expect(own.bin['cinnabar-mcp']).toBe('dist/cinnabar-mcp.js')
  expect(own.scripts.prepack).toContain(`--outfile=${own.bin['cinnabar-mcp']}`)
})

it('brings nothing into the package of the server', () => {
  for (const name of ['@modelcontextprotocol/sdk', 'express', 'hono']) {
    expect({ ...server.dependencies, ...server.optionalDependencies }).not.toHaveProperty(name)
    expect(locked[`node_modules/${name}`], name).toMatchObject({ dev: true })
  }
  expect(existsSync(join(ROOT, 'packages/mcp/package-lock.json'))).toBe(false)
})
