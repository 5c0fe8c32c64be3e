/**
 * Static files: `/client.js`, the consumer library as one module for browsers, and the operator's own pages. These pages may
 * open the WebSocket without further permission, because they come from the same host [MON 13].
 */
import { readFileSync, realpathSync, statSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { isAbsolute, join, relative, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import fastifyStatic from '@fastify/static'
import type { FastifyInstance } from 'fastify'
import { ListenError } from '../../kernel/core/listen.ts'

/** The build writes it. This path is relative to a source file or to a compiled file, which is one folder deeper. */
const BUNDLE = import.meta.url.endsWith('.ts') ? '../../../dist/web' : '../../../web'

export interface PagesOptions {
  /** The operator's pages; undefined if there are none. */
  readonly directory: string | undefined
  /** The data directory, which must never be served. */
  readonly dataDir: string
}

/** Where the build writes the console. */
const BUILT = fileURLToPath(
  new URL(import.meta.url.endsWith('.ts') ? '../../../dist/console' : '../../../console', import.meta.url),
)
const CONSOLE_PATH = '/console/'
/** Nothing of the console is inline, and nothing comes from elsewhere; "self" includes the WebSocket of the same host. */
const CONSOLE_POLICY =
  "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/**
 * Serves the console at /console/, and at / unless the operator's pages have an index.html. Its files have their hashes in their
 * names, so a browser asks for each of them once. Throws ListenError if the console is not built.
 */
export async function serveConsole(app: FastifyInstance, pages: string | undefined, root = BUILT): Promise<void> {
  const page = pageAtRoot(root)
  await app.register(fastifyStatic, {
    root,
    prefix: CONSOLE_PATH,
    decorateReply: false,
    preCompressed: true,
    cacheControl: false,
    setHeaders: (response, path) => {
      response.setHeader('content-security-policy', CONSOLE_POLICY)
      const isHashed = path.includes(`${sep}assets${sep}`)
      response.setHeader('cache-control', isHashed ? 'public, max-age=31536000, immutable' : 'no-cache')
    },
  })
  // Relative, as everything that the page loads: a proxy may have the server below a path of its own.
  app.get(CONSOLE_PATH.slice(0, -1), (_request, reply) => reply.redirect('console/'))
  app.get('/', async (_request, reply) => {
    if (pages !== undefined && (await isThere(join(pages, 'index.html')))) return reply.sendFile('index.html', pages)
    return reply
      .type('text/html; charset=utf-8')
      .headers({ 'content-security-policy': CONSOLE_POLICY, 'cache-control': 'no-cache' })
      .send(page)
  })
}

/** The page, whose links begin at /console/, with links that begin at /. */
function pageAtRoot(root: string): string {
  const path = join(root, 'index.html')
  try {
    return readFileSync(path, 'utf8').replaceAll('"assets/', '"console/assets/')
  } catch (error) {
    throw new ListenError(
      `the console is not built, because ${path} cannot be read: run \`npm run build\`, or set http.console = false`,
      { cause: error },
    )
  }
}

async function isThere(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isFile()
  } catch {
    return false
  }
}

/** Throws ListenError if `directory` does not exist, or shares files with the data directory. */
export async function servePages(app: FastifyInstance, { directory, dataDir }: PagesOptions): Promise<void> {
  const bundle = fileURLToPath(new URL(BUNDLE, import.meta.url))
  // The library comes first, so that no file of the operator can replace it.
  const roots = directory === undefined ? [bundle] : [bundle, checked(directory, dataDir)]
  await app.register(fastifyStatic, {
    root: roots,
    // Files whose name begins with a dot are not meant to be published.
    dotfiles: 'ignore',
    // A symbolic link that leaves the directory could lead anywhere.
    ...(directory === undefined ? {} : { allowedPath: (path) => roots.some((root) => isFileBelow(root, path)) }),
  })
}

/** `path` is the encoded path of the URL. */
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
    `${path} and the data directory ${data} contain one another, so everybody could read the secrets there. ` +
      'Move the pages to a directory of their own (the key is `http.pages`)',
  )
}

function isWithin(path: string, directory: string): boolean {
  const way = relative(directory, path)
  // The name of a file may begin with two dots.
  return way.split(sep)[0] !== '..' && !isAbsolute(way)
}
