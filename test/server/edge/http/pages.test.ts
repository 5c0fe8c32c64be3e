import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Fastify from 'fastify'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { servePages } from '../../../../server/edge/http/pages.ts'
import { TestProducer } from '../../../support/producer.ts'

let directory: string
let producer: TestProducer | undefined

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'cinnabar-pages-'))
  mkdirSync(join(directory, 'pages'))
  writeFileSync(join(directory, 'secret.html'), 'outside')
  writeFileSync(join(directory, 'pages', 'load.html'), '<!doctype html>')
  writeFileSync(join(directory, 'pages', '.dot'), 'unseen')
  symlinkSync(join(directory, 'secret.html'), join(directory, 'pages', 'link.html'))
  symlinkSync('load.html', join(directory, 'pages', 'same.html'))
})
afterEach(async () => {
  await producer?.stop()
  producer = undefined
  rmSync(directory, { recursive: true })
})

async function serve(pages: string | undefined): Promise<(path: string) => Promise<Response>> {
  const http = { allowedOrigins: [], pages }
  producer = await TestProducer.start({ config: { listen: { http: { host: '127.0.0.1', port: 0 } }, http } })
  return (path) => fetch(`http://127.0.0.1:${producer?.server.http?.port}${path}`)
}

describe('pages', () => {
  it('are served with their type, and the library beside them', async () => {
    const get = await serve(join(directory, 'pages'))
    const page = await get('/load.html')
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
    const library = await get('/client.js')
    expect([library.status, library.headers.get('content-type')]).toEqual([
      200,
      'application/javascript; charset=utf-8',
    ])
    expect((await get('/same.html')).status).toBe(200)
    expect((await get('/healthz')).status).toBe(200)
  })

  it('cannot take the place of the library', async () => {
    writeFileSync(join(directory, 'pages', 'client.js'), 'unseen')
    const get = await serve(join(directory, 'pages'))
    expect(await (await get('/client.js')).text()).not.toContain('unseen')
  })

  it.each(['/../secret.html', '/..%2fsecret.html', '/%2e%2e/secret.html', '/.dot', '/link.html', '/none.html'])(
    'do not lead to %s',
    async (path) => {
      const get = await serve(join(directory, 'pages'))
      const response = await get(path)
      expect(response.status).toBeGreaterThanOrEqual(400)
      expect(await response.text()).not.toMatch(/outside|unseen/)
    },
  )

  it('are none unless a directory is named; the library is there all the same', async () => {
    const get = await serve(undefined)
    expect((await get('/load.html')).status).toBe(404)
    expect((await get('/client.js')).status).toBe(200)
  })

  it('keep the server from starting where the directory is none', async () => {
    await expect(serve(join(directory, 'nowhere'))).rejects.toThrow(/there is no directory .*nowhere.*`http.pages`/)
    await expect(serve(join(directory, 'secret.html'))).rejects.toThrow(/there is no directory/)
  })

  it('keep the server from starting where the data directory would be seen', async () => {
    const data = join(directory, 'pages', 'data')
    const dotted = join(directory, 'pages', '..data')
    mkdirSync(data)
    mkdirSync(dotted)
    const dotting = servePages(Fastify(), { directory: join(directory, 'pages'), dataDir: dotted })
    await expect(dotting).rejects.toThrow(/everybody could read the secrets/)
    for (const pages of [join(directory, 'pages'), data]) {
      const serving = servePages(Fastify(), { directory: pages, dataDir: data })
      await expect(serving).rejects.toThrow(/everybody could read the secrets/)
    }
  })
})
