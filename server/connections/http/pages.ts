/**
 * Static files: `/client.js`, the consumer library as one module for browsers, and the operator's own pages. A page from
 * here may open the WebSocket without further permission, since it is of the same host [MON 13].
 */
import { realpathSync, statSync } from 'node:fs'
import { isAbsolute, join, relative, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import fastifyStatic from '@fastify/static'
import type { FastifyInstance } from 'fastify'
import { ListenError } from '../../core/listen.ts'

/** Made by the build. Sources stand two folders below the package, compiled files three. */
const BUNDLE = import.meta.url.endsWith('.ts') ? '../../../dist/web' : '../../../web'

export interface PagesOptions {
  /** Of the operator's pages; undefined: none. */
  readonly directory: string | undefined
  /** What must never be served. */
  readonly dataDir: string
}

/** Throws ListenError where the directory is none, or what it holds is not for everybody. */
export async function servePages(app: FastifyInstance, { directory, dataDir }: PagesOptions): Promise<void> {
  const bundle = fileURLToPath(new URL(BUNDLE, import.meta.url))
  // The library first: a page must not be given another one under its name.
  const roots = directory === undefined ? [bundle] : [bundle, checked(directory, dataDir)]
  await app.register(fastifyStatic, {
    root: roots,
    // What begins with a dot was not put there to be shown.
    dotfiles: 'ignore',
    // A link that leads out of the directory may lead anywhere.
    ...(directory === undefined ? {} : { allowedPath: (path) => roots.some((root) => isFileBelow(root, path)) }),
  })
}

/** `path` as it stands in the URL. */
function isFileBelow(root: string, path: string): boolean {
  try {
    return isWithin(realpathSync(join(root, decodeURIComponent(path))), realpathSync(root))
  } catch {
    return false
  }
}

function checked(directory: string, dataDir: string): string {
  const path = resolve(directory)
  if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) {
    throw new ListenError(`there is no directory ${path} to serve pages from (the key is \`http.pages\`)`)
  }
  const [pages, data] = [realpathSync(path), realpathSync(dataDir)]
  if (!isWithin(data, pages) && !isWithin(pages, data)) return pages
  throw new ListenError(
    `${path} and the data directory ${data} lie in each other: everybody could read the secrets there. ` +
      'Move the pages to a directory of their own (the key is `http.pages`)',
  )
}

function isWithin(path: string, directory: string): boolean {
  const way = relative(directory, path)
  // A name may begin with two dots.
  return way.split(sep)[0] !== '..' && !isAbsolute(way)
}
