/**
 * Builds the console into dist/console: one script and one style sheet under names with their hashes, the page that loads them,
 * and each file compressed beside it, since the server compresses nothing itself.
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { build } from 'esbuild'

const HERE = fileURLToPath(new URL('.', import.meta.url))
const OUT = join(HERE, '../dist/console')

rmSync(OUT, { recursive: true, force: true })
mkdirSync(OUT, { recursive: true })
const { outputFiles } = await build({
  entryPoints: [join(HERE, 'main.tsx'), join(HERE, 'style.css')],
  entryNames: 'assets/[name]-[hash]',
  chunkNames: 'assets/[name]-[hash]',
  outdir: OUT,
  bundle: true,
  // The tables for passwords that are not ASCII are loaded when they are needed.
  splitting: true,
  minify: true,
  format: 'esm',
  target: 'es2022',
  jsx: 'automatic',
  jsxImportSource: 'preact',
  legalComments: 'none',
  logLevel: 'warning',
  write: false,
})
const pathOf = (name, ending) => {
  const { path } = outputFiles.find(({ path }) => basename(path).startsWith(name) && path.endsWith(ending))
  // Relative, since a proxy may have the console below a path of its own.
  return `assets/${basename(path)}`
}
const page = readFileSync(join(HERE, 'index.html'), 'utf8')
  .replace('STYLE', pathOf('style-', '.css'))
  .replace('SCRIPT', pathOf('main-', '.js'))
mkdirSync(join(OUT, 'assets'))
for (const [path, contents] of [
  ['index.html', Buffer.from(page)],
  ...outputFiles.map(({ path, contents }) => [path.slice(OUT.length + 1), contents]),
]) {
  const file = join(OUT, path)
  writeFileSync(file, contents)
  writeFileSync(`${file}.gz`, gzipSync(contents, { level: 9 }))
  writeFileSync(`${file}.br`, brotliCompressSync(contents))
}
