import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type LoginOptions, resolveLogin } from '../../cli/login.ts'
import type { Terminal } from '../../cli/terminal.ts'

let directory: string
const file = (name: string, text: string) => {
  const path = join(directory, name)
  writeFileSync(path, text)
  return path
}
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'cinnabar-login-'))
})
afterAll(() => rmSync(directory, { recursive: true }))

function resolve(options: LoginOptions, env: NodeJS.ProcessEnv = {}, typed?: string) {
  const askSecret = async (question: string) => (typed === undefined ? Promise.reject(new Error(question)) : typed)
  return resolveLogin(options, { env, askSecret } as Partial<Terminal> as Terminal)
}

test('with nothing said it is the user local, with the secret and the address of the configuration', async () => {
  file('admin.secret', 's3cret\n')
  const config = file('c.toml', `[producer]\ndata_dir = ${JSON.stringify(directory)}\n[listen]\ntcp = "0.0.0.0:7777"\n`)
  for (const login of [await resolve({ config }), await resolve({}, { CINNABAR_CONFIG: config })]) {
    expect(login).toMatchObject({
      url: 'tcp://127.0.0.1:7777',
      credentials: { identity: 'local', password: 's3cret', methods: ['scram-sha-256'] },
    })
    expect(login.used).toBe(
      'tcp://127.0.0.1:7777 (where the configuration listens), user local (the default), ' +
        `secret from ${join(directory, 'admin.secret')}`,
    )
  }
})

test('options win over the environment, and that over the configuration', async () => {
  const secretFile = file('alice.secret', 'from a file\r\nsecond line')
  const env = { CINNABAR_URL: 'tcp://a:1', CINNABAR_USER: 'bob', CINNABAR_PASSWORD: 'from the environment' }
  expect(await resolve({}, env)).toMatchObject({
    url: 'tcp://a:1',
    credentials: { identity: 'bob', password: 'from the environment' },
    used: 'tcp://a:1 (CINNABAR_URL), user bob (CINNABAR_USER), secret from CINNABAR_PASSWORD',
  })
  const login = await resolve({ url: 'tcp://b:2', user: 'acme/alice', secretFile }, env)
  expect(login).toMatchObject({ url: 'tcp://b:2', credentials: { identity: 'acme/alice', password: 'from a file' } })
  expect(login.credentials.methods).toBeUndefined()
  expect(login.used).not.toContain('from a file')
})

test('a password that is nowhere is asked for, by name', async () => {
  const options = { url: 'tcp://b:2', user: 'alice' }
  expect((await resolve(options, {}, 'typed')).credentials.password).toBe('typed')
  await expect(resolve(options)).rejects.toThrow('Password of alice at tcp://b:2: ')
})

test('a missing secret says how it comes to be there, an unreadable one who may read it', async () => {
  const nowhere = { CINNABAR_PRODUCER_DATA_DIR: join(directory, 'nowhere') }
  await expect(resolve({}, nowhere)).rejects.toMatchObject({
    exitCode: 1,
    message: expect.stringMatching(/no .*nowhere.admin.secret: the server writes it(.|\n)*npm start/),
  })
  const secretFile = join(directory, 'missing')
  await expect(resolve({ secretFile, url: 'tcp://b:2' })).rejects.toMatchObject({
    exitCode: 2,
    message: expect.stringContaining(secretFile),
  })
})

test('a secret that is there and cannot be read says who may read it', async () => {
  // A directory in its place: no mode keeps root from reading a file.
  const dataDir = join(directory, 'unreadable')
  mkdirSync(join(dataDir, 'admin.secret'), { recursive: true })
  await expect(resolve({}, { CINNABAR_PRODUCER_DATA_DIR: dataDir })).rejects.toThrow(/only who runs the server/)
})

test('an empty secret is none', async () => {
  await expect(resolve({ secretFile: file('empty', '\n'), url: 'tcp://b:2' })).rejects.toThrow(/is empty/)
  const dataDir = join(directory, 'hollow')
  mkdirSync(dataDir)
  file('hollow/admin.secret', '')
  const resolving = resolve({}, { CINNABAR_PRODUCER_DATA_DIR: dataDir })
  await expect(resolving).rejects.toThrow(/hollow.admin.secret: it is empty[^:]*\.\n/)
})

test('a file that is no file is named', async () => {
  await expect(resolve({ secretFile: directory, url: 'tcp://b:2' })).rejects.toMatchObject({
    exitCode: 2,
    message: expect.stringContaining(`from ${directory}: EISDIR`),
  })
})

test('the secret of the server is told with its directory, since one may stand in another', async () => {
  await expect(resolve({}, { CINNABAR_PRODUCER_DATA_DIR: 'no-such-directory' })).rejects.toThrow(
    join(process.cwd(), 'no-such-directory', 'admin.secret'),
  )
})

test('an IPv6 address stands in brackets, and a listener that is off needs a --url', async () => {
  const env = { CINNABAR_USER: 'a', CINNABAR_PASSWORD: 'b' }
  expect((await resolve({}, { ...env, CINNABAR_LISTEN_TCP: '[::]:1' })).url).toBe('tcp://[::1]:1')
  await expect(resolve({}, { ...env, CINNABAR_LISTEN_TCP: '' })).rejects.toThrow(/name a --url/)
})

test('a configuration that is wrong is told where it is needed, and only there', async () => {
  const config = file('bad.toml', '[listen]\ntpc = 1\n')
  await expect(resolve({ config })).rejects.toMatchObject({
    exitCode: 2,
    message: expect.stringContaining('bad.toml:2'),
  })
  await resolve({ config, url: 'tcp://b:2', user: 'alice' }, { CINNABAR_PASSWORD: 'x' })
})
