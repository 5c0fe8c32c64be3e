import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { findServer, readConfiguration } from '../../cli/configuration.ts'

const directory = mkdtempSync(join(tmpdir(), 'cinnabar-place-'))
afterAll(() => rmSync(directory, { recursive: true }))
function file(text: string): string {
  const name = join(directory, 'c.toml')
  writeFileSync(name, text)
  return name
}

describe('where the server is found', () => {
  test.each<[string, NodeJS.ProcessEnv]>([
    ['', {}],
    ['', { CINNABAR_LISTEN_TCP: '[::1]:7', CINNABAR_USER: 'x' }],
    ['', { CINNABAR_LISTEN_TCP: '' }],
    ['', { CINNABAR_LISTEN_HTTP: '' }],
    ['[listen]\ntcp = "n1:9"\n[producer]\ndata_dir = "/srv/data"', {}],
    ['[listen]\ntcp = ""\n[channels]\nwindow = 5', {}],
    ['[listen]\ntcp = "n1:9"', { CINNABAR_LISTEN_TCP: '127.0.0.1:1', CINNABAR_PRODUCER_DATA_DIR: 'd' }],
    ['listen.tcp = "n1:9"', {}],
  ])('is what the whole configuration says: %j %j', async (text, env) => {
    const { listen, producer } = await readConfiguration(file(text), env)
    expect(await findServer(file(text), env)).toEqual({ tcp: listen.tcp, dataDir: producer.dataDir })
    expect(await findServer(undefined, { ...env, CINNABAR_CONFIG: file(text) })).toEqual({
      tcp: listen.tcp,
      dataDir: producer.dataDir,
    })
  })

  test.each<[string, NodeJS.ProcessEnv, RegExp]>([
    ['', { CINNABAR_LISTN_TCP: 'n1:9' }, /CINNABAR_LISTN_TCP: unknown environment variable: did you mean/],
    ['', { CINNABAR_LISTEN_TCP: 'n1' }, /CINNABAR_LISTEN_TCP: /],
    ['[listen]\ntcp = 7', {}, /:2: /],
    ['listen = 7', {}, /listen/],
    ['[producer]\ndata_dir = ""', {}, /:2: /],
    ['[listen', {}, /not TOML/],
  ])('is not guessed from what is wrong: %j %j', async (text, env, message) => {
    await expect(findServer(file(text), env)).rejects.toThrow(message)
  })

  test('needs the file that is named', async () => {
    await expect(findServer(join(directory, 'none.toml'), {})).rejects.toThrow(/cannot be read/)
  })
})
