/** The bundle for browsers is small, and needs nothing of Node. */
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { expect, test } from 'vitest'

/**
 * As docs/client.md says. Of the last KiB, 200 bytes are arguments that are refused by name instead of a frame cut in half, 500
 * are values that commit themselves, and silence that is noticed within seconds, and 200 ask for what is remembered.
 */
const MAX_BYTES = 19.75 * 1024

test('the library for browsers is below 19.75 KiB compressed, and needs nothing of Node', async () => {
  // Everything of Node would be an error here: it cannot be resolved for a browser.
  const { outputFiles, metafile } = await build({
    entryPoints: { client: fileURLToPath(new URL('../../client/browser.ts', import.meta.url)) },
    bundle: true,
    splitting: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    outdir: 'out',
    write: false,
    metafile: true,
  })
  const outputs = Object.entries(metafile.outputs)
  const [entry] = outputs.find(([path]) => path.endsWith('out/client.js'))!
  /** The entry and what it loads at once; what it imports later, for names beyond ASCII, is not counted. */
  const eager = new Set([entry])
  for (const path of eager) {
    for (const { path: imported, kind } of metafile.outputs[path]!.imports) {
      if (kind === 'import-statement') eager.add(imported)
    }
  }
  const bytes = [...eager].map((path) => {
    const file = outputFiles.find((output) => output.path.endsWith(path))!
    return gzipSync(file.contents, { level: 9 }).length
  })
  expect(bytes.reduce((sum, each) => sum + each)).toBeLessThan(MAX_BYTES)
  expect(outputs.length).toBeGreaterThan(eager.size)
})
