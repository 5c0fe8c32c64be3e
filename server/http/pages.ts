/**
 * Static files: `/client.js`, the consumer library as one module for browsers, and the operator's own pages. A page from
 * here may open the WebSocket without further permission, since it is of the same host [MON 13].
 */
import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import fastifyStatic from '@fastify/static'
import type { FastifyInstance } from 'fastify'
import { ListenError } from '../listeners/errors.ts'

/** Made by the build. Sources stand two folders below the package, compiled files three. */
const BUNDLE = import.meta.url.endsWith('.ts') ? '../../dist/web' : '../../web'

/** `directory`: of the operator's pages. Throws ListenError where it is none. */
export async function servePages(app: FastifyInstance, directory: string | undefined): Promise<void> {
  const bundle = fileURLToPath(new URL(BUNDLE, import.meta.url))
  await app.register(fastifyStatic, {
    root: directory === undefined ? [bundle] : [checked(directory), bundle],
    // What begins with a dot was not put there to be shown.
    dotfiles: 'ignore',
  })
}

function checked(directory: string): string {
  const path = resolve(directory)
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return path
  throw new ListenError(`there is no directory ${path} to serve pages from (the key is \`http.pages\`)`)
}
