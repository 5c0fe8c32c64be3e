/** Where the console is served, and how: beside the pages of the operator, for good under hashed names, and compressed. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import fastify from 'fastify'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { serveConsole } from '../../../../server/edge/http/pages.ts'
import { TestProducer } from '../../../support/producer.ts'

const ASSETS = fileURLToPath(new URL('../../../../dist/console/assets', import.meta.url))
const MAX_GZIPPED_BYTES = 140 * 1024
const MAX_EDITOR_BYTES = 150 * 1024
const TITLE = '<title>Cinnabar</title>'

let directory: string
let producer: TestProducer | undefined

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'cinnabar-console-'))
})
afterEach(async () => {
  await producer?.stop()
  producer = undefined
  rmSync(directory, { recursive: true })
})

async function serve(
  http: object = {},
): Promise<(path: string, headers?: Record<string, string>) => Promise<Response>> {
  const listen = { http: { host: '127.0.0.1', port: 0 } }
  producer = await TestProducer.start({ config: { listen, http: { allowedOrigins: [], ...http } } })
  return (path, headers = {}) =>
    fetch(`http://127.0.0.1:${producer?.server.http?.port}${path}`, { headers, redirect: 'manual' })
}

describe('the console', () => {
  it('is at /, and at /console/', async () => {
    const get = await serve()
    expect(await (await get('/')).text()).toContain(TITLE)
    expect(await (await get('/console/')).text()).toContain(TITLE)
    expect((await get('/healthz')).status).toBe(200)
  })

  it('names nothing by an absolute path, since a proxy may have it below one of its own', async () => {
    const get = await serve()
    for (const [path, assets] of [
      ['/', 'console/assets/'],
      ['/console/', 'assets/'],
    ] as const) {
      const links = [...(await (await get(path)).text()).matchAll(/(?:href|src)="([^"]*\.(?:css|js))"/g)]
      expect(links).toHaveLength(2)
      for (const [, link = ''] of links) expect(link.startsWith(assets), link).toBe(true)
    }
    const { status, headers } = await get('/console')
    expect([status, headers.get('location')]).toEqual([302, 'console/'])
  })

  it('leaves / to the index.html of the operator', async () => {
    writeFileSync(join(directory, 'index.html'), 'theirs')
    const get = await serve({ pages: directory })
    expect(await (await get('/')).text()).toBe('theirs')
    expect(await (await get('/console/')).text()).toContain(TITLE)
  })

  it('is at / if the operator has other pages only', async () => {
    writeFileSync(join(directory, 'load.html'), 'theirs')
    const get = await serve({ pages: directory })
    expect(await (await get('/')).text()).toContain(TITLE)
    expect(await (await get('/load.html')).text()).toBe('theirs')
  })

  it('is nowhere if it is switched off', async () => {
    const get = await serve({ console: false })
    expect([(await get('/')).status, (await get('/console/')).status]).toEqual([404, 404])
  })

  it('keeps the server from starting if it is not built, and says what to do', async () => {
    await expect(serveConsole(fastify(), undefined, directory)).rejects.toThrow(
      /^the console is not built, .*: run `npm run build`, or set http\.console = false$/,
    )
  })

  it('has hashed files, which a browser keeps, and a page that it asks for again', async () => {
    const get = await serve()
    const page = await get('/')
    expect(page.headers.get('cache-control')).toBe('no-cache')
    const [script = ''] = /console\/assets\/main-[A-Z0-9]{8}\.js/.exec(await page.text()) ?? []
    const response = await get(`/${script}`)
    expect(response.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
    for (const { headers } of [page, response]) {
      expect(headers.get('content-security-policy')).toMatch(/^default-src 'self';/)
      expect(headers.get('content-security-policy')).not.toContain('unsafe')
    }
  })

  it.each(['br', 'gzip'])('is sent as %s to browsers that take it', async (encoding) => {
    const get = await serve()
    const [name = ''] = readdirSync(ASSETS).filter((file) => /^main-.*\.js$/.test(file))
    const response = await get(`/console/assets/${name}`, { 'accept-encoding': encoding })
    expect(response.headers.get('content-encoding')).toBe(encoding)
    expect(await response.text()).toBe(readFileSync(join(ASSETS, name), 'utf8'))
  })

  it('has at most 140 KiB, compressed, and as an editor, which the view of queries alone loads, 150 KiB more', () => {
    const files = readdirSync(ASSETS).filter((file) => file.endsWith('.gz'))
    const sizeOf = (some: readonly string[]): number =>
      some.reduce((sum, file) => sum + readFileSync(join(ASSETS, file)).length, 0)
    const isEditor = (file: string): boolean => file.startsWith('promql-editor-')
    expect(files.length).toBeGreaterThan(2)
    expect(files.filter(isEditor)).toHaveLength(1)
    expect(sizeOf(files.filter((file) => !isEditor(file)))).toBeLessThanOrEqual(MAX_GZIPPED_BYTES)
    expect(sizeOf(files.filter(isEditor))).toBeLessThanOrEqual(MAX_EDITOR_BYTES)
  })
})
